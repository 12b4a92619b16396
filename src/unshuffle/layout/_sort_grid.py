"""sort_grid: the cells of a grid of vectors in an order that puts similar ones side by side."""

from typing import Any

import numpy as np

from unshuffle._core.arrays import as_array, as_numbers
from unshuffle._core.parameters import check_option
from unshuffle._run.device import find_device, is_tensor, like, to_host
from unshuffle.layout._grid_layout import GridLayout


def sort_grid(
    grid: Any,
    *,
    quality: str = "balanced",
    wrap: bool = False,
    random_state: int | np.random.RandomState | None = None,
    device: Any = None,
) -> tuple[Any, Any]:
    """Sort the cells of a grid so that similar ones are side by side.

    Parameters
    ----------
    grid : array-like or tensor of shape (channels, rows, columns)
        One vector for each cell, compared by Euclidean distance.
    quality : {"fast", "balanced", "best"}, default="balanced"
        How much time to spend, as in `GridLayout`.
    wrap : bool, default=False
        Whether opposite edges meet, as on a torus.
    random_state : int, RandomState instance or None, default=None
        Seed. Different seeds give different orders of about the same quality.
    device : str, torch.device or None, default=None
        "cuda" sorts on a GPU. None works where `grid` is: on a GPU if it is a tensor there, else
        on the CPU.

    Returns
    -------
    sorted_grid : ndarray or tensor of shape (channels, rows, columns)
        The same vectors, sorted, of the same dtype.
    indices : ndarray or tensor of int, shape (rows, columns)
        Former cell of each vector, counted row by row: `sorted_grid` equals
        `grid.reshape(channels, -1)[:, indices]`. Both are tensors on the device of `grid` if that
        is a tensor.

    Notes
    -----
    Any number of rows, columns and channels. Time and memory grow in proportion to the number of
    cells; nothing of the size of all pairs is computed.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle import sort_grid
    >>> grid = np.random.default_rng(0).random((3, 16, 24))
    >>> sorted_grid, indices = sort_grid(grid, random_state=0)
    >>> bool((sorted_grid == grid.reshape(3, -1)[:, indices]).all())
    True
    """
    check_option(quality, "quality", ("fast", "balanced", "best"))
    cells = grid if is_tensor(grid) else as_array(grid, "`grid`")
    if not is_tensor(grid) and cells.dtype.kind not in "buif":
        cells = as_numbers(grid, "grid")
    if cells.ndim != 3 or 0 in cells.shape:
        raise ValueError(
            "`grid` must have the shape (channels, rows, columns), none of them 0, got shape "
            f"{tuple(cells.shape)}. Move the axis of the channels to the front, such as by "
            "numpy.moveaxis(grid, -1, 0)."
        )
    channels, rows, columns = cells.shape
    items = cells.reshape(channels, -1).T
    if is_tensor(items) and items.device != find_device(device, items):
        items = to_host(items)
    layout = GridLayout(
        (rows, columns), wrap=wrap, quality=quality, random_state=random_state, device=device
    ).fit(items)
    indices = layout.grid_
    if is_tensor(grid):
        indices = indices.to(grid.device) if is_tensor(indices) else like(indices, grid)
    return cells.reshape(channels, -1)[:, indices], indices
