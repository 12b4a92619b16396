"""SlicedWassersteinKernel: sets compared by the cost of moving one onto the other."""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from unshuffle._core.arrays import middle
from unshuffle._core.bags import Bags
from unshuffle._core.distances import exponential_of, squared_distances
from unshuffle._core.parameters import Constraints, count
from unshuffle._run.types import Floats
from unshuffle.kernels.sets._gpu.tensors import Place
from unshuffle.kernels.sets._models.set_vectors import (
    check_directions_memory,
    describe_sets,
    median_width,
    orthogonal_directions,
    typical_sets,
)
from unshuffle.kernels.sets._set_kernel import SetKernel


class SlicedWassersteinKernel(SetKernel):
    """Compare sets by how far the points of one must be moved to become the other.

    On a line, the cheapest way to move points keeps their order, so the squared distance between
    two sets is that of their quantile functions. Its mean over projections onto many directions
    is SW^2, and the kernel is exp(-gamma SW^2).

    Parameters
    ----------
    n_projections : int, default=50
        Number of directions. More come closer to the mean over all directions, and take more time
        and memory. In the plane they are evenly spaced and 20 suffice; on a line there is one.
    gamma : float or None, default=None
        A larger value resolves finer differences between sets. None is one over the median SW^2
        of at most 500 of the fitted sets.
    n_quantiles : int, default=64
        Number of intervals of equal weight into which each projected set is cut; their means
        describe it. More resolve finer differences. The distance is exact for sets whose sizes
        divide it, and slightly too small for others.
    random_state : int, RandomState instance or None, default=None
        Draws the directions in three dimensions or more.
    n_jobs : int or None, default=None
        Threads; more are faster. The result does not depend on it.
    device : "cuda", "cuda:1", torch.device or None, default=None
        GPU to work on. None stays where the sets are: on the CPU, or on the GPU that tensors
        are on. See `SetKernel`.

    Attributes
    ----------
    gamma_ : float
        Value used for `gamma`.
    directions_ : ndarray of shape (n_directions, n_features)
        Unit vectors onto which points are projected.
    n_features_in_ : int
        Columns of a point.

    Notes
    -----
    Positive semi-definite, as an RBF kernel of vectors: the quantiles of all projections. (The
    same exponential of the Wasserstein distance without slices is not.)

    For L directions and Q quantiles, describing a set of m points with d columns takes
    O(L (m d + m log m + Q)) time and L Q numbers, comparing two sets O(L Q) time. The Gram matrix
    of n sets takes n^2 numbers. Memory is checked first.

    References
    ----------
    Kolouri, Zou, Rohde, "Sliced Wasserstein kernels for probability distributions", CVPR (2016).
    Carriere, Cuturi, Oudot, "Sliced Wasserstein kernel for persistence diagrams", ICML (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.kernels import SlicedWassersteinKernel
    >>> one, other = np.array([[0.0], [1.0]]), np.array([[3.0], [2.0]])
    >>> kernel = SlicedWassersteinKernel(gamma=0.1)
    >>> kernel.gram([one], [other]).round(4)  # each point moves by 2: exp(-0.1 * 4)
    array([[0.6703]])
    """

    _constraints: ClassVar[Constraints] = {"n_projections": [count()], "n_quantiles": [count()]}
    _runs_on_device = True

    def __init__(
        self,
        n_projections: int = 50,
        *,
        gamma: float | None = None,
        n_quantiles: int = 64,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: Any = None,
    ) -> None:
        self.n_projections = n_projections
        self.gamma = gamma
        self.n_quantiles = n_quantiles
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def _build_model(self, sets: Bags) -> "Quantiles":
        n_directions = int(self.n_projections) if sets.width > 1 else 1
        largest = int(sets.sizes.max())
        check_directions_memory(n_directions, sets.width, largest, "n_projections")
        rng = check_random_state(self.random_state)
        directions = spread_directions(int(self.n_projections), sets.width, rng)
        gamma = 1.0 if self.gamma is None else float(self.gamma)
        # Relative to the middle of all sets, quantiles keep their digits far from the origin.
        model = Quantiles(directions, middle(sets.points), int(self.n_quantiles), gamma)
        if self.gamma is not None:
            return model
        typical = model.describe(typical_sets(sets), self.n_jobs)
        return replace(model, gamma=median_width(squared_distances(typical), "gamma"))

    def _store(self, model: "Quantiles", descriptions: Any) -> None:
        self.gamma_, self.directions_ = model.gamma, model.directions


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of each set along directions, compared by exp(-gamma d^2)."""

    directions: Floats
    center: Floats
    n_quantiles: int
    gamma: float

    def describe(self, sets: Bags, n_jobs: int | None) -> Floats:
        """Quantiles of all projections of each set in one vector."""
        length = self.n_quantiles * len(self.directions)
        scale = 1.0 / sqrt(length)
        # Keep few: the weights of thousands of different sizes would fill the memory.
        weights = lru_cache(16)(lambda size: scale * interval_means(size, self.n_quantiles))

        def quantiles(points: Floats) -> Floats:
            projected = self.directions @ (points - self.center).T
            projected.sort(axis=1)
            return np.asarray((projected @ weights(len(points))).ravel())

        return describe_sets(quantiles, sets, length, n_jobs=n_jobs)

    def describe_on(self, sets: Bags, place: Place) -> Any:
        """As `describe`, on a device."""
        from unshuffle.kernels.sets._gpu.vectors import quantile_vectors

        length = self.n_quantiles * len(self.directions)
        scale = 1.0 / sqrt(length)

        def weights(size: int) -> Floats:
            return np.asarray(scale * interval_means(size, self.n_quantiles).toarray())

        return quantile_vectors(sets, self.directions, self.center, weights, length, place)

    def gram_on(self, a: Any, b: Any, place: Place) -> Any:
        """Kernel between vectors on a device, as a tensor."""
        from unshuffle.kernels.sets._gpu import vectors as tensors

        return tensors.exponential_of(tensors.squared_distances(a, b), self.gamma)

    def compare(self, a: Floats, b: Floats | None) -> Floats:
        """Kernel between vectors."""
        return exponential_of(squared_distances(a, b), self.gamma)


def spread_directions(n_directions: int, width: int, rng: np.random.RandomState) -> Floats:
    """Unit vectors: one on a line, evenly spaced in the plane, else random."""
    if width == 1:
        return np.ones((1, 1))
    if width == 2:
        angles = np.pi * np.arange(n_directions) / n_directions
        return np.column_stack([np.cos(angles), np.sin(angles)])
    return orthogonal_directions(n_directions, width, rng)


def interval_means(size: int, n_quantiles: int) -> sparse.csr_array:
    """Weights of sorted values in the means of their quantile function over equal intervals.

    The quantile function of `size` values has `size` steps of equal width. Its mean over an
    interval weights each step by its overlap. Shape (size, n_quantiles); columns sum to 1.

    >>> interval_means(2, 3).toarray()
    array([[1. , 0.5, 0. ],
           [0. , 0.5, 1. ]])
    """
    # In units of 1 / (size * n_quantiles) all ends are integers, so touching is not overlapping.
    ends = np.union1d(n_quantiles * np.arange(size + 1), size * np.arange(n_quantiles + 1))
    starts, shares = ends[:-1], np.diff(ends) / size
    cells = starts // n_quantiles, starts // size
    return sparse.csr_array((shares, cells), shape=(size, n_quantiles))
