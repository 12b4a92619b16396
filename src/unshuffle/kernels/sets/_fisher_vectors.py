"""FisherVectorKernel: sets compared by how each would change a mixture of all points."""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from unshuffle._core.arrays import column_moments, find_inliers
from unshuffle._core.bags import Bags, canonical_order
from unshuffle._core.distances import exponential_of, inner_products, squared_distances
from unshuffle._core.parameters import Constraints, count, number
from unshuffle._run.printing import warn_user
from unshuffle._run.types import Floats
from unshuffle.kernels.sets._models.set_vectors import (
    describe_sets,
    evenly_spaced,
    mean_in_pieces,
    unit_length,
)
from unshuffle.kernels.sets._set_kernel import SetKernel

# A mixture of this many points is as good a vocabulary as one of all.
VOCABULARY_SAMPLE = 20_000
# Coordinates are clipped to this many standard deviations, so that squares stay finite.
FARTHEST = 1e60
# Log-likelihoods vary by about this much from rounding alone.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Vocabulary:
    """Gaussian mixture of points scaled to unit variance, with diagonal covariances."""

    center: Floats  # mean of the fitted points
    spread: Floats  # their standard deviation
    weights: Floats  # shares of the components
    means: Floats  # (n_components, width), in scaled coordinates
    deviations: Floats  # (n_components, width), likewise
    n_iter: int  # rounds of the fit
    converged: bool
    power: float  # exponent of the numbers of a vector
    gamma: float | None  # None compares by inner products

    def describe(self, sets: Bags, n_jobs: int | None) -> Floats:
        """Gradient of each set, scaled to length 1."""
        length = len(self.weights) * (1 + 2 * sets.width)
        gradient = partial(mean_in_pieces, self.gradient, length)
        gradients = describe_sets(gradient, sets, length, n_jobs=n_jobs)
        return unit_length(np.sign(gradients) * np.abs(gradients) ** self.power)

    def compare(self, a: Floats, b: Floats | None) -> Floats:
        """Kernel between vectors."""
        if self.gamma is None:
            return inner_products(a, b)
        return exponential_of(squared_distances(a, b), self.gamma)

    def gradient(self, points: Floats) -> Floats:
        """Gradient of the mean log-likelihood by weights, means and deviations, standardized."""
        scaled = np.clip((points - self.center) / self.spread, -FARTHEST, FARTHEST)[:, None, :]
        steps = (scaled - self.means) / self.deviations
        logs = np.log(self.weights) - np.log(self.deviations).sum(axis=1)
        logs = logs - 0.5 * np.einsum("ikj,ikj->ik", steps, steps)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        shares /= len(points) * shares.sum(axis=1, keepdims=True)
        roots = np.sqrt(self.weights)
        by_weights = shares.sum(axis=0) / roots - roots
        by_means = np.einsum("ik,ikj->kj", shares, steps) / roots[:, None]
        by_deviations = np.einsum("ik,ikj->kj", shares, steps**2 - 1.0) / (
            np.sqrt(2.0) * roots[:, None]
        )
        return np.concatenate([by_weights, by_means.ravel(), by_deviations.ravel()])


class FisherVectorKernel(SetKernel):
    """Compare sets by how each would change a mixture model of all points.

    A Gaussian mixture of the points of all fitted sets serves as vocabulary. A set is described
    by the gradient of its likelihood: how the weight, mean and width of each Gaussian should
    change to fit this set better. These vectors are compared by inner products or an RBF kernel.

    Parameters
    ----------
    n_components : int, default=16
        Gaussians of the vocabulary. More resolve finer differences and need more points. At most
        one per distinct point is used, with a warning.
    gamma : float or None, default=None
        Width of the kernel exp(-gamma d^2), d the distance between vectors of length 1. A larger
        value resolves finer differences. None compares by inner products.
    power : float, default=0.5
        Exponent applied to the absolute value of each number of a vector. Smaller values give
        components with few points more influence; 1 changes nothing.
    regularization : float, default=1e-4
        Added to the variances of the Gaussians, as a share of that of all points. A larger value
        keeps them from shrinking onto few points.
    max_iter : int, default=100
        Most rounds of expectation maximization. A larger value lets the mixture converge further.
    tol : float, default=1e-3
        Gain in log-likelihood per point below which the fit stops. A larger value stops earlier.
    random_state : int, RandomState instance or None, default=None
        Chooses where the fit of the mixture starts.
    n_jobs : int or None, default=None
        Threads that describe and compare sets; more are faster. The result does not depend on it.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Share of each Gaussian in the vocabulary.
    means_ : ndarray of shape (n_components, n_features)
        Mean of each Gaussian.
    deviations_ : ndarray of shape (n_components, n_features)
        Standard deviation of each Gaussian in each column.
    converged_ : bool
        Whether the mixture converged.
    n_iter_ : int
        Rounds of its fit.
    n_features_in_ : int
        Columns of a point.

    Notes
    -----
    Positive semi-definite, as a kernel of vectors of length 1. The vocabulary is a local optimum
    of the likelihood, learned from at most 20,000 points. It does not depend on their order.

    For K components, describing a set of m points with d columns takes O(m K d) time and
    K (2 d + 1) numbers, comparing two sets O(K d) time. The Gram matrix of n sets takes n^2
    numbers. Memory is checked first.

    References
    ----------
    Jaakkola, Haussler, "Exploiting generative models in discriminative classifiers", NIPS (1998).
    Perronnin, Sánchez, Mensink, "Improving the Fisher kernel for large-scale image
    classification", ECCV (2010).

    Examples
    --------
    >>> from unshuffle.datasets import digit_sets
    >>> from unshuffle.kernels import FisherVectorKernel
    >>> sets, labels = digit_sets(20)
    >>> kernel = FisherVectorKernel(n_components=8, random_state=0)
    >>> kernel.fit_transform(sets).shape
    (20, 20)
    """

    _constraints: ClassVar[Constraints] = {
        "n_components": [count()],
        "power": [number(above=0, most=1)],
        "regularization": [number(above=0, most=1e8)],
    }

    def __init__(
        self,
        n_components: int = 16,
        *,
        gamma: float | None = None,
        power: float = 0.5,
        regularization: float = 1e-4,
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.power = power
        self.regularization = regularization
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _build_model(self, sets: Bags) -> Vocabulary:
        # Sorted, so that the order of sets does not matter.
        points = sets.points[canonical_order(sets.points)]
        center, spread = column_moments(points)
        spread = np.where(spread > 0, spread, 1.0)
        # An outlier would take a component of its own.
        points = points[find_inliers(np.abs((points - center) / spread).max(axis=1))]
        points = points[evenly_spaced(len(points), VOCABULARY_SAMPLE)]
        if len(points) == 1:
            points = np.repeat(points, 2, axis=0)  # GaussianMixture needs two
        mixture = self._mixture((points - center) / spread)
        return Vocabulary(
            center,
            spread,
            mixture.weights_,
            mixture.means_,
            np.sqrt(mixture.covariances_),
            int(mixture.n_iter_),
            bool(mixture.converged_),
            self.power,
            self.gamma,
        )

    def _store(self, model: Vocabulary, descriptions: Floats) -> None:
        self.converged_, self.n_iter_ = model.converged, model.n_iter
        self.weights_ = model.weights
        self.means_ = model.means * model.spread + model.center
        self.deviations_ = model.deviations * model.spread

    def _mixture(self, points: Floats) -> Any:
        from sklearn.mixture import GaussianMixture  # slow to import

        n_distinct = len(np.unique(points, axis=0))
        if n_distinct < self.n_components:
            warn_user(
                f"n_components={self.n_components}, but X holds {n_distinct} distinct point(s), "
                f"so {n_distinct} are used. Pass fewer components, or more points."
            )
        mixture = GaussianMixture(
            min(int(self.n_components), n_distinct),
            covariance_type="diag",
            reg_covar=self.regularization,
            max_iter=int(self.max_iter),
            tol=max(self.tol, ROUNDING),  # rounding would keep it from stopping
            random_state=self.random_state,
        )
        # With several threads, sums round differently every time. Dispatch on the kind of array
        # would rule out the start by k-means.
        with (
            warnings.catch_warnings(),
            threadpool_limits(limits=1),
            config_context(array_api_dispatch=False),
        ):
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(points)
        if not mixture.converged_:
            warn_user(
                f"The vocabulary did not converge in max_iter={self.max_iter} rounds. It is used "
                "as it is; pass a larger max_iter or a larger tol.",
                ConvergenceWarning,
            )
        return mixture
