"""Quality of layouts."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import check_magnitude, check_vectors
from unshuffle._core.distances import as_float64, squared_distances
from unshuffle._core.grids import (
    _BLOCK,
    check_cell_points,
    check_grid,
    check_points_end,
    pair_distances,
    touching_cells,
)
from unshuffle._core.parameters import check_count, check_flag, check_real, check_seed

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
    """How well a layout places similar items next to each other.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_items, d)
        Features of the items, compared by Euclidean distance.
    grid : array-like of int, shape (rows, columns), or (n_cells,) with `points`
        Item in each cell, -1 if it is empty. Items in no cell are ignored.
    p : float, default=16
        At least 1. A larger value gives the nearest neighbors more weight.
    wrap : bool, default=False
        Whether the last row touches the first and the last column the first (a torus).
    points : array-like of shape (n_cells, 2), default=None
        Position of each cell, for a layout on points; `grid` then lists one item per point.
    n_rows : int or None, default=None
        Number of items, drawn at random, whose neighborhoods are judged. More take longer and are
        more accurate; None takes all.
    random_state : int, RandomState or None, default=None
        Draws the items if `n_rows` is less than their number.

    Returns
    -------
    float
        About 1 if every item is surrounded by the most similar ones; larger is better. Random
        layouts get less, but not 0 at large p: compare layouts of the same items. It is 1 if all
        items are equally far apart.

    Notes
    -----
    For each item, the others are ranked by their distance on the grid, ties by their distance in
    X. With d_k the mean distance in X to the first k, over all items, and d the mean over all
    pairs, the gain is max(0, (d - d_k) / d). The quality is the p-norm of the gains over all k,
    divided by that for the ranking by X itself.

    O(n_rows n (d + log n)) time; memory for a block of rows at a time.

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
    largest = max(float(X.max()), -float(X.min()))
    if largest and not 1e-100 < largest < 1e100:
        X = X / largest  # squares would overflow, and the quality has no unit
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
            f"`grid` holds {items.size} item(s). Layouts are judged by pairs: place at least two."
        )
    chosen = np.arange(items.size)
    if n_rows is not None and check_count(n_rows, "n_rows") < items.size:
        chosen = check_seed(random_state).permutation(items.size)[:n_rows]
    X = as_float64(X)
    if not np.array_equal(np.sort(items), np.arange(X.shape[0])):  # some, or some twice
        X, items = X[items], np.arange(items.size)
    by_layout, by_features = _mean_sorted_distances(X, items, rings, chosen)
    return _norm_ratio(_gains(by_layout), _gains(by_features), p)


def neighbor_distance(X: Any, grid: ArrayLike, *, wrap: bool = False) -> float:
    """Mean distance between the items of neighboring cells, side by side or one above the other.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_items, d)
        Features of the items.
    grid : array-like of int, shape (rows, columns)
        Item in each cell, -1 if it is empty.
    wrap : bool, default=False
        Whether the last row touches the first and the last column the first (a torus).

    Returns
    -------
    float
        Mean Euclidean distance over all pairs of touching cells that both hold an item, each
        pair once; smaller is better. In the units of X: compare layouts of the same items.

    Notes
    -----
    O(n d) time. In a torus of two columns (or rows) each pair counts once.

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
    """Function that numbers the rings around chosen filled cells, for all filled cells."""
    squares = []
    for length in filled.shape:
        steps = np.abs(np.arange(1 - length, length))
        squares.append((np.minimum(steps, length - steps) if wrap else steps) ** 2)
    # A ring depends only on the step from its center, so one table serves every center.
    radii, numbers = np.unique(np.add.outer(*squares), return_inverse=True)
    table = numbers.reshape(len(squares[0]), len(squares[1])).astype(_smallest_type(radii.size))
    height, width = filled.shape
    centers = np.argwhere(filled)
    full = bool(filled.all())

    def around(chosen: NDArray[np.intp]) -> NDArray[Any]:
        rings = np.empty((chosen.size, len(centers)), dtype=table.dtype)
        for out, (row, column) in zip(rings, centers[chosen], strict=True):
            window = table[height - 1 - row :, width - 1 - column :][:height, :width]
            out[:] = window.ravel() if full else window[filled]
        return rings

    return around


def _point_rings(places: NDArray[np.float64]) -> Rings:
    """The same for points; a ring ends where the next point is clearly farther."""
    extent = float(np.ptp(places, axis=0).max()) or 1.0
    places = (places - places.min(axis=0)) / extent
    smallest = _smallest_type(len(places))

    def around(chosen: NDArray[np.intp]) -> NDArray[Any]:
        squares = squared_distances(places[chosen], places)
        nearest = np.argsort(squares, axis=1)
        squares = np.take_along_axis(squares, nearest, axis=1)
        # Equal distances may differ in their last digits.
        farther = np.diff(squares, axis=1, prepend=0.0) > 1e-9 * squares + 1e-14
        rings = np.empty(squares.shape, dtype=smallest)
        np.put_along_axis(rings, nearest, np.cumsum(farther, axis=1, dtype=smallest), axis=1)
        return rings

    return around


def _smallest_type(n_values: int) -> type[np.integer]:
    # NumPy sorts 16-bit numbers by radix: several times faster.
    return np.uint16 if n_values <= 2**16 else np.uint32


def _mean_sorted_distances(
    X: Any, items: NDArray[np.intp], rings: Rings, chosen: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean distance to the k-th other item, ranked by the layout and by X, over chosen cells.

    `items` are those in the filled cells, all of X.
    """
    place = np.argsort(items)  # cell of each item
    n_items = X.shape[0]
    by_layout, by_features = np.zeros(n_items), np.zeros(n_items)
    step = max(1, _BLOCK // n_items)
    for start in range(0, chosen.size, step):
        rows = chosen[start : start + step]
        distances = np.sqrt(squared_distances(X[items[rows]], X))
        nearest = np.argsort(distances, axis=1)
        distances = np.take_along_axis(distances, nearest, axis=1)
        by_features += distances.sum(axis=0)
        # Rows are sorted by distance already, so a stable sort by ring breaks ties by distance.
        outward = np.argsort(
            np.take_along_axis(rings(rows), place[nearest], axis=1), kind="stable"
        )
        by_layout += np.take_along_axis(distances, outward, axis=1).sum(axis=0)
    # Each item is its own first neighbor, at distance 0.
    return by_layout[1:] / chosen.size, by_features[1:] / chosen.size


def _gains(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much closer than average the first k are, for each k; at least zero."""
    mean = float(distances.mean())
    running = np.cumsum(distances) / np.arange(1, distances.size + 1)
    # Smaller gains are rounding.
    gains = (mean - running) / (mean or 1.0)
    return np.where(gains > 1e-12, gains, 0.0)


def _norm_ratio(gains: NDArray[np.float64], best: NDArray[np.float64], p: float) -> float:
    largest = float(best.max())
    if largest == 0.0:
        return 1.0
    # Scaled first: small gains to a high power underflow.
    return float(np.linalg.norm(gains / largest, ord=p) / np.linalg.norm(best / largest, ord=p))
