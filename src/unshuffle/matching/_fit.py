"""One fit of KernelizedSorting: its problem, and the dense search that solves and checks it."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from unshuffle._core.arrays import as_numbers, as_rows, middle
from unshuffle._core.grams import (
    KERNELS,
    check_frozen,
    check_kernel_weights,
    check_no_weights,
    check_shape,
    count_items,
)
from unshuffle._core.parameters import check_memory, check_option
from unshuffle._quadratic.mean_field import interaction_spread
from unshuffle._run.parallel import count_threads, one_blas_thread
from unshuffle._run.printing import SlowFitWarning, duration, warn_user
from unshuffle._run.search import Callback, SearchState, asks_to_stop
from unshuffle._run.types import Floats, Permutation
from unshuffle.assignment import soft_assignment
from unshuffle.matching._dense.auto_kernel import (
    Choice,
    Tables,
    choose_by_known_pairs,
    choose_by_persistence,
    kernel_for,
    tables_of,
)
from unshuffle.matching._dense.pair import ONE_WIDTH, WIDTHS, KernelPair, compute_views
from unshuffle.matching._dense.paper import solve_by_paper
from unshuffle.matching._dense.search import (
    FINISHED,
    MatchSearch,
    Outcome,
    confidence,
    solve_refined,
)
from unshuffle.matching._matches import without_names
from unshuffle.matching._trust.evidence import (
    LARGEST_CERTIFIED,
    MANY_KNOWN,
    Evidence,
    gather_evidence,
)
from unshuffle.matching._trust.known_pairs import (
    FEWEST,
    N_FOLDS,
    Hints,
    LeftOut,
    add_linear_terms,
    check_hints,
    leave_out,
)
from unshuffle.matching._trust.questions import RANK
from unshuffle.matching._trust.rivals import Alternatives, exchange_shares, judge_rivals

# Peak memory in matrices of n^2 numbers: base, for each further thread, with a linear term, for
# each kernel of a list, to match halves again, and if tables may be scaled and matched again.
N_MATRICES, PER_THREAD, WITH_COST, PER_VIEW, WITH_TRUST, RESCALED = 23, 4, 6, 10, 1, 5
# Seconds for 1,000 items, and the power of their number that time grows with.
SECONDS, GROWTH = 12.0, 2.3
# Up to this many items, one BLAS thread is as fast as two.
FEW_FOR_THREADS = 1000
# Fits that take longer than this are announced, to the callback and by a warning.
NOTABLE, LONG = 10.0, 300.0
# Starts of the fits that only check an answer, and of those with a learned map, where other starts
# would lead away from it.
N_INIT_CHECK, N_INIT_MAPPED = 4, 1
# Matchings of halves, the step after them included.
N_HALF_CHECKS = 5
# Random thirds for `confidence_`: more give finer values.
N_RESAMPLES, INTERRUPTED_RESAMPLES = 24, 8
SOFT_TEMPERATURE = 0.2
PAPER_METHODS = ("classic", "unbiased", "entropy")


@dataclass(frozen=True, eq=False)
class Answer:
    """What a search found, in the user's order of collections."""

    permutation: Permutation
    n_second: int  # items of y
    frozen: NDArray[np.intp]
    objective: float
    path: list[float]
    converged: bool
    shares: Any  # with `candidates`, `soft_matches` and `components`
    pair: KernelPair | None = None  # of small collections, for `certify`
    weights: Floats | None = None  # of kernels that were compared one by one


class Fit(ABC):
    """Arguments and parameters of a fit, with "auto" resolved.

    Subclasses build the problem, solve it, and check the answer; `search` holds what they found.
    """

    method: str  # as the user names it
    instead: str  # what to do if memory or time is short
    in_place = False  # whether tables stay in their own precision
    times_longer = 1.0  # that collections take if they agree weakly
    search: Any

    @abstractmethod
    def expected_resources(self) -> tuple[float, int]:
        """Rough seconds and bytes that the fit takes."""

    @abstractmethod
    def prepare(self, after: Any = None) -> Any:
        """Build the problem and return its search; `after` is an earlier one."""

    @abstractmethod
    def solve(self) -> Any:
        """Search, and release pairs of the result even if the search was stopped."""

    @abstractmethod
    def answer(self, outcome: Any) -> Answer:
        """What was found, in the user's order of collections."""

    @abstractmethod
    def judge(self, interrupted: bool) -> tuple[float, Floats]:
        """Ambiguity of the matching and, for each item of X, how sure its partner is."""

    @abstractmethod
    def check(self, ambiguity: float) -> tuple[Evidence | None, LeftOut | None]:
        """What speaks for the matching as a whole, or known pairs that were left out."""

    def __init__(
        self,
        sorting: Any,
        X: Any,
        y: Any,
        *,
        frozen: ArrayLike | None,
        cost: ArrayLike | None,
        hints: ArrayLike | None,
        device: Any = None,
    ) -> None:
        self.sorting, self.device = sorting, device
        self.given = X, y
        self.X, self.y = map(without_names, self.given)
        self.widths = ONE_WIDTH if sorting.method in PAPER_METHODS else WIDTHS
        self.frozen, self.cost, self.hints = frozen, cost, hints
        self.automatic = _is_auto(sorting.kernel) and (
            sorting.kernel_y is None or _is_auto(sorting.kernel_y)
        )
        self.kernels = resolve_kernels(sorting, self.X, self.y)
        self.n_items = count_larger(self.X, self.y, self.kernels)
        self._check_resources()
        self.tables: Tables | None = None
        self.choice: Choice | None = None  # of scaling and kernel, only for tables
        self.reason = ""  # why the tables were not taken as given
        self.on_check: Callback | None = None  # of the check that runs now
        self.n_answers = 0  # searched for, under one choice after the other
        self.alternatives: Alternatives | None = None  # to the matching found, if looked for
        if self.automatic and sorting.gamma is None and sorting.kernel_weights is None:
            self._choose_first()

    def _check_resources(self) -> None:
        """Check memory and announce long work, before anything is computed."""
        seconds, n_bytes = self.expected_resources()
        what = f"Matching {self.n_items:,} items"
        check_memory(n_bytes, what=what, instead=self.instead)
        time = duration(seconds)
        if self.times_longer > 1.0:
            time += f", or up to {duration(seconds * self.times_longer)} if the sides agree weakly"
        if seconds > NOTABLE and self.sorting.callback is not None:
            expected = f"expected: about {time}, {n_bytes / 1e9:,.1f} GB"
            # Its answer does not stop the fit, of which there is no result yet.
            asks_to_stop(
                self.sorting.callback, SearchState(0, np.nan, np.empty(0, np.intp), expected)
            )
        if seconds > LONG:
            warn_user(
                f"{what} takes roughly {time}, and {n_bytes / 1e9:,.1f} GB. "
                f"Pass callback= to follow it. {self.instead}",
                SlowFitWarning,
            )

    def _choose_first(self) -> None:
        """Take two tables as given, or as their known pairs suggest."""
        self.tables = tables_of(self.X, self.y, widths=self.widths, in_place=self.in_place)
        if self.tables is None:
            return
        self.choice, self.reason = self.tables.first_choice
        known = check_frozen(self.frozen, len(self.tables.X), len(self.tables.y))
        if len(known) >= FEWEST:
            self.choice, self.reason = choose_by_known_pairs(self.tables, known, fixed_rng())

    def choose_other_units(self) -> bool:
        """Take the tables as given if they were standardized, or the reverse, where in doubt."""
        second = None if self.tables is None else self.tables.second_choice
        if second is None:
            return False
        self.choice, self.reason = second
        return True

    def choose_again(self) -> bool:
        """Try other scalings and kernels; whether one is clearly more reliable."""
        if self.tables is None or self.choice is None:
            return False
        before = self.choice
        try:
            choice, reason = choose_by_persistence(
                self.tables, before, self.solve_part, fixed_rng()
            )
        except ValueError:  # the items of a sample are too few, or alike
            return False
        if choice == before:
            return False
        self.choice, self.reason = choice, reason
        return True

    def explains_more(self, pairs: NDArray[np.intp], others: NDArray[np.intp]) -> bool:
        """Whether some matched pairs let the tables explain more of each other than others do.

        Belief is too high for smooth data of few dimensions, such as a table as given whose widest
        column outweighs all others.
        """
        tables = self.tables
        return tables is not None and tables.explained(pairs) > tables.explained(others)

    def check_linear_term(self, n_first: int, n_second: int) -> Any:
        """The user's cost with its shape checked; a constant is taken off full matchings."""
        if self.cost is None:
            return None
        linear = as_numbers(self.cost, "cost")
        check_shape(linear, (n_first, n_second), "cost", "items of X by items of y")
        linear = as_rows(linear, "cost")
        if self.sorting.unmatched_cost is None:
            # A constant changes no full matching, but costs digits.
            with np.errstate(over="ignore"):  # KernelPair clips it
                linear = linear - middle(linear.reshape(-1, 1))[0]
        return linear

    def sides(self) -> list[tuple[Any, Any, Any, str]]:
        """Collection, kernel, weights of a list of kernels, and name of each side."""
        several = any(isinstance(kernel, list | tuple) for kernel in self.kernels)
        found = []
        for collection, kernel, name in zip((self.X, self.y), self.kernels, "Xy", strict=True):
            # Weights may be meant for the list of the other side only.
            single = several and not isinstance(kernel, list | tuple)
            weights = None if single else self.sorting.kernel_weights
            found.append((collection, kernel, weights, name))
        return found

    def reporting(
        self, solve: Callable[..., Any], n_checks: int = N_HALF_CHECKS
    ) -> Callable[..., Any]:
        """A solver of checks that reports each before it begins, and its steps.

        The solver passes `on_check` to the search of each. There are at most `n_checks`.
        """
        begin, n_solved = self.search.span[1], count()
        share = 1.0 / n_checks * (self.search.span[1] - self.search.span[0])

        def report(number: int, fraction: float) -> None:
            self.search.step(
                self.sorting.objective_,
                self.sorting.permutation_,
                stage="checking",
                fraction=begin + share * (number + fraction),
            )

        def report_and_solve(*arguments: Any) -> Any:
            number = next(n_solved)
            report(number, 0.0)
            if self.sorting.callback is not None:
                # The matching of a part is not shown: it is not in the numbers of the user.
                self.on_check = lambda state: report(number, state.fraction)
            try:
                return solve(*arguments)
            finally:
                self.on_check = None

        return report_and_solve

    def _match_part(self, part: KernelPair) -> Permutation:
        return self.solve_part(part, N_INIT_MAPPED).permutation

    def span(self) -> tuple[float, float]:
        """Shares of the whole work at which the search begins and ends; checks take as long."""
        if not self.sorting.trust:
            return 0.0, 1.0
        if self.tables is None:
            return 0.0, 0.5
        # Each further choice takes half of what is left.
        begin = 1.0 - 0.5**self.n_answers
        self.n_answers += 1
        return begin, begin + 0.25 * (1.0 - begin)

    def solve_part(self, part: KernelPair, n_init: int = N_INIT_CHECK) -> Outcome:
        """Match a part of the collections, or all of them again, by the dense search."""
        n_init = min(n_init, int(self.sorting.n_init))
        return self._run(MatchSearch(part, self.on_check), n_init, fixed_rng())

    def _run(self, search: MatchSearch, n_init: int, rng: np.random.RandomState) -> Outcome:
        sorting, max_iter = self.sorting, int(self.sorting.max_iter)
        search.begin()
        # Threads that share small products mostly wait, and for long if a core has other work.
        few = len(search.pair.L) <= FEW_FOR_THREADS
        with one_blas_thread() if few else nullcontext():
            if sorting.method in PAPER_METHODS:
                return solve_by_paper(
                    search,
                    method=sorting.method,
                    max_iter=max_iter,
                    tol=sorting.tol,
                    step=sorting.step,
                    n_jobs=sorting.n_jobs,
                )
            return solve_refined(
                search, n_init=n_init, max_iter=max_iter, n_jobs=sorting.n_jobs, rng=rng
            )


class DenseFit(Fit):
    """A fit on kernel matrices, by one of the methods that need them."""

    method = "refined"
    instead = 'Use method="low_rank", or fit a sample of the items.'

    def expected_resources(self) -> tuple[float, int]:
        """Rough seconds and bytes that the fit takes."""
        sorting = self.sorting
        n_threads = count_threads(sorting.n_jobs, sorting.n_init)
        n_matrices = N_MATRICES + PER_THREAD * (n_threads - 1)
        given = self.cost, self.frozen, self.hints
        n_matrices += WITH_COST * any(each is not None for each in given)
        lists = [each for each in self.kernels if isinstance(each, list | tuple)]
        n_matrices += PER_VIEW * max(map(len, lists), default=0)
        if sorting.trust:
            n_matrices += WITH_TRUST + RESCALED * self.automatic
        starts = 0.3 + 0.7 * sorting.n_init / 8 / n_threads
        seconds = SECONDS * (self.n_items / 1000) ** GROWTH * starts * (1 + bool(sorting.trust))
        return seconds, 8 * n_matrices * self.n_items**2

    def prepare(self, after: Any = None) -> MatchSearch:
        """Compute the kernels, and what known pairs teach; `after` is an earlier search."""
        self.pair = self._build_pair()
        taught, self.weight = self._teach(self.pair)
        self.search = MatchSearch(taught, self.sorting.callback, self.span())
        if after is not None:
            self.search.iteration = after.iteration
        return self.search

    def _build_pair(self) -> KernelPair:
        """Kernels, cost and frozen pairs, checked."""
        sorting = self.sorting
        weights = [np.ones(1), np.ones(1)]
        if self.tables is not None and self.choice is not None:
            views = [[K] for K in self.tables.grams(self.choice)]
        else:
            views = []
            for side, (each, kernel, factors, name) in enumerate(self.sides()):
                if isinstance(kernel, list | tuple):
                    weights[side] = check_kernel_weights(factors, len(kernel))
                else:
                    check_no_weights(factors)
                views.append(
                    compute_views(each, kernel, gamma=sorting.gamma, name=name, widths=self.widths)
                )
        sizes = len(views[0][0]), len(views[1][0])
        fixed = check_frozen(self.frozen, *sizes)
        linear = self.check_linear_term(*sizes)
        if sorting.method == "entropy" and sizes[0] != sizes[1]:
            raise ValueError(
                f"method={sorting.method!r} needs collections of one size, got {sizes[0]} and "
                f'{sizes[1]} items. Use method="refined", which matches all items of the '
                "smaller one."
            )
        return KernelPair.of_views(
            views[0],
            views[1],
            (weights[0], weights[1]),
            linear,
            fixed,
            self._linear_kernels(len(fixed)),
            fixed=sorting.kernel_weights is not None,
        )

    def _linear_kernels(self, n_known: int) -> tuple[Floats, Floats] | None:
        """Linear kernels, if a linear map has fewer unknowns than there are known pairs."""
        tables, choice = self.tables, self.choice
        if tables is None or choice is None:
            return None
        if max(tables.X.shape[1], tables.y.shape[1]) >= n_known:
            return None
        return tables.grams(Choice(choice.scaling, "linear"))

    def _teach(self, pair: KernelPair) -> tuple[KernelPair, float]:
        """The pair with what known and likely pairs teach, and the weight of the learned map."""
        hints = check_hints(self.hints, *(len(pair.K), len(pair.L))[:: pair.order])
        if self.sorting.method in PAPER_METHODS:
            if len(hints.pairs):
                raise ValueError(
                    f'method={self.sorting.method!r} takes no `hints`. Use method="refined", or '
                    "pass certain pairs as `frozen`."
                )
            return pair, 0.0
        hints = Hints(hints.pairs[:, :: pair.order], hints.probabilities)
        return add_linear_terms(pair, hints, self._match_part)

    def solve(self) -> Outcome:
        """Search, and release pairs of the result even if the search was stopped."""
        n_init = int(self.sorting.n_init)
        if self.weight > 0:
            n_init = min(n_init, N_INIT_MAPPED)
        try:
            rng = check_random_state(self.sorting.random_state)
            self.search.offer(self._run(self.search, n_init, rng), FINISHED)
        finally:
            self.search.release_pairs(self.sorting.unmatched_cost)
        return self.search.found

    def answer(self, outcome: Outcome) -> Answer:
        """What was found, in the user's order of collections."""
        pair = self.search.pair
        # The full spectrum for soft matches, fine differences to rank candidates.
        slopes = [pair.full_problem.gradient(outcome.permutation), outcome.gradient()]
        linear = 0.0 if pair.cost is None else pair.cost
        spreads = [interaction_spread(each + linear) for each in slopes]
        if pair.swapped:
            slopes = [np.ascontiguousarray(each.T) for each in slopes]
        frozen, own = pair.frozen[:, :: pair.order], pair.spectra[1 if pair.swapped else 0]
        components = own.eigenvectors_[:, :RANK] * own.eigenvalues_[:RANK]
        return Answer(
            permutation=pair.to_user(outcome.matching),
            n_second=(pair.K if pair.swapped else pair.L).shape[0],
            frozen=frozen,
            objective=pair.objective(outcome.matching),
            path=outcome.objective_path,
            converged=outcome.converged,
            shares=DenseShares(slopes, spreads, frozen, components.astype(np.float32)),
            pair=pair if len(pair.L) <= LARGEST_CERTIFIED else None,
            weights=self._view_weights(outcome),
        )

    def _view_weights(self, outcome: Outcome) -> Floats | None:
        """Weights of all kernels of a list, if they were compared one by one; they sum to 1."""
        if not self.pair.views:
            return None
        weights = check_kernel_weights(self.sorting.kernel_weights, len(self.kernels[0]))
        if outcome.views is not None:
            weights[weights > 0] = outcome.views.weights
        return weights / weights.sum()

    def judge(self, interrupted: bool) -> tuple[float, Floats]:
        """Ambiguity of the matching and, for each item of X, how often its partner comes back."""
        pair, outcome = self.search.pair, self.search.found
        n_resamples = INTERRUPTED_RESAMPLES if interrupted else N_RESAMPLES
        each = confidence(outcome, n_resamples=n_resamples, n_jobs=self.sorting.n_jobs)
        ambiguity, kept, n_rivals = judge_rivals(pair, outcome, searched=not interrupted)
        alike = exchange_shares(pair, outcome.matching)
        each, alike, kept = (self._of_first(shares) for shares in (each, alike, kept))
        self.alternatives = Alternatives(alike, kept, n_rivals)
        return ambiguity, np.minimum(each, alike)

    def _of_first(self, shares: Floats) -> Floats:
        """Shares of the items of the smaller collection as those of the items of X."""
        pair, matching = self.search.pair, self.search.found.matching
        if not pair.swapped:
            return shares
        rows = np.flatnonzero(matching >= 0)
        found = np.zeros(len(pair.L))
        found[matching[rows]] = shares[rows]
        return found

    def check(self, ambiguity: float) -> tuple[Evidence | None, LeftOut | None]:
        """Leave known pairs out if there are enough; unless there are many, match halves again."""
        n_known, left_out = len(self.pair.frozen), None
        few = FEWEST <= n_known < MANY_KNOWN
        solve = self.reporting(self.solve_part, N_HALF_CHECKS + N_FOLDS * few)
        if n_known >= FEWEST:

            def match(part: KernelPair) -> Permutation:
                return solve(part, N_INIT_MAPPED).permutation

            left_out = leave_out(self.pair, match, self.weight)
        if n_known >= MANY_KNOWN:
            return None, left_out
        try:
            found = self.search.found.matching
            return gather_evidence(self.pair, found, ambiguity, solve), left_out
        except ValueError:  # those of a half are, so that nothing speaks for the matching
            return Evidence(0.0, 0.0, ambiguity), left_out


class DenseShares:
    """Soft shares of all pairs from gradients of the objective."""

    def __init__(
        self,
        slopes: list[Floats],
        spreads: list[float],
        frozen: NDArray[np.intp],
        components: NDArray[np.float32],
    ) -> None:
        self.slopes, self.spreads, self.frozen = slopes, spreads, frozen
        self.components = components  # of the squared kernel of X

    def soft_matches(self, temperature: float, number: int = 0) -> Floats:
        """Share of each item of X in each item of y."""
        with warnings.catch_warnings():
            # A few digits of the shares are enough.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return soft_assignment(
                self.slopes[number],
                maximize=True,
                # the product may underflow
                epsilon=max(temperature * self.spreads[number], np.finfo(float).tiny),
                frozen=self.frozen,
                tol=1e-3,
            )

    def candidates(self, k: int, permutation: Permutation) -> NDArray[np.intp]:
        """The k best partners of each item of X, the matched one first."""
        shares = self.soft_matches(SOFT_TEMPERATURE, 1)
        rows = np.flatnonzero(permutation >= 0)
        shares[rows, permutation[rows]] = np.inf
        return np.argsort(-shares, axis=1, kind="stable")[:, :k]


def resolve_kernels(sorting: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Kernels of both collections, "auto" resolved."""
    for name in ("kernel", "kernel_y"):
        if isinstance(given := getattr(sorting, name), str):
            check_option(given, name, ("auto", *KERNELS))
    kernel_y = sorting.kernel if sorting.kernel_y is None else sorting.kernel_y
    first, second = (
        kernel_for(collection) if _is_auto(kernel) else kernel
        for collection, kernel in ((X, sorting.kernel), (y, kernel_y))
    )
    return first, second


def count_larger(X: Any, y: Any, kernels: tuple[Any, Any]) -> int:
    """Number of items of the larger collection."""
    return max(count_items(X, kernels[0]), count_items(y, kernels[1], "y"))


def _is_auto(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel == "auto"


def fixed_rng() -> np.random.RandomState:
    """Random numbers for checks and choices, which should not depend on the user's seed."""
    return np.random.RandomState(0)
