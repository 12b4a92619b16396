from collections.abc import Callable

import numpy as np
import pytest


def make_copies(
    seed: int = 0, *, n_bags: int = 10, n_points: int = 30, noise: float = 0.05, width: int = 2
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    shape = rng.normal(size=(n_points, width))
    orders = [rng.permutation(n_points) for _ in range(n_bags)]
    bags = [(shape + noise * rng.normal(size=shape.shape))[order] for order in orders]
    return bags, orders


@pytest.fixture
def copies() -> Callable[..., tuple[list[np.ndarray], list[np.ndarray]]]:
    """Noisy shuffled copies of one shape, and which point of the shape each row came from."""
    return make_copies


@pytest.fixture
def rings() -> np.ndarray:
    """Bags that vary along few directions: ellipses of points, each in an order of its own."""
    rng = np.random.default_rng(3)
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    widths = 1 + 0.4 * rng.normal(size=(14, 2))
    bags = widths[:, None, :] * np.stack([np.cos(angle), 2 * np.sin(angle)], axis=1)
    bags += 0.03 * rng.normal(size=bags.shape)
    return np.stack([rng.permutation(bag) for bag in bags])
