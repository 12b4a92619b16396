"""The problem of one fit of KernelizedSorting, how it is solved, and how its answer is checked."""

import warnings
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from unshuffle._arrays import as_numbers, as_rows, middle
from unshuffle._grams import check_frozen, check_shape, count_items
from unshuffle._parallel import count_threads
from unshuffle._parameters import check_memory
from unshuffle.matching._auto_kernel import (
    Choice,
    Tables,
    choose_by_known_pairs,
    choose_by_persistence,
    kernel_for,
    tables_of,
)
from unshuffle.matching._kernel_pair import Array, KernelPair, Permutation, compute_gram
from unshuffle.matching._known_pairs import (
    FEWEST,
    Hints,
    LeftOut,
    add_linear_terms,
    check_hints,
    leave_out,
)
from unshuffle.matching._paper import solve_by_paper
from unshuffle.matching._refined import FINISHED, MatchSearch, Outcome, solve_refined
from unshuffle.matching._trust import Evidence, gather_evidence

# Peak memory in matrices of n^2 numbers: base, for each further thread, with a linear term, to
# match halves again, and if tables may be scaled and matched a second time.
N_MATRICES, PER_THREAD, WITH_COST, WITH_TRUST, RESCALED = 17, 4, 6, 6, 5
# Seconds for 1,000 items, and the power of their number that time grows with.
SECONDS, GROWTH = 12.0, 2.3
# Fits that take longer than this are announced.
LONG = 300.0
# Starts of the fits that only check an answer, and of those with a learned map, where other starts
# would lead away from it.
N_INIT_CHECK, N_INIT_MAPPED = 4, 1


class Fit:
    """Arguments and parameters of a fit, with "auto" resolved."""

    def __init__(
        self,
        sorting: Any,
        X: Any,
        y: Any,
        *,
        frozen: ArrayLike | None,
        cost: ArrayLike | None,
        hints: ArrayLike | None,
    ) -> None:
        self.sorting, self.X, self.y = sorting, X, y
        self.frozen, self.cost, self.hints = frozen, cost, hints
        kernel_y = sorting.kernel if sorting.kernel_y is None else sorting.kernel_y
        self.automatic = _is_automatic(sorting)
        self.kernels = tuple(
            kernel_for(collection) if _is_auto(kernel) else kernel
            for collection, kernel in ((X, sorting.kernel), (y, kernel_y))
        )
        self._check_resources()
        self.tables: Tables | None = None
        self.choice: Choice | None = None  # of scaling and kernel, only for tables
        self.reason = ""  # why the tables were not taken as given
        if self.automatic and sorting.gamma is None and sorting.kernel_weights is None:
            self._choose_first()

    def _check_resources(self) -> None:
        """Check memory and announce long work, before any kernel matrix is computed."""
        n_first, n_second = (
            count_items(collection, kernel, name)
            for collection, kernel, name in zip((self.X, self.y), self.kernels, "Xy", strict=True)
        )
        guided = any(each is not None for each in (self.cost, self.frozen, self.hints))
        seconds, n_bytes = expected_resources(self.sorting, n_first, n_second, guided=guided)
        n_items = max(n_first, n_second)
        instead = "Fit a sample of the items, or match parts of the collections in turn."
        check_memory(n_bytes, what=f"Matching {n_items:,} items", instead=instead)
        if seconds > LONG:
            warnings.warn(
                f"Matching {n_items:,} items takes roughly {seconds / 60:,.0f} minutes and "
                f"{n_bytes / 1e9:,.1f} GB. Pass callback= to follow it; n_jobs=-1 is faster, "
                f"trust=False halves the time. {instead}",
                UserWarning,
                stacklevel=4,
            )

    def _choose_first(self) -> None:
        """Take two tables as given, or as their known pairs suggest."""
        self.tables = tables_of(self.X, self.y)
        if self.tables is None:
            return
        self.choice = self.tables.first_choice
        known = check_frozen(self.frozen, len(self.tables.X), len(self.tables.y))
        if len(known) >= FEWEST:
            self.choice, self.reason = choose_by_known_pairs(self.tables, known, fixed_rng())

    def choose_again(self) -> bool:
        """Try other scalings and kernels; whether one is clearly more reliable."""
        if self.tables is None or self.choice is None:
            return False
        before = self.choice
        try:
            self.choice, self.reason = choose_by_persistence(
                self.tables, before, self.solve_part, fixed_rng()
            )
        except ValueError:
            return False  # all items of a sample are alike
        return self.choice != before

    def build_pair(self) -> KernelPair:
        """Kernels, cost and frozen pairs, checked."""
        sorting = self.sorting
        several = any(isinstance(kernel, list | tuple) for kernel in self.kernels)

        def gram(collection: Any, kernel: Any, name: str) -> NDArray[np.float64]:
            # Weights may be meant for the list of the other side only.
            single = several and not isinstance(kernel, list | tuple)
            weights = None if single else sorting.kernel_weights
            return compute_gram(
                collection, kernel, gamma=sorting.gamma, weights=weights, name=name
            )

        if self.tables is not None and self.choice is not None:
            K, L = self.tables.grams(self.choice)
        else:
            K, L = gram(self.X, self.kernels[0], "X"), gram(self.y, self.kernels[1], "y")
        fixed = check_frozen(self.frozen, K.shape[0], L.shape[0])
        linear = None
        if self.cost is not None:
            linear = as_rows(as_numbers(self.cost, "cost"), "cost")
            check_shape(linear, (K.shape[0], L.shape[0]), "cost", "items of X by items of y")
        if sorting.method == "entropy" and K.shape != L.shape:
            raise ValueError(
                f"method={sorting.method!r} needs collections of one size, got {K.shape[0]} and "
                f'{L.shape[0]} items. Use method="refined", which matches all items of the '
                "smaller one."
            )
        if linear is not None and sorting.unmatched_cost is None:
            # A constant changes no full matching, but costs digits.
            with np.errstate(over="ignore"):  # KernelPair clips it
                linear = linear - middle(linear.reshape(-1, 1))[0]
        return KernelPair.of(K, L, linear, fixed, self._linear_kernels(len(fixed)))

    def _linear_kernels(self, n_known: int) -> tuple[Array, Array] | None:
        """Linear kernels, if a linear map has fewer unknowns than there are known pairs."""
        tables, choice = self.tables, self.choice
        if tables is None or choice is None:
            return None
        if max(tables.X.shape[1], tables.y.shape[1]) >= n_known:
            return None
        return tables.grams(Choice(choice.scaling, "linear"))

    def teach(self, pair: KernelPair) -> tuple[KernelPair, float]:
        """The pair with what known and likely pairs teach, and the weight of the learned map."""
        hints = check_hints(self.hints, *(len(pair.K), len(pair.L))[:: pair.order])
        if self.sorting.method != "refined":
            if len(hints.pairs):
                raise ValueError(
                    f'method={self.sorting.method!r} takes no `hints`. Use method="refined", or '
                    "pass certain pairs as `frozen`."
                )
            return pair, 0.0
        hints = Hints(hints.pairs[:, :: pair.order], hints.probabilities)
        return add_linear_terms(pair, hints, self._match_part)

    def span(self, again: bool) -> tuple[float, float]:
        """Shares of the whole work at which the search begins and ends; checks take as long."""
        if not self.sorting.trust:
            return 0.0, 1.0
        if self.tables is None:
            return 0.0, 0.5
        return (0.6, 0.8) if again else (0.0, 0.25)

    def solve(self, search: MatchSearch, weight: float) -> Outcome:
        """Search, and release pairs of the result even if the search was stopped."""
        n_init = int(self.sorting.n_init)
        if weight > 0:
            n_init = min(n_init, N_INIT_MAPPED)
        try:
            rng = check_random_state(self.sorting.random_state)
            search.offer(self._run(search, n_init, rng), FINISHED)
        finally:
            search.release_pairs(self.sorting.unmatched_cost)
        return search.found

    def _run(self, search: MatchSearch, n_init: int, rng: np.random.RandomState) -> Outcome:
        sorting, max_iter = self.sorting, int(self.sorting.max_iter)
        if sorting.method == "refined":
            return solve_refined(
                search, n_init=n_init, max_iter=max_iter, n_jobs=sorting.n_jobs, rng=rng
            )
        return solve_by_paper(
            search,
            method=sorting.method,
            max_iter=max_iter,
            tol=sorting.tol,
            step=sorting.step,
            n_jobs=sorting.n_jobs,
        )

    def solve_part(self, part: KernelPair, n_init: int = N_INIT_CHECK) -> Outcome:
        """Match a part of the collections, or all of them again, by the same method."""
        n_init = min(n_init, int(self.sorting.n_init))
        return self._run(MatchSearch(part, None), n_init, fixed_rng())

    def _match_part(self, part: KernelPair) -> Permutation:
        return self.solve_part(part, N_INIT_MAPPED).permutation

    def check(
        self, search: MatchSearch, pair: KernelPair, weight: float
    ) -> tuple[Evidence | None, LeftOut | None]:
        """Leave known pairs out if there are enough, else match halves again."""
        begin, n_solved = search.span[1], count()
        step = 0.2 * (search.span[1] - search.span[0])

        def reporting(solve: Callable[[KernelPair], Any]) -> Callable[[KernelPair], Any]:
            def report_and_solve(part: KernelPair) -> Any:
                search.step(
                    self.sorting.objective_,
                    self.sorting.permutation_,
                    stage="checking",
                    fraction=begin + step * next(n_solved),
                )
                return solve(part)

            return report_and_solve

        if len(pair.frozen) >= FEWEST:
            return None, leave_out(pair, reporting(self._match_part), weight)
        matching, ambiguity = search.found.matching, self.sorting.ambiguity_
        try:
            return gather_evidence(pair, matching, ambiguity, reporting(self.solve_part)), None
        except ValueError:
            # All items of a half are alike, so nothing speaks for the matching.
            return Evidence(0.0, 0.0, ambiguity), None


def expected_resources(
    sorting: Any, n_first: int, n_second: int, *, guided: bool
) -> tuple[float, int]:
    """Seconds and bytes of a fit of so many items, `guided` by frozen pairs, hints or a cost."""
    n_items = max(n_first, n_second)
    n_threads = count_threads(sorting.n_jobs, sorting.n_init)
    n_matrices = N_MATRICES + PER_THREAD * (n_threads - 1) + WITH_COST * guided
    if sorting.trust:
        n_matrices += WITH_TRUST + RESCALED * _is_automatic(sorting)
    starts = 0.3 + 0.7 * sorting.n_init / 8 / n_threads
    seconds = SECONDS * (n_items / 1000) ** GROWTH * starts * (1 + bool(sorting.trust))
    return seconds, 8 * n_matrices * n_items**2


def _is_automatic(sorting: Any) -> bool:
    """Whether the kernels of both collections are chosen."""
    return _is_auto(sorting.kernel) and (sorting.kernel_y is None or _is_auto(sorting.kernel_y))


def _is_auto(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel == "auto"


def fixed_rng() -> np.random.RandomState:
    """Random numbers for checks and choices, which should not depend on the user's seed."""
    return np.random.RandomState(0)
