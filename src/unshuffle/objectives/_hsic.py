"""Dependence of two collections under a permutation, and its gradient.

Throughout, `K` (n, n) holds the similarities inside the first collection, `L` (m, m)
those inside the second, and `permutation` (n,) sends item i of the first to item
`permutation[i]` of the second. As a matrix, P[i, permutation[i]] = 1.
"""

import numpy as np
from numpy.typing import NDArray

from unshuffle._validation import check_kernel_memory
from unshuffle._validation._collections import as_numbers, table_shape

Array = NDArray[np.float64]
Permutation = NDArray[np.intp]


def hsic_biased(K: Array, L: Array) -> float:
    """Biased HSIC of two kernel matrices whose rows correspond, eq. (4).

    Parameters
    ----------
    K, L : ndarray of shape (n, n)
        Kernel matrices, not necessarily centred.

    Returns
    -------
    value : float
        (n - 1)^-2 tr(H K H L). Larger is more dependent; 0 is independent.
    """
    check_kernel_memory(*table_shape(K), n_copies=2.0)
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    n_items = K.shape[0]
    return float(np.sum(_centered(K) * L)) / (n_items - 1) ** 2


def hsic_zeroed(K: Array, L: Array) -> float:
    """HSIC with the diagonals of both centred kernels removed.

    A text is far more similar to itself than to any other, and n large diagonal
    terms hide the n (n - 1) others (section 2.3). The paper removes the diagonal and
    then centres, which puts a diagonal back; here the kernels are centred first.

    Parameters
    ----------
    K, L : ndarray of shape (n, n)
        Kernel matrices, not necessarily centred.

    Returns
    -------
    value : float
        (n - 1)^-2 times the sum of H K H * H L H off the diagonal.
    """
    check_kernel_memory(*table_shape(K), n_copies=3.0)
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    n_items = K.shape[0]
    product = _centered(K) * _centered(L)
    return float(np.sum(product) - np.trace(product)) / (n_items - 1) ** 2


def hsic_unbiased(K: Array, L: Array) -> float:
    """Unbiased HSIC: its mean over samples of independent data is zero.

    Parameters
    ----------
    K, L : ndarray of shape (n, n)
        Kernel matrices, not necessarily centred; n must be at least 4.

    Returns
    -------
    value : float
        May be negative.

    References
    ----------
    Song, Smola, Gretton, Bedo, Borgwardt, "Feature selection via dependence
    maximization", JMLR 13 (2012), eq. (5).
    """
    check_kernel_memory(*table_shape(K), n_copies=3.0)
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    n_items = K.shape[0]
    if n_items < 4:
        raise ValueError(f"The unbiased HSIC needs at least 4 items, got {n_items}.")
    K = K - np.diag(np.diag(K))
    L = L - np.diag(np.diag(L))
    row_k, row_l = K.sum(axis=1), L.sum(axis=1)
    return float(
        np.sum(K * L)
        + row_k.sum() * row_l.sum() / ((n_items - 1) * (n_items - 2))
        - 2 / (n_items - 2) * (row_k @ row_l)
    ) / (n_items * (n_items - 3))


def trace_value(K: Array, L: Array, permutation: Permutation) -> float:
    """Sum of K[i, j] L[p(i), p(j)], the objective of kernelized sorting, eq. (5).

    Printed as tr K P' L P, which with the paper's footnote 1 evaluates the inverse of P;
    this is tr K P L P'.
    """
    check_kernel_memory(len(permutation), len(permutation))
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    return float(np.vdot(K, L[np.ix_(permutation, permutation)]))


def trace_gradient(K: Array, L: Array, permutation: Permutation) -> Array:
    """Gradient 2 K P L of `trace_value` in the matrix P, shape (n, m)."""
    check_kernel_memory(len(permutation), table_shape(L)[0], n_copies=2.0)
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    permutation = np.asarray(permutation)
    return 2.0 * (K @ L[permutation])


def squared_value(K: Array, L: Array, permutation: Permutation) -> float:
    """Sum of K[i, j] L[p(i), p(j)] - L[p(i), p(j)]^2 / 2, for a first collection that is smaller.

    Where items of the second collection go unused the trace alone favours those with
    large similarities; the squared term, constant when sizes are equal, mends that. Up to
    a constant this is minus half the sum of (K[i, j] - L[p(i), p(j)])^2.
    """
    check_kernel_memory(len(permutation), len(permutation))
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    matched = L[np.ix_(permutation, permutation)]
    return float(np.vdot(K, matched) - 0.5 * np.vdot(matched, matched))


def squared_gradient(K: Array, L: Array, squared_L: Array, permutation: Permutation) -> Array:
    """Gradient of `squared_value` in the matrix P, shape (n, m); `squared_L` is L * L."""
    check_kernel_memory(len(permutation), table_shape(L)[0], n_copies=2.0)
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    squared_L, permutation = as_numbers(squared_L, "squared_L"), np.asarray(permutation)
    return 2.0 * (K @ L[permutation]) - squared_L[permutation].sum(axis=0)


def _centered(K: Array) -> Array:
    means = K.mean(axis=0)
    return np.asarray(K - means[:, None] - means[None, :] + means.mean())
