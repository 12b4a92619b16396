"""What is asked of grids: which item is in each cell, and where the cells are."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._validation._collections import as_array, as_numbers


def check_grid(grid: ArrayLike, n_items: int, *, n_axes: int = 2) -> NDArray[np.intp]:
    """Item in each cell of a grid, -1 for empty; `n_axes=1` where cells are a list of points."""
    cells = as_array(grid, "`grid`")
    if cells.ndim != n_axes or not np.issubdtype(cells.dtype, np.integer):
        raise ValueError(
            f"`grid` must be a {n_axes}-D array of whole numbers, got shape {cells.shape} and "
            f"dtype {cells.dtype}. Give the item in each cell, -1 where it is empty."
        )
    if cells.size == 0:
        raise ValueError(
            f"`grid` has no cells: its shape is {cells.shape}. Pass a grid of at least one cell; "
            "-1 is an empty one."
        )
    if cells.max() >= n_items or cells.min() < -1:
        items = f"items from 0 to {n_items - 1}, or -1 for empty" if n_items else "-1 alone"
        raise ValueError(
            f"`grid` must hold {items}, got values from {cells.min()} to {cells.max()}. There "
            f"are {n_items} items."
        )
    return cells.astype(np.intp)


def check_names(names: Any, name: str = "names") -> list[str]:
    """Names of the items, each a string."""
    if isinstance(names, str) or np.ndim(np.asarray(names, dtype=object)) != 1:
        raise ValueError(
            f"`{name}` must be a list of strings, got {type(names).__name__}. Give one name for "
            "each item."
        )
    odd = next((k for k, each in enumerate(names) if not isinstance(each, str)), None)
    if odd is not None:
        raise ValueError(
            f"`{name}` must hold strings; number {odd} is a {type(names[odd]).__name__}. Convert "
            "it with str()."
        )
    return [str(each) for each in names]


def check_cell_points(
    points: ArrayLike, n_cells: int, name: str = "points"
) -> NDArray[np.float64]:
    """Where each cell of a list is, in the plane."""
    places = as_numbers(points, f"`{name}`").copy()  # kept, so not the user's own
    if places.shape != (n_cells, 2) or not np.isfinite(places).all():
        what = "NaN or infinity" if places.shape == (n_cells, 2) else f"shape {places.shape}"
        raise ValueError(
            f"`{name}` must be {n_cells} pairs of finite numbers, one for each cell or item, got "
            f"{what}. Pass the points that the items were laid out on."
        )
    largest = float(np.abs(places).max(initial=0.0))
    if largest > 1e150:
        raise ValueError(
            f"`{name}` holds {largest:.3g}, whose square is too large for a float. Divide the "
            "points by a common number first."
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


def check_item_colors(values: ArrayLike, n_items: int) -> NDArray[np.float64]:
    """One finite number for each item, or red, green and blue from 0 to 1."""
    array = as_array(values, "`values`")
    if array.shape not in ((n_items,), (n_items, 3)) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"`values` must be {n_items} numbers or {n_items} rows of red, green and blue, one "
            f"for each item, got shape {array.shape} and dtype {array.dtype}."
        )
    if array.ndim == 2 and array.dtype == np.uint8:
        return array / 255.0
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("`values` holds NaN or infinity. Give each item a finite number.")
    if np.abs(numbers).max(initial=0.0) > 1e300:
        raise ValueError(
            "`values` holds numbers beyond 1e300, whose differences may be too large for a float. "
            "Divide them by a common number first."
        )
    if array.ndim == 2 and numbers.size and (numbers.min() < 0 or numbers.max() > 1):
        raise ValueError(
            "Colours in `values` must be from 0 to 1 (or whole numbers from 0 to 255 of dtype "
            f"uint8), got values from {numbers.min():.6g} to {numbers.max():.6g}. Rescale them."
        )
    return numbers


def check_item_labels(labels: ArrayLike, n_items: int) -> NDArray[Any]:
    """One label for each item."""
    array = as_array(labels, "`labels`", plain=False)
    if array.shape != (n_items,):
        raise ValueError(
            f"`labels` must be {n_items} labels, one for each item, got shape {array.shape}."
        )
    try:
        np.unique(array)
    except TypeError as error:
        raise ValueError(
            "`labels` holds labels that cannot be put in order. Pass labels of one type, such as "
            "all strings."
        ) from error
    return array


def check_one_look(given: dict[str, Any]) -> None:
    """Refuse to draw items in two ways at once."""
    names = [f"`{name}`" for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ValueError(
            f"{' and '.join(names)} were given, but a cell shows one of them. "
            "Draw a second display for the other."
        )


def check_features_given(X: Any) -> Any:
    """Refuse to measure distances between items of which nothing is known."""
    if X is None:
        raise ValueError(
            "Distances to neighbours need the features of the items, but `X` is None. "
            "Pass X when the display is made."
        )
    return X
