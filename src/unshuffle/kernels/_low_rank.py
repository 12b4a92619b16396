"""Thin factors F with K ~ F F', for collections whose Gram matrix does not fit."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import (
    check_magnitude,
    check_nonnegative,
    check_resolved,
    check_vectors,
    table_shape,
)
from unshuffle._distances import DISTANCES, as_float64, exponential, inner_products, sampled_gamma
from unshuffle._grams import Kernel
from unshuffle._kernel_features import greedy_cholesky
from unshuffle._parameters import check_count, check_memory, check_positive, check_real, check_seed
from unshuffle.kernels._gram import gram_matrix
from unshuffle.kernels._text import text_features

Block = Callable[[NDArray[np.intp]], NDArray[np.float64]]


def pivoted_cholesky(
    X: Any,
    rank: int,
    *,
    kernel: Kernel = "precomputed",
    gamma: float | None = None,
    tol: float = 1e-10,
    name: str = "X",
) -> NDArray[np.float64]:
    """Factor F whose product F F' comes close to the kernel matrix, largest errors first.

    Parameters
    ----------
    X : Gram matrix of shape (n, n), or what `gram_matrix` takes
        A Gram matrix unless `kernel` is given.
    rank : int
        Most columns of F. A larger value comes closer and takes more time and memory.
    kernel : str or callable, default="precomputed"
        With "linear", "rbf", "laplacian", "chi2" and "text" the kernel matrix is formed one column
        at a time and never whole; with the others it is formed first.
    gamma : float, default=None
        A larger value makes the kernel narrower, and then a higher rank is needed. None takes one
        over the median distance, in collections of more than 2,000 items over a fixed sample of
        2,000.
    tol : float, default=1e-10
        Stop when the trace of K - F F' is at most this share of the trace of K. A larger value
        stops earlier, with fewer columns.
    name : str
        What to call the collection in an error message.

    Returns
    -------
    ndarray of shape (n, r)
        r is at most `rank`. The trace of K - F F' bounds its norm, is never negative for a
        positive definite kernel, and falls with every column.

    Notes
    -----
    O(n r^2) time beyond r columns of the kernel, and O(n r) memory. For a kernel that is not
    positive definite it stops where no positive pivot is left.

    References
    ----------
    Harbrecht, Peters, Schneider, "On the low-rank approximation by the pivoted Cholesky
    decomposition", Applied Numerical Mathematics 62 (2012).

    Examples
    --------
    >>> F = pivoted_cholesky([[4.0, 2.0], [2.0, 1.0]], rank=2)
    >>> F.shape
    (2, 1)
    >>> F @ F.T
    array([[4., 2.],
           [2., 1.]])
    """
    rank = check_count(rank, "rank")
    tol = check_real(tol, "tol", least=0)
    columns, diagonal = _evaluator(X, kernel, gamma, rank, name)
    n_items = diagonal.size
    # Below this a pivot is rounding error, and dividing by its root would spread it.
    negligible = n_items * np.finfo(float).eps * float(max(diagonal.max(), 0.0))
    _, F = greedy_cholesky(
        lambda pivot: columns(np.array([pivot]))[:, 0],
        diagonal,
        min(rank, n_items),
        negligible=negligible,
        enough=tol * float(diagonal.sum()),
        exact=True,
    )
    return np.ascontiguousarray(F.T)


def nystroem_factors(
    X: Any,
    kernel: Kernel = "rbf",
    rank: int = 100,
    *,
    gamma: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    name: str = "X",
) -> NDArray[np.float64]:
    """Factor F whose product F F' comes close to the kernel matrix, from a sample of items.

    Parameters
    ----------
    X : what `gram_matrix` takes
    kernel : str or callable, default="rbf"
        With "linear", "rbf", "laplacian", "chi2" and "text" the kernel matrix is never formed
        whole; with the others it is formed first.
    rank : int, default=100
        Items sampled, and most columns of F. A larger value comes closer and takes more time.
    gamma : float, default=None
        A larger value makes the kernel narrower, and then a higher rank is needed. None takes one
        over the median distance, in collections of more than 2,000 items over a fixed sample of
        2,000.
    random_state : int, RandomState or None, default=None
        Which items are sampled.
    name : str
        What to call the collection in an error message.

    Returns
    -------
    ndarray of shape (n, r)
        r is at most `rank`. The trace of K - F F' is never negative for a positive definite
        kernel.

    Notes
    -----
    O(n r^2) time beyond r columns of the kernel, in a few large matrix products, so faster than
    `pivoted_cholesky` of the same rank and usually somewhat less close. O(n r) memory.

    References
    ----------
    Williams, Seeger, "Using the Nystrom method to speed up kernel machines", NIPS 13 (2001).

    Examples
    --------
    >>> nystroem_factors([[0.0], [1.0], [2.0], [3.0]], "rbf", 2, random_state=0).shape
    (4, 2)
    """
    rank = check_count(rank, "rank")
    columns, diagonal = _evaluator(X, kernel, gamma, rank, name)
    n_items = diagonal.size
    rank = min(rank, n_items)
    chosen = check_seed(random_state).choice(n_items, rank, replace=False)
    chosen.sort()
    block = columns(chosen)
    values, vectors = np.linalg.eigh(block[chosen])
    # Pseudo-inverse: duplicates among the sample make the small block singular.
    kept = values > rank * np.finfo(float).eps * max(float(values[-1]), 0.0)
    factors: NDArray[np.float64] = block @ (vectors[:, kept] / np.sqrt(values[kept]))
    return factors


def _evaluator(
    X: Any, kernel: Kernel, gamma: float | None, rank: int, name: str
) -> tuple[Block, NDArray[np.float64]]:
    """Function that gives columns of the kernel matrix, and its diagonal, if factors fit."""
    n_items = table_shape(X)[0]
    _check_factor_memory(n_items, min(rank, n_items))
    if gamma is not None:
        gamma = check_positive(gamma, "gamma")
    if not isinstance(kernel, str) or kernel not in ("text", "linear", *DISTANCES):
        K = gram_matrix(X, kernel, gamma=gamma, name=name)
        return (lambda chosen: K[:, chosen]), K.diagonal().copy()
    if kernel == "text":
        X = text_features(X, name=name)
    else:
        X = as_float64(check_vectors(X, name, kernel=kernel))
        check_magnitude(X, name)
    if kernel in ("text", "linear"):
        squares = X.multiply(X) if hasattr(X, "multiply") else X * X
        diagonal = np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
        return (lambda chosen: inner_products(X, X[chosen])), diagonal
    check_resolved(X, name)
    if kernel == "chi2":
        check_nonnegative(X, name, kernel="chi2")
    width = sampled_gamma(X, kernel, name=name) if gamma is None else gamma
    return (lambda chosen: exponential(kernel, X, X[chosen], width)), np.ones(X.shape[0])


def _check_factor_memory(n_items: int, rank: int) -> None:
    """Refuse factors that would not fit into free memory."""
    check_memory(
        # the factors twice, and the eigenvectors of a sample
        16 * n_items * rank + 40 * rank**2,
        what=f"Rank {rank:,} factors of {n_items:,} items",
        instead="Choose a smaller rank.",
    )
