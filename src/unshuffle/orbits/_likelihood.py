"""Likelihood of pairs under generators, which does not always prefer more of them."""

from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from unshuffle._core.arrays import middle
from unshuffle._core.matrix_exponentials import matrices_of
from unshuffle._run.types import Floats
from unshuffle.orbits._exponential_derivatives import jacobian

_FLOOR = 1e-8  # smallest standard deviation, as a share of the lengths
_RANK = 1e-6  # smallest singular value of the flows, as a share of the largest
_LARGEST = 1e290  # squared distance; sums of more would overflow
_BLOCK = 2_000_000  # numbers in a stack of matrices


@dataclass(frozen=True)
class PairDensity:
    """Normal density of a vector x about the vector x' that it comes from.

    The closest point exp(sum c V) x' of the orbit splits x - x' into a move along the orbit, with
    variance `along` in each of its directions, and an error across it, with variance `across` in
    each of the others. A generator that only fits noise turns a direction of small variance into
    one of large variance, so that the density falls.
    """

    generators: Floats  # (k, d, d)
    along: float
    across: float

    @classmethod
    def fitted(
        cls, generators: Floats, coefficients: Floats, x: Floats, z: Floats
    ) -> "PairDensity":
        """Most likely variances of the pairs (x, z) with these coefficients."""
        moves, errors, n_along = _split(generators, coefficients, x, z)
        least = _FLOOR**2 * float(np.mean(np.sum(z**2, axis=1))) + np.finfo(float).tiny
        n_across = max(1, int(np.sum(x.shape[1] - n_along)))
        return cls(
            generators,
            max(float(moves.sum()) / int(n_along.sum()), least),
            max(float(errors.sum()) / n_across, least),
        )

    def mean_log(self, coefficients: Floats, x: Floats, z: Floats) -> float:
        """Mean logarithm of the density of x, given z and the coefficients between them."""
        moves, errors, n_along = _split(self.generators, coefficients, x, z)
        total = n_along * np.log(2 * np.pi * self.along) + moves / self.along
        total += (x.shape[1] - n_along) * np.log(2 * np.pi * self.across) + errors / self.across
        return -0.5 * float(total.mean())


def pair_with_nearest(X: Floats, fitted: Floats, n_neighbors: int) -> tuple[Floats, Floats]:
    """Rows of X, repeated, and their nearest fitted rows, which are not the rows themselves."""
    count = min(n_neighbors, len(fitted) - 1)
    center = middle(fitted)  # squared distances lose digits far from the origin
    distances, nearest = (
        NearestNeighbors(n_neighbors=count + 1).fit(fitted - center).kneighbors(X - center)
    )
    itself = (distances[:, 0] == 0).astype(int)
    columns = itself[:, None] + np.arange(count)
    return np.repeat(X, count, axis=0), fitted[np.take_along_axis(nearest, columns, 1).ravel()]


def _split(generators: Floats, coefficients: Floats, x: Floats, z: Floats) -> tuple[Floats, ...]:
    """Squared moves along the orbit, squared errors, and the dimension of the orbit at x."""
    block = max(1, _BLOCK // x.shape[1] ** 2)
    parts = []
    for first in range(0, len(x), block):
        rows = slice(first, first + block)
        A = matrices_of(generators, coefficients[rows])
        moved, flows = jacobian(A, z[rows], generators)
        sizes = np.linalg.svd(np.nan_to_num(flows), compute_uv=False)
        n_along = np.sum(sizes > _RANK * sizes[:, :1], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):  # the exponential may overflow
            moves = np.sum((moved - z[rows]) ** 2, axis=1)
            errors = np.sum((x[rows] - moved) ** 2, axis=1)
        moves, errors = (
            np.fmin(np.where(np.isnan(each), np.inf, each), _LARGEST) for each in (moves, errors)
        )
        parts.append((moves, errors, np.maximum(n_along, 1)))
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
