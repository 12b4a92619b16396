"""NeighborhoodShape: the shape of the neighborhood of each point."""

from typing import Any, ClassVar

import numpy as np
from scipy.linalg import helmert

from unshuffle._core.parameters import ARRAY, Constraints, count, number
from unshuffle._run.types import Floats
from unshuffle.preprocessing._set_normalizer import SetTransformer

# Distances that differ by less than this share are equal up to rounding.
TIED = 1e-9
# Most points whose neighbors are found at once, and most numbers that this may take: 64 MB.
BLOCK = 512
MAX_NUMBERS = 2**23


class NeighborhoodShape(SetTransformer):
    """Add columns that describe how the neighbors of each point lie: on a line, or all around.

    A point alone has only a position; a stroke through it has a direction. With that direction in
    further columns, kernels between sets compare strokes rather than dots.

    Parameters
    ----------
    n_neighbors : int, default=8
        Number of nearest points, including the point itself, that describe it. A larger value
        sees coarser shape and tolerates more noise. Smaller sets use all their points.
    weight : float, default=0.75
        Factor of the new columns, which lie between -1 and 1. A larger value gives direction more
        weight against position; .75 suits sets of unit spread (`SetNormalizer`).
    columns : array-like of int or None, default=None
        Columns that are coordinates. None is all of them.

    Attributes
    ----------
    n_features_in_ : int
        Columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, if the sets came as tables with names.

    Notes
    -----
    With C the covariance of a point's neighbors in d coordinates, the new columns are the
    d (d + 1) / 2 - 1 independent numbers of C / tr(C) - I / d in an orthonormal basis. In two
    dimensions they are the doubled angle of the stroke, zero if the neighbors lie all around.
    They rotate with a set and do not change if it is moved or scaled. Neighbors at the same
    distance share the last places, so that ties do not depend on order.

    Time is quadratic, memory linear in the number of points of a set. Strokes help on drawings
    with many points, not on pictures of 8 by 8 pixels.

    Examples
    --------
    Points along the diagonal:

    >>> import numpy as np
    >>> from unshuffle.preprocessing import NeighborhoodShape
    >>> line = np.arange(10.0)[:, None] * [1.0, 1.0]
    >>> NeighborhoodShape(n_neighbors=3, weight=1.0).fit_transform([line])[0][5].round(3)
    array([5.   , 5.   , 0.   , 0.707])
    """

    _constraints: ClassVar[Constraints] = {
        "n_neighbors": [count(2)],
        "weight": [number(above=0)],
        "columns": [ARRAY, None],
    }

    def __init__(self, n_neighbors: int = 8, *, weight: float = 0.75, columns: Any = None) -> None:
        self.n_neighbors = n_neighbors
        self.weight = weight
        self.columns = columns

    def _transform_set(self, points: Floats) -> Floats:
        coordinates = points[:, self._columns]
        n_neighbors = min(int(self.n_neighbors), len(points))
        step = max(1, min(BLOCK, MAX_NUMBERS // coordinates.size))
        parts = [
            neighborhood_shapes(coordinates, coordinates[start : start + step], n_neighbors)
            for start in range(0, len(points), step)
        ]
        return np.hstack([points, self.weight * np.concatenate(parts)])


def neighborhood_shapes(points: Floats, centers: Floats, n_neighbors: int) -> Floats:
    """Covariance of the points nearest to each center over its trace, minus a round one."""
    n_dims = points.shape[1]
    offsets = points[None, :, :] - centers[:, None, :]
    squares = np.einsum("cnd,cnd->cn", offsets, offsets)
    weights = _neighbor_weights(squares, n_neighbors)
    means = np.einsum("cn,cnd->cd", weights, offsets)
    covariance = np.einsum("cn,cnd,cne->cde", weights, offsets, offsets, optimize=True)
    covariance -= means[:, :, None] * means[:, None, :]
    traces = np.einsum("cdd->c", covariance)[:, None, None]
    # Relative to the neighbors only: a distant outlier must not make shapes count as rounding.
    reach = np.where(weights > 0.0, squares, 0.0).max(axis=1)
    least = np.finfo(float).eps * reach[:, None, None]
    round_part = np.eye(n_dims) / n_dims
    shapes = np.broadcast_to(round_part, covariance.shape).copy()
    np.divide(covariance, traces, out=shapes, where=traces > least)
    return _independent_numbers(shapes - round_part)


def _neighbor_weights(squares: Floats, n_neighbors: int) -> Floats:
    """Weight of each point, summing to one; points tied for the last places share them."""
    reach = np.partition(squares, n_neighbors - 1, axis=1)[:, n_neighbors - 1, None]
    inside = squares < reach * (1.0 - TIED)
    tied = ~inside & (squares <= reach * (1.0 + TIED))
    places = n_neighbors - inside.sum(axis=1, keepdims=True)
    return np.asarray((inside + tied * (places / tied.sum(axis=1, keepdims=True))) / n_neighbors)


def _independent_numbers(shapes: Floats) -> Floats:
    """Independent numbers of symmetric traceless matrices, with the same inner products."""
    n_dims = shapes.shape[1]
    basis = np.ascontiguousarray(helmert(n_dims).T)  # orthogonal to the constant vector
    diagonal = np.einsum("cdd->cd", shapes) @ basis
    rows, columns = np.triu_indices(n_dims, 1)
    return np.hstack([diagonal, np.sqrt(2.0) * shapes[:, rows, columns]])
