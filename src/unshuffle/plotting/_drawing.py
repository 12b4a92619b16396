"""What displays share: axes to draw on, pictures in cells, distances on paper and colours."""

from copy import deepcopy
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from unshuffle.plotting._checks import check_axes

# More would only be thrown away again by the screen.
_MAX_PIXELS = 2**24
EMPTY = (0.93, 0.92, 0.9)


def own(values: Any) -> Any:
    """Copy of what a display keeps, so that it does not change with the user's arrays."""
    return deepcopy(values)


def axes_or_new(ax: Any, size: tuple[float, float], *, space: bool = False) -> Any:
    """The axes given, or those of a new figure of this size in inches, flat or in space."""
    if ax is not None:
        return check_axes(ax)
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib: pip install 'unshuffle[plot]'") from error
    kind = {"projection": "3d"} if space else {}
    return plt.subplots(figsize=size, layout="constrained", subplot_kw=kind)[1]


def cell_pictures(
    images: NDArray[np.uint8], grid: NDArray[np.intp], *, gap: float = 0.0
) -> NDArray[np.uint8]:
    """One picture of a whole grid: images side by side, transparent where a cell is empty.

    Parameters
    ----------
    images : ndarray of shape (n_items, height, width, 3), uint8
    grid : ndarray of shape (rows, columns)
        Item in each cell; -1 is empty.
    gap : float, default=0
        Width of a transparent margin around each image as a share of its longer side. A larger
        value sets images further apart.

    Returns
    -------
    ndarray of shape (rows * h, columns * w, 4), uint8
        Where that would be too large, every second (third, ...) pixel is left out.
    """
    step = ceil(sqrt(grid.size * images.shape[1] * images.shape[2] / _MAX_PIXELS))
    images = images[:, ::step, ::step]
    height, width = images.shape[1:3]
    margin = ceil(gap * max(height, width))
    rows, columns = grid.shape
    sheet = np.zeros((rows, height + 2 * margin, columns, width + 2 * margin, 4), dtype=np.uint8)
    inner = sheet[:, margin : margin + height, :, margin : margin + width]
    for row, items in zip(inner, grid, strict=True):
        filled = np.flatnonzero(items >= 0)
        row[:, filled, :, :3] = images[items[filled]].swapaxes(0, 1)
        row[:, filled, :, 3] = 255
    return sheet.reshape(rows * sheet.shape[1], columns * sheet.shape[3], 4)


def cell_extent(grid: NDArray[np.intp]) -> tuple[float, float, float, float]:
    """Bounds that put the middle of each cell at its row and column, row 0 at the top."""
    return (-0.5, grid.shape[1] - 0.5, grid.shape[0] - 0.5, -0.5)


def spacing(points: NDArray[np.float64]) -> float:
    """Size of a mark that hardly overlaps the next one."""
    if len(points) < 2:
        return 1.0
    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    return float(np.quantile(nearest, 0.1)) or float(np.ptp(points, axis=0).max()) / 20 or 1.0


def nearby(
    points: NDArray[np.float64], filled: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of filled points of which one is at most 1.3 times as far as the other's nearest."""
    here = np.flatnonzero(filled)
    if here.size < 2:
        return here[:0], here[:0]
    tree = cKDTree(points[here])
    reach = 1.3 * tree.query(points[here], k=2)[0][:, 1]
    around = tree.query_ball_point(points[here], reach * (1 + 1e-9))
    one = np.repeat(np.arange(here.size), [len(each) for each in around])
    other = np.concatenate(around).astype(np.intp)
    pairs = np.unique(np.sort(np.stack([one, other], axis=1), axis=1), axis=0)
    pairs = here[pairs[pairs[:, 0] != pairs[:, 1]]]
    return pairs[:, 0], pairs[:, 1]


def kind_colors(n_kinds: int) -> NDArray[np.float64]:
    """Colours that tell up to twenty kinds apart well, and more as far as eyes can."""
    import matplotlib

    if n_kinds <= 20:
        name = "tab10" if n_kinds <= 10 else "tab20"
        return np.array(matplotlib.colormaps[name](np.arange(n_kinds)))[:, :3]
    return np.array(matplotlib.colormaps["turbo"](np.linspace(0.02, 0.98, n_kinds)))[:, :3]
