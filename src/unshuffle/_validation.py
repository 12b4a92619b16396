"""Every check of what a user passes in, and every message that says what is wrong.

Messages say what was wrong, what arrived and what to do, in that order.
"""

import os
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

Frozen = NDArray[np.intp]


def is_text(collection: Any) -> bool:
    """Tell whether `collection` is a sequence of strings."""
    if isinstance(collection, str):
        return False
    if isinstance(collection, np.ndarray):
        if collection.dtype.kind in "US":
            return collection.ndim == 1
        if collection.dtype != object or collection.ndim != 1:
            return False
    elif not hasattr(collection, "__len__") or sparse.issparse(collection):
        return False
    if getattr(collection, "ndim", 1) != 1:
        return False
    return len(collection) > 0 and all(isinstance(item, str) for item in collection)


def check_vectors(X: Any, name: str, *, kernel: Any = "rbf") -> Any:
    """Finite 2-D float array (dense, or CSR if sparse) with at least two rows."""
    if isinstance(X, str) or is_text(X):
        raise ValueError(
            f"{name} holds strings, but kernel={kernel!r} compares numbers. "
            'Pass kernel="text" to compare documents, or turn the items into vectors first.'
        )
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        input_name=name,
        ensure_min_samples=1,
        estimator="unshuffle",
    )
    check_n_items(X.shape[0], name)
    return X


def check_documents(documents: Any, name: str) -> list[str]:
    """Documents as a list of at least two strings."""
    if isinstance(documents, str):
        raise ValueError(
            f"{name} is one string. Pass a list with one string for each document."
        )
    if len(documents) == 0:
        raise ValueError(f"{name} is empty: found 0 documents. Pass at least two.")
    if not is_text(documents):
        raise ValueError(
            f'{name} must be a list of str with kernel="text"; '
            f"item 0 is a {type(next(iter(documents))).__name__}. "
            "Read files into strings first, or choose another kernel."
        )
    check_n_items(len(documents), name)
    return [str(document) for document in documents]


def check_n_items(n_items: int, name: str) -> None:
    """Refuse a collection that has no pair of items to compare."""
    if n_items < 2:
        raise ValueError(
            f"{name} has {n_items} item(s) (n_samples = {n_items}). Order is found from the "
            "similarities inside a collection, so each needs at least two items."
        )


def check_gram(K: ArrayLike, name: str) -> NDArray[np.float64]:
    """Square, symmetric, finite kernel matrix as float64."""
    K = check_array(K, dtype=np.float64, input_name=name, estimator="unshuffle")
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"{name} must be a square kernel matrix, got shape {K.shape}. "
            "Pass similarities between all items of one collection, or choose a kernel "
            'other than "precomputed" to pass features.'
        )
    check_n_items(K.shape[0], name)
    asymmetry = float(np.abs(K - K.T).max())
    if asymmetry > 1e-6 * max(float(np.abs(K).max()), np.finfo(float).tiny):
        i, j = np.unravel_index(int(np.abs(K - K.T).argmax()), K.shape)
        raise ValueError(
            f"{name} is not symmetric: entry ({i}, {j}) is {K[i, j]:.6g} and ({j}, {i}) is "
            f"{K[j, i]:.6g}. Pass ({name} + {name}.T) / 2 if the difference means nothing."
        )
    return (K + K.T) / 2


def check_varied(K: NDArray[np.float64], name: str) -> None:
    """Refuse a kernel matrix that tells no item from another."""
    n_items = K.shape[0]
    off_diagonal = K[~np.eye(n_items, dtype=bool)] if n_items > 2 else K.ravel()
    scale = float(np.abs(K).max())
    if float(np.ptp(off_diagonal)) <= 1e-12 * scale:
        raise ValueError(
            f"All items of {name} are equally similar to each other (similarity "
            f"{float(off_diagonal.flat[0]):.6g}), so nothing tells one from another. "
            "Check that the right columns were passed, or choose another kernel."
        )


def check_frozen(
    frozen: ArrayLike | None, n_first: int, n_second: int, *, first: str = "X", second: str = "y"
) -> Frozen:
    """Pairs fixed by the user as an integer array of shape (n_frozen, 2), sorted by item."""
    if frozen is None:
        return np.empty((0, 2), dtype=np.intp)
    pairs = np.asarray(frozen)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(
            f"`frozen` must have shape (n_frozen, 2), got {pairs.shape}. "
            f"Give one row (index in {first}, index in {second}) for each fixed pair."
        )
    if not np.issubdtype(pairs.dtype, np.integer):
        if np.issubdtype(pairs.dtype, np.floating) and np.all(pairs == np.floor(pairs)):
            pairs = pairs.astype(np.intp)
        else:
            raise ValueError(
                f"`frozen` must hold whole numbers, got dtype {pairs.dtype}. "
                f"Give positions in {first} and {second}, counted from 0."
            )
    for column, size, name in ((0, n_first, first), (1, n_second, second)):
        values = pairs[:, column]
        outside = np.flatnonzero((values < 0) | (values >= size))
        if outside.size:
            row = int(outside[0])
            raise ValueError(
                f"`frozen` names item {values[row]} of {name} (row {row}), which has {size} items. "
                f"Use positions from 0 to {size - 1}."
            )
        order = np.argsort(values, kind="stable")
        repeated = np.flatnonzero(np.diff(values[order]) == 0)
        if repeated.size:
            rows = order[repeated[0]], order[repeated[0] + 1]
            raise ValueError(
                f"`frozen` repeats item {values[rows[0]]} of {name} (rows {rows[0]} and {rows[1]}). "
                "Each item may be frozen once; drop one of the two rows."
            )
    return pairs[np.argsort(pairs[:, 0], kind="stable")].astype(np.intp)


def check_cost(cost: ArrayLike, shape: tuple[int, int], *, name: str = "cost") -> NDArray[np.float64]:
    """Finite matrix of the given shape."""
    cost = check_array(cost, dtype=np.float64, input_name=name, estimator="unshuffle")
    if cost.shape != shape:
        raise ValueError(
            f"`{name}` must have shape {shape} (items of X by items of y), got {cost.shape}."
            + (" Pass its transpose." if cost.shape == shape[::-1] else "")
        )
    return cost


def check_permutation(
    permutation: ArrayLike, n_first: int, n_second: int, *, name: str = "permutation"
) -> NDArray[np.intp]:
    """Injective map into `range(n_second)`, with -1 for unmatched."""
    values = np.asarray(permutation)
    if values.shape != (n_first,) or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"`{name}` must be {n_first} whole numbers, one for each item of X, got shape "
            f"{values.shape} and dtype {values.dtype}."
        )
    used = values[values != -1]
    if used.size and (used.min() < 0 or used.max() >= n_second):
        raise ValueError(
            f"`{name}` names item {int(used.max() if used.max() >= n_second else used.min())} of y, "
            f"which has {n_second} items. Use positions from 0 to {n_second - 1}, -1 for unmatched."
        )
    if np.unique(used).size != used.size:
        counts = np.bincount(used)
        raise ValueError(
            f"`{name}` uses item {int(counts.argmax())} of y {int(counts.max())} times. "
            "Each item of y may have one partner."
        )
    return values.astype(np.intp)


def check_memory(n_bytes: int, *, what: str, instead: str) -> None:
    """Refuse work that would not fit into the memory that is free now."""
    free = available_memory()
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"{what} needs {n_bytes / 1e9:.1f} GB; {free / 1e9:.1f} GB is free. {instead}"
        )


def available_memory() -> int | None:
    """Bytes that can be taken without swapping, or None where the system does not say."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def check_count(value: Any, name: str, *, least: int = 1, most: int | None = None) -> int:
    """Whole number within bounds."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"`{name}` must be a whole number, got {value!r}.")
    if value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"`{name}` must be {bounds}, got {value}.")
    return int(value)


def check_option(value: Any, name: str, options: Sequence[str]) -> str:
    """One of a fixed set of words."""
    if value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"`{name}` must be one of {listed}, got {value!r}.")
    return str(value)
