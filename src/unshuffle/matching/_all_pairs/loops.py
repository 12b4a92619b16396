"""Compiled loops over one tile of products; imported when needed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.compile import compiled

Tile = NDArray[np.float32]
Column = NDArray[np.int32]

# Scores lie within float32's range, so only the order of sums is left to the compiler.
_compiled_fast: Any = compiled(error_model="numpy", fastmath=True)

LOG2_E = np.float32(1.4426950408889634)
# What is smaller changes no sum in single precision, and its products would be denormal, which
# costs Intel processors a hundredfold.
LOWEST, SMALLEST = np.float32(-60.0), np.float32(2.0**-60)
# 2^f on [-1/2, 1/2] to five digits.
C1, C2, C3, C4, C5 = (
    np.float32(c) for c in (0.6931472, 0.24022649, 0.05550357, 0.009618031, 0.0013400589)
)
RESOLUTION = np.float32(2.4e-7)  # of single precision, relative
HALF, ONE = np.float32(0.5), np.float32(1.0)


@_compiled_fast
def exp2(x: np.float32) -> np.float32:
    """Two to the power of x, in steps that the compiler can vectorize."""
    x = max(x, LOWEST)
    whole = np.floor(x + HALF)
    rest = x - whole
    value = ONE + rest * (C1 + rest * (C2 + rest * (C3 + rest * (C4 + rest * C5))))
    bits = (np.int32(whole) + np.int32(127)) << np.int32(23)
    return value * np.int32(bits).view(np.float32)


@_compiled_fast
def exponentiate(tile: Tile, highest: Tile, sums: Tile, shrinks: Tile) -> None:
    """Replace scores by exponentials relative to the highest score of each row so far.

    `highest` and `sums` are updated; `shrinks` is what earlier sums of the row must be multiplied
    by.
    """
    for i in range(tile.shape[0]):
        row = tile[i]
        most = row[0]
        for j in range(row.shape[0]):
            most = max(most, row[j])
        before = highest[i]
        most = max(most, before)
        highest[i] = most
        shrink = exp2(LOG2_E * (before - most))
        total = np.float32(0.0)
        for j in range(row.shape[0]):
            value = exp2(LOG2_E * (row[j] - most))
            row[j] = value
            total += value
        sums[i] = sums[i] * shrink + total
        shrinks[i] = shrink


@_compiled_fast
def add_densities(
    products: Tile, squares: Tile, other_squares: Tile, rate: np.float32, sums: Tile
) -> None:
    """Add exp(-2^t rate d^2) of each squared distance to column t of `sums`, t = 0 .. 7."""
    for i in range(products.shape[0]):
        row = products[i]
        square = squares[i]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = np.float32(0.0)
        for j in range(row.shape[0]):
            apart = max(square + other_squares[j] - np.float32(2.0) * row[j], np.float32(0.0))
            value = exp2(-rate * apart)
            s0 += value
            value = max(value * value, SMALLEST)
            s1 += value
            value = max(value * value, SMALLEST)
            s2 += value
            value = max(value * value, SMALLEST)
            s3 += value
            value = max(value * value, SMALLEST)
            s4 += value
            value = max(value * value, SMALLEST)
            s5 += value
            value = max(value * value, SMALLEST)
            s6 += value
            value = max(value * value, SMALLEST)
            s7 += value
        sums[i, 0] += s0
        sums[i, 1] += s1
        sums[i, 2] += s2
        sums[i, 3] += s3
        sums[i, 4] += s4
        sums[i, 5] += s5
        sums[i, 6] += s6
        sums[i, 7] += s7


@_compiled_fast
def keep_best(tile: Tile, first: int, best: Tile, places: Column) -> None:
    """Keep the best score of each bin, which holds every n_bins-th column, and its column."""
    n_bins = best.shape[1]
    for i in range(tile.shape[0]):
        for begin in range(0, tile.shape[1], n_bins):
            # Slices, which the compiler can vectorize.
            part = tile[i, begin : begin + n_bins]
            most, where = best[i, : part.shape[0]], places[i, : part.shape[0]]
            column = np.int32(first + begin)
            for j in range(part.shape[0]):
                better = part[j] > most[j]
                most[j] = part[j] if better else most[j]
                where[j] = column + np.int32(j) if better else where[j]


@_compiled_fast
def bid_in_chains(
    columns: Column,
    scores: Tile,
    floors: Tile,
    prices: Tile,
    owners: Column,
    waiting: Column,
    n_waiting: int,
    step: np.float32,
    most_bids: int,
) -> int:
    """Let rows bid for their columns, and return the number of rows that still wait.

    A row bids for its best column at the current prices, and raises the price by as much as it
    prefers that column, plus `step`. If the column had an owner, that row bids next. A row whose
    best column is worth less than its floor gives up.
    """
    n_bids = 0
    while n_waiting > 0 and n_bids < most_bids:
        n_waiting -= 1
        row = waiting[n_waiting]
        while True:
            n_bids += 1
            best, second, place = np.float32(-3e38), np.float32(-3e38), 0
            for k in range(columns.shape[1]):
                worth = scores[row, k] - prices[columns[row, k]]
                if worth > best:
                    second = best
                    best = worth
                    place = k
                elif worth > second:
                    second = worth
            if best < floors[row]:
                break
            second = max(second, floors[row] - ONE)
            column = columns[row, place]
            # A smaller step would not show in the worth of a column with a large score.
            prices[column] += best - second + max(step, RESOLUTION * abs(scores[row, place]))
            evicted = owners[column]
            owners[column] = row
            if evicted < 0:
                break
            row = evicted
    return n_waiting
