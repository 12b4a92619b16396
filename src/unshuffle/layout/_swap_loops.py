"""Compiled: exchange items of cells a shift apart where the field says that it pays.

A board is one int32 array of planes, cell after cell in each: the float32 planes of features
seen as bits, and last the items. So an exchange is the same three exclusive-ors in every
plane, which compile to vector instructions, as does the gain: about one nanosecond for a pair
of cells with three features.

Importing this module imports numba.
"""

from typing import Any

import numpy as np

from unshuffle._compile import compiled

# Reordering and fused multiplication are what vector instructions need.
_compiled: Any = compiled(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

NOISE_OFFSETS = 4096
# A shift is at most this many bandwidths along each axis.
LONGEST_SHIFT = 2.5
# Of the exact gain of one exchange, the item's own weight in the field is counted by half.
OWN_SHARE = 0.5


@_compiled
def _measure_gains(
    values: Any,
    field: Any,
    n_cells: int,
    n_planes: int,
    n_features: int,
    first: int,
    n: int,
    distance: int,
    own: float,
    heat: float,
    noise: Any,
    gains: Any,
) -> None:
    """Gain of exchanging each of n cells, from `first` on, with the cell `distance` further."""
    for k in range(n):
        gains[np.uintp(k)] = heat * noise[np.uintp(k)]
    share = np.float32(own)
    for plane in range(n_planes):
        # unsigned: numba tests every signed index for being negative
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
        # slices of their own: for one array the compiler cannot tell that the runs are apart
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
def _draw_shift(draw: float, longest: int) -> int:
    return int(draw * (2 * longest + 1)) - longest


@_compiled
def _own_share(bandwidth: float) -> Any:
    """What a cell counts in the average of the cell 0, 1, 2, ... away, along one axis.

    The field holds an item's own share, which moves with it: the exact gain of one exchange
    counts it in full, but then too many exchanges at once overshoot.
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
    board: Any,
    field: Any,
    free: Any,
    rows: int,
    columns: int,
    n_features: int,
    draws: Any,
    bandwidth: float,
    noise: Any,
    heat: float,
) -> None:
    """Pass over all cells once for each random shift, exchanging disjoint pairs a shift apart.

    Parameters
    ----------
    board : int32 array of shape ((n_planes + 1) * rows * columns,)
        Features seen as bits, then items; changed.
    field : float32 array of shape (n_planes * rows * columns,)
        What each cell asks for; an item's benefit in a cell is the product of the two.
    free : int32 array of shape (rows * columns,) or (0,)
        All bits set where a cell may change, 0 where it is locked; empty if none is locked.
    n_features : int
        Planes that are features: the rest has no share in the field of its own cell.
    draws : float array of shape (n_passes, 3)
        Uniform from 0 to 1, for each pass: rows and columns between the two cells of a pair, and
        which cells are first and which second.
    bandwidth : float
        Of the field, in cells. Shifts are at most LONGEST_SHIFT times as long along each axis.
    noise : float32 array of shape (>= rows * columns + NOISE_OFFSETS,)
        Of zero mean.
    heat : float
        Factor of the noise; larger accepts more exchanges that do not pay.
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
        down = _draw_shift(draws[s, 0], min(longest, rows - 1))
        right = _draw_shift(draws[s, 1], min(longest, columns - 1))
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
            # Bands of `down` rows are first and second in turn. Seen as one run of cells, the
            # ends of rows that have no partner are in the way: they are never chosen.
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
    board: Any,
    field: Any,
    free: Any,
    rows: int,
    columns: int,
    n_features: int,
    tile: Any,
    draws: Any,
    bandwidth: float,
    noise: Any,
    heat: float,
) -> None:
    """Do the passes on part of a board: every `stride`-th cell of some rows and columns.

    The part is copied, so that it stays in the processor's cache for all passes. `tile` is
    (top, left, number of rows, number of columns, stride); cells beyond the edges wrap around.
    """
    n_cells = rows * columns
    n_planes = field.shape[0] // n_cells
    top, left, height, width, stride = tile
    small = height * width
    part = np.empty((n_planes + 1) * small, np.int32)
    near = np.empty(n_planes * small, np.float32)
    open_cells = np.empty(small if free.shape[0] else 0, np.int32)
    for plane in range(n_planes + 1):
        for y in range(height):
            row = ((top + y * stride) % rows) * columns
            source = board[plane * n_cells + row : plane * n_cells + row + columns]
            target = part[plane * small + y * width : plane * small + (y + 1) * width]
            _take(source, left, stride, target)
            if plane < n_planes:
                wanted = field[plane * n_cells + row : plane * n_cells + row + columns]
                _take(wanted, left, stride, near[plane * small + y * width :][:width])
            elif free.shape[0]:
                _take(free[row : row + columns], left, stride, open_cells[y * width :][:width])
    swap_passes(
        part, near, open_cells, height, width, n_features, draws, bandwidth / stride, noise, heat
    )
    for plane in range(n_planes + 1):
        for y in range(height):
            row = ((top + y * stride) % rows) * columns
            target = board[plane * n_cells + row : plane * n_cells + row + columns]
            _give(part[plane * small + y * width :][:width], left, stride, target)


@_compiled
def _take(source: Any, left: int, stride: int, target: Any) -> None:
    x = left % source.shape[0]
    for k in range(target.shape[0]):
        target[k] = source[x]
        x += stride
        if x >= source.shape[0]:
            x -= source.shape[0]


@_compiled
def _give(source: Any, left: int, stride: int, target: Any) -> None:
    x = left % target.shape[0]
    for k in range(source.shape[0]):
        target[x] = source[k]
        x += stride
        if x >= target.shape[0]:
            x -= target.shape[0]


@_compiled
def swap_pairs(
    board: Any, field: Any, n_cells: int, first: Any, second: Any, noise: Any, heat: float
) -> None:
    """Exchange listed disjoint pairs of cells where that pays, wherever they lie."""
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
