"""What generators do to vectors, whole ones or their coordinates in a subspace."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._exponentials import exponentials
from unshuffle._middle import middle

_LARGEST_NORM = 1e10  # an exponential errs by about 1e-16 of it, relative to itself


Array = NDArray[np.float64]
_BLOCK = 2_000_000  # numbers in a stack of matrices


def matrix_norms(generators: Array, coefficients: Array) -> Array:
    """1-norms of sum c V, shape (n,); infinite where they overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        matrices = np.tensordot(coefficients, generators, axes=(1, 0))
        norms = np.abs(matrices).sum(axis=1).max(axis=1, initial=0.0)
    return np.where(np.isnan(norms), np.inf, norms)


def moved_by(generators: Array, coefficients: Array, vector: Array) -> Array:
    """Vectors exp(sum c V) x for one x and many c, shape (n, d), in blocks that fit in memory."""
    d = vector.size
    block = max(1, _BLOCK // d**2)
    with np.errstate(over="ignore", invalid="ignore"):  # left to the caller
        parts = [
            exponentials(
                np.tensordot(coefficients[start : start + block], generators, axes=(1, 0))
            )
            @ vector
            for start in range(0, len(coefficients), block)
        ]
    return np.concatenate(parts) if parts else np.zeros((0, d))


@dataclass(frozen=True)
class Subspace:
    """Coordinates along orthonormal directions about a centre.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        The centre, which no matrix moves.
    components : ndarray of shape (n_components, n_features)
        The directions.
    """

    mean: Array
    components: Array

    @classmethod
    def of(cls, X: Array, n_components: int) -> "Subspace":
        """The centre of the rows and the directions in which they vary most."""
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
        """What of rows lies across the directions, and stays as it is under every motion."""
        return np.asarray(X - self.inside(X) @ self.components)

    def back(self, coordinates: Array) -> Array:
        """Vectors of coordinates, without the centre."""
        return np.asarray(coordinates @ self.components)


@dataclass(frozen=True)
class Motion:
    """Generators, and the space in which they act.

    Attributes
    ----------
    generators : ndarray of shape (k, d, d)
        The matrices.
    subspace : Subspace or None
        Where the matrices act on d coordinates; None where they act on whole vectors.
    """

    generators: Array
    subspace: Subspace | None

    def moved(self, x: Array, coefficients: Array) -> Array:
        """exp(sum c V) x for each row c, shape (n, n_features); refused where rounding decides."""
        if self.subspace is None:
            places = moved_by(self.generators, coefficients, x)
        else:
            inside = self.subspace.inside(x[None])[0]
            places = self.subspace.back(moved_by(self.generators, coefficients, inside))
            places = places + self.subspace.outside(x[None])
        norms = matrix_norms(self.generators, coefficients)
        check_moved(places, norms)
        check_reach(norms)
        return places

    def flow(self, x: Array) -> Array:
        """V x for each generator, shape (k, n_features): the change of x per unit of c."""
        if self.subspace is None:
            return np.asarray(self.generators @ x)
        return self.subspace.back(self.generators @ self.subspace.inside(x[None])[0])


def check_moved(moved: NDArray[np.float64], norms: NDArray[np.float64]) -> None:
    """Refuse exponentials that overflow, of matrices that `check_reach` does not refuse."""
    wrong = np.flatnonzero(~np.isfinite(moved).all(axis=1) & (norms <= _LARGEST_NORM))
    if wrong.size:
        raise ValueError(
            f"The exponential of the generators overflows for row {wrong[0]} of the coefficients "
            f"({wrong.size} such row(s)): it leads beyond the largest float. Pass smaller "
            "coefficients."
        )


def check_reach(norms: NDArray[np.float64]) -> None:
    """Refuse matrices so large that rounding decides where their exponentials lead."""
    wrong = np.flatnonzero(norms > _LARGEST_NORM)
    if wrong.size:
        raise ValueError(
            f"Row {wrong[0]} of the coefficients leads so far ({norms[wrong[0]]:.3g} as the norm "
            f"of a matrix, {wrong.size} row(s) beyond {_LARGEST_NORM:.0e}) that rounding decides "
            "where. Pass smaller coefficients."
        )
