from typing import NamedTuple

import numpy as np
import pytest


class PairedPoints(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


@pytest.fixture(scope="session")
def paired_points():
    """Make points and a rotated, shifted, shuffled copy, with unrelated items on either side."""

    def make(n_items, seed=0, *, noise=0.0, extra_x=0, extra_y=0):
        random = np.random.default_rng(seed)
        spread = [1.5, 1.0, 0.6]  # round point sets cannot be matched
        points = random.normal(size=(n_items, 3)) * spread
        rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
        first = np.vstack([points, random.normal(size=(extra_x, 3)) * spread])
        second = np.vstack([points, random.normal(size=(extra_y, 3)) * spread])
        second = second @ rotation + random.normal(size=3) * 4
        second += noise * random.normal(size=second.shape)
        order = random.permutation(len(second))
        truth = np.full(len(first), -1)
        truth[:n_items] = np.argsort(order)[:n_items]
        return PairedPoints(first, second[order], truth)

    return make
