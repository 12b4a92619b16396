"""`solve_assignment`: validation, frozen and forbidden pairs, and the choice of a solver."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

from unshuffle._assign.linear import Assignment, assign, with_certificate
from unshuffle._core.arrays import as_array, as_numbers, check_finite, middle, table_shape
from unshuffle._core.grams import check_frozen, check_shape
from unshuffle._core.parameters import (
    check_flag,
    check_memory,
    check_option,
    check_positive,
    check_real,
)

SOLVERS = ("auto", "exact", "auction")

# Sums of larger costs may overflow.
LARGEST_TOTAL, LARGEST_SINGLE = 1e300, 1e36


def solve_assignment(
    cost: ArrayLike,
    *,
    maximize: bool = False,
    solver: str = "auto",
    prices: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
    forbidden: ArrayLike | None = None,
    unmatched_cost: float | None = None,
    tol: float = 1e-6,
) -> Assignment:
    """Match rows to columns, each at most once, with the smallest total cost.

    All of the smaller side are matched.

    Parameters
    ----------
    cost : array-like of shape (n_rows, n_cols)
        Finite cost of each pair. float32 is solved without a float64 copy.
    maximize : bool, default=False
        Whether to maximize the total instead.
    solver : {"auto", "exact", "auction"}, default="auto"
        "exact" uses SciPy's shortest augmenting paths: optimal, with time up to the cube of the
        size. "auction" is within `tol` of the optimum and much faster for smooth costs, such as
        products of kernel matrices; if it takes too many bids, the exact solver finishes. "auto"
        uses "exact" for small or thin problems and "auction" for others.
    prices : array-like of shape (n_cols,) or None, default=None
        Prices of a similar problem, such as `prices` of its result, to start the auction from.
        They change the time, not what the result is worth; prices too large for these costs are
        ignored.
    frozen : array-like of shape (n_frozen, 2) or None, default=None
        (row, column) pairs to keep whatever they cost, in any order.
    forbidden : array-like of shape (n_rows, n_cols), bool, or None, default=None
        True where a row and a column must not be matched.
    unmatched_cost : float or None, default=None
        Cost of each unmatched row or column. No pair that costs more than 2 `unmatched_cost`
        is matched (with `maximize`, none that gains less than -2 `unmatched_cost`). Larger
        values match more pairs. None matches all of the smaller side.
    tol : float, default=1e-6
        Largest `gap` of the auction. Larger values are faster.

    Returns
    -------
    assignment : Assignment
        `columns`, `value`, `prices`, `gap` and `solver`.

    Notes
    -----
    Prices and gap of "exact" are found from the matching, by longest paths of exchanges: a tenth
    more time as a rule, twice the time for products of two sorted vectors. Memory: a copy of the
    cost, and 1/16 more with the auction. The result does not depend on the number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.assignment import solve_assignment
    >>> cost = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    >>> solve_assignment(cost).columns
    array([1, 0, 2])
    >>> solve_assignment(cost, frozen=[(0, 0)]).columns
    array([0, 1, 2])
    >>> solve_assignment(cost, unmatched_cost=1.25).columns
    array([-1,  1,  2])
    """
    cost, unit = _scaled_cost(check_assignment_cost(cost))
    solver = check_option(solver, "solver", SOLVERS)
    maximize = check_flag(maximize, "maximize")
    tol = check_positive(tol, "tol")
    n_rows, n_cols = cost.shape
    start = None if prices is None else check_prices(prices, n_cols)
    apart = None if unmatched_cost is None else check_real(unmatched_cost, "unmatched_cost")
    kept = check_frozen(frozen, n_rows, n_cols, first="rows", second="columns")
    barred = None if forbidden is None else check_forbidden(forbidden, cost.shape, kept)

    benefit = cost.copy() if maximize else -cost
    sign = unit if maximize else -unit
    offset = float(benefit[kept[:, 0], kept[:, 1]].sum(dtype=np.float64))
    rows = np.delete(np.arange(n_rows), kept[:, 0])
    cols = np.delete(np.arange(n_cols), kept[:, 1])
    if kept.size:
        benefit = benefit[np.ix_(rows, cols)]
        barred = barred[np.ix_(rows, cols)] if barred is not None else None
        start = start[cols] if start is not None else None
    if start is not None:
        # only differences count, and prices may be far larger than the costs
        start = np.clip(start / 2 - start.min() / 2, 0.0, LARGEST_TOTAL * unit) * (2 / unit)
    columns = np.full(n_rows, -1, dtype=np.intp)
    columns[kept[:, 0]] = kept[:, 1]
    if not (rows.size and cols.size):
        return Assignment(columns, sign * offset, None, 0.0, "exact")

    if apart is not None:
        # A match gains 2u - cost over leaving the pair unmatched. Clipped at zero, a full
        # assignment is never worse than a partial one; pairs at zero are unmatched afterwards.
        # A larger u than all other pairs can offset would only lose the costs in rounding.
        most = 2.0 * (min(benefit.shape) + 1.0) * (float(np.abs(benefit).max()) or 1.0)
        apart = float(np.clip(apart, -most * unit, most * unit)) / unit
        benefit += benefit.dtype.type(2 * apart)
        offset -= apart * (rows.size + cols.size)
        stays_apart = benefit < 0
        if barred is not None:
            stays_apart |= barred
        benefit[stays_apart] = 0
    elif barred is not None and barred.any():
        check_feasible(~barred, n_required=min(rows.size, cols.size))
    if apart is None:
        # All of the smaller side are matched, so a constant only costs digits.
        # Other entries than the best of each row may be huge.
        sample = benefit[:: max(1, benefit.shape[0] // 64)]
        constant = middle(sample.max(axis=1)[:, None])[0]
        benefit -= constant
        offset += float(constant) * min(benefit.shape)
        if barred is not None:
            benefit[barred] = -np.inf

    found = assign(benefit, start, tol=tol, solver=solver, offset=offset)
    found = with_certificate(found, benefit, offset=offset)
    matched = found.columns >= 0
    if apart is not None:
        matched[matched] &= ~stays_apart[np.flatnonzero(matched), found.columns[matched]]
    columns[rows[matched]] = cols[found.columns[matched]]
    matched = columns >= 0
    value = unit * float(cost[matched, columns[matched]].sum(dtype=np.float64))
    full_prices = None if found.prices is None else found.prices * unit
    if full_prices is not None and kept.size:
        # frozen columns had no price; the mean is a neutral start if they are freed
        of_free = full_prices
        full_prices = np.full(n_cols, of_free.mean())
        full_prices[cols] = of_free
    return Assignment(columns, value, full_prices, found.gap, found.solver)


def _scaled_cost(cost: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Costs scaled so that their sums neither overflow nor underflow, and the unit."""
    largest = max(float(cost.max()), -float(cost.min()))
    n_pairs = min(cost.shape)
    if not largest * n_pairs < LARGEST_TOTAL:
        raise ValueError(
            f"`cost` holds {largest:.3g}, and a total of {n_pairs} of these does not fit into a "
            "float. Divide all costs by a common number; to rule out pairs, use `forbidden`."
        )
    if cost.dtype == np.float32 and largest * n_pairs > LARGEST_SINGLE:
        cost = cost.astype(np.float64)
    if 0.0 < largest < 2.0**-700:
        # A power of two is exact.
        return cost * 2.0**600, 2.0**-600
    return cost, 1.0


def check_assignment_cost(cost: Any) -> NDArray[Any]:
    """Finite C-contiguous matrix of float32 or float64, at least 1 x 1."""
    n_rows, n_cols = table_shape(cost)
    check_memory(
        # the cost, its negative, and a copy by SciPy
        24 * n_rows * n_cols,
        what=f"Assigning {n_rows:,} rows to {n_cols:,} columns",
        instead="Pass fewer rows or columns.",
    )
    values: NDArray[Any]
    if isinstance(cost, np.ndarray) and cost.ndim == 2 and cost.dtype.type is np.float32:
        values = np.require(cost, np.float32, ("C", "A", "W"))  # no copy of twice the size
    else:
        values = as_matrix(cost, "cost")
    if 0 in values.shape:
        raise ValueError(
            f"`cost` is empty: it has shape {values.shape}. Pass at least one row and one column."
        )
    check_finite(values, "cost")
    return values


def as_matrix(values: Any, name: str) -> NDArray[np.float64]:
    """2-D numbers from `as_numbers`; refuses text, even where it spells numbers."""
    if values is None:
        raise ValueError(f"`{name}` is None. Pass a matrix of numbers, rows by columns.")
    _refuse_text(values, name)
    numbers = as_numbers(values, name)
    if numbers.ndim != 2 and numbers.shape != (0,):
        advice = "Pass one list of numbers for each row."
        if numbers.ndim == 1:
            advice = (
                f"Pass [{name}] for a single row, {name}.reshape(n_rows, n_columns) for a flat "
                "matrix, or scipy.spatial.distance.squareform of the output of pdist."
            )
        raise ValueError(
            f"`{name}` must be 2-D, rows by columns, got {numbers.ndim} dimension(s), shape "
            f"{numbers.shape}. {advice}"
        )
    return numbers


def _refuse_text(values: Any, name: str) -> None:
    """Refuse strings, of which `as_numbers` would convert those that spell numbers."""
    entries = values.to_numpy() if hasattr(values, "to_numpy") else values
    try:
        known = isinstance(entries, np.ndarray | list | tuple | str | bytes)
        entries = np.asarray(entries) if known else np.empty(0)
    except ValueError:  # rows of different lengths, refused elsewhere
        return
    if entries.dtype.kind not in "USO":
        return
    text = next((each for each in entries.flat if isinstance(each, str | bytes)), None)
    if text is not None:
        shown = bytes(text) if isinstance(text, bytes) else str(text)
        raise ValueError(
            f"`{name}` holds text: {shown!r:.60}. Pass numbers; if the text spells numbers, "
            "convert it first, as np.asarray(..., dtype=float) does."
        )


def check_forbidden(
    forbidden: ArrayLike, shape: tuple[int, int], frozen: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Boolean matrix of the given shape that does not forbid a frozen pair."""
    mask = as_array(forbidden, "`forbidden`")
    if mask.dtype != bool:
        raise ValueError(
            f"`forbidden` must be a boolean matrix, got dtype {mask.dtype}. "
            "Pass True where a row and a column must not be matched."
        )
    check_shape(mask, shape, "forbidden", "rows by columns of the cost")
    clash = np.flatnonzero(mask[frozen[:, 0], frozen[:, 1]])
    if clash.size:
        row, column = frozen[clash[0]]
        raise ValueError(
            f"The pair (row {row}, column {column}) is both frozen and forbidden. "
            "Remove it from one of them."
        )
    return mask


def check_feasible(allowed: NDArray[np.bool_], *, n_required: int) -> None:
    """Raise ValueError if fewer than `n_required` pairs can be matched at once."""
    columns = maximum_bipartite_matching(sparse.csr_array(allowed), perm_type="column")
    n_matched = int((columns >= 0).sum())
    if n_matched < n_required:
        raise ValueError(
            f"`forbidden` leaves no assignment: at most {n_matched} of {n_required} pairs can be "
            "matched at once. Forbid fewer pairs, or set `unmatched_cost` to leave some unmatched."
        )


def check_prices(prices: ArrayLike, n_columns: int) -> NDArray[np.float64]:
    """Finite vector with one price for each column."""
    _refuse_text(prices, "prices")
    values = as_numbers(prices, "`prices`")
    if values.shape != (n_columns,):
        raise ValueError(
            f"`prices` must have shape ({n_columns},), one for each column, got {values.shape}. "
            "Pass the prices of a problem with the same columns, or None."
        )
    if not np.isfinite(values).all():
        raise ValueError("`prices` holds NaN or infinity. Pass None to start without prices.")
    return values
