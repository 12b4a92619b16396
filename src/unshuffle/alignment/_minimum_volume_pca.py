"""MinimumVolumePCA: the estimator."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.bags import (
    MISSING,
    BagEstimatorMixin,
    Bags,
    check_bags_memory,
    check_several_bags,
    equal_sizes,
    gathered,
)
from unshuffle._core.kernel_features import PointFeatures
from unshuffle._core.parameters import (
    ARRAY,
    FLAG,
    FUNCTION,
    Constraints,
    check_count,
    check_parameters,
    count,
    number,
    option,
)
from unshuffle._run.parallel import check_n_jobs
from unshuffle._run.printing import warn_user
from unshuffle._run.search import Callback, fit_by_search
from unshuffle.alignment._components import (
    BagComponents,
    check_fractions,
    check_n_components,
    check_scores,
)
from unshuffle.alignment._descents import (
    DescentOptions,
    DescentRun,
    Descents,
    SizedBags,
    check_features_vary,
    check_missing_points,
    check_no_larger,
    check_points_vary,
)
from unshuffle.alignment._paper import check_directions
from unshuffle.alignment._sweeps import BagOrders, filled, position_means
from unshuffle.alignment._volume import expected_trace


class MinimumVolumePCA(
    BagEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Put bags of points into a common order, and describe them by few principal components.

    The points of a bag have no order: pixels of a digit, landmarks of a shape, cells of a sample.
    This estimator matches the points of all bags so that the ordered bags span a small volume.
    Ordinary (kernel) PCA of them then needs few components and can morph one bag into another.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components to keep; more follow each bag more closely. A float between 0 and 1
        keeps as many as explain that fraction of the variance. None keeps all with any variance.
    method : {"mean", "covariance", "variational"}, default="mean"
        "mean" assigns each bag to the mean of the others. "covariance" continues with predictions
        from the mean and covariance of the others: fewer components explain the fitted bags, while
        new bags are described about as well. "variational" uses the paper's bound instead, for
        comparison; it hardly improves on "mean".
    kernel : {"linear", "poly", "rbf"} or callable, default="linear"
        Kernel between points. "poly" is ``(gamma x'y + 1)^degree``, "rbf" is
        ``exp(-gamma |x - y|^2)``. A callable takes two arrays of points and returns a matrix, or
        two points and returns a number; it must be positive definite.
    gamma : float or None, default=None
        Scale of the "rbf" and "poly" kernels. Larger values resolve finer differences. None is one
        over the median squared distance between points for "rbf", one over the number of features
        for "poly".
    degree : int, default=2
        Degree of the "poly" kernel. Higher degrees represent more flexible functions.
    n_landmarks : int, default=60
        Number of landmark points whose kernel features represent a point, for kernels other than
        "linear". More landmarks approximate the kernel better and take more time and memory. Exact
        if there are no more points than this.
    regularization : float, default=0.1
        Variance added in every direction, relative to the mean variance of bags in random order.
        Larger values make "covariance" more like "mean"; smaller values trust directions that few
        bags show.
    n_points : int or None, default=None
        Number of points of each bag in the common order; None is the size of the largest bag.
        Larger values keep more of each bag and take longer. Larger bags lose points at random.
    unequal : {"resample", "missing"}, default="resample"
        How to treat smaller bags. "resample" copies points at random, which suits samples of a
        shape. "missing" leaves positions empty, which suits landmarks that were not all observed;
        it requires method="mean" and fills a position with its mean.
    swaps : bool, default=False
        Whether "covariance" also exchanges pairs of points. Lowers the volume a little further and
        takes about five times as long.
    init : array-like of shape (n_bags, n_points) or None, default=None
        Initial order in the form of `permutations_`, for example from `MultiwaySorting`; requires
        bags of one size. None assigns all bags to the first. The result rarely depends on it.
    n_init : int, default=1
        Number of bags to start from; `init` replaces the first. The best result is kept. More
        starts rarely help much.
    max_iter : int, default=100
        Maximum number of sweeps over all bags, in each stage. Larger values may find an order of
        lower variance or volume.
    tol : float, default=1e-6
        Relative decrease of the trace, or decrease of the log-volume, below which to stop. Larger
        values stop sooner.
    random_state : int, RandomState instance or None, default=None
        Chooses the bags to start from after the first, and the points to copy or drop. Nothing is
        random with bags of one size and n_init=1.
    n_jobs : int or None, default=None
        Number of threads over starts; more are faster, up to `n_init`. The result does not depend
        on it.
    callback : callable or None, default=None
        Called after each sweep with a `unshuffle.base.SearchState`, whose `objective` is the
        negative trace or log-volume. Return True to stop and keep the best order so far.

    Attributes
    ----------
    permutations_ : ndarray of shape (n_bags, n_points)
        `X[i][permutations_[i]]` is bag i in the common order, which is the order of bag 0; -1 if a
        point is missing.
    components_ : ndarray of shape (n_components, n_points * n_kernel_features)
        Orthonormal directions of largest variance of the ordered bags. With the linear kernel,
        `components_.reshape(-1, n_points_, n_features_in_)` holds displacements of the points.
    explained_variance_ : ndarray of shape (n_components,)
        Variance of the fitted bags along each component.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Fraction of the total variance along each component.
    mean_ : ndarray of shape (n_points, n_features)
        Mean of the ordered bags.
    objective_path_ : ndarray of shape (n_iter + 1,)
        Trace of the covariance of the bags at the start and after each sweep. Never rises for
        "mean"; the other methods may trade trace for volume.
    log_volume_path_ : ndarray of shape (n_volumes,)
        Sum of log(eigenvalue + regularization) of that covariance, at the start and after each
        sweep. For "covariance" and "variational" it starts at the end of the mean stage and never
        rises; it is empty if a callback stopped before.
    n_points_ : int
        Number of points of each bag in the common order.
    n_iter_ : int
        Number of sweeps.
    converged_ : bool
        Whether the order of the bags converged.
    n_features_in_ : int
        Number of columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, if the bags came as one table with names.

    Notes
    -----
    Finds a local optimum; the smallest volume is NP-hard to find. The order of points inside the
    bags changes nothing but the indices.

    A sweep of "mean" takes one assignment per bag, between quadratic and cubic in the points: .05
    seconds for 100 bags of 70 points, 3 seconds for 100 bags of 560. "covariance" also takes a
    Cholesky factor of n_bags^2 numbers per bag: 2 seconds for 400 bags, eventually the fourth
    power of n_bags. Memory: some copies of n_bags * n_points * n_landmarks numbers, checked before
    they are allocated, and n_bags^2.

    Differences from the paper: the first bag moves like all others; a bag is left out of the mean
    and covariance it is compared with; and the covariance step follows a tangent of the concave
    cost instead of Jensen's bound, whose weights are negative.

    With a kernel other than "linear", `inverse_transform` finds pre-images by ridge regression
    from the features of all fitted points: within .05 percent on digits with "rbf", exactly with
    "poly". Few components lose more than with the linear kernel.

    References
    ----------
    Jebara, "Kernelizing sorting, permutation and alignment for minimum volume PCA", Conference on
    Learning Theory (2004).

    Examples
    --------
    Shuffled noisy copies of one shape:

    >>> import numpy as np
    >>> from unshuffle import MinimumVolumePCA
    >>> rng = np.random.default_rng(0)
    >>> shape = rng.normal(size=(30, 2))
    >>> bags = [rng.permutation(shape + 0.05 * rng.normal(size=(30, 2))) for _ in range(10)]
    >>> aligned = MinimumVolumePCA(n_components=3).fit(bags)
    >>> aligned.permutations_.shape
    (10, 30)
    >>> aligned.transform(bags).shape
    (10, 3)
    >>> halfway = aligned.morph(0, 1, 0.5)
    >>> halfway.shape
    (30, 2)
    """

    _constraints: ClassVar[Constraints] = {
        "n_components": [count(), number(above=0, below=1), None],
        "method": [option("mean", "covariance", "variational")],
        "kernel": [option("linear", "poly", "rbf"), FUNCTION],
        "n_landmarks": [count()],
        "regularization": [number(above=0, most=1e8)],
        "unequal": [option("resample", "missing")],
        "swaps": [FLAG],
        "init": [ARRAY, None],
    }

    def __init__(
        self,
        n_components: int | float | None = None,
        method: str = "mean",
        kernel: Any = "linear",
        *,
        gamma: float | None = None,
        degree: int = 2,
        n_landmarks: int = 60,
        regularization: float = 0.1,
        n_points: int | None = None,
        unequal: str = "resample",
        swaps: bool = False,
        init: ArrayLike | None = None,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.n_landmarks = n_landmarks
        self.regularization = regularization
        self.n_points = n_points
        self.unequal = unequal
        self.swaps = swaps
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(self, X: Any, y: Any = None) -> "MinimumVolumePCA":
        """Find the common order of the bags, and the components of the ordered bags.

        Parameters
        ----------
        X : list of array-like of shape (n_i, n_features), 3-D array, or 2-D array
            Bags of points in any order. The rows of a 2-D array are bags of one point.
        y : None
            Ignored.

        Returns
        -------
        self : MinimumVolumePCA
            Fitted estimator. If the callback stops the fit or Ctrl-C interrupts it, it holds the
            best order so far; the interrupt is raised afterwards.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        check_missing_points(self.unequal, self.method, self.n_points)
        bags = Bags.of(X)
        check_several_bags(len(bags), "X")
        check_points_vary(bags.points)
        if self.kernel == "linear":
            bags.check_outliers()
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31))
        n_points = int(self.n_points or bags.sizes.max())
        n_features = bags.width if self.kernel == "linear" else int(self.n_landmarks)
        check_bags_memory(len(bags), n_points, n_features)
        chosen = equal_sizes(bags, n_points, missing=self.unequal == "missing", seed=seed)
        features = PointFeatures.of(
            gathered(bags, chosen)[chosen != MISSING],
            self.kernel,
            gamma=self.gamma,
            degree=int(self.degree),
            rank=int(self.n_landmarks),
        )
        sized = SizedBags.of(bags, chosen, features)
        check_features_vary(sized.mapped[sized.present], self.kernel)
        check_n_components(self.n_components, min(len(bags) - 1, sized.mapped[0].size))
        if self.method == "variational":
            check_directions(sized.mapped[0].size)
        starts = sized.starts(self.init, int(self.n_init), random)
        scale = expected_trace(sized.mapped) / (len(bags) - 1)
        ridge = self.regularization * max(scale, np.finfo(float).tiny)
        options = DescentOptions(self.method, ridge, self.swaps, int(self.max_iter), self.tol)
        search = Descents(self.callback, options, sized, len(starts))
        fit_by_search(
            self,
            search,
            lambda: search.solve(starts, self.n_jobs),
            partial(self._store, X, sized, features, seed),
        )
        if not (self.converged_ or search.stopped):
            warn_user(
                f"The order of the bags did not converge in max_iter={self.max_iter} sweeps. "
                "Raise max_iter or tol.",
                ConvergenceWarning,
            )
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Align bags and return their coordinates along the components.

        Parameters
        ----------
        X : what `fit` takes
            New or fitted bags; wrap a single bag in a list.

        Returns
        -------
        scores : ndarray of shape (n_bags, n_components)
            Coordinates of each bag.
        """
        new, orders = self._aligned(X)
        return self._components.scores(self._components.ordered(new.mapped, new.present, orders))

    def align(self, X: Any) -> NDArray[np.intp]:
        """Find the order of new bags that agrees with the fitted ones.

        A bag is assigned to the mean bag, and then up to ten times projected onto the components
        and assigned to its projection.

        Parameters
        ----------
        X : what `fit` takes
            New bags; wrap a single bag in a list.

        Returns
        -------
        permutations : ndarray of shape (n_bags, n_points)
            `X[i][permutations[i]]` is bag i in the common order; -1 if a point is missing.
        """
        new, orders = self._aligned(X)
        return np.take_along_axis(new.chosen, orders, axis=1)[:, self._positions]

    def inverse_transform(self, Y: ArrayLike) -> NDArray[np.float64]:
        """Return the bags at given coordinates along the components.

        Parameters
        ----------
        Y : array-like of shape (n, n_components)
            Coordinates in the form that `transform` returns.

        Returns
        -------
        bags : ndarray of shape (n, n_points, n_features)
            Points in the common order. With a kernel other than "linear" these are pre-images, see
            Notes.
        """
        check_is_fitted(self, "permutations_")
        scores = check_scores(Y, len(self.components_))
        features = self._components.bags(scores)[:, self._positions]
        points = self._features.points(features.reshape(-1, features.shape[-1]))
        return points.reshape(len(scores), self.n_points_, self.n_features_in_)

    def morph(self, i: int, j: int, t: ArrayLike) -> NDArray[np.float64]:
        """Interpolate between two fitted bags.

        Parameters
        ----------
        i, j : int
            Indices of fitted bags.
        t : float or array-like of shape (n,)
            0 is bag i, 1 is bag j, values between interpolate; values above 1 go beyond j.

        Returns
        -------
        points : ndarray of shape (n_points, n_features), or (n, n_points, n_features)
            Point k moves on a line from the k-th point of one bag, in the common order, to the
            k-th of the other. A missing point is replaced by the mean of its position.
        """
        check_is_fitted(self, "permutations_")
        last = len(self._points) - 1
        start = self._points[check_count(i, "i", least=0, most=last)]
        end = self._points[check_count(j, "j", least=0, most=last)]
        moments = check_fractions(t)[..., None, None]
        return np.asarray((1.0 - moments) * start + moments * end)

    def _store(
        self, X: Any, sized: SizedBags, features: PointFeatures, seed: int, run: DescentRun
    ) -> None:
        self._record_columns(X, sized.bags)
        self._seed = seed
        found = np.take_along_axis(sized.chosen, run.order, axis=1)
        # Positions follow bag 0, with its missing points last.
        last = np.iinfo(np.intp).max
        positions = np.argsort(np.where(found[0] == MISSING, last, found[0]), kind="stable")
        ordered = BagOrders.ordered(sized.mapped, sized.present, run.order)
        # Kept in the solver's own order, so that ties between positions are broken alike whatever
        # the order inside bag 0.
        self._components = BagComponents.of(filled(ordered), self.n_components)
        self._positions = positions
        self._features = features
        self.permutations_ = np.ascontiguousarray(found[:, positions])
        present = self.permutations_ != MISSING
        points = BagOrders(gathered(sized.bags, self.permutations_), self.permutations_, present)
        self.mean_ = position_means(points)
        self._points = filled(points)
        directions = self._components.directions.reshape(-1, *ordered.points.shape[1:])
        directions = np.ascontiguousarray(directions[:, positions])
        self.components_ = directions.reshape(len(directions), -1)
        self.explained_variance_ = self._components.variances
        self.explained_variance_ratio_ = self._components.ratios
        self.objective_path_ = np.array(run.traces)
        self.log_volume_path_ = np.array(run.volumes)
        self.n_points_ = found.shape[1]
        self.n_iter_ = run.n_sweeps
        self.converged_ = run.converged

    def _aligned(self, X: Any) -> tuple[SizedBags, NDArray[np.intp]]:
        check_is_fitted(self, "permutations_")
        bags = self._bags_like_fitted(X)
        missing = self.unequal == "missing"
        if missing:
            check_no_larger(bags.sizes, self.n_points_)
        chosen = equal_sizes(bags, self.n_points_, missing=missing, seed=self._seed)
        new = SizedBags.of(bags, chosen, self._features)
        return new, self._components.align(new.mapped, new.present)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
