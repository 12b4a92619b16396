"""Dependence of two collections under a permutation, or of several, and its gradient.

Throughout, `K` (n, n) holds the similarities inside the first collection, `L` (m, m)
those inside the second, and `permutation` (n,) sends item i of the first to item
`permutation[i]` of the second. As a matrix, P[i, permutation[i]] = 1.
Several collections are given by `kernels`, one matrix of shape (m, m) for each, all in a
common order: row i of every matrix describes the same item.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unshuffle._contracts import takes
from unshuffle._parallel import product

Array = NDArray[np.float64]
Permutation = NDArray[np.intp]


@takes(K="n n", L="n n")
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
    n_items = K.shape[0]
    # L too: where it is far from zero, sums that cancel would leave rounding.
    return float(np.sum(_centered(K) * _centered(L))) / (n_items - 1) ** 2


@takes(K="n n", L="n n")
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
    n_items = K.shape[0]
    product = _centered(K) * _centered(L)
    return float(np.sum(product) - np.trace(product)) / (n_items - 1) ** 2


@takes(K="n n", L="n n")
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
    n_items = K.shape[0]
    if n_items < 4:
        raise ValueError(f"The unbiased HSIC needs at least 4 items, got {n_items}.")
    # A constant off the diagonal changes nothing but takes digits.
    K, L = K - K[0, -1], L - L[0, -1]
    np.fill_diagonal(K, 0.0)
    np.fill_diagonal(L, 0.0)
    row_k, row_l = K.sum(axis=1), L.sum(axis=1)
    return float(
        np.sum(K * L)
        + row_k.sum() * row_l.sum() / ((n_items - 1) * (n_items - 2))
        - 2 / (n_items - 2) * (row_k @ row_l)
    ) / (n_items * (n_items - 3))


@takes(K="n n", L="m m", permutation="n among m")
def trace_value(K: Array, L: Array, permutation: Permutation) -> float:
    """Sum of K[i, j] L[p(i), p(j)], the objective of kernelized sorting, eq. (5).

    Printed as tr K P' L P, which with the paper's footnote 1 evaluates the inverse of P;
    this is tr K P L P'.
    """
    return float(np.vdot(K, L[np.ix_(permutation, permutation)]))


@takes(K="n n", L="m m", permutation="n among m")
def trace_gradient(K: Array, L: Array, permutation: Permutation) -> Array:
    """Gradient 2 K P L of `trace_value` in the matrix P, shape (n, m)."""
    return 2.0 * product(K, L[permutation])


@takes(K="n n", L="m m", permutation="n among m")
def squared_value(K: Array, L: Array, permutation: Permutation) -> float:
    """Sum of K[i, j] L[p(i), p(j)] - L[p(i), p(j)]^2 / 2, for a first collection that is smaller.

    Where items of the second collection go unused the trace alone favours those with
    large similarities; the squared term, constant when sizes are equal, mends that. Up to
    a constant this is minus half the sum of (K[i, j] - L[p(i), p(j)])^2.
    """
    matched = L[np.ix_(permutation, permutation)]
    return float(np.vdot(K, matched) - 0.5 * np.vdot(matched, matched))


@takes(K="n n", L="m m", squared_L="m m", permutation="n among m")
def squared_gradient(K: Array, L: Array, squared_L: Array, permutation: Permutation) -> Array:
    """Gradient of `squared_value` in the matrix P, shape (n, m); `squared_L` is L * L."""
    return 2.0 * product(K, L[permutation]) - squared_L[permutation].sum(axis=0)


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


def _centered(K: Array) -> Array:
    K = K - K[0, -1]  # a far-off constant would take digits of the means
    means = K.mean(axis=0)
    return np.asarray(K - means[:, None] - means[None, :] + means.mean())
