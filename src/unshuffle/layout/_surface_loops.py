"""Compiled loops: Gaussian averages over a grid, and exchanges of items that gain by them.

A board is one int32 array of planes: the float32 features as bits, and last the items. An
exchange is the same three exclusive-ors in every plane, which compile to vector instructions, as
does the gain: about one nanosecond for a pair of cells with three features. A field is a float32
array of the same planes without the items, the average around each cell. The benefit of an item
in a cell is the product of the two.

Importing this module imports numba.
"""

from typing import Any

import numpy as np

from unshuffle._compile import compiled

# Vector instructions need reordering and fused multiplication.
_compiled: Any = compiled(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

NOISE_OFFSETS = 4096


@_compiled
def average(
    values: Any, columns: int, down: Any, down_weights: Any, across: Any, across_weights: Any,
    out: Any, start: int, stop: int,
) -> None:  # fmt: skip
    """Fill rows `start` to `stop` of `out` (planes, samples down, samples across).

    `down` and `across` have the cells that each sample of an axis averages over, shape
    (n_samples, n_taps).
    """
    n_taps = across.shape[1]
    line = np.empty(columns, np.float32)
    padded = np.empty(columns + n_taps, np.float32)
    every_cell = across.shape[0] == columns
    for plane in range(values.shape[0]):
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
def enlarge(
    samples: Any, above: Any, below: Any, part: Any, left: Any, right: Any, share: Any, out: Any,
    start: int, stop: int,
) -> None:  # fmt: skip
    """Interpolate rows `start` to `stop` of `out` (planes, rows, columns) from samples.

    A row lies between the samples `above` and `below`, at the position `part` from 0 to 1; a
    column between `left` and `right`, at `share`.
    """
    line = np.empty(samples.shape[2], np.float32)
    for y in range(start, stop):
        for plane in range(samples.shape[0]):
            first = samples[plane, above[y]]
            second = samples[plane, below[y]]
            for x in range(line.shape[0]):
                line[x] = first[x] + part[y] * (second[x] - first[x])
            target = out[plane, y]
            for x in range(left.shape[0]):
                near = line[left[x]]
                target[x] = near + share[x] * (line[right[x]] - near)


@_compiled
def _measure_gains(
    values: Any, field: Any, n_cells: int, n_planes: int, n_features: int, first: int, n: int,
    distance: int, own: float, heat: float, noise: Any, gains: Any,
) -> None:  # fmt: skip
    """Gain of exchanging each of n cells, from `first` on, with the cell `distance` further."""
    # Unsigned, since numba tests signed indices for being negative.
    length = np.uintp(n)
    for k in range(length):
        gains[k] = heat * noise[k]
    share = np.float32(own)
    for plane in range(n_planes):
        a = np.uintp(plane * n_cells + first)
        b = np.uintp(plane * n_cells + first + distance)
        if plane == n_features:
            share = np.float32(0.0)
        for k in range(length):
            change = values[b + k] - values[a + k]
            gains[k] += (field[a + k] - field[b + k] + share * change) * change


@_compiled
def _decide(gains: Any, free: Any, first: int, n: int, distance: int, chosen: Any) -> None:
    """Set all bits of `chosen` where the gain is positive and neither cell is locked."""
    length = np.uintp(n)
    for k in range(length):
        chosen[k] = np.int32(-1) if gains[k] > 0 else np.int32(0)
    if free.shape[0]:
        here = np.uintp(first)
        there = np.uintp(first + distance)
        for k in range(length):
            chosen[k] &= free[here + k] & free[there + k]


@_compiled
def _exchange(
    board: Any, n_cells: int, n_planes: int, first: int, n: int, distance: int, chosen: Any,
    spare: Any,
) -> None:  # fmt: skip
    """Exchange the chosen pairs; the two runs may overlap, but no cell may be in two pairs."""
    length = np.uintp(n)
    for plane in range(n_planes + 1):
        start = plane * n_cells + first
        # Two slices tell the compiler that the runs do not overlap.
        here = board[start : start + n]
        there = board[start + distance : start + distance + n]
        if n <= distance:
            for k in range(length):
                difference = (here[k] ^ there[k]) & chosen[k]
                here[k] ^= difference
                there[k] ^= difference
            continue
        for k in range(length):
            spare[k] = (here[k] ^ there[k]) & chosen[k]
        for k in range(length):
            here[k] ^= spare[k]
        for k in range(length):
            there[k] ^= spare[k]


@_compiled
def swap_passes(
    board: Any, values: Any, field: Any, free: Any, rows: int, columns: int, n_features: int,
    draws: Any, longest: int, own: Any, noise: Any, heat: float,
) -> None:  # fmt: skip
    """Exchange disjoint pairs of cells, in one pass over the board for each random shift.

    `values` are the bits of the board as float32: to view them here takes time to compile.
    `free` has all bits set where a cell may change, or is empty if all may. Planes from
    `n_features` on have no share in the field of their own cell. Each row of `draws`, uniform
    from 0 to 1, gives the shift down, the shift right, and which cells are first in their pair.
    A shift is at most `longest` along each axis. `own` has the weight of a cell in the average of
    the cell 0, 1, 2, ... away along one axis, the last 0. `noise` has NOISE_OFFSETS more entries
    than there are cells.
    """
    n_cells = rows * columns
    n_planes = field.shape[0] // n_cells
    gains = np.empty(n_cells, np.float32)
    chosen = np.empty(n_cells, np.int32)
    spare = np.empty(n_cells, np.int32)
    members = np.empty(columns, np.int32)
    warmth = np.float32(heat)
    farthest = own.shape[0] - 1
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
        # Bands of `down` rows are first and second in turn. A band is one run of cells, in which
        # the ends of rows have no partner: they are never chosen. Without a shift down, all rows
        # are one run, and parts of `right` cells are first and second in turn.
        top = -(offset % (2 * down)) if down > 0 else 0
        while top < rows - down:
            begin = max(top, 0)
            n_rows = (min(top + down, rows - down) if down > 0 else rows) - begin
            top += 2 * down if down > 0 else rows
            if n_rows <= 0:
                continue
            first = begin * columns + max(0, -right)
            n = n_rows * columns - across
            start = (offset + first) % NOISE_OFFSETS
            _measure_gains(
                values, field, n_cells, n_planes, n_features, first, n, distance, share, warmth,
                noise[start:], gains,
            )  # fmt: skip
            end = columns - across
            while end < n:
                for k in range(end, end + across):
                    gains[np.uintp(k)] = np.float32(0.0)
                end += columns
            _decide(gains, free, first, n, distance, chosen)
            if down == 0:
                for x in range(columns):
                    is_first = ((x + offset) // right) % 2 == 0 and x < columns - right
                    members[x] = np.int32(-1) if is_first else np.int32(0)
                for y in range(rows):
                    line = chosen[y * columns : min((y + 1) * columns, n)]
                    for x in range(line.shape[0]):
                        line[x] &= members[x]
            _exchange(board, n_cells, n_planes, first, n, distance, chosen, spare)


@_compiled
def swap_tile(
    board: Any, field: Any, free: Any, rows: int, columns: int, n_features: int, tile: Any,
    draws: Any, longest: int, own: Any, noise: Any, heat: float,
) -> None:  # fmt: skip
    """Make the passes on a tile of a board: every `stride`-th cell of some rows and columns.

    A copy of the tile stays in the processor's cache for all passes. `tile` is (top, left, number
    of rows, number of columns, stride); cells beyond the edges wrap around. `longest` and `own`
    are in cells of the tile.
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
        part,
        part.view(np.float32),
        near,
        open_cells,
        height,
        width,
        n_features,
        draws,
        longest,
        own,
        noise,
        heat,
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
