"""SetAligner: the estimator."""

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.bags import BagEstimatorMixin, Bags, gathered
from unshuffle._core.parameters import Constraints, check_parameters
from unshuffle._run.parallel import check_n_jobs
from unshuffle._run.search import Callback, Search, fit_by_search
from unshuffle._run.types import Orders
from unshuffle.svm._templates import (
    CONSTRAINTS,
    Aligned,
    Preparation,
    align,
    nearest_candidates,
    warn_unconverged,
)


class SetAligner(
    BagEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Turn sets of points into vectors by ordering their points like a common template.

    Any classifier or regressor of vectors can then learn from sets. The template is the center of
    the sets, each in the order in which it lies closest to the template.

    Parameters
    ----------
    template : {"mean", "ball"}, default="mean"
        Center of the ordered sets: their mean, or the center of the smallest ball around them,
        which depends on the outermost sets only.
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
    n_points : int or None, default=None
        Number of template points; None is the size of the largest set. More points follow the sets
        more closely and take longer.
    unequal : {"resample", "rectangular"}, default="resample"
        How to treat sets of other sizes. "resample" copies or drops points at random, which suits
        samples of a shape. "rectangular" uses the points of a larger set that fit the template
        best, and all points of a smaller one about equally often; it takes longer.
    slack : float or None, default=None
        Fraction of the sets that may lie outside the ball. Larger values tolerate more outliers;
        None encloses all sets. Requires template="ball".
    max_iter : int, default=50
        Maximum number of rounds of assigning all sets and moving the template. Larger values may
        fit the template better.
    tol : float, default=1e-3
        Relative decrease of the objective at which to stop. Larger values stop sooner.
    random_state : int, RandomState instance or None, default=None
        Chooses the points to copy or drop. Nothing is random if all sets have one size, or with
        unequal="rectangular".
    n_jobs : int or None, default=None
        Number of threads over sets; more are faster. The result does not depend on it.
    callback : callable or None, default=None
        Called after each round with a `unshuffle.base.SearchState`, whose `objective` is the
        negative of the last in `objective_path_`. Return True to stop and keep the result so far.

    Attributes
    ----------
    template_ : ndarray of shape (n_points, n_features)
        Template points: the center of the ordered training sets.
    permutations_ : ndarray of shape (n_sets, n_points)
        `X[i][permutations_[i]]` is set i in the order of the template. If sizes differ, a point
        may appear several times or not at all.
    objective_path_ : ndarray of shape (n_iter,)
        Mean squared distance of the sets from the template after each round, in features; for
        template="ball", the squared radius plus the penalty of sets outside. Never rises.
    n_points_ : int
        Number of template points.
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the order of the sets converged.
    n_features_in_ : int
        Number of columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, if the sets came as one table with names.

    Notes
    -----
    Finds a local optimum. It starts from the most typical set, so the order of points inside the
    sets does not change the vectors.

    Each round takes one assignment per set, between quadratic and cubic in the template points.
    Single numbers (sets of one column, linear kernel) are sorted instead. Memory: some copies of
    n_sets * n_points * features numbers, checked before they are allocated, and n_sets^2 for
    template="ball".

    References
    ----------
    Shivaswamy and Jebara, "Permutation invariant SVMs", International Conference on Machine
    Learning (2006).

    Examples
    --------
    Shuffled noisy copies of two shapes:

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from unshuffle import SetAligner
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(2, 12, 2))
    >>> y = np.arange(40) % 2
    >>> sets = [rng.permutation(shapes[kind] + rng.normal(size=(12, 2))) for kind in y]
    >>> SetAligner().fit_transform(sets).shape
    (40, 24)
    >>> classifier = make_pipeline(SetAligner(), SVC()).fit(sets[:30], y[:30])
    >>> classifier.predict(sets[30:]).shape
    (10,)
    """

    _constraints: ClassVar[Constraints] = CONSTRAINTS

    def __init__(
        self,
        template: str = "mean",
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: int = 2,
        n_landmarks: int = 60,
        n_points: int | None = None,
        unequal: str = "resample",
        slack: float | None = None,
        max_iter: int = 50,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.template = template
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.n_landmarks = n_landmarks
        self.n_points = n_points
        self.unequal = unequal
        self.slack = slack
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the template of the sets.

        Parameters
        ----------
        X : list of array-like of shape (n_i, n_features), 3-D array, or 2-D array
            Sets of points in any order. The rows of a 2-D array are sets of one point.
        y : None
            Ignored.

        Returns
        -------
        self : SetAligner
            Fitted estimator. If the callback stops the fit or Ctrl-C interrupts it, it holds the
            result so far; the interrupt is raised afterwards.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.float64]:
        """Learn the template, and return the sets as vectors.

        Parameters
        ----------
        X : what `fit` takes
            Sets of points in any order.
        y : None
            Ignored.

        Returns
        -------
        vectors : ndarray of shape (n_sets, n_points * n_kernel_features)
            The same as from `transform`.
        """
        sets = self._fit(X)
        return self._vectors(sets, self.permutations_)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return sets as vectors, in the order of the template.

        Parameters
        ----------
        X : what `fit` takes
            New or fitted sets; wrap a single set in a list.

        Returns
        -------
        vectors : ndarray of shape (n_sets, n_points * n_kernel_features)
            Point after point: coordinates for the linear kernel, otherwise at most `n_landmarks`
            features each, whose inner products approximate the kernel.
        """
        sets, permutations = self._aligned(X)
        return self._vectors(sets, permutations)

    def align(self, X: Any) -> NDArray[np.intp]:
        """Find the order in which sets lie closest to the template.

        Parameters
        ----------
        X : what `fit` takes
            New sets; wrap a single set in a list.

        Returns
        -------
        permutations : ndarray of shape (n_sets, n_points)
            `X[i][permutations[i]]` is set i in the order of the template.
        """
        return self._aligned(X)[1]

    def _fit(self, X: Any) -> Bags:
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        sets = Bags.of(X)
        preparation = Preparation.of(sets, self)
        candidates = preparation.candidates(sets)
        search: Search[Aligned] = Search(self.callback)

        def finish(found: Aligned) -> None:
            # As `align` does: the template has moved since the last assignment.
            orders = nearest_candidates(found.template, candidates.features, n_jobs=self.n_jobs)
            self._store(X, sets, preparation, found, candidates.points(orders))

        solve = partial(align, candidates, preparation, search, self.n_jobs)
        fit_by_search(self, search, solve, finish)
        if not (self.converged_ or search.stopped):
            warn_unconverged(self.max_iter)
        return sets

    def _store(
        self, X: Any, sets: Bags, preparation: Preparation, found: Aligned, permutations: Orders
    ) -> None:
        self._record_columns(X, sets)
        self._preparation = preparation
        self._template = found.template
        self.permutations_ = permutations
        ordered = gathered(sets, permutations)
        self.template_ = np.einsum("n,nrd->rd", found.ball.weights, ordered)
        self.objective_path_ = np.array(found.path)
        self.n_points_ = preparation.n_points
        self.n_iter_ = len(found.path)
        self.converged_ = found.converged

    def _aligned(self, X: Any) -> tuple[Bags, Orders]:
        check_is_fitted(self, "permutations_")
        sets = self._bags_like_fitted(X)
        candidates = self._preparation.candidates(sets)
        orders = nearest_candidates(self._template, candidates.features, n_jobs=self.n_jobs)
        return sets, candidates.points(orders)

    def _vectors(self, sets: Bags, permutations: Orders) -> NDArray[np.float64]:
        points = gathered(sets, permutations)
        if self._preparation.features.kernel is not None:
            points = self._preparation.features.map(points.reshape(-1, sets.width))
        return points.reshape(len(sets), -1)

    @property
    def _n_features_out(self) -> int:
        return int(self._template.size)
