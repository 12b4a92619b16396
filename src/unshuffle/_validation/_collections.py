"""What is asked of collections of items: vectors, documents, and how many there are."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array


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
    X = as_rows(X, name)
    check_n_items(X.shape[0], name)
    return X


def check_partner_vectors(Y: Any, X: Any, name: str) -> Any:
    """Second argument of a kernel: finite, 2-D, with the columns of the first."""
    Y = as_rows(Y, name)
    if Y.shape[1] != X.shape[1]:
        raise ValueError(
            f"{name} has {Y.shape[1]} columns and X has {X.shape[1]}. "
            "A kernel compares items described by the same columns."
        )
    return Y


def as_rows(X: Any, name: str) -> Any:
    """Finite 2-D float array, dense, or CSR if sparse."""
    try:
        X = check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            input_name=name,
            estimator="unshuffle",
        )
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise ValueError(
                f"{name} holds rows of different lengths. Describe all items by the same columns."
            ) from error
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"{name} holds text among its features ({error}). Drop these columns or encode them "
            'as numbers; to compare documents, pass a list of str and kernel="text".'
        ) from error
    check_finite(X, name)
    return X


def check_finite(X: Any, name: str) -> None:
    """Refuse NaN and infinity, and say where they are."""
    values = X.data if sparse.issparse(X) else X
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):  # one pass without a copy; a sum may overflow, hence below
            return
    entries = X.tocoo() if sparse.issparse(X) else None
    bad = ~np.isfinite(values if entries is None else entries.data)
    if not bad.any():
        return
    rows = np.flatnonzero(bad.any(axis=1)) if entries is None else np.unique(entries.row[bad])
    what = "NaN" if np.isnan(values).any() else "infinity"
    raise ValueError(
        f"Input {name} contains {what} (in {rows.size} of {X.shape[0]} rows, the first is row "
        f"{rows[0]}). Drop these rows or fill in their values first."
    )


def check_documents(documents: Any, name: str) -> list[str]:
    """Documents as a list of at least two strings."""
    if isinstance(documents, str):
        raise ValueError(f"{name} is one string. Pass a list with one string for each document.")
    if not hasattr(documents, "__len__"):
        raise TypeError(
            f'{name} must be a list of str with kernel="text", got {type(documents).__name__}. '
            "Pass a list with one string for each document."
        )
    if len(documents) == 0:
        raise ValueError(f"{name} is empty: found 0 documents. Pass at least two.")
    if not is_text(documents):
        position, item = next(
            ((i, item) for i, item in enumerate(documents) if not isinstance(item, str)),
            (0, documents),
        )
        raise ValueError(
            f'{name} must be a list of str with kernel="text"; '
            f"item {position} is a {type(item).__name__}. "
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


def check_magnitude(X: Any, name: str) -> None:
    """Refuse numbers whose squares do not fit into a float."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    if largest > 1e150:
        raise ValueError(
            f"{name} holds {largest:.3g}, whose square is too large for a float. "
            "Divide the values by a common number first."
        )


def check_resolved(X: Any, name: str) -> None:
    """Refuse rows whose largest differences are a few steps of the floats they are stored in."""
    if sparse.issparse(X):
        low, high = (each.toarray().ravel() for each in (X.min(axis=0), X.max(axis=0)))
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    with np.errstate(over="ignore"):
        gaps = high - low
    widest = int(gaps.argmax())
    gap, size = float(gaps[widest]), float(max(abs(low[widest]), abs(high[widest])))
    if 0.0 < gap <= 8 * float(np.finfo(X.dtype).eps) * size:
        raise ValueError(
            f"Values of {name} differ by at most {gap:.3g} and are of the size {size:.3g}, where "
            f"floats are {float(np.spacing(X.dtype.type(size))):.2g} apart: what tells them apart "
            "is rounding. Subtract a common number from each column before it is stored as "
            "floats, or drop the column."
        )


def check_none_wild(
    sizes: NDArray[np.float64], ordinary: NDArray[np.bool_], called: Callable[[int], str]
) -> None:
    """Refuse outliers whose squares leave nothing of the others' in a sum of both.

    `sizes` are distances from the middle of all; `called` names one of them.
    """
    if ordinary.all():
        return
    first = int(np.flatnonzero(~ordinary)[0])
    raise ValueError(
        f"{called(first)} lies {float(sizes[first]):.3g} from the middle of all, most others "
        f"about {float(np.median(sizes[ordinary])):.3g} ({int((~ordinary).sum())} such): beside "
        "its square they are lost to rounding. Drop it, or correct its values."
    )


def check_nonnegative(X: Any, name: str, *, kernel: str) -> None:
    """Refuse features below zero where a kernel compares amounts."""
    values = X.data if sparse.issparse(X) else X
    if values.size and float(values.min()) < 0:
        raise ValueError(
            f"{name} holds {float(values.min()):.6g}, but kernel={kernel!r} compares amounts such "
            'as counts, which are never negative. Pass counts or shares, or use kernel="rbf".'
        )


def check_words(n_words: int, name: str) -> None:
    """Refuse a collection of documents in which nothing can be compared."""
    if n_words == 0:
        raise ValueError(
            f"The documents of {name} hold no word of two letters or more. "
            "Check that they were read as text and are not empty."
        )


def check_rows_vary(
    norms: NDArray[np.float64], largest: NDArray[np.float64], name: str, *, metric: str
) -> None:
    """Refuse rows that have no direction to compare."""
    flat = np.flatnonzero(~(norms > 8 * np.finfo(float).eps * largest))
    if flat.size:
        what = "constant" if metric == "correlation" else "zero"
        raise ValueError(
            f"Row {flat[0]} of {name} is {what} ({flat.size} such row(s)), so its {metric} with "
            'others is undefined. Drop these rows, or use metric="euclidean".'
        )


def check_same_argument(X: Any, Y: Any, function: str) -> None:
    """Refuse a second collection where a kernel exists inside one collection only."""
    if Y is not None and Y is not X:
        raise ValueError(
            f"{function} compares the items of one collection with each other, but a second one "
            "was passed. Leave Y out; stack the two collections to compare across them."
        )


def check_same_items(n_first: int, n_second: int, first: str, second: str) -> None:
    """Refuse two descriptions of the same items that differ in length."""
    if n_first != n_second:
        raise ValueError(
            f"{first} has {n_first} items and {second} has {n_second}. "
            "Row i of both must describe the same item, so pass equally many rows."
        )


def check_two_collections(X: Any, y: Any) -> None:
    """Refuse a missing second collection before scikit-learn's words for labels get there."""
    if X is None:
        raise ValueError("`X` is None. Call fit(X, y) with both collections.")
    if y is None:
        # scikit-learn's checks look for these words.
        raise ValueError(
            "Matching requires y to be passed, but the target y is None. It is the second "
            "collection, like X: call fit(X, y) with both."
        )


def check_equal_sizes(n_first: int, n_second: int, *, method: str) -> None:
    """Refuse collections of different sizes where the method has no meaning for them."""
    if n_first != n_second:
        raise ValueError(
            f"method={method!r} needs collections of one size, got {n_first} and {n_second} "
            'items. Use method="refined", which matches all items of the smaller one.'
        )


def check_length(n_items: int, expected: int, *, name: str = "y") -> None:
    """Refuse a collection that is not in the order of the fitted one."""
    if n_items != expected:
        raise ValueError(f"`{name}` has {n_items} items; the fitted one has {expected}.")


def check_enough_items(n_items: int, least: int, what: str) -> None:
    """Refuse a sample too small for an estimator."""
    if n_items < least:
        raise ValueError(f"{what} needs at least {least} items, got {n_items}.")


def check_labels(labels: ArrayLike, n_items: int, name: str) -> NDArray[Any]:
    """One label for each item, of which there are at least `n_items`."""
    values = np.asarray(labels)
    if values.ndim != 1 or values.size < n_items:
        raise ValueError(
            f"`{name}` must hold one label for each item of y, at least {n_items} here, "
            f"got shape {values.shape}."
        )
    return values
