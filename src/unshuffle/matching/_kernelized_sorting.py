"""KernelizedSorting, which matches two collections."""

from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import OptimizeResult
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import check_not_file, check_same_items
from unshuffle._core.parameters import (
    ARRAY,
    FLAG,
    FUNCTION,
    Constraints,
    check_count,
    check_parameters,
    check_positive,
    number,
    option,
)
from unshuffle._run.device import find_device, like, to_host
from unshuffle._run.parallel import check_n_jobs
from unshuffle._run.printing import warn_user
from unshuffle._run.search import BEST_STORED, Callback, before_results, fit_by_search
from unshuffle.matching._fit import (
    SOFT_TEMPERATURE,
    DenseFit,
    Fit,
    count_larger,
    resolve_kernels,
)
from unshuffle.matching._low_rank.fit import LowRankFit
from unshuffle.matching._matches import Matches, feature_names, item_names, take
from unshuffle.matching._trust.evidence import (
    HIGH_AMBIGUITY,
    TRUSTED,
    DoubtWarning,
    calibrate,
    certify,
    judge,
    kept_by_rivals,
)
from unshuffle.matching._trust.known_pairs import FEWEST
from unshuffle.matching._trust.questions import choose_questions
from unshuffle.matching._unseen import UnseenItems
from unshuffle.metrics import matching_accuracy

# Beyond this many items in either collection, "auto" takes the low-rank search.
LARGE = 1500


class KernelizedSorting(TransformerMixin, BaseEstimator):
    """Match two collections of the same things that share no features.

    Uses only the similarities inside each collection: items that are alike in one are paired with
    items that are alike in the other. Matches halves of photos, documents in two languages, or
    two measurements of the same cells, without a single known pair.

    Parameters
    ----------
    kernel : str, callable or list of these, default="auto"
        Similarity inside the first collection: "linear", "rbf", "laplacian", "chi2", "geodesic",
        "local", "text" (collections are lists of str), "precomputed" (collections are kernel
        matrices), or a callable. "linear" is taken about the median of each column. "auto" is
        "text" for texts and "rbf" for tables; where that answer cannot be trusted, other scalings
        of both tables (standardized, rows normalized, ranks, log counts) and kernels are tried on
        a sample, and `scaling_` and `kernel_` say which was taken. For a list of kernels, the
        collection is a list with one entry for each kernel, or one array for all. Their sum leads
        the search, each kernel scaled to unit centered norm. If both lists have the same length,
        "refined" then compares the first kernels of both sides with each other, the second, and
        so on. Kernels on different features can match far more than the best of them alone.
    kernel_y : str, callable, list of these, or None, default=None
        Similarity inside the second collection. None uses `kernel`.
    gamma : float, list of these, or None, default=None
        Inverse width of "rbf" (exp(-gamma d^2)), "laplacian", "chi2" and "geodesic". Larger
        values resolve finer differences. None uses one over the median off-diagonal (squared)
        distance; "refined" uses the mean of three kernels, with 1, 0.3 and 0.1 times that value.
    method : {"auto", "refined", "low_rank", "classic", "unbiased", "entropy"}, default="auto"
        "auto" is "refined" up to 1,500 items and "low_rank" if either collection has more.
        "refined" holds all similarities, climbs from `n_init` starts by assignments and swaps,
        then gives more and more weight to fine differences, unless halves of the pairs show that
        these are noise. "low_rank" holds the leading
        principal components of both kernels, so that memory does not limit the number of items.
        The others are the paper's: "classic" takes full steps from the leading eigenvectors,
        "unbiased" leaves out the diagonals and takes partial steps, "entropy" minimizes the joint
        entropy.
    n_init : int, default=8
        Starts of "refined". Larger values find better matchings of weakly dependent collections,
        and more rivals; 4 or more include both signs of the leading eigenvector. Of "low_rank",
        the most starts that are followed to the end; it stops at two unrelated ones that agree.
    max_iter : int, default=100
        Largest number of assignments in one ascent. Larger values may climb higher. Not used by
        "low_rank", nor is `tol`.
    tol : float, default=1e-5
        Relative gain below which the paper's methods stop. Larger values stop sooner.
    unmatched_cost : float or None, default=None
        Disagreement above which a pair is released, relative to that of random pairs. Smaller
        values leave more items of both sides unmatched: 0.3 is strict, 0.4 a good first try, 0.5
        lenient. None matches all items of the smaller collection.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples that "low_rank" draws, and of the signs of the starts of "refined"
        beyond the ninth; nothing else is random.
    n_jobs : int or None, default=None
        Threads: of "refined" over starts, one by default and useful up to `n_init`; of "low_rank"
        over items, by default all cores. The result does not depend on it.
    callback : callable or None, default=None
        Called after each step with a `unshuffle.base.SearchState`. Return True to stop and keep
        the best matching so far. If a fit will take more than ten seconds, a call before the
        first step (iteration 0, an empty permutation; its answer is ignored) says in `stage` how
        long and how much memory.
    kernel_weights : array-like of shape (n_kernels,) or None, default=None
        Weights of a list of kernels; larger weights count more. None weighs them equally in the
        sum; "refined" then finds the weights that tell partners from other pairs best.
    trust : bool, default=True
        Whether to estimate how many pairs are right, by matching halves of the collections again
        (samples of at most 1,024 pairs with "low_rank"), or by leaving known pairs out in turn.
        Takes up to half of the time of "refined". False leaves `expected_accuracy_` NaN and
        `confidence_` uncalibrated, warns of rivals only, and makes "auto" keep the tables as
        given.
    step : {"set", "line_search"}, default="set"
        Steps of "unbiased": the best of 0.1, 0.2, ..., 1.0, or the exact maximum on the line.
    device : str, torch.device or None, default=None
        Where "low_rank" works: "cpu", or "cuda" for a GPU, which needs PyTorch. None is the
        device of X and y if they are tensors, else the CPU. On a GPU, "auto" is "low_rank" at
        every size.

    Attributes
    ----------
    permutation_ : ndarray of shape (n_X,)
        `y[permutation_[i]]` is matched to `X[i]`; -1 if unmatched.
    pairs_ : ndarray of shape (n_matched, 2)
        Matched indices (in X, in y).
    confidence_ : ndarray of shape (n_X,)
        Probability that the partner of item i is right; 0 if unmatched, 1 for frozen pairs. The
        mean of the others is `expected_accuracy_`. They are ranked by the share of random thirds
        of the other pairs that give the same partner, or of the partner among those of items that
        are alike, whichever is smaller; with "low_rank", by the posterior share of the partner
        under a map that was fitted without the pair.
    expected_accuracy_ : float
        Share of the pairs found that is believed right, frozen pairs left out. With 30 or more
        frozen pairs, it is the share of them that the other pairs find again; otherwise it
        follows from how halves or samples of the collections match (see Notes). With 6 to 29,
        both count. Below 0.5, `DoubtWarning` is issued.
    expected_accuracy_interval_ : ndarray of shape (2,)
        Range that holds the share right in about nine of ten cases. With 6 or more frozen pairs,
        at least the exact binomial interval of those found again, as if they were a random sample
        of all pairs: answers to `questions` are harder than that. From 0 if another matching is
        about as good, since all pairs may be wrong at once.
    doubts_ : list of str
        Reasons not to trust the matching, empty if there are none.
    ambiguity_ : float
        Objective of the best matching with clearly different partners (near-duplicates do not
        count), relative to the best objective; 0 if no start led to one. "refined" and "low_rank"
        take the smaller of this ratio at the full spectrum and at a small spectral power. Above
        0.9, `DoubtWarning` is issued: the objective cannot decide, but a few `frozen` pairs can.
    method_ : str
        Method used, "auto" resolved.
    kernel_, kernel_y_ : str, callable or list of these
        Kernels of both collections, "auto" resolved.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels in the choice of partners, which sum to 1. Only set by "refined",
        for lists of the same length on both sides.
    scaling_ : str
        Scaling that "auto" chose for both tables: "as given", "standardized", "rows normalized",
        "ranks" or "log counts". "as given" for all other collections and kernels.
    scaling_reason_ : str
        Why "auto" preferred another scaling or kernel, empty if it did not.
    objective_ : float
        Sum of K[i, j] L[p(i), p(j)] over matched pairs; K and L are the kernels, or sums of
        lists, centered, with zeroed diagonals, and of low rank with "low_rank".
    objective_path_ : ndarray of shape (n_steps,)
        Objective after each step that led to the result. It rises while starts are climbed;
        "refined" then trades some of it for finer differences. Of "low_rank", after each
        assignment of all starts; it may fall.
    n_iter_ : int
        Number of assignments solved, over all starts.
    converged_ : bool
        Whether every ascent converged before `max_iter`; True with "low_rank".
    n_features_in_ : int
        Number of columns of X, if X is one table.
    feature_names_in_ : ndarray of str
        Column names of X, if it has any.

    Notes
    -----
    The result is a local optimum; the best matching is NP-hard to find. Time and memory are
    checked or announced first. With "refined", time grows as n^3 for the matrix products and about
    n^2 for each assignment: two seconds for 320 items, two minutes for 2,000 on two cores. Memory:
    about 29 matrices of n^2 numbers, 10 more for each kernel of a list and 4 for each further
    thread; a fitted estimator keeps two of n_X * n_y, and up to 64 principal components of X. With
    "low_rank", time grows about as n^2 with a small constant, memory as n.

    The last steps of "refined" add up log-likelihoods of pairs, kernel by kernel, so that a weak
    kernel does not blur a strong one: weights are those of the linear discriminant that tells the
    current partners from all other pairs. Partners then maximize the expected number of right
    pairs, at a small spectral power. If fewer than a third of them come back from halves of the
    pairs, a larger power chooses the partners: coarser differences, with less noise.

    "low_rank" passes from step to step only the correlations between the principal components (at
    most 112) of both sides. Under a Gaussian model they give the likelihood of every pair, by
    which an auction assigns all items. First correlations come from the densities around items
    and, unless these agree almost fully, from the shapes of their neighborhoods, annealed on
    samples; predicting regions from each other then repairs groups that were exchanged. It is
    weak where groups look alike from inside and lie about equally far apart (some may stay
    exchanged), and where items differ only in what the leading components leave out.

    Trust without known pairs: the pairs are halved, and each half is matched again (two samples of
    the pairs with "low_rank"). Right partners come back. Each half is also matched with the
    partners of the other half, which holds items of the same kind but no right partner: what this
    reaches is chance. Persistence, agreement beyond chance and `ambiguity_` give the probability
    that the matching as a whole is right. With "low_rank", pairs must also fit maps that were
    fitted without them and then free to drift, and you are warned if no two starts agree or if
    regions, predicted from each other, would go elsewhere.

    Halves carry the same symmetry as the whole, so that rivals are looked for and counted (not by
    "low_rank", which only looks for mirror images): matchings that send an item far away, to a
    partner with the same sorted similarities, and all that follow from them. A pair is believed in
    as many of them as keep it. Items that could exchange partners within the noise, such as
    copies or members of a group, share their belief. If most items could, you are warned that
    groups can be matched but not pairs.

    Known pairs are kept, and 6 or more also teach a map between the collections: kernel ridge
    regression in both directions, with a linear one if tables have fewer columns than there are
    known pairs, extended by the pairs found. It joins the objective as a linear term, whose weight
    is chosen by leaving known pairs out. With "low_rank", known pairs count more than others in
    the correlations, and 3 or more describe all items by their distances to the known ones.

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
        "method": [option("auto", "refined", "low_rank", "classic", "unbiased", "entropy")],
        "unmatched_cost": [number(above=0), None],
        "kernel_weights": [ARRAY, None],
        "trust": [FLAG],
        "step": [option("set", "line_search")],
    }

    def __init__(
        self,
        kernel: Any = "auto",
        kernel_y: Any = None,
        gamma: Any = None,
        method: str = "auto",
        n_init: int = 8,
        max_iter: int = 100,
        tol: float = 1e-5,
        unmatched_cost: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        *,
        kernel_weights: ArrayLike | None = None,
        trust: bool = True,
        step: str = "set",
        device: Any = None,
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
        self.trust = trust
        self.step = step
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        frozen: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        hints: ArrayLike | None = None,
    ) -> "KernelizedSorting":
        """Find the partner in y of each item of X.

        Parameters
        ----------
        X : array-like of shape (n_X, n_features), list of str, or list of these
            First collection. Data frames and sparse matrices work too. Items are named by the
            index of a data frame of pandas, or by the first column of one of Polars if it is
            headed id, index, key or name; that column is not compared.
        y : array-like of shape (n_y, n_features_y), list of str, or list of these
            Second collection. Its features and size may differ from those of X.
        frozen : array-like of shape (n_frozen, 2) or None, default=None
            Known pairs (index in X, index in y), in any order. They are kept and guide the rest.
            10 help, 30 help a lot, and 6 or more also tell how many of the other pairs are right.
        cost : array-like or sparse matrix of shape (n_X, n_y) or None, default=None
            Cost of each pair, in units of the gradient of the objective. Larger entries make a
            pair less likely. Costs of about twice `objective_` over the number of items weigh as
            much as the similarities. Sparse matrices only with "low_rank"; entries that are not
            stored are 0.
        hints : array-like of shape (n_hints, 3) or None, default=None
            Likely pairs (index in X, index in y, probability), which the matching may overrule.
            Pairs that share an item with a frozen one are ignored.

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
        for each, name in ((X, "X"), (y, "y")):
            check_not_file(each, name, "unshuffle match A B")
        device = self._find_device(X, y)
        X, y = (to_host(each) for each in (X, y))
        kind = LowRankFit if device is not None or self._is_large(X, y) else DenseFit
        with before_results():
            fit = kind(self, X, y, frozen=frozen, cost=cost, hints=hints, device=device)
        search = self._fit_once(fit)
        if self.trust and not search.stopped and len(self._frozen) < FEWEST:
            search = self._try_other_choices(fit, search)
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
        return self._shares.candidates(k, self.permutation_)

    def questions(self, k: int) -> NDArray[np.intp]:
        """Pairs whose confirmation or correction would help most, the most helpful first.

        Ask a person about these pairs. Freeze those that are right, put the right partner into
        the others and freeze them too, then fit again.

        Parameters
        ----------
        k : int
            Number of pairs. Larger values cost the person more time. The first of a longer list
            are those of a shorter one.

        Returns
        -------
        pairs : ndarray of shape (k, 2)
            Rows (index in X, index of its present partner in y), in the form of `frozen`. Frozen
            and unmatched items are never among them.

        Notes
        -----
        An answer also tells about similar items, so the best items to ask about are doubtful and
        typical of many other doubtful ones. What partners look like is taken for a Gaussian
        process over X, whose covariance is the squared centered kernel. Each question is about
        the item whose answer removes the most variance, summed over all items and weighted by
        1 - `confidence_`, given the frozen pairs and the answers to the earlier questions. Time
        grows as k * n_X: 0.2 seconds for ten questions at 20,000 items.

        Examples
        --------
        Three groups of items, and a question about each:

        >>> import numpy as np
        >>> from unshuffle import KernelizedSorting
        >>> rng = np.random.default_rng(0)
        >>> groups = np.repeat([0, 1, 2], 10)
        >>> X = np.eye(3)[groups] + rng.normal(size=(30, 3)) / 20
        >>> sorting = KernelizedSorting(trust=False).fit(X, X[::-1])
        >>> asked = sorting.questions(3)
        >>> sorted(groups[asked[:, 0]].tolist())
        [0, 1, 2]
        >>> sorting = sorting.fit(X, X[::-1], frozen=[(i, 29 - i) for i in asked[:, 0]])
        """
        check_is_fitted(self, "permutation_")
        free = self._free_items()
        if free.size == 0:
            raise ValueError(
                f"There is nothing to ask: all {self.permutation_.size} items of X are frozen or "
                "unmatched. Fit with fewer frozen pairs or a larger unmatched_cost."
            )
        k = check_count(k, "k", most=free.size)
        doubts = 1.0 - self.confidence_[free]
        items = choose_questions(self._shares.components, free, doubts, self._frozen[:, 0], k)
        return np.column_stack([items, self.permutation_[items]])

    def certificate(self, max_time: float | None = 10.0) -> OptimizeResult:
        """How close the objective is to the highest that any matching has.

        For up to 64 items. Of about 20, the highest objective is usually known within seconds.

        Parameters
        ----------
        max_time : float or None, default=10.0
            Seconds for the proof. Larger values give a smaller gap. None continues until the
            highest objective is known, which may take days for more than 20 items.

        Returns
        -------
        certificate : scipy.optimize.OptimizeResult
            fun : float
                Objective of the matching found: `objective_`, less the costs of its pairs, counted
                from the median cost. For collections of different sizes, see Notes.
            upper_bound : float
                No matching has a higher one.
            gap : float
                Their distance, relative to ``abs(fun)``. 0.0 if none is higher.
            col_ind : ndarray of shape (n_X,)
                Matching with the highest objective known. If it is not `permutation_`, the method
                preferred the latter: "refined" also weighs fine differences.

        Notes
        -----
        The highest objective need not be the right matching: `ambiguity_` says whether another
        one comes close, and `expected_accuracy_` how many pairs are believed right. For different
        sizes, the objective is that of the search: uncentered kernels of a common scale, less
        half the sum of the squared similarities of the matched items of the larger collection.

        Examples
        --------
        >>> import numpy as np
        >>> from unshuffle import KernelizedSorting
        >>> X = np.random.default_rng(0).exponential(size=(12, 3)) * [3, 2, 1]
        >>> sorting = KernelizedSorting().fit(X, X[::-1])
        >>> sorting.certificate().gap
        0.0
        """
        check_is_fitted(self, "permutation_")
        return certify(self._pair, self.permutation_, max_time)

    def soft_matches(self, temperature: float = SOFT_TEMPERATURE) -> Any:
        """Share of each item of X in each item of y, given the other pairs.

        `soft_matches() @ y` is a smoothed `reorder(y)`, closer to the truth where single pairs are
        uncertain. To rank single partners, use `candidates`, which resolves finer differences.

        Parameters
        ----------
        temperature : float, default=0.2
            Softness in standard deviations of the gradient, without its row and column effects.
            Larger values spread the shares. With "low_rank", 0.2 gives posterior shares.

        Returns
        -------
        shares : ndarray or, with "low_rank", CSR matrix, of shape (n_X, n_y)
            Rows sum to 1 if n_X <= n_y, columns if n_X >= n_y; those of the larger side sum to at
            most 1. A CSR matrix holds the partner and the best candidates of each item.
        """
        check_is_fitted(self, "permutation_")
        return self._shares.soft_matches(check_positive(temperature, "temperature"))

    def transform(self, X: Any) -> Any:
        """Where items of the first collection would lie in the features of the second.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), or list of these
            Items like those of the first collection, new or not.

        Returns
        -------
        expected : ndarray of shape (n_new, n_features_y)
            Expected values of the columns of y, in their own units; of several tables, side by
            side. Expected values vary less than real items: to find partners, use `match`, which
            knows how uncertain each direction is.

        Notes
        -----
        A map is learned from the matched pairs at the first call, weighted by `confidence_`:
        ridge regression on the columns or on a Gaussian kernel, with the strength, the kernel and
        the scaling (that of the fit, as given, or ranks) that do best at pairs left out. A second
        for 400 pairs of many columns, a few for 10,000; of more, a sample is used. Not for texts
        and precomputed kernels, which have no features in which new items could lie.

        Examples
        --------
        >>> import numpy as np
        >>> from unshuffle import KernelizedSorting
        >>> rng = np.random.default_rng(0)
        >>> X = rng.exponential(size=(40, 3)) * [3, 2, 1]
        >>> sorting = KernelizedSorting().fit(X, X[::-1] @ [[0, 2, 1], [2, 0, 0], [0, 0, 1]])
        >>> sorting.transform([[3.0, 2.0, 1.0]]).round()
        array([[4., 6., 4.]])
        """
        check_is_fitted(self, "permutation_")
        return like(self._unseen.transform(self, to_host(X)), X)

    def match(self, X: Any, y: Any) -> Matches:
        """Match new items of both collections by what the matched pairs teach.

        Parameters
        ----------
        X : array-like of shape (n_new_X, n_features), or list of these
            Items like those of the first collection.
        y : array-like of shape (n_new_y, n_features_y), or list of these
            Items like those of the second. All items of the smaller side are matched.

        Returns
        -------
        matches : Matches
            Pairs with the highest total likelihood. `confidence` is the probability of each pair
            if every item of the smaller side has a partner. `candidates` are the up to five best
            partners of each item on its own, the best first.

        Notes
        -----
        Items need not be many: a single item of X finds the best of y. Memory grows as
        n_new_X * n_new_y.

        Examples
        --------
        >>> import numpy as np
        >>> from unshuffle import KernelizedSorting
        >>> rng = np.random.default_rng(0)
        >>> X = rng.exponential(size=(40, 3)) * [3, 2, 1]
        >>> sorting = KernelizedSorting().fit(X, X[::-1] @ [[0, 2, 1], [2, 0, 0], [0, 0, 1]])
        >>> new = rng.exponential(size=(5, 3))
        >>> sorting.match(new, new[::-1] @ [[0, 2, 1], [2, 0, 0], [0, 0, 1]]).permutation
        array([4, 3, 2, 1, 0])
        """
        check_is_fitted(self, "permutation_")
        return self._unseen.match(self, to_host(X), to_host(y))

    def score(self, X: Any, y: Any) -> float:
        """Share of new pairs that `match` finds, for `GridSearchCV` and `cross_val_score`.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), or list of these
            Items like those of the first collection.
        y : array-like of shape (n_new, n_features_y), or list of these
            Their partners, in the order of X: `y[i]` belongs to `X[i]`.

        Returns
        -------
        score : float
            From 0 to 1; larger is better. Chance is 1 / n_new.

        Notes
        -----
        `GridSearchCV` splits X and y by the same rows, so it needs collections whose pairs are
        known, in the same order. Fits make no use of this order; it only counts where new items
        are matched. If no pairs are known, choose by what is believed of all items instead: pass
        ``scoring=lambda sorting, X, y: sorting.expected_accuracy_`` and ``cv=[(rows, rows)]``,
        with all rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.model_selection import GridSearchCV
        >>> from unshuffle import KernelizedSorting
        >>> X = np.random.default_rng(0).exponential(size=(80, 3)) * [3, 2, 1]
        >>> y = X @ [[0, 2, 1], [2, 0, 0], [0, 0, 1]]
        >>> search = GridSearchCV(KernelizedSorting(), {"kernel": ["rbf", "linear"]}, cv=2)
        >>> float(search.fit(X, y).best_score_)
        1.0
        """
        check_is_fitted(self, "permutation_")
        found = self.match(X, y)
        check_same_items(len(found.names_x), len(found.names_y), "X", "y")
        return matching_accuracy(found.permutation, np.arange(len(found.names_x)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of y, which are those of `transform`.

        Parameters
        ----------
        input_features : None
            Ignored, since the columns are those of the second collection.

        Returns
        -------
        names : ndarray of str
            As in the data frame passed to `fit`, else y0, y1, ...
        """
        check_is_fitted(self, "permutation_")
        return self._unseen.names_out(self)

    @property
    def matches_(self) -> Matches:
        """Matched pairs with names and confidences, which can be saved to CSV, JSON or Parquet."""
        check_is_fitted(self, "permutation_")
        X, y = self._unseen.collections
        return Matches(
            self.permutation_,
            self.confidence_,
            item_names(X, self.permutation_.size),
            item_names(y, self._n_second),
            expected_accuracy=self.expected_accuracy_,
            interval=self.expected_accuracy_interval_,
            doubts=self.doubts_,
        )

    def _find_device(self, X: Any, y: Any) -> Any:
        """Device to work on; None is the CPU."""
        device = find_device(self.device, X, y)
        if device is not None and self.method not in ("auto", "low_rank"):
            raise ValueError(
                f'method={self.method!r} runs on the CPU only. Use method="low_rank" on a GPU, '
                'or device="cpu".'
            )
        return device

    def _is_large(self, X: Any, y: Any) -> bool:
        """Whether to use the low-rank search."""
        if self.method != "auto":
            return self.method == "low_rank"
        return count_larger(X, y, resolve_kernels(self, X, y)) > LARGE

    def _fit_once(self, fit: Fit, after: Any = None) -> Any:
        """Match, store and judge, for one choice of kernels."""
        with before_results() if after is None else nullcontext():
            search = fit.prepare(after)
        fit_by_search(
            self,
            search,
            fit.solve,
            partial(self._store, fit),
            partial(self._judge, fit),
            partial(self._estimate, fit),
        )
        return search

    def _try_other_choices(self, fit: Fit, search: Any) -> Any:
        """While the answer is doubted, match under other choices.

        An answer never gives way to one that is believed less.
        """
        for choose, is_better in (
            (fit.choose_other_units, fit.explains_more),
            (fit.choose_again, lambda *_: True),  # compared already, on samples
        ):
            best, believed = (fit.choice, fit.reason), self.expected_accuracy_
            if search.stopped or believed >= TRUSTED or not choose():
                continue
            before = vars(self).copy()
            try:
                search = self._fit_once(fit, search)
            except KeyboardInterrupt as stop:
                self._restore(before)  # a whole answer instead of a part of a better one
                stop.args = (BEST_STORED,)
                raise
            believed_no_less = not search.stopped and self.expected_accuracy_ >= believed
            if not (believed_no_less and is_better(self.pairs_, before["pairs_"])):
                self._restore(before)
                fit.choice, fit.reason = best
        return search

    def _restore(self, before: dict[str, Any]) -> None:
        """Go back to the attributes of an earlier answer."""
        self.__dict__.clear()
        self.__dict__.update(before)

    def _store(self, fit: Fit, outcome: Any) -> None:
        """Set the fitted attributes."""
        answer = fit.answer(outcome)
        self.method_ = fit.method if self.method == "auto" else self.method
        self.permutation_ = answer.permutation
        rows = np.flatnonzero(self.permutation_ >= 0)
        self.pairs_ = np.column_stack([rows, self.permutation_[rows]])
        self.objective_ = answer.objective
        self.objective_path_ = np.array(answer.path)
        self.n_iter_ = fit.search.n_assignments
        self.converged_ = answer.converged
        self.ambiguity_ = 0.0
        self.confidence_ = np.zeros(self.permutation_.size)
        self.expected_accuracy_ = np.nan
        self.expected_accuracy_interval_ = np.full(2, np.nan)
        self.doubts_: list[str] = []
        self.kernel_, self.kernel_y_ = fit.kernels
        self.scaling_, self.scaling_reason_ = "as given", fit.reason
        for name in ("kernel_weights_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if answer.weights is not None:
            self.kernel_weights_ = answer.weights
        if fit.choice is not None:
            self.scaling_, self.kernel_ = fit.choice
            self.kernel_y_ = self.kernel_
        self._shares, self._frozen, self._n_second = answer.shares, answer.frozen, answer.n_second
        self._pair = answer.pair
        self.__dict__.update(feature_names(fit.X))
        self._unseen = UnseenItems(*fit.given)

    def _judge(self, fit: Fit, interrupted: bool) -> None:
        """Compute the ambiguity of the matching and the confidence of each pair."""
        self.ambiguity_, self.confidence_ = fit.judge(interrupted)

    def _estimate(self, fit: Fit, interrupted: bool) -> None:
        """Estimate the share of right pairs, and calibrate the confidences to it."""
        checked = bool(self.trust) and not (interrupted or fit.search.stopped)
        evidence, left_out = fit.check(self.ambiguity_) if checked else (None, None)
        free, n_known = self._free_items(), len(self._frozen)
        shares = self.confidence_[free]
        others = None if fit.alternatives is None else fit.alternatives.of(free)
        trust = judge(shares, evidence, left_out, self.ambiguity_, n_known, others)
        self.doubts_, self._evidence = trust.doubts, evidence
        if checked:
            self.expected_accuracy_ = trust.expected_accuracy
            self.expected_accuracy_interval_ = np.array(trust.interval)
            confidences = self.confidence_.copy()
            shares = shares * kept_by_rivals(others, self.ambiguity_)
            confidences[free] = calibrate(shares, trust.expected_accuracy)
            self.confidence_ = confidences

    def _free_items(self) -> NDArray[np.intp]:
        """Items of X that are matched and not frozen."""
        is_free = self.permutation_ >= 0
        is_free[self._frozen[:, 0]] = False
        return np.flatnonzero(is_free)

    def _warn(self) -> None:
        if not self.converged_:
            warn_user(
                f"An ascent did not converge in max_iter={self.max_iter} assignments. Raise "
                "max_iter or tol.",
                ConvergenceWarning,
            )
        if self.doubts_:
            warn_user(f"{self.matches_.describe_trust()} {self._advise()}", DoubtWarning)

    def _advise(self) -> str:
        """What to do about the doubts."""
        if len(self._frozen) >= FEWEST:
            ways = ["Freeze more known pairs"]
        else:
            ways = ["Freeze known pairs (30 help a lot)"]
        ways.append("add a kernel on other features")
        if self.kernel_ == "rbf" and self.kernel != "auto":
            ways.append('let kernel="auto" try other scalings')
        if self.ambiguity_ > HIGH_AMBIGUITY:
            ways.append("raise n_init")
        return f"{', '.join(ways[:-1])}, or {ways[-1]}."

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        tags.input_tags.string = "text" in (self.kernel, self.kernel_y)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
