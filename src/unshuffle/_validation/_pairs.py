"""What is asked of matchings, and of what an assignment is told to do."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

from unshuffle._validation._collections import (
    as_array,
    as_numbers,
    as_rows,
    check_finite,
    check_plain,
    table_shape,
)
from unshuffle._validation._memory import check_memory


def check_frozen(
    frozen: ArrayLike | None,
    n_first: int,
    n_second: int,
    *,
    first: str = "X",
    second: str = "y",
    other: str = "item",
) -> NDArray[np.intp]:
    """Pairs fixed by the user as an integer array of shape (n_frozen, 2), sorted by item.

    `other` is what the second side has: items too, or cells.
    """
    if frozen is None:
        return np.empty((0, 2), dtype=np.intp)
    check_plain(frozen, "`frozen`")
    try:
        pairs = np.asarray(frozen)
    except ValueError as error:
        raise ValueError(
            "`frozen` has rows of different lengths. "
            f"Give one row (index in {first}, index in {second}) for each fixed pair."
        ) from error
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(
            f"`frozen` must have shape (n_frozen, 2), got {pairs.shape}. "
            f"Give one row (index in {first}, index in {second}) for each fixed pair."
        )
    if not np.issubdtype(pairs.dtype, np.integer):
        floating = np.issubdtype(pairs.dtype, np.floating)
        if floating and np.isfinite(pairs).all() and np.all(pairs == np.floor(pairs)):
            pairs = pairs.astype(np.intp)
        else:
            raise ValueError(
                f"`frozen` must hold whole numbers, got dtype {pairs.dtype}. "
                f"Give positions in {first} and {second}, counted from 0."
            )
    for column, size, name, what in ((0, n_first, first, "item"), (1, n_second, second, other)):
        values = pairs[:, column]
        outside = np.flatnonzero((values < 0) | (values >= size))
        if outside.size:
            row = int(outside[0])
            raise ValueError(
                f"`frozen` names {what} {values[row]} of {name} (row {row}), which has {size} "
                f"{what}s. Use positions from 0 to {size - 1}."
            )
        order = np.argsort(values, kind="stable")
        repeated = np.flatnonzero(np.diff(values[order]) == 0)
        if repeated.size:
            rows = order[repeated[0]], order[repeated[0] + 1]
            raise ValueError(
                f"`frozen` repeats {what} {values[rows[0]]} of {name} (rows {rows[0]} and "
                f"{rows[1]}). Each {what} may be frozen once; drop one of the two rows."
            )
    return pairs[np.argsort(pairs[:, 0], kind="stable")].astype(np.intp)


def check_permutation(
    permutation: ArrayLike, n_first: int, n_second: int, *, name: str = "permutation"
) -> NDArray[np.intp]:
    """Injective map into `range(n_second)`, with -1 for unmatched."""
    values = as_array(permutation, f"`{name}`")
    if values.shape != (n_first,) or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"`{name}` must be {n_first} whole numbers, one for each item of X, got shape "
            f"{values.shape} and dtype {values.dtype}."
        )
    used = values[values != -1]
    if used.size and (used.min() < 0 or used.max() >= n_second):
        outside = used.max() if used.max() >= n_second else used.min()
        raise ValueError(
            f"`{name}` names item {outside} of y, which has {n_second} items. "
            f"Use positions from 0 to {n_second - 1}, -1 for unmatched."
        )
    if np.unique(used).size != used.size:
        counts = np.bincount(used.astype(np.intp))
        raise ValueError(
            f"`{name}` uses item {int(counts.argmax())} of y {int(counts.max())} times. "
            "Each item of y may have one partner."
        )
    return values.astype(np.intp)


def check_matches(matches: ArrayLike, name: str) -> NDArray[np.intp]:
    """Positions in y, one for each item of X, -1 for unmatched."""
    values = as_array(matches, f"`{name}`")
    if values.ndim != 1 or values.size == 0 or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"`{name}` must be a list of whole numbers, one for each item of X, got shape "
            f"{values.shape} and dtype {values.dtype}."
        )
    if values.min() < -1:
        raise ValueError(
            f"`{name}` holds {values.min()}. Use positions counted from 0, and -1 for unmatched."
        )
    return values.astype(np.intp)


def check_all_matched(permutation: NDArray[np.intp]) -> None:
    """Refuse to reorder where an item has no partner to put in its place."""
    alone = np.flatnonzero(permutation < 0)
    if alone.size:
        raise ValueError(
            f"{alone.size} of {permutation.size} items of X have no partner (the first is item "
            f"{alone[0]}), so y cannot be put in the order of X. Use `pairs_` to select the "
            "matched items of both."
        )


def check_any_matched(permutation: NDArray[np.intp]) -> None:
    """Refuse to draw kernels of pairs where there are less than two."""
    n_matched = int(np.count_nonzero(permutation >= 0))
    if n_matched < 2:
        count = "None" if n_matched == 0 else "Only one"
        raise ValueError(
            f"{count} of the {permutation.size} items of X has a partner, so there is no common "
            "order to draw the kernels in. Raise `unmatched_cost`, or use `plot`, which also "
            "shows items without a partner."
        )


def check_cost(cost: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Finite matrix of the given shape."""
    values: NDArray[np.float64] = as_rows(as_numbers(cost, "cost"), "cost")
    _check_shape(values, shape, "cost", "items of X by items of y")
    return values


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


def _check_shape(matrix: NDArray[Any], shape: tuple[int, int], name: str, sides: str) -> None:
    if matrix.shape != shape:
        raise ValueError(
            f"`{name}` must have shape {shape} ({sides}), got {matrix.shape}."
            + (" Pass its transpose." if matrix.shape == shape[::-1] else "")
        )


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
