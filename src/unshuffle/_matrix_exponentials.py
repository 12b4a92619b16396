"""Matrix exponentials, their action on vectors, and derivatives of it.

Solvers need exp(A) z for one vector z of each matrix, never exp(A) itself. Its Taylor series takes
only products with vectors, and its derivatives follow term by term, exact up to rounding for every
matrix, including defective ones.
"""

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import middle

Array = NDArray[np.float64]

_STEP = 2.0  # largest 1-norm of one Taylor step; keeps cancellation small
_TERMS = 25  # _STEP**26 / 26! is below rounding
_MOST_STEPS = 64  # with more steps, squaring the exponential is faster
_LARGEST_NORM = 1e10  # the relative error of an exponential is about 1e-16 times this
_BLOCK = 2_000_000  # numbers in a stack of matrices


def exponentials(A: Array) -> Array:
    """Exponentials of matrices by scaling and squaring; not finite on overflow."""
    norms = _norms(A)
    sound = norms <= _LARGEST_NORM
    if not sound.all():
        found = np.full(A.shape, np.nan)
        found[sound] = exponentials(A[sound])
        return found
    n_squarings = np.ceil(np.log2(np.maximum(norms / 0.5, 1.0))).astype(int)
    power = np.ldexp(A, -n_squarings[:, None, None])
    square = power @ power
    cube, fourth = square @ power, square @ square
    unit = np.eye(A.shape[-1])
    # Degree 16 in powers of A^4 (Paterson and Stockmeyer): six products, not fifteen.
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
    return np.asarray(result)


def action(A: Array, z: Array) -> Array:
    """Vectors exp(A_n) z_n without forming the exponentials; not finite on overflow."""
    result = np.empty(z.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for chosen, n_steps in _groups(A):
            if n_steps > _MOST_STEPS:
                whole = exponentials(A[chosen])
                result[chosen] = np.einsum("nij,nj->ni", whole, z[chosen])
                continue
            step, moved = A[chosen] / n_steps, z[chosen]
            for _ in range(n_steps):
                moved = _series(step, moved).sum(axis=0)
            result[chosen] = moved
    return result


def jacobian(A: Array, z: Array, directions: Array) -> tuple[Array, Array]:
    """Vectors exp(A_n) z_n, and their derivatives (n, d, k) as A_n moves along `directions`."""
    columns = np.ascontiguousarray(directions.transpose(2, 1, 0).reshape(z.shape[1], -1))
    result, changes = np.empty(z.shape), np.empty((*z.shape, len(directions)))
    with np.errstate(over="ignore", invalid="ignore"):
        for chosen, n_steps in _groups(A):
            if n_steps > _MOST_STEPS:
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


def pullback(A: Array, z: Array, w: Array) -> tuple[Array, Array]:
    """Vectors exp(A_n) z_n, and the gradients of w_n'exp(A_n) z_n with respect to A_n."""
    result, gradient = np.empty(z.shape), np.empty(A.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for chosen, n_steps in _groups(A):
            if n_steps > _MOST_STEPS:
                outer = w[chosen][:, :, None] * z[chosen][:, None, :]
                whole, along = _with_derivative(np.swapaxes(A[chosen], 1, 2), outer)
                result[chosen] = np.einsum("nji,nj->ni", whole, z[chosen])
                gradient[chosen] = along
                continue
            found = _pullback(A[chosen] / n_steps, z[chosen], w[chosen], n_steps)
            result[chosen], gradient[chosen] = found
    return result, gradient


def _large_jacobian(A: Array, z: Array, directions: Array) -> tuple[Array, Array]:
    moved, changes = np.empty(z.shape), np.empty((*z.shape, len(directions)))
    for q, direction in enumerate(directions):
        whole, along = _with_derivative(A, np.broadcast_to(direction, A.shape))
        moved = np.einsum("nij,nj->ni", whole, z)
        changes[:, :, q] = np.einsum("nij,nj->ni", along, z)
    return moved, changes


def _with_derivative(A: Array, directions: Array) -> tuple[Array, Array]:
    """exp(A_n), and its derivative along D_n: blocks of the exponential of [[A, D], [0, A]]."""
    n, d, _ = A.shape
    # The derivative is linear in D, so D is scaled down to keep the norm that of A.
    sizes = np.maximum(_norms(directions), np.finfo(float).tiny)[:, None, None]
    blocks = np.zeros((n, 2 * d, 2 * d))
    blocks[:, :d, :d] = blocks[:, d:, d:] = A
    blocks[:, :d, d:] = directions / sizes
    found = exponentials(blocks)
    return found[:, :d, :d], found[:, :d, d:] * sizes


def _norms(A: Array) -> Array:
    """1-norms of matrices."""
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(A).sum(axis=1).max(axis=1, initial=0.0))


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
    """Indices of matrices of similar norm, with their number of Taylor steps: 1, 2, 4, ..."""
    norms = np.nan_to_num(_norms(A), nan=np.inf, posinf=np.inf)
    doublings = np.ceil(np.log2(np.clip(norms / _STEP, 1.0, 2.0 * _MOST_STEPS)))
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


def matrices_of(generators: Array, coefficients: Array) -> Array:
    """Matrices sum c V, shape (n, d, d)."""
    return np.asarray(np.tensordot(coefficients, generators, axes=(1, 0)))


def matrix_norms(generators: Array, coefficients: Array) -> Array:
    """1-norms of sum c V, shape (n,); infinite where they overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        norms = _norms(matrices_of(generators, coefficients))
    return np.where(np.isnan(norms), np.inf, norms)


def moved_by(generators: Array, coefficients: Array, vector: Array) -> Array:
    """Vectors exp(sum c V) x for one x and many c, shape (n, d), computed in blocks."""
    d = vector.size
    block = max(1, _BLOCK // d**2)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller checks
        parts = [
            exponentials(matrices_of(generators, coefficients[start : start + block])) @ vector
            for start in range(0, len(coefficients), block)
        ]
    return np.concatenate(parts) if parts else np.zeros((0, d))


@dataclass(frozen=True)
class Subspace:
    """Coordinates along orthonormal directions about a mean, which no matrix moves."""

    mean: Array  # (n_features,)
    components: Array  # (n_components, n_features)

    @classmethod
    def of(cls, X: Array, n_components: int) -> "Subspace":
        """Mean of the rows and their principal directions."""
        start = middle(X)
        near = X - start
        mean = near.mean(axis=0)
        directions = np.linalg.svd(near - mean, full_matrices=False)[2][:n_components]
        largest = np.abs(directions).argmax(axis=1)
        signs = np.sign(directions[np.arange(len(directions)), largest])
        return cls(start + mean, directions * signs[:, None])

    def inside(self, X: Array) -> Array:
        """Coordinates of rows."""
        return np.asarray((X - self.mean) @ self.components.T)

    def outside(self, X: Array) -> Array:
        """Part of the rows orthogonal to the directions, which no motion changes."""
        return np.asarray(X - self.inside(X) @ self.components)

    def back(self, coordinates: Array) -> Array:
        """Vectors with these coordinates, without the mean."""
        return np.asarray(coordinates @ self.components)


@dataclass(frozen=True)
class Motion:
    """Generators, and the subspace in which they act; None if they act on whole vectors."""

    generators: Array  # (k, d, d)
    subspace: Subspace | None

    def moved(self, x: Array, coefficients: Array) -> Array:
        """exp(sum c V) x for each row c, shape (n, n_features); refused if rounding dominates."""
        if self.subspace is None:
            places = moved_by(self.generators, coefficients, x)
        else:
            inside = self.subspace.inside(x[None])[0]
            places = self.subspace.back(moved_by(self.generators, coefficients, inside))
            places = places + self.subspace.outside(x[None])
        norms = matrix_norms(self.generators, coefficients)
        _check_moved(places, norms)
        _check_reach(norms)
        return places

    def flow(self, x: Array) -> Array:
        """V x for each generator, shape (k, n_features): derivative of x along each c."""
        if self.subspace is None:
            return np.asarray(self.generators @ x)
        return self.subspace.back(self.generators @ self.subspace.inside(x[None])[0])


def _check_moved(moved: NDArray[np.float64], norms: NDArray[np.float64]) -> None:
    """Refuse exponentials that overflow, for matrices that `_check_reach` accepts."""
    wrong = np.flatnonzero(~np.isfinite(moved).all(axis=1) & (norms <= _LARGEST_NORM))
    if wrong.size:
        raise ValueError(
            f"The exponential of the generators overflows for row {wrong[0]} of the coefficients "
            f"({wrong.size} row(s) in all). Pass smaller coefficients."
        )


def _check_reach(norms: NDArray[np.float64]) -> None:
    """Refuse matrices so large that rounding dominates their exponentials."""
    wrong = np.flatnonzero(norms > _LARGEST_NORM)
    if wrong.size:
        raise ValueError(
            f"Row {wrong[0]} of the coefficients gives a matrix of norm {norms[wrong[0]]:.3g}; "
            f"beyond {_LARGEST_NORM:.0e} rounding decides the result ({wrong.size} row(s)). "
            "Pass smaller coefficients."
        )
