"""The default method: many starts, strict ascent, the spectral-power path, and soft shares.

Also holds what all methods share: results, the release of doubtful pairs, confidence.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unshuffle._quadratic.problem import QuadraticProblem, assign_free, climb
from unshuffle._run.parallel import map_parallel, product
from unshuffle._run.search import Callback
from unshuffle._run.types import Floats, Permutation
from unshuffle.assignment import solve_assignment
from unshuffle.matching._dense.pair import (
    NOTHING_FROZEN,
    CountingSearch,
    KernelPair,
    list_starts,
    match_ranks,
    root_mean_square,
)
from unshuffle.matching._dense.views import Views, agreement, choose_partners

# Spectral powers of the stages. Small powers give fine differences as much weight as broad ones.
POWERS = (0.75, 0.5, 0.35, 0.25, 0.15)
N_LEVELS = len(POWERS) + 1
# The path is followed from this many of the best starts, if they are this close to the best.
N_FOLLOWED = 3
FOLLOWED_WITHIN = 0.02
# It is also followed from this many rivals, starts with clearly different partners. A rival must
# win by this factor.
N_RIVALS = 2
RIVAL_MARGIN = 1.05
# Each kernel of a list is also matched alone, from this many starts, and all without the frozen
# pairs if there are no more of them than this.
N_VIEW_STARTS = 4
MOST_MISLEADING = 5
# Two matchings differ clearly if their partners lie this far apart (random partners: 1).
CLEARLY_DIFFERENT = 0.5
# Above this correlation of the matched kernels there is no noise to average over.
AGREE_EXACTLY = 0.98
# For progress: share of an ascent that is left after each of its steps, whose number is not known.
PACE = 0.75
# Ranks of the result of a finished search, before and after the release of pairs.
FINISHED, RELEASED = (np.inf, 0.0), (np.inf, 1.0)
MOST_RELEASES = 50
LARGEST_LIMIT = 1e6  # releases no pair; larger limits would lose the disagreements in rounding
RESAMPLED_SHARE = 0.35


@dataclass(frozen=True)
class SearchRun:
    """Result of one ascent."""

    value: float
    permutation: Permutation
    converged: bool
    path: list[float]  # full-spectrum objective after each step


@dataclass(frozen=True)
class Outcome:
    """Result of a search."""

    permutation: Permutation  # partner of each item of the smaller collection
    converged: bool  # whether every ascent that led to it converged
    objective_path: list[float]  # full-spectrum objective after each step
    ends: list[Permutation]  # final candidates, the chosen one first
    problem: QuadraticProblem  # of all kernels together, at the smallest power that was climbed
    views: Views | None = None  # that chose the partners; None if `problem` did
    released: Permutation | None = None  # with -1 for released items; None if not asked for

    @property
    def matching(self) -> Permutation:
        """The matching with released pairs, if the user asked for that."""
        return self.permutation if self.released is None else self.released

    def gradient(self, rows: Permutation | None = None) -> Floats:
        """Gradient that chose the partners, from all matched pairs or those of some rows."""
        if rows is None:
            rows = np.arange(self.permutation.size)
        if self.views is not None:
            return self.views.gradient(self.permutation, rows)
        problem, partners = self.problem, self.permutation[rows]
        gradient: Floats = 2.0 * product(problem.K[:, rows], problem.L[partners])
        if problem.squared_L is not None:
            gradient -= problem.squared_L[partners].sum(axis=0)
        if problem.cost is not None:
            gradient -= problem.cost * (rows.size / self.permutation.size)
        return gradient


class MatchSearch(CountingSearch[Outcome]):
    """Progress of a fit and the best matching it has seen."""

    def __init__(
        self,
        pair: KernelPair,
        callback: Callback | None,
        span: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(callback)
        self.pair = pair
        self.span = span  # shares of the whole work at which the search begins and ends

    @property
    def found(self) -> Outcome:
        """The best so far."""
        if self.best is None:
            raise RuntimeError("The search was stopped before its first matching.")
        return self.best

    def begin(self) -> None:
        """Keep a rough start, in case the search is stopped before its first step."""
        first, second = (S.sum(axis=1) for S in (self.pair.K, self.pair.L))
        start = match_ranks(self.pair, first, second)
        self.see(start, self.pair.objective(start), (-1, 0.0))

    def make_recorder(
        self, stage: str, *, level: int, shares: tuple[float, float], path: list[float]
    ) -> Callable[[float, Permutation], None]:
        """Make a function that records each step and keeps the best of the highest level.

        `shares` of the search are done before the first step and after the last, whose number is
        not known.
        """
        begin, end = (self.span[0] + (self.span[1] - self.span[0]) * share for share in shares)
        left = 1.0

        def record(value: float, permutation: Permutation) -> None:
            nonlocal left
            left *= PACE
            fraction = end - (end - begin) * left
            objective = self.pair.objective(permutation)
            path.append(objective)
            kept = permutation.copy()
            self.see(kept, objective, (level, value))
            self.step(objective, self.pair.to_user(kept), stage=stage, fraction=fraction)

        return record

    def see(self, permutation: Permutation, objective: float, rank: tuple[int, float]) -> None:
        """Offer a matching of the full problem, which other processes do not send back."""
        if self._is_kept("see", permutation, objective, rank):
            return
        problem = self.pair.full_problem
        self.offer(Outcome(permutation, False, [objective], [permutation], problem), rank)

    def release_pairs(self, unmatched_cost: float | None) -> None:
        """Release doubtful pairs of the best matching, which then is final."""
        best = self.best
        if best is None:
            return
        if unmatched_cost is not None:
            released, n_assignments = release(best.problem, best.permutation, unmatched_cost)
            self.count(n_assignments)
            best = replace(best, released=released)
        self.offer(best, RELEASED)


def solve_refined(
    search: MatchSearch,
    *,
    n_init: int,
    max_iter: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
) -> Outcome:
    """Climb from every start, follow the spectral-power path from the best, then use soft shares.

    The full-spectrum objective chooses among the starts, that of the last stage among the ends of
    the path. The former falls by a percent along the path while more pairs become right.
    """
    pair, full = search.pair, search.pair.full_problem
    starts = list_starts(pair, n_init, rng)
    _ = pair.spectra  # once, not in each of the calls that run elsewhere

    def climb_start(number: int) -> SearchRun:
        path: list[float] = []
        shares = 0.6 * number / len(starts), 0.6 * (number + 1) / len(starts)
        record = search.make_recorder("climbing", level=0, shares=shares, path=path)
        start = starts[number]()
        record(full.value(start), start)
        climbed = climb(full, start, max_iter=max_iter, report=record)
        search.count(climbed.n_assignments)
        return SearchRun(climbed.value, climbed.permutation, climbed.converged, path)

    def climb_stage(leader: SearchRun, problem: QuadraticProblem, level: int) -> SearchRun:
        path = list(leader.path)
        shares = 0.6 + 0.4 * (level - 1) / N_LEVELS, 0.6 + 0.4 * level / N_LEVELS
        record = search.make_recorder("refining", level=level, shares=shares, path=path)
        climbed = climb(problem, leader.permutation, max_iter=max_iter, report=record)
        record(climbed.value, climbed.permutation)
        search.count(climbed.n_assignments)
        converged = leader.converged and climbed.converged
        return SearchRun(climbed.value, climbed.permutation, converged, path)

    runs = search.map(climb_start, range(len(starts)), n_jobs=n_jobs)
    leaders, n_best = _select_leaders(runs, pair.L)
    for level, power in enumerate(POWERS, start=1):
        problem = pair.problem(power)
        run = partial(climb_stage, problem=problem, level=level)
        leaders = search.map(run, leaders, n_jobs=n_jobs)
    best = _choose_end(leaders, n_best, problem)
    permutation, views = _choose_partners(problem, best, search)
    return Outcome(
        permutation=permutation,
        converged=best.converged,
        objective_path=best.path,
        ends=[run.permutation for run in (best, *leaders)],
        problem=problem,
        views=views,
    )


def _select_leaders(runs: list[SearchRun], L: Floats) -> tuple[list[SearchRun], int]:
    """The best runs with different matchings, then rivals of any value; number of the former."""
    ordered = sorted(runs, key=lambda run: -run.value)
    best = ordered[0]
    least = best.value - FOLLOWED_WITHIN * abs(best.value)
    leaders: list[SearchRun] = []
    for run in ordered:
        known = any(np.array_equal(run.permutation, leader.permutation) for leader in leaders)
        if run.value >= least and not known and len(leaders) < N_FOLLOWED:
            leaders.append(run)
    rivals = [best]
    for run in ordered:
        if len(rivals) <= N_RIVALS and all(
            disagreement(L, rival.permutation, run.permutation) > CLEARLY_DIFFERENT
            for rival in rivals
        ):
            rivals.append(run)
    n_best = len(leaders)
    leaders += [rival for rival in rivals if not any(rival is leader for leader in leaders)]
    return leaders, n_best


def _choose_end(leaders: list[SearchRun], n_best: int, problem: QuadraticProblem) -> SearchRun:
    """Best end among the best starts, or a rival that wins by more than the noise of the stage."""
    best = max(leaders[:n_best], key=lambda run: run.value)
    highest = max(leaders, key=lambda run: run.value)
    floor = chance_level(problem)
    return highest if highest.value - floor > RIVAL_MARGIN * (best.value - floor) else best


def _choose_partners(
    problem: QuadraticProblem, best: SearchRun, search: MatchSearch
) -> tuple[Permutation, Views | None]:
    """Maximize the expected number of right pairs, by soft shares around the best matching."""
    if not search.pair.related or agreement(problem, best.permutation) > AGREE_EXACTLY:
        return best.permutation, None
    record = search.make_recorder(
        "choosing partners", level=N_LEVELS, shares=(1.0, 1.0), path=best.path
    )

    def report(permutation: Permutation) -> None:
        search.count(1)
        record(problem.value(permutation), permutation)

    pair = search.pair
    starts = [best.permutation, *_match_each(_single_views(pair), search)]
    if 0 < len(pair.frozen) <= MOST_MISLEADING:
        # Frozen pairs of odd items may mislead a search from afar.
        free = pair.with_linear_term(pair.cost, NOTHING_FROZEN)
        afar = _match_each([free, *_single_views(free)], search)
        starts.append(pair.full_problem.keep_frozen(choose_partners(free, afar, report)[0]))
    permutation, views = choose_partners(pair, starts, report)
    report(permutation)
    return permutation, views


def _single_views(pair: KernelPair) -> list[KernelPair]:
    """Each view alone with the linear term of all; none if there is one view."""
    return [replace(view, cost=pair.cost, frozen=pair.frozen) for view in pair.views]


def _match_each(pairs: list[KernelPair], search: MatchSearch) -> list[Permutation]:
    """The best matching of each pair of kernels, of a few starts."""
    found = []
    for pair in pairs:
        runs = [
            climb(pair.full_problem, start())
            for start in list_starts(pair, N_VIEW_STARTS, np.random.RandomState(0))
        ]
        search.count(sum(run.n_assignments for run in runs))
        found.append(max(runs, key=lambda run: run.value).permutation)
    return found


def release(
    problem: QuadraticProblem, permutation: Permutation, unmatched_cost: float
) -> tuple[Permutation, int]:
    """Release pairs that disagree too much with the others; also count the assignments.

    The disagreement of a pair (i, a) is the mean of (K[i, j] - L[a, p(j)])^2 / 2 over the other
    pairs (j, p(j)), relative to that of a random pair. The sum of `unmatched_cost` minus the
    disagreement is maximized by assignments in which items may stay unmatched.
    """
    scale_K, scale_L = root_mean_square(problem.K), root_mean_square(problem.L)
    K, L = problem.K / scale_K, problem.L / scale_L
    cost = None if problem.cost is None else problem.cost / (scale_K * scale_L)
    means = [float(S.sum()) / (S.shape[0] * (S.shape[0] - 1)) for S in (K, L)]
    limit = min(float(unmatched_cost), LARGEST_LIMIT) * (1.0 - means[0] * means[1])
    value = _released_value(K, L, cost, permutation, limit)
    n_assignments = 0
    while n_assignments < MOST_RELEASES:
        gains = _pair_gains(K, L, cost, permutation, limit)
        found = solve_assignment(
            gains, maximize=True, frozen=problem.frozen, unmatched_cost=0.0
        ).columns
        n_assignments += 1
        proposed = _released_value(K, L, cost, found, limit)
        if not proposed > value + 1e-12 * abs(value):
            break
        permutation, value = found, proposed
    return permutation, n_assignments


def _released_value(
    K: Floats, L: Floats, cost: Floats | None, permutation: Permutation, limit: float
) -> float:
    """Objective of `release`."""
    rows = np.flatnonzero(permutation >= 0)
    partners = permutation[rows]
    apart = K[np.ix_(rows, rows)] - L[np.ix_(partners, partners)]
    value = limit * rows.size * (rows.size - 1) - 0.5 * float(np.vdot(apart, apart))
    if cost is not None:
        value -= float(cost[rows, partners].sum())
    return value


def _pair_gains(
    K: Floats, L: Floats, cost: Floats | None, permutation: Permutation, limit: float
) -> Floats:
    """Change of `_released_value` if an item gets a partner and the others stay."""
    rows = np.flatnonzero(permutation >= 0)
    partners = permutation[rows]
    among = K[:, rows]
    apart = (
        (among**2).sum(axis=1)[:, None]
        - 2.0 * (among @ L[partners])
        + (L[partners] ** 2).sum(axis=0)[None, :]
    )
    n_others = np.full(permutation.size, rows.size, dtype=float)
    # An item is not compared with itself.
    apart[rows] -= L[partners] ** 2
    n_others[rows] -= 1
    gains: Floats = 2.0 * (limit * n_others[:, None] - 0.5 * apart)
    if cost is not None:
        gains -= cost
    return gains


def confidence(outcome: Outcome, *, n_resamples: int, n_jobs: int | None) -> Floats:
    """How often each item keeps its partner if all are assigned from a random third of the pairs.

    Right pairs are found again from almost any third. 0 for unmatched items.
    """
    problem, permutation = outcome.problem, outcome.matching
    matched = np.flatnonzero(permutation >= 0)
    # A fixed seed: confidence should not depend on the user's random state.
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=n_resamples)

    def agrees(seed: int) -> NDArray[np.bool_]:
        chosen = np.random.RandomState(seed).rand(matched.size) < RESAMPLED_SHARE
        rows = matched[chosen]
        if rows.size == 0:
            return np.zeros(permutation.size, dtype=bool)
        found, _ = assign_free(problem, outcome.gradient(rows))
        return np.asarray(found == permutation)

    return np.mean(map_parallel(agrees, seeds, n_jobs=n_jobs), axis=0)


def chance_level(problem: QuadraticProblem) -> float:
    """Expected objective of a random matching."""
    n_items, n_partners = problem.shape
    n_pairs, n_partner_pairs = n_items * (n_items - 1), n_partners * (n_partners - 1)
    expected = float(problem.K.sum()) * float(problem.L.sum()) / n_partner_pairs
    if problem.squared_L is not None:
        expected -= 0.5 * n_pairs * float(problem.squared_L.sum()) / n_partner_pairs
    if problem.cost is not None:
        expected -= n_items * float(problem.cost.mean())
    return expected


def disagreement(L: Floats, permutation: Permutation, other: Permutation) -> float:
    """Mean squared kernel distance between the partners of two matchings; 1 for random ones."""
    diagonal = np.diag(L)
    apart = diagonal[permutation] + diagonal[other] - 2.0 * L[permutation, other]
    typical = typical_distance(L)
    return float(apart.mean() / typical) if typical > 0 else 0.0


def typical_distance(L: Floats) -> float:
    """Mean squared kernel distance between two items."""
    n_items, own = L.shape[0], float(np.trace(L))
    return 2.0 * (own / n_items - (float(L.sum()) - own) / (n_items * (n_items - 1)))
