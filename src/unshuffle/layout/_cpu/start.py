"""An existing layout to start from: its check, and items that make way for frozen ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.arrays import as_array
from unshuffle._run.device import to_host
from unshuffle._run.types import Indices

_AS_IN_GRID = "Give the item in each cell, -1 where it is empty, as in `grid_`."


def check_start(start: Any, n_items: int, cells: NDArray[np.bool_]) -> Indices:
    """Item in each cell, cells row by row, -1 for none; items may be missing."""
    grid = as_array(to_host(start), "`start`")
    if grid.shape != cells.shape:
        raise ValueError(
            f"`start` must have the shape of the layout, {cells.shape}, got {grid.shape}. "
            f"{_AS_IN_GRID}"
        )
    if not np.issubdtype(grid.dtype, np.integer):
        raise ValueError(f"`start` must hold whole numbers, got dtype {grid.dtype}. {_AS_IN_GRID}")
    columns, grid = cells.shape[-1], grid.ravel()

    def place(cell: Any) -> str:
        row = f" (row {cell // columns}, column {cell % columns})"
        return f"cell {cell}{row if cells.ndim == 2 else ''}"

    unknown = np.flatnonzero((grid < -1) | (grid >= n_items))
    if unknown.size:
        raise ValueError(
            f"`start` names item {grid[unknown[0]]} of X in {place(unknown[0])}, but X has "
            f"{n_items} items. Use items from 0 to {n_items - 1}, and -1 for empty cells."
        )
    outside = np.flatnonzero((grid >= 0) & ~cells.ravel())
    if outside.size:
        raise ValueError(
            f"`start` puts item {grid[outside[0]]} into {place(outside[0])}, which is outside the "
            "mask. Set cells to -1 where the mask is False."
        )
    held = np.flatnonzero(grid >= 0)
    order = held[np.argsort(grid[held], kind="stable")]
    repeated = np.flatnonzero(np.diff(grid[order]) == 0)
    if repeated.size:
        one, other = order[repeated[0]], order[repeated[0] + 1]
        raise ValueError(
            f"`start` repeats item {grid[one]} of X, in {place(one)} and {place(other)}. Each "
            "item has one cell; set the other to -1."
        )
    return grid.astype(np.intp)


def make_way(start: Indices, frozen: Indices, n_items: int) -> Indices:
    """The start with frozen items in their cells. An item there moves to the old cell.

    An item whose cell is taken by one that had no cell has none afterwards.
    """
    grid = start.copy()
    cell_of = np.full(n_items, -1, dtype=np.intp)
    held = np.flatnonzero(grid >= 0)
    cell_of[grid[held]] = held
    for item, cell in frozen:
        old, other = cell_of[item], grid[cell]
        if old >= 0:
            grid[old] = other
        if other >= 0:
            cell_of[other] = old
        grid[cell], cell_of[item] = item, cell
    return grid
