"""ExpectedLikelihoodKernel: sets compared by the overlap of their Gaussian mixtures."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unshuffle._bags import Bags
from unshuffle._parameters import (
    FLAG,
    FUNCTION,
    Constraints,
    check_memory,
    count,
    number,
    option,
)
from unshuffle.kernels.sets._feature_space import FeatureSpace
from unshuffle.kernels.sets._mixtures import KINDS, N_TRIALS, Climb, InputSpace, Mixture
from unshuffle.kernels.sets._set_kernel import SetKernel

Array = NDArray[np.float64]


# Of the parameters that choose where densities are fitted.
SPACE_CONSTRAINTS: Constraints = {
    "base_kernel": [option("linear", "poly", "rbf"), FUNCTION, None],
    "eta": [number(least=1e-8, most=1e8)],
    "rank": [count()],
    "n_landmarks": [count()],
    "regularization": [number(least=1e-10, most=1e8)],
}


@dataclass(frozen=True)
class Densities:
    """Densities of sets, ready to be multiplied."""

    mixtures: Any  # Mixtures or FeatureMixtures
    lengths: Array  # logarithms of what products are divided by; zeros where nothing is
    n_iter: int  # rounds that the slowest mixture took
    settled: bool  # whether all ended before `max_iter`

    def __len__(self) -> int:
        return len(self.lengths)

    def part(self, start: int, stop: int) -> "Densities":
        """Densities of the sets from `start` up to `stop`."""
        some = self.mixtures.part(start, stop)
        return Densities(some, self.lengths[start:stop], self.n_iter, self.settled)


@dataclass(frozen=True)
class DensityModel:
    """A density for each set, a product between densities, and what products are divided by."""

    space: InputSpace | FeatureSpace  # where mixtures are fitted, and how they are multiplied
    climb: Climb  # how they are fitted
    root: bool  # whether roots of densities are multiplied
    normalize: bool  # whether each density then has 1 with itself

    def fits(self, bags: Bags, n_jobs: int | None) -> Any:
        """Mixture of each set, with one warning for all that had not settled."""
        found = self.space.fits(bags, self.climb, n_jobs=n_jobs)
        moving = int(found.settled.size - found.settled.sum())
        if moving:
            warnings.warn(
                f"The mixtures of {moving} of {found.settled.size} sets were still changing after "
                f"max_iter={self.climb.max_iter} rounds. They are used as they stand; pass a "
                "larger max_iter, or a larger tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return found

    def describe(self, bags: Bags, n_jobs: int | None) -> Densities:
        """Density of each set."""
        space: Any = self.space
        fits = self.fits(bags, n_jobs)
        mixtures = space.affinities(fits) if self.root else space.likelihoods(fits)
        lengths = _log_lengths(mixtures) if self.normalize else np.zeros(len(mixtures))
        return Densities(mixtures, lengths, int(fits.rounds.max()), bool(fits.settled.all()))

    def compare(self, a: Densities, b: Densities | None) -> Array:
        """Integrals of products, divided by the lengths of both."""
        logs = a.mixtures.log_products(None if b is None else b.mixtures)
        check_log_products(logs)
        # The sum of both lengths is the same in either order, so symmetry stays exact.
        logs -= np.add.outer(a.lengths, (a if b is None else b).lengths)
        if b is None and a.lengths.any():
            # Products of matrices round differently for one set and for many.
            np.fill_diagonal(logs, 0.0)
        largest = float(logs.max())
        if largest > 700.0:
            raise ValueError(
                f"The integral of two densities is exp({largest:.0f}), more than a float can "
                "hold: there are many columns, or their units are tiny. Use normalize=True, which "
                "divides before it leaves the logarithms."
            )
        return np.asarray(np.exp(logs))


def _log_lengths(mixtures: Any) -> Array:
    """Logarithms of the roots of the product of each density with itself."""
    parts = [mixtures.part(i, i + 1) for i in range(len(mixtures))]
    own = np.array([part.log_products(None)[0, 0] for part in parts])
    check_log_products(own)
    thin = np.flatnonzero(~(own > -np.inf))
    if thin.size:
        raise ValueError(
            f"Points of bag {thin[0]} lie so far apart, compared with the fitted ones, that their "
            f"covariance is too large for a float ({thin.size} such bag(s)). Check its units, or "
            "drop it."
        )
    return 0.5 * own


class DensityKernel(SetKernel):
    """Kernel between the densities of sets, in input space or that of a base kernel."""

    base_kernel: Any
    _model: DensityModel

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
        if self.base_kernel is not None:
            raise ValueError(
                f"Mixtures in the feature space of base_kernel={self.base_kernel!r} have no means "
                "and covariances among the points. Fit with base_kernel=None to see mixtures."
            )
        space: Any = self._model.space
        given = self._bags_like_fitted(bags).sorted()
        return list(space.mixtures(self._model.fits(given, self.n_jobs)))

    def _store(self, model: DensityModel, sets: Densities) -> None:
        if isinstance(model.space, FeatureSpace):
            self.gamma_, self.eta_ = model.space.gamma, model.space.eta


def density_space(kernel: Any, bags: Bags) -> tuple[InputSpace | FeatureSpace, float]:
    """Space that the parameters of a kernel ask for, and what is added to variances in it."""
    if kernel.base_kernel is None:
        return InputSpace.of(bags.points), kernel.regularization
    if kernel.covariance_type in ("diag", "spherical"):
        raise ValueError(
            f"covariance_type={kernel.covariance_type!r} has no meaning in the feature space of a "
            f"kernel, which has no axes of its own, got base_kernel={kernel.base_kernel!r}. Use "
            'covariance_type="full" or "tied", or base_kernel=None.'
        )
    space = FeatureSpace.of(
        bags.points,
        kernel.base_kernel,
        gamma=kernel.gamma,
        degree=int(kernel.degree),
        eta=kernel.eta,
        rank=int(kernel.rank),
        n_landmarks=int(kernel.n_landmarks),
    )
    return space, space.eta


def starting_draws(random_state: Any, n_init: int, n_components: int) -> Array:
    """Numbers from 0 to 1 that choose where mixtures start."""
    check_memory(
        8 * n_init * N_TRIALS * n_components,
        what=f"Starting {n_init:,} times with {n_components:,} components",
        instead="Pass a smaller `n_init` or `n_components`.",
    )
    random = check_random_state(random_state)
    return np.asarray(random.random_sample((n_init, N_TRIALS, n_components)))


class ExpectedLikelihoodKernel(DensityKernel):
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

    _constraints: ClassVar[Constraints] = {
        "n_components": [count(), option("bic", "cv")],
        "covariance_type": [option(*KINDS)],
        "normalize": [FLAG],
        **SPACE_CONSTRAINTS,
        "max_components": [count()],
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

    def _build(self, bags: Bags) -> DensityModel:
        space, floor = density_space(self, bags)
        counted = isinstance(self.n_components, str)
        most = int(self.max_components if counted else self.n_components)
        climb = Climb(
            self.n_components if counted else most,
            most,
            self.covariance_type,
            floor,
            int(self.max_iter),
            self.tol,
            starting_draws(self.random_state, int(self.n_init), most),
        )
        return DensityModel(space, climb, root=False, normalize=self.normalize)

    def _store(self, model: DensityModel, sets: Densities) -> None:
        super()._store(model, sets)
        self.n_iter_, self.converged_ = sets.n_iter, sets.settled


def check_log_products(logs: NDArray[np.float64]) -> None:
    """Refuse logarithms of integrals that come of covariances without an inverse."""
    if not logs.max() < np.inf:
        raise ValueError(
            "A covariance has no inverse in floating point: `regularization` (or `eta`, with a "
            "base kernel) is too small for sets that lie in fewer dimensions, or that differ so "
            "much in size. Pass a larger one, such as the default of 0.02."
        )
