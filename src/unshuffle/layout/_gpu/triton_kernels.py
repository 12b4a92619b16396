"""Averages and exchanges on a GPU, in Triton; `plain` has the same in plain PyTorch.

One thread holds a group of cells in its registers and tries all its pairs, so that a pass reads
and writes each cell once, whatever the number of pairs. Groups of a pass do not share cells.
Locked cells are NaN, as all outside the grid: comparisons with NaN are false, so no exchange there
is accepted.

Importing this module imports Triton.
"""

# Arguments of kernels have no types, and Triton reads no stars in tuples.
# mypy: allow-untyped-defs, disable-error-code="assignment,misc,var-annotated"
# ruff: noqa: RUF005, SIM108

from math import ceil
from typing import Any

import triton
import triton.language as tl

from unshuffle.layout._gpu.groups import FEW, N_SAMPLED, REACH, Groups, coarse_sizes
from unshuffle.layout._gpu.groups import N_FACTORS as _N_FACTORS
from unshuffle.layout._gpu.groups import N_PARAMS as _N_PARAMS

BLOCK = 256
GROUPS_PER_BLOCK = 128
N_PARAMS, N_FACTORS = tl.constexpr(_N_PARAMS), tl.constexpr(_N_FACTORS)
# Rounds of a tournament that are written out, of the 15 for 16 cells. With more, kernels compile
# longer; with fewer, they spend more time on moving registers.
ROUNDS = 3


def average(planes: Any, bandwidth: float, *, wrap: bool) -> Any:
    """Gaussian averages of planes (n_planes, rows, columns), at reduced resolution if wide."""
    rows, columns = planes.shape[1:]
    for n_down, n_across in coarse_sizes(rows, columns, bandwidth):
        planes = _pool(_pool(planes, 1, n_down), 2, n_across)
    planes = _blur(planes, 1, bandwidth * planes.shape[1] / rows, wrap)
    planes = _blur(planes, 2, bandwidth * planes.shape[2] / columns, wrap)
    n_down, n_across = planes.shape[1:]
    if (n_down, n_across) == (rows, columns):
        return planes
    full = planes.new_empty((len(planes), rows, columns))
    _enlarge[_grid(full.numel())](
        planes, full, full.numel(), n_down, n_across, rows, columns, WRAP=wrap, BLOCK=BLOCK
    )
    return full


def typical(values: Any, items: Any, field: Any, size: tuple[int, int], step: int) -> Any:
    """Variation of the field over `step` cells; and that times the deviation of the items."""
    found = values.new_empty(2)
    stride = len(items) // N_SAMPLED | 1
    _typical[(1,)](
        values, items, field, found, len(items), *size, len(values), step, stride, N=N_SAMPLED
    )
    return found


def exchange(
    values: Any, items: Any, field: Any, scale: Any, groups: Groups, number: int, *,
    has_empty: bool,
) -> None:  # fmt: skip
    """Exchange items within groups of cells where that gains; `scale` is that of `typical`."""
    grid = (triton.cdiv(groups.count(number), GROUPS_PER_BLOCK),)
    board = values, items, field, scale, *groups.on_device, number, len(items)
    how = {"HAS_EMPTY": has_empty, "M": groups.n, "BLOCK": GROUPS_PER_BLOCK, "num_warps": 4}
    if len(values) == FEW:
        _exchange_few[grid](*board, *groups.size, ROUNDS=ROUNDS, **how)
    else:
        _exchange_many[grid](*board, *groups.size, len(values), **how)


def _grid(n: int) -> tuple[int]:
    return (triton.cdiv(n, BLOCK),)


def _pool(planes: Any, axis: int, n_bins: int) -> Any:
    size = planes.shape[axis]
    if n_bins == size:
        return planes
    shape = [*planes.shape[:axis], n_bins, *planes.shape[axis + 1 :]]
    pooled = planes.new_empty(shape)
    inner = planes.shape[2] if axis == 1 else 1
    n = pooled.numel()
    _pool_axis[_grid(n)](planes, pooled, n, size, n_bins, inner, BLOCK=BLOCK)
    return pooled


def _blur(planes: Any, axis: int, bandwidth: float, wrap: bool) -> Any:
    if planes.shape[axis] == 1:
        return planes
    smooth = planes.new_empty(planes.shape)
    inner = planes.shape[2] if axis == 1 else 1
    n, reach = planes.numel(), ceil(REACH * bandwidth)
    _blur_axis[_grid(n)](
        planes, smooth, n, planes.shape[axis], inner, bandwidth, reach, WRAP=wrap, BLOCK=BLOCK
    )
    return smooth


@triton.jit(do_not_specialize=["n_out", "size", "n_bins", "inner"])
def _pool_axis(source, target, n_out, size, n_bins, inner, BLOCK: tl.constexpr):
    """Mean over equal parts of an axis, which may cut cells: (outer, size, inner) to n_bins."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n_out
    within = index % inner
    place = index // inner
    length = size.to(tl.float32) / n_bins.to(tl.float32)
    begin = (place % n_bins).to(tl.float32) * length
    end = begin + length
    first = tl.floor(begin).to(tl.int32)
    base = (place // n_bins) * size
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(size // n_bins + 2):
        cell = first + k
        low = tl.maximum(begin, cell.to(tl.float32))
        share = tl.minimum(end, (cell + 1).to(tl.float32)) - low
        taken = inside & (cell < size) & (share > 0)
        value = tl.load(source + (base + cell) * inner + within, mask=taken, other=0.0)
        total += tl.where(taken, share * value, 0.0)
    tl.store(target + index, total / length, mask=inside)


@triton.jit(do_not_specialize=["n_out", "size", "inner", "bandwidth", "reach"])
def _blur_axis(
    source, target, n_out, size, inner, bandwidth, reach, WRAP: tl.constexpr, BLOCK: tl.constexpr
):
    """Gaussian average along the middle axis of (outer, size, inner)."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n_out
    within = index % inner
    place = index // inner
    center = (place % size).to(tl.int32)
    base = (place // size) * size
    total = tl.zeros((BLOCK,), tl.float32)
    mass = 0.0
    for k in range(2 * reach + 1):
        apart = (k - reach).to(tl.float32) / bandwidth
        weight = tl.exp(-0.5 * apart * apart)
        mass += weight
        cell = center + k - reach
        if WRAP:
            cell = ((cell % size) + size) % size
        else:  # mirrored at the ends
            cell = ((cell % (2 * size)) + 2 * size) % (2 * size)
            cell = tl.where(cell < size, cell, 2 * size - 1 - cell)
        total += weight * tl.load(source + (base + cell) * inner + within, mask=inside, other=0.0)
    tl.store(target + index, total / mass, mask=inside)


@triton.jit(do_not_specialize=["n_out", "n_down", "n_across", "rows", "columns"])
def _enlarge(
    source, target, n_out, n_down, n_across, rows, columns, WRAP: tl.constexpr, BLOCK: tl.constexpr
):
    """Interpolate planes (n_down, n_across) to (rows, columns)."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n_out
    x = (index % columns).to(tl.int32)
    line = index // columns
    y = (line % rows).to(tl.int32)
    base = (line // rows) * n_down * n_across
    above, below, part = _between(y, rows, n_down, WRAP)
    left, right, share = _between(x, columns, n_across, WRAP)
    first = source + base + above * n_across
    second = source + base + below * n_across
    a = tl.load(first + left, mask=inside, other=0.0)
    b = tl.load(first + right, mask=inside, other=0.0)
    c = tl.load(second + left, mask=inside, other=0.0)
    d = tl.load(second + right, mask=inside, other=0.0)
    upper = a + share * (b - a)
    lower = c + share * (d - c)
    tl.store(target + index, upper + part * (lower - upper), mask=inside)


@triton.jit
def _between(cell, size, n_samples, WRAP: tl.constexpr):
    """Samples on both sides of a cell, and its position between them, from 0 to 1."""
    place = (cell.to(tl.float32) + 0.5) * n_samples.to(tl.float32) / size.to(tl.float32) - 0.5
    first = tl.floor(place).to(tl.int32)
    share = place - first.to(tl.float32)
    second = first + 1
    if WRAP:
        first = (first + n_samples) % n_samples
        second = second % n_samples
    else:
        first = tl.maximum(first, 0)
        second = tl.minimum(second, n_samples - 1)
    return first, second, share


@triton.jit(do_not_specialize=["n_cells", "rows", "columns", "n_planes", "step", "stride"])
def _typical(
    values, items, field, found, n_cells, rows, columns, n_planes, step, stride, N: tl.constexpr
):
    """Root mean squares over some cells with an item whose field is known."""
    cell = tl.arange(0, N) * stride
    inside = cell < n_cells
    y = cell // columns
    x = cell % columns
    y = tl.where(y + step < rows, y + step, tl.maximum(y - step, 0))
    x = tl.where(x + step < columns, x + step, tl.maximum(x - step, 0))
    other = y.to(tl.int64) * columns + x
    start = cell.to(tl.int64) * 0
    slope = tl.zeros((N,), tl.float32)
    stray = tl.zeros((N,), tl.float32)
    for _ in range(n_planes):
        here = tl.load(field + start + cell, mask=inside, other=0.0)
        there = tl.load(field + start + other, mask=inside, other=0.0)
        apart = tl.load(values + start + cell, mask=inside, other=0.0) - here
        slope += (here - there) * (here - there)
        stray += apart * apart
        start += n_cells
    known = inside & (tl.load(items + cell, mask=inside, other=-1) >= 0)
    known = known & (slope == slope) & (stray == stray)
    n = tl.maximum(tl.sum(known.to(tl.float32)), 1.0)
    slopes = tl.sqrt(tl.sum(tl.where(known, slope, 0.0)) / n)
    strays = tl.sqrt(tl.sum(tl.where(known, stray, 0.0)) / n)
    tl.store(found, slopes)
    tl.store(found + 1, slopes * strays)


@triton.jit
def _cells(table, rows, columns, M: tl.constexpr, BLOCK: tl.constexpr):
    """Numbers of the cells of each group, (BLOCK, M), and whether they are on the grid."""
    n_groups = tl.load(table)
    n_across = tl.load(table + 1)
    ny = tl.load(table + 2)
    nx = tl.load(table + 3)
    down = tl.load(table + 4)
    right = tl.load(table + 5)
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    line = index // n_across
    along = index % n_across
    y = (line // down) * (ny * down) + line % down - tl.load(table + 6)
    x = (along // right) * (nx * right) + along % right - tl.load(table + 7)
    m = tl.arange(0, M)[None, :]
    y = y[:, None] + (m // nx) * down
    x = x[:, None] + (m % nx) * right
    inside = (y >= 0) & (y < rows) & (x >= 0) & (x < columns) & (index < n_groups)[:, None]
    y += tl.load(table + 8)  # around a torus
    x += tl.load(table + 9)
    y = tl.where(y >= rows, y - rows, y)
    x = tl.where(x >= columns, x - columns, x)
    return tl.where(inside, y * columns + x, 0), inside


@triton.jit
def _parts(values, M: tl.constexpr, BLOCK: tl.constexpr):
    """The columns of (BLOCK, M) as a tuple, to be held in the registers of the same thread."""
    parts = (values,)
    for level in tl.static_range(1, 10):
        if (M >> level) > 0:
            halves = ()
            for k in tl.static_range(1 << (level - 1)):
                folded = tl.reshape(parts[k], (BLOCK, 2, M >> level))
                first, second = tl.split(tl.permute(folded, (0, 2, 1)))
                halves = halves + (first, second)
            parts = halves
    columns = ()
    for k in tl.static_range(M):
        columns = columns + (tl.reshape(parts[k], (BLOCK,)),)
    return columns


@triton.jit
def _joined(parts, M: tl.constexpr, BLOCK: tl.constexpr):
    """The opposite of `_parts`."""
    columns = ()
    for k in tl.static_range(M):
        columns = columns + (tl.reshape(parts[k], (BLOCK, 1)),)
    for level in tl.static_range(1, 10):
        if (M >> level) > 0:
            wider = ()
            for k in tl.static_range(M >> level):
                both = tl.permute(tl.join(columns[2 * k], columns[2 * k + 1]), (0, 2, 1))
                wider = wider + (tl.reshape(both, (BLOCK, 1 << level)),)
            columns = wider
    return columns[0]


@triton.jit
def _hashed(cell, seed):
    """Random bits for each cell."""
    bits = cell.to(tl.uint32) * 0x9E3779B1 + seed.to(tl.uint32)
    bits = (bits ^ (bits >> 16)) * 0x85EBCA77
    bits = (bits ^ (bits >> 13)) * 0xC2B2AE3D
    return bits ^ (bits >> 16)


@triton.jit
def _swapped(values, i: tl.constexpr, j: tl.constexpr, swap):
    """A tuple with its entries i < j exchanged where `swap` is set."""
    first = tl.where(swap, values[j], values[i])
    second = tl.where(swap, values[i], values[j])
    return values[:i] + (first,) + values[i + 1 : j] + (second,) + values[j + 1 :]


@triton.jit
def _turned(values, n: tl.constexpr):
    """A tuple with all entries but the first moved n places on, the last ones to the front."""
    return values[:1] + values[len(values) - n :] + values[1 : len(values) - n]


@triton.jit(do_not_specialize=["n_cells", "rows", "columns", "number"])
def _exchange_few(
    values, items, field, scale, table, factors, number, n_cells, rows, columns,
    HAS_EMPTY: tl.constexpr, M: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Exchange items with three features.

    All pairs meet as in a tournament: one place stays, the others move on after each round. A
    loop with few rounds in its body compiles in seconds, all of them written out in minutes.
    """
    table += number * N_PARAMS
    factors += number * N_FACTORS
    own = tl.load(factors)
    # of uniform numbers of 10 bits
    warmth = tl.load(factors + 1) * tl.load(scale) * (3.4641016 / 1024)
    plane = n_cells.to(tl.int64)
    cells, inside = _cells(table, rows, columns, M, BLOCK)
    bits = _hashed(cells, tl.load(table + 10))
    held = _parts(tl.load(items + cells, mask=inside, other=-1), M, BLOCK)
    value = tl.load(values + cells, mask=inside, other=0.0)
    around = tl.load(field + cells, mask=inside, other=float("nan"))
    squares = around * around
    noise = warmth * ((bits & 1023).to(tl.float32) - 511.5)
    z0 = _parts(value, M, BLOCK)
    g0 = _parts(around - own * value + noise, M, BLOCK)
    value = tl.load(values + plane + cells, mask=inside, other=0.0)
    around = tl.load(field + plane + cells, mask=inside, other=0.0)
    squares += around * around
    noise = warmth * ((bits >> 10 & 1023).to(tl.float32) - 511.5)
    z1 = _parts(value, M, BLOCK)
    g1 = _parts(around - own * value + noise, M, BLOCK)
    value = tl.load(values + 2 * plane + cells, mask=inside, other=0.0)
    around = tl.load(field + 2 * plane + cells, mask=inside, other=0.0)
    squares += around * around
    noise = warmth * ((bits >> 20 & 1023).to(tl.float32) - 511.5)
    z2 = _parts(value, M, BLOCK)
    g2 = _parts(around - own * value + noise, M, BLOCK)
    if HAS_EMPTY:
        costs = _parts(0.5 * squares, M, BLOCK)  # of an item in place of an empty cell
    for _ in range((M - 1) // ROUNDS):
        for r in tl.static_range(ROUNDS):
            for i in tl.static_range(M):
                for j in tl.static_range(i + 1, M):
                    # places of i and j in round r; the first meets the last, and so on
                    if (i > 0) * (1 + (i - 1 + r) % (M - 1)) + (j - 1 + r) % (M - 1) == M - 2:
                        gain = (g0[i] - g0[j]) * (z0[j] - z0[i])
                        gain += (g1[i] - g1[j]) * (z1[j] - z1[i])
                        gain += (g2[i] - g2[j]) * (z2[j] - z2[i])
                        if HAS_EMPTY:
                            full_i = (held[i] >= 0).to(tl.float32)
                            full_j = (held[j] >= 0).to(tl.float32)
                            gain += (costs[j] - costs[i]) * (full_j - full_i)
                        swap = gain > 0
                        held = _swapped(held, i, j, swap)
                        z0 = _swapped(z0, i, j, swap)
                        z1 = _swapped(z1, i, j, swap)
                        z2 = _swapped(z2, i, j, swap)
        held = _turned(held, ROUNDS)
        z0 = _turned(z0, ROUNDS)
        z1 = _turned(z1, ROUNDS)
        z2 = _turned(z2, ROUNDS)
        g0 = _turned(g0, ROUNDS)
        g1 = _turned(g1, ROUNDS)
        g2 = _turned(g2, ROUNDS)
        if HAS_EMPTY:
            costs = _turned(costs, ROUNDS)
    # All places are back where they were.
    tl.store(items + cells, _joined(held, M, BLOCK), mask=inside)
    tl.store(values + cells, _joined(z0, M, BLOCK), mask=inside)
    tl.store(values + plane + cells, _joined(z1, M, BLOCK), mask=inside)
    tl.store(values + 2 * plane + cells, _joined(z2, M, BLOCK), mask=inside)


@triton.jit(do_not_specialize=["n_cells", "rows", "columns", "number", "n_features"])
def _exchange_many(
    values, items, field, scale, table, factors, number, n_cells, rows, columns, n_features,
    HAS_EMPTY: tl.constexpr, M: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The same with any number of features: the benefits of all items in all cells come first."""
    table += number * N_PARAMS
    factors += number * N_FACTORS
    own = tl.load(factors)
    # of uniform numbers of 8 bits
    warmth = tl.load(factors + 1) * tl.load(scale + 1) * (3.4641016 / 256)
    cells, inside = _cells(table, rows, columns, M, BLOCK)
    seed = tl.load(table + 10)
    item = tl.load(items + cells, mask=inside, other=-1)
    squares = tl.zeros((BLOCK, M), tl.float32)
    benefits = ()  # of the item in cell j if it were in cell i, at i * M + j
    for _ in tl.static_range(M * M):
        benefits = benefits + (tl.zeros((BLOCK,), tl.float32),)
    start = n_cells.to(tl.int64) * 0
    for _ in range(n_features):
        value = tl.load(values + start + cells, mask=inside, other=0.0)
        around = tl.load(field + start + cells, mask=inside, other=float("nan"))
        squares += around * around
        z = _parts(value, M, BLOCK)
        g = _parts(around - own * value, M, BLOCK)
        sums = ()
        for i in tl.static_range(M):
            for j in tl.static_range(M):
                sums = sums + (benefits[i * M + j] + g[i] * z[j],)
        benefits = sums
        start += n_cells
    held = _parts(item, M, BLOCK)
    costs = _parts(0.5 * squares, M, BLOCK)
    first = _parts(_hashed(2 * cells, seed), M, BLOCK)
    second = _parts(_hashed(2 * cells + 1, seed), M, BLOCK)
    sums = ()
    for i in tl.static_range(M):
        for j in tl.static_range(M):
            if j < 4:
                bits = first[i] >> 8 * j & 255
            else:
                bits = second[i] >> 8 * (j - 4) & 255
            benefit = benefits[i * M + j] + warmth * (bits.to(tl.float32) - 127.5)
            if HAS_EMPTY:
                benefit -= costs[i] * (held[j] >= 0).to(tl.float32)
            sums = sums + (benefit,)
    benefits = sums
    sources = _parts(cells, M, BLOCK)  # where the item of each cell comes from
    for r in tl.static_range(M - 1):
        for i in tl.static_range(M):
            for j in tl.static_range(i + 1, M):
                if (i > 0) * (1 + (i - 1 + r) % (M - 1)) + (j - 1 + r) % (M - 1) == M - 2:
                    gain = benefits[i * M + j] - benefits[i * M + i]
                    gain += benefits[j * M + i] - benefits[j * M + j]
                    swap = gain > 0
                    for k in tl.static_range(M):
                        benefits = _swapped(benefits, k * M + i, k * M + j, swap)
                    sources = _swapped(sources, i, j, swap)
                    held = _swapped(held, i, j, swap)
    source = _joined(sources, M, BLOCK)
    tl.store(items + cells, _joined(held, M, BLOCK), mask=inside)
    start = n_cells.to(tl.int64) * 0
    for _ in range(n_features):
        moved = tl.load(values + start + source, mask=inside, other=0.0)
        tl.debug_barrier()
        tl.store(values + start + cells, moved, mask=inside)
        start += n_cells
