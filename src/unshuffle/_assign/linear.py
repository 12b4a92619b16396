"""Linear assignment without input checks, for loops that solve many problems."""

from dataclasses import dataclass, replace
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from unshuffle._assign.certificates import NEGLIGIBLE, are_useful, certified, rounding_error
from unshuffle._run.parallel import spans, wait_for
from unshuffle._run.printing import short_repr
from unshuffle._run.types import Floats, Order

# From this size on, an auction finds starting prices for augmenting paths faster.
LARGE = 250
# Below these many rows (of the smaller side) the exact solver is as fast as the auction.
SMALLEST_COLD = 180
SMALLEST_WARM = 130
# From this size on, paths from given prices are faster than SciPy without.
SMALLEST_PATHS = 32
# The auction pads thin problems to square ones; the exact solver gains from their shape.
THINNEST = 0.5
# Smooth costs take 30 to 60 bids a row; beyond this many, the exact solver is faster.
MAX_BIDS_PER_ROW = 300
# Costs from which the exact solver may take a tenth of a second or more.
LONG = 250_000


@dataclass(frozen=True)
class Assignment:
    """A matching of rows to columns, with a bound on what it loses to the best one.

    Attributes
    ----------
    columns : ndarray of shape (n_rows,), dtype intp
        Column matched to each row; -1 where the row is unmatched.
    value : float
        Total of the matched pairs in the caller's sign, without the cost of unmatched items.
    prices : ndarray of shape (n_cols,) or None
        Dual price of each column. Pass it as `prices` to solve a similar problem faster. None if
        all rows or all columns are frozen.
    gap : float
        Upper bound on the relative loss against the best assignment, computed from the prices
        whichever solver ran; 0.0 is optimal up to rounding. The absolute loss is divided by
        ``|objective|`` or, if smaller, by the distance of the objective from that of typical pairs
        (a constant added to all costs does not make the loss smaller), but at least by the spread
        of the costs in a row. The objective is `value` plus `unmatched_cost`, if given, for every
        unmatched item.
    solver : str
        "exact" or "auction".

    Examples
    --------
    >>> from unshuffle.assignment import solve_assignment
    >>> found = solve_assignment([[4.0, 1.0], [2.0, 3.0]])
    >>> found.columns, found.value
    (array([1, 0]), 3.0)
    """

    columns: NDArray[np.intp]
    value: float
    prices: NDArray[np.float64] | None
    gap: float
    solver: str

    def __repr__(self) -> str:
        return short_repr(self)


def assign(
    benefit: NDArray[Any],
    prices: NDArray[np.float64] | None = None,
    *,
    tol: float = 1e-6,
    solver: str = "auto",
    offset: float = 0.0,
) -> Assignment:
    """Assignment that maximizes the total benefit; `solve_assignment` without its checks.

    `prices` that are out of proportion to the benefits are ignored. Exact results have a gap of
    NaN and may lack prices: see `with_certificate`.
    """
    n_rows, n_cols = benefit.shape
    if solver == "auto":
        smallest = SMALLEST_COLD if prices is None else SMALLEST_WARM
        fewer, more = sorted((n_rows, n_cols))
        if prices is not None and n_rows == n_cols and fewer < smallest and _auction():
            return _by_paths(benefit, prices) or _exact(benefit)
        if fewer < smallest or fewer < THINNEST * more:
            solver = "exact"
    if solver == "exact" or _auction() is None:
        return _exact(benefit)
    if prices is not None and not are_useful(prices, benefit):
        prices = None
    if n_rows <= n_cols:
        return _by_auction(benefit, prices, tol, offset) or _exact(benefit)
    # The auction needs the smaller side in rows: swap the sides and their prices.
    swapped = np.ascontiguousarray(benefit.T)
    row_prices = None if prices is None else _worth(benefit, prices)
    found = _by_auction(swapped, row_prices, tol, offset)
    if found is None or found.prices is None:
        return _exact(benefit)
    columns = np.full(n_rows, -1, dtype=np.intp)
    columns[found.columns] = np.arange(n_cols)
    return Assignment(columns, found.value, _worth(swapped, found.prices), found.gap, found.solver)


def with_certificate(
    found: Assignment, benefit: NDArray[Any], *, offset: float = 0.0
) -> Assignment:
    """The same assignment with prices that prove it, and a gap computed from them."""
    if not np.isnan(found.gap):
        return found
    n_rows, n_cols = benefit.shape
    if n_rows <= n_cols:
        prices, gap = certified(benefit, found.columns, offset=offset)
        return replace(found, prices=prices, gap=gap)
    swapped = np.ascontiguousarray(benefit.T)
    rows = np.empty(n_cols, dtype=np.intp)
    matched = np.flatnonzero(found.columns >= 0)
    rows[found.columns[matched]] = matched
    row_prices, gap = certified(swapped, rows, offset=offset)
    return replace(found, prices=_worth(swapped, row_prices), gap=gap)


def _exact(benefit: NDArray[Any]) -> Assignment:
    solve = partial(linear_sum_assignment, maximize=True)
    rows, cols = wait_for(solve, benefit) if benefit.size > LONG else solve(benefit)
    columns = np.full(benefit.shape[0], -1, dtype=np.intp)
    columns[rows] = cols
    value = float(benefit[rows, cols].sum(dtype=np.float64))
    return Assignment(columns, value, None, np.nan, "exact")


def _by_paths(benefit: NDArray[Any], prices: NDArray[np.float64]) -> Assignment | None:
    """Exact result for few items, from given prices.

    None if a benefit is infinite, or if the prices took digits from the benefits.
    """
    from unshuffle._assign.paths import augment_rows, take_cheapest

    n = len(benefit)
    costs = -benefit.astype(np.float64)
    final = prices - prices.min()  # only differences count
    columns, row_of, free = (np.empty(n, dtype=np.intp) for _ in range(3))
    free = free[: take_cheapest(costs, final, row_of, columns, free)]
    if not augment_rows(costs, final, row_of, columns, free):
        return None
    rows = np.arange(n)
    held = costs[rows, columns]
    with np.errstate(invalid="ignore", over="ignore"):
        loss = float((held + final[columns] - (costs + final).min(axis=1)).sum())
    largest = float(np.abs(held).max() + np.abs(final).max())
    typical = float(np.abs(costs.min(axis=1)).max())
    if not loss <= rounding_error(n, largest) <= NEGLIGIBLE * n * typical:
        return None
    value = float(benefit[rows, columns].sum(dtype=np.float64))
    return Assignment(columns, value, final, np.nan, "exact")


def _by_auction(
    benefit: NDArray[Any], prices: NDArray[np.float64] | None, tol: float, offset: float
) -> Assignment | None:
    """Result of the auction, or None if it gave up."""
    module = _auction()
    if module is None:
        return None
    found, _ = module.auction(
        benefit, prices, tol=tol, offset=offset, max_bids_per_row=MAX_BIDS_PER_ROW
    )
    if found is None:
        return None
    columns, value, column_prices, gap = found
    return Assignment(columns, value, column_prices, gap, "auction")


def _worth(benefit: NDArray[Any], prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Benefit less price of each row's best column: the prices of the rows."""
    worth: NDArray[np.float64] = (benefit - prices).max(axis=1)
    useless = worth == -np.inf  # rows with no allowed column: cheapest of all
    if useless.any():
        worth[useless] = worth[~useless].min()
    return worth


@cache
def _auction() -> ModuleType | None:
    """Return the compiled auction, loaded on first use; None if numba is missing."""
    try:
        from unshuffle._assign import auction as module
    except ImportError:
        return None
    return module


def assign_many(costs: Floats, prices: Floats) -> NDArray[np.intp]:
    """Assignment of least total cost for each of several square problems.

    Starts from `prices`, zeros or those of a similar problem, and replaces them by the prices of
    the solution. Twice as fast as SciPy's solver on squared distances of 20 to 180 points, and
    seven to twelve times as fast from the prices of a similar problem.

    Examples
    --------
    >>> import numpy as np
    >>> costs = np.array([[[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]]])
    >>> assign_many(costs, np.zeros((1, 3)))
    array([[1, 0, 2]])
    """
    from unshuffle._assign.paths import assign_each

    n_problems, n = costs.shape[:2]
    columns = np.empty((n_problems, n), dtype=np.intp)
    if n >= LARGE:
        parts = zip(costs, prices, columns, strict=True)
        solved = all(_assign_large(*each) for each in parts)
    else:
        solved = all(
            assign_each(costs[start:stop], prices[start:stop], columns[start:stop])
            for start, stop in spans(n_problems, 2.0 * n**3)
        )
    if not solved:
        raise ValueError(
            "Some costs of an assignment are infinite or NaN, or their sums overflow. Divide the "
            "points by a common number first."
        )
    return columns


def _assign_large(cost: Floats, price: Floats, column_of: NDArray[np.intp]) -> bool:
    """Solve one large problem, a few rows in each compiled call."""
    from unshuffle._assign.paths import augment_rows, take_cheapest

    n = len(cost)
    if not price.any():
        found = assign(-cost).prices
        price[:] = 0.0 if found is None else found
    row_of, free = np.empty(n, dtype=np.intp), np.empty(n, dtype=np.intp)
    free = free[: take_cheapest(cost, price, row_of, column_of, free)]
    return all(
        augment_rows(cost, price, row_of, column_of, free[start:stop])
        for start, stop in spans(free.size, 2.0 * n**2)
    )


def nearest_order(target: Floats, points: Floats) -> Order:
    """Order of the points of one bag that brings them closest to the rows of the target."""
    return assign(-slot_distances(target, points)).columns


def nearest_orders(
    target: Floats,
    points: Floats,
    *,
    weights: Floats | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Order:
    """`nearest_order` of many bags, with one target for all or one for each.

    `weights` multiply the squared distances to each target row; points that are not `present`
    cost nothing anywhere.
    """
    orders = np.empty(points.shape[:2], dtype=np.intp)
    for bag, each in enumerate(points):
        cost = slot_distances(target if target.ndim == 2 else target[bag], each)
        if weights is not None:
            cost *= weights[:, None]
        if present is not None:
            cost *= present[bag][None, :]
        orders[bag] = assign(-cost).columns
    return orders


def slot_distances(target: Floats, points: Floats) -> Floats:
    """Squared distances from each target row (rows) to each point (columns).

    Faster than `squared_distances` and precise enough for an assignment: cancellation is not
    corrected, and a distance may be slightly negative.
    """
    # Inner products have the same optimum, but the solver is several times faster when most
    # entries are far above the smallest.
    distances = target @ points.T
    distances *= -2.0
    distances += np.einsum("nr,nr->n", target, target)[:, None]
    distances += np.einsum("nr,nr->n", points, points)[None, :]
    return np.asarray(distances)
