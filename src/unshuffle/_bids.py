"""The compiled loops of the auction: bids, and the bounds that keep them short.

Two things keep a bid from reading its whole row of the matrix:

- Prices only ever rise, so the best worth seen in a block of columns is an upper bound on
  that block for as long as the solve lasts. A bid reads the bounds, group by group, and
  opens only the blocks that may hold its first or second choice.
- With more columns than rows the problem is made square by rows that want every column
  equally. They are never formed: their best choice is the cheapest column, which a heap
  of prices, repaired only where it is looked at, gives in O(log n).

Importing this module imports numba.
"""

from typing import Any

import numpy as np

from unshuffle._compile import compiled

BLOCK = 16  # columns under one bound; 16 was fastest of 16, 32, 64 for 512 to 2025 columns
_compiled: Any = compiled()
# No "ninf": a forbidden pair has benefit -inf. The other flags make max() one instruction.
_compiled_fast: Any = compiled(fastmath={"nnan", "nsz", "reassoc", "contract"})


@_compiled_fast
def _highest_worth(benefit: Any, prices: Any, row: int, block: int) -> float:
    """Largest benefit less price of a row in one block of columns."""
    # unsigned: numba tests every signed index for being negative, which doubles the time
    line = np.uintp(row)
    start = np.uintp(block * BLOCK)
    width = min(BLOCK, benefit.shape[1] - block * BLOCK)
    highest = -np.inf
    if width == BLOCK:
        for k in range(BLOCK):  # the constant length lets it be unrolled
            j = start + np.uintp(k)
            highest = max(highest, benefit[line, j] - prices[j])
    else:
        for k in range(width):
            j = start + np.uintp(k)
            highest = max(highest, benefit[line, j] - prices[j])
    return highest


@_compiled_fast
def _highest_bound(bounds: Any, row: int, group: int) -> float:
    """Largest bound of a row in one group of blocks."""
    line = np.uintp(row)
    start = np.uintp(group * BLOCK)
    highest = -np.inf
    for k in range(BLOCK):
        highest = max(highest, bounds[line, start + np.uintp(k)])
    return highest


@_compiled_fast
def prepare(
    benefit: Any, prices: Any, bounds: Any, groups: Any, start: int, stop: int
) -> tuple[float, float]:
    """Fill the bounds of some rows; lowest and highest benefit that is not -inf."""
    n_columns = benefit.shape[1]
    low = np.inf
    high = -np.inf
    for row in range(start, stop):
        row_low = np.inf
        for block in range(bounds.shape[1]):
            first = block * BLOCK
            highest = -np.inf
            for j in range(first, min(first + BLOCK, n_columns)):
                value = benefit[row, j]
                highest = max(highest, value - prices[j])
                row_low = min(row_low, value)
                high = max(high, value)
            bounds[row, block] = highest
        if row_low == -np.inf:
            row_low = np.inf
            for j in range(n_columns):
                if benefit[row, j] > -np.inf:
                    row_low = min(row_low, benefit[row, j])
        low = min(low, row_low)
        for group in range(groups.shape[1]):
            groups[row, group] = _highest_bound(bounds, row, group)
    return low, high


@_compiled_fast
def _best_two(
    benefit: Any, prices: Any, bounds: Any, groups: Any, likely: Any, row: int
) -> tuple[int, float, float, int]:
    """First choice of a row, its worth, the worth of the second choice, blocks opened.

    Starts from the two choices of the row's last bid: good guesses close most blocks.
    """
    line = np.uintp(row)
    column = likely[row, 0]
    other = likely[row, 1]
    best = benefit[line, np.uintp(column)] - prices[np.uintp(column)]
    second = -np.inf
    if other >= 0:
        second = benefit[line, np.uintp(other)] - prices[np.uintp(other)]
        if second > best:
            best, second = second, best
            column, other = other, column
    opened = 0
    for group in range(groups.shape[1]):
        if groups[line, np.uintp(group)] <= second:
            continue
        for block in range(group * BLOCK, (group + 1) * BLOCK):
            if bounds[line, np.uintp(block)] <= second:
                continue
            highest = _highest_worth(benefit, prices, row, block)
            bounds[line, np.uintp(block)] = highest
            opened += 1
            if highest > second:
                start = block * BLOCK
                for j in range(start, min(start + BLOCK, benefit.shape[1])):
                    worth = benefit[line, np.uintp(j)] - prices[np.uintp(j)]
                    if worth > second and j != column:
                        if worth > best:
                            second = best
                            other = column
                            best = worth
                            column = j
                        else:
                            second = worth
                            other = j
        groups[line, np.uintp(group)] = _highest_bound(bounds, row, group)
    likely[row, 0] = column
    likely[row, 1] = other
    return column, best, second, opened


@_compiled
def survey(
    benefit: Any,
    prices: Any,
    bounds: Any,
    groups: Any,
    likely: Any,
    margins: Any,
    start: int,
    stop: int,
) -> None:
    """Find the choices of some rows, and what the first is worth above the second."""
    for row in range(start, stop):
        _, best, second, _ = _best_two(benefit, prices, bounds, groups, likely, row)
        margins[row] = best - second


@_compiled
def _sift(keys: Any, heap: Any, prices: Any, at: int) -> None:
    """Give a heap entry its present price, letting it sink to its place."""
    column = heap[at]
    key = prices[column]
    size = heap.shape[0]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[at] = keys[child]
        heap[at] = heap[child]
        at = child
    keys[at] = key
    heap[at] = column


@_compiled
def _cheapest_two(keys: Any, heap: Any, prices: Any) -> tuple[int, float, float]:
    """Cheapest column, its price, and the second lowest price.

    Keys lag behind prices, which only rise, so an entry whose key is current is in place.
    """
    while keys[0] < prices[heap[0]]:
        _sift(keys, heap, prices, 0)
    second = np.inf
    for child in range(1, min(3, heap.shape[0])):
        while keys[child] < prices[heap[child]]:
            _sift(keys, heap, prices, child)
        second = min(second, keys[child])
    return heap[0], keys[0], second


@_compiled
def bid(
    benefit: Any,
    prices: Any,
    bounds: Any,
    groups: Any,
    likely: Any,
    keys: Any,
    heap: Any,
    column_of: Any,
    row_of: Any,
    waiting: Any,
    n_waiting: int,
    eps: float,
    spread: float,
    max_bids: int,
    max_work: int,
) -> tuple[int, int]:
    """Bids until no row waits or `max_work` entries were read; rows still waiting, bids made."""
    n_rows = benefit.shape[0]
    bids = 0
    work = 0
    while n_waiting > 0 and bids < max_bids and work < max_work:
        row = waiting[n_waiting - 1]
        if row < n_rows:
            column, best, second, opened = _best_two(benefit, prices, bounds, groups, likely, row)
            work += groups.shape[1] + (opened + 2) * BLOCK
            # with a single allowed column any raise will do
            rise = best - second if second > -np.inf else spread
        else:
            column, price, next_price = _cheapest_two(keys, heap, prices)
            work += 16
            rise = next_price - price
        prices[column] += rise + eps
        bids += 1
        loser = row_of[column]
        row_of[column] = row
        column_of[row] = column
        if loser >= 0:
            column_of[loser] = -1
            waiting[n_waiting - 1] = loser
        else:
            n_waiting -= 1
    return n_waiting, bids


@_compiled
def certify(
    benefit: Any,
    prices: Any,
    bounds: Any,
    groups: Any,
    likely: Any,
    keys: Any,
    heap: Any,
    column_of: Any,
    losses: Any,
    start: int,
    stop: int,
) -> None:
    """Worth of each row's best column above the worth of the one it holds."""
    n_rows = benefit.shape[0]
    for row in range(start, stop):
        column = column_of[row]
        if row < n_rows:
            _, best, _, _ = _best_two(benefit, prices, bounds, groups, likely, row)
            losses[row] = best - (benefit[row, column] - prices[column])
        else:
            _, price, _ = _cheapest_two(keys, heap, prices)
            losses[row] = prices[column] - price
