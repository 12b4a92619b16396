"""FisherVectorKernel: sets compared by how they would change a mixture of all points."""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from unshuffle._arrays import column_moments, find_inliers
from unshuffle._bags import Bags, canonical_order
from unshuffle._parameters import Constraints, count, number
from unshuffle.kernels.sets._set_kernel import SetKernel
from unshuffle.kernels.sets._set_vectors import (
    SetVectors,
    describe,
    evenly_spaced,
    linear_block,
    mean_in_pieces,
    rbf_block,
    unit_length,
)

Array = NDArray[np.float64]
# A mixture of this many points is as good a vocabulary as one of all.
VOCABULARY_SAMPLE = 20_000
# Beyond so many standard deviations all points are alike: squares must stay finite.
FARTHEST = 1e60
# Log-likelihoods of points rise and fall by about this much where nothing is gained any more.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Vocabulary:
    """Gaussian mixture with diagonal covariances, of points scaled to unit variance."""

    center: Array  # mean of the fitted points
    spread: Array  # their standard deviation
    weights: Array  # shares of the components
    means: Array  # (n_components, width), in scaled coordinates
    deviations: Array  # (n_components, width), likewise
    n_iter: int  # steps of the fit
    settled: bool  # whether it ended before `max_iter`
    power: float  # to which the numbers of a vector are raised
    gamma: float | None  # None compares by inner products

    def describe(self, bags: Bags, n_jobs: int | None) -> SetVectors:
        """Slopes of each set, in a vector of length 1."""
        length = len(self.weights) * (1 + 2 * bags.width)
        gradient = partial(mean_in_pieces, self.gradient, length)
        slopes = describe(gradient, bags, length, n_jobs=n_jobs)
        return SetVectors(unit_length(np.sign(slopes) * np.abs(slopes) ** self.power))

    def compare(self, a: SetVectors, b: SetVectors | None) -> Array:
        """Kernel between vectors."""
        return linear_block(a, b) if self.gamma is None else rbf_block(a, b, self.gamma)

    def gradient(self, points: Array) -> Array:
        """Slope of the points' mean log-likelihood, in units of its own standard deviation.

        Slopes by weights, means and deviations, one after the other: (1 + 2 width) numbers for
        each component.
        """
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
    by the slope of its likelihood: how weight, mean and width of each Gaussian should change to
    fit this set better. Vectors of sets are then compared as they are, or by an RBF kernel.

    Parameters
    ----------
    n_components : int, default=16
        Gaussians of the vocabulary; more see finer differences and need more points. Never more
        than there are different points, with a warning.
    gamma : float or None, default=None
        None compares by inner products. A number by exp(-gamma d^2), d the distance between
        vectors of length 1; larger sees finer differences.
    power : float, default=0.5
        Each number keeps its sign and is raised to this power: smaller brings components that
        few points belong to nearer to the others, 1 changes nothing.
    regularization : float, default=1e-4
        Added to the variances of the Gaussians, as a share of that of all points. Larger keeps
        them from shrinking onto few points.
    max_iter : int, default=100
        Most steps of the fit of the mixture.
    tol : float, default=1e-3
        Rise of the log-likelihood per point below which to stop. Larger stops sooner.
    random_state : int, RandomState instance or None, default=None
        Where the fit of the mixture starts.
    n_jobs : int or None, default=None
        Threads that describe and compare sets; more are faster. The result does not depend on it.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Share of each Gaussian in the vocabulary.
    means_ : ndarray of shape (n_components, n_features_in_)
        Its mean.
    deviations_ : ndarray of shape (n_components, n_features_in_)
        Its standard deviation in each column.
    converged_ : bool
        Whether the mixture settled.
    n_iter_ : int
        Steps it took.
    n_features_in_ : int
        Columns of a point.

    Notes
    -----
    Positive semi-definite, as a kernel of vectors of length 1. Neither the order of points nor
    that of sets changes the vocabulary; of more than 20,000 points it is learned from as many,
    evenly chosen. The vocabulary is a local optimum of the likelihood.

    A set of m points with d columns takes O(m K d) time for K components, two sets O(K d): one
    matrix product for all. 1000 sets of 70 points in the plane take .4 seconds. Memory:
    K (2 d + 1) numbers for each set and n^2 for the Gram matrix, both checked before they are
    taken.

    References
    ----------
    Jaakkola, Haussler, "Exploiting generative models in discriminative classifiers", NIPS (1998).
    Perronnin, Sánchez, Mensink, "Improving the Fisher kernel for large-scale image
    classification", ECCV (2010).

    Examples
    --------
    >>> from unshuffle.datasets import digit_clouds
    >>> from unshuffle.kernels import FisherVectorKernel
    >>> bags, labels = digit_clouds(20)
    >>> kernel = FisherVectorKernel(n_components=8, random_state=0)
    >>> kernel.fit_transform(bags).shape
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

    def _build(self, bags: Bags) -> Vocabulary:
        # Sorted, so that neither which set a point is in nor the order of sets plays a part.
        points = bags.points[canonical_order(bags.points)]
        center, spread = column_moments(points)
        spread = np.where(spread > 0, spread, 1.0)
        # A wild point would be a vocabulary of its own.
        points = points[find_inliers(np.abs((points - center) / spread).max(axis=1))]
        points = points[evenly_spaced(len(points), VOCABULARY_SAMPLE)]
        if len(points) == 1:
            points = np.repeat(points, 2, axis=0)  # the fit wants two
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

    def _store(self, model: Vocabulary, sets: SetVectors) -> None:
        self.converged_, self.n_iter_ = model.settled, model.n_iter
        self.weights_ = model.weights
        self.means_ = model.means * model.spread + model.center
        self.deviations_ = model.deviations * model.spread

    def _mixture(self, points: Array) -> Any:
        from sklearn.mixture import GaussianMixture  # slow to import

        n_different = len(np.unique(points, axis=0))
        if n_different < self.n_components:
            warnings.warn(
                f"n_components={self.n_components} is more than the {n_different} different "
                f"point(s) of the bags, so {n_different} are used. Pass fewer, or more points.",
                UserWarning,
                stacklevel=2,
            )
        mixture = GaussianMixture(
            min(int(self.n_components), n_different),
            covariance_type="diag",
            reg_covar=self.regularization,
            max_iter=int(self.max_iter),
            tol=max(self.tol, ROUNDING),  # below it a climb would only end at max_iter
            random_state=self.random_state,
        )
        # One thread: sums of several come in any order, and round differently every time.
        with warnings.catch_warnings(), threadpool_limits(limits=1):
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(points)
        if not mixture.converged_:
            warnings.warn(
                f"The vocabulary was still changing after max_iter={self.max_iter} steps. It is "
                "used as it stands; pass a larger max_iter, or a larger tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return mixture
