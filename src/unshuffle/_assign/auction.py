"""Assignment by auction: epsilon scaling, a certificate from the prices, and compiled bids.

Rows bid for columns. A bidding row takes the column with the largest benefit minus price and
raises that price until the column is worth `eps` less to it than its second choice; the previous
holder bids again. When all rows hold a column, each is within `eps` of its best choice at the
current prices, so the total is within `n * eps` of the optimum. `eps` starts large, so that
prices settle in few bids.

Two things keep a bid from reading its whole row of the matrix. Prices never fall, so the largest
worth seen in a block of columns remains an upper bound: a bid reads the bounds, group by group,
and opens only blocks that may hold its first or second choice. With more columns than rows, the
problem is padded with rows that value all columns equally. They are never stored: their best
choice is the cheapest column, found in O(log n) with a heap of prices that is updated lazily.

Importing this module imports numba.

References
----------
Bertsekas, D. P. (1988). The auction algorithm: a distributed relaxation method for the
assignment problem. Annals of Operations Research 14, 105-123.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._assign.certificates import LossScale, relative_gap, rounding_error
from unshuffle._run.compile import compiled

# Columns of the rows, total benefit, prices of the columns, and relative gap.
Found = tuple[NDArray[np.intp], float, NDArray[np.float64], float]

BLOCK = 16  # columns under one bound; 16 was fastest of 16, 32, 64 for 512 to 2025 columns
_compiled: Any = compiled()
# Without "ninf", since forbidden pairs have benefit -inf. The others make max() one instruction.
_compiled_fast: Any = compiled(fastmath={"nnan", "nsz", "reassoc", "contract"})

FIRST_EPS = 0.03  # share of the range of the benefits; the largest eps
EPS_DIVISOR = 6.0
PATIENCE = 10  # bids per row and phase before eps is raised again
WARM_EPS = 0.01  # first eps with given prices, as a share of the mean value of a pair
# Given prices are judged by the number of distinct first choices as a share of the rows: about
# .75 at the prices of an optimum, .25 to .45 at zero prices in steps of kernelized sorting.
USELESS_BELOW = 0.48  # start from zero prices
CLOSE_ABOVE = 0.68  # start at an eps matched to the margins between choices
COARSE_FROM = 900  # rows from which prices are first found on a sample
COARSENING = 6  # one in this many rows and columns is sampled
COARSE_TOL = 3e-3  # gap of the auction on the sample
COARSE_EPS = 0.02  # first eps after it, as a share of the mean value of a pair
WORK_PER_CALL = 20_000_000  # entries read before Python may see Ctrl-C: about 20 ms


def auction(
    benefit: NDArray[Any],
    prices: NDArray[np.float64] | None,
    *,
    tol: float,
    offset: float,
    max_bids_per_row: float,
) -> tuple[Found | None, int]:
    """Assignment that maximizes the benefit to within a gap of `tol`, and the number of bids.

    `benefit` is C-contiguous, has at most as many rows as columns, and is -inf for forbidden
    pairs; a complete matching must exist. `prices` are starting prices. `offset` is added to the
    value when the gap is scaled by it. Returns None for the assignment after `max_bids_per_row`.
    """
    n_cols = benefit.shape[1]
    sale, eps = _open(benefit, prices, tol, offset)
    if not np.isfinite(sale.spread):
        return None, 0
    coarsest = FIRST_EPS * sale.spread
    patience = PATIENCE * n_cols
    while True:
        limit = sale.n_bids + patience
        while sale.n_waiting:
            sale.take_bids(eps, limit)
            if sale.n_bids > max_bids_per_row * n_cols:
                return None, sale.n_bids
            if sale.n_bids >= limit:
                # too many small raises: raise by more now, refine later with more patience
                patience *= 2
                limit = sale.n_bids + patience
                eps = max(eps, min(eps * EPS_DIVISOR, coarsest))
        loss = sale.certify()
        value = sale.value()
        scale = sale.scale.at(value, offset)
        gap = relative_gap(loss, sale.rounding_error(), scale)
        if gap <= tol:
            columns = sale.column_of[: benefit.shape[0]].copy()
            return (columns, value, sale.prices, gap), sale.n_bids
        finest = sale.finest_eps()
        if eps <= finest:
            return None, sale.n_bids
        # at tol * scale / n_cols the losses are certainly small enough
        eps = max(eps / EPS_DIVISOR, 0.9 * tol * scale / n_cols, finest)
        sale.release(eps)


class _Sale:
    """State of an auction: prices, bounds, held columns and waiting rows.

    Rows beyond those of the benefit are the padding that makes the problem square.
    """

    def __init__(self, benefit: NDArray[Any], prices: NDArray[np.float64]) -> None:
        n_rows, n_cols = benefit.shape
        self.benefit = benefit
        self.prices = prices
        n_groups = -(-n_cols // BLOCK**2)
        self.groups = np.empty((n_rows, n_groups))
        self.bounds = np.empty((n_rows, n_groups * BLOCK))
        self.likely = np.zeros((n_rows, 2), dtype=np.intp)
        self.likely[:, 1] = -1
        self.heap, self.keys = np.empty(0, dtype=np.intp), np.empty(0)
        if n_cols > n_rows:
            self.heap = np.argsort(prices, kind="stable")
            self.keys = prices[self.heap]
        self.column_of = np.full(n_cols, -1, dtype=np.intp)
        self.row_of = np.full(n_cols, -1, dtype=np.intp)
        self.waiting = np.arange(n_cols)
        self.n_waiting = n_cols
        self.losses = np.zeros(n_cols)
        self.n_bids = 0
        ends = [
            prepare(benefit, prices, self.bounds, self.groups, start, stop)
            for start, stop in self._spans(n_rows)
        ]
        self.low = min(low for low, _ in ends)
        self.high = max(high for _, high in ends)
        self.spread = self.high - self.low or max(abs(self.high), 1.0)
        self.scale = LossScale.of(benefit, self.spread)

    def _spans(self, n_rows: int) -> Iterator[tuple[int, int]]:
        """Ranges of rows small enough for one compiled call."""
        step = max(1, WORK_PER_CALL // self.benefit.shape[1])
        for start in range(0, n_rows, step):
            yield start, min(start + step, n_rows)

    def _rows(self) -> Any:
        return self.benefit, self.prices, self.bounds, self.groups, self.likely

    def _books(self) -> Any:
        return *self._rows(), self.keys, self.heap, self.column_of

    def take_bids(self, eps: float, limit: int) -> None:
        """Let rows bid for a while, or until `limit` bids in total."""
        waiting = self.row_of, self.waiting, self.n_waiting
        most = limit - self.n_bids, WORK_PER_CALL
        self.n_waiting, n_made = bid(*self._books(), *waiting, eps, self.spread, *most)
        self.n_bids += n_made

    def certify(self) -> float:
        """Bound on the loss of the assignment, by duality."""
        for start, stop in self._spans(self.benefit.shape[1]):
            certify(*self._books(), self.losses, start, stop)
        return float(self.losses.sum())

    def release(self, eps: float) -> None:
        """Release the rows that could gain more than `eps` by bidding again."""
        unhappy = np.flatnonzero(self.losses > eps)
        self.row_of[self.column_of[unhappy]] = -1
        self.column_of[unhappy] = -1
        self.n_waiting = unhappy.size
        self.waiting[: unhappy.size] = unhappy

    def held(self) -> NDArray[Any]:
        """Benefit of each row from the column it holds."""
        n_rows = self.benefit.shape[0]
        held: NDArray[Any] = self.benefit[np.arange(n_rows), self.column_of[:n_rows]]
        return held

    def value(self) -> float:
        """Total benefit of the assignment."""
        return float(self.held().sum(dtype=np.float64))

    def rounding_error(self) -> float:
        """Largest rounding error of the loss."""
        held, prices = np.abs(self.held()), np.abs(self.prices)
        return rounding_error(prices.size, float(held.max()) + float(prices.max()))

    def bound_on_value(self) -> float:
        """Upper bound on the best total, before the first bid."""
        n_rows, n_cols = self.benefit.shape
        padding = (n_cols - n_rows) * float(self.prices.min())
        return float(self.groups.max(axis=1).sum() + self.prices.sum()) - padding

    def finest_eps(self) -> float:
        """Smallest eps that still raises a price in floating point, so that bidding ends."""
        largest = max(abs(self.low), abs(self.high), float(np.abs(self.prices).max()))
        return 8 * float(np.finfo(np.float64).eps) * largest

    def first_choices(self) -> tuple[float, float]:
        """Distinct first choices as a share of the rows, and the median margin over the second."""
        n_rows = self.benefit.shape[0]
        margins = np.empty(n_rows)
        for start, stop in self._spans(n_rows):
            survey(*self._rows(), margins, start, stop)
        return np.unique(self.likely[:, 0]).size / n_rows, float(np.median(margins))


def _open(
    benefit: NDArray[Any], prices: NDArray[np.float64] | None, tol: float, offset: float
) -> tuple[_Sale, float]:
    """State with the best available prices, and a first eps that suits them."""
    n_rows, n_cols = benefit.shape
    if prices is not None:
        sale = _Sale(benefit, prices.astype(np.float64))
        mean = max(abs(sale.bound_on_value() + offset), sale.spread) / n_cols
        eps = min(WARM_EPS * mean, FIRST_EPS * sale.spread)
        share, margin = sale.first_choices()
        if share > CLOSE_ABOVE:
            eps = min(eps, max(margin / 4, tol * mean))
        if share >= USELESS_BELOW:
            return sale, eps
    coarse = _coarse_prices(benefit) if n_rows >= COARSE_FROM else None
    if coarse is None:
        sale = _Sale(benefit, np.zeros(n_cols))
        return sale, FIRST_EPS * sale.spread
    sale = _Sale(benefit, coarse)
    mean = max(abs(sale.bound_on_value() + offset), sale.spread) / n_cols
    return sale, min(COARSE_EPS * mean, FIRST_EPS * sale.spread)


def _coarse_prices(benefit: NDArray[Any]) -> NDArray[np.float64] | None:
    """Prices from an auction on a sample of the rows and columns; None if that fails.

    Each column gets the lowest price at which no sampled row prefers it to the one it holds. This
    replaces the phases with the largest eps, whose bids read most blocks.
    """
    n_rows, n_cols = benefit.shape
    random = np.random.default_rng(0)  # fixed seed: results are reproducible
    rows = np.sort(random.permutation(n_rows)[: n_rows // COARSENING])
    cols = np.sort(random.permutation(n_cols)[: n_cols // COARSENING])
    of_rows = benefit[rows]
    sample = np.ascontiguousarray(of_rows[:, cols])
    if sample.min() == -np.inf:
        return None
    found, _ = auction(sample, None, tol=COARSE_TOL, offset=0.0, max_bids_per_row=100.0)
    if found is None:
        return None
    _, _, sample_prices, _ = found
    of_rows -= (sample - sample_prices).max(axis=1, keepdims=True)
    prices: NDArray[np.float64] = of_rows.max(axis=0).astype(np.float64)
    # columns that stay free have the lowest price
    return np.maximum(prices, sample_prices.min()) if n_cols > n_rows else prices


@_compiled_fast
def _highest_worth(benefit: Any, prices: Any, row: int, block: int) -> float:
    """Largest benefit less price of a row in one block of columns."""
    # unsigned, since numba tests every signed index for being negative, at twice the time
    line = np.uintp(row)
    start = np.uintp(block * BLOCK)
    width = min(BLOCK, benefit.shape[1] - block * BLOCK)
    highest = -np.inf
    if width == BLOCK:
        for k in range(BLOCK):  # constant length, so that the compiler unrolls it
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
    """Fill the bounds of some rows; return the lowest finite and the highest benefit."""
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
    """First choice of a row, its worth, the worth of the second choice, and blocks opened.

    Starts from the two choices of the row's last bid, which rule out most blocks.
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
    """Find the two best choices of some rows, and the margin between them."""
    for row in range(start, stop):
        _, best, second, _ = _best_two(benefit, prices, bounds, groups, likely, row)
        margins[row] = best - second


@_compiled
def _sift(keys: Any, heap: Any, prices: Any, at: int) -> None:
    """Update a heap entry to its current price and sift it down."""
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

    Keys lag behind prices, which never fall, so an entry with a current key is in place.
    """
    second = np.inf
    for at in range(min(3, heap.shape[0])):
        while keys[at] < prices[heap[at]]:
            _sift(keys, heap, prices, at)
        if at > 0:
            second = min(second, keys[at])
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
    """Bid until no row waits or `max_work` entries were read; return rows waiting, bids made."""
    n_rows = benefit.shape[0]
    bids = 0
    work = 0
    while n_waiting > 0 and bids < max_bids and work < max_work:
        row = waiting[n_waiting - 1]
        if row < n_rows:
            column, best, second, opened = _best_two(benefit, prices, bounds, groups, likely, row)
            work += groups.shape[1] + (opened + 2) * BLOCK
            # a single allowed column: any raise works
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
    """Loss of each row: worth of its best column minus worth of the one it holds."""
    n_rows = benefit.shape[0]
    for row in range(start, stop):
        column = column_of[row]
        if row < n_rows:
            _, best, _, _ = _best_two(benefit, prices, bounds, groups, likely, row)
            losses[row] = best - (benefit[row, column] - prices[column])
        else:
            _, price, _ = _cheapest_two(keys, heap, prices)
            losses[row] = prices[column] - price
