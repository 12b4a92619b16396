"""Action of matrix exponentials on vectors, and its derivatives.

Solvers need exp(A) z for one vector z of each matrix, never exp(A) itself. Its Taylor series takes
only products with vectors, and its derivatives follow term by term, exact up to rounding for every
matrix, including defective ones.
"""

from math import factorial

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.matrix_exponentials import exponentials, one_norms
from unshuffle._run.types import Floats

_STEP = 2.0  # largest 1-norm of one Taylor step; keeps cancellation small
_TERMS = 25  # _STEP**26 / 26! is below rounding
_MOST_STEPS = 64  # of matrices of any size
_BLOCK = 2_000_000  # numbers in a stack of matrices


def action(A: Floats, z: Floats) -> Floats:
    """Vectors exp(A_n) z_n without forming the exponentials; not finite on overflow."""
    result = np.empty(z.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for chosen, n_steps in _groups(A):
            if n_steps > _most_steps(A):
                whole = exponentials(A[chosen])
                result[chosen] = np.einsum("nij,nj->ni", whole, z[chosen])
                continue
            step, moved = A[chosen] / n_steps, z[chosen]
            for _ in range(n_steps):
                moved = _series(step, moved).sum(axis=0)
            result[chosen] = moved
    return result


def jacobian(A: Floats, z: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """Vectors exp(A_n) z_n, and their derivatives (n, d, k) as A_n moves along `directions`."""
    columns = np.ascontiguousarray(directions.transpose(2, 1, 0).reshape(z.shape[1], -1))
    result, changes = np.empty(z.shape), np.empty((*z.shape, len(directions)))
    with np.errstate(over="ignore", invalid="ignore"):
        for chosen, n_steps in _groups(A):
            if n_steps > _most_steps(A):
                found = _large_jacobian(A[chosen], z[chosen], directions)
                result[chosen], changes[chosen] = found
                continue
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
            result[chosen], changes[chosen] = moved, change
    return result, changes


def pullback(A: Floats, z: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Vectors exp(A_n) z_n, and the gradients of w_n'exp(A_n) z_n with respect to A_n."""
    result, gradient = np.empty(z.shape), np.empty(A.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for chosen, n_steps in _groups(A):
            if n_steps > _most_steps(A):
                outer = w[chosen][:, :, None] * z[chosen][:, None, :]
                whole, along = _with_derivative(np.swapaxes(A[chosen], 1, 2), outer)
                result[chosen] = np.einsum("nji,nj->ni", whole, z[chosen])
                gradient[chosen] = along
                continue
            found = _pullback(A[chosen] / n_steps, z[chosen], w[chosen], n_steps)
            result[chosen], gradient[chosen] = found
    return result, gradient


def _large_jacobian(A: Floats, z: Floats, directions: Floats) -> tuple[Floats, Floats]:
    n, d, _ = A.shape
    moved, changes = np.empty(z.shape), np.empty((*z.shape, len(directions)))
    block = max(1, _BLOCK // (n * (2 * d) ** 2))
    for first in range(0, len(directions), block):
        some = directions[first : first + block]
        repeated = np.broadcast_to(A, (len(some), *A.shape)).reshape(-1, d, d)
        whole, along = _with_derivative(repeated, np.repeat(some, n, axis=0))
        moved = np.einsum("nij,nj->ni", whole[:n], z)
        along = along.reshape(len(some), n, d, d)
        changes[:, :, first : first + block] = np.einsum("qnij,nj->niq", along, z)
    return moved, changes


def _with_derivative(A: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """exp(A_n), and its derivative along D_n: blocks of the exponential of [[A, D], [0, A]]."""
    n, d, _ = A.shape
    # The derivative is linear in D, so D is scaled down to keep the norm that of A.
    sizes = np.maximum(one_norms(directions), np.finfo(float).tiny)[:, None, None]
    blocks = np.zeros((n, 2 * d, 2 * d))
    blocks[:, :d, :d] = blocks[:, d:, d:] = A
    blocks[:, :d, d:] = directions / sizes
    found = exponentials(blocks)
    return found[:, :d, :d], found[:, :d, d:] * sizes


def _pullback(step: Floats, z: Floats, w: Floats, n_steps: int) -> tuple[Floats, Floats]:
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


def _most_steps(A: Floats) -> int:
    """Power of two about the size of the matrices; with more steps, squaring them is faster."""
    return 1 << (min(A.shape[-1], _MOST_STEPS).bit_length() - 1)


def _groups(A: Floats) -> list[tuple[NDArray[np.intp], int]]:
    """Indices of matrices of similar norm, with their number of Taylor steps: 1, 2, 4, ..."""
    norms = np.nan_to_num(one_norms(A), nan=np.inf, posinf=np.inf)
    doublings = np.ceil(np.log2(np.clip(norms / _STEP, 1.0, 2.0 * _most_steps(A))))
    return [(np.flatnonzero(doublings == each), 2 ** int(each)) for each in np.unique(doublings)]


def _series(A: Floats, z: Floats, *, weighted: bool = True) -> Floats:
    """Terms A^k z, over k! where `weighted`, for k = 0 to _TERMS."""
    terms = np.empty((_TERMS + 1, *z.shape))
    terms[0] = z
    for k in range(1, _TERMS + 1):
        np.einsum("nij,nj->ni", A, terms[k - 1], out=terms[k])
        if weighted:
            terms[k] /= k
    return terms


def _weighted(powers: Floats) -> Floats:
    factorials = np.cumprod(np.maximum(np.arange(len(powers), dtype=np.float64), 1.0))
    return np.asarray(powers / factorials[:, None, None])


def _hankel() -> Floats:
    k = np.arange(_TERMS + 1)
    total = k[:, None] + k[None, :] + 1
    table = np.array([1.0 / factorial(int(each)) for each in range(2 * _TERMS + 2)])
    return np.asarray(np.where(total <= _TERMS + 1, table[total], 0.0))
