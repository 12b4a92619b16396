"""Mean similarity of points over all pairs of two sets."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags
from unshuffle._middle import middle
from unshuffle._parallel import map_parallel
from unshuffle._points import PointKernel

Array = NDArray[np.float64]

# Points on each side of a piece of work: at most 1 MB, which a processor's cache holds.
ROWS, COLUMNS = 256, 512
# Exponents lose 4 of 16 digits where points are farther off than this, in squared widths.
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
    """

    kernel: PointKernel
    center: Array

    @classmethod
    def of(cls, kernel: PointKernel, points: Array) -> "PairMeans":
        """Means for points like these."""
        return cls(kernel, middle(points))

    def means(self, a: Bags, b: Bags) -> Array:
        """Mean similarity of each set of `a` with each of `b`."""
        sums = self._sums_by_products(a, b)
        if sums is None:
            sums = [self._column_sums(points, b.points) for points in a]
        totals = [np.add.reduceat(each, b.offsets[:-1]) for each in sums]
        return np.asarray(np.array(totals) / (a.sizes[:, None] * b.sizes))

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
        for some, piece in _pieces(len(rows), len(columns)):
            sums[piece] += self.kernel(rows[some], columns[piece]).sum(axis=0)
        return sums

    def _sums_by_products(self, a: Bags, b: Bags) -> list[Array] | None:
        """The same sums for each set of `a`, exponents being one matrix product.

        For "rbf" only, and not where points lie so far apart that this would lose digits.
        """
        if self.kernel.kind != "rbf":
            return None
        rows, columns = self._lifted(a.points), self._lifted(b.points)
        if min(rows[:, a.width].min(), columns[:, b.width].min()) < -WIDE:
            return None
        columns = np.ascontiguousarray(columns[:, ::-1].T)
        # One piece of memory for all: asking for it anew takes as long as the exponentials.
        buffer = np.empty((min(ROWS, int(a.sizes.max())), min(COLUMNS, len(b.points))))
        with np.errstate(under="ignore"):
            return [
                _sums_of_exponentials(rows[start:stop], columns, buffer)
                for start, stop in zip(a.offsets[:-1], a.offsets[1:], strict=True)
            ]

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


def _sums_of_exponentials(rows: Array, columns: Array, buffer: Array) -> Array:
    """Sum of each column of exp(rows @ columns), in pieces of the size of the buffer."""
    sums = np.zeros(columns.shape[1])
    for some, piece in _pieces(len(rows), sums.size):
        part = buffer[: some.stop - some.start, : piece.stop - piece.start]
        np.matmul(rows[some], columns[:, piece], out=part)
        np.exp(part, out=part)
        sums[piece] += part.sum(axis=0)
    return sums


def _pieces(n_rows: int, n_columns: int) -> Iterator[tuple[slice, slice]]:
    for start in range(0, n_rows, ROWS):
        for first in range(0, n_columns, COLUMNS):
            yield (
                slice(start, min(start + ROWS, n_rows)),
                slice(first, min(first + COLUMNS, n_columns)),
            )
