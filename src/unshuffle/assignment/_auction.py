"""Assignment by auction: compiled bids, epsilon scaling, and a certificate from the prices.

Rows bid for columns. A row that bids takes the column with the largest benefit minus
price and raises that price until the column is worth `eps` less to it than its second
choice; whoever held the column bids again. When all rows hold a column, each is within
`eps` of its best choice at the current prices, so the total is within `n * eps` of the
optimum. Large `eps` first, so that prices find their level in few bids.

Two things keep a bid from reading its whole row of the matrix:

- Prices only ever rise, so the best worth seen in a block of columns is an upper bound on
  that block for as long as the solve lasts. A bid reads the bounds and opens only the
  blocks that may hold its first or second choice.
- With more columns than rows the problem is made square by rows that want every column
  equally. They are never formed: their best choice is the cheapest column, which a heap
  of prices, repaired only where it is looked at, gives in O(log n).

References
----------
Bertsekas, D. P. (1988). The auction algorithm: a distributed relaxation method for the
assignment problem. Annals of Operations Research 14, 105-123.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unshuffle.assignment._result import Assignment

BLOCK = 16  # columns under one bound; 16 was fastest of 16, 32, 64 for 512 to 4096 columns
FIRST_EPS = 0.03  # of the range of the benefits
EPS_DIVISOR = 6.0
WORK_PER_CALL = 20_000_000  # entries read before Python may see Ctrl-C: about 20 ms

# No "ninf": a forbidden pair has benefit -inf. The other flags let max() use vector lanes.
_FLAGS = {"nnan", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=_FLAGS, inline="never")
def _best_two(
    benefit: Any, prices: Any, bounds: Any, row: int, hint: int
) -> tuple[int, float, float, int]:
    """First choice of a row, its worth, the worth of the second choice, blocks opened."""
    n_columns = benefit.shape[1]
    best = -np.inf
    second = -np.inf
    column = -1
    opened = 0
    for step in range(-1, bounds.shape[1]):
        block = step
        if step < 0:
            block = hint  # where the last bid went: a good second choice closes the others
        elif step == hint:
            continue
        if bounds[row, block] <= second:
            continue
        start = block * BLOCK
        stop = min(start + BLOCK, n_columns)
        highest = -np.inf
        for j in range(start, stop):
            highest = max(highest, benefit[row, j] - prices[j])
        bounds[row, block] = highest
        opened += 1
        if highest > second:
            for j in range(start, stop):
                worth = benefit[row, j] - prices[j]
                if worth > second:
                    if worth > best:
                        second = best
                        best = worth
                        column = j
                    else:
                        second = worth
    return column, best, second, opened


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _bid(
    benefit: Any,
    prices: Any,
    bounds: Any,
    hints: Any,
    keys: Any,
    heap: Any,
    column_of: Any,
    row_of: Any,
    waiting: Any,
    n_waiting: int,
    eps: float,
    spread: float,
    max_work: int,
) -> tuple[int, int]:
    """Bids until no row waits or `max_work` entries were read; rows still waiting, bids made."""
    n_rows = benefit.shape[0]
    bids = 0
    work = 0
    while n_waiting > 0 and work < max_work:
        row = waiting[n_waiting - 1]
        if row < n_rows:
            column, best, second, opened = _best_two(benefit, prices, bounds, row, hints[row])
            hints[row] = column // BLOCK
            work += bounds.shape[1] + opened * BLOCK
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


@njit(cache=True, nogil=True)
def _certify(
    benefit: Any,
    prices: Any,
    bounds: Any,
    hints: Any,
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
            _, best, _, _ = _best_two(benefit, prices, bounds, row, hints[row])
            losses[row] = best - (benefit[row, column] - prices[column])
        else:
            _, price, _ = _cheapest_two(keys, heap, prices)
            losses[row] = prices[column] - price


def auction(
    benefit: NDArray[Any],
    prices: NDArray[np.float64] | None,
    *,
    tol: float,
    offset: float,
    low: float,
    high: float,
    max_bids_per_row: float,
) -> tuple[Assignment | None, int]:
    """Assignment that maximises the benefit to within `tol`, and the bids it took.

    Parameters
    ----------
    benefit : C-contiguous ndarray of shape (n_rows, n_cols), float64 or float32
        No more rows than columns; -inf is a forbidden pair, and enough pairs must be
        allowed to match every row.
    prices : ndarray of shape (n_cols,) or None
        Where to start.
    tol : float
        Largest gap; larger stops sooner.
    offset : float
        Added to the value in the scale of the gap.
    low, high : float
        Least and largest benefit of an allowed pair.
    max_bids_per_row : float
        Gives up beyond, returning None in place of the assignment.
    """
    n_rows, n_cols = benefit.shape
    spread = high - low
    warm = prices is not None
    prices = np.zeros(n_cols) if prices is None else prices.astype(np.float64)
    bounds = np.full((n_rows, -(-n_cols // BLOCK)), np.inf)
    hints = np.zeros(n_rows, dtype=np.intp)
    if n_cols > n_rows:
        heap = np.argsort(prices, kind="stable")
        keys = prices[heap]
    else:
        heap, keys = np.empty(0, dtype=np.intp), np.empty(0)
    column_of = np.full(n_cols, -1, dtype=np.intp)
    row_of = np.full(n_cols, -1, dtype=np.intp)
    waiting = np.arange(n_cols)
    n_waiting = n_cols
    losses = np.zeros(n_cols)
    state = (benefit, prices, bounds, hints, keys, heap, column_of)
    rows = np.arange(n_rows)
    rows_per_call = max(1, WORK_PER_CALL // n_cols)
    eps = spread * FIRST_EPS
    if warm:
        eps /= EPS_DIVISOR
    n_bids = 0
    while True:
        while n_waiting:
            n_waiting, bids = _bid(*state, row_of, waiting, n_waiting, eps, spread, WORK_PER_CALL)
            n_bids += bids
            if n_bids > max_bids_per_row * n_cols:
                return None, n_bids
        for start in range(0, n_cols, rows_per_call):
            _certify(*state, losses, start, min(start + rows_per_call, n_cols))
        columns = column_of[:n_rows]
        value = float(benefit[rows, columns].sum(dtype=np.float64))
        scale = max(abs(value + offset), spread)
        gap = float(losses.sum()) / scale
        if gap <= tol:
            return Assignment(columns.copy(), value, prices, gap, "auction"), n_bids
        # eps = tol * scale / n_cols is small enough to end; below the resolution of the
        # numbers a bid would no longer raise its price, and bidding would never end
        finest = 8 * np.finfo(np.float64).eps * max(abs(low), abs(high), np.abs(prices).max())
        if eps <= finest:
            return None, n_bids
        eps = max(eps / EPS_DIVISOR, 0.9 * tol * scale / n_cols, finest)
        # a row that is happy at the new eps keeps its column
        unhappy = np.flatnonzero(losses > eps)
        row_of[column_of[unhappy]] = -1
        column_of[unhappy] = -1
        n_waiting = unhappy.size
        waiting[:n_waiting] = unhappy
