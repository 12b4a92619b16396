"""How well a layout puts like beside like."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._arrays import check_magnitude, check_vectors
from unshuffle._distances import as_float64, squared_distances
from unshuffle._grids import (
    _BLOCK,
    check_cell_points,
    check_grid,
    check_points_end,
    pair_distances,
    touching_cells,
)
from unshuffle._parameters import check_count, check_flag, check_real, check_seed

Rings = Callable[[NDArray[np.intp]], NDArray[Any]]


def distance_preservation_quality(
    X: Any,
    grid: ArrayLike,
    *,
    p: float = 16,
    wrap: bool = False,
    points: ArrayLike | None = None,
    n_rows: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> float:
    """How close a layout comes to putting the most alike items nearest to each other.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_items, d)
        Features whose Euclidean distance says how unlike two items are.
    grid : array-like of int, shape (rows, columns), or (n_cells,) with `points`
        Item in each cell, -1 where it is empty. Items in no cell do not count.
    p : float, default=16
        At least 1. A larger value looks more at the nearest neighbours and less at the layout as
        a whole.
    wrap : bool, default=False
        Whether the last row touches the first and the last column the first (a torus).
    points : array-like of shape (n_cells, 2), default=None
        Where each cell is, for a layout on points; `grid` is then a list of one item per point.
    n_rows : int or None, default=None
        Judge the surroundings of this many items, drawn at random. More is slower and more
        exact; None, or at least the number of placed items, takes all.
    random_state : int, RandomState or None, default=None
        Draws the items where `n_rows` asks for fewer than all.

    Returns
    -------
    float
        About 1 if every item is surrounded by those most like it, the nearest ones first; larger
        is better. Random layouts get clearly less than sorted ones, but not 0 at large p: compare
        layouts of the same items. It is 1 where all items are equally far apart, since no layout
        is better than another then.

    Notes
    -----
    For each item, the others are ranked by their distance on the grid, ties by their distance in
    X. With d_k the mean distance in X to the first k, over all items, and d the mean over all
    pairs, the gain is max(0, (d - d_k) / d). The quality is the p-norm of the gains over all k,
    divided by that for the ranking by X itself.

    O(n_rows n (d + log n)) time; memory is taken for a block of rows at a time, never n x n.

    References
    ----------
    Barthel, Hezel, Jung, Schall, "Improved evaluation and generation of grid layouts using
    distance preservation quality and linear assignment sorting", Computer Graphics Forum 42
    (2023).

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> round(distance_preservation_quality(X, [[0, 1, 2, 3, 4, 5]]), 3)
    1.0
    >>> round(distance_preservation_quality(X, [[3, 0, 5, 2, 4, 1]]), 3)
    0.0
    """
    X = check_vectors(X, "X")
    largest = float(abs(X).max())
    if largest and not 1e-100 < largest < 1e100:
        X = X / largest  # squares would leave the range of floats, and the quality has no unit
    p = check_real(p, "p", least=1)
    if points is None:
        cells = check_grid(grid, X.shape[0])
        rings = _grid_rings(cells >= 0, check_flag(wrap, "wrap"))
    else:
        check_points_end(wrap)
        cells = check_grid(grid, X.shape[0], n_axes=1)
        rings = _point_rings(check_cell_points(points, cells.size)[cells >= 0])
    items = cells[cells >= 0]
    if items.size < 2:
        raise ValueError(
            f"`grid` holds {items.size} item(s). A layout is judged by pairs, so place at least "
            "two."
        )
    chosen = _chosen_rows(items.size, n_rows, random_state)
    by_layout, by_features = _mean_sorted_distances(as_float64(X[items]), rings, chosen)
    return _norm_ratio(_gains(by_layout), _gains(by_features), p)


def neighbor_distance(X: Any, grid: ArrayLike, *, wrap: bool = False) -> float:
    """Mean distance between items side by side or one above the other.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_items, d)
        Features of the items.
    grid : array-like of int, shape (rows, columns)
        Item in each cell, -1 where it is empty.
    wrap : bool, default=False
        Whether the last row touches the first and the last column the first (a torus).

    Returns
    -------
    float
        Mean Euclidean distance over all pairs of touching cells that both hold an item, each
        pair once; smaller is better. In the units of X: compare layouts of the same items.

    Notes
    -----
    O(n d) time. Two columns (or rows) of a torus touch once, not twice, and a single one does not
    touch itself.

    Examples
    --------
    >>> neighbor_distance([[0.0], [1.0], [3.0], [7.0]], [[0, 1], [2, 3]])
    3.5
    >>> neighbor_distance([[0.0], [1.0], [3.0], [7.0]], [[0, 1], [2, -1]])
    2.0
    """
    X = check_vectors(X, "X")
    check_magnitude(X, "X")
    cells = check_grid(grid, X.shape[0])
    first, second = touching_cells(cells >= 0, check_flag(wrap, "wrap"))
    if first.size == 0:
        raise ValueError(
            "No two items of `grid` are side by side or one above the other. "
            "Use distance_preservation_quality, which compares items at any distance."
        )
    items = cells.ravel()
    return float(pair_distances(X, items[first], items[second]).mean())


def _grid_rings(filled: NDArray[np.bool_], wrap: bool) -> Rings:
    """For chosen filled cells, the number of the ring around them that each filled cell is in."""
    squares = []
    for length in filled.shape:
        steps = np.abs(np.arange(1 - length, length))
        squares.append((np.minimum(steps, length - steps) if wrap else steps) ** 2)
    # A ring is told by the step from its centre alone, so one table serves every centre.
    radii, numbers = np.unique(np.add.outer(*squares), return_inverse=True)
    table = numbers.reshape(len(squares[0]), len(squares[1])).astype(_smallest_type(radii.size))
    height, width = filled.shape
    centres = np.argwhere(filled)
    full = bool(filled.all())

    def around(chosen: NDArray[np.intp]) -> NDArray[Any]:
        rings = np.empty((chosen.size, len(centres)), dtype=table.dtype)
        for out, (row, column) in zip(rings, centres[chosen], strict=True):
            window = table[height - 1 - row :, width - 1 - column :][:height, :width]
            out[:] = window.ravel() if full else window[filled]
        return rings

    return around


def _point_rings(places: NDArray[np.float64]) -> Rings:
    """The same for chosen points; a ring ends where the next point is clearly farther."""
    extent = float(np.ptp(places, axis=0).max()) or 1.0
    places = (places - places.min(axis=0)) / extent
    smallest = _smallest_type(len(places))

    def around(chosen: NDArray[np.intp]) -> NDArray[Any]:
        squares = squared_distances(places[chosen], places)
        nearest = np.argsort(squares, axis=1)
        squares = np.take_along_axis(squares, nearest, axis=1)
        # Points of a regular figure are equally far but for their last digits.
        farther = np.diff(squares, axis=1, prepend=0.0) > 1e-9 * squares + 1e-14
        rings = np.empty(squares.shape, dtype=smallest)
        np.put_along_axis(rings, nearest, np.cumsum(farther, axis=1, dtype=smallest), axis=1)
        return rings

    return around


def _smallest_type(n_values: int) -> type[np.integer]:
    # NumPy sorts 16-bit numbers by radix: several times faster.
    return np.uint16 if n_values <= 2**16 else np.uint32


def _chosen_rows(
    n_items: int, n_rows: int | None, random_state: int | np.random.RandomState | None
) -> NDArray[np.intp]:
    if n_rows is None or check_count(n_rows, "n_rows") >= n_items:
        return np.arange(n_items)
    return check_seed(random_state).permutation(n_items)[:n_rows]


def _mean_sorted_distances(
    X: Any, rings: Rings, chosen: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean distance to the k-th other item, ranked by the layout and by X, over chosen items.

    Means of running means are running means of these, so no row needs to be kept.
    """
    n_items = X.shape[0]
    by_layout, by_features = np.zeros(n_items), np.zeros(n_items)
    step = max(1, _BLOCK // n_items)
    for start in range(0, chosen.size, step):
        rows = chosen[start : start + step]
        distances = np.sqrt(squared_distances(X[rows], X))
        nearest = np.argsort(distances, axis=1)
        distances = np.take_along_axis(distances, nearest, axis=1)
        by_features += distances.sum(axis=0)
        # Sorted by distance already, a stable sort by ring leaves ties in that order.
        outward = np.argsort(np.take_along_axis(rings(rows), nearest, axis=1), kind="stable")
        by_layout += np.take_along_axis(distances, outward, axis=1).sum(axis=0)
    # Each item is its own first neighbour, at distance 0.
    return by_layout[1:] / chosen.size, by_features[1:] / chosen.size


def _gains(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much closer than average the first k are, for each k; never below zero."""
    mean = float(distances.mean())
    running = np.cumsum(distances) / np.arange(1, distances.size + 1)
    # Rounding would leave gains of 1e-16 where there are none.
    gains = (mean - running) / (mean or 1.0)
    return np.where(gains > 1e-12, gains, 0.0)


def _norm_ratio(gains: NDArray[np.float64], best: NDArray[np.float64], p: float) -> float:
    largest = float(best.max())
    if largest == 0.0:
        return 1.0
    # Scaled first: small gains to a high power underflow.
    return float(np.linalg.norm(gains / largest, ord=p) / np.linalg.norm(best / largest, ord=p))
