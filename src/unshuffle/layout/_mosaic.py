"""What a collage compares: the colours of tiles, and of the template under each cell."""

from math import floor, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._color import lab_of_light, light_of_rgb

# Squares along a side of a tile by which tiles are compared with each other.
LOOK = 5
_CHUNK = 64


def tile_colors(tiles: NDArray[np.uint8], detail: int) -> NDArray[np.float32]:
    """Mean colours of `detail` x `detail` parts of each tile.

    Light is averaged, as the eye does from afar, and then taken to Lab. Squared distances
    between rows are mean squared differences of colour.

    Returns
    -------
    colors : ndarray of shape (n_tiles, detail * detail * 3)
    """
    down, across = (_shares(size, detail) for size in tiles.shape[1:3])
    colors = np.empty((len(tiles), detail * detail * 3), dtype=np.float32)
    for start in range(0, len(tiles), _CHUNK):
        light = light_of_rgb(tiles[start : start + _CHUNK])
        means = np.einsum("yh,nhwc,xw->nyxc", down, light, across, optimize=True)
        colors[start : start + _CHUNK] = lab_of_light(means).reshape(len(means), -1)
    return colors / np.float32(detail)


def template_colors(
    template: NDArray[np.uint8], shape: tuple[int, int], detail: int
) -> NDArray[np.float32]:
    """The same for the part of the template under each cell, cells row by row."""
    rows, columns = shape
    down = _shares(template.shape[0], rows * detail)
    across = _shares(template.shape[1], columns * detail)
    light = np.einsum("yh,hwc,xw->yxc", down, light_of_rgb(template), across, optimize=True)
    lab = lab_of_light(light).reshape(rows, detail, columns, detail, 3)
    colors = lab.transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1)
    return np.asarray(colors / detail, dtype=np.float32)


def _shares(size: int, n_parts: int) -> NDArray[np.float64]:
    """Share of each of `size` pixels in each of `n_parts` equal stretches; rows sum to 1."""
    bounds = np.linspace(0.0, size, n_parts + 1)
    pixel = np.arange(size)
    overlap = np.minimum(bounds[1:, np.newaxis], pixel + 1) - np.maximum(
        bounds[:-1, np.newaxis], pixel
    )
    overlap = np.maximum(overlap, 0.0)
    return overlap / overlap.sum(axis=1, keepdims=True)


def grid_for(n_tiles: int, template: NDArray[Any], tiles: NDArray[Any]) -> tuple[int, int]:
    """Largest grid that so many tiles can fill once, each side within a cell of what suits."""
    aspect = (template.shape[0] / template.shape[1]) * (tiles.shape[2] / tiles.shape[1])
    rows = min(max(1, floor(sqrt(n_tiles * aspect))), n_tiles)
    columns = min(max(1, floor(sqrt(n_tiles / aspect))), n_tiles)
    grids = [(rows + down, columns + right) for down in (0, 1) for right in (0, 1)]
    fitting = [grid for grid in grids if grid[0] * grid[1] <= n_tiles]
    # Of two that are as large, the one that distorts the template less.
    return max(
        fitting, key=lambda grid: (grid[0] * grid[1], -abs(log(grid[0] / grid[1] / aspect)))
    )
