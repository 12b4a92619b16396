"""Dependence among several collections whose rows correspond: multiway HSIC and joint entropy.

Throughout, `kernels` holds one matrix of shape (m, m) for each collection, all in a common order:
row i of every matrix describes the same item.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle._contracts import raise_not_float, takes
from unshuffle._parameters import check_memory
from unshuffle.objectives._hsic import Array


@takes(kernels="list of m m")
def multiway_hsic(kernels: Sequence[Array]) -> float:
    """Squared distance between the joint mean and the product of the means, eqs. (14) and (15).

    Parameters
    ----------
    kernels : sequence of ndarray of shape (m, m)
        Kernel matrices in a common order, not centred.

    Returns
    -------
    value : float
        m^-2 1'[prod K_t]1 + prod(m^-2 1'K_t 1) - 2 m^-(T+1) 1'[prod K_t 1]. Larger is more
        dependent; 0 is independent. Of two kernels it is ((m - 1) / m)^2 times `hsic_biased`.

    Notes
    -----
    Eq. (15) is printed without the powers of m, and then measures something else: they are what
    makes means of the sums in eq. (14).
    """
    return float(np.vdot(multiway_weights(kernels[1:]), kernels[0])) / kernels[0].shape[0] ** 2


@takes(kernels="list of m m")
def multiway_weights(kernels: Sequence[Array]) -> Array:
    """Matrix W such that multiway HSIC with one more kernel K is m^-2 times the sum of W * K.

    W[i, j] is the inner product of items i and j in the product feature space of `kernels`, after
    the product of the marginal means is moved to the origin. So W is positive semi-definite, and
    with the others fixed the objective is convex in the permutation matrix of one collection.
    """
    joint = np.ones_like(kernels[0])
    to_mean = np.ones(joint.shape[0])
    squared_mean = 1.0
    for K in kernels:
        row_means = K.mean(axis=1)
        joint *= K
        to_mean *= row_means
        squared_mean *= float(row_means.mean())
    joint -= to_mean[:, None] + to_mean[None, :] - squared_mean
    return joint


@takes(kernels="list of m m", K="m m", permutation="m among m")
def multiway_gradient(
    kernels: Sequence[Array], K: Array, permutation: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Gradient 2 m^-2 W P K of multiway HSIC in the matrix P that orders one more kernel K.

    Parameters
    ----------
    kernels : sequence of ndarray of shape (m, m)
        Kernel matrices of the other collections, in the common order.
    K : ndarray of shape (m, m)
        Kernel matrix of the collection to order, in its own order.
    permutation : ndarray of shape (m,)
        Item of that collection at each place of the common order: P[i, permutation[i]] = 1.
    """
    weights = multiway_weights(kernels)
    return np.asarray(2.0 * (weights @ K[permutation]) / K.shape[0] ** 2)


@takes(kernels="list of m m", ridge="above 0")
def multiway_entropy(kernels: Sequence[Array], *, ridge: float) -> float:
    """Log-volume of the items in the product feature space, eq. (17) for any number of kernels.

    Parameters
    ----------
    kernels : sequence of ndarray of shape (m, m)
        Kernel matrices in a common order; their product must be positive semi-definite.
    ridge : float
        Added to the eigenvalues, since H J H is singular; larger values count only larger
        directions.

    Returns
    -------
    value : float
        log det(H J H + ridge I), J the elementwise product. Smaller is more dependent.
    """
    centered = _centered(np.prod(kernels, axis=0))
    centered[np.diag_indices_from(centered)] += ridge
    factor = linalg.cholesky(centered, lower=True, check_finite=False)
    return float(2.0 * np.sum(np.log(np.diag(factor))))


@takes(finite=False, others="m m", K="m m", ridge="above 0")
def entropy_swap_changes(others: Array, K: Array, *, ridge: float) -> Array:
    """Change of `multiway_entropy` for the exchange of each two items of one collection.

    Parameters
    ----------
    others : ndarray of shape (m, m)
        Elementwise product of the kernels of the other collections.
    K : ndarray of shape (m, m)
        Kernel of this collection, in the common order.
    ridge : float
        As in `multiway_entropy`.

    Returns
    -------
    changes : ndarray of shape (m * (m - 1) / 2,)
        One for each pair (i, j) in the order of `np.triu_indices(m, 1)`; below 0 is better. Exact:
        an exchange changes two rows and columns of J, so that its determinant changes by a factor
        det(I + C U' G U) of order four.

    Notes
    -----
    O(m^4) time in one matrix product, and about four arrays of m^3 / 2 numbers.
    """
    n_items = K.shape[0]
    check_memory(
        20 * n_items**3,
        what=f"Exchanging each two of {n_items:,} items",
        instead="Use a sample of the items.",
    )
    matrix = _centered(others * K)
    if not np.isfinite(matrix).all():
        raise_not_float("entropy_swap_changes", {"others": others, "K": K})
    matrix[np.diag_indices_from(matrix)] += ridge
    try:
        G = _centered(np.asarray(np.linalg.inv(matrix), dtype=np.float64))
    except np.linalg.LinAlgError as error:
        raise_not_float("entropy_swap_changes", {"others": others, "K": K, "ridge": ridge}, error)
    first, second = np.triu_indices(n_items, 1)
    gaps = K[second] - K[first]
    rows = others[first] * gaps  # what is added to row i of J
    columns = -others[second] * gaps
    pairs = np.arange(first.size)
    diagonal = np.diag(K)
    for change, own, other in ((rows, first, second), (columns, second, first)):
        # Row and column both carry the change of the diagonal: half of it each.
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
        # Rounding may leave a factor at or below 0 where the volume all but vanishes.
        return np.asarray(np.where(factors > 0, np.log(factors), np.inf))


def _centered(K: Array) -> Array:
    means = K.mean(axis=0)
    return np.asarray(K - means[:, None] - means[None, :] + means.mean())
