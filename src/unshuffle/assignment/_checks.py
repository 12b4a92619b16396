"""Checks of costs and pairs."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

from unshuffle._arrays import as_array, as_numbers, check_finite, table_shape
from unshuffle._grams import _check_shape
from unshuffle._parameters import check_memory


def check_assignment_cost(cost: Any) -> NDArray[Any]:
    """Finite C-contiguous matrix, float32 kept and all else as float64, at least 1 x 1."""
    n_rows, n_cols = table_shape(cost)
    check_memory(
        # the cost, its negative, and what SciPy's solver makes of that
        24 * n_rows * n_cols,
        what=f"Assigning {n_rows:,} rows to {n_cols:,} columns",
        instead="Pass fewer rows or columns, such as those that are likely partners.",
    )
    values: NDArray[Any]
    if isinstance(cost, np.ndarray) and cost.dtype.type is np.float32:
        values = np.require(cost, np.float32, ("C", "A", "W"))  # no copy of twice the size
    else:
        values = as_numbers(cost, "cost")
    if values.ndim != 2 and values.size:
        raise ValueError(f"`cost` must be 2-D, rows by columns, got shape {values.shape}.")
    if 0 in values.shape:
        raise ValueError(
            f"`cost` is empty: it has shape {values.shape}. Pass at least one row and one column."
        )
    check_finite(values, "cost")
    return values


def check_forbidden(forbidden: ArrayLike, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Boolean matrix of the given shape."""
    mask = as_array(forbidden, "`forbidden`")
    if mask.dtype != bool:
        raise ValueError(
            f"`forbidden` must be a boolean matrix, got dtype {mask.dtype}. "
            "Pass True where a row and a column must not be matched."
        )
    _check_shape(mask, shape, "forbidden", "rows by columns of the cost")
    return mask


def check_frozen_allowed(frozen: NDArray[np.intp], forbidden: NDArray[np.bool_]) -> None:
    """Refuse a pair that is both frozen and forbidden."""
    clash = np.flatnonzero(forbidden[frozen[:, 0], frozen[:, 1]])
    if clash.size:
        row, column = frozen[clash[0]]
        raise ValueError(
            f"The pair (row {row}, column {column}) is both frozen and forbidden. "
            "Take it out of one of the two."
        )


def check_feasible(allowed: NDArray[np.bool_], *, n_required: int) -> None:
    """Refuse forbidden pairs that leave too few pairs to match `n_required` rows and columns."""
    columns = maximum_bipartite_matching(sparse.csr_array(allowed), perm_type="column")
    n_matched = int((columns >= 0).sum())
    if n_matched < n_required:
        raise ValueError(
            f"`forbidden` leaves no assignment: at most {n_matched} of {n_required} pairs can be "
            "matched at once. Forbid fewer pairs, or set `unmatched_cost` so that some stay apart."
        )


def check_prices(prices: ArrayLike, n_columns: int) -> NDArray[np.float64]:
    """Finite vector with one price for each column."""
    values = as_numbers(prices, "`prices`")
    if values.shape != (n_columns,):
        raise ValueError(
            f"`prices` must have shape ({n_columns},), one for each column, got {values.shape}. "
            "Pass the prices of a problem with the same columns, or None."
        )
    if not np.isfinite(values).all():
        raise ValueError("`prices` holds NaN or infinity. Pass None to start afresh.")
    return values
