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

from unshuffle._run.compile import compiled

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


def shifts_of(draws: Any, rows: int, columns: int, longest: int, own: Any) -> tuple[Any, Any]:
    """Shifts down and right and offsets of passes, and weights of cells in their own field.

    Each row of `draws`, uniform from 0 to 1, gives the shift down, the shift right, and which
    cells are first in their pair. A shift is at most `longest` along each axis. `own` has the
    weight of a cell in the average of the cell 0, 1, 2, ... away along one axis, the last 0.
    """
    most = np.array([min(longest, rows - 1), min(longest, columns - 1)])
    plan = np.empty(draws.shape, np.int64)
    plan[:, :2] = draws[:, :2] * (2 * most + 1)
    plan[:, 2] = draws[:, 2] * 2**20
    plan[:, :2] -= most
    plan[plan[:, 0] * columns + plan[:, 1] < 0, :2] *= -1
    weights = own[np.minimum(np.abs(plan[:, :2]), len(own) - 1)]
    return plan, (own[0] * own[0] - weights[:, 0] * weights[:, 1]).astype(np.float32)


def swap_passes(
    board: Any, values: Any, field: Any, free: Any, rows: int, columns: int, n_features: int,
    draws: Any, longest: int, own: Any, noise: Any, heat: float,
) -> None:  # fmt: skip
    """Exchange disjoint pairs of cells, in one pass over the board for each random shift.

    `values` are the bits of the board as float32: to view them in a loop takes time to compile.
    `free` has all bits set where a cell may change, or is empty if all may. Planes from
    `n_features` on have no share in the field of their own cell. `draws`, `longest` and `own` are
    those of `shifts_of`. `noise` has NOISE_OFFSETS more entries than there are cells.
    """
    gains, chosen = np.empty(rows * columns, np.float32), np.empty((2, rows * columns), np.int32)
    run_passes(
        board, values, field, free, rows, columns, n_features,
        *shifts_of(draws, rows, columns, longest, own), noise, heat, gains, chosen,
    )  # fmt: skip


@_compiled
def run_passes(
    board: Any, values: Any, field: Any, free: Any, rows: int, columns: int, n_features: int,
    shifts: Any, shares: Any, noise: Any, heat: float, gains: Any, work: Any,
) -> None:  # fmt: skip
    """`swap_passes` with work space, for passes that `shifts_of` describes."""
    n_cells = rows * columns
    n_planes = field.shape[0] // n_cells
    chosen, spare = work[0], work[1]
    warmth = np.float32(heat)
    for s in range(shifts.shape[0]):
        down, right, offset = shifts[s, 0], shifts[s, 1], shifts[s, 2]
        if down == 0 and right == 0:
            continue
        across = abs(right)
        distance = down * columns + right
        # Bands of `down` rows are first and second in turn. A band is one run of cells, in which
        # the ends of rows have no partner: they are never chosen. Without a shift down, all rows
        # are one run, and parts of `right` cells are first and second in turn.
        top = -(offset % (2 * down)) if down > 0 else 0
        while top < rows - down:
            begin = top if top > 0 else 0
            end = top + down if down > 0 else rows
            n_rows = (end if end < rows - down else rows - down) - begin
            top += 2 * down if down > 0 else rows
            if n_rows <= 0:
                continue
            first = begin * columns + (across if right < 0 else 0)
            n = n_rows * columns - across
            # Unsigned, since numba tests signed indices for being negative.
            length = np.uintp(n)
            draw = noise[(offset + first) % NOISE_OFFSETS :]
            for k in range(length):
                gains[k] = warmth * draw[k]
            share = shares[s]
            for plane in range(n_planes):
                a = np.uintp(plane * n_cells + first)
                b = np.uintp(plane * n_cells + first + distance)
                if plane == n_features:
                    share = np.float32(0.0)
                for k in range(length):
                    change = values[b + k] - values[a + k]
                    gains[k] += (field[a + k] - field[b + k] + share * change) * change
            for k in range(length):
                chosen[k] = np.int32(-1) if gains[k] > 0 else np.int32(0)
            if free.shape[0]:
                here = np.uintp(first)
                there = np.uintp(first + distance)
                for k in range(length):
                    chosen[k] &= free[here + k] & free[there + k]
            for row in range(n_rows - 1):
                for x in range(columns - across, columns):
                    chosen[row * columns + x] = np.int32(0)
            if down == 0:
                for x in range(columns - across):
                    if ((x + offset) // right) % 2 != 0:
                        for row in range(n_rows):
                            chosen[row * columns + x] = np.int32(0)
            # Two slices tell the compiler that the runs do not overlap.
            for plane in range(n_planes + 1):
                start = plane * n_cells + first
                one = board[start : start + n]
                other = board[start + distance : start + distance + n]
                if n <= distance:
                    for k in range(length):
                        difference = (one[k] ^ other[k]) & chosen[k]
                        one[k] ^= difference
                        other[k] ^= difference
                    continue
                # No cell is in two pairs.
                for k in range(length):
                    spare[k] = (one[k] ^ other[k]) & chosen[k]
                for k in range(length):
                    one[k] ^= spare[k]
                for k in range(length):
                    other[k] ^= spare[k]


@_compiled
def swap_tile(
    board: Any, field: Any, free: Any, rows: int, columns: int, n_features: int, tile: Any,
    shifts: Any, shares: Any, noise: Any, heat: float,
) -> None:  # fmt: skip
    """Make the passes on a tile of a board: every `stride`-th cell of some rows and columns.

    A copy of the tile stays in the processor's cache for all passes. `tile` is (top, left, number
    of rows, number of columns, stride); cells beyond the edges wrap around. `shifts` and `shares`
    are those of `shifts_of` for the tile.
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
    run_passes(
        part, part.view(np.float32), near, open_cells, height, width, n_features, shifts, shares,
        noise, heat, np.empty(small, np.float32), np.empty((2, small), np.int32),
    )  # fmt: skip
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
