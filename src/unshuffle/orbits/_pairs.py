"""Which vector is to be carried onto which."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

Array = NDArray[np.float64]

PROTOTYPE = -1  # stands for a prototype that is no row of X
_BLOCK = 1000


@dataclass(frozen=True)
class Pairs:
    """Pairs to be explained: exp(A_n) carries sources[n] onto targets[n].

    Attributes
    ----------
    targets, sources : ndarray of shape (n, d)
        The vectors.
    n_points : int
        Different vectors among the targets, which is less where points are in several pairs.
    """

    targets: Array
    sources: Array
    n_points: int

    def scaled(self) -> tuple["Pairs", float]:
        """Pairs with vectors of unit length in the mean square, and the length they had.

        Exponentials of matrices do not see a common factor; tolerances do.
        """
        scale = float(np.abs(self.sources).max())
        unit = self.sources / scale
        scale *= float(np.sqrt(np.mean(np.sum(unit**2, axis=1))))
        return Pairs(self.targets / scale, self.sources / scale, self.n_points), scale


def neighbor_pairs(X: Array, n_neighbors: int) -> NDArray[np.intp]:
    """Each row with its nearest others, every pair once."""
    count = min(n_neighbors, len(X) - 1)
    found = NearestNeighbors(n_neighbors=count).fit(X).kneighbors(return_distance=False)
    both = np.stack([np.repeat(np.arange(len(X)), count), found.ravel()], axis=1)
    return np.unique(np.sort(both, axis=1), axis=0).astype(np.intp)


def all_pairs(n: int) -> NDArray[np.intp]:
    """Every two rows, once."""
    return np.stack(np.triu_indices(n, k=1), axis=1).astype(np.intp)


def prototype_pairs(n: int, prototype: int) -> NDArray[np.intp]:
    """Each row with the prototype, which is one of them or `PROTOTYPE`."""
    rows = np.delete(np.arange(n), prototype) if prototype != PROTOTYPE else np.arange(n)
    return np.stack([rows, np.full(rows.size, prototype)], axis=1).astype(np.intp)


def medoid(X: Array) -> int:
    """Row with the least sum of distances to all others."""
    sums = np.zeros(len(X))
    scaled = X / np.abs(X).max()
    for start in range(0, len(X), _BLOCK):
        rows = scaled[start : start + _BLOCK]
        for other in range(0, len(X), _BLOCK):
            block = scaled[other : other + _BLOCK]
            squares = np.sum(rows**2, axis=1)[:, None] - 2 * rows @ block.T
            squares += np.sum(block**2, axis=1)
            sums[start : start + _BLOCK] += np.sqrt(np.maximum(squares, 0.0)).sum(axis=1)
    return int(np.argmin(sums))
