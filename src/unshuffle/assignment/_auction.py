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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle.assignment._bids import BLOCK, bid, certify, prepare
from unshuffle.assignment._result import Assignment

FIRST_EPS = 0.03  # of the range of the benefits
EPS_DIVISOR = 6.0
WARM_EPS = 100.0  # with prices to start from: of the tolerated loss of a row
PATIENCE = 10  # bids per row and phase before eps is raised again
COARSE_FROM = 1500  # rows from which prices are first found on a sample,
COARSENING = 8  # of one in so many rows and columns,
COARSE_TOL = 1e-3  # to this gap,
COARSE_EPS = 0.02  # and the first eps is this much of the mean value of a pair
WORK_PER_CALL = 20_000_000  # entries read before Python may see Ctrl-C: about 20 ms


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
        prepare(benefit, prices, bounds, groups, start, min(start + rows_per_call, n_rows))
        for start in range(0, n_rows, rows_per_call)
    ]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    spread = high - low
    if not np.isfinite(spread):
        return None, 0
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
            n_waiting, n_made = bid(
                *state, row_of, waiting, n_waiting, eps, spread, limit - n_bids, WORK_PER_CALL
            )
            n_bids += n_made
            if n_bids > max_bids_per_row * n_cols:
                return None, n_bids
            if n_bids >= limit:
                # a war of small raises: raise by more now, refine later with more patience
                patience *= 2
                limit = n_bids + patience
                eps = max(eps, min(eps * EPS_DIVISOR, coarsest))
        for start in range(0, n_cols, rows_per_call):
            certify(*state, losses, start, min(start + rows_per_call, n_cols))
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
