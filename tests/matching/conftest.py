from typing import NamedTuple

import numpy as np
import pytest


class Cloud(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray


@pytest.fixture(scope="session")
def cloud():
    """Maker of a cloud and its rotated, shifted, shuffled copy, with strangers on either side."""

    def make(n_items, seed=0, *, noise=0.0, strangers_x=0, strangers_y=0):
        random = np.random.default_rng(seed)
        spread = [1.5, 1.0, 0.6]  # a round cloud has no shape to recognise it by
        points = random.normal(size=(n_items, 3)) * spread
        rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
        first = np.vstack([points, random.normal(size=(strangers_x, 3)) * spread])
        second = np.vstack([points, random.normal(size=(strangers_y, 3)) * spread])
        second = second @ rotation + random.normal(size=3) * 4
        second += noise * random.normal(size=second.shape)
        order = random.permutation(len(second))
        truth = np.full(len(first), -1)
        truth[:n_items] = np.argsort(order)[:n_items]
        return Cloud(first, second[order], truth)

    return make
