"""The default method: many starts, strict ascent, the spectral-power path, and soft shares.

Here too is what all methods share: what a search finds, pairs that had better part, and how far
to trust what was found.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unshuffle._mean_field import mean_field, one_hot
from unshuffle._parallel import map_parallel, product
from unshuffle._progress import Callback
from unshuffle._quadratic import QuadraticProblem, assign_free, climb, matched_sums
from unshuffle.assignment import solve_assignment
from unshuffle.matching._kernel_pair import (
    Array,
    CountingSearch,
    KernelPair,
    Maker,
    Permutation,
    root_mean_square,
    starts,
)

# Each stage starts where the last ended. Small powers let fine differences between items count
# as much as broad ones: what tells items apart once the broad order is right.
POWERS = (0.75, 0.5, 0.35, 0.25, 0.15)
N_LEVELS = len(POWERS) + 1
# The path is followed from so many of the best starts, if they are within this share of the best.
N_FOLLOWED = 3
FOLLOWED_WITHIN = 0.02
# It is also followed from this many rivals, starts with clearly different partners. A rival must
# win by this factor.
N_RIVALS = 2
RIVAL_MARGIN = 1.05
# Two matchings differ clearly if their partners lie this far apart (random partners: 1).
CLEARLY_DIFFERENT = 0.5
# Kernels that correlate more than this under the matching leave no noise to average over.
AGREE_EXACTLY = 0.98
# Ranks of what a finished search has found, and of that once its pairs have parted.
FINISHED, PARTED = (np.inf, 0.0), (np.inf, 1.0)
MOST_RELEASES = 50
# As a share of chance; every pair stays, and a larger limit would drown the disagreements.
NEVER = 1e6
RESAMPLED_SHARE = 0.35


@dataclass(frozen=True)
class Run:
    """Where one ascent ended, and the full-spectrum objective after each step that led there."""

    value: float
    permutation: Permutation
    converged: bool
    path: list[float]


@dataclass(frozen=True)
class Outcome:
    """What a search has found."""

    permutation: Permutation  # partner of each item of the smaller collection
    converged: bool  # whether every run that led to it ended by itself
    objective_path: list[float]  # full-spectrum objective after each step that led to it
    ends: list[Permutation]  # compared in the end, by `problem`; first the one that was chosen
    problem: QuadraticProblem  # what it solves, at the spectral power of the last stage
    parted: Permutation | None = None  # with -1 where items are left alone; None if none may be

    @property
    def answer(self) -> Permutation:
        """The matching as the user asked for it."""
        return self.permutation if self.parted is None else self.parted


class MatchSearch(CountingSearch[Outcome]):
    """Progress of a fit and the best matching it has seen."""

    def __init__(self, pair: KernelPair, callback: Callback | None) -> None:
        super().__init__(callback)
        self.pair = pair

    @property
    def found(self) -> Outcome:
        """The best so far, of a search that has seen one."""
        if self.best is None:
            raise RuntimeError("The search was stopped before its first matching.")
        return self.best

    def recorder(
        self, stage: str, *, level: int, fraction: float, path: list[float]
    ) -> Callable[[float, Permutation], None]:
        """Make a function to call after each accepted step of one run.

        It appends the full-spectrum objective to `path`, keeps the matching if it is the best of
        the highest `level` so far, and tells the user's callback.
        """

        def record(value: float, permutation: Permutation) -> None:
            objective = self.pair.objective(permutation)
            path.append(objective)
            kept = permutation.copy()
            seen = Outcome(kept, False, [objective], [kept], self.pair.full_problem)
            self.offer(seen, (level, value))
            self.step(objective, self.pair.to_user(kept), stage=stage, fraction=fraction)

        return record

    def part_pairs(self, unmatched_cost: float | None) -> None:
        """Part pairs of the best matching, where the user wants that; nothing replaces it then."""
        best = self.best
        if best is None:
            return
        if unmatched_cost is not None:
            parted, n_assignments = release(best.problem, best.permutation, unmatched_cost)
            self.count(n_assignments)
            best = replace(best, parted=parted)
        self.offer(best, PARTED)


def solve_refined(
    search: MatchSearch,
    *,
    n_init: int,
    max_iter: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
) -> Outcome:
    """Climb from every start, follow the spectral-power path from the best, then go by shares.

    The full-spectrum objective chooses among the starts, the objective of the last stage among
    the ends of the path. Between stages the full-spectrum objective is no guide: it falls by a
    percent along the path while the number of right pairs grows.
    """
    pair, full = search.pair, search.pair.full_problem
    makers = starts(pair, n_init, rng)

    def first_run(numbered: tuple[int, Maker]) -> Run:
        number, maker = numbered
        path: list[float] = []
        fraction = 0.6 * (number + 1) / len(makers)
        record = search.recorder("climbing", level=0, fraction=fraction, path=path)
        start = maker()
        record(full.value(start), start)
        climbed = climb(full, start, max_iter=max_iter, report=record)
        search.count(climbed.n_assignments)
        return Run(climbed.value, climbed.permutation, climbed.converged, path)

    def next_run(leader: Run, problem: QuadraticProblem, level: int) -> Run:
        path = list(leader.path)
        fraction = 0.6 + 0.4 * level / N_LEVELS
        record = search.recorder("refining", level=level, fraction=fraction, path=path)
        climbed = climb(problem, leader.permutation, max_iter=max_iter, report=record)
        record(climbed.value, climbed.permutation)
        search.count(climbed.n_assignments)
        converged = leader.converged and climbed.converged
        return Run(climbed.value, climbed.permutation, converged, path)

    leaders, n_best = _leaders(map_parallel(first_run, enumerate(makers), n_jobs=n_jobs), pair.L)
    for level, power in enumerate(POWERS, start=1):
        problem = pair.problem(power)
        run = partial(next_run, problem=problem, level=level)
        leaders = map_parallel(run, leaders, n_jobs=n_jobs)
    best = _choose(leaders, n_best, problem)
    return Outcome(
        permutation=_by_shares(problem, best, search),
        converged=best.converged,
        objective_path=best.path,
        ends=[run.permutation for run in (best, *leaders)],
        problem=problem,
    )


def _leaders(runs: list[Run], L: Array) -> tuple[list[Run], int]:
    """Best runs that ended at different matchings, then rivals; and the number of the former.

    The latter are followed however low they are: at the full spectrum an answer can score best
    by the broad order alone, and only fine differences tell it from its rivals.
    """
    ordered = sorted(runs, key=lambda run: -run.value)
    best = ordered[0]
    least = best.value - FOLLOWED_WITHIN * abs(best.value)
    leaders: list[Run] = []
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


def _choose(leaders: list[Run], n_best: int, problem: QuadraticProblem) -> Run:
    """Best end of the path among the best starts, or that of a rival that is clearly better.

    The full-spectrum objective put the rivals behind, so they must win by more than the noise
    of the last stage.
    """
    best = max(leaders[:n_best], key=lambda run: run.value)
    highest = max(leaders, key=lambda run: run.value)
    floor = chance(problem)
    return highest if highest.value - floor > RIVAL_MARGIN * (best.value - floor) else best


def _by_shares(problem: QuadraticProblem, best: Run, search: MatchSearch) -> Permutation:
    """Matching with the largest expected number of right pairs around the best one found."""
    trace, square = matched_sums(problem.K, problem.L, best.permutation)
    agreement = trace / (float(np.linalg.norm(problem.K)) * np.sqrt(square) or 1.0)
    if agreement > AGREE_EXACTLY:
        return best.permutation
    record = search.recorder("weighing", level=N_LEVELS, fraction=1.0, path=best.path)
    shares = mean_field(problem, one_hot(best.permutation, problem.L.shape[0]))
    permutation, _ = assign_free(problem, shares)
    search.count(1)
    record(problem.value(permutation), permutation)
    return permutation


def release(
    problem: QuadraticProblem, permutation: Permutation, unmatched_cost: float
) -> tuple[Permutation, int]:
    """Part the pairs that disagree too much with the rest, and count the assignments solved.

    The disagreement of a pair (i, a) is the mean of (K[i, j] - L[a, p(j)])^2 / 2 over the other
    pairs (j, p(j)), both kernels scaled alike, as a share of what a random pair has. Matched
    pairs gain `unmatched_cost` less their disagreement, summed over all two of them; that
    objective is climbed by assignments in which an item may stay alone.
    """
    scale_K, scale_L = root_mean_square(problem.K), root_mean_square(problem.L)
    K, L = problem.K / scale_K, problem.L / scale_L
    cost = None if problem.cost is None else problem.cost / (scale_K * scale_L)
    means = [float(S.sum()) / (S.shape[0] * (S.shape[0] - 1)) for S in (K, L)]
    limit = min(float(unmatched_cost), NEVER) * (1.0 - means[0] * means[1])
    value = _parted_value(K, L, cost, permutation, limit)
    n_assignments = 0
    while n_assignments < MOST_RELEASES:
        gains = _pair_gains(K, L, cost, permutation, limit)
        found = solve_assignment(
            gains, maximize=True, frozen=problem.frozen, unmatched_cost=0.0
        ).columns
        n_assignments += 1
        proposed = _parted_value(K, L, cost, found, limit)
        if not proposed > value + 1e-12 * abs(value):
            break
        permutation, value = found, proposed
    return permutation, n_assignments


def _parted_value(
    K: Array, L: Array, cost: Array | None, permutation: Permutation, limit: float
) -> float:
    """What `release` climbs."""
    rows = np.flatnonzero(permutation >= 0)
    partners = permutation[rows]
    apart = K[np.ix_(rows, rows)] - L[np.ix_(partners, partners)]
    value = limit * rows.size * (rows.size - 1) - 0.5 * float(np.vdot(apart, apart))
    if cost is not None:
        value -= float(cost[rows, partners].sum())
    return value


def _pair_gains(
    K: Array, L: Array, cost: Array | None, permutation: Permutation, limit: float
) -> Array:
    """Change of that value when each item takes each partner, the others as they stand."""
    rows = np.flatnonzero(permutation >= 0)
    partners = permutation[rows]
    among = K[:, rows]
    apart = (
        (among**2).sum(axis=1)[:, None]
        - 2.0 * (among @ L[partners])
        + (L[partners] ** 2).sum(axis=0)[None, :]
    )
    n_others = np.full(permutation.size, rows.size, dtype=float)
    # An item is not compared with itself: take its own pair out of both sums.
    apart[rows] -= L[partners] ** 2
    n_others[rows] -= 1
    gains: Array = 2.0 * (limit * n_others[:, None] - 0.5 * apart)
    if cost is not None:
        gains -= cost
    return gains


def confidence(outcome: Outcome, *, n_resamples: int, n_jobs: int | None) -> Array:
    """How often each item keeps its partner when it sees only a third of the other pairs.

    All items are assigned anew by their similarities to a random third of the pairs; a right
    pair is found again from almost any third, a wrong one hangs on a few others. 0 where an item
    has no partner.
    """
    problem, permutation = outcome.problem, outcome.answer
    matched = np.flatnonzero(permutation >= 0)
    # Fixed: how far to trust an answer should not depend on the user's random state.
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=n_resamples)

    def agrees(seed: int) -> NDArray[np.bool_]:
        chosen = np.random.RandomState(seed).rand(matched.size) < RESAMPLED_SHARE
        rows = matched[chosen]
        if rows.size == 0:
            return np.zeros(permutation.size, dtype=bool)
        benefit = 2.0 * product(problem.K[:, rows], problem.L[permutation[rows]])
        if problem.squared_L is not None:
            benefit -= problem.squared_L[permutation[rows]].sum(axis=0)
        if problem.cost is not None:
            benefit -= problem.cost * (rows.size / permutation.size)
        found, _ = assign_free(problem, benefit)
        return np.asarray(found == permutation)

    return np.mean(map_parallel(agrees, seeds, n_jobs=n_jobs), axis=0)


def ambiguity(broad: QuadraticProblem, L: Array, outcome: Outcome) -> float:
    """Objective of the best matching that is clearly different, as a share of the best of all.

    A rival must come close at the full spectrum, `broad`, and at the last stage of the path: it
    may share the broad order and miss the fine differences, or, where items form tight groups,
    fit within the groups and exchange them. From 0 (no rival was found) to 1 (a rival is as good),
    counted from what a random matching reaches. `L` tells which partners are alike.
    """
    best, fine = outcome.ends[0], outcome.problem
    problems = [broad, fine]
    if fine.cost is not None:
        # What both pay alike brings them no closer.
        problems += [broad.without_cost(), fine.without_cost()]
    shares = [
        min(_share(problem, end, best) for problem in problems)
        for end in outcome.ends
        if disagreement(L, best, end) > CLEARLY_DIFFERENT
    ]
    return max(shares, default=0.0)


def _share(problem: QuadraticProblem, rival: Permutation, best: Permutation) -> float:
    """Objective of a rival as a share of the best, both counted from chance; from 0 to 1."""
    floor = chance(problem)
    most = problem.value(best) - floor
    if most <= 0:
        return 1.0
    return float(np.clip((problem.value(rival) - floor) / most, 0.0, 1.0))


def chance(problem: QuadraticProblem) -> float:
    """Objective to expect of a random matching."""
    n_items, n_partners = problem.shape
    n_pairs, n_partner_pairs = n_items * (n_items - 1), n_partners * (n_partners - 1)
    expected = float(problem.K.sum()) * float(problem.L.sum()) / n_partner_pairs
    if problem.squared_L is not None:
        expected -= 0.5 * n_pairs * float(problem.squared_L.sum()) / n_partner_pairs
    if problem.cost is not None:
        expected -= n_items * float(problem.cost.mean())
    return expected


def disagreement(L: Array, permutation: Permutation, other: Permutation) -> float:
    """Mean squared distance between the partners two matchings choose; random partners have 1.

    Near-duplicates are close in the kernel, so taking one for the other is no disagreement.
    """
    diagonal = np.diag(L)
    apart = diagonal[permutation] + diagonal[other] - 2.0 * L[permutation, other]
    n_items = L.shape[0]
    typical = 2.0 * (diagonal.mean() - (L.sum() - diagonal.sum()) / (n_items * (n_items - 1)))
    return float(apart.mean() / typical) if typical > 0 else 0.0
