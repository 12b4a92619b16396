"""MultiwaySorting, which aligns several collections."""

from functools import partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
from scipy.stats import beta
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import is_text
from unshuffle._core.bags import listed
from unshuffle._core.grams import count_items
from unshuffle._core.parameters import (
    FLAG,
    FUNCTION,
    Constraints,
    check_memory,
    check_parameters,
    number,
    option,
)
from unshuffle._run.parallel import check_n_jobs, count_threads
from unshuffle._run.printing import warn_user
from unshuffle._run.search import Callback, SearchState, before_results, fit_by_search
from unshuffle._run.types import Permutations
from unshuffle.matching._dense.pair import compute_gram
from unshuffle.matching._matches import take
from unshuffle.matching._several.joint import (
    Alignment,
    AlignmentEvidence,
    AlignmentSearch,
    Ensemble,
    gather_alignment_evidence,
    onto_first,
    solve_multiway,
)
from unshuffle.matching._several.shared_columns import find_shared_columns
from unshuffle.matching._trust.evidence import (
    COVERAGE,
    FEWEST_PAIRS,
    LOW_EXCESS,
    LOW_PERSISTENCE,
    TRUSTED,
    WORTH,
    DoubtWarning,
)

# Peak memory in matrices of m^2 numbers, for each collection and each thread.
PER_COLLECTION, PER_THREAD = 3, 12
# Kernels exp(-gamma d): their roots are wider kernels of the same kind.
EXPONENTIAL = ("rbf", "laplacian", "chi2", "geodesic")
# Beyond this many items the entropy takes minutes.
MOST_ITEMS_ENTROPY = 150
# Starts of the four fits that only check an answer; of two collections, half of the starts differ.
N_INIT_CHECK, N_INIT_CHECK_TWO, N_CHECKS = 2, 4, 4
# Share of the work that the search takes if its answer is checked.
SEARCHING = 0.45


class MultiwaySorting(BaseEstimator):
    """Align several collections of the same things, whether or not they share features.

    Finds the partners of every item in all other collections from the similarities inside each
    collection: documents in seven languages, point sets of several shapes, several measurements of
    the same cells. All collections are used at once, so that ambiguities between two of them can
    be resolved by the others. Columns that all of them share only decide between alignments of
    nearly equal objective, such as mirror images.

    Parameters
    ----------
    kernel : str, callable or list of these, default="rbf"
        Similarity inside the collections: "linear", "rbf", "laplacian", "chi2", "geodesic",
        "text" (collections are lists of str), "precomputed" (collections are kernel matrices), or
        a callable. "linear" is taken about the median of each column. A list has one entry for
        each collection.
    gamma : float, list of these, or None, default=None
        Inverse width of "rbf" (exp(-gamma d^2)), "laplacian", "chi2" and "geodesic". Larger
        values resolve finer differences. None uses one over the median off-diagonal (squared)
        distance. A list has one entry for each collection.
    objective : {"hsic", "entropy"}, default="hsic"
        "hsic" maximizes multiway HSIC. "entropy" then minimizes the log-volume of the joint items
        by exact exchanges of two items; it is slow and limited to 150 items.
    n_init : int, default=4
        Starts. Each matches all collections to a different one. Larger values find better
        alignments of weakly dependent collections. Shared columns give one more.
    max_iter : int, default=100
        Largest number of sweeps over the collections in one ascent. Larger values may climb
        higher.
    tol : float, default=1e-5
        Relative gain of a sweep below which an ascent stops. Larger values stop sooner.
    random_state : int, RandomState instance or None, default=None
        Seed of the signs of eigenvectors in starts beyond the second for each collection; nothing
        else is random.
    n_jobs : int or None, default=None
        Threads over starts, useful up to `n_init`. The result does not depend on it.
    callback : callable or None, default=None
        Called after each step with a `unshuffle.base.SearchState`, whose `permutation` has the
        shape of `permutations_`. Return True to stop and keep the best so far.
    offset : float or None, default=None
        Constant added to each kernel, as a multiple of its largest entry, at most 10,000. Multiway
        HSIC is then a sum over all subsets of collections. Larger values give more weight to small
        subsets, above all pairs. None uses T, the number of collections. 0 is the paper's
        criterion, with gamma divided by T since the product sums T distances.
    trust : bool, default=True
        Whether to estimate how many items are aligned rightly, by aligning halves of the
        collections again. Doubles the time. False leaves `expected_accuracy_` NaN and issues no
        `DoubtWarning`.
    compare_columns : bool, default=True
        Whether columns may decide between alignments of nearly equal objective (see Notes). They
        are compared if all collections are tables with the same number of columns, at most 16,
        and no different names of columns, and each kernel is one of those above for tables, not a
        callable. False compares nothing across collections.

    Attributes
    ----------
    permutations_ : ndarray of shape (T, m)
        `X[t][permutations_[t][i]]` is matched to `X[0][i]`; the first row is 0, 1, ..., m - 1.
    objective_ : float
        Multiway HSIC of the aligned kernels, or minus the log-volume; larger is better. Each
        kernel, with its offset, is divided by its largest entry first.
    objective_path_ : ndarray of shape (n_steps,)
        Objective after each step that led to the result; it never falls.
    n_iter_ : int
        Number of assignments solved, over all starts.
    converged_ : bool
        Whether the ascent that led to the result converged before `max_iter`.
    decided_by_columns_ : bool
        Whether another alignment, with an objective at least as high, was rejected since its
        columns do not agree.
    expected_accuracy_ : float
        Share of the items believed to be matched rightly in all collections (see Notes). Below
        0.5, `DoubtWarning` is issued. NaN if not estimated: `trust=False`, fewer than 16 items, or
        a search or check that was stopped.
    expected_accuracy_interval_ : ndarray of shape (2,)
        Range that holds this share in about nine of ten cases.
    doubts_ : list of str
        Reasons not to trust the alignment, empty if there are none.

    See Also
    --------
    KernelizedSorting : Two collections, of any sizes, with known pairs and confidences.

    Notes
    -----
    The result is a local optimum. Collections that are nearly symmetric (round shapes) may come
    out mirrored or rotated, unless they share columns. With `offset=0` the criterion has a flaw
    that grows with T: it can be larger than at the truth if the collections split into two groups,
    each aligned within itself.

    Shared columns: one more start brings the rows of each table, with standardized columns, as
    close as possible to those of the first. The columns of an alignment agree if those of every
    collection have a mean correlation of at least 0.8 with those of the others. If the columns of
    the best alignment do not agree, the best one is taken whose columns do, provided that it
    reaches 95 % of the multiway HSIC. If equal numbers of columns are a coincidence, there rarely
    is one, unless the collections hardly depend on each other.

    Trust: the tuples found are halved, and each half is aligned again; right tuples come back.
    Different halves of the collections are aligned too, which hold items of the same kind but no
    right tuple: what they reach is chance. Persistence and agreement beyond chance, that of the
    collection that agrees least, give the probability that the alignment as a whole is right. It
    is multiplied by the share of tuples that matching in pairs gives too, by way of two different
    collections, and halved if the columns decided, since similarities prefer another alignment.
    Neighbors taken for each other in smooth data of two dimensions are counted as right too often,
    above all if there are only two collections.

    Time grows as T m^3 for each start, and memory as (3 T + 12) m^2 numbers, checked first:
    5 collections of 100 items, or 10 of 30, take about a second, 3 of 1,000 half a minute.

    References
    ----------
    Quadrianto, Smola, Song, Tuytelaars, "Kernelized sorting", IEEE Transactions on Pattern
    Analysis and Machine Intelligence 32 (2010), sections 4 and 5.1.

    Examples
    --------
    Three measurements of the same things, in different orders and units:

    >>> import numpy as np
    >>> from unshuffle import MultiwaySorting
    >>> rng = np.random.default_rng(0)
    >>> things = rng.exponential(size=(30, 2)) * [2, 1]
    >>> orders = [rng.permutation(30) for _ in range(3)]
    >>> X = [(factor * things)[order] for factor, order in zip([1, 5, 9], orders)]
    >>> sorting = MultiwaySorting().fit(X)
    >>> first, second, third = sorting.reorder(X)
    >>> bool(np.allclose(second, 5 * first) and np.allclose(third, 9 * first))
    True
    """

    _constraints: ClassVar[Constraints] = {
        "kernel": [str, FUNCTION, list, tuple],
        "gamma": [number(above=0), list, tuple, None],
        "objective": [option("hsic", "entropy")],
        # Beyond this, rounding takes what the kernels tell.
        "offset": [number(least=0, most=1e4), None],
        "trust": [FLAG],
        "compare_columns": [FLAG],
    }

    def __init__(
        self,
        kernel: Any = "rbf",
        gamma: Any = None,
        objective: str = "hsic",
        n_init: int = 4,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        *,
        offset: float | None = None,
        trust: bool = True,
        compare_columns: bool = True,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.objective = objective
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback
        self.offset = offset
        self.trust = trust
        self.compare_columns = compare_columns

    def fit(self, X: Any, y: Any = None) -> "MultiwaySorting":
        """Find the partners of each item of the first collection in the others.

        Parameters
        ----------
        X : list of array-like of shape (m, n_features_t), of lists of str, or 3-D array
            Collections of m items each; their features may differ. Data frames and sparse
            matrices work too.
        y : None
            Not used.

        Returns
        -------
        self : MultiwaySorting
            The fitted estimator. If the callback or Ctrl-C stops the search, the best so far is
            kept; KeyboardInterrupt is raised again.
        """
        check_parameters(self)
        check_n_jobs(self.n_jobs)
        with before_results():
            ensemble = self._build_ensemble(X)
        checked = self.trust and ensemble.shape[1] >= FEWEST_PAIRS
        search = AlignmentSearch(ensemble, self.callback, SEARCHING if checked else 1.0)
        rng = check_random_state(self.random_state)
        fit_by_search(
            self,
            search,
            partial(self._solve, search, int(self.n_init), rng),
            partial(self._store, search),
            *([partial(self._judge, search)] if checked else []),
        )
        if not (self.converged_ or search.stopped):
            warn_user(
                f"The ascent did not converge in max_iter={self.max_iter} sweeps. Raise max_iter "
                "or tol.",
                ConvergenceWarning,
            )
        if self.doubts_:
            warn_user(self._describe_doubts(), DoubtWarning)
        return self

    def reorder(self, X: Any) -> list[Any]:
        """Put collections, or data in their orders, into the order of the first.

        Parameters
        ----------
        X : list of array-like of length m
            One for each fitted collection: arrays, data frames, sparse matrices or lists.

        Returns
        -------
        reordered : list
            Item i of each is matched to item i of the first.
        """
        check_is_fitted(self, "permutations_")
        collections = check_several_collections(X)
        n_collections, n_items = self.permutations_.shape
        if len(collections) != n_collections:
            raise ValueError(
                f"`X` holds {len(collections)} collection(s); {n_collections} were fitted. "
                "Pass one for each of them, in the same order."
            )
        return [
            take(collections[t], permutation, n_items, name=f"X[{t}]")
            for t, permutation in enumerate(self.permutations_)
        ]

    def _build_ensemble(self, X: Any) -> Ensemble:
        collections = check_several_collections(X)
        n_collections = len(collections)
        specs = check_per_collection(self.kernel, n_collections, "kernel")
        gammas = check_per_collection(self.gamma, n_collections, "gamma")
        n_items = max(count_items(each, "rbf") for each in collections)
        n_matrices = PER_COLLECTION * n_collections
        n_matrices += PER_THREAD * count_threads(self.n_jobs, self.n_init)
        check_memory(
            8 * n_matrices * n_items**2,
            what=f"Aligning {n_collections} collections of {n_items:,} items",
            instead="Fit samples of the collections, or align parts of them in turn.",
        )
        kernels = [
            compute_gram(collections[t], specs[t], gamma=gammas[t], name=f"X[{t}]")
            for t in range(n_collections)
        ]
        sizes = [K.shape[0] for K in kernels]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"The collections in `X` have {', '.join(map(str, sizes))} items, but must have "
                "the same size. Draw samples of the smallest size, or match two at a time with "
                "KernelizedSorting."
            )
        n_items = sizes[0]
        if self.objective == "entropy" and n_items > MOST_ITEMS_ENTROPY:
            raise ValueError(
                f'objective="entropy" takes at most {MOST_ITEMS_ENTROPY} items, got {n_items}: it '
                "tries every exchange of two items. Align a sample of the items, or use "
                'objective="hsic".'
            )
        # Entries of order one, so that products of many kernels stay finite.
        kernels = [K / np.abs(K).max() for K in kernels]
        # The product of T kernels exp(-gamma d) sums T distances; of their T-th roots, the mean.
        roots = [
            K ** (1.0 / n_collections) if isinstance(spec, str) and spec in EXPONENTIAL else K
            for K, spec in zip(kernels, specs, strict=True)
        ]
        offset = n_collections if self.offset is None else self.offset
        factors = [(K + offset) / (1.0 + offset) for K in kernels] if offset > 0 else roots
        return Ensemble(
            kernels,
            factors,
            roots if self.objective == "entropy" else None,
            find_shared_columns(collections, specs) if self.compare_columns else None,
        )

    def _solve(
        self, search: AlignmentSearch, n_init: int, rng: np.random.RandomState
    ) -> Alignment:
        return solve_multiway(
            search,
            n_init=n_init,
            max_iter=int(self.max_iter),
            tol=self.tol,
            n_jobs=self.n_jobs,
            rng=rng,
        )

    def _store(self, search: AlignmentSearch, found: Alignment) -> None:
        self.permutations_ = onto_first(found.permutations)
        self.objective_ = search.ensemble.value(found.permutations)
        self.objective_path_ = np.array(found.path or [self.objective_])
        self.n_iter_ = search.n_assignments
        self.converged_ = found.converged
        self.decided_by_columns_ = found.decided_by_columns
        self.expected_accuracy_ = np.nan
        self.expected_accuracy_interval_ = np.full(2, np.nan)
        self.doubts_: list[str] = []

    def _judge(self, search: AlignmentSearch, interrupted: bool) -> None:
        """Estimate the share of right tuples, and list the doubts."""
        if interrupted or search.stopped:
            return
        n_collections, _ = search.ensemble.shape
        n_init = N_INIT_CHECK_TWO if n_collections == 2 else N_INIT_CHECK
        numbers = count()

        def solve(part: Ensemble) -> Permutations:
            number = next(numbers)

            def report(state: SearchState) -> None:
                fraction = SEARCHING + (1.0 - SEARCHING) * (number + state.fraction) / N_CHECKS
                search.step(
                    self.objective_, self.permutations_, stage="checking", fraction=fraction
                )

            check = AlignmentSearch(part, report)
            found = self._solve(check, min(n_init, int(self.n_init)), np.random.RandomState(0))
            return onto_first(found.permutations)

        evidence = gather_alignment_evidence(
            search, self.permutations_, solve, by_columns=self.decided_by_columns_
        )
        if evidence is None:
            self.doubts_ = ["the items of a collection are alike but for a few"]
            return
        right = WORTH * evidence.expected_accuracy + 0.1
        wrong = WORTH * (1.0 - evidence.expected_accuracy) + 0.1
        self.expected_accuracy_ = right / (right + wrong)
        self.expected_accuracy_interval_ = np.array(beta.interval(COVERAGE, right, wrong))
        if self.expected_accuracy_ < TRUSTED:
            self.doubts_ = list_doubts(evidence)

    def _describe_doubts(self) -> str:
        n_collections, n_items = self.permutations_.shape
        believed = "How many items are aligned rightly could not be estimated"
        if np.isfinite(self.expected_accuracy_):
            low, high = self.expected_accuracy_interval_
            believed = (
                f"About {self.expected_accuracy_:.0%} of the {n_items} items are believed to be "
                f"aligned rightly in all {n_collections} collections ({low:.0%} to {high:.0%})"
            )
        ways = "Use other features, raise n_init, "
        if n_collections > 2:
            ways += "drop a collection that agrees with none, or match two at a time"
        else:
            ways += "or match them"
        ways += " with KernelizedSorting and known pairs."
        return f"{believed}: {'; '.join(self.doubts_)}. {ways}"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # one table is not enough
        tags.input_tags.three_d_array = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def list_doubts(evidence: AlignmentEvidence) -> list[str]:
    """Reasons not to trust an alignment whose expected accuracy is low."""
    doubts = []
    if evidence.by_columns:
        doubts.append(
            "another alignment is at least as good, and only the columns decided against it"
        )
    low = np.flatnonzero(evidence.excesses < LOW_EXCESS)
    if low.size:
        some = low.size < evidence.excesses.size
        names = " and ".join(f"X[{t}]" for t in low) if some else "the collections"
        verb = "agrees with the others" if some and low.size == 1 else "agree"
        doubts.append(f"{names} {verb} hardly more than halves without a common item do")
    if evidence.persistence < LOW_PERSISTENCE:
        doubts.append(
            f"only {evidence.persistence:.0%} of the tuples were found again when halves were "
            "aligned"
        )
    if evidence.consistency < TRUSTED or not doubts:
        doubts.append(
            f"only {evidence.consistency:.0%} of the tuples are also found by matching in pairs"
        )
    return doubts


def check_several_collections(collections: Any) -> list[Any]:
    """Two or more collections as a list; the kernels check their contents."""
    ask = "Pass a list of collections: fit([X1, X2, ...])."
    if collections is None:
        raise ValueError(f"`X` is None. {ask}")
    collections = listed(collections)
    if isinstance(collections, dict) or not (
        hasattr(collections, "__iter__") or hasattr(collections, "__getitem__")
    ):
        raise TypeError(f"`X` must be a list, got {type(collections).__name__}. {ask}")
    if isinstance(collections, str) or is_text(collections):
        raise ValueError(f"`X` is one collection of texts. {ask}")
    if any(hasattr(collections, part) for part in ("iloc", "obs_names", "tocsr")):
        raise ValueError(f"`X` is one table of shape {collections.shape}. {ask}")
    of_objects = isinstance(collections, np.ndarray) and collections.dtype == object
    if isinstance(collections, np.ndarray) and collections.ndim != (1 if of_objects else 3):
        raise ValueError(f"`X` is one array of shape {collections.shape}. {ask}")
    several = list(collections)
    if len(several) < 2:
        raise ValueError(f"`X` holds {len(several)} collection(s); at least two are needed. {ask}")
    # Arrays of the array API standard have axes, but no length.
    single = [
        t
        for t, each in enumerate(several)
        if not (hasattr(each, "__len__") or getattr(each, "ndim", False))
    ]
    if len(single) == len(several):
        raise ValueError(f"`X` is a list of {len(several)} single values. {ask}")
    if single:
        value = several[single[0]]
        raise ValueError(f"`X[{single[0]}]` is {value!r}, which is not a collection. {ask}")
    return several


def check_per_collection(values: Any, n_collections: int, name: str) -> list[Any]:
    """One entry for each collection: a list of that length, or one value for all."""
    if isinstance(values, list | tuple):
        if len(values) != n_collections:
            raise ValueError(
                f"`{name}` has {len(values)} entries for {n_collections} collections. "
                "Pass one for each collection, or a single value for all."
            )
        return list(values)
    return [values] * n_collections
