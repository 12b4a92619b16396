"""Validation of arrays: user input as finite numbers in one form, and robust statistics."""

import os
from collections.abc import Callable, Collection, Mapping
from datetime import date, time, timedelta
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.utils import check_array

# The square of a larger number may not fit into a float.
LARGEST = 1e150
# Next to a number this many times larger, the square of another is lost to rounding.
_OUTLIER_FACTOR = 2.0**26
# A first column under one of these headings names the rows of a file or a frame of Polars.
NAME_HEADINGS = {"id", "index", "key", "name"}
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)


def check_plain(values: Any, name: str) -> None:
    """Refuse masked entries, dates and times, which NumPy would convert to numbers."""
    parts = values if isinstance(values, list | tuple) else (values,)
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise ValueError(
            f"{name} is masked: some entries have no value. Drop the rows with masked entries, or "
            "fill in their values with .filled()."
        )
    if _holds_times(values):
        raise ValueError(
            f"{name} holds dates or times, which have no unit as numbers. Convert them to floats "
            "in a unit of your choice, such as seconds."
        )
    if _is_graph(values):
        raise ValueError(
            f"{name} is a graph. Pass its matrix, networkx.to_numpy_array(graph): to "
            'quadratic_assignment, or to an estimator with kernel="precomputed".'
        )


def _is_graph(values: Any) -> bool:
    """Whether this is a graph of networkx, which NumPy reads as a list of its nodes."""
    return hasattr(values, "adjacency") and hasattr(values, "nodes")


def check_not_file(collection: Any, name: str, command: str) -> None:
    """Refuse a string or a path in place of a collection; `command` reads files."""
    if isinstance(collection, str | os.PathLike):
        kind = "string" if isinstance(collection, str) else "path"
        raise ValueError(
            f"{name} is one {kind}, {str(collection)!r:.80}. Pass a list or an array of items. To "
            f"compare what is in a file, read it first, as pandas.read_csv does, or run {command}."
        )


def _holds_times(values: Any) -> bool:
    """Whether an array, a data frame or a list contains dates or times."""
    if sparse.issparse(values) or isinstance(values, str):
        return False
    dtypes = getattr(values, "dtypes", None)
    if dtypes is not None and np.ndim(dtypes) == 1:
        kinds = [_kind(dtype) for dtype in dtypes]
        objects = [k for k, kind in enumerate(kinds) if kind == "O"]
        loose = objects if hasattr(values, "iloc") else []
        return "M" in kinds or any(_holds_times(values.iloc[:, k].to_numpy()) for k in loose)
    if isinstance(values, list | tuple):
        if all(hasattr(each, "dtype") for each in values):
            return any(_holds_times(each) for each in values)
        try:
            values = np.asarray(values)
        except (ValueError, TypeError):  # rows of different lengths, refused elsewhere
            return False
    kind = _kind(getattr(values, "dtype", None))
    if kind == "O" and isinstance(values, np.ndarray):
        return any(isinstance(each, _TIMES) for each in values.flat)
    return kind == "M"


def _kind(dtype: Any) -> str:
    """Kind of a NumPy, pandas or Polars type; "M" for dates, times and durations."""
    temporal = getattr(dtype, "is_temporal", None)
    if callable(temporal):
        return "M" if temporal() else ""
    kind = getattr(dtype, "kind", "")
    return "M" if kind in ("m", "M") else str(kind)


def is_text(collection: Any) -> bool:
    """Whether `collection` is a sequence of strings."""
    if isinstance(collection, str):
        return False
    if len(getattr(collection, "shape", (0,))) != 1:
        return False
    if isinstance(collection, np.ndarray):
        if collection.dtype.kind in "US":
            return True
        if collection.dtype != object:
            return False
    elif (
        not isinstance(collection, Collection)
        or sparse.issparse(collection)
        or isinstance(collection, Mapping)
        or _is_graph(collection)
    ):
        return False
    return len(collection) > 0 and all(isinstance(item, str) for item in collection)


def check_vectors(X: Any, name: str, *, kernel: Any = "rbf", in_place: bool = False) -> Any:
    """Finite 2-D float array (dense, or CSR if sparse) with at least two rows.

    `in_place` as in `as_rows`.
    """
    if isinstance(X, str) or is_text(X):
        raise ValueError(
            f"{name} holds strings, but kernel={kernel!r} compares numbers. "
            'Pass kernel="text" to compare documents, kernel="precomputed" and similarities of '
            "your own, or turn the items into vectors first."
        )
    X = as_rows(X, name, in_place=in_place)
    check_n_items(X.shape[0], name)
    return X


def check_partner_vectors(Y: Any, X: Any, name: str) -> Any:
    """Second argument of a kernel: finite, 2-D, with as many columns as the first."""
    Y = as_rows(Y, name)
    if Y.shape[1] != X.shape[1]:
        raise ValueError(
            f"{name} has {Y.shape[1]} columns and X has {X.shape[1]}. "
            "A kernel compares items described by the same columns."
        )
    return Y


def as_rows(X: Any, name: str, *, in_place: bool = False) -> Any:
    """Finite 2-D array from `as_numbers`, or CSR with sorted indices if sparse.

    `in_place` leaves arrays of real numbers as they are, in any precision, layout or file: for
    callers that convert a few rows at a time.
    """
    if X is None:
        raise ValueError(f"{name} is None. Pass one row of numbers for each item.")
    X = unwrap_anndata(X, name)
    if sparse.issparse(X):
        rows = _as_csr(X, name, in_place=in_place)
    else:
        rows = X if in_place and is_real_array(X) else as_numbers(X, name)
    if rows.shape == (0,) or (rows.ndim == 2 and rows.shape[0] == 0):
        raise ValueError(f"{name} is empty: found 0 sample(s). Pass one row for each item.")
    if rows.ndim < 2:
        # scikit-learn's checks look for "Reshape your data" and, below, for "0 feature(s)".
        raise ValueError(
            f"{name} must be 2-D, got {rows.ndim} dimension(s), shape {rows.shape}. Reshape your "
            "data: one row for each item, so array.reshape(-1, 1) for items with a single number, "
            "array.reshape(1, -1) for a single item."
        )
    if rows.ndim > 2:
        raise ValueError(
            f"{name} must be 2-D, got {rows.ndim} dimensions, shape {rows.shape}. Reshape your "
            "data: one row for each item, such as array.reshape(len(array), -1)."
        )
    if rows.shape[1] == 0:
        raise ValueError(
            f"{name} has 0 feature(s) (shape={rows.shape}) while a minimum of 1 is required. "
            "Describe the items by at least one column."
        )
    check_finite(rows, name)
    return rows


def as_array(values: Any, name: str, *, plain: bool = True) -> NDArray[Any]:
    """Array of any dtype; `plain` refuses masks and dates."""
    if plain:
        check_plain(values, name)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} holds entries of different lengths. Pass an array, or a list of entries of "
            "one length."
        ) from error


def as_numbers(values: Any, name: str) -> NDArray[np.float64]:
    """Array of any shape in double precision, C-contiguous and writable.

    Sums and matrix products round differently in other precisions and memory layouts, so every
    container of equal numbers is converted to this form and gives the same result.
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return _ready(values)
    values = unwrap_anndata(values, name)
    check_plain(values, name)
    if sparse.issparse(values):
        raise TypeError(
            f"{name} is a sparse matrix, but dense numbers are needed here. Call toarray() on it "
            "first."
        )
    try:
        # Arrays of other libraries become NumPy arrays, which dispatch would refuse to do.
        with config_context(array_api_dispatch=False):
            array = check_array(
                values,
                dtype=np.float64,
                order="C",
                ensure_2d=False,
                allow_nd=True,
                ensure_all_finite=False,
                ensure_min_samples=0,
                ensure_min_features=0,
                input_name=name,
            )
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        _raise_not_numeric(values, name, error)
    return _ready(array)


def _ready(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Same array, or a writable copy: compiled loops refuse read-only memory."""
    return array if array.flags.carray else np.require(array, requirements=("C", "A", "W"))


def unwrap_anndata(X: Any, name: str) -> Any:
    """Matrix X of an AnnData object; anything else unchanged."""
    if not all(hasattr(X, part) for part in ("X", "obs_names", "obsm")):
        return X
    if X.X is None:
        raise ValueError(
            f"{name} is an AnnData object whose X is None. Pass one of its parts, such as "
            'adata.obsm["X_pca"].'
        )
    return X.X.to_memory() if hasattr(X.X, "to_memory") else X.X  # backed by a file


def is_polars(value: Any) -> bool:
    """Whether this is a data frame or a series of Polars, which may not be installed."""
    return type(value).__module__.partition(".")[0] == "polars"


def check_column_names(X: Any, name: str) -> None:
    """Refuse a data frame in which only some column names are strings."""
    kinds = {type(column) for column in getattr(X, "columns", ())}
    if str in kinds and len(kinds) > 1:
        raise ValueError(
            f"{name} has columns whose names are strings and columns whose names are not. Convert "
            "all names: frame.columns = frame.columns.astype(str)."
        )


def table_shape(X: Any) -> tuple[int, int]:
    """Numbers of rows and columns of unvalidated input; 0 where unknown."""
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple):
        n_rows, n_columns = (*shape, 0, 0)[:2]
        return int(n_rows), int(n_columns)
    if isinstance(X, list | tuple) and X:
        return len(X), len(X[0]) if hasattr(X[0], "__len__") else 0
    return (len(X) if hasattr(X, "__len__") else 0), 0


def is_real_array(X: Any) -> bool:
    """Whether this is a plain NumPy array, possibly of a file, of real numbers."""
    return type(X) in (np.ndarray, np.memmap) and X.dtype.kind in "biuf"


def _as_csr(X: Any, name: str, *, in_place: bool = False) -> sparse.csr_matrix:
    """Sparse matrix of real numbers in canonical format; copied if the input was not."""
    if X.dtype.kind not in "biuf" or X.ndim != 2:
        return as_numbers(X.toarray(), name)  # raises the error
    rows = sparse.csr_matrix(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows if in_place else rows.astype(np.float64, copy=False)


class RaggedRows(ValueError):
    """Rows of different lengths."""


class HoldsText(ValueError):
    """Text where numbers are needed."""


def _raise_not_numeric(values: Any, name: str, error: Exception) -> NoReturn:
    """Explain why the input cannot be converted to real numbers."""
    text = str(error)
    if "inhomogeneous" in text or "with a sequence" in text:
        raise RaggedRows(
            f"{name} holds rows of different lengths. Describe all items by the same columns."
        ) from error
    if "Complex" in text:
        # scikit-learn's checks look for the first four words.
        raise ValueError(
            f"Complex data not supported: {name} holds complex numbers. Pass real and imaginary "
            "parts as two columns."
        ) from error
    if "could not convert string" in text:
        raise HoldsText(
            f"{name} holds text among its features ({error}). Drop these columns or encode them "
            'as numbers; to compare documents, pass a list of str and kernel="text".'
        ) from error
    kind = TypeError if isinstance(error, TypeError) else ValueError
    raise kind(
        f"{name} is a {type(values).__name__} that cannot be read as real numbers ({error}). Pass "
        "an array, a data frame, or a list of rows of numbers."
    ) from error


def check_finite(X: Any, name: str) -> None:
    """Refuse NaN and infinity, and report where they are."""
    values = X.data if sparse.issparse(X) else X
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):  # one pass without a copy; the sum may also overflow
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
    if not hasattr(documents, "__len__") or sparse.issparse(documents):
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
    """Refuse a collection of fewer than two items."""
    if n_items < 2:
        raise ValueError(
            f"{name} has {n_items} item(s) (n_samples = {n_items}). Order is found from the "
            "similarities inside a collection, so each needs at least two items."
        )


def check_magnitude(X: Any, name: str) -> None:
    """Refuse numbers whose squares do not fit into a float."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    if largest > LARGEST:
        raise ValueError(
            f"{name} holds {largest:.3g}, whose square is too large for a float. "
            "Divide the values by a common number first."
        )


def check_resolved(X: Any, name: str) -> None:
    """Refuse rows whose largest differences are a few rounding errors of their floats."""
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
            f"Values of {name} differ by at most {gap:.3g} and are as large as {size:.3g}, where "
            f"floats are {float(np.spacing(X.dtype.type(size))):.2g} apart: the difference is "
            "rounding. Subtract a common number from each column before it is stored as floats, "
            "or drop the column."
        )


def check_outliers(X: NDArray[Any], name_row: Callable[[int], str]) -> None:
    """Refuse rows so far from the others that the others' squares are lost to rounding."""
    check_distances(distances_from_median(X), name_row)


def check_distances(distances: NDArray[np.float64], name_row: Callable[[int], str]) -> None:
    """Refuse rows whose distance from the median is out of proportion, as `check_outliers`."""
    inliers = find_inliers(distances)
    if inliers.all():
        return
    first = int(np.flatnonzero(~inliers)[0])
    raise ValueError(
        f"{name_row(first)} lies {float(distances[first]):.3g} from the median, most others about "
        f"{float(np.median(distances[inliers])):.3g} ({int((~inliers).sum())} outlier(s)). Next "
        "to its square, the others are lost to rounding. Drop it, or correct its values."
    )


def check_nonnegative(X: Any, name: str, *, kernel: str) -> None:
    """Refuse negative features for a kernel that compares amounts."""
    values = X.data if sparse.issparse(X) else X
    if values.size and float(values.min()) < 0:
        raise ValueError(
            f"{name} holds {float(values.min()):.6g}, but kernel={kernel!r} compares amounts such "
            'as counts, which are never negative. Pass counts or shares, or use kernel="rbf".'
        )


def check_same_items(n_first: int, n_second: int, first: str, second: str) -> None:
    """Refuse two descriptions of the same items with different numbers of rows."""
    if n_first != n_second:
        raise ValueError(
            f"{first} has {n_first} items and {second} has {n_second}. "
            "Row i of both must describe the same item, so pass the same number of rows."
        )


def check_length(n_items: int, expected: int, *, name: str = "y") -> None:
    """Refuse a collection with another number of items than the fitted one."""
    if n_items != expected:
        raise ValueError(f"`{name}` has {n_items} items; the fitted one has {expected}.")


def kind_of(values: Any) -> str:
    """Type of an argument, for an error message."""
    name = type(values).__name__
    return f"{name} of {values.dtype}" if hasattr(values, "dtype") else name


def middle(X: NDArray[Any]) -> NDArray[Any]:
    """Lower median of each column: a value of the column itself.

    Unlike the mean it has no rounding error, so that differences from it keep all their digits
    however far the origin is, and outliers do not move it.
    """
    place = (len(X) - 1) // 2
    return np.partition(X.T, place, axis=1)[:, place].copy()  # a view would keep all of it


def distances_from_median(X: NDArray[Any]) -> NDArray[np.float64]:
    """Largest difference of each row from the column medians; it never overflows."""
    return np.asarray(np.abs(X - middle(X)).max(axis=1, initial=0.0), dtype=np.float64)


def find_inliers(sizes: NDArray[np.float64], factor: float = _OUTLIER_FACTOR) -> NDArray[np.bool_]:
    """Mask of the sizes that are at most `factor` times their median (of the positive ones)."""
    typical = float(middle(sizes[:, None])[0])
    if typical == 0.0:
        positive = sizes[sizes > 0.0]
        typical = float(middle(positive[:, None])[0]) if positive.size else 1.0
    return np.asarray(sizes <= factor * typical)


def column_moments(
    X: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each column, without outliers.

    The deviation is 0 for a column that is constant up to rounding.
    """
    start = middle(X)
    means, deviations = np.empty_like(start), np.empty_like(start)
    for column, value in enumerate(start):
        apart = X[:, column] - value
        sizes = np.abs(apart)
        kept = apart[find_inliers(sizes)]
        # Scaled by the largest, since squares of very large and small floats do not exist.
        unit = float(np.abs(kept).max()) or 1.0
        mean = float((kept / unit).mean())
        means[column] = value + unit * mean
        deviation = unit * float(np.sqrt(((kept / unit - mean) ** 2).mean()))
        rounding = 4 * np.finfo(np.float64).eps * abs(float(value))
        deviations[column] = deviation if deviation > rounding else 0.0
    return means, deviations
