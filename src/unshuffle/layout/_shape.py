"""Shape: the cells of a layout, as a rectangle, a mask or points of the plane."""

import re
from dataclasses import dataclass
from math import ceil, floor, sqrt
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import check_magnitude, check_plain
from unshuffle._core.grams import check_frozen
from unshuffle._core.grids import check_points_end
from unshuffle._core.parameters import check_count, check_memory
from unshuffle._run.types import Indices

_SHAPES = (
    "Give (rows, columns), a 2-D boolean mask, or the row and column of each cell as an array of "
    "shape (n_cells, 2)."
)
# Items for which all widths of a rectangle are tried in less than a second.
MOST_ITEMS = 10**12


@dataclass(frozen=True)
class Shape:
    """Cells to be filled."""

    cells: NDArray[np.bool_]  # (rows, columns): which cells there are; (n_cells,) for points
    points: NDArray[np.float64] | None  # (n_cells, 2): row and column of cells not on a grid
    wrap: bool  # whether opposite edges of the grid meet

    @classmethod
    def for_items(cls, shape: Any, n_items: int, *, wrap: bool) -> "Shape":
        """The shape that the user asked for, with room for all items."""
        found = rectangle_for(n_items) if shape is None else _check_shape(shape)
        if isinstance(found, tuple):
            check_memory(
                80 * found[0] * found[1],  # cells alone, with the fewest features
                what=f"Laying out {found[0]:,} x {found[1]:,} cells",
                instead="Give a smaller `shape`.",
            )
            result = cls(np.ones(found, dtype=bool), None, wrap)
        elif found.dtype == bool:
            result = cls(np.array(found, dtype=bool), None, wrap)
        else:
            check_points_end(wrap)
            result = cls(np.ones(len(found), dtype=bool), np.array(found), False)
        if n_items > result.n_open:
            raise ValueError(
                f"{n_items:,} items do not fit into the {result.n_open:,} cells of {result}. Give "
                "a larger `shape`, or fewer items: `unshuffle.layout.choose_representatives` "
                "chooses a representative sample."
            )
        return result

    def __str__(self) -> str:
        if self.points is not None:
            return f"`shape` ({len(self.points):,} points)"
        size = f"{self.cells.shape[0]} x {self.cells.shape[1]}"
        return f"a {size} rectangle" if self.cells.all() else f"a {size} mask"

    @property
    def n_open(self) -> int:
        """Number of cells that can hold an item."""
        return int(self.cells.sum())

    def positions(self, cells: Indices) -> NDArray[Any]:
        """Row and column of each of these cells."""
        if self.points is not None:
            return self.points[cells]
        return np.stack(np.divmod(cells, self.cells.shape[1]), axis=1)


def rectangle_for(n_items: int) -> tuple[int, int]:
    """Rows and columns of a rectangle, no wider than 16:9, that leaves the fewest cells empty.

    Parameters
    ----------
    n_items : int
        Number of items, from 1 to a trillion.

    Returns
    -------
    shape : (int, int)
        At least as wide as tall, and the nearest to a square of those with the fewest empty cells.

    Examples
    --------
    >>> rectangle_for(320)
    (16, 20)
    """
    n_items = check_count(n_items, "n_items", most=MOST_ITEMS)
    least = ceil(sqrt(n_items))
    most = max(least, floor(sqrt(n_items * 16 / 9)))
    columns = min(range(least, most + 1), key=lambda each: (-n_items % each, each))
    return -(-n_items // columns), columns


def _check_shape(shape: Any) -> tuple[int, int] | NDArray[Any]:
    """Rows and columns, a mask with at least one cell, or finite points."""
    one_axis = isinstance(shape, tuple | list) or getattr(shape, "ndim", 0) == 1
    if one_axis and len(shape) == 2 and _are_counts(shape):
        return check_rectangle(shape)
    if isinstance(shape, str | bytes | Number) or getattr(shape, "shape", None) == ():
        raise ValueError(
            f"`shape` must be (rows, columns), such as {_usual_form(shape)}, a mask or points, "
            f"got {shape!r:.80}. {_SHAPES}"
        )
    check_plain(shape, "`shape`")
    try:
        cells = np.asarray(shape)
    except ValueError as error:
        raise ValueError(f"`shape` is not understood: {error}. {_SHAPES}") from error
    if cells.dtype == bool:
        if cells.ndim != 2:
            raise ValueError(
                f"`shape` is a mask with {cells.ndim} dimension(s), got shape {cells.shape}. "
                f"{_SHAPES}"
            )
        if not cells.any():
            raise ValueError(
                f"`shape` is a mask of {cells.shape[0]} x {cells.shape[1]} without a single cell. "
                "Set it to True where items may be."
            )
        return cells
    if cells.ndim != 2 or cells.shape[1] != 2 or cells.dtype.kind not in "iuf":
        raise ValueError(
            f"`shape` must say where the cells are, got an array of shape {cells.shape} and "
            f"dtype {cells.dtype}. {_SHAPES}"
        )
    if len(cells) == 0:
        raise ValueError(f"`shape` holds no point. {_SHAPES}")
    points = cells.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        raise ValueError(
            f"`shape` contains NaN or infinity (in {bad.size} of {len(points)} points, the first "
            f"is point {bad[0]}). Drop these points."
        )
    check_magnitude(points, "`shape`")
    return points


def _usual_form(shape: Any) -> str:
    """The usual form of a shape that was given as text, such as "5x4", or as one number."""
    text = shape if isinstance(shape, str) else ""
    written = re.fullmatch(r"\D*(\d{1,9})\D+(\d{1,9})\D*", text)
    if written is not None:
        return f"({written[1]}, {written[2]})"
    is_count = isinstance(shape, Integral) and 0 < int(shape) <= MOST_ITEMS
    return str(rectangle_for(int(shape))) if is_count else "(16, 20)"


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


def _are_counts(shape: Any) -> bool:
    return all(isinstance(each, Integral) and not isinstance(each, bool) for each in shape)


def check_frozen_cells(
    frozen: ArrayLike | None, n_items: int, cells: NDArray[np.bool_]
) -> Indices:
    """Items and the cells they are fixed to, each item and each cell once, inside the shape."""
    if frozen is None:
        return np.empty((0, 2), dtype=np.intp)
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
