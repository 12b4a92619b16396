"""What is asked of grids: which item is in each cell, and where the cells are."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_grid(grid: ArrayLike, n_items: int, *, n_axes: int = 2) -> NDArray[np.intp]:
    """Item in each cell of a grid, -1 for empty; `n_axes=1` where cells are a list of points."""
    cells = np.asarray(grid)
    if cells.ndim != n_axes or not np.issubdtype(cells.dtype, np.integer):
        raise ValueError(
            f"`grid` must be a {n_axes}-D array of whole numbers, got shape {cells.shape} and "
            f"dtype {cells.dtype}. Give the item in each cell, -1 where it is empty."
        )
    if cells.size == 0 or cells.max() >= n_items or cells.min() < -1:
        raise ValueError(
            f"`grid` must hold items from 0 to {n_items - 1}, or -1 for empty, got "
            + ("no cells." if cells.size == 0 else f"values from {cells.min()} to {cells.max()}.")
        )
    return cells.astype(np.intp)


def check_cell_points(points: ArrayLike, n_cells: int) -> NDArray[np.float64]:
    """Where each cell of a list is, in the plane."""
    places = np.asarray(points, dtype=np.float64)
    if places.shape != (n_cells, 2) or not np.isfinite(places).all():
        what = "NaN or infinity" if places.shape == (n_cells, 2) else f"shape {places.shape}"
        raise ValueError(
            f"`points` must be {n_cells} pairs of finite numbers, one for each cell of `grid`, "
            f"got {what}. Pass the points that the items were laid out on."
        )
    return places


def check_points_end(wrap: bool) -> None:
    """Refuse a torus where the cells are points, which have no opposite edges."""
    if wrap:
        raise ValueError(
            "`wrap` joins opposite edges of a rectangle, but `points` were given. "
            "Leave out one of the two."
        )


def check_enough_placed(n_placed: int) -> None:
    """Refuse a grid on which no two items can be compared."""
    if n_placed < 2:
        raise ValueError(
            f"`grid` holds {n_placed} item(s). A layout is judged by pairs, so place at least two."
        )


def check_any_neighbors(n_pairs: int) -> None:
    """Refuse a grid on which no item has another beside it."""
    if n_pairs == 0:
        raise ValueError(
            "No two items of `grid` are side by side or one above the other. "
            "Use distance_preservation_quality, which compares items at any distance."
        )
