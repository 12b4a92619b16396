"""MeanMapKernel: sets compared by the mean similarity of their points."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from unshuffle._core.arrays import middle
from unshuffle._core.bags import Bags, canonical_order
from unshuffle._core.distances import (
    exponential_of,
    inner_products,
    mirror_upper,
    squared_distances,
)
from unshuffle._core.grams import check_points_for_width
from unshuffle._core.kernel_features import PointKernel, greedy_pivots
from unshuffle._core.parameters import FLAG, FUNCTION, Constraints, count, number, option
from unshuffle._run.parallel import map_parallel
from unshuffle._run.types import Floats
from unshuffle.kernels.sets._gpu.tensors import Place, sort_points
from unshuffle.kernels.sets._models.set_vectors import (
    Coordinates,
    GridWaves,
    MeanFeatures,
    Monomials,
    RandomWaves,
    check_directions_memory,
    choose_sets,
    describe_sets,
    evenly_spaced,
    mean_in_pieces,
    median_width,
    most_features,
    typical_sets,
)
from unshuffle.kernels.sets._set_kernel import SetKernel

# Points on each side of a block of work: at most 1 MB, which fits into a processor's cache.
ROWS, COLUMNS = 256, 512
# Exponents lose 4 of 16 digits if points are farther apart than this, in squared widths.
WIDE = 1e4
# Points on which a user's kernel is tested for positive definiteness.
N_TESTED = 64
# Share of the largest squared distance that rounding may reach.
ROUNDING = 1e-14


@dataclass(frozen=True)
class MeanMaps:
    """Mean maps of sets."""

    sets: Bags  # for kernels computed from all pairs of points
    lengths: Floats  # of the mean maps in feature space
    vectors: Floats | None  # mean maps themselves, if these are short enough
    outside: NDArray[np.bool_]  # sets without a vector, compared by all pairs of points

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, some: slice) -> "MeanMaps":
        vectors = None if self.vectors is None else self.vectors[some]
        sets = self.sets.part(some.start, some.stop)
        return MeanMaps(sets, self.lengths[some], vectors, self.outside[some])


@dataclass(frozen=True)
class PairMeans:
    """Means of a kernel over all pairs of points of two sets."""

    kernel: PointKernel
    center: Floats  # median of the fitted points

    def means(self, a: Bags, b: Bags) -> Floats:
        """Mean similarity of each set of `a` to each of `b`."""
        block = self._exponentials(a, b) or (lambda i, j: self.kernel(a.points[i], b.points[j]))
        sums = np.zeros((len(a), len(b.points)))
        with np.errstate(under="ignore"):
            for start, stop in _groups(a, ROWS):
                first, last = a.offsets[start], a.offsets[stop]
                for row in range(first, last, ROWS):
                    rows = slice(row, min(row + ROWS, last))
                    for column in range(0, len(b.points), COLUMNS):
                        columns = slice(column, min(column + COLUMNS, len(b.points)))
                        found = block(rows, columns)
                        if stop - start == 1:
                            sums[start, columns] += found.sum(axis=0)
                        else:
                            within = a.offsets[start:stop] - first
                            sums[start:stop, columns] = np.add.reduceat(found, within)
        totals = np.add.reduceat(sums, b.offsets[:-1], axis=1)
        return np.asarray(totals / (a.sizes[:, None] * b.sizes))

    def lengths(self, sets: Bags, *, n_jobs: int | None) -> Floats:
        """Lengths of mean maps: roots of the mean similarity inside each set."""

        def squared(group: tuple[int, int]) -> Floats:
            some = sets.part(*group)
            return np.diag(self.means(some, some))

        # All pairs of a group are compared, and only those inside a set used: smaller groups.
        squares = map_parallel(squared, _groups(sets, ROWS // 4), n_jobs=n_jobs)
        return np.sqrt(np.maximum(np.concatenate(squares), 0.0))

    def _exponentials(self, a: Bags, b: Bags) -> Callable[[slice, slice], Floats] | None:
        """Blocks of "rbf" by matrix products; None for other kernels, or if digits are lost."""
        if self.kernel.kind != "rbf":
            return None
        left, right = self._lifted(a.points), self._lifted(b.points)
        if min(left[:, -2].min(), right[:, -2].min()) < -WIDE:
            return None
        right[:, [-2, -1]] = right[:, [-1, -2]]
        right = np.ascontiguousarray(right.T)
        # One buffer for all: allocating it anew takes as long as the exponentials.
        buffer = np.empty((min(ROWS, len(a.points)), min(COLUMNS, len(b.points))))

        def block(rows: slice, columns: slice) -> Floats:
            part = buffer[: rows.stop - rows.start, : columns.stop - columns.start]
            np.matmul(left[rows], right[:, columns], out=part)
            return np.exp(part, out=part)

        return block

    def _lifted(self, points: Floats) -> Floats:
        """Vectors u of points: u(x)'u(y) is -gamma |x - y|^2 with the last two of u(y) swapped."""
        scaled = np.sqrt(self.kernel.gamma) * (points - self.center)
        lifted = np.empty((len(points), points.shape[1] + 2))
        np.multiply(scaled, np.sqrt(2.0), out=lifted[:, :-2])
        lifted[:, -2] = -np.einsum("ij,ij->i", scaled, scaled)
        lifted[:, -1] = 1.0
        return lifted


def _groups(sets: Bags, most: int) -> list[tuple[int, int]]:
    """Ranges of sets: several small ones of at most `most` points in all, or a larger one."""
    groups, start = [], 0
    for stop in range(1, len(sets) + 1):
        if stop == len(sets) or sets.offsets[stop + 1] - sets.offsets[start] > most:
            groups.append((start, stop))
            start = stop
    return groups


class MeanMapKernel(SetKernel):
    """Compare sets by the mean similarity of their points, over all pairs.

    That mean is the inner product of the sets' mean maps: the means of their points in the
    feature space of the base kernel. If the points of a set are a sample, it compares the
    distributions they were drawn from.

    Parameters
    ----------
    base_kernel : {"linear", "poly", "rbf"} or callable, default="rbf"
        Similarity of points. "poly" is ``(gamma x'y + 1)^degree``, "rbf"
        ``exp(-gamma |x - y|^2)``; "linear" compares only the means of the sets. A callable takes
        two arrays of points and returns a matrix, or two points and returns a number. It must be
        positive definite.
    gamma : float or None, default=None
        Scale of "rbf" and "poly". A larger value resolves finer differences between sets. None
        is one over the median squared distance of the fitted points for "rbf", one over the
        number of features for "poly".
    degree : int, default=2
        Degree of the "poly" kernel. Higher degrees compare higher moments of the sets.
    n_features : int or None, default=None
        Number of random features for "rbf", rounded up to an even number. More are closer to the
        kernel, with an error of about 1 / sqrt(n_features), and take longer. None is exact.
    normalize : bool, default=True
        Whether to divide by the lengths of the mean maps, so that every set has similarity 1 with
        itself. A set whose mean map is 0 has similarity 0 with all.
    outer : {"linear", "rbf"}, default="linear"
        Kernel between two mean maps: their inner product, or exp(-outer_gamma d^2) with their
        distance d, the maximum mean discrepancy.
    outer_gamma : float or None, default=None
        Inverse width of the outer kernel "rbf". A larger value resolves finer differences. None
        is one over the median d^2 of at most 500 of the fitted sets.
    random_state : int, RandomState instance or None, default=None
        Draws the random features; not used by the exact kernel.
    n_jobs : int or None, default=None
        Threads; more are faster. The result does not depend on it.
    device : "cuda", "cuda:1", torch.device or None, default=None
        GPU to work on. None stays where the sets are: on the CPU, or on the GPU that tensors
        are on. See `SetKernel`.

    Attributes
    ----------
    gamma_ : float
        Value used for `gamma`; 1 for a base kernel without one.
    outer_gamma_ : float
        Value used for `outer_gamma`; 1 for the linear one.
    n_features_in_ : int
        Number of columns of a point.

    Notes
    -----
    Positive semi-definite, as the inner product of mean maps. For n sets of m points with d
    columns:

    - "linear", "poly" and random features describe a set by F numbers in O(m F) time and compare
      two in O(F) time.
    - "rbf" in a few dimensions does the same with F cosines and sines on a grid, accurate to 13
      digits: at the median width 800 in the plane and 11,000 in space, more for a larger gamma.
    - Otherwise, and for new sets far outside the fitted ones, all pairs of points are compared,
      in O(n^2 m^2 d) time.

    Memory: n^2 numbers for the Gram matrix and n F for the sets, both checked first.

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
    >>> from unshuffle.datasets import digit_sets
    >>> from unshuffle.kernels import MeanMapKernel
    >>> sets, labels = digit_sets(100, digits=(0, 1))
    >>> model = make_pipeline(MeanMapKernel(), SVC(C=10, kernel="precomputed"))
    >>> bool(cross_val_score(model, sets, labels).mean() > 0.95)
    True
    """

    _constraints: ClassVar[Constraints] = {
        "base_kernel": [option("linear", "poly", "rbf"), FUNCTION],
        "n_features": [count(), None],
        "normalize": [FLAG],
        "outer": [option("linear", "rbf")],
        "outer_gamma": [number(above=0), None],
    }
    _runs_on_device = True

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
        device: Any = None,
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
        self.device = device

    def _build_model(self, sets: Bags) -> "MeanMapModel":
        return self._build_model_on(sets, None)

    def _build_model_on(self, sets: Bags, place: Place | None) -> "MeanMapModel":
        if self.n_features is not None and self.base_kernel != "rbf":
            raise ValueError(
                "`n_features` draws random features for base_kernel='rbf', got "
                f"base_kernel={self.base_kernel!r}. Leave n_features out, or use 'rbf'."
            )
        points, gamma, pairs = sets.points, 1.0, None
        if self.base_kernel == "rbf" and self.gamma is None:
            check_points_for_width(len(points), "gamma")
            points = (
                points[canonical_order(points)] if place is None else sort_points(points, place)
            )
        if self.base_kernel != "linear":
            degree = int(self.degree)
            similarity = PointKernel.of(self.base_kernel, points, gamma=self.gamma, degree=degree)
            gamma, pairs = similarity.gamma, PairMeans(similarity, middle(points))
        features = self._features(sets, gamma)
        width = 1.0 if self.outer_gamma is None else float(self.outer_gamma)
        model = MeanMapModel(features, pairs, gamma, self.normalize, self.outer, width)
        if self.outer != "rbf" or self.outer_gamma is not None:
            return model
        squares = model.typical_squares(typical_sets(sets), self.n_jobs, place)
        width = median_width(squares, "outer_gamma")
        return replace(model, outer_gamma=width)

    def _features(self, sets: Bags, gamma: float) -> MeanFeatures | None:
        """Explicit features of points, if requested or faster than all pairs."""
        if self.base_kernel == "linear":
            differences = self.outer == "rbf" and not self.normalize
            center = middle(sets.points) if differences else np.zeros(sets.width)
            return Coordinates(sets.width, center)
        if self.base_kernel == "poly":
            degree = int(self.degree)
            if comb(sets.width + degree, degree) > most_features(sets):
                return None
            return Monomials.of(sets.width, gamma, degree)
        if self.base_kernel != "rbf":
            return None
        if self.n_features is not None:
            n_features = int(self.n_features)
            check_directions_memory(n_features, sets.width, 1, "n_features")
            rng = check_random_state(self.random_state)
            return RandomWaves.of(sets.points, gamma, n_features, rng)
        return GridWaves.of(sets.points, gamma, most_features(sets))

    def _learn(self, sets: Bags, place: Place | None = None) -> "tuple[MeanMapModel, Any]":
        model = self._build_model_on(sets, place)
        if place is not None:
            return model, model.describe_on(sets, place)
        if callable(self.base_kernel):
            points = sets.points[canonical_order(sets.points)]
            some = points[evenly_spaced(len(points), N_TESTED)]
            # refuses a kernel that is not positive definite
            greedy_pivots(some, model.pairs.kernel, N_TESTED)
        return model, model.describe(sets, self.n_jobs)

    def _store(self, model: "MeanMapModel", descriptions: Any) -> None:
        self.gamma_, self.outer_gamma_ = model.gamma, model.outer_gamma


@dataclass(frozen=True)
class MeanMapModel:
    """Mean maps of sets, by features or by all pairs of points, and a kernel between them."""

    features: MeanFeatures | None  # None compares all pairs
    pairs: Any  # PairMeans; None for the linear kernel, which does not use it
    gamma: float  # of the base kernel
    normalize: bool
    outer: str
    outer_gamma: float

    def describe(self, sets: Bags, n_jobs: int | None) -> MeanMaps:
        """Mean map of each set."""
        features = self.features
        if features is None:
            lengths = self.pairs.lengths(sets, n_jobs=n_jobs)
            return MeanMaps(sets, lengths, None, np.ones(len(sets), dtype=bool))
        mean = partial(mean_in_pieces, features.mean, features.length)
        vectors = describe_sets(mean, sets, features.length, n_jobs=n_jobs)
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        outside = np.array([not features.holds(points) for points in sets])
        if outside.any():
            far = choose_sets(sets, np.flatnonzero(outside))
            lengths[outside] = self.pairs.lengths(far, n_jobs=n_jobs)
        return MeanMaps(sets, lengths, vectors, outside)

    def describe_on(self, sets: Bags, place: Place) -> Any:
        """Mean map of each set on a device."""
        from unshuffle.kernels.sets._gpu import mean_map as tensors

        return tensors.describe(self, sets, place)

    def gram_on(self, a: Any, b: Any, place: Place) -> Any:
        """Kernel between mean maps on a device, as a tensor."""
        from unshuffle.kernels.sets._gpu import mean_map as tensors

        return tensors.compare(self, a, b, place)

    def typical_squares(self, sets: Bags, n_jobs: int | None, place: Place | None) -> Floats:
        """Squared distances between the mean maps of some sets."""
        if place is None:
            return self.squared_distances(self.describe(sets, n_jobs), None)
        from unshuffle.kernels.sets._gpu import mean_map as tensors

        squares = tensors.squares(self, tensors.describe(self, sets, place), None, place)
        return np.asarray(squares.double().cpu().numpy())

    def compare(self, a: MeanMaps, b: MeanMaps | None) -> Floats:
        """Inner products of mean maps, or the outer kernel of their distances."""
        if self.outer == "rbf":
            return exponential_of(self.squared_distances(a, b), self.outer_gamma)
        return self._combine(a, b, inner_products)

    def squared_distances(self, a: MeanMaps, b: MeanMaps | None) -> Floats:
        """Squared distances between mean maps."""
        D = self._combine(a, b, squared_distances)
        # A set compared with itself: a large outer_gamma would amplify rounding.
        D[ROUNDING * D.max(initial=0.0) > D] = 0.0
        return D

    def _combine(
        self, a: MeanMaps, b: MeanMaps | None, of_vectors: Callable[..., Floats]
    ) -> Floats:
        """Inner products or distances, by vectors if there are any, else by pairs of points."""
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
        if b.outside.any() and not a.outside.all():
            block[:, b.outside] = self._by_pairs(b, np.flatnonzero(b.outside), a, distances).T
        return block

    def _divisors(self, maps: MeanMaps) -> Floats:
        if not self.normalize:
            return np.ones(len(maps))
        return np.where(maps.lengths > 0, maps.lengths, 1.0)

    def _by_pairs(
        self, a: MeanMaps, chosen: NDArray[np.intp], b: MeanMaps, distances: bool
    ) -> Floats:
        """Inner products, or squared distances, of mean maps from all pairs of points."""
        divisors, others = self._divisors(a)[chosen], self._divisors(b)
        K = self.pairs.means(choose_sets(a.sets, chosen), b.sets)
        K /= divisors[:, None]
        K /= others
        if not distances:
            return K
        squares = ((a.lengths[chosen] / divisors) ** 2)[:, None] + (b.lengths / others) ** 2
        return np.maximum(squares - 2.0 * K, 0.0)
