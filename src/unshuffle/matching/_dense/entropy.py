"""Joint entropy of collections, its slope, and its changes by exchanges of two items."""

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from unshuffle._core.parameters import check_memory
from unshuffle._run.types import Floats, Permutation


def entropy_value(K: Floats, L: Floats, permutation: Permutation, *, ridge: float) -> float:
    """Log-volume of the matched pairs in the product kernel's feature space, eq. (17).

    That is log det(H J H + ridge I) with J[i, j] = K[i, j] L[p(i), p(j)]; smaller values mean
    more dependence.
    """
    return multiway_entropy([K, L[np.ix_(permutation, permutation)]], ridge=ridge)


def entropy_weights(K: Floats, L: Floats, permutation: Permutation, *, ridge: float) -> Floats:
    """Matrix A * K where A = H (H J H + ridge I)^-1 H is the slope of `entropy_value` in J.

    The log-determinant is concave in J: a permutation that lowers the sum of
    (A * K)[i, j] L[p(i), p(j)] lowers the entropy.
    """
    factor = _factor(K * L[np.ix_(permutation, permutation)], ridge)
    inverse = linalg.cho_solve((factor, True), np.eye(K.shape[0]))
    return np.asarray(_centered(inverse) * K)


def multiway_entropy(kernels: Sequence[Floats], *, ridge: float) -> float:
    """Log-volume of the items in the product feature space, eq. (17), for several kernels."""
    factor = _factor(np.prod(kernels, axis=0), ridge)
    return float(2.0 * np.sum(np.log(np.diag(factor))))


def entropy_swap_changes(others: Floats, K: Floats, *, ridge: float) -> Floats:
    """Exact changes of `multiway_entropy` for each exchange of two items of one collection.

    In the order of `np.triu_indices(m, 1)`; `others` is the product of the other kernels. An
    exchange changes two rows and columns of J, and its determinant by a factor det(I + C U' G U)
    of order four. O(m^4) time, and about four arrays of m^3 / 2 numbers.
    """
    n_items = K.shape[0]
    check_memory(
        20 * n_items**3,
        what=f"Exchanging each two of {n_items:,} items",
        instead="Use a sample of the items.",
    )
    matrix = _centered(others * K)
    matrix[np.diag_indices_from(matrix)] += ridge
    G = _centered(np.asarray(np.linalg.inv(matrix), dtype=np.float64))
    first, second = np.triu_indices(n_items, 1)
    gaps = K[second] - K[first]
    rows = others[first] * gaps  # change of row i of J
    columns = -others[second] * gaps
    pairs = np.arange(first.size)
    diagonal = np.diag(K)
    for change, own, other in ((rows, first, second), (columns, second, first)):
        # Row and column each carry half of the change of the diagonal.
        change[pairs, own] = np.diag(others)[own] * (diagonal[other] - diagonal[own]) / 2.0
        change[pairs, other] = 0.0
    along_rows, along_columns = rows @ G, columns @ G
    inner = np.empty((first.size, 4, 4))  # U' G U, with U = [e_i, e_j, change of i, change of j]
    for place, (own, image) in enumerate(((first, along_rows), (second, along_columns))):
        inner[:, 0, place], inner[:, 1, place] = G[first, own], G[second, own]
        inner[:, 0, 2 + place], inner[:, 1, 2 + place] = image[pairs, first], image[pairs, second]
        inner[:, 2 + place, 2 + place] = 0.0
    inner[:, 2:, :2] = inner[:, :2, 2:].transpose(0, 2, 1)
    inner[:, 2, 2] = np.einsum("ij,ij->i", along_rows, rows)
    inner[:, 3, 3] = np.einsum("ij,ij->i", along_columns, columns)
    inner[:, 2, 3] = inner[:, 3, 2] = np.einsum("ij,ij->i", along_rows, columns)
    # C pairs each unit vector with its change, so C U' G U has the halves of the rows exchanged.
    factors = np.linalg.det(np.eye(4) + inner[:, [2, 3, 0, 1]])
    with np.errstate(divide="ignore", invalid="ignore"):
        # Rounding may make a factor negative where the volume nearly vanishes.
        return np.asarray(np.where(factors > 0, np.log(factors), np.inf))


def _factor(joint: Floats, ridge: float) -> Floats:
    """Lower Cholesky factor of H J H + ridge I."""
    centered = _centered(joint)
    centered[np.diag_indices_from(centered)] += ridge
    return np.asarray(linalg.cholesky(centered, lower=True, check_finite=False))


def _centered(K: Floats) -> Floats:
    means = K.mean(axis=0)
    return np.asarray(K - means[:, None] - means[None, :] + means.mean())
