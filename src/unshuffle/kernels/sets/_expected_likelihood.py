"""ExpectedLikelihoodKernel: sets compared by the overlap of their Gaussian mixtures."""

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unshuffle._bags import Bags
from unshuffle._parameters import check_memory
from unshuffle.kernels.sets._feature_space import FeatureMixtures, FeatureSpace
from unshuffle.kernels.sets._mixtures import KINDS, N_TRIALS, Climb, InputSpace, Mixture, Mixtures
from unshuffle.kernels.sets._set_kernel import SetKernel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Densities:
    """Densities of sets, and by what their products are divided.

    Attributes
    ----------
    mixtures : Mixtures or FeatureMixtures
        The densities.
    lengths : ndarray of shape (n_sets,)
        Logarithms; zeros where nothing is divided.
    """

    mixtures: Mixtures | FeatureMixtures
    lengths: Array

    def __len__(self) -> int:
        return len(self.lengths)

    def part(self, start: int, stop: int) -> "Densities":
        """Densities of the sets from `start` up to `stop`."""
        return Densities(self.mixtures.part(start, stop), self.lengths[start:stop])


class GaussianSetKernel(SetKernel):
    """Compares sets by Gaussians or mixtures of these, in input space or that of a kernel.

    A subclass says by `_climb` how mixtures are fitted and by `_densities` what is
    multiplied.
    """

    base_kernel: Any
    covariance_type: str
    eta: float
    gamma: float | None
    degree: int
    rank: int
    n_landmarks: int
    regularization: float

    @abstractmethod
    def _climb(self, floor: float) -> Climb:
        """How mixtures are fitted, given what is added to all variances."""

    @abstractmethod
    def _densities(self, fits: Any) -> Densities:
        """What is multiplied."""

    def mixtures(self, bags: Any) -> list[Mixture]:
        """Density that describes each set, in the space and units of the points.

        Parameters
        ----------
        bags : what `fit` takes
            Fitted sets or new ones; a single one as [bag].

        Returns
        -------
        mixtures : list of Mixture
            With `weights`, `means` and `covariances`; for kernels with base_kernel=None.
        """
        check_is_fitted(self, "_fitted_bags")
        check_input_space(self.base_kernel)
        space: Any = self._space
        given = self._bags_like_fitted(bags).sorted()
        return list(space.mixtures(space.fits(given, self._settled_climb, n_jobs=self.n_jobs)))

    def _settle(self, bags: Bags) -> None:
        check_covariance_in_features(self.base_kernel, self.covariance_type)
        self._space: InputSpace | FeatureSpace
        if self.base_kernel is None:
            self._space, floor = InputSpace.of(bags.points), self.regularization
        else:
            self._space = FeatureSpace.of(
                bags.points,
                self.base_kernel,
                gamma=self.gamma,
                degree=int(self.degree),
                eta=self.eta,
                rank=int(self.rank),
                n_landmarks=int(self.n_landmarks),
            )
            floor = self.eta_ = self._space.eta
            self.gamma_ = self._space.gamma
        self._settled_climb = self._climb(floor)

    def _summarize(self, bags: Bags) -> Densities:
        return self._densities(self._space.fits(bags, self._settled_climb, n_jobs=self.n_jobs))

    def _block(self, a: Densities, b: Densities | None) -> Array:
        own: Any = a.mixtures
        logs = own.log_products(None if b is None else b.mixtures)
        check_log_products(logs)
        # The sum of both lengths is the same in either order, so symmetry stays exact.
        logs -= np.add.outer(a.lengths, (a if b is None else b).lengths)
        if b is None and a.lengths.any():
            # Products of matrices round differently for one set and for many.
            np.fill_diagonal(logs, 0.0)
        check_likelihood_range(logs)
        return np.asarray(np.exp(logs))


def normalized(mixtures: Mixtures | FeatureMixtures) -> Densities:
    """Densities whose products are divided so that each has 1 with itself."""
    own = np.array(
        [mixtures.part(i, i + 1).log_products(None)[0, 0] for i in range(len(mixtures))]
    )
    check_log_products(own)
    check_log_lengths(own)
    return Densities(mixtures, 0.5 * own)


def starting_draws(random_state: Any, n_init: int, n_components: int) -> Array:
    """Numbers from 0 to 1 that choose where mixtures start."""
    check_memory(
        8 * n_init * N_TRIALS * n_components,
        what=f"Starting {n_init:,} times with {n_components:,} components",
        instead="Pass a smaller `n_init` or `n_components`.",
    )
    random = check_random_state(random_state)
    return np.asarray(random.random_sample((n_init, N_TRIALS, n_components)))


class ExpectedLikelihoodKernel(GaussianSetKernel):
    """Compare sets by the overlap of their densities, each a mixture of Gaussians.

    The points of each set are taken as drawn from a mixture of Gaussians, fitted to that set
    alone. Two sets are as similar as one density is likely under the other: the integral of their
    product, in closed form.

    Parameters
    ----------
    n_components : int, "bic" or "cv", default=5
        Gaussians for each set. More follow its shape more closely, and need more points for it.
        "bic" chooses a number for each set by the Bayesian information criterion, "cv" by the
        likelihood of points left out. Sets with fewer different points get fewer, with a warning.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Shape of the Gaussians: any; any, but the same for all of a set; along the axes; round.
    normalize : bool, default=True
        Whether to divide so that every set has similarity 1 with itself.
    base_kernel : {"linear", "poly", "rbf"}, callable or None, default=None
        None fits mixtures to the points. Otherwise to their images in the feature space of this
        kernel between points ("poly" is (gamma x'y + 1)^degree, "rbf" exp(-gamma |x - y|^2); a
        callable takes two arrays of points and gives a matrix, or two points and gives a number,
        and must be positive definite).
    eta : float, default=0.02
        With a base kernel: variance added in every direction, as a share of the mean variance of
        the fitted points in feature space. Larger sees coarser differences. No value suits all
        data: let cross-validation choose, between .002 and .2 say.
    gamma : float or None, default=None
        Of the base kernel; larger sees finer differences. None is one over the median squared
        distance of points for "rbf", one over the number of features for "poly".
    degree : int, default=2
        Of base_kernel="poly"; larger bends more.
    rank : int, default=12
        With a base kernel: directions of spread kept of each Gaussian. More describe it more
        closely and take longer, by about the square.
    n_landmarks : int, default=300
        With a base kernel other than "linear": fitted points that span the coordinates of feature
        space, chosen greedily. More come closer to the kernel, a narrow one above all, and take
        longer.
    max_components : int, default=8
        Most Gaussians that "bic" and "cv" try; more take longer.
    regularization : float, default=0.02
        Without a base kernel: added to the variances of all Gaussians, as a share of the variance
        of each column over all fitted points. Larger blurs sets, which helps small ones.
    n_init : int, default=4
        Starting points of each mixture, of which the likeliest end is kept. More take longer.
    max_iter : int, default=100
        Rounds of expectation maximisation at most.
    tol : float, default=1e-3
        A mixture has settled when a round gains less log-likelihood for each point. Larger stops
        earlier.
    random_state : int, RandomState instance or None, default=None
        Draws the starting points, alike for all sets, once in `fit`. A number gives the same
        result in every fit; None draws anew.
    n_jobs : int or None, default=None
        Threads; more are faster. The result does not depend on it.

    Attributes
    ----------
    gamma_ : float
        Width or scale of the base kernel, 1 where it has none; with a base kernel only.
    eta_ : float
        Variance added in feature space; with a base kernel only.
    n_iter_ : int
        Rounds that the slowest mixture of the fitted sets took, from the likeliest start.
    converged_ : bool
        Whether all of them settled within `max_iter`.
    n_features_in_ : int
        Columns of a point.

    Notes
    -----
    Positive semi-definite, as an inner product of densities. All sums are of logarithms, so sets
    that lie far apart do not underflow before they are normalized. Order inside a set plays no
    part: mixtures start from points in the order of their coordinates.

    For n sets of M Gaussians in d dimensions the Gram matrix takes O(n^2 M^2 d^3) time: 0.3
    seconds on one core for 1000 sets with M = 5 and d = 5, where fitting takes 0.6. With a base
    kernel it takes O(n^2 M^2 r^2 D) for rank r and D landmarks: 1.6 seconds for 1000 sets of 72
    points with M = 1, where fitting takes 2, and M^2 times that with more. Memory: the Gram
    matrix, and what describes the sets; both are checked before they are taken.

    With a base kernel, covariances are C + eta I. The formulas of the paper are without eta, and
    then do not give a positive semi-definite kernel. Products are given but for a constant factor
    that normalizing removes, since the space has no number of dimensions. With "linear" there is
    no such factor, and of columns with variance 1 the result is that of base_kernel=None with
    regularization = n_features * eta. In other feature spaces many points are needed to tell
    several Gaussians apart: M = 1 is often best.

    References
    ----------
    Lyu, "A kernel between unordered sets of data: the Gaussian mixture approach", European
    Conference on Machine Learning (2005). Jebara, Kondor, Howard, "Probability product kernels",
    Journal of Machine Learning Research 5 (2004).

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from unshuffle.datasets import mixture_sets
    >>> from unshuffle.kernels import ExpectedLikelihoodKernel
    >>> bags, labels = mixture_sets(300)
    >>> kernel = ExpectedLikelihoodKernel(random_state=0)
    >>> model = make_pipeline(kernel, SVC(C=10, kernel="precomputed"))
    >>> bool(model.fit(bags[:200], labels[:200]).score(bags[200:], labels[200:]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"bic", "cv"})],
        "covariance_type": [StrOptions(set(KINDS))],
        "normalize": ["boolean"],
        "base_kernel": [StrOptions({"linear", "poly", "rbf"}), callable, None],
        "eta": [Interval(Real, 1e-8, 1e8, closed="both")],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "regularization": [Interval(Real, 1e-10, 1e8, closed="both")],
        "n_init": [Interval(Integral, 1, 10**6, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_components: int | str = 5,
        covariance_type: str = "full",
        normalize: bool = True,
        base_kernel: Any = None,
        eta: float = 0.02,
        *,
        gamma: float | None = None,
        degree: int = 2,
        rank: int = 12,
        n_landmarks: int = 300,
        max_components: int = 8,
        regularization: float = 0.02,
        n_init: int = 4,
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.normalize = normalize
        self.base_kernel = base_kernel
        self.eta = eta
        self.gamma = gamma
        self.degree = degree
        self.rank = rank
        self.n_landmarks = n_landmarks
        self.max_components = max_components
        self.regularization = regularization
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _climb(self, floor: float) -> Climb:
        counted = isinstance(self.n_components, str)
        most = int(self.max_components if counted else self.n_components)
        return Climb(
            self.n_components if counted else most,
            most,
            self.covariance_type,
            floor,
            int(self.max_iter),
            self.tol,
            starting_draws(self.random_state, int(self.n_init), most),
        )

    def _learn(self, bags: Bags) -> Densities:
        self._settle(bags)
        fits = self._space.fits(bags, self._settled_climb, n_jobs=self.n_jobs)
        self.n_iter_ = int(fits.rounds.max())
        self.converged_ = bool(fits.settled.all())
        return self._densities(fits)

    def _densities(self, fits: Any) -> Densities:
        mixtures = self._space.likelihoods(fits)
        if self.normalize:
            return normalized(mixtures)
        return Densities(mixtures, np.zeros(len(mixtures)))


def check_log_products(logs: NDArray[np.float64]) -> None:
    """Refuse logarithms of integrals that come of covariances without an inverse."""
    if not logs.max() < np.inf:
        raise ValueError(
            "A covariance has no inverse in floating point: `regularization` (or `eta`, with a "
            "base kernel) is too small for sets that lie in fewer dimensions, or that differ so "
            "much in size. Pass a larger one, such as the default of 0.02."
        )


def check_log_lengths(logs: NDArray[np.float64]) -> None:
    """Refuse densities so thin that their own integral is lost."""
    thin = np.flatnonzero(~(logs > -np.inf))
    if thin.size:
        raise ValueError(
            f"Points of bag {thin[0]} lie so far apart, compared with the fitted ones, that their "
            f"covariance is too large for a float ({thin.size} such bag(s)). Check its units, or "
            "drop it."
        )


def check_likelihood_range(logs: NDArray[np.float64]) -> None:
    """Refuse integrals that no float can hold."""
    largest = float(logs.max())
    if largest > 700.0:
        raise ValueError(
            f"The integral of two densities is exp({largest:.0f}), more than a float can hold: "
            "there are many columns, or their units are tiny. Use normalize=True, which divides "
            "before it leaves the logarithms."
        )


def check_covariance_in_features(base_kernel: Any, covariance_type: str) -> None:
    """Refuse covariances along axes that the feature space of a kernel does not have."""
    if base_kernel is not None and covariance_type in ("diag", "spherical"):
        raise ValueError(
            f"covariance_type={covariance_type!r} has no meaning in the feature space of a "
            f"kernel, which has no axes of its own, got base_kernel={base_kernel!r}. Use "
            'covariance_type="full" or "tied", or base_kernel=None.'
        )


def check_input_space(base_kernel: Any) -> None:
    """Refuse to show mixtures of a space that has no coordinates to show them in."""
    if base_kernel is not None:
        raise ValueError(
            f"Mixtures in the feature space of base_kernel={base_kernel!r} have no means and "
            "covariances among the points. Fit with base_kernel=None to see mixtures."
        )
