"""Assignment by auction: epsilon scaling, and a certificate from the prices.

Rows bid for columns. A row that bids takes the column with the largest benefit minus
price and raises that price until the column is worth `eps` less to it than its second
choice; whoever held the column bids again. When all rows hold a column, each is within
`eps` of its best choice at the current prices, so the total is within `n * eps` of the
optimum. Large `eps` first, so that prices find their level in few bids.

References
----------
Bertsekas, D. P. (1988). The auction algorithm: a distributed relaxation method for the
assignment problem. Annals of Operations Research 14, 105-123.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._assign import Assignment
from unshuffle._bids import BLOCK, bid, certify, prepare, survey

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
        Added to the value where that is the scale of the gap.
    max_bids_per_row : float
        Gives up beyond, returning None in place of the assignment.
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
            found = Assignment(columns, value, sale.prices, loss / scale, "auction")
            return found, sale.n_bids
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

    def _books(self) -> Any:
        return (
            self.benefit,
            self.prices,
            self.bounds,
            self.groups,
            self.likely,
            self.keys,
            self.heap,
            self.column_of,
        )

    def take_bids(self, eps: float, limit: int) -> None:
        """Let rows bid for a while, or until there were `limit` bids in all."""
        self.n_waiting, n_made = bid(
            *self._books(),
            self.row_of,
            self.waiting,
            self.n_waiting,
            eps,
            self.spread,
            limit - self.n_bids,
            WORK_PER_CALL,
        )
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
            survey(
                self.benefit,
                self.prices,
                self.bounds,
                self.groups,
                self.likely,
                margins,
                start,
                stop,
            )
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
    if found is None or found.prices is None:
        return None
    of_rows -= (sample - found.prices).max(axis=1, keepdims=True)
    prices: NDArray[np.float64] = of_rows.max(axis=0).astype(np.float64)
    # columns that stay free have the lowest price of all
    return np.maximum(prices, found.prices.min()) if n_cols > n_rows else prices
