"""Compiled: Gaussian averages over a grid, sampled no finer than they vary.

Importing this module imports numba.
"""

from math import ceil, exp
from typing import Any

import numpy as np

from unshuffle._compile import compiled

_compiled: Any = compiled(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

N_SAMPLED = 512
# Taps along an axis, and taps for each of its cells, beyond which those that fall on one cell are
# taken together: a wide kernel goes over a short side many times.
MANY_TAPS, MANY_LAPS = 4096, 8
REACH = 3.0  # bandwidths after which the kernel is cut off: 0.3 % of its mass lie beyond


@_compiled
def gaussian_taps(size: int, bandwidth: float, n_samples: int, wrap: bool) -> Any:
    """Cells that each sample of an axis averages over, and their weights.

    Samples lie evenly spaced over `size` cells. Beyond the ends the cells are mirrored, or with
    `wrap` begin again.

    Returns
    -------
    index : int32 array of shape (n_samples, n_taps)
    weights : float32 array of shape (n_samples, n_taps)
        Rows sum to 1.
    """
    spacing = size / n_samples
    reach = ceil(REACH * bandwidth) + (0 if n_samples == size else 1)
    n_taps = 2 * reach + 1
    index = np.empty((n_samples, n_taps), np.int32)
    weights = np.empty((n_samples, n_taps), np.float32)
    for sample in range(n_samples):
        center = (sample + 0.5) * spacing - 0.5
        nearest = int(np.floor(center + 0.5))
        total = 0.0
        for tap in range(n_taps):
            cell = nearest + tap - reach
            if sample == 0 or n_samples != size:
                weight = exp(-0.5 * ((cell - center) / bandwidth) ** 2)
            else:
                weight = weights[0, tap]
            total += weight
            if wrap:
                cell %= size
            else:
                cell %= 2 * size
                if cell >= size:
                    cell = 2 * size - 1 - cell
            index[sample, tap] = cell
            weights[sample, tap] = weight
        for tap in range(n_taps):
            weights[sample, tap] /= total
    return index, weights


@_compiled
def _folded(index: Any, weights: Any, size: int) -> Any:
    """The same taps with one for each of `size` cells."""
    cells = np.empty((index.shape[0], size), np.int32)
    sums = np.zeros((index.shape[0], size), np.float32)
    for sample in range(index.shape[0]):
        for cell in range(size):
            cells[sample, cell] = cell
        for tap in range(index.shape[1]):
            sums[sample, index[sample, tap]] += weights[sample, tap]
    return cells, sums


@_compiled
def average(
    values: Any, rows: int, columns: int, bandwidth: float, wrap: bool, out: Any, start: int,
    stop: int,
) -> None:  # fmt: skip
    """Fill rows `start` to `stop` of `out` (planes, samples down, samples across).

    `values` is (planes, rows * columns).
    """
    n_planes = values.shape[0]
    down, down_weights = gaussian_taps(rows, bandwidth, out.shape[1], wrap)
    if down.shape[1] > max(MANY_TAPS, MANY_LAPS * rows):
        down, down_weights = _folded(down, down_weights, rows)
    across, across_weights = gaussian_taps(columns, bandwidth, out.shape[2], wrap)
    n_taps = across.shape[1]
    line = np.empty(columns, np.float32)
    padded = np.empty(columns + n_taps, np.float32)
    every_cell = across.shape[0] == columns
    for plane in range(n_planes):
        for sample in range(start, stop):
            for x in range(columns):
                line[x] = np.float32(0.0)
            for tap in range(down.shape[1]):
                weight = down_weights[sample, tap]
                source = values[plane, down[sample, tap] * columns :][:columns]
                for x in range(columns):
                    line[x] += weight * source[x]
            target = out[plane, sample]
            if every_cell:
                # all samples have the same weights: go along the line once for each tap
                reach = n_taps // 2
                for x in range(columns):
                    padded[reach + x] = line[x]
                for x in range(reach):
                    padded[x] = line[across[0, x]]
                    padded[reach + columns + x] = line[across[columns - 1, reach + 1 + x]]
                for x in range(columns):
                    target[x] = np.float32(0.0)
                for tap in range(n_taps):
                    weight = across_weights[0, tap]
                    shifted = padded[tap : tap + columns]
                    for x in range(columns):
                        target[x] += weight * shifted[x]
            else:
                for x in range(across.shape[0]):
                    total = np.float32(0.0)
                    for tap in range(n_taps):
                        total += across_weights[x, tap] * line[across[x, tap]]
                    target[x] = total


@_compiled
def enlarge(samples: Any, wrap: bool, out: Any, start: int, stop: int) -> None:
    """Fill rows `start` to `stop` of `out` (planes, rows, columns) from between the samples."""
    n_planes, n_down, n_across = samples.shape
    _, rows, columns = out.shape
    left = np.empty(columns, np.int32)
    right = np.empty(columns, np.int32)
    share = np.empty(columns, np.float32)
    for x in range(columns):
        left[x], right[x], share[x] = _between(x, columns, n_across, wrap)
    line = np.empty(n_across, np.float32)
    for y in range(start, stop):
        above, below, part = _between(y, rows, n_down, wrap)
        for plane in range(n_planes):
            first = samples[plane, above]
            second = samples[plane, below]
            for x in range(n_across):
                line[x] = first[x] + part * (second[x] - first[x])
            target = out[plane, y]
            for x in range(columns):
                near = line[left[x]]
                target[x] = near + share[x] * (line[right[x]] - near)


@_compiled
def _between(cell: int, size: int, n_samples: int, wrap: bool) -> Any:
    """Samples on both sides of a cell, and how far it is from the first to the second."""
    place = (cell + 0.5) * n_samples / size - 0.5
    first = int(np.floor(place))
    share = np.float32(place - first)
    second = first + 1
    if wrap:
        return first % n_samples, second % n_samples, share
    return max(first, 0), min(second, n_samples - 1), share


@_compiled
def typical_gain(
    planes: Any, field: Any, n_features: int, items: Any, rows: int, columns: int, step: int
) -> float:
    """Scale of the gain of an exchange: how the field varies, times how items stray from it.

    Root mean squares over some cells that hold an item; variation is over `step` cells.
    """
    n_cells = rows * columns
    slope = 0.0
    stray = 0.0
    n = 0
    # an odd number of cells further each time, to come by all rows and columns
    for cell in range(0, n_cells, n_cells // N_SAMPLED | 1):
        if items[cell] < 0:
            continue
        y = cell // columns
        x = cell - y * columns
        down = y + step if y + step < rows else max(y - step, 0)
        right = x + step if x + step < columns else max(x - step, 0)
        other = down * columns + right
        for plane in range(n_features):
            here = field[plane, cell]
            slope += (here - field[plane, other]) ** 2
            stray += (planes[plane, cell] - here) ** 2
        n += 1
    return np.sqrt(slope * stray) / max(n, 1)
