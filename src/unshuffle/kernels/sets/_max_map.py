"""MaxMapKernel: sets compared by the points closest to each of many landmarks."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from unshuffle._core.arrays import LARGEST, middle
from unshuffle._core.bags import Bags, canonical_order
from unshuffle._core.distances import exponential_of, inner_products, squared_distances
from unshuffle._core.grams import check_points_for_width
from unshuffle._core.kernel_features import PointKernel, kernel_name
from unshuffle._core.parameters import FUNCTION, Constraints, count, number, option
from unshuffle._run.types import Floats
from unshuffle.kernels.sets._gpu.tensors import Place
from unshuffle.kernels.sets._models.set_vectors import (
    describe_sets,
    evenly_spaced,
    extreme_in_pieces,
    median_width,
    typical_sets,
)
from unshuffle.kernels.sets._set_kernel import SetKernel


class MaxMapKernel(SetKernel):
    """Compare sets by their most telling points, where one point can decide the class.

    A set is described by its largest similarity to each landmark: how close any of its points
    comes. One point in a rare region changes these numbers as much as fifty would. In a mean over
    all points, as in `MeanMapKernel`, it is lost among the others.

    Parameters
    ----------
    base_kernel : {"linear", "rbf"} or callable, default="rbf"
        Similarity of points. "rbf" is ``exp(-gamma |x - z|^2)`` with landmarks z. "linear" has no
        landmarks: it describes a set by the largest and the smallest value of each column. A
        callable takes two arrays of points and returns a matrix, or two points and returns a
        number. It need not be positive definite.
    gamma : float or None, default=None
        Inverse width of "rbf". A larger value resolves smaller regions. None is one over the
        upper quartile of the squared distances from a landmark to the nearest point of a fitted
        set. Not used by other base kernels.
    n_landmarks : int or None, default=2000
        Largest number of landmarks, chosen among the fitted points and spread as they are. More
        resolve smaller regions, and take more time and memory. None takes all points.
    outer : {"linear", "rbf"}, default="linear"
        Kernel between two descriptions a and b: outer_gamma a'b, with which a linear classifier
        gives each landmark a weight, or ``exp(-outer_gamma |a - b|^2)``.
    outer_gamma : float or None, default=None
        A larger value resolves finer differences; for "linear" it acts like a larger C of a
        support vector machine. None is one over the median ``|a - b|^2`` of at most 500 of the
        fitted sets.
    n_jobs : int or None, default=None
        Threads; more are faster. The result does not depend on it.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks, n_features)
        Points that sets are compared with; none for "linear".
    gamma_ : float
        Value used for `gamma`; 1 for a base kernel without one.
    outer_gamma_ : float
        Value used for `outer_gamma`.
    n_features_in_ : int
        Number of columns of a point.

    Notes
    -----
    Positive semi-definite, as a kernel of vectors. A point that occurs several times in a set
    counts once. Scale columns in different units first, for example by a ``StandardScaler`` fitted
    to the points of all training sets, or the largest one decides which points are close.

    For L landmarks, describing a set of m points with d columns takes O(m L d) time and L numbers,
    comparing two sets O(L) time. The Gram matrix of n sets takes n^2 numbers. Memory is checked
    first.

    References
    ----------
    Gärtner, Flach, Kowalczyk, Smola, "Multi-instance kernels", International Conference on Machine
    Learning (2002), for the extreme values of columns. Chen, Bi, Wang, "MILES: multiple-instance
    learning via embedded instance selection", IEEE Transactions on Pattern Analysis and Machine
    Intelligence (2006), for the largest similarities.

    Examples
    --------
    Fifty points in each set. Every second set has one point near (2, 2, 2), where there are few
    others:

    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from unshuffle.kernels import MaxMapKernel, MeanMapKernel
    >>> rng = np.random.default_rng(0)
    >>> sets, labels = rng.normal(size=(80, 50, 3)), np.arange(80) % 2
    >>> sets[1::2, 0] = 2.0 + 0.1 * rng.normal(size=(40, 3))
    >>> def accuracy(kernel):
    ...     model = make_pipeline(kernel, SVC(C=10, kernel="precomputed"))
    ...     return cross_val_score(model, sets, labels).mean()
    >>> bool(accuracy(MaxMapKernel()) > accuracy(MeanMapKernel()) + 0.1)
    True
    """

    _constraints: ClassVar[Constraints] = {
        "base_kernel": [option("linear", "rbf"), FUNCTION],
        "n_landmarks": [count(), None],
        "outer": [option("linear", "rbf")],
        "outer_gamma": [number(above=0, most=1e100), None],  # its products must be finite
    }

    def __init__(
        self,
        base_kernel: Any = "rbf",
        gamma: float | None = None,
        *,
        n_landmarks: int | None = 2000,
        outer: str = "linear",
        outer_gamma: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base_kernel = base_kernel
        self.gamma = gamma
        self.n_landmarks = n_landmarks
        self.outer = outer
        self.outer_gamma = outer_gamma
        self.n_jobs = n_jobs

    def _build_model(self, sets: Bags) -> "MaxMapModel":
        return self._learn(sets)[0]

    def _learn(self, sets: Bags, place: Place | None = None) -> "tuple[MaxMapModel, Floats]":
        linear = self.base_kernel == "linear"
        landmarks = np.empty((0, sets.width)) if linear else self._choose_landmarks(sets)
        center = middle(sets.points)
        gamma = 1.0 if self.gamma is None else float(self.gamma)
        similarity = PointKernel(self.base_kernel, gamma, degree=1)
        width = 1.0 if self.outer_gamma is None else float(self.outer_gamma)
        model = MaxMapModel(similarity, landmarks, center, self.outer, width)
        sample = typical_sets(sets)
        extremes = model.extremes(sample, self.n_jobs)
        if self.base_kernel == "rbf" and self.gamma is None:
            check_points_for_width(len(sets.points), "gamma")
            model = replace(model, kernel=PointKernel("rbf", nearest_width(extremes), degree=1))
        vectors = model.scaled(extremes)
        if self.outer_gamma is None:
            width = median_width(squared_distances(vectors), "outer_gamma")
            model = replace(model, outer_gamma=width)
        return model, vectors if sample is sets else model.describe(sets, self.n_jobs)

    def _choose_landmarks(self, sets: Bags) -> Floats:
        """Distinct points, independent of the order of points and sets."""
        points = sets.points[canonical_order(sets.points)]
        points = points[np.append(True, np.any(points[1:] != points[:-1], axis=1))]
        most = len(points) if self.n_landmarks is None else int(self.n_landmarks)
        return np.asarray(points[evenly_spaced(len(points), most)])

    def _store(self, model: "MaxMapModel", descriptions: Floats) -> None:
        self.landmarks_ = model.landmarks
        self.gamma_ = model.kernel.gamma if self.base_kernel == "rbf" else 1.0
        self.outer_gamma_ = model.outer_gamma


@dataclass(frozen=True)
class MaxMapModel:
    """Extreme values over the points of each set, and a kernel between vectors of them."""

    kernel: PointKernel  # `kind` "linear" has no landmarks
    landmarks: Floats
    center: Floats  # median of the fitted points
    outer: str
    outer_gamma: float

    def describe(self, sets: Bags, n_jobs: int | None) -> Floats:
        """Largest similarity of each set to each landmark, or the extremes of its columns."""
        return self.scaled(self.extremes(sets, n_jobs))

    def compare(self, a: Floats, b: Floats | None) -> Floats:
        """Kernel between vectors."""
        if self.outer == "rbf":
            return exponential_of(squared_distances(a, b), self.outer_gamma)
        return self.outer_gamma * inner_products(a, b)

    def extremes(self, sets: Bags, n_jobs: int | None) -> Floats:
        """As `describe`, but smallest squared distances in place of "rbf" similarities."""
        if self.kernel.kind == "linear":
            return describe_sets(self._columns, sets, 2 * sets.width, n_jobs=n_jobs)
        if self.kernel.kind == "rbf":
            nearest = partial(extreme_in_pieces, squared_distances, np.minimum, self.landmarks)
            return describe_sets(nearest, sets, len(self.landmarks), n_jobs=n_jobs)
        largest = partial(extreme_in_pieces, self.kernel, np.maximum, self.landmarks)
        found = describe_sets(largest, sets, len(self.landmarks), n_jobs=n_jobs)
        if not np.all(np.abs(found) < LARGEST):
            raise ValueError(
                f"The kernel {kernel_name(self.kernel.kind)} returned similarities too large to "
                f"square: up to {np.abs(found).max():.3g}. Divide them by a common number."
            )
        return found

    def scaled(self, extremes: Floats) -> Floats:
        """Vectors of sets from what `extremes` returns, which is overwritten."""
        if self.kernel.kind != "rbf":
            return extremes
        return exponential_of(extremes, self.kernel.gamma)

    def _columns(self, points: Floats) -> Floats:
        centered = points - self.center
        return np.concatenate([centered.max(axis=0), centered.min(axis=0)])


def nearest_width(squares: Floats) -> float:
    """One over the upper quartile of squared distances of landmarks to the nearest points."""
    # Landmarks are points of the sets, so each is at distance 0 from at least one of them.
    apart = squares[squares >= np.finfo(float).tiny]
    if not apart.size:
        raise ValueError(
            "`gamma` is set by how far the points of one set are from another set, but X holds "
            f"{len(squares)} set(s) with the same points. Pass different sets, or a number as "
            "gamma."
        )
    return 1.0 / float(np.quantile(apart, 0.75))
