"""Distances between rows, and kernels that decrease with distance."""

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances

from unshuffle._core.arrays import as_numbers, check_magnitude, middle
from unshuffle._core.parameters import check_kernel_memory, check_positive

Distance = Callable[..., NDArray[np.float64]]
# Below this share of |x|^2 + |y|^2 the expanded square has lost six of sixteen digits.
_CANCELED = 1e-6
_BLOCK = 512
# The median distance of this many rows is within a few percent of that of all rows.
WIDTH_SAMPLE = 2000


def _check_distances(distances: ArrayLike, name: str) -> NDArray[np.float64]:
    """Distances as a 1-D array, or as a square matrix, without NaN or negative entries."""
    values = as_numbers(distances, name)
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


def _raise_all_equal(name: str) -> NoReturn:
    """Report that all items are equal, so that their distances give no width."""
    raise ValueError(
        f"All items of {name} are equal (every distance is 0, or too small for a float). "
        "Check that the right columns were passed."
    )


def as_float64(X: Any) -> Any:
    """X in double precision, copied only if needed."""
    return X.astype(np.float64, copy=False)


def mirror_upper(D: NDArray[np.float64]) -> NDArray[np.float64]:
    """Copy the upper triangle of D onto the lower one, in place, so that D is symmetric."""
    n_items = D.shape[0]
    for start in range(0, n_items, _BLOCK):
        stop = min(start + _BLOCK, n_items)
        D[stop:, start:stop] = D[start:stop, stop:].T
        block = D[start:stop, start:stop]
        np.copyto(block, block.T.copy(), where=_below_diagonal()[: stop - start, : stop - start])
    return D


@cache
def _below_diagonal() -> NDArray[np.bool_]:
    """Mask of a block's entries below the diagonal."""
    return np.tri(_BLOCK, k=-1, dtype=bool)


def inner_products(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Inner products of the rows of X with those of Y (with each other if Y is None)."""
    same = Y is None
    products = _products(*_alike(X, Y))
    return mirror_upper(products) if same else products


def _products(X: Any, Y: Any) -> NDArray[np.float64]:
    products = X @ Y.T
    return np.asarray(products.toarray() if sparse.issparse(products) else products)


def products_about_middle(X: Any) -> NDArray[np.float64]:
    """Inner products of the rows of X about their median, precise even far from the origin."""
    X = as_float64(X)
    if not sparse.issparse(X):
        return inner_products(X - middle(X))
    # A column whose median is not zero is mostly filled, so it can be dense.
    columns = X.tocsc()
    filled = np.flatnonzero(2 * np.diff(columns.indptr) >= X.shape[0])
    dense = columns[:, filled].toarray()
    rest = sparse.csr_matrix(columns[:, np.setdiff1d(np.arange(X.shape[1]), filled)])
    return inner_products(rest) + inner_products(dense - middle(dense))


def squared_distances(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Squared Euclidean distances between the rows of X and of Y.

    Notes
    -----
    O(n m d) time, O(n m) memory. One matrix product gives all distances; those that lose digits
    to cancellation (duplicates, close points far from the median) are recomputed from the
    differences of the rows.
    """
    same = Y is None
    check_magnitude(X, "X")
    if not same:
        check_magnitude(Y, "Y")
    X, Y = _alike(X, Y)
    near_X, near_Y = X, Y
    if not sparse.issparse(X):
        center = middle(X)
        near_X = X - center
        near_Y = near_X if same else Y - center
    x_norms, y_norms = _squared_norms(near_X), _squared_norms(near_Y)
    D = _products(near_X, near_Y)
    D *= -2.0
    D += x_norms[:, None]
    D += y_norms
    if same:
        np.fill_diagonal(D, np.inf)
    # From the original rows: rows far from the median have lost digits.
    _recompute_cancelled(D, X, Y, x_norms, y_norms)
    np.maximum(D, 0.0, out=D)
    if same:
        np.fill_diagonal(D, 0.0)
        mirror_upper(D)
    return D


def row_distances(
    X: Any, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Euclidean distances between pairs of rows of X."""
    squares = np.empty(rows.size)
    n_pairs = _pairs_per_block(X)
    for start in range(0, rows.size, n_pairs):
        some = slice(start, start + n_pairs)
        squares[some] = _squared_norms(as_float64(X[rows[some]]) - as_float64(X[columns[some]]))
    return np.sqrt(squares)


def manhattan(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Sums of absolute differences between the rows of X and of Y."""
    same = Y is None
    X, Y = _alike(X, Y)
    D = manhattan_distances(X, Y)
    if same:
        np.fill_diagonal(D, 0.0)
        mirror_upper(D)
    return D


def chi2_distances(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Sums of (x - y)^2 / (x + y) over the columns; sparse input is made dense."""
    same = Y is None
    X, Y = _alike(X, Y)
    if sparse.issparse(X):
        X = X.toarray()
        Y = X if same else Y.toarray()
    D = additive_chi2_kernel(X, Y)
    np.negative(D, out=D)
    return mirror_upper(D) if same else D


def median_gamma(distances: ArrayLike, *, name: str = "distances") -> float:
    """Width parameter of a kernel exp(-gamma d): one over the median distance.

    Parameters
    ----------
    distances : array-like of shape (n, n) or (n_pairs,)
        Distances d as used in the exponent, so *squared* distances for an RBF kernel. A square
        matrix is assumed to be symmetric, and its diagonal is ignored.
    name : str
        Name of the collection in error messages.

    Returns
    -------
    float
        A larger value means a narrower kernel.

    Notes
    -----
    If more than half of the distances are zero (many duplicates), the median of the positive
    ones is used. The median is exact: O(n^2) time, and half the memory of the matrix.

    Examples
    --------
    >>> median_gamma([[0, 4, 2], [4, 0, 4], [2, 4, 0]])
    0.25
    """
    values = _check_distances(distances, name)
    if values.ndim == 2:
        check_kernel_memory(*values.shape, n_copies=1.5)  # the upper triangle, and a sorted copy
        values = _above_diagonal(values)
    smallest = np.finfo(float).tiny
    median = float(np.median(values))
    if median < smallest:
        positive = values[values >= smallest]
        if positive.size == 0:
            _raise_all_equal(name)
        median = float(np.median(positive))
    return 1.0 / median


def _alike(X: Any, Y: Any) -> tuple[Any, Any]:
    """Both in double precision, and both sparse if either is."""
    X = as_float64(X)
    if Y is None:
        return X, X
    Y = as_float64(Y)
    if sparse.issparse(X) != sparse.issparse(Y):
        return sparse.csr_matrix(X), sparse.csr_matrix(Y)
    return X, Y


def _squared_norms(X: Any) -> NDArray[np.float64]:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _recompute_cancelled(
    D: NDArray[np.float64],
    X: Any,
    Y: Any,
    x_norms: NDArray[np.float64],
    y_norms: NDArray[np.float64],
) -> None:
    n_pairs = _pairs_per_block(X)
    most = _CANCELED * (x_norms.max(initial=0.0) + y_norms.max(initial=0.0))
    for start in range(0, D.shape[0], _BLOCK):
        stop = min(start + _BLOCK, D.shape[0])
        if D[start:stop].min(initial=np.inf) > most:
            continue
        limit = _CANCELED * (x_norms[start:stop, None] + y_norms)
        rows, columns = np.nonzero(D[start:stop] <= limit)
        rows += start
        for first in range(0, rows.size, n_pairs):
            i, j = rows[first : first + n_pairs], columns[first : first + n_pairs]
            D[i, j] = _squared_norms(X[i] - Y[j])


def _pairs_per_block(X: Any) -> int:
    """Pairs of rows whose differences are formed at a time, since they take d numbers each."""
    return int(max(1, 2**22 // max(1, X.shape[1])))


def _above_diagonal(D: NDArray[np.float64]) -> NDArray[np.float64]:
    n_items = D.shape[0]
    values = np.empty(n_items * (n_items - 1) // 2)
    end = 0
    for i in range(n_items - 1):
        values[end : end + n_items - 1 - i] = D[i, i + 1 :]
        end += n_items - 1 - i
    return values


# Distance d of each kernel exp(-gamma d).
DISTANCES: dict[str, Distance] = {
    "rbf": squared_distances,
    "laplacian": manhattan,
    "chi2": chi2_distances,
}


def exponential(
    kernel: str, X: Any, Y: Any = None, gamma: float | None = None, *, name: str = "X"
) -> NDArray[np.float64]:
    """exp(-gamma d) for one of the distances in `DISTANCES`, on validated arguments."""
    distance = DISTANCES[kernel]
    D = distance(X, Y)
    if gamma is None:
        gamma = median_gamma(D if Y is None else distance(X), name=name)
    return exponential_of(D, check_positive(gamma, "gamma"))


def sampled_gamma(X: Any, kernel: str = "rbf", *, name: str) -> float:
    """`median_gamma` of the rows of X, or of a fixed sample of them if there are many."""
    n_rows = X.shape[0]
    if n_rows > WIDTH_SAMPLE:
        drawn = np.random.default_rng(0).choice(n_rows, WIDTH_SAMPLE, replace=False)
        X = X[np.sort(drawn)]
    return median_gamma(DISTANCES[kernel](X), name=name)


def exponential_of(D: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """exp(-gamma D), written over D."""
    # Overflow here correctly gives a similarity of 0.
    with np.errstate(over="ignore", under="ignore"):
        D *= -gamma
        return np.exp(D, out=D)
