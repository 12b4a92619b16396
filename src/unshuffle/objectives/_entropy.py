"""Joint entropy of two collections under a permutation, and its gradient."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle._validation import check_kernel_memory
from unshuffle._validation._collections import as_numbers
from unshuffle.objectives._hsic import Array, Permutation


def entropy_value(K: Array, L: Array, permutation: Permutation, *, ridge: float) -> float:
    """Log-volume of the matched pairs in the product kernel's feature space, eq. (17).

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of the first collection.
    L : ndarray of shape (m, m)
        Kernel matrix of the second.
    permutation : ndarray of shape (n,)
        Partner of each item of the first collection.
    ridge : float
        Added to the eigenvalues, since H J H is singular; larger values count only
        larger directions.

    Returns
    -------
    value : float
        log det(H J H + ridge I) with J[i, j] = K[i, j] L[p(i), p(j)]. Smaller is more
        dependent.
    """
    check_kernel_memory(len(permutation), len(permutation), n_copies=3.5)
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    factor = _cholesky(K, L, permutation, ridge)
    return float(2.0 * np.sum(np.log(np.diag(factor))))


def entropy_weights(K: Array, L: Array, permutation: Permutation, *, ridge: float) -> Array:
    """Matrix A * K where A = H (H J H + ridge I)^-1 H is the slope of `entropy_value` in J.

    The log-determinant is concave in J, so tr(A J') bounds it from above (up to a constant)
    for every other matching: any permutation that lowers the sum of
    (A * K)[i, j] L[p(i), p(j)] lowers the entropy too.
    """
    check_kernel_memory(len(permutation), len(permutation), n_copies=4.0)
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    factor = _cholesky(K, L, permutation, ridge)
    inverse = linalg.cho_solve((factor, True), np.eye(K.shape[0]))
    means = inverse.mean(axis=0)
    centered = inverse - means[:, None] - means[None, :] + means.mean()
    return np.asarray(centered * K)


def entropy_gradient(K: Array, L: Array, permutation: Permutation, *, ridge: float) -> Array:
    """Gradient 2 (A * K) P L of `entropy_value` in the matrix P, shape (n, m)."""
    check_kernel_memory(len(permutation), len(permutation), n_copies=4.0)
    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    permutation = np.asarray(permutation)
    weights = entropy_weights(K, L, permutation, ridge=ridge)
    return np.asarray(2.0 * (weights @ L[permutation]))


def _cholesky(K: Array, L: Array, permutation: Permutation, ridge: float) -> NDArray[np.float64]:
    joint = K * L[np.ix_(permutation, permutation)]
    means = joint.mean(axis=0)
    centered = joint - means[:, None] - means[None, :] + means.mean()
    centered[np.diag_indices_from(centered)] += ridge
    return np.asarray(linalg.cholesky(centered, lower=True, check_finite=False))
