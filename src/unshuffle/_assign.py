"""Assignments for loops that solve many: no checks, one or many at a time."""

from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from unshuffle._parallel import spans, wait_for
from unshuffle._printing import short_repr

Array = NDArray[np.float64]
Order = NDArray[np.intp]

# From this size on, an auction is the faster way to prices that a path can start from.
LARGE = 250
# Below these many rows (of the smaller side) the exact solver is as fast as the auction.
SMALLEST_COLD = 180
SMALLEST_WARM = 130
# The auction's stand-in rows make thin problems no cheaper; the exact solver's are.
THINNEST = 0.5
# Smooth costs take 30 to 60 bids a row; where this many are not enough, the exact
# solver is the faster way to finish.
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
        Total cost of the matched pairs, in the sense the caller gave it, without
        the cost of what stays unmatched.
    prices : ndarray of shape (n_cols,) or None
        Price of each column: what the rows that did not get it would have paid for
        it. Pass it back as `prices` to solve a similar problem faster. None where
        the solver gives none.
    gap : float
        Upper bound on the loss against the best assignment, certified by the
        prices: the absolute loss divided by |objective|, or by its distance from
        that of typical pairs where that is less, since a constant added to all
        costs makes no loss smaller; at least by what the costs of a row differ by.
        The objective is `value` plus, where it was given, `unmatched_cost` for
        everything that stayed unmatched. 0.0 is optimal.
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
    """Assignment that maximises a matrix of benefits, without looking at what it is given.

    For loops that solve many assignments; everyone else wants `solve_assignment`.
    """
    n_rows, n_cols = benefit.shape
    if solver == "auto":
        smallest = SMALLEST_COLD if prices is None else SMALLEST_WARM
        fewer, more = sorted((n_rows, n_cols))
        if fewer < smallest or fewer < THINNEST * more:
            solver = "exact"
    if solver == "exact" or _auction() is None:
        return _exact(benefit)
    if n_rows <= n_cols:
        return _by_auction(benefit, prices, tol, offset) or _exact(benefit)
    # The auction wants the smaller side in rows: swap the sides, and what the prices price.
    swapped = np.ascontiguousarray(benefit.T)
    row_prices = None if prices is None else _worth(benefit, prices)
    found = _by_auction(swapped, row_prices, tol, offset)
    if found is None or found.prices is None:
        return _exact(benefit)
    columns = np.full(n_rows, -1, dtype=np.intp)
    columns[found.columns] = np.arange(n_cols)
    return Assignment(columns, found.value, _worth(swapped, found.prices), found.gap, found.solver)


def _exact(benefit: NDArray[Any]) -> Assignment:
    solve = partial(linear_sum_assignment, maximize=True)
    rows, cols = wait_for(solve, benefit) if benefit.size > LONG else solve(benefit)
    columns = np.full(benefit.shape[0], -1, dtype=np.intp)
    columns[rows] = cols
    value = float(benefit[rows, cols].sum(dtype=np.float64))
    return Assignment(columns, value, None, 0.0, "exact")


def _by_auction(
    benefit: NDArray[Any], prices: NDArray[np.float64] | None, tol: float, offset: float
) -> Assignment | None:
    """Result of the auction, or None where it had to give up."""
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
    """Return the compiled auction, loaded when first needed; None where numba is missing."""
    try:
        from unshuffle import _auction as module
    except ImportError:
        return None
    return module


def assign_many(costs: Array, prices: Array) -> NDArray[np.intp]:
    """Match each row of each problem to a column of its own so that the total cost is least.

    Starts from `prices`, those of a similar problem or zeros, and replaces them by those of the
    solution. Twice as fast as SciPy's solver on the squared distances of 20 to 180 points; from
    the prices of a similar problem, seven to twelve times.

    Examples
    --------
    >>> import numpy as np
    >>> costs = np.array([[[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]]])
    >>> assign_many(costs, np.zeros((1, 3)))
    array([[1, 0, 2]])
    """
    from unshuffle._assign_loops import assign_each

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
            "Some costs of an assignment are infinite or NaN, or so large that their sums are. "
            "Divide the points by a common number first."
        )
    return columns


def _assign_large(cost: Array, price: Array, column_of: NDArray[np.intp]) -> bool:
    """One problem, a few rows to a compiled call."""
    from unshuffle._assign_loops import augment_rows, take_cheapest

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


def nearest_order(target: Array, points: Array) -> Order:
    """Order of the points of one bag in which they lie closest to the target, slot by slot."""
    return assign(-slot_distances(target, points)).columns


def nearest_orders(
    target: Array,
    points: Array,
    *,
    weights: Array | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Order:
    """`nearest_order` of many bags, towards one target or each towards its own.

    `weights` is what a squared distance costs in each slot; points that are not `present` may go
    to any slot at no cost.
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


def slot_distances(target: Array, points: Array) -> Array:
    """Squared distances from each slot of the target (rows) to each point (columns).

    Faster than those of `_distances`, and good enough to assign by: digits that close points far
    from zero lose are not won back, and a distance may come out just below zero.
    """
    # Not inner products, though the optimum is the same: the solver is several times faster
    # where most entries are far above the least.
    distances = target @ points.T
    distances *= -2.0
    distances += np.einsum("nr,nr->n", target, target)[:, None]
    distances += np.einsum("nr,nr->n", points, points)[None, :]
    return np.asarray(distances)
