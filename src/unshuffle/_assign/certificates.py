"""Certificates of assignments: prices, and what a matching loses at most by duality.

At any prices of the columns, no matching is worth more than the sum of what each row gets from its
best column. The distance of a matching from this sum bounds its loss, whichever solver found it.
Here the smaller side is in the rows, all of which are matched. Unmatched columns are held by rows
that value all columns equally.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.types import Floats, Order

SURVEYED = 16  # rows sampled for the typical benefit
LARGEST_SPREAD = 64.0  # of all benefits, relative to that of the better ones of a row
# Rounding errors of a sum, in units of the last place of its largest term.
ERRORS = 4.0
EPS = float(np.finfo(np.float64).eps)
# Rounding errors of a smaller share of the scale of the loss count as none.
NEGLIGIBLE = 1e-9
# Entries of the benefit that are compared at once.
ENTRIES = 1 << 20


@dataclass(frozen=True)
class LossScale:
    """What a loss is a share of: the total, or its distance from a typical total if smaller.

    A constant added to all benefits thus does not shrink the gap. At least their spread.
    """

    n_rows: int
    typical: float
    spread: float

    @classmethod
    def of(cls, benefit: NDArray[Any], spread: float) -> "LossScale":
        """Scale from a sample of the rows, robust to very low benefits.

        A very low benefit often means "not this pair" and must not inflate the scale.
        """
        sample = np.sort(benefit[:: max(1, benefit.shape[0] // SURVEYED)], axis=1)
        n_allowed = (sample > -np.inf).sum(axis=1)
        sample, n_allowed = sample[n_allowed > 0], n_allowed[n_allowed > 0]
        if not n_allowed.size:
            return cls(benefit.shape[0], 0.0, spread)
        end = sample.shape[1] - 1
        ranks = end - np.array([n_allowed * 0, n_allowed // 8, n_allowed // 2])
        picked = np.sort(sample[np.arange(len(sample)), ranks].astype(np.float64), axis=1)
        middle = picked[:, (len(sample) - 1) // 2] + picked[:, len(sample) // 2]
        best, good, median = (middle / 2.0).tolist()
        differ = min(spread, LARGEST_SPREAD * (best - good)) or spread
        return cls(benefit.shape[0], max(median, best - differ), differ)

    def at(self, value: float, offset: float) -> float:
        """Scale for a matching of this value; `offset` belongs to the total of every matching."""
        apart = abs(value - self.n_rows * self.typical)
        return max(min(abs(value + offset), apart), self.spread)


def relative_gap(loss: float, rounding: float, scale: float) -> float:
    """Loss as a share of the scale; 0.0 if it is no more than negligible rounding errors."""
    if loss <= rounding <= NEGLIGIBLE * scale:
        return 0.0
    return max(loss, rounding) / scale


def certified(
    benefit: NDArray[Any], columns: Order, *, offset: float = 0.0
) -> tuple[Floats, float]:
    """Prices that certify a matching of all rows, and its gap."""
    prices = dual_prices(benefit, columns)
    spread = benefit_spread(benefit)
    value = float(_held(benefit, columns).sum())
    scale = LossScale.of(benefit, spread).at(value, offset)
    return prices, relative_gap(*loss_bound(benefit, columns, prices), scale)


def benefit_spread(benefit: NDArray[Any]) -> float:
    """Range of the finite benefits; the largest, or 1, if all are equal."""
    high, low = float(benefit.max()), float(benefit.min())
    if low == -np.inf:
        low = float(benefit.min(initial=high, where=benefit > -np.inf))
    return high - low or max(abs(high), 1.0)


def are_useful(prices: Floats, benefit: NDArray[Any]) -> bool:
    """Whether prices may be those of a similar problem.

    Optimal prices differ by at most the longest path of exchanges, with one spread of the benefits
    at each row. Larger ones would only take digits from the benefits.
    """
    apart = float(prices.max()) - float(prices.min())
    return bool(apart <= max(benefit.shape) * benefit_spread(benefit))  # False for NaN


def loss_bound(benefit: NDArray[Any], columns: Order, prices: Floats) -> tuple[float, float]:
    """Bound by the prices on the loss of a matching of all rows, and its rounding error."""
    held = _held(benefit, columns)
    prices = prices - prices.min()  # only their differences count
    loss = float(prices.sum()) - float(prices[columns].sum())
    for rows in _row_blocks(*benefit.shape):
        best = (benefit[rows] - prices).max(axis=1)
        loss += float((best - (held[rows] - prices[columns[rows]])).sum())
    largest = float(np.abs(held).max()) + float(prices.max())
    return loss, rounding_error(prices.size, largest)


def rounding_error(n_items: int, largest: float) -> float:
    """Largest rounding error of a sum of differences of such numbers."""
    return ERRORS * EPS * n_items * largest


def dual_prices(benefit: NDArray[Any], columns: Order) -> Floats:
    """Lowest prices from 0 up at which every row prefers the column it holds.

    They exist if the matching is optimal: the longest paths of exchanges between columns, by
    Bellman and Ford's iteration over the rows whose own price rose. Otherwise prices would rise
    without end; they stop after as many passes as there are rows, and show the loss.
    """
    n_rows, n_cols = benefit.shape
    held = _held(benefit, columns)
    largest = float(np.abs(held).max())
    row_of = np.full(n_cols, -1, dtype=np.intp)
    row_of[columns] = np.arange(n_rows)
    unmatched = np.flatnonzero(row_of < 0)
    prices = np.zeros(n_cols)
    waiting, wanting = np.arange(n_rows), benefit
    for _ in range(n_rows + 1):
        worth = held[waiting] - prices[columns[waiting]]
        raised = prices.copy()
        for rows in _row_blocks(*wanting.shape):
            np.maximum(raised, (wanting[rows] - worth[rows, None]).max(axis=0), out=raised)
        if unmatched.size:
            # Rows that value all columns equally hold the unmatched ones.
            np.maximum(raised, raised[unmatched].max(), out=raised)
        rose = raised > prices + ERRORS * EPS * (largest + float(raised.max()))
        prices[rose] = raised[rose]
        waiting = row_of[rose]
        waiting = waiting[waiting >= 0] if unmatched.size else waiting
        if not waiting.size:
            break
        wanting = benefit[waiting]
    return prices


def _held(benefit: NDArray[Any], columns: Order) -> Floats:
    """Benefit of each row from the column it holds."""
    return np.asarray(benefit[np.arange(len(columns)), columns], dtype=np.float64)


def _row_blocks(n_rows: int, n_cols: int) -> list[slice]:
    """Ranges of rows whose benefits fit into a small copy."""
    step = max(1, ENTRIES // n_cols)
    return [slice(start, start + step) for start in range(0, n_rows, step)]
