"""Matrix exponentials, and the linear motions that generators and coefficients define."""

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.arrays import middle
from unshuffle._run.types import Floats

_LARGEST_NORM = 1e10  # the relative error of an exponential is about 1e-16 times this
_BLOCK = 2_000_000  # numbers in a stack of matrices


def exponentials(A: Floats) -> Floats:
    """Exponentials of matrices by scaling and squaring; not finite on overflow."""
    norms = one_norms(A)
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


def one_norms(A: Floats) -> Floats:
    """1-norms of matrices."""
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(A).sum(axis=1).max(axis=1, initial=0.0))


def matrices_of(generators: Floats, coefficients: Floats) -> Floats:
    """Matrices sum c V, shape (n, d, d)."""
    return np.asarray(np.tensordot(coefficients, generators, axes=(1, 0)))


def matrix_norms(generators: Floats, coefficients: Floats) -> Floats:
    """1-norms of sum c V, shape (n,); infinite where they overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        norms = one_norms(matrices_of(generators, coefficients))
    return np.where(np.isnan(norms), np.inf, norms)


def moved_by(generators: Floats, coefficients: Floats, vector: Floats) -> Floats:
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
    """Coordinates along orthonormal directions about a center, which no matrix moves."""

    mean: Floats  # the center, (n_features,)
    components: Floats  # (n_components, n_features)

    @classmethod
    def of(cls, X: Floats, n_components: int, center: Floats | None = None) -> "Subspace":
        """Principal directions of the rows about a center; None is their mean."""
        if center is None:
            start = middle(X)
            center = start + (X - start).mean(axis=0)
        directions = np.linalg.svd(X - center, full_matrices=False)[2][:n_components]
        largest = np.abs(directions).argmax(axis=1)
        signs = np.sign(directions[np.arange(len(directions)), largest])
        return cls(center, directions * signs[:, None])

    def inside(self, X: Floats) -> Floats:
        """Coordinates of rows."""
        return np.asarray((X - self.mean) @ self.components.T)

    def outside(self, X: Floats) -> Floats:
        """Part of the rows orthogonal to the directions, which no motion changes."""
        return np.asarray(X - self.inside(X) @ self.components)

    def back(self, coordinates: Floats) -> Floats:
        """Vectors with these coordinates, without the mean."""
        return np.asarray(coordinates @ self.components)


@dataclass(frozen=True)
class Motion:
    """Generators, and the subspace in which they act; None if they act on whole vectors."""

    generators: Floats  # (k, d, d)
    subspace: Subspace | None

    def moved(self, x: Floats, coefficients: Floats) -> Floats:
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

    def flow(self, x: Floats) -> Floats:
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
