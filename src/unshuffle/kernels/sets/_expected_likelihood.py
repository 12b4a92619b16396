"""Kernels between densities of sets; ExpectedLikelihoodKernel, of Gaussian mixtures."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.bags import Bags
from unshuffle._core.parameters import (
    FLAG,
    FUNCTION,
    Constraints,
    check_memory,
    count,
    number,
    option,
)
from unshuffle._run.printing import warn_user
from unshuffle._run.types import Floats
from unshuffle.kernels.sets._gpu.tensors import Place
from unshuffle.kernels.sets._models.feature_space import FeatureSpace
from unshuffle.kernels.sets._models.mixtures import (
    COVARIANCE_TYPES,
    N_TRIALS,
    FitSettings,
    InputSpace,
    Mixture,
)
from unshuffle.kernels.sets._set_kernel import SetKernel

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
    log_norms: Floats  # logarithms that products are divided by; zeros if not normalized
    n_iter: int  # rounds of the slowest fit
    converged: bool

    def __len__(self) -> int:
        return len(self.log_norms)

    def __getitem__(self, some: slice) -> "Densities":
        mixtures = self.mixtures[some]
        return Densities(mixtures, self.log_norms[some], self.n_iter, self.converged)


@dataclass(frozen=True)
class DensityModel:
    """How densities of sets are fitted and multiplied."""

    space: InputSpace | FeatureSpace  # where mixtures are fitted
    settings: FitSettings
    root: bool  # whether roots of densities are multiplied
    normalize: bool

    def fit_mixtures(self, sets: Bags, n_jobs: int | None, place: Place | None = None) -> Any:
        """Mixture of each set, with one warning for all that did not converge."""
        if place is None:
            found: Any = self.space.fit_mixtures(sets, self.settings, n_jobs=n_jobs)
        else:
            from unshuffle.kernels.sets._gpu.mixtures import fit_mixtures

            space = self._input_space()
            found = fit_mixtures(space.standardize(sets), self.settings, place)
        n_moving = int(found.converged.size - found.converged.sum())
        if n_moving:
            warn_user(
                f"The mixtures of {n_moving} of {found.converged.size} sets did not converge in "
                f"max_iter={self.settings.max_iter} rounds. They are used as they are; pass a "
                "larger max_iter or a larger tol.",
                ConvergenceWarning,
            )
        return found

    def describe(self, sets: Bags, n_jobs: int | None, place: Place | None = None) -> Densities:
        """Density of each set."""
        space: Any = self.space
        fits = self.fit_mixtures(sets, n_jobs, place)
        mixtures = space.affinities(fits) if self.root else space.likelihoods(fits)
        log_norms = np.zeros(len(mixtures))
        if self.normalize:
            log_norms = _log_norms(mixtures, place)
        return Densities(mixtures, log_norms, int(fits.rounds.max()), bool(fits.converged.all()))

    def describe_on(self, sets: Bags, place: Place) -> Densities:
        """Density of each set, fitted on a device and kept in NumPy."""
        return self.describe(sets, None, place)

    def gram_on(self, a: Densities, b: Densities | None, place: Place) -> Any:
        """Integrals of products as a tensor, divided by both norms."""
        from unshuffle.kernels.sets._gpu.gaussians import products

        other = None if b is None else b.mixtures
        other_norms = None if b is None else b.log_norms
        K = products(a.mixtures, a.log_norms, other, other_norms, place)
        largest = float(K.amax())
        if largest == np.inf:
            raise ValueError(
                f"The integral of two densities is too large for a {K.dtype}: there are many "
                "columns, or their units are tiny. Use normalize=True, which divides in the log "
                "domain."
            )
        check_log_products(np.array([largest]))  # NaN
        if b is None and self.normalize:
            K.fill_diagonal_(1.0)
        return K

    def _input_space(self) -> InputSpace:
        if isinstance(self.space, InputSpace):
            return self.space
        raise ValueError(
            "With a base kernel, mixtures are fitted on the CPU. Leave `device` out (and call "
            ".cpu() on tensors), or use base_kernel=None."
        )

    def compare(self, a: Densities, b: Densities | None) -> Floats:
        """Integrals of products, divided by both norms."""
        logs = a.mixtures.log_products(None if b is None else b.mixtures)
        check_log_products(logs)
        # The sum of both norms is the same in either order, so symmetry stays exact.
        logs -= np.add.outer(a.log_norms, (a if b is None else b).log_norms)
        if b is None and a.log_norms.any():
            # Products of matrices round differently for one set and for many.
            np.fill_diagonal(logs, 0.0)
        largest = float(logs.max())
        if largest > 700.0:
            raise ValueError(
                f"The integral of two densities is exp({largest:.0f}), too large for a float: "
                "there are many columns, or their units are tiny. Use normalize=True, which "
                "divides in the log domain."
            )
        return np.asarray(np.exp(logs))


def _log_norms(mixtures: Any, place: Place | None) -> Floats:
    """Logarithm of the root of the product of each density with itself."""
    if place is None:
        own = mixtures.own_log_products()
    else:
        from unshuffle.kernels.sets._gpu.gaussians import own_log_products

        own = own_log_products(mixtures, place)
    check_log_products(own)
    flat = np.flatnonzero(~(own > -np.inf))
    if flat.size:
        raise ValueError(
            f"The points of set {flat[0]} are so much farther apart than the fitted ones that "
            f"their covariance is too large for a float ({flat.size} set(s) like this). Check the "
            "units of this set, or drop it."
        )
    return 0.5 * own


def check_log_products(logs: Floats) -> None:
    """Refuse logarithms of integrals that come from singular covariances."""
    if not logs.max() < np.inf:
        raise ValueError(
            "A covariance is singular in floating point: `regularization` (or `eta`, with a base "
            "kernel) is too small for sets that lie in fewer dimensions, or that differ so much "
            "in size. Pass a larger one, such as the default of 0.02."
        )


class DensityKernel(SetKernel):
    """Kernel between the densities of sets, in input space or that of a base kernel."""

    base_kernel: Any
    _model: DensityModel
    _runs_on_device = True

    def mixtures(self, X: Any) -> list[Mixture]:
        """Density that describes each set, in the units of the points.

        Parameters
        ----------
        X : list of array-like, 3-D array, or 2-D array
            Sets, as for `fit`. Pass a single set as [points].

        Returns
        -------
        mixtures : list of Mixture
            With `weights`, `means` and `covariances`. Needs base_kernel=None.
        """
        check_is_fitted(self, "_fitted_sets")
        if self.base_kernel is not None:
            raise ValueError(
                f"Mixtures in the feature space of base_kernel={self.base_kernel!r} have no means "
                "and covariances among the points. Fit with base_kernel=None to see mixtures."
            )
        space: Any = self._model.space
        place = self._find_place(X)
        sets = self._sets_like_fitted(X, place)
        return list(space.mixtures(self._model.fit_mixtures(sets, self.n_jobs, place)))

    def _store(self, model: DensityModel, descriptions: Densities) -> None:
        if isinstance(model.space, FeatureSpace):
            self.gamma_, self.eta_ = model.space.gamma, model.space.eta


def density_space(kernel: Any, sets: Bags) -> tuple[InputSpace | FeatureSpace, float]:
    """Space that the parameters of a kernel select, and the variance added in it."""
    if kernel.base_kernel is None:
        return InputSpace.of(sets.points), kernel.regularization
    if kernel.covariance_type in ("diag", "spherical"):
        raise ValueError(
            f"covariance_type={kernel.covariance_type!r} has no meaning in the feature space of "
            f"base_kernel={kernel.base_kernel!r}, which has no axes. Use "
            'covariance_type="full" or "tied", or base_kernel=None.'
        )
    space = FeatureSpace.of(
        sets.points,
        kernel.base_kernel,
        gamma=kernel.gamma,
        degree=int(kernel.degree),
        eta=kernel.eta,
        rank=int(kernel.rank),
        n_landmarks=int(kernel.n_landmarks),
    )
    return space, space.eta


class ExpectedLikelihoodKernel(DensityKernel):
    """Compare sets by the overlap of their densities, each a mixture of Gaussians.

    A mixture of Gaussians is fitted to the points of each set alone. The similarity of two sets
    is the integral of the product of their densities, in closed form.

    Parameters
    ----------
    n_components : int, "bic" or "cv", default=5
        Gaussians per set. More follow its shape more closely and need more points. "bic" chooses
        a number for each set by the Bayesian information criterion, "cv" by the likelihood of
        held-out points. Sets with fewer distinct points get fewer, with a warning.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Shape of the Gaussians: any; any, but shared within a set; axis-aligned; round.
    normalize : bool, default=True
        Whether to scale the kernel so that every set has similarity 1 with itself.
    base_kernel : {"linear", "poly", "rbf"}, callable or None, default=None
        Kernel between points in whose feature space mixtures are fitted; None fits them to the
        points. "poly" is ``(gamma x'y + 1)^degree``, "rbf" ``exp(-gamma |x - y|^2)``. A callable
        takes two arrays of points and returns a matrix, or two points and returns a number. It
        must be positive definite.
    eta : float, default=0.02
        With a base kernel: variance added in every direction, as a share of the mean variance of
        the fitted points in feature space. A larger value sees coarser differences. Choose it by
        cross-validation, from .002 to .2.
    gamma : float or None, default=None
        Width or scale of the base kernel. A larger value resolves finer differences. None is one
        over the median squared distance of points for "rbf", one over the number of features for
        "poly".
    degree : int, default=2
        Degree of the "poly" kernel. Higher degrees see higher moments of the sets.
    rank : int, default=12
        With a base kernel: directions kept of each covariance. More are closer to it; time grows
        with the square.
    n_landmarks : int, default=300
        With a base kernel other than "linear": fitted points, greedily chosen, that span the
        feature space. More approximate the kernel better and take longer.
    max_components : int, default=8
        Most Gaussians that "bic" and "cv" try; more take longer.
    regularization : float, default=0.02
        Without a base kernel: added to all variances, as a share of the variance of each column
        over all fitted points. A larger value blurs sets, which helps small ones.
    n_init : int, default=4
        Starts of each mixture, of which the likeliest is kept. More take longer.
    max_iter : int, default=100
        Most rounds of expectation maximization. A larger value lets mixtures converge further.
    tol : float, default=1e-3
        Gain in log-likelihood per point below which a mixture stops. A larger value stops earlier.
    random_state : int, RandomState instance or None, default=None
        Draws the starts once in `fit`, the same for all sets.
    n_jobs : int or None, default=None
        Threads; more are faster. The result does not depend on it.
    device : "cuda", "cuda:1", torch.device or None, default=None
        GPU to work on. None stays where the sets are: on the CPU, or on the GPU that tensors
        are on. See `SetKernel`.

    Attributes
    ----------
    gamma_ : float
        Value used for `gamma`, 1 for a base kernel without one; only with a base kernel.
    eta_ : float
        Variance added in feature space; only with a base kernel.
    n_iter_ : int
        Rounds of the slowest mixture of the fitted sets, from its likeliest start.
    converged_ : bool
        Whether all of them converged within `max_iter`.
    n_features_in_ : int
        Columns of a point.

    Notes
    -----
    Positive semi-definite, as an inner product of densities. Sums are taken in the log domain, so
    sets far apart do not underflow before they are normalized. For n sets of M Gaussians in d
    dimensions the Gram matrix takes O(n^2 M^2 d^3) time; with a base kernel, O(n^2 M^2 r^2 D) for
    rank r and D landmarks. Memory for the Gram matrix and for the mixtures is checked first.

    With a base kernel, covariances are C + eta I; without eta, as in the paper, the kernel is not
    positive semi-definite. Without `normalize`, products are known only up to a constant factor,
    except for "linear". Fitting several Gaussians then takes many points: one is often best.

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
    >>> sets, labels = mixture_sets(300)
    >>> kernel = ExpectedLikelihoodKernel(random_state=0)
    >>> model = make_pipeline(kernel, SVC(C=10, kernel="precomputed"))
    >>> bool(model.fit(sets[:200], labels[:200]).score(sets[200:], labels[200:]) > 0.9)
    True
    """

    _constraints: ClassVar[Constraints] = {
        "n_components": [count(), option("bic", "cv")],
        "covariance_type": [option(*COVARIANCE_TYPES)],
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
        device: Any = None,
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
        self.device = device

    def _build_model(self, sets: Bags) -> DensityModel:
        space, floor = density_space(self, sets)
        counted = isinstance(self.n_components, str)
        most = int(self.max_components if counted else self.n_components)
        n_init, max_iter = int(self.n_init), int(self.max_iter)
        check_memory(
            8 * n_init * N_TRIALS * most,
            what=f"Starting {n_init:,} times with {most:,} components",
            instead="Pass a smaller `n_init` or `n_components`.",
        )
        draws = check_random_state(self.random_state).random_sample((n_init, N_TRIALS, most))
        n_components = self.n_components if counted else most
        settings = FitSettings(
            n_components, most, self.covariance_type, floor, max_iter, self.tol, draws
        )
        return DensityModel(space, settings, root=False, normalize=self.normalize)

    def _store(self, model: DensityModel, descriptions: Densities) -> None:
        super()._store(model, descriptions)
        self.n_iter_, self.converged_ = descriptions.n_iter, descriptions.converged
