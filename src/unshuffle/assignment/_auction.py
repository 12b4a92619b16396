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
WARM_EPS = 100.0  # with prices to start from: of the tolerated loss of a row
PATIENCE = 10  # bids per row and phase before eps is raised again
COARSE_FROM = 1500  # rows from which prices are first found on a sample,
COARSENING = 8  # of one in so many rows and columns,
COARSE_TOL = 1e-3  # to this gap,
COARSE_EPS = 0.02  # and the first eps is this much of the mean value of a pair
WORK_PER_CALL = 20_000_000  # entries read before Python may see Ctrl-C: about 20 ms

# No "ninf": a forbidden pair has benefit -inf. The other flags let max() use vector lanes.
_FLAGS = {"nnan", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=_FLAGS)
def _highest_bound(bounds: Any, row: int, group: int) -> float:
    """Largest bound of a row in one group of blocks."""
    highest = -np.inf
    for block in range(group * BLOCK, (group + 1) * BLOCK):
        highest = max(highest, bounds[row, block])
    return highest


@njit(cache=True, nogil=True, fastmath=_FLAGS)
def _prepare(
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


@njit(cache=True, nogil=True, fastmath=_FLAGS)
def _best_two(
    benefit: Any, prices: Any, bounds: Any, groups: Any, likely: Any, row: int
) -> tuple[int, float, float, int]:
    """First choice of a row, its worth, the worth of the second choice, blocks opened.

    Starts from the two choices of the row's last bid: good guesses close most blocks.
    """
    n_columns = benefit.shape[1]
    column = likely[row, 0]
    other = likely[row, 1]
    best = benefit[row, column] - prices[column]
    second = -np.inf
    if other >= 0:
        second = benefit[row, other] - prices[other]
        if second > best:
            best, second = second, best
            column, other = other, column
    opened = 0
    for group in range(groups.shape[1]):
        if groups[row, group] <= second:
            continue
        for block in range(group * BLOCK, (group + 1) * BLOCK):
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
                    if worth > second and j != column:
                        if worth > best:
                            second = best
                            other = column
                            best = worth
                            column = j
                        else:
                            second = worth
                            other = j
        groups[row, group] = _highest_bound(bounds, row, group)
    likely[row, 0] = column
    likely[row, 1] = other
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


@njit(cache=True, nogil=True)
def _certify(
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


def _coarse_prices(benefit: NDArray[Any]) -> NDArray[np.float64] | None:
    """Prices from an auction among a sample of the rows and columns; None where there is none.

    Each column gets the least price at which no sampled row would want it more than what
    it holds. This replaces the phases with the largest eps, whose bids read most blocks.
    """
    n_rows, n_cols = benefit.shape
    if n_rows < COARSE_FROM:
        return None
    random = np.random.default_rng(0)  # fixed: the same problem has the same answer
    rows = np.sort(random.permutation(n_rows)[: n_rows // COARSENING])
    cols = np.sort(random.permutation(n_cols)[: n_cols // COARSENING])
    of_rows = benefit[rows]
    sample = np.ascontiguousarray(of_rows[:, cols])
    if sample.min() == -np.inf:
        return None
    found, _ = auction(sample, None, tol=COARSE_TOL, offset=0.0, max_bids_per_row=100.0)
    if found is None or found.prices is None:
        return None
    of_rows -= (sample - found.prices).max(axis=1, keepdims=True)
    prices = of_rows.max(axis=0).astype(np.float64)
    # columns that stay free have the lowest price of all
    return np.maximum(prices, found.prices.min()) if n_cols > n_rows else prices


def auction(
    benefit: NDArray[Any],
    prices: NDArray[np.float64] | None,
    *,
    tol: float,
    offset: float,
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
    max_bids_per_row : float
        Gives up beyond, returning None in place of the assignment.
    """
    n_rows, n_cols = benefit.shape
    first_eps = WARM_EPS * tol
    if prices is None:
        prices = _coarse_prices(benefit)
        first_eps = COARSE_EPS
    warm = prices is not None
    prices = np.zeros(n_cols) if prices is None else prices.astype(np.float64)
    n_groups = -(-n_cols // BLOCK**2)
    groups = np.empty((n_rows, n_groups))
    bounds = np.empty((n_rows, n_groups * BLOCK))
    rows_per_call = max(1, WORK_PER_CALL // n_cols)
    ends = [
        _prepare(benefit, prices, bounds, groups, start, min(start + rows_per_call, n_rows))
        for start in range(0, n_rows, rows_per_call)
    ]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    spread = high - low
    if spread == 0:
        spread = max(abs(high), 1.0)
    likely = np.zeros((n_rows, 2), dtype=np.intp)
    likely[:, 1] = -1
    heap, keys = np.empty(0, dtype=np.intp), np.empty(0)
    if n_cols > n_rows:
        heap = np.argsort(prices, kind="stable")
        keys = prices[heap]
    column_of = np.full(n_cols, -1, dtype=np.intp)
    row_of = np.full(n_cols, -1, dtype=np.intp)
    waiting = np.arange(n_cols)
    n_waiting = n_cols
    losses = np.zeros(n_cols)
    state = (benefit, prices, bounds, groups, likely, keys, heap, column_of)
    rows = np.arange(n_rows)
    eps = coarsest = spread * FIRST_EPS
    if warm:
        reached = groups.max(axis=1).sum() + prices.sum() - (n_cols - n_rows) * prices.min()
        eps = min(coarsest, first_eps * max(abs(reached + offset), spread) / n_cols)
    n_bids = 0
    patience = PATIENCE * n_cols
    while True:
        limit = n_bids + patience
        while n_waiting:
            n_waiting, bids = _bid(
                *state, row_of, waiting, n_waiting, eps, spread, limit - n_bids, WORK_PER_CALL
            )
            n_bids += bids
            if n_bids > max_bids_per_row * n_cols:
                return None, n_bids
            if n_bids >= limit:
                # a war of small raises: raise by more now, refine later with more patience
                patience *= 2
                limit = n_bids + patience
                eps = max(eps, min(eps * EPS_DIVISOR, coarsest))
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
