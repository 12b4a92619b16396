"""KernelizedSorting: the estimator."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from unshuffle._grams import check_frozen, count_items
from unshuffle._middle import middle
from unshuffle._parallel import check_n_jobs, count_threads
from unshuffle._parameters import check_count, check_memory, check_parameters, check_positive
from unshuffle._progress import Callback, Reporter, Stopped, refitting
from unshuffle.assignment import interaction_spread, soft_assignment
from unshuffle.kernels import combined_gram
from unshuffle.matching._checks import (
    check_all_matched,
    check_cost,
    check_equal_sizes,
    check_two_collections,
    check_varied,
)
from unshuffle.matching._collections import feature_names, item_names, take
from unshuffle.matching._kernel_pair import KernelPair
from unshuffle.matching._matches import Matches
from unshuffle.matching._paper import solve_classic, solve_entropy, solve_unbiased
from unshuffle.matching._partial import release
from unshuffle.matching._refined import solve_refined
from unshuffle.matching._search import Outcome, Search
from unshuffle.matching._trust import N_RESAMPLES, WARN_ABOVE, ambiguity, confidence

# Matrices of n^2 numbers that a fit holds at its peak, kernels of both sides counted; those that
# each thread beyond the first adds; and those that a cost adds.
N_MATRICES, PER_THREAD, WITH_COST = 17, 3, 4
SOFT_TEMPERATURE = 0.2
INTERRUPTED_RESAMPLES = 8


class AmbiguityWarning(UserWarning):
    """Another matching, with truly different partners, is about as good."""


class KernelizedSorting(BaseEstimator):
    """Match two collections of the same things that share no features.

    Only similarities inside each collection are used: items are paired so that what is alike on
    one side is alike on the other. Halves of photos, documents in two languages, two
    measurements of the same cells can be matched without one known pair.

    Parameters
    ----------
    kernel : str, callable or list of these, default="rbf"
        Similarity inside the first collection: "linear", "rbf", "laplacian", "chi2", "geodesic",
        "text" (collections are lists of str), "precomputed" (collections are kernel matrices), or
        a callable. "linear" is taken about the median of each column, so that it does not matter
        where the origin is. A list is summed, each kernel scaled to unit centered norm; the
        collection is then a list too, one entry for each kernel, or one array for all. Kernels
        on different features can match far more than the best of them alone, if each is
        informative.
    kernel_y : str, callable, list of these, or None, default=None
        Similarity inside the second collection; None is the same as `kernel`.
    gamma : float, list of these, or None, default=None
        Width of "rbf" (exp(-gamma d^2)), "laplacian", "chi2" and "geodesic". Larger sees finer
        differences. None is one over the median off-diagonal (squared) distance.
    method : {"refined", "classic", "unbiased", "entropy"}, default="refined"
        "refined" climbs from `n_init` starts by assignments and swaps, then gives ever more
        weight to fine differences, and chooses partners by their shares in the end. The others
        are the paper's: "classic" takes full steps from the leading eigenvectors, "unbiased"
        leaves out the diagonals and takes partial steps, "entropy" minimises the joint entropy.
    n_init : int, default=8
        Starts of "refined". More find a better matching where the collections depend weakly on
        each other, and see more rivals; 4 or more include both signs of the leading eigenvector.
    max_iter : int, default=100
        Most assignments in one ascent; more may climb higher.
    tol : float, default=1e-5
        Relative gain below which the methods of the paper stop; larger stops sooner.
    unmatched_cost : float or None, default=None
        None matches all items of the smaller collection. Otherwise, the disagreement above which
        a pair parts, as a share of the disagreement of random pairs: smaller leaves more items of
        both sides without a partner. 0.3 is strict, 0.4 a fair first try, 0.5 lenient; at 1 pairs
        no better than chance stay.
    random_state : int, RandomState instance or None, default=None
        Signs of the starts beyond the ninth; nothing else is random.
    n_jobs : int or None, default=None
        Threads over starts; more are faster, up to `n_init`. The result does not depend on it.
    callback : callable or None, default=None
        Called with a state that has `iteration`, `objective` and `permutation` (also `stage` and
        `fraction`, for a progress bar) after each step. Returning True stops the search; the
        best matching so far is kept.
    kernel_weights : array-like of shape (n_kernels,) or None, default=None
        Weights of a list of kernels; a larger one counts more. None is equal weights.
    step : {"set", "line_search"}, default="set"
        Steps of "unbiased": the best of 0.1, 0.2, ..., 1.0, or the exact maximum on the line.

    Attributes
    ----------
    permutation_ : ndarray of shape (n_X,)
        `y[permutation_[i]]` belongs to `X[i]`; -1 if unmatched.
    pairs_ : ndarray of shape (n_matched, 2)
        Matched indices (in X, in y).
    confidence_ : ndarray of shape (n_X,)
        Share of random thirds of the other pairs from which item i finds the same partner, from
        0 to 1; 0 where unmatched. It ranks pairs within one answer; whether the answer as a whole
        may be another (a mirror image, say), `ambiguity_` tells.
    ambiguity_ : float
        Objective of the best matching with truly different partners (by the kernel: taking one
        near-duplicate for another does not count), as a share of the best of all; 0 if no start
        led to one. "refined" takes the smaller of this share at the full spectrum and where fine
        differences count. `AmbiguityWarning` is given above 0.9: then the objective cannot tell
        right from wrong, and a few `frozen` pairs can.
    objective_ : float
        Sum of K[i, j] L[p(i), p(j)] over matched pairs, both kernels centred, diagonals zeroed.
    objective_path_ : ndarray of shape (n_steps,)
        That objective after each step that led to the answer. It rises while starts are climbed;
        "refined" then gives some of it up for finer differences.
    n_iter_ : int
        Assignments solved, over all starts.
    converged_ : bool
        Whether every ascent ended by itself.
    n_features_in_ : int
        Columns of X, where X is one table.
    feature_names_in_ : ndarray of str
        Names of those columns, where X has them.

    Notes
    -----
    A local optimum is promised, not the best matching, which is NP-hard to find. Time grows as
    n^3 for the matrix products and about n^2 for each assignment: a second for 320 items, under
    a minute for 2,000 on two cores. Memory: about seventeen matrices of n^2 numbers and three
    more for each further thread, checked before any is made; a fitted estimator keeps two of
    n_X * n_y.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, callable, list, tuple],
        "kernel_y": [str, callable, list, tuple, None],
        "gamma": [Interval(Real, 0, None, closed="neither"), list, tuple, None],
        "method": [StrOptions({"refined", "classic", "unbiased", "entropy"})],
        "n_init": [Interval(Integral, 1, 10**6, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "unmatched_cost": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
        "kernel_weights": ["array-like", None],
        "step": [StrOptions({"set", "line_search"})],
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
        self,
        X: Any,
        y: Any,
        *,
        frozen: ArrayLike | None = None,
        cost: ArrayLike | None = None,
    ) -> "KernelizedSorting":
        """Find the partner in y of each item of X.

        Parameters
        ----------
        X : array-like of shape (n_X, n_features), list of str, or list of these
            First collection; data frames and sparse matrices are taken too, and an index of
            names is kept.
        y : array-like of shape (n_y, n_features_y), list of str, or list of these
            Second collection, like X. It need not have the features of X, nor its size.
        frozen : array-like of shape (n_frozen, 2) or None, default=None
            Known pairs (index in X, index in y), in any order; they are kept and help the rest.
        cost : array-like of shape (n_X, n_y) or None, default=None
            What it costs to pair each two, in units of the gradient of the objective; larger
            entries keep two apart more strongly. An item's gradient is about twice `objective_`
            over the number of items, so costs of that size weigh as much as the similarities.

        Returns
        -------
        self : KernelizedSorting
            Fitted, with the best matching so far if the callback stopped it. After Ctrl-C the
            estimator is fitted so too, and the interrupt goes on to the caller.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        check_two_collections(X, y)
        with refitting(self) as done:
            self._fit(X, y, frozen, cost, done)
        return self

    def reorder(self, y: Any) -> Any:
        """Second collection, or anything in its order, in the order of X.

        Parameters
        ----------
        y : array-like of length n_y
            Array, data frame, sparse matrix or list.

        Returns
        -------
        reordered : same type, of length n_X
            Item i belongs to `X[i]`.
        """
        check_is_fitted(self, "permutation_")
        check_all_matched(self.permutation_)
        return take(y, self.permutation_, self._n_second)

    def candidates(self, k: int) -> NDArray[np.intp]:
        """Indices in y of the k best partners of each item of X, the best first.

        Parameters
        ----------
        k : int
            Number of candidates; larger makes it likelier that the right one is among them.

        Returns
        -------
        candidates : ndarray of shape (n_X, k)
            The partner of a matched item comes first, then others by their share.
        """
        check_is_fitted(self, "permutation_")
        k = check_count(k, "k", most=self._n_second)
        shares = self._shares(1, SOFT_TEMPERATURE)
        rows = np.flatnonzero(self.permutation_ >= 0)
        shares[rows, self.permutation_[rows]] = np.inf
        return np.argsort(-shares, axis=1, kind="stable")[:, :k]

    def soft_matches(self, temperature: float = SOFT_TEMPERATURE) -> NDArray[np.float64]:
        """Share of each item of X in each item of y, given the other pairs.

        `soft_matches() @ y` is a smoothed version of `reorder(y)`, which lies closer to the
        truth where single pairs are uncertain. Items that are broadly alike share; to rank
        single partners, `candidates` looks at finer differences.

        Parameters
        ----------
        temperature : float, default=0.2
            Softness in standard deviations of the gradient, less what it owes to row and column
            alone; larger spreads the shares.

        Returns
        -------
        shares : ndarray of shape (n_X, n_y)
            Rows sum to 1 if X is not larger than y, columns if it is not smaller; the larger
            side sums to at most 1.
        """
        check_is_fitted(self, "permutation_")
        return self._shares(0, check_positive(temperature, "temperature"))

    @property
    def matches_(self) -> Matches:
        """Pairs with names and confidences, to be saved to CSV or JSON."""
        check_is_fitted(self, "permutation_")
        return Matches(
            self.permutation_.copy(),
            self.confidence_.copy(),
            list(self._names_first),
            list(self._names_second),
        )

    def _fit(
        self,
        X: Any,
        y: Any,
        frozen: ArrayLike | None,
        cost: ArrayLike | None,
        done: Callable[[], None],
    ) -> None:
        self._check_memory(X, y, with_cost=cost is not None)
        K, L = self._kernels(X, y)
        n_first, n_second = K.shape[0], L.shape[0]
        fixed = check_frozen(frozen, n_first, n_second)
        linear = None if cost is None else check_cost(cost, (n_first, n_second))
        if self.method == "entropy":
            check_equal_sizes(n_first, n_second, method=self.method)
        if linear is not None and self.unmatched_cost is None:
            # A constant changes no full matching, but takes the digits of what does.
            with np.errstate(over="ignore"):  # cut off below
                linear = linear - middle(linear.reshape(-1, 1))[0]

        swapped = n_first > n_second
        if swapped:
            linear = None if linear is None else np.ascontiguousarray(linear.T)
            pair = KernelPair.scaled(L, K, linear, fixed[:, ::-1])
        else:
            pair = KernelPair.scaled(K, L, linear, fixed)
        del K, L  # the pair has copies

        def to_user(permutation: NDArray[np.intp]) -> NDArray[np.intp]:
            return _inverse(permutation, n_first) if swapped else permutation

        search = Search(pair, Reporter(self.callback), to_user)
        try:
            outcome = self._solve(pair, search)
        except Stopped:
            outcome = search.outcome_so_far()
        except KeyboardInterrupt:
            search.reporter.stopped = True
            if search.best is not None:
                outcome = search.outcome_so_far()
                self._set_names(X, y, n_first, n_second)
                self._store(pair, outcome, search, swapped)
                done()
                with suppress(KeyboardInterrupt):  # impatience costs the confidences, no more
                    self._judge(pair, outcome, swapped, n_resamples=INTERRUPTED_RESAMPLES)
                    done()
            raise
        self._set_names(X, y, n_first, n_second)
        self._store(pair, outcome, search, swapped)
        try:
            self._judge(pair, outcome, swapped, n_resamples=N_RESAMPLES)
        except KeyboardInterrupt:
            done()  # the matching is there; its confidences are not
            raise
        done()
        if not search.reporter.stopped:
            self._warn()

    def _shares(self, number: int, temperature: float) -> NDArray[np.float64]:
        with warnings.catch_warnings():
            # Shares are read to a few digits; a scaling that is not exact to 1e-6 is no news.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return soft_assignment(
                self._slopes[number],
                maximize=True,
                # A temperature near 0 is as good as 0; the product may underflow.
                epsilon=max(temperature * self._spreads[number], np.finfo(float).tiny),
                frozen=self._frozen,
                tol=1e-3,
            )

    def _kernels(self, X: Any, y: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        kernel_y = self.kernel if self.kernel_y is None else self.kernel_y
        several = any(isinstance(kernel, list | tuple) for kernel in (self.kernel, kernel_y))
        grams = []
        for collection, kernel, name in ((X, self.kernel, "X"), (y, kernel_y, "y")):
            # Weights of one side's list are no mistake where the other side has a single kernel.
            single = not isinstance(kernel, list | tuple)
            weights = None if several and single else self.kernel_weights
            gram = combined_gram(
                collection, kernel, gamma=self.gamma, weights=weights, name=name, center=True
            )
            check_varied(gram, name)
            grams.append(gram)
        return grams[0], grams[1]

    def _check_memory(self, X: Any, y: Any, *, with_cost: bool) -> None:
        kernel_y = self.kernel if self.kernel_y is None else self.kernel_y
        largest = max(count_items(X, self.kernel), count_items(y, kernel_y, "y"))
        more_threads = count_threads(self.n_jobs, self.n_init) - 1
        n_matrices = N_MATRICES + PER_THREAD * more_threads + WITH_COST * with_cost
        check_memory(
            8 * n_matrices * largest**2,
            what=f"Matching {largest:,} items",
            instead="Fit a sample of the items, or match parts of the collections in turn.",
        )

    def _solve(self, pair: KernelPair, search: Search) -> Outcome:
        if self.method == "refined":
            return solve_refined(
                pair,
                search,
                n_init=int(self.n_init),
                max_iter=int(self.max_iter),
                n_jobs=self.n_jobs,
                rng=check_random_state(self.random_state),
            )
        if self.method == "unbiased":
            return solve_unbiased(
                pair,
                search,
                max_iter=int(self.max_iter),
                tol=self.tol,
                step=self.step,
                n_jobs=self.n_jobs,
            )
        solve = solve_classic if self.method == "classic" else solve_entropy
        return solve(pair, search, max_iter=int(self.max_iter), tol=self.tol, n_jobs=self.n_jobs)

    def _store(self, pair: KernelPair, outcome: Outcome, search: Search, swapped: bool) -> None:
        """Keep the matching, not yet judged: what is lost to an interrupt after this is little."""
        permutation = outcome.permutation
        problems = pair.full_problem, outcome.problem
        # Broad similarities for soft matches, fine ones to rank candidates.
        slopes = [problem.gradient(permutation) for problem in problems]
        linear = 0.0 if pair.cost is None else pair.cost
        self._spreads = [interaction_spread(each + linear) for each in slopes]
        if self.unmatched_cost is not None:
            permutation, n_assignments = release(problems[1], permutation, self.unmatched_cost)
            search.count(n_assignments)
        self.objective_ = pair.objective(permutation)
        self.objective_path_ = np.array(outcome.objective_path)
        self.n_iter_ = search.n_assignments
        self.converged_ = outcome.converged
        self.ambiguity_ = 0.0
        if swapped:
            permutation = _inverse(permutation, pair.L.shape[0])
            slopes = [np.ascontiguousarray(each.T) for each in slopes]
        self.permutation_ = permutation
        self.confidence_ = np.zeros(permutation.size)
        rows = np.flatnonzero(permutation >= 0)
        self.pairs_ = np.column_stack([rows, permutation[rows]])
        self._slopes = slopes
        self._frozen = pair.frozen[:, ::-1] if swapped else pair.frozen

    def _judge(
        self, pair: KernelPair, outcome: Outcome, swapped: bool, *, n_resamples: int
    ) -> None:
        """Say how far to trust the matching, pair by pair and as a whole."""
        full, problem = pair.full_problem, outcome.problem
        self.ambiguity_ = ambiguity(full, problem, pair.L, outcome.ends)
        permutation = (
            _inverse(self.permutation_, pair.K.shape[0]) if swapped else self.permutation_
        )
        trust = confidence(problem, permutation, n_resamples=n_resamples, n_jobs=self.n_jobs)
        if swapped:
            rows = np.flatnonzero(permutation >= 0)
            self.confidence_[permutation[rows]] = trust[rows]
        else:
            self.confidence_ = trust

    def _warn(self) -> None:
        if not self.converged_:
            warnings.warn(
                f"An ascent reached max_iter={self.max_iter} assignments before it ended. "
                "Raise max_iter, or tol, to let it end.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if self.ambiguity_ > WARN_ABOVE:
            warnings.warn(
                f"Another matching with truly different partners reaches {self.ambiguity_:.1%} of "
                "the best objective, so the objective cannot tell which is right. Freeze a few "
                "known pairs, or add a kernel on other features; raising n_init helps at times.",
                AmbiguityWarning,
                stacklevel=4,
            )

    def _set_names(self, X: Any, y: Any, n_first: int, n_second: int) -> None:
        self._names_first = item_names(X, n_first)
        self._names_second = item_names(y, n_second)
        self._n_second = n_second
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        n_features, names = feature_names(X)
        if n_features is not None:
            self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = names

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.input_tags.string = "text" in (self.kernel, self.kernel_y)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _inverse(permutation: NDArray[np.intp], n_first: int) -> NDArray[np.intp]:
    """Matching of the larger side, from one of the smaller side."""
    inverse = np.full(n_first, -1, dtype=np.intp)
    rows = np.flatnonzero(permutation >= 0)
    inverse[permutation[rows]] = rows
    return inverse
