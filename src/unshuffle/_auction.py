"""Assignment by auction: epsilon scaling, a certificate from the prices, and compiled bids.

Rows bid for columns. A row that bids takes the column with the largest benefit minus
price and raises that price until the column is worth `eps` less to it than its second
choice; whoever held the column bids again. When all rows hold a column, each is within
`eps` of its best choice at the current prices, so the total is within `n * eps` of the
optimum. Large `eps` first, so that prices find their level in few bids.

Two things keep a bid from reading its whole row of the matrix. Prices only ever rise, so the
best worth seen in a block of columns bounds that block for as long as the solve lasts: a bid
reads the bounds, group by group, and opens only the blocks that may hold its first or second
choice. And with more columns than rows the problem is made square by rows that want every
column equally, which are never formed: their best choice is the cheapest column, which a heap
of prices, repaired only where it is looked at, gives in O(log n).

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

from unshuffle._compile import compiled

# Columns of the rows, total benefit, prices of the columns, and relative gap.
Found = tuple[NDArray[np.intp], float, NDArray[np.float64], float]

BLOCK = 16  # columns under one bound; 16 was fastest of 16, 32, 64 for 512 to 2025 columns
_compiled: Any = compiled()
# No "ninf": a forbidden pair has benefit -inf. The other flags make max() one instruction.
_compiled_fast: Any = compiled(fastmath={"nnan", "nsz", "reassoc", "contract"})

FIRST_EPS = 0.03  # of the range of the benefits; no later eps is larger
EPS_DIVISOR = 6.0
PATIENCE = 10  # bids per row and phase before eps is raised again
WARM_EPS = 0.01  # first eps with given prices, as a share of the mean value of a pair
# Given prices are judged by how many different columns the rows would choose first, as a
# share of the rows. At the prices of an optimum that is about .75; at no prices at all, .25
# to .45 for the steps of kernelized sorting.
USELESS_BELOW = 0.48  # start from nothing
CLOSE_ABOVE = 0.68  # start at an eps as fine as the choices are close
COARSE_FROM = 900  # rows from which prices are first found on a sample,
COARSENING = 6  # of one in so many rows and columns,
COARSE_TOL = 3e-3  # to this gap,
COARSE_EPS = 0.02  # and the first eps is this share of the mean value of a pair
SURVEYED = 16  # rows that tell what is typical
LARGEST_SPREAD = 64.0  # of all benefits, over that of the better ones of a row
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

    `benefit` is C-contiguous, has no more rows than columns, and -inf where a pair is forbidden;
    enough pairs must be allowed to match every row. `prices` are where to start. `offset` is added
    to the value where that is the scale of the gap. Beyond `max_bids_per_row` it gives up, and
    returns None in place of the assignment.
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
                # a war of small raises: raise by more now, refine later with more patience
                patience *= 2
                limit = sale.n_bids + patience
                eps = max(eps, min(eps * EPS_DIVISOR, coarsest))
        loss = sale.certify()
        value = sale.value()
        scale = sale.scale(value, offset)
        if loss <= tol * scale:
            columns = sale.column_of[: benefit.shape[0]].copy()
            return (columns, value, sale.prices, loss / scale), sale.n_bids
        finest = sale.finest_eps()
        if eps <= finest:
            return None, sale.n_bids
        # at tol * scale / n_cols the losses are sure to be small enough
        eps = max(eps / EPS_DIVISOR, 0.9 * tol * scale / n_cols, finest)
        sale.release(eps)


class _Sale:
    """The auction's books: prices, bounds, who holds what and who waits to bid.

    Rows beyond those of the benefit are the stand-ins that make the problem square.
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
        self.typical, self.differ = _typical(benefit, self.spread)

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
        """Let rows bid for a while, or until there were `limit` bids in all."""
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
        """Send the rows back to bid that could gain more than `eps` by it; others keep theirs."""
        unhappy = np.flatnonzero(self.losses > eps)
        self.row_of[self.column_of[unhappy]] = -1
        self.column_of[unhappy] = -1
        self.n_waiting = unhappy.size
        self.waiting[: unhappy.size] = unhappy

    def value(self) -> float:
        """Total benefit of the assignment."""
        n_rows = self.benefit.shape[0]
        held = self.benefit[np.arange(n_rows), self.column_of[:n_rows]]
        return float(held.sum(dtype=np.float64))

    def scale(self, value: float, offset: float) -> float:
        """What a loss is to be compared with.

        The total, or its distance from a typical one where that is less: a constant added to all
        benefits makes no loss smaller. At least what the benefits differ by.
        """
        apart = abs(value - self.benefit.shape[0] * self.typical)
        return max(min(abs(value + offset), apart), self.differ)

    def bound_on_value(self) -> float:
        """Upper bound on the best total, before the first bid."""
        n_rows, n_cols = self.benefit.shape
        of_stand_ins = (n_cols - n_rows) * float(self.prices.min())
        return float(self.groups.max(axis=1).sum() + self.prices.sum()) - of_stand_ins

    def finest_eps(self) -> float:
        """Below this a bid may not raise its price, and bidding would never end."""
        largest = max(abs(self.low), abs(self.high), float(np.abs(self.prices).max()))
        return 8 * float(np.finfo(np.float64).eps) * largest

    def first_choices(self) -> tuple[float, float]:
        """Different first choices as a share of the rows; how close second choices come."""
        n_rows = self.benefit.shape[0]
        margins = np.empty(n_rows)
        for start, stop in self._spans(n_rows):
            survey(*self._rows(), margins, start, stop)
        return np.unique(self.likely[:, 0]).size / n_rows, float(np.median(margins))


def _typical(benefit: NDArray[Any], spread: float) -> tuple[float, float]:
    """Typical benefit, and what benefits differ by, a few that are far below the rest left out.

    Users write a very low benefit where they mean "not this pair"; a loss is not small because
    that is large. From a sample of the rows.
    """
    rows = []
    for row in benefit[:: max(1, benefit.shape[0] // SURVEYED)]:
        allowed = np.sort(row[row > -np.inf]).astype(np.float64)
        if allowed.size:
            rows.append(allowed[[-1, -1 - allowed.size // 8, (allowed.size - 1) // 2]])
    best, good, median = np.median(rows, axis=0) if rows else np.zeros(3)
    differ = min(spread, LARGEST_SPREAD * float(best - good)) or spread
    return max(float(median), float(best) - differ), differ


def _open(
    benefit: NDArray[Any], prices: NDArray[np.float64] | None, tol: float, offset: float
) -> tuple[_Sale, float]:
    """Books with the best prices at hand, and the first eps that suits them."""
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
    """Prices from an auction among a sample of the rows and columns; None where that fails.

    Each column gets the least price at which no sampled row would want it more than what
    it holds. This replaces the phases with the largest eps, whose bids read most blocks.
    """
    n_rows, n_cols = benefit.shape
    random = np.random.default_rng(0)  # fixed: the same problem has the same answer
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
    # columns that stay free have the lowest price of all
    return np.maximum(prices, sample_prices.min()) if n_cols > n_rows else prices


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
