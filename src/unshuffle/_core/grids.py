"""Checks of grids, their items and pictures, and distances between neighboring cells."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.extmath import row_norms

from unshuffle._core.arrays import as_array, as_numbers, check_plain
from unshuffle._core.distances import as_float64
from unshuffle._core.parameters import check_memory

# Numbers in memory at a time when differences of neighbors are computed.
_BLOCK = 2**22


def check_grid(grid: ArrayLike, n_items: int, *, n_axes: int = 2) -> NDArray[np.intp]:
    """Item in each cell of a grid, -1 for empty; `n_axes=1` for a list of points."""
    cells = as_array(grid, "`grid`")
    if cells.ndim != n_axes or not np.issubdtype(cells.dtype, np.integer):
        raise ValueError(
            f"`grid` must be a {n_axes}-D array of whole numbers, got shape {cells.shape} and "
            f"dtype {cells.dtype}. Give the item in each cell, -1 where it is empty."
        )
    if cells.size == 0:
        raise ValueError(
            f"`grid` has no cells: its shape is {cells.shape}. Pass a grid of at least one cell; "
            "-1 marks an empty one."
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
    """Finite coordinates of each cell in the plane."""
    places = as_numbers(points, f"`{name}`").copy()  # kept by the caller
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
    """Refuse `wrap` for points, which have no opposite edges."""
    if wrap:
        raise ValueError(
            "`wrap` joins opposite edges of a rectangle, but `points` were given. "
            "Leave out one of the two."
        )


def check_images(images: Any, name: str = "images") -> NDArray[np.uint8]:
    """Pictures of one size as uint8 of shape (n_images, height, width, 3)."""
    check_plain(images, f"`{name}`")
    try:
        array = np.asarray(images)
    except ValueError as error:
        try:
            sizes = sorted({np.shape(each) for each in images})
        except ValueError:  # not even one of them is an array
            sizes = []
        if len(sizes) < 2:
            raise ValueError(
                f"`{name}` must be an array of pictures, got rows of different lengths."
            ) from error
        raise ValueError(
            f"`{name}` must be pictures of one size, got {len(sizes)} sizes such as {sizes[0]} "
            f"and {sizes[-1]}. Scale or crop them first."
        ) from error
    if array.size == 0:
        raise ValueError(
            f"`{name}` is empty: it has shape {array.shape}. Pass at least one picture."
        )
    if array.dtype != np.uint8:
        raise ValueError(
            f"`{name}` must hold whole numbers from 0 to 255 (dtype uint8), got dtype "
            f"{array.dtype}. Scale the pictures to 0..255 and convert with .astype('uint8')."
        )
    if array.ndim == 3:
        array = np.repeat(array[..., np.newaxis], 3, axis=-1)
    if array.ndim != 4 or array.shape[-1] != 3:
        raise ValueError(
            f"`{name}` must have shape (n_images, height, width, 3), or (n_images, height, width) "
            f"if gray, got {array.shape}. Stack the pictures along the first axis."
        )
    if not array.flags.c_contiguous:
        n_images, height, width, _ = array.shape
        check_memory(
            array.size,
            what=f"A copy of {n_images:,} pictures of {height} x {width} pixels",
            instead="Scale the pictures down.",
        )
    return np.ascontiguousarray(array)


def check_picture(picture: Any, name: str) -> NDArray[np.uint8]:
    """One picture as uint8 of shape (height, width, 3)."""
    array = as_array(picture, f"`{name}`")
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or array.shape[2:] not in ((), (3,)):
        clear = array.dtype == np.uint8 and array.shape[2:] == (4,)
        raise ValueError(
            f"`{name}` must be one picture of dtype uint8 and shape (height, width, 3), or "
            f"(height, width) if gray, got shape {array.shape} and dtype {array.dtype}. "
            + (
                "Drop its transparency: [..., :3]."
                if clear
                else "Scale it to 0..255 and convert with .astype('uint8')."
            )
        )
    return check_images(array[np.newaxis], name)[0]


def check_sheet_values(values: ArrayLike, n_items: int, name: str) -> NDArray[np.float64]:
    """One finite number for each item."""
    array = as_numbers(values, f"`{name}`")
    if array.shape != (n_items,) or not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be {n_items} finite numbers, one for each item, got shape "
            f"{array.shape}."
        )
    return array


def touching_cells(
    filled: NDArray[np.bool_], wrap: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Flat indices of all pairs of filled cells that share an edge."""
    numbers: NDArray[np.intp] = np.arange(filled.size).reshape(filled.shape)
    first, second = [], []
    for along in (numbers, numbers.T):
        first.append(along[:, :-1].ravel())
        second.append(along[:, 1:].ravel())
        # With two columns the first and the last are neighbors already.
        if wrap and along.shape[1] > 2:
            first.append(along[:, -1])
            second.append(along[:, 0])
    one, other = np.concatenate(first), np.concatenate(second)
    both = filled.ravel()[one] & filled.ravel()[other]
    return one[both], other[both]


def pair_distances(
    X: Any, first: NDArray[np.intp], second: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Euclidean distances between pairs of rows of X, computed in blocks."""
    step = max(1, _BLOCK // X.shape[1])
    distances = np.empty(first.size)
    for start in range(0, first.size, step):
        pairs = slice(start, start + step)
        distances[pairs] = row_norms(as_float64(X[first[pairs]]) - as_float64(X[second[pairs]]))
    return distances
