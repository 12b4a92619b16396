"""Mean similarity of points over all pairs of two sets."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags
from unshuffle._parallel import map_parallel
from unshuffle.kernels._points import PointKernel

Array = NDArray[np.float64]

# Points on each side of a piece of work: at most 2 MB, which a processor's cache holds.
ROWS, COLUMNS = 256, 1024
# Exponents lose 4 of 16 digits where the extent, in squared widths, is more than this.
WIDE = 1e4


@dataclass(frozen=True)
class PairMeans:
    """Means of a kernel over all pairs of points of two sets.

    Attributes
    ----------
    kernel : PointKernel
        Similarity of points.
    center : ndarray of shape (width,)
        Middle of the fitted points.
    wide : bool
        Whether the points lie so far apart that distances must be computed with more care.
    """

    kernel: PointKernel
    center: Array
    wide: bool

    @classmethod
    def of(cls, kernel: PointKernel, points: Array) -> "PairMeans":
        """Means for points like these."""
        low, high = points.min(axis=0), points.max(axis=0)
        extent = float(kernel.gamma * ((high - low) ** 2).sum())
        return cls(kernel, 0.5 * (low + high), not extent < WIDE)

    def means(self, a: Bags, b: Bags) -> Array:
        """Mean similarity of each set of `a` with each of `b`."""
        rows, columns = a.points, b.points
        if self._by_products:
            rows = self._lifted(rows)
            columns = np.ascontiguousarray(self._lifted(columns)[:, ::-1])
        found = np.empty((len(a), len(b)))
        for i in range(len(a)):
            sums = self._column_sums(rows[a.offsets[i] : a.offsets[i + 1]], columns)
            found[i] = np.add.reduceat(sums, b.offsets[:-1]) / (a.sizes[i] * b.sizes)
        return found

    def lengths(self, bags: Bags, *, n_jobs: int | None) -> Array:
        """Lengths of mean maps: roots of the mean similarity inside each set."""

        def squared(i: int) -> float:
            one = bags.part(i, i + 1)
            return float(self.means(one, one)[0, 0])

        squares = map_parallel(squared, range(len(bags)), n_jobs=n_jobs)
        return np.sqrt(np.maximum(np.array(squares), 0.0))

    def _column_sums(self, rows: Array, columns: Array) -> Array:
        """Sum of each column of the similarities between points."""
        sums = np.zeros(len(columns))
        for start in range(0, len(rows), ROWS):
            some = rows[start : start + ROWS]
            for first in range(0, len(columns), COLUMNS):
                piece = slice(first, first + COLUMNS)
                sums[piece] += self._similarities(some, columns[piece]).sum(axis=0)
        return sums

    def _similarities(self, rows: Array, columns: Array) -> Array:
        if not self._by_products:
            return self.kernel(rows, columns)
        exponents = rows @ columns.T
        with np.errstate(under="ignore"):
            return np.exp(exponents, out=exponents)

    @property
    def _by_products(self) -> bool:
        """Whether the exponents are one matrix product, as for "rbf" of points close together."""
        return bool(self.kernel.kind == "rbf" and not self.wide)

    def _lifted(self, points: Array) -> Array:
        """Vectors u of points: u(x) times u(y) read backwards is -gamma |x - y|^2."""
        scaled = np.sqrt(self.kernel.gamma) * (points - self.center)
        n, width = scaled.shape
        lifted = np.empty((n, 2 * width + 2))
        lifted[:, :width] = scaled
        lifted[:, width] = -np.einsum("ij,ij->i", scaled, scaled)
        lifted[:, width + 1] = 1.0
        lifted[:, width + 2 :] = scaled[:, ::-1]
        return lifted
