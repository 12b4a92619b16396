"""Low-rank factors F with K ~ F F', for Gram matrices that do not fit into memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.arrays import (
    check_magnitude,
    check_nonnegative,
    check_resolved,
    check_vectors,
    table_shape,
)
from unshuffle._core.distances import (
    DISTANCES,
    as_float64,
    exponential,
    inner_products,
    sampled_gamma,
)
from unshuffle._core.grams import Kernel
from unshuffle._core.kernel_features import greedy_cholesky
from unshuffle._core.parameters import (
    check_count,
    check_memory,
    check_positive,
    check_real,
    check_seed,
)
from unshuffle.kernels._gram import gram_matrix
from unshuffle.kernels._text import text_features


def pivoted_cholesky(
    X: Any,
    rank: int,
    *,
    kernel: Kernel = "precomputed",
    gamma: float | None = None,
    tol: float = 1e-10,
) -> NDArray[np.float64]:
    """Low-rank factor F with F F' close to the kernel matrix, by greedy pivoting.

    Parameters
    ----------
    X : Gram matrix of shape (n, n), or input of `gram_matrix`
        A Gram matrix unless `kernel` is given.
    rank : int
        Most columns of F. A larger value approximates better and takes more time and memory.
    kernel : str or callable, default="precomputed"
        As in `gram_matrix`. The kernel matrix is formed one column at a time, except for
        "geodesic", "precomputed" and a callable.
    gamma : float, default=None
        A larger value makes the kernel narrower and needs a higher rank. None takes one over the
        median distance, of at most 2,000 items.
    tol : float, default=1e-10
        Stop when the trace of K - F F' is at most this share of the trace of K. A larger value
        stops earlier, with fewer columns.

    Returns
    -------
    ndarray of shape (n, r)
        r is at most `rank`. The trace of K - F F' bounds its norm, is not negative for a positive
        definite kernel, and falls with every column.

    Notes
    -----
    O(n r^2) time beyond r columns of the kernel, and O(n r) memory. For a kernel that is not
    positive definite it stops when no positive pivot is left.

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
    columns, diagonal = _column_function(X, kernel, gamma, rank)
    n_items = diagonal.size
    # A smaller pivot is rounding error, and dividing by its root would spread it.
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
) -> NDArray[np.float64]:
    """Low-rank factor F with F F' close to the kernel matrix, from a sample of items.

    Parameters
    ----------
    X : input of `gram_matrix`
    kernel : str or callable, default="rbf"
        As in `pivoted_cholesky`.
    rank : int, default=100
        Items sampled, and most columns of F. A larger value approximates better and takes longer.
    gamma : float, default=None
        As in `pivoted_cholesky`. A larger value makes the kernel narrower.
    random_state : int, RandomState or None, default=None
        Draws the sample of items.

    Returns
    -------
    ndarray of shape (n, r)
        r is at most `rank`. The trace of K - F F' is not negative for a positive definite kernel.

    Notes
    -----
    O(n r^2) time beyond r columns of the kernel, and O(n r) memory. Faster than
    `pivoted_cholesky` of the same rank, and usually less accurate.

    References
    ----------
    Williams, Seeger, "Using the Nystrom method to speed up kernel machines", NIPS 13 (2001).

    Examples
    --------
    >>> nystroem_factors([[0.0], [1.0], [2.0], [3.0]], "rbf", 2, random_state=0).shape
    (4, 2)
    """
    rank = check_count(rank, "rank")
    columns, diagonal = _column_function(X, kernel, gamma, rank)
    n_items = diagonal.size
    rank = min(rank, n_items)
    chosen = check_seed(random_state).choice(n_items, rank, replace=False)
    chosen.sort()
    block = columns(chosen)
    values, vectors = np.linalg.eigh(block[chosen])
    # Pseudo-inverse: duplicates in the sample make the block singular.
    kept = values > rank * np.finfo(float).eps * max(float(values[-1]), 0.0)
    factors: NDArray[np.float64] = block @ (vectors[:, kept] / np.sqrt(values[kept]))
    return factors


def _column_function(
    X: Any, kernel: Kernel, gamma: float | None, rank: int
) -> tuple[Callable[..., NDArray[np.float64]], NDArray[np.float64]]:
    """Function that returns columns of the kernel matrix, and its diagonal."""
    n_items = table_shape(X)[0]
    _check_factor_memory(n_items, min(rank, n_items))
    if gamma is not None:
        gamma = check_positive(gamma, "gamma")
    if not isinstance(kernel, str) or kernel not in ("text", "linear", *DISTANCES):
        K = gram_matrix(X, kernel, gamma=gamma)
        return (lambda chosen: K[:, chosen]), K.diagonal().copy()
    if kernel == "text":
        X = text_features(X, name="X")
    else:
        X = as_float64(check_vectors(X, "X", kernel=kernel))
        check_magnitude(X, "X")
    if kernel in ("text", "linear"):
        squares = X.multiply(X) if hasattr(X, "multiply") else X * X
        diagonal = np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
        return (lambda chosen: inner_products(X, X[chosen])), diagonal
    check_resolved(X, "X")
    if kernel == "chi2":
        check_nonnegative(X, "X", kernel="chi2")
    width = sampled_gamma(X, kernel, name="X") if gamma is None else gamma
    return (lambda chosen: exponential(kernel, X, X[chosen], width)), np.ones(X.shape[0])


def _check_factor_memory(n_items: int, rank: int) -> None:
    """Refuse factors that would not fit into free memory."""
    check_memory(
        # the factors twice, and the eigenvectors of a sample
        16 * n_items * rank + 40 * rank**2,
        what=f"Rank {rank:,} factors of {n_items:,} items",
        instead="Choose a smaller rank.",
    )
