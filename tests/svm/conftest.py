import numpy as np
import pytest


@pytest.fixture
def shapes():
    """Noisy copies of three shapes of nine points, each shuffled, and the class of each."""
    rng = np.random.default_rng(3)
    kinds = rng.normal(size=(3, 9, 2))
    y = np.arange(60) % 3
    sets = [rng.permutation(kinds[kind] + 0.3 * rng.normal(size=(9, 2))) for kind in y]
    return sets, y


@pytest.fixture
def ragged():
    """Samples of 5 to 12 points from two distributions, and the class of each."""
    rng = np.random.default_rng(5)
    y = np.arange(40) % 2
    sizes = rng.integers(5, 13, size=40)
    sets = [
        rng.normal(size=(size, 2)) * ((1.0, 0.4) if kind else (0.4, 1.0))
        for kind, size in zip(y, sizes, strict=True)
    ]
    return sets, y


@pytest.fixture
def shuffled():
    """Sets with the same points in another order."""

    def shuffle(sets, seed=0):
        rng = np.random.default_rng(seed)
        return [rng.permutation(points) for points in sets]

    return shuffle
