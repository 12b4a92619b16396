"""KernelizedSorting, which matches two collections."""

import warnings
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from unshuffle._arrays import as_numbers, as_rows, is_text, middle
from unshuffle._grams import check_frozen, check_shape, count_items
from unshuffle._mean_field import interaction_spread
from unshuffle._parallel import check_n_jobs, count_threads
from unshuffle._parameters import (
    ARRAY,
    FUNCTION,
    Constraints,
    check_count,
    check_memory,
    check_parameters,
    check_positive,
    number,
    option,
)
from unshuffle._progress import Callback, fit_by_search
from unshuffle.assignment import soft_assignment
from unshuffle.matching._kernel_pair import KernelPair, compute_gram
from unshuffle.matching._matches import Matches, take
from unshuffle.matching._paper import solve_by_paper
from unshuffle.matching._refined import (
    FINISHED,
    MatchSearch,
    Outcome,
    ambiguity,
    confidence,
    solve_refined,
)

# Peak memory in matrices of n^2 numbers: base, for each further thread, and with a cost.
N_MATRICES, PER_THREAD, WITH_COST = 17, 4, 4
SOFT_TEMPERATURE = 0.2
# Random thirds for `confidence_`: more give finer values.
N_RESAMPLES, INTERRUPTED_RESAMPLES = 24, 8
# `AmbiguityWarning` is issued above this.
WARN_ABOVE = 0.9


class AmbiguityWarning(UserWarning):
    """Another matching with clearly different partners is about as good.

    Examples
    --------
    Points at equal distances on a line can be matched in two directions:

    >>> import warnings
    >>> from unshuffle import KernelizedSorting
    >>> line = [[float(i)] for i in range(8)]
    >>> with warnings.catch_warnings(record=True) as issued:
    ...     warnings.simplefilter("always")
    ...     sorting = KernelizedSorting().fit(line, line)
    >>> [warning.category.__name__ for warning in issued]
    ['AmbiguityWarning']
    """


class KernelizedSorting(BaseEstimator):
    """Match two collections of the same things that share no features.

    Uses only the similarities inside each collection: items that are alike in one are paired with
    items that are alike in the other. Matches halves of photos, documents in two languages, or
    two measurements of the same cells, without a single known pair.

    Parameters
    ----------
    kernel : str, callable or list of these, default="rbf"
        Similarity inside the first collection: "linear", "rbf", "laplacian", "chi2", "geodesic",
        "text" (collections are lists of str), "precomputed" (collections are kernel matrices), or
        a callable. "linear" is taken about the median of each column. A list is summed, each
        kernel scaled to unit centered norm; the collection is then a list with one entry for each
        kernel, or one array for all. Kernels on different features can match far more than the
        best of them alone.
    kernel_y : str, callable, list of these, or None, default=None
        Similarity inside the second collection. None uses `kernel`.
    gamma : float, list of these, or None, default=None
        Inverse width of "rbf" (exp(-gamma d^2)), "laplacian", "chi2" and "geodesic". Larger
        values resolve finer differences. None uses one over the median off-diagonal (squared)
        distance.
    method : {"refined", "classic", "unbiased", "entropy"}, default="refined"
        "refined" climbs from `n_init` starts by assignments and swaps, then gives more and more
        weight to fine differences. The others are the paper's: "classic" takes full steps from
        the leading eigenvectors, "unbiased" leaves out the diagonals and takes partial steps,
        "entropy" minimizes the joint entropy.
    n_init : int, default=8
        Starts of "refined". Larger values find better matchings of weakly dependent collections,
        and more rivals; 4 or more include both signs of the leading eigenvector.
    max_iter : int, default=100
        Largest number of assignments in one ascent. Larger values may climb higher.
    tol : float, default=1e-5
        Relative gain below which the paper's methods stop. Larger values stop sooner.
    unmatched_cost : float or None, default=None
        Disagreement above which a pair is released, relative to that of random pairs. Smaller
        values leave more items of both sides unmatched: 0.3 is strict, 0.4 a good first try, 0.5
        lenient. None matches all items of the smaller collection.
    random_state : int, RandomState instance or None, default=None
        Seed of the signs of the starts beyond the ninth; nothing else is random.
    n_jobs : int or None, default=None
        Threads over starts, useful up to `n_init`. The result does not depend on it.
    callback : callable or None, default=None
        Called after each step with a `unshuffle.base.SearchState`. Return True to stop and keep
        the best matching so far.
    kernel_weights : array-like of shape (n_kernels,) or None, default=None
        Weights of a list of kernels; larger weights count more. None weighs them equally.
    step : {"set", "line_search"}, default="set"
        Steps of "unbiased": the best of 0.1, 0.2, ..., 1.0, or the exact maximum on the line.

    Attributes
    ----------
    permutation_ : ndarray of shape (n_X,)
        `y[permutation_[i]]` is matched to `X[i]`; -1 if unmatched.
    pairs_ : ndarray of shape (n_matched, 2)
        Matched indices (in X, in y).
    confidence_ : ndarray of shape (n_X,)
        Share of random thirds of the other pairs that give item i the same partner, from 0 to 1;
        0 if unmatched. It ranks the pairs of one matching; `ambiguity_` judges the whole.
    ambiguity_ : float
        Objective of the best matching with clearly different partners (near-duplicates do not
        count), relative to the best objective; 0 if no start led to one. "refined" takes the
        smaller of this ratio at the full spectrum and at the last spectral power. Above 0.9,
        `AmbiguityWarning` is issued: the objective cannot decide, but a few `frozen` pairs can.
    objective_ : float
        Sum of K[i, j] L[p(i), p(j)] over matched pairs; kernels centered, diagonals zeroed.
    objective_path_ : ndarray of shape (n_steps,)
        Objective after each step that led to the result. It rises while starts are climbed;
        "refined" then trades some of it for finer differences.
    n_iter_ : int
        Number of assignments solved, over all starts.
    converged_ : bool
        Whether every ascent converged before `max_iter`.
    n_features_in_ : int
        Number of columns of X, if X is one table.
    feature_names_in_ : ndarray of str
        Column names of X, if it has any.

    Notes
    -----
    The result is a local optimum; the best matching is NP-hard to find. Time grows as n^3 for the
    matrix products and about n^2 for each assignment: a second for 320 items, under a minute for
    2,000 on two cores. Memory: about 17 matrices of n^2 numbers and 4 more for each further
    thread, checked first; a fitted estimator keeps two of n_X * n_y.

    References
    ----------
    Quadrianto, Smola, Song, Tuytelaars, "Kernelized sorting", IEEE Transactions on Pattern
    Analysis and Machine Intelligence 32 (2010).

    Examples
    --------
    Two measurements of the same things, the second in another order and with other features:

    >>> import numpy as np
    >>> from unshuffle import KernelizedSorting
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(40, 3)) * [3, 2, 1]
    >>> order = rng.permutation(40)
    >>> turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    >>> y = np.hstack([X @ turn + 5, rng.normal(size=(40, 1)) / 10])[order]
    >>> sorting = KernelizedSorting().fit(X, y)
    >>> bool(np.all(order[sorting.permutation_] == np.arange(40)))
    True
    >>> bool(np.allclose(sorting.reorder(y)[:, :3], X @ turn + 5))
    True
    """

    _constraints: ClassVar[Constraints] = {
        "kernel": [str, FUNCTION, list, tuple],
        "kernel_y": [str, FUNCTION, list, tuple, None],
        "gamma": [number(above=0), list, tuple, None],
        "method": [option("refined", "classic", "unbiased", "entropy")],
        "unmatched_cost": [number(above=0), None],
        "kernel_weights": [ARRAY, None],
        "step": [option("set", "line_search")],
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        kernel_y: Any = None,
        gamma: Any = None,
        method: str = "refined",
        n_init: int = 8,
        max_iter: int = 100,
        tol: float = 1e-5,
        unmatched_cost: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        *,
        kernel_weights: ArrayLike | None = None,
        step: str = "set",
    ) -> None:
        self.kernel = kernel
        self.kernel_y = kernel_y
        self.gamma = gamma
        self.method = method
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.unmatched_cost = unmatched_cost
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback
        self.kernel_weights = kernel_weights
        self.step = step

    def fit(
        self, X: Any, y: Any, *, frozen: ArrayLike | None = None, cost: ArrayLike | None = None
    ) -> "KernelizedSorting":
        """Find the partner in y of each item of X.

        Parameters
        ----------
        X : array-like of shape (n_X, n_features), list of str, or list of these
            First collection. Data frames and sparse matrices work too; index names are kept.
        y : array-like of shape (n_y, n_features_y), list of str, or list of these
            Second collection. Its features and size may differ from those of X.
        frozen : array-like of shape (n_frozen, 2) or None, default=None
            Known pairs (index in X, index in y), in any order. They are kept and guide the rest.
        cost : array-like of shape (n_X, n_y) or None, default=None
            Cost of each pair, in units of the gradient of the objective. Larger entries make a
            pair less likely. Costs of about twice `objective_` over the number of items weigh as
            much as the similarities.

        Returns
        -------
        self : KernelizedSorting
            The fitted estimator. If the callback or Ctrl-C stops the search, the best so far is
            kept; KeyboardInterrupt is raised again.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        if X is None:
            raise ValueError("`X` is None. Call fit(X, y) with both collections.")
        if y is None:
            # scikit-learn's checks look for these words.
            raise ValueError(
                "Matching requires y to be passed, but the target y is None. It is the second "
                "collection, like X: call fit(X, y) with both."
            )
        search = MatchSearch(self._build_pair(X, y, frozen, cost), self.callback)
        solve, store = partial(self._solve, search), partial(self._store, search, X, y)
        fit_by_search(self, search, solve, store, partial(self._judge, search))
        if not search.stopped:
            self._warn()
        return self

    def reorder(self, y: Any) -> Any:
        """Put the second collection, or data in its order, into the order of X.

        Parameters
        ----------
        y : array-like of length n_y
            Array, data frame, sparse matrix or list.

        Returns
        -------
        reordered : same type, of length n_X
            Item i is matched to `X[i]`.
        """
        check_is_fitted(self, "permutation_")
        unmatched = np.flatnonzero(self.permutation_ < 0)
        if unmatched.size:
            raise ValueError(
                f"{unmatched.size} of {self.permutation_.size} items of X are unmatched (the "
                f"first is item {unmatched[0]}), so y cannot be put into the order of X. Use "
                "`pairs_` to select the matched items of both."
            )
        return take(y, self.permutation_, self._n_second)

    def candidates(self, k: int) -> NDArray[np.intp]:
        """Indices of the k best partners in y of each item of X, the best first.

        Parameters
        ----------
        k : int
            Number of candidates. Larger values are more likely to include the right one.

        Returns
        -------
        candidates : ndarray of shape (n_X, k)
            The matched partner comes first, then others by their share.
        """
        check_is_fitted(self, "permutation_")
        k = check_count(k, "k", most=self._n_second)
        shares = self._shares(1, SOFT_TEMPERATURE)
        rows = np.flatnonzero(self.permutation_ >= 0)
        shares[rows, self.permutation_[rows]] = np.inf
        return np.argsort(-shares, axis=1, kind="stable")[:, :k]

    def soft_matches(self, temperature: float = SOFT_TEMPERATURE) -> NDArray[np.float64]:
        """Share of each item of X in each item of y, given the other pairs.

        `soft_matches() @ y` is a smoothed `reorder(y)`, closer to the truth where single pairs are
        uncertain. To rank single partners, use `candidates`, which resolves finer differences.

        Parameters
        ----------
        temperature : float, default=0.2
            Softness in standard deviations of the gradient, without its row and column effects.
            Larger values spread the shares.

        Returns
        -------
        shares : ndarray of shape (n_X, n_y)
            Rows sum to 1 if n_X <= n_y, columns if n_X >= n_y; those of the larger side sum to at
            most 1.
        """
        check_is_fitted(self, "permutation_")
        return self._shares(0, check_positive(temperature, "temperature"))

    @property
    def matches_(self) -> Matches:
        """Matched pairs with names and confidences, which can be saved to CSV or JSON."""
        check_is_fitted(self, "permutation_")
        return Matches(self.permutation_, self.confidence_, self._names_first, self._names_second)

    def _shares(self, number: int, temperature: float) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            # A few digits of the shares are enough.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return soft_assignment(
                self._slopes[number],
                maximize=True,
                # the product may underflow
                epsilon=max(temperature * self._spreads[number], np.finfo(float).tiny),
                frozen=self._frozen,
                tol=1e-3,
            )

    def _build_pair(
        self, X: Any, y: Any, frozen: ArrayLike | None, cost: ArrayLike | None
    ) -> KernelPair:
        """Check memory, kernels, cost and frozen pairs."""
        kernel_y = self.kernel if self.kernel_y is None else self.kernel_y
        largest = max(count_items(X, self.kernel), count_items(y, kernel_y, "y"))
        more_threads = count_threads(self.n_jobs, self.n_init) - 1
        n_matrices = N_MATRICES + PER_THREAD * more_threads + WITH_COST * (cost is not None)
        check_memory(
            8 * n_matrices * largest**2,
            what=f"Matching {largest:,} items",
            instead="Fit a sample of the items, or match parts of the collections in turn.",
        )
        several = any(isinstance(kernel, list | tuple) for kernel in (self.kernel, kernel_y))

        def gram(collection: Any, kernel: Any, name: str) -> NDArray[np.float64]:
            # Weights may be meant for the list of the other side only.
            single = several and not isinstance(kernel, list | tuple)
            weights = None if single else self.kernel_weights
            return compute_gram(collection, kernel, gamma=self.gamma, weights=weights, name=name)

        K, L = gram(X, self.kernel, "X"), gram(y, kernel_y, "y")
        fixed = check_frozen(frozen, K.shape[0], L.shape[0])
        linear = None
        if cost is not None:
            linear = as_rows(as_numbers(cost, "cost"), "cost")
            check_shape(linear, (K.shape[0], L.shape[0]), "cost", "items of X by items of y")
        if self.method == "entropy" and K.shape != L.shape:
            raise ValueError(
                f"method={self.method!r} needs collections of one size, got {K.shape[0]} and "
                f'{L.shape[0]} items. Use method="refined", which matches all items of the '
                "smaller one."
            )
        if linear is not None and self.unmatched_cost is None:
            # A constant changes no full matching, but costs digits.
            with np.errstate(over="ignore"):  # KernelPair clips it
                linear = linear - middle(linear.reshape(-1, 1))[0]
        return KernelPair.of(K, L, linear, fixed)

    def _solve(self, search: MatchSearch) -> Outcome:
        """Search, and release pairs of the result even if the search was stopped."""
        max_iter, n_jobs = int(self.max_iter), self.n_jobs
        if self.method == "refined":
            n_init, rng = int(self.n_init), check_random_state(self.random_state)
            solve = partial(solve_refined, n_init=n_init, rng=rng)
        else:
            solve = partial(solve_by_paper, method=self.method, tol=self.tol, step=self.step)
        try:
            search.offer(solve(search, max_iter=max_iter, n_jobs=n_jobs), FINISHED)
        finally:
            search.release_pairs(self.unmatched_cost)
        return search.found

    def _store(self, search: MatchSearch, X: Any, y: Any, outcome: Outcome) -> None:
        """Set the fitted attributes, in the user's order of collections."""
        pair = search.pair
        # The full spectrum for soft matches, fine differences to rank candidates.
        problems = pair.full_problem, outcome.problem
        slopes = [problem.gradient(outcome.permutation) for problem in problems]
        linear = 0.0 if pair.cost is None else pair.cost
        self._spreads = [interaction_spread(each + linear) for each in slopes]
        self._slopes = [np.ascontiguousarray(each.T) if pair.swapped else each for each in slopes]
        self._frozen = pair.frozen[:, ::-1] if pair.swapped else pair.frozen
        self.permutation_ = pair.to_user(outcome.matching)
        rows = np.flatnonzero(self.permutation_ >= 0)
        self.pairs_ = np.column_stack([rows, self.permutation_[rows]])
        self.objective_ = pair.objective(outcome.matching)
        self.objective_path_ = np.array(outcome.objective_path)
        self.n_iter_ = search.n_assignments
        self.converged_ = outcome.converged
        self.ambiguity_ = 0.0
        self.confidence_ = np.zeros(self.permutation_.size)
        self._n_second = (pair.K if pair.swapped else pair.L).shape[0]
        self._names_first = item_names(X, self.permutation_.size)
        self._names_second = item_names(y, self._n_second)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(feature_names(X))

    def _judge(self, search: MatchSearch, interrupted: bool) -> None:
        """Compute the ambiguity of the matching and the confidence of each pair."""
        pair, outcome = search.pair, search.found
        n_resamples = INTERRUPTED_RESAMPLES if interrupted else N_RESAMPLES
        self.ambiguity_ = ambiguity(pair.full_problem, pair.L, outcome)
        each = confidence(outcome, n_resamples=n_resamples, n_jobs=self.n_jobs)
        confidences = np.zeros(self.permutation_.size)
        confidences[self.pairs_[:, 0]] = each[self.pairs_[:, int(pair.swapped)]]
        self.confidence_ = confidences

    def _warn(self) -> None:
        if not self.converged_:
            warnings.warn(
                f"An ascent did not converge in max_iter={self.max_iter} assignments. Raise "
                "max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.ambiguity_ > WARN_ABOVE:
            warnings.warn(
                "Another matching with clearly different partners reaches "
                f"{self.ambiguity_:.1%} of the best objective, so the objective cannot decide "
                "between them. Freeze a few known pairs, add a kernel on other features, or raise "
                "n_init.",
                AmbiguityWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.input_tags.string = "text" in (self.kernel, self.kernel_y)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def item_names(collection: Any, n_items: int) -> list[str]:
    """Names of the items: the index of a data frame, obs_names of AnnData, or positions."""
    parts = [collection]
    if isinstance(collection, list | tuple) and not is_text(collection):
        parts = list(collection)  # one table for each kernel: use the first names
    for part in parts:
        names = part.index if hasattr(part, "iloc") else getattr(part, "obs_names", None)
        if names is not None and len(names) == n_items:
            return [str(name) for name in names]
    return [str(number) for number in range(n_items)]


def feature_names(collection: Any) -> dict[str, Any]:
    """Fitted attributes of a table: the number of columns, and their names if strings."""
    shape: tuple[int, ...] | None = getattr(collection, "shape", None)
    if shape is None and not is_text(collection):
        with suppress(ValueError):  # one table for each kernel, not a table in lists
            shape = np.shape(collection)
    if shape is None or len(shape) != 2:
        return {}
    found: dict[str, Any] = {"n_features_in_": int(shape[1])}
    columns = getattr(collection, "columns", getattr(collection, "var_names", None))
    if columns is not None and all(isinstance(name, str) for name in columns):
        found["feature_names_in_"] = np.asarray(columns, dtype=object)
    return found
