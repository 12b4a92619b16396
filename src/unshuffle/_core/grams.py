"""Checks of kernel matrices, frozen pairs and permutations."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import (
    as_array,
    as_numbers,
    as_rows,
    check_magnitude,
    check_n_items,
    check_plain,
    is_text,
    table_shape,
)
from unshuffle._core.parameters import check_kernel_memory

Kernel = str | Callable[..., Any]
KERNELS = ("linear", "rbf", "laplacian", "chi2", "geodesic", "local", "text", "precomputed")


def check_gram(
    gram: ArrayLike, name: str, items: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """Square, symmetric, finite kernel matrix as float64.

    `items` are the user's numbers of its rows, if it is a part of a larger matrix.
    """
    _check_gram_memory(gram)
    K = as_rows(as_numbers(gram, name), name)
    check_magnitude(K, name)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"{name} must be a square kernel matrix, got shape {K.shape}. "
            "Pass similarities between all items of one collection, or choose a kernel "
            'other than "precomputed" to pass features.'
        )
    check_n_items(K.shape[0], name)
    # In blocks, since all differences at once take several times the memory of K.
    worst, i, j = 0.0, 0, 0
    for start in range(0, K.shape[0], 256):
        gaps = np.abs(K[start : start + 256] - K[:, start : start + 256].T)
        row, column = np.unravel_index(int(gaps.argmax()), gaps.shape)
        if gaps[row, column] > worst:
            worst, i, j = float(gaps[row, column]), start + int(row), int(column)
    if worst > 1e-6 * max(float(K.max()), -float(K.min()), np.finfo(float).tiny):
        first, second = (i, j) if items is None else (int(items[i]), int(items[j]))
        raise ValueError(
            f"{name} is not symmetric: entry ({first}, {second}) is {K[i, j]:.6g} and "
            f"({second}, {first}) is {K[j, i]:.6g}. Pass ({name} + {name}.T) / 2 if the "
            "difference does not matter."
        )
    symmetric: NDArray[np.float64] = K + K.T
    symmetric *= 0.5
    return symmetric


def _check_gram_memory(gram: Any) -> None:
    """Refuse a kernel matrix whose symmetric copy would not fit into free memory."""
    n_items, n_columns = table_shape(gram)
    ready = isinstance(gram, np.ndarray) and gram.dtype == np.float64 and gram.flags.carray
    check_kernel_memory(n_items, n_columns, n_copies=1.0 if ready else 2.0)


def check_centered_norm(norm: float, scale: float, name: str) -> float:
    """Refuse to scale a kernel matrix that is zero after centering."""
    if not norm > 1e-13 * scale:
        raise ValueError(
            f"The kernel matrix of {name} is zero after centering: its items are all equally "
            "similar, so it cannot be scaled. Drop this kernel, or check its columns."
        )
    return norm


def check_kernel_list(kernels: Sequence[Any]) -> list[Any]:
    """Non-empty list of kernels."""
    if len(kernels) == 0:
        raise ValueError('`kernel` is an empty list. Name at least one kernel, such as ["rbf"].')
    return list(kernels)


def check_no_weights(weights: Any) -> None:
    """Refuse weights of kernels where there is only one kernel."""
    if weights is not None:
        raise ValueError(
            "Kernel weights were given for a single kernel. Pass a list of kernels, or leave "
            "the weights out."
        )


def check_per_kernel(gamma: Any, n_kernels: int) -> list[Any]:
    """One width for each kernel, from a list or a single value for all."""
    if not isinstance(gamma, list | tuple | np.ndarray) or np.ndim(gamma) == 0:
        return [gamma] * n_kernels
    if len(gamma) != n_kernels:
        raise ValueError(
            f"`gamma` has {len(gamma)} entries for {n_kernels} kernel(s). "
            "Give one for each kernel, or a single value for all."
        )
    return list(gamma)


def check_kernel_weights(weights: ArrayLike | None, n_kernels: int) -> NDArray[np.float64]:
    """Non-negative weights, one for each kernel, not all zero; all one by default."""
    if weights is None:
        return np.ones(n_kernels)
    try:
        values = as_numbers(weights, "Kernel weights")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Kernel weights must be numbers, got {weights!r}. Give one for each kernel."
        ) from error
    if values.shape != (n_kernels,):
        raise ValueError(
            f"Kernel weights have shape {values.shape} for {n_kernels} kernel(s). "
            "Give one number for each kernel."
        )
    if not np.all(np.isfinite(values)) or values.min() < 0 or values.max() == 0:
        raise ValueError(
            f"Kernel weights must be finite, at least 0 and not all 0, got {values.tolist()}. "
            "Leave them out to weight all kernels equally."
        )
    return values


def check_frozen(
    frozen: ArrayLike | None,
    n_first: int,
    n_second: int,
    *,
    first: str = "X",
    second: str = "y",
    other: str = "item",
    name: str = "frozen",
) -> NDArray[np.intp]:
    """Pairs fixed by the user as an integer array of shape (n_frozen, 2), sorted by item.

    `other` is the word for elements of the second side: "item" or "cell". `name` is that of the
    parameter.
    """
    if frozen is None:
        return np.empty((0, 2), dtype=np.intp)
    check_plain(frozen, f"`{name}`")
    try:
        pairs = np.asarray(frozen)
    except ValueError as error:
        raise ValueError(
            f"`{name}` has rows of different lengths. "
            f"Give one row (index in {first}, index in {second}) for each fixed pair."
        ) from error
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(
            f"`{name}` must have shape (n_frozen, 2), got {pairs.shape}. "
            f"Give one row (index in {first}, index in {second}) for each fixed pair."
        )
    if not np.issubdtype(pairs.dtype, np.integer):
        floating = np.issubdtype(pairs.dtype, np.floating)
        if floating and np.isfinite(pairs).all() and np.all(pairs == np.floor(pairs)):
            pairs = pairs.astype(np.intp)
        else:
            raise ValueError(
                f"`{name}` must hold whole numbers, got dtype {pairs.dtype}. "
                f"Give positions in {first} and {second}, counted from 0."
            )
    for column, size, side, what in ((0, n_first, first, "item"), (1, n_second, second, other)):
        values = pairs[:, column]
        outside = np.flatnonzero((values < 0) | (values >= size))
        if outside.size:
            row = int(outside[0])
            raise ValueError(
                f"`{name}` names {what} {values[row]} of {side} (row {row}), which has {size} "
                f"{what}s. Use positions from 0 to {size - 1}."
            )
        order = np.argsort(values, kind="stable")
        repeated = np.flatnonzero(np.diff(values[order]) == 0)
        if repeated.size:
            rows = order[repeated[0]], order[repeated[0] + 1]
            raise ValueError(
                f"`{name}` repeats {what} {values[rows[0]]} of {side} (rows {rows[0]} and "
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
    counts = np.bincount(used.astype(np.intp))
    if counts.max(initial=0) > 1:
        raise ValueError(
            f"`{name}` uses item {int(counts.argmax())} of y {int(counts.max())} times. "
            "Each item of y may have one partner."
        )
    return values.astype(np.intp)


def check_shape(matrix: NDArray[Any], shape: tuple[int, int], name: str, sides: str) -> None:
    if matrix.shape != shape:
        raise ValueError(
            f"`{name}` must have shape {shape} ({sides}), got {matrix.shape}."
            + (" Pass its transpose." if matrix.shape == shape[::-1] else "")
        )


def check_points_for_width(n_points: int, parameter: str) -> None:
    """Refuse to estimate a kernel width from fewer than two points."""
    if n_points < 2:
        raise ValueError(
            f"`{parameter}` is estimated from distances between points, but the bags hold "
            f"{n_points} point (n_samples = 1). Pass more points, or a number as {parameter}."
        )


def count_items(X: Any, kernel: Any, name: str = "X") -> int:
    """Number of items of unvalidated input, for early memory checks; 0 if unknown."""
    several = isinstance(kernel, list | tuple) and len(kernel) > 0
    parts = collection_for_each(X, len(kernel), name) if several else [X]
    return max(table_shape(part)[0] for part in parts)


def gram_copies(kernel: Any) -> float:
    """Matrices of n^2 numbers that `combined_gram` holds at its peak, including the result."""
    if isinstance(kernel, list | tuple):
        return 1.0 + max((gram_copies(each) for each in kernel), default=0.0)
    return 2.2 if isinstance(kernel, str) and kernel == "precomputed" else 3.0


def collection_for_each(X: Any, n_kernels: int, name: str) -> list[Any]:
    """One collection for each kernel."""
    if isinstance(X, np.ndarray) and X.ndim == 3:
        X = list(X)
    if isinstance(X, list | tuple) and len(X) > 0 and all(map(is_collection, X)):
        _check_one_collection_per_kernel(len(X), n_kernels, name)
        return list(X)
    return [X] * n_kernels


def is_collection(item: Any) -> bool:
    """Whether this is a collection, not a single item (a row of numbers or a string)."""
    if isinstance(item, str):
        return False
    if hasattr(item, "shape"):
        return len(item.shape) == 2 or is_text(item)
    if is_text(item):
        return True
    return (
        isinstance(item, list | tuple)
        and len(item) > 0
        and all(isinstance(row, list | tuple) or np.ndim(row) == 1 for row in item)
    )


def _check_one_collection_per_kernel(n_collections: int, n_kernels: int, name: str) -> None:
    """Refuse a list of collections that differs in length from the list of kernels."""
    if n_collections != n_kernels:
        raise ValueError(
            f"{name} is a list of {n_collections} collections, but there are {n_kernels} kernels. "
            "Pass one collection for each kernel, or a single one for all of them."
        )
