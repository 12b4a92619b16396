"""Which vector is to be carried onto which, and where orbits start."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from unshuffle._distances import squared_distances
from unshuffle._middle import middle
from unshuffle._motion import Subspace
from unshuffle.orbits._checks import (
    check_index_pairs,
    check_moving,
    check_orbit_memory,
    check_prototype,
    check_prototype_moves,
)

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


@dataclass(frozen=True)
class Prototype:
    """The vector that orbits start from.

    Attributes
    ----------
    row : int
        Its row of X; `PROTOTYPE` where it is none.
    vector : ndarray of shape (n_features,)
        As the user has it.
    inner : ndarray of shape (d,)
        As matrices move it: its coordinates in the subspace, or the vector itself.
    """

    row: int
    vector: Array
    inner: Array


def chosen_prototype(given: Any, X: Array, inner: Array, subspace: Subspace | None) -> Prototype:
    """The row or vector that the user gave, or the medoid.

    Parameters
    ----------
    given : int, array-like or None
        The user's choice, unchecked; None is the medoid of the rows that are not zero.
    X : ndarray of shape (n, n_features)
        The user's vectors.
    inner : ndarray of shape (n, d)
        The same in the subspace.
    subspace : Subspace or None
        What matrices move; None is the space of X.

    Returns
    -------
    prototype : Prototype
        Not zero in the subspace, unless all rows are.
    """
    if given is None:
        lengths = np.abs(inner).max(axis=1)
        moving = np.flatnonzero(lengths > 1e-14 * lengths.max())
        row = int(moving[medoid(inner[moving])]) if moving.size else 0
        return Prototype(row, X[row], inner[row])
    found = check_prototype(given, *X.shape)
    if isinstance(found, int):
        prototype = Prototype(found, X[found], inner[found])
    else:
        start = found if subspace is None else subspace.inside(found[None])[0]
        prototype = Prototype(PROTOTYPE, found, start)
    check_prototype_moves(prototype.inner, inner)
    return prototype


def chosen_pairs(
    which: Any, X: Array, prototype: Prototype, n_neighbors: int
) -> tuple[NDArray[np.intp], Pairs]:
    """Indices of the rows that are paired, and the vectors that these are.

    Parameters
    ----------
    which : {"knn", "prototype", "all"} or array-like of shape (n_pairs, 2)
        As the estimator has it.
    X : ndarray of shape (n, d)
        Vectors as matrices move them.
    prototype : Prototype
        Paired with all rows by "prototype".
    n_neighbors : int
        Of "knn".

    Returns
    -------
    indices : ndarray of shape (n_pairs, 2)
        Row of the target and of the source.
    pairs : Pairs
        The vectors.
    """
    if not isinstance(which, str):
        indices = check_index_pairs(which, len(X))
    elif which == "knn":
        indices = neighbor_pairs(X, n_neighbors)
    elif which == "all":
        check_orbit_memory(len(X) * (len(X) - 1) // 2, X.shape[1], X.shape[1])
        indices = all_pairs(len(X))
    else:
        indices = prototype_pairs(len(X), prototype.row)
    from_outside = (indices[:, 1] == PROTOTYPE)[:, None]
    sources = np.where(from_outside, prototype.inner, X[indices[:, 1]])
    targets = X[indices[:, 0]]
    check_moving(sources, targets, "X")
    return indices, Pairs(targets, sources, np.unique(indices[:, 0]).size)


def regression_pairs(X: Array, onto: Array) -> tuple[NDArray[np.intp], Pairs]:
    """Each row with the vector it is carried onto; both indices are its own."""
    check_moving(X, onto, "X and y")
    rows = np.arange(len(X))
    return np.stack([rows, rows], axis=1), Pairs(onto, X, len(X))


def neighbor_pairs(X: Array, n_neighbors: int) -> NDArray[np.intp]:
    """Each row with its nearest others, every pair once."""
    count = min(n_neighbors, len(X) - 1)
    # About the middle: squares of a far-off origin would take the digits of distances.
    near = X - middle(X)
    found = NearestNeighbors(n_neighbors=count).fit(near).kneighbors(return_distance=False)
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
        rows = slice(start, start + _BLOCK)
        sums[rows] = np.sqrt(squared_distances(scaled[rows], scaled)).sum(axis=1)
    return int(np.argmin(sums))
