"""Checks of shapes, places and tiles."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._arrays import as_rows, check_magnitude, check_plain
from unshuffle._grams import check_frozen
from unshuffle._parameters import check_count, check_memory

_SHAPES = (
    "Give (rows, columns), a 2-D boolean mask, or the row and column of each cell as an array of "
    "shape (n_cells, 2)."
)


def check_representatives(k: Any, n_items: int) -> int:
    """Number of items to choose from a collection, at most all of them."""
    k = check_count(k, "k")
    if k > n_items:
        raise ValueError(
            f"`k` is {k}, but there are only {n_items} item(s) to choose from. Choose at most "
            f"{n_items}."
        )
    return k


def check_layout_shape(
    shape: Any,
) -> tuple[int, int] | NDArray[np.bool_] | NDArray[np.float64]:
    """Rows and columns, a mask with at least one cell, or finite points."""
    one_axis = isinstance(shape, tuple | list) or getattr(shape, "ndim", 0) == 1
    if one_axis and len(shape) == 2 and _are_counts(shape):
        return check_rectangle(shape)
    check_plain(shape, "`shape`")
    try:
        cells = np.asarray(shape)
    except ValueError as error:
        raise ValueError(f"`shape` is not understood: {error}. {_SHAPES}") from error
    if cells.dtype == bool:
        return _check_mask(cells)
    if cells.ndim != 2 or cells.shape[1] != 2 or cells.dtype.kind not in "iuf":
        raise ValueError(
            f"`shape` must say where the cells are, got an array of shape {cells.shape} and "
            f"dtype {cells.dtype}. {_SHAPES}"
        )
    return _check_points(cells.astype(np.float64))


def check_rectangle(shape: Any) -> tuple[int, int]:
    """Rows and columns, at least one of each."""
    if len(np.shape(shape)) != 1 or len(shape) != 2 or not _are_counts(shape):
        raise ValueError(
            f"`shape` must be (rows, columns), two whole numbers, got {shape!r}. Pass e.g. "
            "(16, 20)."
        )
    rows, columns = int(shape[0]), int(shape[1])
    if rows < 1 or columns < 1:
        raise ValueError(
            f"`shape` has no cell: it is {rows} x {columns}. Give at least one row and one column."
        )
    return rows, columns


def check_tiles(n_tiles: int, n_cells: int, repeat: int | None) -> None:
    """Refuse a grid that the tiles cannot fill as often as they may be used."""
    if repeat is not None and n_tiles * repeat < n_cells:
        raise ValueError(
            f"{n_tiles:,} tiles used up to {repeat} time(s) each do not fill {n_cells:,} cells. "
            f"Pass repeat={-(-n_cells // n_tiles)} or more, or a smaller `shape`."
        )


def check_collage_memory(n_tiles: int, n_cells: int) -> None:
    """Refuse costs of all tiles in all cells that would not fit."""
    check_memory(
        # the costs, and what the assignment keeps beside them
        int(2.5 * 4 * n_tiles * n_cells),
        what=f"Comparing {n_tiles:,} tiles with {n_cells:,} cells",
        instead="Give fewer tiles, or a smaller `shape`.",
    )


def check_cells_memory(rows: int, columns: int) -> None:
    """Refuse a rectangle whose cells alone, with the least features, would not fit."""
    check_memory(
        80 * rows * columns,
        what=f"Laying out {rows:,} x {columns:,} cells",
        instead="Give a smaller `shape`.",
    )


def _are_counts(shape: Any) -> bool:
    return all(isinstance(each, Integral) and not isinstance(each, bool) for each in shape)


def _check_mask(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if mask.ndim != 2:
        raise ValueError(
            f"`shape` is a mask with {mask.ndim} dimension(s), got shape {mask.shape}. {_SHAPES}"
        )
    if not mask.any():
        raise ValueError(
            f"`shape` is a mask of {mask.shape[0]} x {mask.shape[1]} without a single cell. Set "
            "it to True where items may be."
        )
    return mask


def _check_points(points: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(points) == 0:
        raise ValueError(f"`shape` holds no point. {_SHAPES}")
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        raise ValueError(
            f"`shape` contains NaN or infinity (in {bad.size} of {len(points)} points, the first "
            f"is point {bad[0]}). Drop these points."
        )
    check_magnitude(points, "`shape`")
    return points


def check_room(n_items: int, n_cells: int, where: str) -> None:
    """Refuse more items than there are cells to put them in."""
    if n_items > n_cells:
        raise ValueError(
            f"{n_items:,} items do not fit into the {n_cells:,} cells of {where}. Give a larger "
            "`shape`, or fewer items (`unshuffle.layout.choose_representatives` chooses some "
            "that stand for all)."
        )


def check_frozen_cells(
    frozen: ArrayLike | None, n_items: int, cells: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Items and the cells they are fixed to, each item and each cell once, inside the shape."""
    pairs = check_frozen(frozen, n_items, cells.size, first="X", second="the layout", other="cell")
    outside = np.flatnonzero(~cells.reshape(-1)[pairs[:, 1]])
    if outside.size:
        item, cell = pairs[outside[0]]
        place = f" (row {cell // cells.shape[1]}, column {cell % cells.shape[1]})"
        raise ValueError(
            f"`frozen` puts item {item} into cell {cell}{place if cells.ndim == 2 else ''}, "
            "which is outside the mask. Choose a cell where the mask is True; cells count row "
            "by row from 0."
        )
    return pairs


def check_new_vectors(X: Any, n_columns: int) -> Any:
    """Finite vectors with the columns of those that are laid out already; one will do."""
    rows = as_rows(X, "X")
    if rows.shape[1] != n_columns:
        raise ValueError(
            f"X has {rows.shape[1]} columns, but the items that are laid out have {n_columns}. "
            "Describe new items by the same columns."
        )
    return rows


def check_added(n_new: int, *, n_empty: int) -> None:
    """Refuse more new items than there are empty cells, or none."""
    if n_new < 1:
        raise ValueError(
            f"X holds {'no more' if n_new == 0 else 'fewer'} items than are laid out. With "
            'kernel="precomputed" give the kernel matrix of all items, the old ones first.'
        )
    if n_new > n_empty:
        raise ValueError(
            f"{n_new:,} new items do not fit into the {n_empty:,} cells that are empty. Fit anew "
            "with a larger `shape`, or add fewer."
        )
