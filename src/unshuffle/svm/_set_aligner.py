"""SetAligner: the estimator."""

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from unshuffle._bags import BagEstimatorMixin, Bags, gathered
from unshuffle._parallel import check_n_jobs
from unshuffle._parameters import Constraints, check_kernel_memory, check_parameters
from unshuffle._progress import Callback, Search, fit_by_search
from unshuffle.svm._align import (
    CONSTRAINTS,
    N_MATRICES,
    Aligned,
    Candidates,
    Placing,
    align,
    assigned_again,
    check_slack_template,
    finished,
    nearest_candidates,
    share_outside,
    warn_sets_unsettled,
)


class SetAligner(
    BagEstimatorMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Turn sets of points into vectors by putting them into the order of a common template.

    Number k of the vector of one set then stands for the same as number k of another, and any
    classifier or regressor for vectors can learn from sets. The template is learnt: it is the
    centre of the sets, in the order in which they lie closest to it.

    Parameters
    ----------
    template : {"mean", "ball"}, default="mean"
        What counts as the centre: the mean of the ordered sets, or the centre of the smallest ball
        around them, which depends on the outermost sets alone.
    kernel : {"linear", "poly", "rbf"} or callable, default="linear"
        Similarity of points. "poly" is (gamma x'y + 1)^degree, "rbf" exp(-gamma |x - y|^2). A
        callable takes two arrays of points and gives a matrix, or two points and gives a number;
        it must be positive definite.
    gamma : float or None, default=None
        Larger sees finer differences. None is one over the median squared distance of points for
        "rbf", one over the number of features for "poly".
    degree : int, default=2
        Of "poly"; larger bends more.
    rank : int, default=60
        Most features of a point with a kernel other than "linear"; larger comes closer to the
        kernel and takes more time and memory. Exact where there are no more points than this.
    n_points : int or None, default=None
        Slots of the template; None is the size of the largest set. More follow the sets more
        closely and take longer.
    unequal : {"resample", "rectangular"}, default="resample"
        What to do with sets of another size. "resample" copies points at random, or leaves some
        out, which suits samples of a shape. "rectangular" lets the assignment choose: of a larger
        set the points that fit the slots best, of a smaller one every point, equally often give
        or take one. It uses no chance, and takes longer.
    slack : float or None, default=None
        Share of the sets that may lie outside the ball; larger minds outliers less. None encloses
        all. For template="ball" only.
    max_iter : int, default=50
        Most rounds of assigning all sets and moving the template.
    tol : float, default=1e-3
        Relative fall of the objective at which to stop. Larger stops sooner.
    random_state : int, RandomState instance or None, default=None
        Which points are copied or left out. Nothing is random where sets are of one size, or with
        unequal="rectangular".
    n_jobs : int or None, default=None
        Threads over sets; more are faster. The result does not depend on it.
    callback : callable or None, default=None
        Called after each round with a state that has `iteration`, `objective` (that of
        `objective_path_` with its sign changed: larger is better), `permutation` (of all sets),
        `stage` and `fraction`. Returning True stops; what was found so far is kept.

    Attributes
    ----------
    template_ : ndarray of shape (n_points_, n_features_in_)
        The template as points; with a kernel other than "linear", the centre of the ordered points
        in place of their features.
    permutations_ : ndarray of shape (n_sets, n_points_)
        `bags[i][permutations_[i]]` is set i in the order of the template. A point may stand there
        several times, or not at all, where sizes differ.
    objective_path_ : ndarray of shape (n_iter_,)
        Squared distance of the sets from the template after each round, in features: their mean,
        or the squared radius of the ball (with what sets outside pay). Never rises.
    n_points_ : int
        Slots of the template.
    n_iter_ : int
        Rounds taken.
    converged_ : bool
        Whether the sets settled.
    n_features_in_ : int
        Columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, where the bags came as one table with names.

    Notes
    -----
    A local optimum is promised. It starts from the most ordinary set, whose choice does not depend
    on any order, so the order of points inside the sets changes no vector.

    A round takes one assignment per set: it grows in proportion to the sets and between the square
    and the cube of the slots. Single numbers (sets of one column, linear kernel) are sorted
    instead. Memory: some copies of n_sets * n_points * features numbers, checked before they are
    taken, and n_sets^2 for template="ball".

    References
    ----------
    Shivaswamy and Jebara, "Permutation invariant SVMs", International Conference on Machine
    Learning (2006).

    Examples
    --------
    Noisy copies of two shapes, each in an order of its own:

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from unshuffle import SetAligner
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(2, 12, 2))
    >>> y = np.arange(40) % 2
    >>> bags = [rng.permutation(shapes[kind] + rng.normal(size=(12, 2))) for kind in y]
    >>> SetAligner().fit_transform(bags).shape
    (40, 24)
    >>> classifier = make_pipeline(SetAligner(), SVC()).fit(bags[:30], y[:30])
    >>> classifier.predict(bags[30:]).shape
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
        rank: int = 60,
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
        self.rank = rank
        self.n_points = n_points
        self.unequal = unequal
        self.slack = slack
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(self, bags: Any, y: Any = None) -> Self:
        """Learn the template of the sets.

        Parameters
        ----------
        bags : list of array-like of shape (n_i, n_features), 3-D array, or 2-D array
            Sets of points in any order; the rows of a 2-D array are sets of one point.
        y : None
            Not used.

        Returns
        -------
        self : SetAligner
            Fitted, with what was found so far if the callback stopped it. After Ctrl-C the
            estimator is fitted so too, and the interrupt goes on to the caller.
        """
        self._fit(bags)
        return self

    def fit_transform(self, bags: Any, y: Any = None) -> NDArray[np.float64]:
        """Learn the template, and give the sets as vectors in its order.

        Parameters
        ----------
        bags : what `fit` takes
            Sets of points in any order.
        y : None
            Not used.

        Returns
        -------
        vectors : ndarray of shape (n_sets, n_points_ * n_kernel_features)
            As `transform` gives them.
        """
        given = self._fit(bags)
        return self._vectors(given, self.permutations_)

    def transform(self, bags: Any) -> NDArray[np.float64]:
        """Sets as vectors, in the order of the template.

        Parameters
        ----------
        bags : what `fit` takes
            New sets, or the fitted ones; a single one as [bag].

        Returns
        -------
        vectors : ndarray of shape (n_sets, n_points_ * n_kernel_features)
            Points slot after slot: their coordinates for the linear kernel, otherwise at most
            `rank` features each, whose inner products are about those of the kernel.
        """
        given, permutations = self._aligned(bags)
        return self._vectors(given, permutations)

    def align(self, bags: Any) -> NDArray[np.intp]:
        """Order in which sets lie closest to the template.

        Parameters
        ----------
        bags : what `fit` takes
            New sets; a single one as [bag].

        Returns
        -------
        permutations : ndarray of shape (n_sets, n_points_)
            `bags[i][permutations[i]]` is set i in the order of the template.
        """
        return self._aligned(bags)[1]

    def _fit(self, bags: Any) -> Bags:
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        check_slack_template(self.slack, self.template)
        given = Bags.of(bags)
        slack = share_outside(self.template, self.slack)
        if slack != 1.0:
            check_kernel_memory(len(given), len(given), n_copies=N_MATRICES)
        seed = int(check_random_state(self.random_state).randint(2**31))
        placing = Placing.of(given, self, seed=seed)
        candidates = placing.candidates(given)
        rounds: Search[Aligned] = Search(self.callback)
        search: Search[Aligned] = Search()
        solve = partial(
            align,
            candidates,
            rounds,
            n_slots=placing.n_points,
            slack=slack,
            max_iter=int(self.max_iter),
            tol=self.tol,
            n_jobs=self.n_jobs,
        )
        finish = partial(assigned_again, candidates=candidates, n_jobs=self.n_jobs)
        fit_by_search(
            self,
            search,
            lambda: finished(rounds, search, solve, finish),
            partial(self._store, bags, given, placing, candidates),
        )
        if not (self.converged_ or rounds.stopped):
            warn_sets_unsettled(self.max_iter, stacklevel=4)
        return given

    def _store(
        self, bags: Any, given: Bags, placing: Placing, candidates: Candidates, found: Aligned
    ) -> None:
        self._record_columns(bags, given)
        self._placing = placing
        self._template = found.template
        self.permutations_ = candidates.points(found.orders)
        ordered = gathered(given, self.permutations_)
        self.template_ = np.einsum("n,nrd->rd", found.ball.weights, ordered)
        self.objective_path_ = np.array(found.path)
        self.n_points_ = placing.n_points
        self.n_iter_ = len(found.path)
        self.converged_ = found.converged

    def _aligned(self, bags: Any) -> tuple[Bags, NDArray[np.intp]]:
        check_is_fitted(self, "permutations_")
        given = self._bags_like_fitted(bags)
        candidates = self._placing.candidates(given)
        orders = nearest_candidates(self._template, candidates.features, n_jobs=self.n_jobs)
        return given, candidates.points(orders)

    def _vectors(self, given: Bags, permutations: NDArray[np.intp]) -> NDArray[np.float64]:
        points = gathered(given, permutations)
        if self._placing.features.kernel is not None:
            points = self._placing.features.map(points.reshape(-1, given.width))
        return points.reshape(len(given), -1)

    @property
    def _n_features_out(self) -> int:
        return int(self._template.size)
