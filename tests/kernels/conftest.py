import numpy as np
import pytest

from unshuffle.datasets import digit_sets


@pytest.fixture(scope="session")
def ragged():
    """Digits as sets of points of different sizes, and their labels."""
    bags, labels = digit_sets(60, digits=(0, 7))
    return [bag[: 40 + i % 30] for i, bag in enumerate(bags)], labels


@pytest.fixture(scope="session")
def reordered():
    """Function that puts the points of every set into another order."""

    def shuffle(bags, seed=0):
        rng = np.random.default_rng(seed)
        return [rng.permutation(bag) for bag in bags]

    return shuffle
