"""Kernels between vectors: linear, RBF, Laplacian, chi-squared."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._arrays import (
    check_magnitude,
    check_nonnegative,
    check_partner_vectors,
    check_resolved,
    check_vectors,
)
from unshuffle._distances import (
    exponential,
    inner_products,
)
from unshuffle._parameters import check_kernel_memory

Distance = Callable[..., NDArray[np.float64]]


def linear_kernel(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Inner products between items.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    Y : array-like or sparse matrix of shape (m, d), default=None
        None compares X with itself.

    Returns
    -------
    ndarray of shape (n, m)
        Exactly symmetric if Y is None.

    Notes
    -----
    O(n m d) time and O(n m) memory, which is checked first.

    Examples
    --------
    >>> linear_kernel([[1, 0], [1, 2]])
    array([[1., 1.],
           [1., 5.]])
    """
    X, Y = check_pair(X, Y, "linear")
    return inner_products(X, Y)


def rbf_kernel(X: Any, Y: Any = None, *, gamma: float | None = None) -> NDArray[np.float64]:
    """Similarities exp(-gamma d^2) that fall off with the squared Euclidean distance d^2.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    Y : array-like or sparse matrix of shape (m, d), default=None
        None compares X with itself.
    gamma : float, default=None
        A larger value makes the kernel narrower: only closer items are similar. None takes one
        over the median of the squared distances between different items of X (of X alone, so that
        blocks against several Y belong to one kernel).

    Returns
    -------
    ndarray of shape (n, m)
        If Y is None exactly symmetric, with ones on the diagonal.

    Notes
    -----
    O(n m d) time and O(n m) memory, which is checked first. Sparse input stays sparse.

    Examples
    --------
    >>> rbf_kernel([[0.0], [1.0], [2.0]], gamma=1.0).round(3)
    array([[1.   , 0.368, 0.018],
           [0.368, 1.   , 0.368],
           [0.018, 0.368, 1.   ]])
    """
    X, Y = check_pair(X, Y, "rbf")
    return exponential("rbf", X, Y, gamma)


def laplacian_kernel(X: Any, Y: Any = None, *, gamma: float | None = None) -> NDArray[np.float64]:
    """Similarities exp(-gamma d) that fall off with the sum d of absolute differences.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    Y : array-like or sparse matrix of shape (m, d), default=None
        None compares X with itself.
    gamma : float, default=None
        A larger value makes the kernel narrower. None takes one over the median of d between
        different items of X.

    Returns
    -------
    ndarray of shape (n, m)
        If Y is None exactly symmetric, with ones on the diagonal.

    Notes
    -----
    O(n m d) time and O(n m) memory, which is checked first. Sparse input stays sparse.

    Examples
    --------
    >>> laplacian_kernel([[0.0, 0.0], [1.0, 1.0]], gamma=0.5).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    X, Y = check_pair(X, Y, "laplacian")
    return exponential("laplacian", X, Y, gamma)


def chi2_kernel(X: Any, Y: Any = None, *, gamma: float | None = None) -> NDArray[np.float64]:
    """Similarities exp(-gamma d) between histograms, d the sum of (x - y)^2 / (x + y).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Counts or shares, none below zero. Sparse input is made dense.
    Y : array-like or sparse matrix of shape (m, d), default=None
        None compares X with itself.
    gamma : float, default=None
        A larger value makes the kernel narrower. None takes one over the median of d between
        different items of X.

    Returns
    -------
    ndarray of shape (n, m)
        If Y is None exactly symmetric, with ones on the diagonal.

    Notes
    -----
    O(n m d) time and O(n m) memory, which is checked first.

    Examples
    --------
    >>> chi2_kernel([[1, 0], [0, 1]], gamma=0.5).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    X, Y = check_pair(X, Y, "chi2")
    return exponential("chi2", X, Y, gamma)


def check_pair(X: Any, Y: Any, kernel: str, name: str = "X") -> tuple[Any, Any]:
    """Both arguments of a kernel, checked for numbers, size and memory."""
    X = check_vectors(X, name, kernel=kernel)
    if Y is not None:
        Y = check_partner_vectors(Y, X, "Y")
    for values, label in ((X, name), (Y, "Y")):
        if values is None:
            continue
        check_magnitude(values, label)
        if kernel == "chi2":
            check_nonnegative(values, label, kernel=kernel)
    if kernel != "linear":
        check_resolved(X, name)
    check_kernel_memory(
        X.shape[0], (X if Y is None else Y).shape[0], n_copies=vector_copies(kernel, X)
    )
    return X, Y


def vector_copies(kernel: str, X: Any) -> float:
    """Matrices of the size of the result that are held at the peak, the result among them."""
    if sparse.issparse(X):
        return 3.0  # products of sparse matrices are sparse first, with their indices
    # The median sorts a copy of the distances above the diagonal, twice where many are zero.
    return 1.5 if kernel == "linear" else 2.6
