"""Every check of what a user passes in, and every message that says what is wrong.

Messages say what was wrong, what arrived and what to do, in that order.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching
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
    # A few rows at a time: whole differences would take several times the memory of K.
    worst, i, j = 0.0, 0, 0
    for start in range(0, K.shape[0], 256):
        gaps = np.abs(K[start : start + 256] - K[:, start : start + 256].T)
        row, column = np.unravel_index(int(gaps.argmax()), gaps.shape)
        if gaps[row, column] > worst:
            worst, i, j = float(gaps[row, column]), start + int(row), int(column)
    if worst > 1e-6 * max(float(K.max()), -float(K.min()), np.finfo(float).tiny):
        raise ValueError(
            f"{name} is not symmetric: entry ({i}, {j}) is {K[i, j]:.6g} and ({j}, {i}) is "
            f"{K[j, i]:.6g}. Pass ({name} + {name}.T) / 2 if the difference means nothing."
        )
    symmetric: NDArray[np.float64] = K + K.T
    symmetric *= 0.5
    return symmetric


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


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Existing folder that may be listed, as a path."""
    path = Path(folder)
    if not path.exists():
        raise ValueError(f"There is no folder {path}. Check the name.")
    if not path.is_dir():
        raise ValueError(f"{path} is a file, not a folder. Give the folder that holds the items.")
    if not os.access(path, os.R_OK | os.X_OK):
        raise ValueError(f"The folder {path} may not be read. Check its permissions.")
    return path


def check_image_size(size: Any) -> tuple[int, int]:
    """Height and width in pixels, from one number or two."""
    both = (size, size) if isinstance(size, Integral) else tuple(np.atleast_1d(size).tolist())
    if len(both) != 2:
        raise ValueError(
            f"`size` must be one number or (height, width), got {size!r}. "
            "Pass e.g. 40 or (40, 20)."
        )
    height, width = (check_count(each, "size", most=4096) for each in both)
    return height, width


def check_images(images: Any, name: str = "images") -> NDArray[np.uint8]:
    """Pictures of one size as uint8 of shape (n_images, height, width, 3)."""
    array = np.asarray(images)
    if array.dtype != np.uint8:
        raise ValueError(
            f"`{name}` must hold whole numbers from 0 to 255 (dtype uint8), got dtype "
            f"{array.dtype}. Scale the pictures to 0..255 and convert with .astype('uint8')."
        )
    if array.ndim == 3:
        array = np.repeat(array[..., np.newaxis], 3, axis=-1)
    if array.ndim != 4 or array.shape[-1] != 3:
        raise ValueError(
            f"`{name}` must have shape (n_images, height, width, 3), or (n_images, height, width) "
            f"if grey, got {array.shape}. Stack the pictures along the first axis."
        )
    if 0 in array.shape:
        raise ValueError(f"`{name}` is empty: it has shape {array.shape}. Pass at least one picture.")
    return array


def check_output_path(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    """Path that a file with one of `suffixes` can be written to, found out by trying."""
    target = Path(path)
    listed = " or ".join(suffixes)
    if target.is_dir():
        raise ValueError(f"Cannot write {target}: it is a folder. Give a file name in it.")
    if target.suffix.lower() not in suffixes:
        raise ValueError(
            f"Cannot write {target}: its name ends in {target.suffix or 'nothing'!r}. "
            f"Give a name that ends in {listed}."
        )
    if not target.parent.is_dir():
        raise ValueError(
            f"Cannot write {target}: there is no folder {target.parent}. Create it first."
        )
    if target.exists() and not os.access(target, os.W_OK):
        raise ValueError(f"Cannot write {target}: the file is read-only. Give another name.")
    try:
        # Only an attempt tells about read-only disks, quotas and network shares.
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise ValueError(
            f"Cannot write {target}: {error.strerror or error}. Choose another folder."
        ) from error
    return target


def check_assignment_cost(cost: Any, *, name: str = "cost") -> NDArray[Any]:
    """Finite C-contiguous matrix, float32 kept and all else as float64, at least 1 x 1."""
    cost = check_array(
        cost,
        dtype=[np.float64, np.float32],
        order="C",
        input_name=name,
        ensure_min_samples=0,
        ensure_min_features=0,
        estimator="unshuffle",
    )
    if 0 in cost.shape:
        raise ValueError(
            f"`{name}` is empty: it has shape {cost.shape}. Pass at least one row and one column."
        )
    return cost


def check_forbidden(forbidden: ArrayLike, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Boolean matrix of the given shape."""
    mask = np.asarray(forbidden)
    if mask.dtype != bool:
        raise ValueError(
            f"`forbidden` must be a boolean matrix, got dtype {mask.dtype}. "
            "Pass True where a row and a column must not be matched."
        )
    if mask.shape != shape:
        raise ValueError(
            f"`forbidden` must have the shape {shape} of the cost, got {mask.shape}."
            + (" Pass its transpose." if mask.shape == shape[::-1] else "")
        )
    return mask


def check_frozen_allowed(frozen: Frozen, forbidden: NDArray[np.bool_]) -> None:
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
    columns = maximum_bipartite_matching(
        sparse.csr_array(allowed), perm_type="column"
    )
    n_matched = int((columns >= 0).sum())
    if n_matched < n_required:
        raise ValueError(
            f"`forbidden` leaves no assignment: at most {n_matched} of {n_required} pairs can be "
            "matched at once. Forbid fewer pairs, or set `unmatched_cost` so that some stay apart."
        )


def check_prices(prices: ArrayLike, n_columns: int) -> NDArray[np.float64]:
    """Finite vector with one price for each column."""
    values = np.asarray(prices, dtype=np.float64)
    if values.shape != (n_columns,):
        raise ValueError(
            f"`prices` must have shape ({n_columns},), one for each column, got {values.shape}. "
            "Pass the prices of a problem with the same columns, or None."
        )
    if not np.isfinite(values).all():
        raise ValueError("`prices` holds NaN or infinity. Pass None to start afresh.")
    return values


def check_real(value: Any, name: str) -> float:
    """Finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(value):
        raise ValueError(f"`{name}` must be a finite number, got {value!r}.")
    return float(value)


def check_partner_vectors(Y: Any, X: Any, name: str) -> Any:
    """Second argument of a kernel: finite, 2-D, with the columns of the first."""
    Y = check_array(
        Y,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        input_name=name,
        estimator="unshuffle",
    )
    if Y.shape[1] != X.shape[1]:
        raise ValueError(
            f"{name} has {Y.shape[1]} columns and X has {X.shape[1]}. "
            "A kernel compares items described by the same columns."
        )
    return Y


def check_magnitude(X: Any, name: str) -> None:
    """Refuse numbers whose squares do not fit into a float."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    if largest > 1e150:
        raise ValueError(
            f"{name} holds {largest:.3g}, whose square is too large for a float. "
            "Divide the values by a common number first."
        )


def check_nonnegative(X: Any, name: str, *, kernel: str) -> None:
    """Refuse features below zero where a kernel compares amounts."""
    values = X.data if sparse.issparse(X) else X
    if values.size and float(values.min()) < 0:
        raise ValueError(
            f"{name} holds {float(values.min()):.6g}, but kernel={kernel!r} compares amounts such "
            'as counts, which are never negative. Pass counts or shares, or use kernel="rbf".'
        )


def check_positive(value: Any, name: str) -> float:
    """Finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"`{name}` must be a finite number above 0, got {value!r}.")
    return float(value)


def check_distances(distances: ArrayLike, name: str) -> NDArray[np.float64]:
    """Distances as a 1-D array, or as a square matrix, without NaN or negative entries."""
    values = np.asarray(distances, dtype=np.float64)
    if values.ndim not in (1, 2) or (values.ndim == 2 and values.shape[0] != values.shape[1]):
        raise ValueError(
            f"{name} must be 1-D or a square matrix, got shape {values.shape}. Pass the distances "
            "between all items of one collection, or a flat array of any distances."
        )
    if values.size == 0 or values.shape == (1, 1):
        raise ValueError(f"{name} holds no distance between two items. Pass at least two items.")
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high < np.inf):
        raise ValueError(
            f"{name} must be finite and at least 0, got values from {low:.6g} to {high:.6g}. "
            "Pass distances, not similarities."
        )
    return values


def raise_all_equal(name: str) -> NoReturn:
    """Say that no two items differ, so that no width can be read off their distances."""
    raise ValueError(
        f"All items of {name} are equal (every distance is 0, or too small for a float), so "
        "nothing tells one from another. Check that the right columns were passed."
    )


def check_kernel_memory(n_rows: int, n_columns: int, *, n_copies: float = 1.0) -> None:
    """Refuse a dense kernel matrix that would not fit into the memory that is free now."""
    check_memory(
        int(8 * n_rows * n_columns * n_copies),
        what=f"The kernel matrix of {n_rows:,} by {n_columns:,} items",
        instead="Use a sample of the items, or low-rank factors (unshuffle.kernels."
        "pivoted_cholesky, nystroem_factors).",
    )


def check_kernel_output(K: Any, n_items: int, kernel: Any, name: str) -> NDArray[np.float64]:
    """What a user's kernel function returned, as a Gram matrix."""
    label = getattr(kernel, "__name__", type(kernel).__name__)
    shape = np.shape(K)
    if shape != (n_items, n_items):
        raise ValueError(
            f"The kernel {label} returned shape {shape} for {name}, which has {n_items} items. "
            f"Return a ({n_items}, {n_items}) matrix from kernel({name}, {name}), or one number "
            "from kernel(x, y) on two rows."
        )
    return check_gram(K, f"{label}({name}, {name})")


def raise_kernel_failed(kernel: Any, name: str, error: Exception) -> NoReturn:
    """Say that a user's kernel function works neither on matrices nor on rows."""
    label = getattr(kernel, "__name__", type(kernel).__name__)
    raise ValueError(
        f"The kernel {label} failed on {name}: {type(error).__name__}: {error}. "
        f"It is called as kernel({name}, {name}) first and, where that does not give a square "
        "matrix, as kernel(x, y) on pairs of rows."
    ) from error


def check_kernel_list(kernels: Sequence[Any]) -> list[Any]:
    """List of kernels that holds at least one."""
    if len(kernels) == 0:
        raise ValueError('`kernel` is an empty list. Name at least one kernel, such as ["rbf"].')
    return list(kernels)


def check_per_kernel(values: Any, n_kernels: int, name: str) -> list[Any]:
    """One entry for each kernel: a list of that length, or one value for all."""
    if isinstance(values, list | tuple | np.ndarray) and np.ndim(values) > 0:
        if len(values) != n_kernels:
            raise ValueError(
                f"`{name}` has {len(values)} entries for {n_kernels} kernel(s). "
                "Give one for each kernel, or a single value for all."
            )
        return list(values)
    return [values] * n_kernels


def check_kernel_weights(weights: ArrayLike | None, n_kernels: int) -> NDArray[np.float64]:
    """Non-negative weights, one for each kernel, not all zero; all one by default."""
    if weights is None:
        return np.ones(n_kernels)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_kernels,):
        raise ValueError(
            f"Kernel weights have shape {values.shape} for {n_kernels} kernel(s). "
            "Give one number for each kernel."
        )
    if not np.all(np.isfinite(values)) or values.min() < 0 or values.max() == 0:
        raise ValueError(
            f"Kernel weights must be finite, at least 0 and not all 0, got {values.tolist()}. "
            "Leave them out to weigh all kernels alike."
        )
    return values


def check_weights_need_list(weights: Any) -> None:
    """Refuse weights where there is one kernel and so nothing to weigh."""
    if weights is not None:
        raise ValueError(
            "Kernel weights were given for a single kernel. Pass a list of kernels to weigh them "
            "against each other, or leave the weights out."
        )


def check_one_collection_per_kernel(n_collections: int, n_kernels: int, name: str) -> None:
    """Refuse a list of collections that does not go with the list of kernels."""
    if n_collections != n_kernels:
        raise ValueError(
            f"{name} is a list of {n_collections} collections, but there are {n_kernels} kernels. "
            "Pass one collection for each kernel, or a single one for all of them."
        )


def check_same_items(n_first: int, n_second: int, first: str, second: str) -> None:
    """Refuse two descriptions of the same items that differ in length."""
    if n_first != n_second:
        raise ValueError(
            f"{first} has {n_first} items and {second} has {n_second}. "
            "Row i of both must describe the same item, so pass equally many rows."
        )


def check_centred_norm(norm: float, scale: float, name: str) -> float:
    """Refuse to scale a kernel matrix that is constant, and so zero once centred."""
    if not norm > 1e-13 * scale:
        raise ValueError(
            f"The kernel matrix of {name} is zero after centring: its items are all equally "
            "similar, so it cannot be scaled. Drop this kernel, or check its columns."
        )
    return norm


def check_document_shares(max_df: Any) -> float:
    """Largest share of the documents in which a word may occur."""
    if isinstance(max_df, bool) or not isinstance(max_df, Real) or not 0 < float(max_df) <= 1:
        raise ValueError(f"`max_df` must be a share above 0 and up to 1, got {max_df!r}.")
    return float(max_df)


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
    flat = np.flatnonzero(~(norms > 1e-12 * largest))
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


def check_tolerance(value: Any, name: str) -> float:
    """Finite number, at least zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"`{name}` must be a finite number, at least 0, got {value!r}.")
    return float(value)


def check_factor_memory(n_items: int, rank: int) -> None:
    """Refuse factors that would not fit into the memory that is free now."""
    check_memory(
        16 * n_items * rank,
        what=f"Rank {rank:,} factors of {n_items:,} items",
        instead="Choose a smaller rank.",
    )


def check_labels(labels: ArrayLike, n_items: int, name: str) -> NDArray[Any]:
    """One label for each item, of which there are at least `n_items`."""
    values = np.asarray(labels)
    if values.ndim != 1 or values.size < n_items:
        raise ValueError(
            f"`{name}` must hold one label for each item of y, at least {n_items} here, "
            f"got shape {values.shape}."
        )
    return values


def check_matches(matches: ArrayLike, name: str) -> NDArray[np.intp]:
    """Positions in y, one for each item of X, -1 for unmatched."""
    values = np.asarray(matches)
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


def check_enough_items(n_items: int, least: int, what: str) -> None:
    """Refuse a sample too small for an estimator."""
    if n_items < least:
        raise ValueError(f"{what} needs at least {least} items, got {n_items}.")


def check_grid(grid: ArrayLike, n_items: int) -> NDArray[np.intp]:
    """Item in each cell of a 2-D grid, -1 for empty."""
    cells = np.asarray(grid)
    if cells.ndim != 2 or not np.issubdtype(cells.dtype, np.integer):
        raise ValueError(
            f"`grid` must be a 2-D array of whole numbers, got shape {cells.shape} and dtype "
            f"{cells.dtype}. Give the item in each cell, -1 where it is empty."
        )
    if cells.size == 0 or cells.max() >= n_items or cells.min() < -1:
        raise ValueError(
            f"`grid` must hold items from 0 to {n_items - 1}, or -1 for empty, got "
            + ("no cells." if cells.size == 0 else f"values from {cells.min()} to {cells.max()}.")
        )
    return cells.astype(np.intp)


def check_sheet_values(values: ArrayLike, n_items: int, name: str) -> NDArray[np.float64]:
    """One finite number for each item."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n_items,) or not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be {n_items} finite numbers, one for each item, got shape "
            f"{array.shape}."
        )
    return array


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file whose suffix does not say which of the known formats it has."""
    if path.suffix.lower() not in suffixes:
        listed = " or ".join(suffixes)
        raise ValueError(f"The suffix of {str(path)!r} names no known format. Use {listed}.")


def check_match_file(
    read: Callable[[], Any], path: Path, columns: Sequence[str]
) -> list[dict[str, Any]]:
    """Records of a file of matches, each with all of `columns`."""
    expected = f"{str(path)!r} is not a file of matches: expected records with {', '.join(columns)}"
    try:
        rows = read()
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{expected}; it could not be read ({error}).") from error
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"{expected}, found none.")
    for number, row in enumerate(rows):
        missing = [name for name in columns if not isinstance(row, dict) or name not in row]
        if missing:
            raise ValueError(f"{expected}; record {number} lacks {', '.join(missing)}.")
    return rows


def check_two_collections(X: Any, y: Any) -> None:
    """Refuse a missing second collection before scikit-learn's words for labels get there."""
    if X is None or y is None:
        missing = "X" if X is None else "y"
        raise ValueError(
            f"`{missing}` is None, but requires y to be passed: the second collection, like X. "
            "Call fit(X, y) with both collections."
        )


def check_equal_sizes(n_first: int, n_second: int, *, method: str) -> None:
    """Refuse collections of different sizes where the method has no meaning for them."""
    if n_first != n_second:
        raise ValueError(
            f"method={method!r} needs collections of one size, got {n_first} and {n_second} items. "
            'Use method="refined", which matches all items of the smaller one.'
        )


def check_all_matched(permutation: NDArray[np.intp]) -> None:
    """Refuse to reorder where an item has no partner to put in its place."""
    alone = np.flatnonzero(permutation < 0)
    if alone.size:
        raise ValueError(
            f"{alone.size} of {permutation.size} items of X have no partner (the first is item "
            f"{alone[0]}), so y cannot be put in the order of X. Use `pairs_` to select the "
            "matched items of both."
        )


def check_length(n_items: int, expected: int, *, name: str = "y") -> None:
    """Refuse a collection that is not in the order of the fitted one."""
    if n_items != expected:
        raise ValueError(f"`{name}` has {n_items} items; the fitted one has {expected}.")
