"""MeanMapKernel: sets compared by the mean similarity of their points."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from unshuffle._arrays import middle
from unshuffle._bags import Bags, canonical_order
from unshuffle._distances import exponential_of, inner_products, mirror_upper, squared_distances
from unshuffle._grams import check_points_for_width
from unshuffle._kernel_features import PointKernel, greedy_pivots
from unshuffle._parallel import map_parallel
from unshuffle._parameters import FLAG, FUNCTION, Constraints, count, number, option
from unshuffle.kernels.sets._set_kernel import SetKernel
from unshuffle.kernels.sets._set_vectors import (
    Coordinates,
    GridWaves,
    MeanFeatures,
    Monomials,
    RandomWaves,
    check_directions_memory,
    chosen_bags,
    describe,
    evenly_spaced,
    mean_in_pieces,
    median_width,
    most_features,
    typical_sets,
)

Array = NDArray[np.float64]

# Points on each side of a piece of work: at most 1 MB, which a processor's cache holds.
ROWS, COLUMNS = 256, 512
# Exponents lose 4 of 16 digits where points are farther off than this, in squared widths.
WIDE = 1e4
# Points on which a kernel of the user's own is tried.
TRIED = 64
# Share of the largest squared distance that rounding may reach.
ROUNDING = 1e-14


@dataclass(frozen=True)
class MeanMaps:
    """Mean maps of sets."""

    bags: Bags  # the points, for kernels computed from all pairs of them
    lengths: Array  # of the mean maps, in feature space
    vectors: Array | None  # mean maps themselves, where these have few enough numbers
    outside: NDArray[np.bool_]  # sets that vectors do not describe: compared by all pairs

    def __len__(self) -> int:
        return len(self.lengths)

    def part(self, start: int, stop: int) -> "MeanMaps":
        """Mean maps of the sets from `start` up to `stop`."""
        vectors = None if self.vectors is None else self.vectors[start:stop]
        some = slice(start, stop)
        return MeanMaps(
            self.bags.part(start, stop), self.lengths[some], vectors, self.outside[some]
        )


@dataclass(frozen=True)
class PairMeans:
    """Means of a kernel over all pairs of points of two sets."""

    kernel: PointKernel
    center: Array  # middle of the fitted points

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


class MeanMapKernel(SetKernel):
    """Compare sets by the mean similarity of their points, over all pairs.

    That mean is the inner product of the sets' mean maps: the means of their points in the
    feature space of the base kernel. Where the points of a set are a sample, it compares what
    they were drawn from.

    Parameters
    ----------
    base_kernel : {"linear", "poly", "rbf"} or callable, default="rbf"
        Similarity of points. "poly" is (gamma x'y + 1)^degree, "rbf" exp(-gamma |x - y|^2). A
        callable takes two arrays of points and gives a matrix, or two points and gives a number;
        it must be positive definite. "linear" compares the means of the sets only.
    gamma : float or None, default=None
        Larger sees finer differences between sets. None is one over the median squared distance
        of the fitted points for "rbf", one over the number of features for "poly".
    degree : int, default=2
        Of "poly"; larger compares higher moments of the sets.
    n_features : int or None, default=None
        None is exact. A number draws that many random features for "rbf" (cosines and sines, so
        an odd number is rounded up): time then grows with the points rather than with their
        pairs, whatever their dimension. The error falls as one over its square root: on digits as
        clouds of 70 points .014 with 1000 at gamma=1, .003 at the default width.
    normalize : bool, default=True
        Whether to divide by the lengths of the mean maps, so that every set has similarity 1 with
        itself. A set whose mean map is 0 (by "linear", one with mean 0) is similar to none.
    outer : {"linear", "rbf"}, default="linear"
        What to make of two mean maps: their inner product, or exp(-outer_gamma d^2) of the
        distance d between them, the maximum mean discrepancy.
    outer_gamma : float or None, default=None
        Of outer="rbf"; larger sees finer differences between mean maps. None is one over the
        median d^2 of the fitted sets (of 500 of them, where there are more).
    random_state : int, RandomState instance or None, default=None
        Draws the random features; the exact kernel has nothing random.
    n_jobs : int or None, default=None
        Threads; more are faster. The result does not depend on it.

    Attributes
    ----------
    gamma_ : float
        Width or scale of the base kernel; 1 where it has none.
    outer_gamma_ : float
        Width of the outer kernel; 1 where it is linear.
    n_features_in_ : int
        Columns of a point.

    Notes
    -----
    Positive semi-definite, as the inner product of mean maps. For n sets of m points with d
    columns:

    - "linear", "poly" and random features describe a set by F numbers in O(m F) time, and compare
      two in O(F): one matrix product for all.
    - "rbf" in a few dimensions does the same with cosines and sines on a grid of frequencies,
      which give the kernel to 13 digits: about 30 of them per column at the median width, hence
      F = 800 in the plane and 11,000 in space, and more the larger gamma is. 1000 sets of 70
      points in the plane take .25 seconds on one core, in space 1.
    - else all pairs of points are compared: O(n^2 m^2 d) time, 5 seconds for 1000 sets of 70
      points in the plane, in pieces of 1 MB. So are new sets with points far outside the fitted
      ones.

    Memory: n^2 for the Gram matrix and n F for the sets, both checked before they are taken.

    References
    ----------
    Smola, Gretton, Song, Schölkopf, "A Hilbert space embedding for distributions", Algorithmic
    Learning Theory (2007). Rahimi, Recht, "Random features for large-scale kernel machines",
    NIPS (2007). Yu et al., "Orthogonal random features", NIPS (2016).

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from unshuffle.datasets import digit_clouds
    >>> from unshuffle.kernels import MeanMapKernel
    >>> bags, labels = digit_clouds(100, digits=(0, 1))
    >>> model = make_pipeline(MeanMapKernel(), SVC(C=10, kernel="precomputed"))
    >>> bool(cross_val_score(model, bags, labels).mean() > 0.95)
    True
    """

    _constraints: ClassVar[Constraints] = {
        "base_kernel": [option("linear", "poly", "rbf"), FUNCTION],
        "n_features": [count(), None],
        "normalize": [FLAG],
        "outer": [option("linear", "rbf")],
        "outer_gamma": [number(above=0), None],
    }

    def __init__(
        self,
        base_kernel: Any = "rbf",
        gamma: float | None = None,
        *,
        degree: int = 2,
        n_features: int | None = None,
        normalize: bool = True,
        outer: str = "linear",
        outer_gamma: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base_kernel = base_kernel
        self.gamma = gamma
        self.degree = degree
        self.n_features = n_features
        self.normalize = normalize
        self.outer = outer
        self.outer_gamma = outer_gamma
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _build(self, bags: Bags) -> "MeanMapModel":
        if self.n_features is not None and self.base_kernel != "rbf":
            raise ValueError(
                "`n_features` draws waves for the kernel 'rbf', got "
                f"base_kernel={self.base_kernel!r}. Leave n_features out, or use "
                "base_kernel='rbf'."
            )
        points, gamma, pairs = bags.points, 1.0, None
        if self.base_kernel == "rbf" and self.gamma is None:
            check_points_for_width(len(points), "gamma")
            points = points[canonical_order(points)]
        if self.base_kernel != "linear":
            degree = int(self.degree)
            similarity = PointKernel.of(self.base_kernel, points, gamma=self.gamma, degree=degree)
            gamma, pairs = similarity.gamma, PairMeans(similarity, middle(points))
        features = self._features(bags, gamma)
        width = 1.0 if self.outer_gamma is None else float(self.outer_gamma)
        model = MeanMapModel(features, pairs, gamma, self.normalize, self.outer, width)
        if self.outer != "rbf" or self.outer_gamma is not None:
            return model
        typical = model.describe(typical_sets(bags), self.n_jobs)
        width = median_width(model.squared_distances(typical, None), "outer_gamma")
        return replace(model, outer_gamma=width)

    def _features(self, bags: Bags, gamma: float) -> MeanFeatures | None:
        """Explicit features of points, where they are asked for or quicker than all pairs."""
        if self.base_kernel == "linear":
            differences = self.outer == "rbf" and not self.normalize
            return Coordinates(middle(bags.points) if differences else np.zeros(bags.width))
        if self.base_kernel == "poly":
            degree = int(self.degree)
            if comb(bags.width + degree, degree) > most_features(bags):
                return None
            return Monomials.of(bags.width, gamma, degree)
        if self.base_kernel != "rbf":
            return None
        if self.n_features is not None:
            n_features = int(self.n_features)
            check_directions_memory(n_features, bags.width, 1, "n_features")
            rng = check_random_state(self.random_state)
            return RandomWaves.of(bags.points, gamma, n_features, rng)
        return GridWaves.of(bags.points, gamma, most_features(bags))

    def _learn(self, bags: Bags) -> "tuple[MeanMapModel, MeanMaps]":
        model = self._build(bags)
        if callable(self.base_kernel):
            points = bags.points[canonical_order(bags.points)]
            some = points[evenly_spaced(len(points), TRIED)]
            greedy_pivots(some, model.pairs.kernel, TRIED)  # refuses what is not positive definite
        return model, model.describe(bags, self.n_jobs)

    def _store(self, model: "MeanMapModel", sets: MeanMaps) -> None:
        self.gamma_, self.outer_gamma_ = model.gamma, model.outer_gamma


@dataclass(frozen=True)
class MeanMapModel:
    """Mean map of each set, by features or by all pairs of points, and a kernel between two."""

    features: MeanFeatures | None  # None compares all pairs
    pairs: Any  # PairMeans, or None for the linear kernel, which needs none
    gamma: float  # of the base kernel
    normalize: bool
    outer: str
    outer_gamma: float

    def describe(self, bags: Bags, n_jobs: int | None) -> MeanMaps:
        """Mean map of each set."""
        features = self.features
        if features is None:
            lengths = self.pairs.lengths(bags, n_jobs=n_jobs)
            return MeanMaps(bags, lengths, None, np.ones(len(bags), dtype=bool))
        mean = partial(mean_in_pieces, features.mean, features.length)
        vectors = describe(mean, bags, features.length, n_jobs=n_jobs)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        outside = np.array([not features.holds(points) for points in bags])
        if outside.any():
            far = chosen_bags(bags, np.flatnonzero(outside))
            lengths[outside] = self.pairs.lengths(far, n_jobs=n_jobs)
        return MeanMaps(bags, lengths, vectors, outside)

    def compare(self, a: MeanMaps, b: MeanMaps | None) -> Array:
        """Inner products of mean maps, or the outer kernel of their distances."""
        if self.outer == "rbf":
            return exponential_of(self.squared_distances(a, b), self.outer_gamma)
        return self._filled(a, b, inner_products)

    def squared_distances(self, a: MeanMaps, b: MeanMaps | None) -> Array:
        """Squared distances between mean maps."""
        D = self._filled(a, b, squared_distances)
        # Of one set with itself: what rounding leaves there, a large outer_gamma would show.
        D[ROUNDING * D.max(initial=0.0) > D] = 0.0
        return D

    def _filled(self, a: MeanMaps, b: MeanMaps | None, of_vectors: Callable[..., Array]) -> Array:
        """Products or distances, by vectors where there are some and else by pairs of points."""
        other, distances = a if b is None else b, of_vectors is squared_distances
        if a.vectors is None or other.vectors is None:
            block = np.empty((len(a), len(other)))
        else:
            vectors = a.vectors / self._divisors(a)[:, None]
            others = None if b is None else other.vectors / self._divisors(other)[:, None]
            block = of_vectors(vectors, others)
        if a.outside.any():
            block[a.outside] = self._by_pairs(a, np.flatnonzero(a.outside), other, distances)
        if b is None:
            block[:, a.outside] = block[a.outside].T
            if distances:
                np.fill_diagonal(block, 0.0)
            return mirror_upper(block)
        if b.outside.any():
            block[:, b.outside] = self._by_pairs(b, np.flatnonzero(b.outside), a, distances).T
        return block

    def _divisors(self, maps: MeanMaps) -> Array:
        if not self.normalize:
            return np.ones(len(maps))
        return np.where(maps.lengths > 0, maps.lengths, 1.0)

    def _by_pairs(
        self, a: MeanMaps, chosen: NDArray[np.intp], b: MeanMaps, distances: bool
    ) -> Array:
        """Inner products, or squared distances, of mean maps from all pairs of points."""
        divisors, others = self._divisors(a)[chosen], self._divisors(b)
        K = self.pairs.means(chosen_bags(a.bags, chosen), b.bags)
        K /= divisors[:, None]
        K /= others
        if not distances:
            return K
        squares = ((a.lengths[chosen] / divisors) ** 2)[:, None] + (b.lengths / others) ** 2
        return np.maximum(squares - 2.0 * K, 0.0)
