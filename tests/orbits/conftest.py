from collections.abc import Callable

import numpy as np
import pytest
from scipy.linalg import expm, subspace_angles

SO3 = np.array(
    [
        [[0, 0, 0], [0, 0, -1], [0, 1, 0]],
        [[0, 0, 1], [0, 0, 0], [-1, 0, 0]],
        [[0, -1, 0], [1, 0, 0], [0, 0, 0]],
    ]
) / np.sqrt(2)


@pytest.fixture
def arc() -> np.ndarray:
    """Points of a circle between 10 and 80 degrees."""
    angle = np.radians(np.random.default_rng(0).uniform(10, 80, 60))
    return np.column_stack([np.cos(angle), np.sin(angle)])


def make_wedge(n: int = 120, seed: int = 0, noise: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    a, e = np.radians(rng.uniform(20, 70, (2, n)))
    points = np.column_stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    return points + noise * rng.normal(size=points.shape)


@pytest.fixture
def wedge() -> Callable[..., np.ndarray]:
    """Points of a sphere within 50 by 50 degrees, all coordinates positive."""
    return make_wedge


def make_moved(generators: np.ndarray, n: int = 100, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coefficients = rng.uniform(0, 0.8, (n, len(generators)))
    d = generators.shape[1]
    start = np.array([1.0, 1.2, 0.9])[:d]
    return expm(np.tensordot(coefficients, generators, axes=1)) @ start


@pytest.fixture
def moved() -> Callable[..., np.ndarray]:
    """Points of the orbit of (1, 1.2, .9) under given generators."""
    return make_moved


def make_angle(first: np.ndarray, second: np.ndarray) -> float:
    flat = [np.asarray(each).reshape(len(each), -1).T for each in (first, second)]
    return float(subspace_angles(*flat).max())


@pytest.fixture
def angle_between() -> Callable[[np.ndarray, np.ndarray], float]:
    """Largest principal angle between the spans of two stacks of matrices."""
    return make_angle


@pytest.fixture
def so3() -> np.ndarray:
    """Rotations about the three axes."""
    return SO3
