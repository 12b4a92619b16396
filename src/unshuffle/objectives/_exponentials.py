"""Exponentials of many matrices at once: whole, acting on vectors, and their derivatives.

Solvers need exp(A) z for one vector z of each matrix, never exp(A) itself. Its Taylor series then
takes products with vectors only, of which derivatives follow term by term, exact to rounding for
every matrix, defective ones included.
"""

from math import factorial

import numpy as np
from numpy.typing import NDArray

from unshuffle._validation._collections import as_numbers

Array = NDArray[np.float64]

_STEP = 2.0  # largest 1-norm of one Taylor step: no cancellation to speak of
_TERMS = 25  # _STEP**26 / 26! is below rounding


def matrix_exponentials(A: Array) -> Array:
    """Exponentials of a stack of matrices, by scaling and squaring.

    Parameters
    ----------
    A : ndarray of shape (..., d, d)
        Any finite matrices; large ones take one more product for each doubling of their norm.

    Returns
    -------
    exponentials : ndarray of shape (..., d, d)
        Infinite or NaN where an exponential does not fit into a float.
    """
    matrices = as_numbers(A, "A")
    flat = matrices.reshape(-1, *matrices.shape[-2:])
    norms = np.abs(flat).sum(axis=1).max(axis=1, initial=0.0)
    n_squarings = np.ceil(np.log2(np.maximum(norms / 0.5, 1.0))).astype(int)
    power = np.ldexp(flat, -n_squarings[:, None, None])
    square = power @ power
    cube, fourth = square @ power, square @ square
    unit = np.eye(matrices.shape[-1])
    # Degree 16 in powers of A^4 (Paterson and Stockmeyer): six products instead of fifteen.
    result = fourth / factorial(16)
    for k in (12, 8, 4, 0):
        result = result + unit / factorial(k) + power / factorial(k + 1)
        result += square / factorial(k + 2) + cube / factorial(k + 3)
        if k:
            result = result @ fourth
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n_squarings.max(initial=0)):
            left = n_squarings > k
            result[left] = result[left] @ result[left]
    return np.asarray(result.reshape(matrices.shape))


def exponential_action(A: Array, z: Array) -> Array:
    """Vectors exp(A_n) z_n, without the exponentials themselves.

    Parameters
    ----------
    A : ndarray of shape (n, d, d)
        Matrices; time grows with the largest norm among them.
    z : ndarray of shape (n, d)
        One vector for each.

    Returns
    -------
    moved : ndarray of shape (n, d)
        exp(A_n) z_n.
    """
    A, z = as_numbers(A, "A"), as_numbers(z, "z")
    result = np.empty(z.shape)
    for chosen, n_steps in _groups(A):
        step, moved = A[chosen] / n_steps, z[chosen]
        for _ in range(n_steps):
            moved = _series(step, moved).sum(axis=0)
        result[chosen] = moved
    return result


def exponential_jacobian(A: Array, z: Array, directions: Array) -> tuple[Array, Array]:
    """Vectors exp(A_n) z_n and how they change as A_n moves along given matrices.

    Parameters
    ----------
    A : ndarray of shape (n, d, d)
        Matrices.
    z : ndarray of shape (n, d)
        One vector for each.
    directions : ndarray of shape (p, d, d)
        Directions of change, the same for all.

    Returns
    -------
    moved : ndarray of shape (n, d)
        exp(A_n) z_n.
    jacobian : ndarray of shape (n, d, p)
        Column q is the derivative of exp(A_n + t D_q) z_n at t = 0.
    """
    A, z = as_numbers(A, "A"), as_numbers(z, "z")
    directions = as_numbers(directions, "directions")
    columns = np.ascontiguousarray(directions.transpose(2, 1, 0).reshape(z.shape[1], -1))
    result, jacobian = np.empty(z.shape), np.empty((*z.shape, len(directions)))
    for chosen, n_steps in _groups(A):
        step, scaled, moved = A[chosen] / n_steps, columns / n_steps, z[chosen]
        change = np.zeros((*moved.shape, len(directions)))
        for _ in range(n_steps):
            term, rate = moved, change
            moved, change = moved.copy(), change.copy()
            for k in range(1, _TERMS + 1):
                pushed = (term @ scaled).reshape(change.shape)  # D_q term for all q
                rate = (step @ rate + pushed) / k
                term = np.einsum("nij,nj->ni", step, term) / k
                moved += term
                change += rate
        result[chosen], jacobian[chosen] = moved, change
    return result, jacobian


def exponential_pullback(A: Array, z: Array, w: Array) -> tuple[Array, Array]:
    """Vectors exp(A_n) z_n and the gradient of w_n'exp(A_n) z_n with respect to A_n.

    Parameters
    ----------
    A : ndarray of shape (n, d, d)
        Matrices.
    z, w : ndarray of shape (n, d)
        Vectors on either side.

    Returns
    -------
    moved : ndarray of shape (n, d)
        exp(A_n) z_n.
    gradient : ndarray of shape (n, d, d)
        Integral over s in (0, 1) of exp(sA)'w z'exp((1-s)A)', for each n.
    """
    A, z = as_numbers(A, "A"), as_numbers(z, "z")
    w = as_numbers(w, "w")
    result, gradient = np.empty(z.shape), np.empty(A.shape)
    for chosen, n_steps in _groups(A):
        found = _pullback(A[chosen] / n_steps, z[chosen], w[chosen], n_steps)
        result[chosen], gradient[chosen] = found
    return result, gradient


def _pullback(step: Array, z: Array, w: Array, n_steps: int) -> tuple[Array, Array]:
    transposed = np.swapaxes(step, 1, 2)
    forward, moved = [], z
    for _ in range(n_steps):
        forward.append(_series(step, moved, weighted=False))
        moved = _weighted(forward[-1]).sum(axis=0)
    gradient, back = np.zeros_like(step), w
    for powers in reversed(forward):
        pulled = _series(transposed, back, weighted=False)
        # sum over i + j < terms of (A'^i w)(A^j z)' / (i + j + 1)!
        mixed = np.tensordot(_hankel(), powers, axes=(1, 0))
        gradient += np.einsum("tni,tnj->nij", pulled, mixed, optimize=True)
        back = _weighted(pulled).sum(axis=0)
    return np.asarray(moved), gradient / n_steps


def _groups(A: Array) -> list[tuple[NDArray[np.intp], int]]:
    """Matrices of similar size, and how many Taylor steps these need: 1, 2, 4, ..."""
    norms = np.abs(A).sum(axis=1).max(axis=1, initial=0.0)
    with np.errstate(divide="ignore"):
        doublings = np.ceil(np.log2(np.clip(norms / _STEP, 1.0, 2.0**20)))
    return [(np.flatnonzero(doublings == each), 2 ** int(each)) for each in np.unique(doublings)]


def _series(A: Array, z: Array, *, weighted: bool = True) -> Array:
    """Terms A^k z, over k! where `weighted`, for k = 0 to _TERMS."""
    terms = np.empty((_TERMS + 1, *z.shape))
    terms[0] = z
    for k in range(1, _TERMS + 1):
        np.einsum("nij,nj->ni", A, terms[k - 1], out=terms[k])
        if weighted:
            terms[k] /= k
    return terms


def _weighted(powers: Array) -> Array:
    factorials = np.cumprod(np.maximum(np.arange(len(powers), dtype=np.float64), 1.0))
    return np.asarray(powers / factorials[:, None, None])


def _hankel() -> Array:
    k = np.arange(_TERMS + 1)
    total = k[:, None] + k[None, :] + 1
    table = np.array([1.0 / factorial(int(each)) for each in range(2 * _TERMS + 2)])
    return np.asarray(np.where(total <= _TERMS + 1, table[total], 0.0))
