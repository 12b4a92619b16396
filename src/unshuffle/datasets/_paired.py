"""The shape that every two-collection dataset of this room comes in."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle._printing import short_repr


class Paired(NamedTuple):
    """Two collections of the same things, the second in an order of its own.

    Attributes
    ----------
    X : ndarray of shape (n, ...)
        First collection.
    y : ndarray of shape (n, ...)
        Second collection, shuffled.
    truth : ndarray of shape (n,)
        ``y[truth[i]]`` belongs to ``X[i]``.
    """

    X: NDArray
    y: NDArray
    truth: NDArray[np.intp]

    def __repr__(self) -> str:
        return short_repr(self)


def shuffle_second(X: NDArray, y: NDArray, rng: np.random.RandomState) -> Paired:
    """Give `y`, so far in the order of `X`, an order of its own, and keep the truth."""
    order = rng.permutation(len(y))
    return Paired(X, y[order], np.argsort(order))
