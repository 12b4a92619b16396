"""The default method: many starts, strict ascent, the spectral-power path, and soft shares."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import map_parallel
from unshuffle.assignment import (
    Climbed,
    QuadraticProblem,
    assign_free,
    climb,
    matched_sums,
    mean_field,
    one_hot,
)
from unshuffle.matching._kernel_pair import Array, KernelPair
from unshuffle.matching._search import Outcome, Search
from unshuffle.matching._starts import starts
from unshuffle.matching._trust import chance, truly_different

Permutation = NDArray[np.intp]

# Each stage starts where the last ended. Small powers let fine differences between items count
# as much as broad ones: what tells items apart once the broad order is right.
POWERS = (0.75, 0.5, 0.35, 0.25, 0.15)
# The path is followed from so many of the best starts, if they are within this share of the best.
N_FOLLOWED = 3
FOLLOWED_WITHIN = 0.02
# And from so many that send items to truly different partners, which must then win by this factor.
N_RIVALS = 2
RIVAL_MARGIN = 1.05
# Kernels that correlate more than this under the matching leave no noise to average over.
AGREE_EXACTLY = 0.98


@dataclass(frozen=True)
class _Run:
    climbed: Climbed
    path: list[float]
    converged: bool


def solve_refined(
    pair: KernelPair,
    search: Search,
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
    runs = _climb_from_starts(pair, search, n_init, max_iter, n_jobs, rng)
    leaders, n_best = _leaders(runs, pair.L)
    for level, power in enumerate(POWERS, start=1):
        problem = pair.problem(power)
        leaders = _climb_stage(
            problem, leaders, search, max_iter, n_jobs, level=level, n_levels=len(POWERS) + 1
        )
    best = _choose(leaders, n_best, problem)
    return Outcome(
        permutation=_by_shares(problem, best, search, level=len(POWERS) + 1),
        converged=best.converged,
        objective_path=best.path,
        ends=[run.climbed.permutation for run in (best, *leaders)],
        problem=problem,
    )


def _climb_from_starts(
    pair: KernelPair,
    search: Search,
    n_init: int,
    max_iter: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
) -> list[_Run]:
    full = pair.full_problem
    makers = list(starts(pair, n_init, rng))

    def run(numbered: tuple[int, Callable[[], Permutation]]) -> _Run:
        number, maker = numbered
        path: list[float] = []
        fraction = 0.6 * (number + 1) / len(makers)
        record = search.recorder("climbing", level=0, fraction=fraction, path=path)
        start = maker()
        record(full.value(start), start)
        climbed = climb(full, start, max_iter=max_iter, report=record)
        search.count(climbed.n_assignments)
        return _Run(climbed, path, climbed.converged)

    return map_parallel(run, enumerate(makers), n_jobs=n_jobs)


def _leaders(runs: list[_Run], L: Array) -> tuple[list[_Run], int]:
    """Best runs that ended at different matchings, then rivals; and the number of the former.

    The latter are followed however low they are: at the full spectrum an answer can score best
    by the broad order alone, and only fine differences tell it from its rivals.
    """
    ordered = sorted(runs, key=lambda run: -run.climbed.value)
    best = ordered[0].climbed
    least = best.value - FOLLOWED_WITHIN * abs(best.value)
    leaders: list[_Run] = []
    for run in ordered:
        known = any(
            np.array_equal(run.climbed.permutation, leader.climbed.permutation)
            for leader in leaders
        )
        if run.climbed.value >= least and not known and len(leaders) < N_FOLLOWED:
            leaders.append(run)
    rivals = [ordered[0]]
    for run in ordered:
        different = [
            truly_different(L, rival.climbed.permutation, run.climbed.permutation)
            for rival in rivals
        ]
        if all(different) and len(rivals) <= N_RIVALS:
            rivals.append(run)
    n_best = len(leaders)
    leaders += [rival for rival in rivals if not any(rival is leader for leader in leaders)]
    return leaders, n_best


def _choose(leaders: list[_Run], n_best: int, problem: QuadraticProblem) -> _Run:
    """Best end of the path among the best starts, or that of a rival that is clearly better.

    The full-spectrum objective put the rivals behind, so they must win by more than the noise
    of the last stage.
    """
    best = max(leaders[:n_best], key=lambda run: run.climbed.value)
    highest = max(leaders, key=lambda run: run.climbed.value)
    floor = chance(problem)
    if highest.climbed.value - floor > RIVAL_MARGIN * (best.climbed.value - floor):
        return highest
    return best


def _climb_stage(
    problem: QuadraticProblem,
    leaders: list[_Run],
    search: Search,
    max_iter: int,
    n_jobs: int | None,
    *,
    level: int,
    n_levels: int,
) -> list[_Run]:
    def run(leader: _Run) -> _Run:
        path = list(leader.path)
        fraction = 0.6 + 0.4 * level / n_levels
        record = search.recorder("refining", level=level, fraction=fraction, path=path)
        climbed = climb(problem, leader.climbed.permutation, max_iter=max_iter, report=record)
        record(climbed.value, climbed.permutation)
        search.count(climbed.n_assignments)
        return _Run(climbed, path, leader.converged and climbed.converged)

    return map_parallel(run, leaders, n_jobs=n_jobs)


def _by_shares(
    problem: QuadraticProblem, best: _Run, search: Search, *, level: int
) -> Permutation:
    """Matching with the largest expected number of right pairs around the best one found."""
    if _agreement(problem, best.climbed.permutation) > AGREE_EXACTLY:
        return best.climbed.permutation
    record = search.recorder("weighing", level=level, fraction=1.0, path=best.path)
    shares = mean_field(problem, one_hot(best.climbed.permutation, problem.L.shape[0]))
    permutation, _ = assign_free(problem, shares)
    search.count(1)
    record(problem.value(permutation), permutation)
    return permutation


def _agreement(problem: QuadraticProblem, permutation: Permutation) -> float:
    """Cosine between the similarities of the two sides over the matched pairs."""
    product, square = matched_sums(problem.K, problem.L, permutation)
    return product / (float(np.linalg.norm(problem.K)) * np.sqrt(square) or 1.0)
