"""Costs of carrying vectors onto others by exponentials of matrices, with exact gradients.

Throughout, pair n asks that exp(A_n) carries `sources[n]` onto `targets[n]`.
"""

import numpy as np
from numpy.typing import NDArray

from unshuffle._contracts import takes
from unshuffle._motion import exponential_action, exponential_pullback

Array = NDArray[np.float64]


@takes(generators="k d d", coefficients="n k", targets="n d", sources="n d")
def squared_orbit_cost(
    generators: Array, coefficients: Array, targets: Array, sources: Array
) -> float:
    """Sum of squared distances |x - exp(sum_j c_j V_j) x'|^2 over all pairs.

    Parameters
    ----------
    generators : ndarray of shape (k, d, d)
        The matrices V_j.
    coefficients : ndarray of shape (n, k)
        How far each pair goes along each.
    targets, sources : ndarray of shape (n, d)
        The vectors x and x'.

    Returns
    -------
    cost : float
        Smaller is better; 0 where every pair lies on an orbit.
    """
    moved = exponential_action(combined(generators, coefficients), sources)
    return float(np.sum((targets - moved) ** 2))


@takes(generators="k d d", coefficients="n k", targets="n d", sources="n d")
def squared_orbit_gradient(
    generators: Array, coefficients: Array, targets: Array, sources: Array
) -> tuple[float, Array, Array]:
    """The same cost, with its gradients.

    Parameters
    ----------
    generators : ndarray of shape (k, d, d)
        The matrices V_j.
    coefficients : ndarray of shape (n, k)
        How far each pair goes along each.
    targets, sources : ndarray of shape (n, d)
        The vectors x and x'.

    Returns
    -------
    cost : float
        As `squared_orbit_cost`.
    by_generators : ndarray of shape (k, d, d)
        Gradient with respect to the entries of the generators.
    by_coefficients : ndarray of shape (n, k)
        Gradient with respect to the coefficients.
    """
    A = combined(generators, coefficients)
    missed = exponential_action(A, sources) - targets
    _, by_matrix = exponential_pullback(A, sources, 2.0 * missed)
    by_generators = np.tensordot(coefficients, by_matrix, axes=(0, 0))
    by_coefficients = np.tensordot(by_matrix, generators, axes=((1, 2), (1, 2)))
    return float(np.sum(missed**2)), np.asarray(by_generators), np.asarray(by_coefficients)


@takes(generators="k d d", coefficients="n k")
def combined(generators: Array, coefficients: Array) -> Array:
    """Matrices sum_j c_nj V_j, shape (n, d, d)."""
    return np.asarray(np.tensordot(coefficients, generators, axes=(1, 0)))


@takes(A="n d d", targets="n d", sources="n d")
def log_trace_errors(A: Array, targets: Array, sources: Array) -> tuple[Array, Array]:
    """Errors log(x'exp(-A)x + z'exp(A)z) of symmetric matrices, with z = x', and their gradients.

    Least, log(2 x'z), where exp(A) carries z onto x, provided that x'z > 0: no symmetric matrix
    carries a vector onto one at a right angle to it or beyond. It is sign-blind, and for matrices
    that are not symmetric it has no least value.

    Parameters
    ----------
    A : ndarray of shape (n, d, d)
        Symmetric matrices.
    targets, sources : ndarray of shape (n, d)
        The vectors x and z.

    Returns
    -------
    errors : ndarray of shape (n,)
        One for each pair.
    gradients : ndarray of shape (n, d, d)
        With respect to A, by divided differences of the exponential (Daleckii and Krein).
    """
    values, vectors = np.linalg.eigh(A)
    x = np.einsum("nij,ni->nj", vectors, targets)
    z = np.einsum("nij,ni->nj", vectors, sources)
    # the largest exponent is taken out of all: a trial step may be wild
    shift = np.abs(values).max(axis=1, keepdims=True)
    total = np.sum(np.exp(-values - shift) * x**2 + np.exp(values - shift) * z**2, axis=1)
    inner = z[:, :, None] * z[:, None, :] * _divided(values, shift)
    inner -= x[:, :, None] * x[:, None, :] * _divided(-values, shift)
    inner /= total[:, None, None]
    gradients = vectors @ inner @ np.swapaxes(vectors, 1, 2)
    return np.log(total) + shift[:, 0], gradients


@takes(diagonals="n d", targets="n d", sources="n d")
def log_trace_errors_diagonal(
    diagonals: Array, targets: Array, sources: Array
) -> tuple[Array, Array]:
    """The same for diagonal matrices, given by their diagonals, for which it is convex.

    Parameters
    ----------
    diagonals : ndarray of shape (n, d)
        Diagonals of the matrices.
    targets, sources : ndarray of shape (n, d)
        The vectors x and z.

    Returns
    -------
    errors : ndarray of shape (n,)
        One for each pair.
    gradients : ndarray of shape (n, d)
        With respect to the diagonals.
    """
    shift = np.abs(diagonals).max(axis=1, keepdims=True)
    back = np.exp(-diagonals - shift) * targets**2
    on = np.exp(diagonals - shift) * sources**2
    total = np.sum(back + on, axis=1)
    return np.log(total) + shift[:, 0], (on - back) / total[:, None]


@takes(vectors="n d", eps1="above 0", eps2="above 0")
def matrix_volume(vectors: Array, *, eps1: float, eps2: float) -> tuple[float, Array]:
    """Volume log|M + eps1| + eps2 tr M of matrices written as vectors, M = mean of a a'.

    M is not centred: matrices sum_j c_j V_j fill a subspace through zero, and a mean that costs
    nothing would grow without bound.

    Parameters
    ----------
    vectors : ndarray of shape (n, p)
        One matrix in each row.
    eps1 : float
        Larger counts small directions less.
    eps2 : float
        Larger keeps the matrices smaller. The volume is convex from eps1 * eps2 = 1/8 on.

    Returns
    -------
    volume : float
        Smaller spans fewer directions.
    gradient : ndarray of shape (n, p)
        With respect to the vectors.
    """
    n, p = vectors.shape
    values, directions = np.linalg.eigh(vectors.T @ vectors / n)
    values = np.maximum(values, 0.0)
    volume = float(np.sum(np.log(values + eps1)) + eps2 * np.sum(values))
    weights = (directions / (values + eps1)) @ directions.T + eps2 * np.eye(p)
    return volume, 2.0 / n * vectors @ weights


def _divided(values: Array, shift: Array) -> Array:
    """(exp(v_i) - exp(v_j)) / (v_i - v_j) over exp(shift), and exp(v_i) where they are equal."""
    first, second = values[:, :, None], values[:, None, :]
    gap = first - second
    near = np.abs(gap) < 0.1
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.exp(values - shift)
        far_apart = (scaled[:, :, None] - scaled[:, None, :]) / np.where(near, 1.0, gap)
    half = np.where(near, gap / 2, 0.0)
    # sinh(h) / h to rounding for |h| < .05
    ratio = 1 + half**2 / 6 * (1 + half**2 / 20 * (1 + half**2 / 42))
    middle = np.exp((first + second) / 2 - shift[:, :, None]) * ratio
    return np.asarray(np.where(near, middle, far_apart))
