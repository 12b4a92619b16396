"""Alignment of several collections, one at a time to the product of the others; its evidence."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unshuffle._quadratic.problem import NOTHING_FROZEN, QuadraticProblem, climb
from unshuffle._run.search import Callback
from unshuffle._run.types import Floats, Permutations
from unshuffle.kernels import SpectralPower, zero_diagonal
from unshuffle.matching._dense.entropy import multiway_entropy
from unshuffle.matching._dense.pair import CountingSearch, KernelPair, list_starts
from unshuffle.matching._dense.paper import (
    RELATIVE_GAIN,
    climb_entropy,
    entropy_ridge,
    needs_positive_kernels,
)
from unshuffle.matching._several.shared_columns import NEARLY, SharedColumns

Report = Callable[[float, Permutations], None]

# Starts for matching a collection to the reference: profiles, both signs of the leading
# eigenvector, annealing. Each further round of references tries as many more.
N_STARTS = 4
# Spectral powers to compare aligned kernels at, and to match two collections again at.
COMPARED_AT, REWEIGHTED_AT = 0.15, 0.25
# Log-odds that the alignment as a whole is right: weights of persistence and the smallest excess,
# then a constant.
LOG_ODDS = (3.5, 4.5, -3.2)


@dataclass(frozen=True)
class Alignment:
    """Result of one ascent."""

    permutations: Permutations  # items of the T collections in the common order, (T, m)
    path: list[float]  # objective after each step; empty if the search was stopped
    converged: bool
    decided_by_columns: bool = False  # preferred to one that is at least as good


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Kernel matrices of several collections, and the objective of an alignment."""

    kernels: list[Floats]  # for comparing two collections
    factors: list[Floats]  # factors of the product over all collections, for multiway HSIC
    entropy_factors: list[Floats] | None  # for the joint entropy; None maximizes multiway HSIC
    columns: SharedColumns | None = None  # to choose between rivals

    @cached_property
    def ridge(self) -> float:
        """Ridge of the joint entropy."""
        return 0.0 if self.entropy_factors is None else entropy_ridge(self.entropy_factors)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of collections and of items in each."""
        return len(self.kernels), self.kernels[0].shape[0]

    def part(self, items: Permutations) -> "Ensemble":
        """Some items of each collection, (T, n_items), in that order."""
        by_entropy = self.entropy_factors
        return Ensemble(
            aligned(self.kernels, items),
            aligned(self.factors, items),
            None if by_entropy is None else aligned(by_entropy, items),
            None if self.columns is None else self.columns.part(items),
        )

    def hsic(self, permutations: Permutations) -> float:
        """Multiway HSIC, whatever the objective."""
        return multiway_hsic(aligned(self.factors, permutations))

    def value(self, permutations: Permutations) -> float:
        """Multiway HSIC, or minus the joint entropy; larger is better."""
        if self.entropy_factors is None:
            return self.hsic(permutations)
        return -multiway_entropy(aligned(self.entropy_factors, permutations), ridge=self.ridge)


class AlignmentSearch(CountingSearch[Alignment]):
    """Progress of a fit and the best alignment it has seen."""

    def __init__(self, ensemble: Ensemble, callback: Callback | None, share: float = 1.0) -> None:
        super().__init__(callback)
        self.ensemble = ensemble
        self.share = share  # of the whole work
        # All collections matched to one, by the number of that one.
        self.starts: dict[int, Permutations] = {}

    def keep_start(self, reference: int, permutations: Permutations) -> None:
        """Keep how all collections were matched to one."""
        if not self._is_kept("keep_start", reference, permutations):
            self.starts[reference] = permutations

    def make_recorder(self, path: list[float], fraction: float, stage: str) -> Report:
        """Make a function that records each accepted step of one ascent."""

        def record(value: float, permutations: Permutations) -> None:
            path.append(value)
            self.offer(Alignment(permutations.copy(), [], False), value)
            self.step(value, onto_first(permutations), stage=stage, fraction=self.share * fraction)

        return record


def solve_multiway(
    search: AlignmentSearch,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    n_jobs: int | None,
    rng: np.random.RandomState,
) -> Alignment:
    """Climb from starts that match all collections to one of them; keep the best.

    Shared columns give one more start, and may decide between the best and its rivals.
    """
    ensemble = search.ensemble
    n_collections, _ = ensemble.shape
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_init)
    columns = ensemble.columns
    n_runs = n_init if columns is None else n_init + 1

    def start(number: int) -> Permutations:
        if columns is not None and number == n_init:
            return columns.match_to(0)
        n_rounds, reference = divmod(number, n_collections)
        # Matching pairs takes most of the time, so it reports steps too.
        seen = search.make_recorder([], (number + 0.5) / n_runs, "starting")
        n_starts = N_STARTS * (1 + n_rounds)
        permutations = match_to_reference(search, reference, n_starts, seeds[number], seen)
        if n_rounds == 0:
            search.keep_start(reference, onto_first(permutations))
        return permutations

    def run(number: int) -> Alignment:
        path: list[float] = []
        record = search.make_recorder(path, (number + 1) / n_runs, "climbing")
        permutations = start(number)
        if ensemble.entropy_factors is None:
            record(ensemble.value(permutations), permutations)
            ended = climb_hsic(search, permutations, record, max_iter=max_iter, tol=tol)
        else:
            # Exchanges alone get stuck early, so start where HSIC ends.
            permutations, _ = climb_hsic(search, permutations, None, max_iter=max_iter, tol=tol)
            record(ensemble.value(permutations), permutations)
            ended = climb_entropy(
                aligned(ensemble.entropy_factors, permutations),
                permutations,
                record,
                ridge=ensemble.ridge,
                max_iter=max_iter,
                tol=tol,
            )
        return Alignment(ended[0], path, ended[1])

    by_entropy = ensemble.entropy_factors is not None
    with needs_positive_kernels("objective", "hsic") if by_entropy else nullcontext():
        runs = search.map(run, range(n_runs), n_jobs=n_jobs)
    return choose(ensemble, runs)


def choose(ensemble: Ensemble, runs: Sequence[Alignment]) -> Alignment:
    """The best alignment or, if its columns do not agree, its best rival whose columns do."""
    best = max(runs, key=lambda each: each.path[-1])
    columns = ensemble.columns
    if columns is None or columns.agree(best.permutations):
        return best
    enough = NEARLY * ensemble.hsic(best.permutations)
    rivals = [
        each
        for each in runs
        if ensemble.hsic(each.permutations) >= enough and columns.agree(each.permutations)
    ]
    if not rivals:
        return best
    return replace(max(rivals, key=lambda each: each.path[-1]), decided_by_columns=True)


def match_to_reference(
    search: AlignmentSearch, reference: int, n_starts: int, seed: int, report: Report
) -> Permutations:
    """Match every collection to one of them, by the best of several ascents each."""
    kernels = search.ensemble.kernels
    n_collections, n_items = search.ensemble.shape
    permutations = np.tile(np.arange(n_items), (n_collections, 1))
    rng = np.random.RandomState(seed)
    for t in range(n_collections):
        if t == reference:
            continue
        pair = KernelPair(kernels[reference], kernels[t], None, NOTHING_FROZEN)
        problem = pair.full_problem
        ends = [climb(problem, start()) for start in list_starts(pair, n_starts, rng)]
        search.count(sum(end.n_assignments for end in ends))
        permutations[t] = max(ends, key=lambda end: end.value).permutation
        report(search.ensemble.value(permutations), permutations)
    return permutations


def match_near_columns(ensemble: Ensemble, columns: SharedColumns, reference: int) -> Permutations:
    """Match every collection to one of them, by ascents from the order of their columns."""
    kernels = ensemble.kernels
    permutations = columns.match_to(reference)
    for t, start in enumerate(permutations):
        pair = KernelPair(kernels[reference], kernels[t], None, NOTHING_FROZEN)
        permutations[t] = climb(pair.full_problem, start).permutation
    return permutations


def climb_hsic(
    search: AlignmentSearch,
    permutations: Permutations,
    report: Report | None,
    *,
    max_iter: int,
    tol: float,
) -> tuple[Permutations, bool]:
    """Raise multiway HSIC by reordering one collection at a time, section 4.2."""
    factors = search.ensemble.factors
    kernels = aligned(factors, permutations)
    permutations, value = permutations.copy(), multiway_hsic(kernels)
    for _ in range(max_iter):
        before = value
        for t, K in enumerate(factors):
            problem = problem_for_one(kernels[:t] + kernels[t + 1 :], K)
            climbed = climb(problem, permutations[t], max_iter=max_iter)
            search.count(climbed.n_assignments)
            if climbed.value > value + RELATIVE_GAIN * abs(value):
                permutations[t], value = climbed.permutation, climbed.value
                kernels[t] = K[np.ix_(permutations[t], permutations[t])]
                if report is not None:
                    report(value, permutations)
        if not value > before + max(tol, RELATIVE_GAIN) * abs(before):
            return permutations, True
    return permutations, False


def problem_for_one(others: list[Floats], K: Floats) -> QuadraticProblem:
    """Multiway HSIC as a function of the order of one collection, the others fixed."""
    weights = multiway_weights(others) / K.shape[0] ** 2
    return QuadraticProblem.with_linear_diagonals(weights, K)


def aligned(kernels: list[Floats], permutations: Permutations) -> list[Floats]:
    """Kernel matrices in the common order."""
    return [K[np.ix_(p, p)] for K, p in zip(kernels, permutations, strict=True)]


def onto_first(permutations: Permutations) -> Permutations:
    """The same alignment in the order of the first collection."""
    return np.asarray(permutations[:, np.argsort(permutations[0])])


def multiway_hsic(kernels: Sequence[Floats]) -> float:
    """Squared distance between the joint mean and the product of the means, eqs. (14) and (15).

    m^-2 1'[prod K_t]1 + prod(m^-2 1'K_t 1) - 2 m^-(T+1) 1'[prod K_t 1] of uncentered kernels in a
    common order. Eq. (15) is printed without the powers of m.
    """
    return float(np.vdot(multiway_weights(kernels[1:]), kernels[0])) / kernels[0].shape[0] ** 2


def multiway_weights(kernels: Sequence[Floats]) -> Floats:
    """Matrix W such that multiway HSIC with one more kernel K is m^-2 times the sum of W * K.

    W[i, j] is the inner product of items i and j in the product feature space, relative to the
    product of the means. W is positive semi-definite, so the objective is convex in the
    permutation matrix of one collection.
    """
    joint = np.ones_like(kernels[0])
    to_mean = np.ones(joint.shape[0])
    squared_mean = 1.0
    for K in kernels:
        row_means = K.mean(axis=1)
        joint *= K
        to_mean *= row_means
        squared_mean *= float(row_means.mean())
    joint -= to_mean[:, None] + to_mean[None, :] - squared_mean
    return joint


@dataclass(frozen=True)
class AlignmentEvidence:
    """What speaks for an alignment."""

    persistence: float  # share of the tuples that halves of the collections give again
    excesses: Floats  # agreement of each collection with the others beyond chance, at most 1
    consistency: float  # share of the tuples that matchings in pairs give too
    by_columns: bool = False  # whether columns decided against one that is at least as good

    @property
    def expected_accuracy(self) -> float:
        """Share of the tuples believed right: consistent ones, if the whole is right."""
        measures = np.array([self.persistence, self.excesses.min(), 1.0])
        whole = 1.0 / (1.0 + float(np.exp(-(measures @ LOG_ODDS))))
        # Of two alignments that are about equally good, one is right at most.
        return self.consistency * (whole / 2 if self.by_columns else whole)


def gather_alignment_evidence(
    search: AlignmentSearch,
    permutations: Permutations,
    solve: Callable[[Ensemble], Permutations],
    *,
    by_columns: bool,
) -> AlignmentEvidence | None:
    """Align two halves of the tuples again, then different halves of the collections.

    Different halves hold items of the same kind, but no right tuple: what they reach is chance.
    `by_columns` says that the columns decided. None if all items of a half of some collection are
    alike.
    """
    ensemble = search.ensemble
    n_collections, n_items = ensemble.shape
    size = n_items // 2
    # A fixed seed: trust should not depend on the user's random state.
    order = np.random.RandomState(0).permutation(n_items)
    halves = [permutations[:, np.sort(half)] for half in (order[:size], order[size : 2 * size])]
    parts = [ensemble.part(half) for half in halves]
    if any(SpectralPower(K).eigenvalues_.size == 0 for part in parts for K in part.kernels):
        return None
    kept, agreements, chances = [], [], []
    for half, part in zip(halves, parts, strict=True):
        agreements.append(correlations(part.kernels))
        # In their own order, so that ties do not lead back to the answer.
        items = np.sort(half, axis=1)
        again = np.take_along_axis(items, solve(ensemble.part(items)), axis=1)
        kept.append(float((again == half).all(axis=0).mean()))
    # Of any two among the first four collections, one run or both take different halves.
    numbers = np.arange(n_collections)
    for side in (numbers % 2, (numbers + 1) // 2 % 2):
        part = ensemble.part(np.sort(np.where(side[:, None] == 0, *halves), axis=1))
        apart = side[:, None] != side[None, :]
        chances.append(correlations(aligned(part.kernels, solve(part)))[apart].mean())
    chance = float(np.mean(chances))
    excess = (np.mean(agreements, axis=0) - chance) / max(1.0 - chance, 1e-9)
    others = (excess.sum(axis=1) - np.diag(excess)) / (n_collections - 1)
    consistent = consistency(search, permutations, by_columns=by_columns)
    return AlignmentEvidence(float(np.mean(kept)), others, consistent, by_columns)


def correlations(kernels: list[Floats]) -> Floats:
    """Correlations of the off-diagonal entries of centered kernels, fine differences amplified."""
    amplified = [zero_diagonal(SpectralPower(K)(COMPARED_AT)).ravel() for K in kernels]
    units = np.array([each / (np.linalg.norm(each) or 1.0) for each in amplified])
    return np.asarray(units @ units.T)


def consistency(search: AlignmentSearch, permutations: Permutations, *, by_columns: bool) -> float:
    """Share of the tuples found by matching all collections to one, for two choices of that one.

    If the columns decided, these matchings start from the columns too, since others may be mirror
    images. Two collections are matched again with more weight on fine differences instead; since
    many wrong pairs stay too, the share is counted from one half.
    """
    kernels = search.ensemble.kernels
    if len(kernels) == 2:
        pair = KernelPair(kernels[0], kernels[1], None, NOTHING_FROZEN)
        again = climb(pair.problem(REWEIGHTED_AT), permutations[1]).permutation
        return max(0.0, 2.0 * float((again == permutations[1]).mean()) - 1.0)
    columns = search.ensemble.columns
    starts = {} if by_columns else dict(search.starts)
    for reference in range(2):  # if n_init=1, there is one start
        if by_columns and columns is not None:
            matched = match_near_columns(search.ensemble, columns, reference)
            starts[reference] = onto_first(matched)
        elif reference not in starts:
            matched = match_to_reference(search, reference, N_STARTS, 0, lambda *_: None)
            starts[reference] = onto_first(matched)
    n_found = sum((start == permutations).all(axis=0).astype(int) for start in starts.values())
    return float(np.mean(np.asarray(n_found) >= 2))
