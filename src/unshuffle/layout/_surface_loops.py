"""Compiled loops: Gaussian averages over a grid, and exchanges of items that gain by them.

A board is one int32 array of planes: the float32 features as bits, and last the items. An
exchange is the same three exclusive-ors in every plane, which compile to vector instructions, as
does the gain: about one nanosecond for a pair of cells with three features. A field is a float32
array of the same planes without the items, the average around each cell. The benefit of an item
in a cell is the product of the two.

Importing this module imports numba.
"""

from math import ceil, exp
from typing import Any

import numpy as np

from unshuffle._compile import compiled

# Vector instructions need reordering and fused multiplication.
_compiled: Any = compiled(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

N_SAMPLED = 512
# Taps along an axis, and taps for each of its cells, above which those of one cell are summed: a
# wide kernel wraps around a short side many times.
MANY_TAPS, MANY_LAPS = 4096, 8
REACH = 3.0  # bandwidths after which the kernel is cut off, with 0.3 % of its mass
NOISE_OFFSETS = 4096
# A shift is at most this many bandwidths along each axis.
LONGEST_SHIFT = 2.5
# Part of an item's own weight in the field that the gain of an exchange counts.
OWN_SHARE = 0.5


@_compiled
def gaussian_taps(size: int, bandwidth: float, n_samples: int, wrap: bool) -> Any:
    """Cells that each evenly spaced sample of an axis averages over, and their weights.

    Both have shape (n_samples, n_taps). Cells are mirrored at the ends, or with `wrap` repeated.
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
def _sum_taps(index: Any, weights: Any, size: int) -> Any:
    """The same taps, summed to one for each of `size` cells."""
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
    """Fill rows `start` to `stop` of `out` (planes, samples down, samples across)."""
    n_planes = values.shape[0]
    down, down_weights = gaussian_taps(rows, bandwidth, out.shape[1], wrap)
    if down.shape[1] > max(MANY_TAPS, MANY_LAPS * rows):
        down, down_weights = _sum_taps(down, down_weights, rows)
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
                # All samples have the same weights: shift the line once for each tap.
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
    """Interpolate rows `start` to `stop` of `out` (planes, rows, columns) from samples."""
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
    """Samples on both sides of a cell, and its position between them, from 0 to 1."""
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
    """Scale of gains: variation of the field over `step` cells times deviation of the items."""
    n_cells = rows * columns
    slope = 0.0
    stray = 0.0
    n = 0
    # An odd stride visits all rows and columns.
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


@_compiled
def _measure_gains(
    values: Any, field: Any, n_cells: int, n_planes: int, n_features: int, first: int, n: int,
    distance: int, own: float, heat: float, noise: Any, gains: Any,
) -> None:  # fmt: skip
    """Gain of exchanging each of n cells, from `first` on, with the cell `distance` further."""
    for k in range(n):
        gains[np.uintp(k)] = heat * noise[np.uintp(k)]
    share = np.float32(own)
    for plane in range(n_planes):
        # Unsigned, since numba tests signed indices for being negative.
        a = np.uintp(plane * n_cells + first)
        b = np.uintp(plane * n_cells + first + distance)
        if plane == n_features:
            share = np.float32(0.0)
        for k in range(n):
            i = a + np.uintp(k)
            j = b + np.uintp(k)
            change = values[j] - values[i]
            gains[np.uintp(k)] += (field[i] - field[j] + share * change) * change


@_compiled
def _decide(gains: Any, free: Any, first: int, n: int, distance: int, chosen: Any) -> None:
    """Set all bits of `chosen` where the gain is positive and neither cell is locked."""
    for k in range(n):
        chosen[np.uintp(k)] = np.int32(-1) if gains[np.uintp(k)] > 0 else np.int32(0)
    if free.shape[0]:
        here = free[first : first + n]
        there = free[first + distance : first + distance + n]
        for k in range(n):
            chosen[k] &= here[k] & there[k]


@_compiled
def _exchange_apart(
    board: Any, n_cells: int, n_planes: int, first: int, n: int, distance: int, chosen: Any
) -> None:
    """Exchange the chosen pairs; the two runs of cells must not overlap."""
    for plane in range(n_planes + 1):
        start = plane * n_cells + first
        # Two slices tell the compiler that the runs do not overlap.
        here = board[start : start + n]
        there = board[start + distance : start + distance + n]
        for k in range(n):
            difference = (here[k] ^ there[k]) & chosen[k]
            here[k] ^= difference
            there[k] ^= difference


@_compiled
def _exchange_interleaved(
    board: Any, n_cells: int, n_planes: int, n: int, distance: int, chosen: Any, spare: Any
) -> None:
    """Exchange the chosen pairs of runs that overlap; no cell may be in two of the pairs."""
    for plane in range(n_planes + 1):
        start = plane * n_cells
        here = board[start : start + n]
        there = board[start + distance : start + distance + n]
        for k in range(n):
            spare[np.uintp(k)] = (here[k] ^ there[k]) & chosen[np.uintp(k)]
        for k in range(n):
            here[k] ^= spare[np.uintp(k)]
        for k in range(n):
            there[k] ^= spare[np.uintp(k)]


@_compiled
def _own_share(bandwidth: float) -> Any:
    """Weight of a cell in the average of the cell 0, 1, 2, ... away, along one axis.

    The share of an item in the field moves with it. The exact gain of one exchange counts it in
    full, but then many exchanges at once overshoot.
    """
    reach = int(np.ceil(3 * bandwidth))
    own = np.zeros(reach + 2, np.float32)
    total = -1.0
    for k in range(reach + 1):
        own[k] = np.exp(-0.5 * (k / bandwidth) ** 2)
        total += 2.0 * own[k]
    own *= np.float32(np.sqrt(OWN_SHARE) / total)
    return own


@_compiled
def swap_passes(
    board: Any, field: Any, free: Any, rows: int, columns: int, n_features: int, draws: Any,
    bandwidth: float, noise: Any, heat: float,
) -> None:  # fmt: skip
    """Exchange disjoint pairs of cells, in one pass over the board for each random shift.

    `free` has all bits set where a cell may change, or is empty if all may. Planes from
    `n_features` on have no share in the field of their own cell. Each row of `draws`, uniform
    from 0 to 1, gives the shift down, the shift right, and which cells are first in their pair.
    `noise` has NOISE_OFFSETS more entries than there are cells.
    """
    n_cells = rows * columns
    n_planes = field.shape[0] // n_cells
    values = board.view(np.float32)
    gains = np.empty(n_cells, np.float32)
    chosen = np.empty(n_cells, np.int32)
    spare = np.empty(n_cells, np.int32)
    members = np.empty(columns, np.int32)
    warmth = np.float32(heat)
    own = _own_share(bandwidth)
    farthest = own.shape[0] - 1
    longest = max(1, int(LONGEST_SHIFT * bandwidth))
    for s in range(draws.shape[0]):
        most_down, most_right = min(longest, rows - 1), min(longest, columns - 1)
        down = int(draws[s, 0] * (2 * most_down + 1)) - most_down
        right = int(draws[s, 1] * (2 * most_right + 1)) - most_right
        offset = int(draws[s, 2] * 2**20)
        if down < 0 or (down == 0 and right < 0):
            down = -down
            right = -right
        if down == 0 and right == 0:
            continue
        across = abs(right)
        share = own[0] * own[0] - own[min(down, farthest)] * own[min(across, farthest)]
        distance = down * columns + right
        if down > 0:
            # Bands of `down` rows are first and second in turn. A band is one run of cells, in
            # which the ends of rows have no partner: they are never chosen.
            top = -(offset % (2 * down))
            while top < rows - down:
                begin = max(top, 0)
                n_rows = min(top + down, rows - down) - begin
                if n_rows > 0:
                    first = begin * columns + max(0, -right)
                    n = n_rows * columns - across
                    start = (offset + first) % NOISE_OFFSETS
                    _measure_gains(
                        values, field, n_cells, n_planes, n_features, first, n, distance,
                        share, warmth, noise[start:], gains,
                    )  # fmt: skip
                    end = columns - across
                    while end < n:
                        for k in range(end, end + across):
                            gains[np.uintp(k)] = np.float32(0.0)
                        end += columns
                    _decide(gains, free, first, n, distance, chosen)
                    _exchange_apart(board, n_cells, n_planes, first, n, distance, chosen)
                top += 2 * down
        else:
            n = n_cells - right
            start = offset % NOISE_OFFSETS
            _measure_gains(
                values, field, n_cells, n_planes, n_features, 0, n, distance,
                share, warmth, noise[start:], gains,
            )  # fmt: skip
            _decide(gains, free, 0, n, distance, chosen)
            for x in range(columns):
                first_member = ((x + offset) // right) % 2 == 0 and x < columns - right
                members[x] = np.int32(-1) if first_member else np.int32(0)
            for y in range(rows):
                line = chosen[y * columns : min((y + 1) * columns, n)]
                for x in range(line.shape[0]):
                    line[x] &= members[x]
            _exchange_interleaved(board, n_cells, n_planes, n, distance, chosen, spare)


@_compiled
def swap_tile(
    board: Any, field: Any, free: Any, rows: int, columns: int, n_features: int, tile: Any,
    draws: Any, bandwidth: float, noise: Any, heat: float,
) -> None:  # fmt: skip
    """Make the passes on a tile of a board: every `stride`-th cell of some rows and columns.

    A copy of the tile stays in the processor's cache for all passes. `tile` is (top, left, number
    of rows, number of columns, stride); cells beyond the edges wrap around.
    """
    n_cells = rows * columns
    n_planes = field.shape[0] // n_cells
    top, left, height, width, stride = tile
    small = height * width
    part = np.empty((n_planes + 1) * small, np.int32)
    near = np.empty(n_planes * small, np.float32)
    open_cells = np.empty(small if free.shape[0] else 0, np.int32)
    cells = np.empty(small, np.int64)
    for y in range(height):
        row = (top + y * stride) % rows * columns
        for x in range(width):
            cells[y * width + x] = row + (left + x * stride) % columns
    for plane in range(n_planes + 1):
        for k in range(small):
            part[plane * small + k] = board[plane * n_cells + cells[k]]
    for plane in range(n_planes):
        for k in range(small):
            near[plane * small + k] = field[plane * n_cells + cells[k]]
    for k in range(open_cells.shape[0]):
        open_cells[k] = free[cells[k]]
    swap_passes(
        part, near, open_cells, height, width, n_features, draws, bandwidth / stride, noise, heat
    )
    for plane in range(n_planes + 1):
        for k in range(small):
            board[plane * n_cells + cells[k]] = part[plane * small + k]


@_compiled
def swap_pairs(
    board: Any, field: Any, n_cells: int, first: Any, second: Any, noise: Any, heat: float
) -> None:
    """Exchange those of the listed disjoint pairs of cells that gain by it."""
    values = board.view(np.float32)
    n_planes = field.shape[0] // n_cells
    for k in range(first.shape[0]):
        a = first[k]
        b = second[k]
        gain = np.float32(heat) * noise[k]
        for plane in range(n_planes):
            i = plane * n_cells + a
            j = plane * n_cells + b
            gain += (field[i] - field[j]) * (values[j] - values[i])
        if gain > 0:
            for plane in range(n_planes + 1):
                i = plane * n_cells + a
                j = plane * n_cells + b
                board[i], board[j] = board[j], board[i]
