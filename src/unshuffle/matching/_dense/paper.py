"""The paper's methods: full steps, steps with bias correction, and minimal entropy."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.linalg import LinAlgError

from unshuffle._quadratic.mean_field import best_step, frank_wolfe, one_hot
from unshuffle._quadratic.problem import QuadraticProblem, assign_free, climb
from unshuffle._run.parallel import eigh
from unshuffle._run.types import Floats, Permutation
from unshuffle.kernels import center
from unshuffle.matching._dense.entropy import (
    entropy_swap_changes,
    entropy_value,
    entropy_weights,
    multiway_entropy,
)
from unshuffle.matching._dense.pair import (
    KernelPair,
    Start,
    match_leading_eigenvectors,
    match_ranks,
)
from unshuffle.matching._dense.search import MatchSearch, Outcome, SearchRun

Record = Callable[[float, Permutation], None]
# From a start to the final value and matching, and whether the ascent converged.
Ascent = Callable[[Permutation, Record], tuple[float, Permutation, bool]]

STEPS = np.arange(1, 11) / 10
ENTROPY_RIDGE = 1e-2  # share of the mean diagonal that keeps the log-determinant finite
RELATIVE_GAIN = 1e-11  # smaller gains are rounding errors, and would cycle


def solve_by_paper(
    search: MatchSearch, *, method: str, max_iter: int, tol: float, step: str, n_jobs: int | None
) -> Outcome:
    """Run one of the paper's methods from every start, and keep the best by its objective."""
    if method == "classic":
        ascent = _make_classic(search, max_iter, tol)
    elif method == "unbiased":
        ascent = _make_unbiased(search, max_iter, tol, step)
    else:
        ascent = _make_entropy(search, max_iter, tol)

    starts = _spectral_starts(search.pair)

    def run(number: int) -> SearchRun:
        path: list[float] = []
        shares = number / len(starts), (number + 1) / len(starts)
        record = search.make_recorder("climbing", level=0, shares=shares, path=path)
        return SearchRun(*ascent(starts[number](), record), path)

    with needs_positive_kernels("method", "refined") if method == "entropy" else nullcontext():
        runs = search.map(run, range(len(starts)), n_jobs=n_jobs)
    best = max(runs, key=lambda each: each.value)
    return Outcome(
        permutation=best.permutation,
        converged=best.converged,
        objective_path=best.path,
        ends=[each.permutation for each in (best, *runs)],
        problem=search.pair.full_problem,
    )


def _spectral_starts(pair: KernelPair) -> list[Start]:
    """Leading eigenvectors of centered and plain kernels, with both signs, which are arbitrary.

    The paper takes the first of the centered kernels. Of plain kernels, the first follows the mean
    and the second is near the first principal component.
    """
    plain = _PlainVectors(pair)
    return [
        *(partial(match_leading_eigenvectors, pair, sign) for sign in (1.0, -1.0)),
        *(partial(plain.match, k, sign) for k in (2, 1) for sign in (1.0, -1.0)),
    ]


@dataclass(frozen=True)
class _PlainVectors:
    """The two leading eigenvectors of plain kernels."""

    pair: KernelPair

    @cached_property
    def both(self) -> tuple[Floats, Floats]:
        """Those of both collections, computed once."""
        return eigh(self.pair.K)[1][:, -2:], eigh(self.pair.L)[1][:, -2:]

    def match(self, number: int, sign: float) -> Permutation:
        """Match by rank along one of them."""
        first, second = (vectors[:, -number] for vectors in self.both)
        return match_ranks(self.pair, first, sign * second)


def _make_classic(search: MatchSearch, max_iter: int, tol: float) -> Ascent:
    """Full steps on the biased objective, section 3; its squared form for different sizes."""
    pair, problem = search.pair, search.pair.full_problem
    if pair.same_size:
        # eq. (5): diagonals are kept
        problem = QuadraticProblem(center(pair.K), center(pair.L), pair.cost, pair.frozen)

    def ascent(start: Permutation, record: Record) -> tuple[float, Permutation, bool]:
        record(problem.value(start), start)
        climbed = climb(problem, start, max_iter=max_iter, tol=tol, swaps=False, report=record)
        search.count(climbed.n_assignments)
        return climbed.value, climbed.permutation, climbed.converged

    return ascent


def _make_unbiased(search: MatchSearch, max_iter: int, tol: float, step: str) -> Ascent:
    """Partial steps on the objective with zeroed diagonals, eq. (10), which is not convex."""
    problem = search.pair.full_problem

    def ascent(start: Permutation, record: Record) -> tuple[float, Permutation, bool]:
        def count_and_record(value: float, vertex: Permutation) -> None:
            search.count(1)
            record(value, vertex)

        record(problem.value(start), start)
        shares, converged = frank_wolfe(
            problem,
            one_hot(start, problem.L.shape[0]),
            max_iter=max_iter,
            tol=tol,
            step_size=_step_in_set if step == "set" else best_step,
            report=count_and_record,
        )
        # The last step is a full one, so that the result is a permutation.
        ends = [
            assign_free(problem, problem.gradient_at(shares))[0],
            assign_free(problem, shares)[0],
        ]
        search.count(2 + converged)
        permutation = max(ends, key=problem.value)
        value = problem.value(permutation)
        record(value, permutation)
        return value, permutation, converged

    return ascent


def _step_in_set(slope: float, curvature: float) -> float:
    """Best step of the paper's fixed set."""
    return float(STEPS[np.argmax(STEPS * slope + STEPS**2 * curvature)])


def _make_entropy(search: MatchSearch, max_iter: int, tol: float) -> Ascent:
    """Minimize the joint entropy, eq. (17), by its tangents.

    The log-determinant is concave in the joint kernel: what lowers its tangent, a quadratic
    problem, lowers the entropy.
    """
    pair = search.pair
    ridge = entropy_ridge([pair.K, pair.L])

    def value_of(permutation: Permutation) -> float:
        value = -entropy_value(pair.K, pair.L, permutation, ridge=ridge)
        if pair.cost is not None:
            value -= float(pair.cost[np.arange(permutation.size), permutation].sum())
        return value

    def tangent(permutation: Permutation) -> QuadraticProblem:
        weights = entropy_weights(pair.K, pair.L, permutation, ridge=ridge)
        return QuadraticProblem.with_linear_diagonals(
            -weights, pair.L, pair.cost, frozen=pair.frozen
        )

    def ascent(start: Permutation, record: Record) -> tuple[float, Permutation, bool]:
        permutation, value = start, value_of(start)
        record(value, permutation)
        for _ in range(max_iter):
            climbed = climb(tangent(permutation), permutation, max_iter=max_iter)
            search.count(climbed.n_assignments)
            proposed = value_of(climbed.permutation)
            if not proposed > value + max(tol, 1e-12) * abs(value):
                return value, permutation, True
            permutation, value = climbed.permutation, proposed
            record(value, permutation)
        return value, permutation, False

    return ascent


def entropy_ridge(kernels: list[Floats]) -> float:
    """Ridge of the joint entropy of these kernels."""
    return ENTROPY_RIDGE * float(np.prod([np.diag(K).mean() for K in kernels]))


@contextmanager
def needs_positive_kernels(option: str, instead: str) -> Iterator[None]:
    """Explain a failed Cholesky factorization of the product of the kernels."""
    try:
        yield
    except LinAlgError as error:
        raise ValueError(
            f'{option}="entropy" needs positive semi-definite kernels, and the product of these '
            f'is not. Choose kernel="rbf" or "linear", or {option}="{instead}".'
        ) from error


def climb_entropy(
    kernels: list[Floats],
    permutations: Permutation,
    report: Record,
    *,
    ridge: float,
    max_iter: int,
    tol: float,
) -> tuple[Permutation, bool]:
    """Lower the joint entropy of aligned kernels, in place, by exchanges of items, eq. (17)."""
    permutations, value = permutations.copy(), multiway_entropy(kernels, ridge=ridge)
    for _ in range(max_iter):
        before = value
        for t in range(len(kernels)):
            others = np.prod(kernels[:t] + kernels[t + 1 :], axis=0)
            order, found = exchange_items(others, kernels[t], ridge, value)
            if found < value:
                permutations[t], value = permutations[t][order], found
                kernels[t] = kernels[t][np.ix_(order, order)]
                report(-value, permutations)
        if not value < before - max(tol, RELATIVE_GAIN) * abs(before):
            return permutations, True
    return permutations, False


def exchange_items(
    others: Floats, K: Floats, ridge: float, value: float
) -> tuple[Permutation, float]:
    """Exchange items of one collection until no exchange of two lowers the entropy."""
    first, second = np.triu_indices(K.shape[0], 1)
    order = np.arange(K.shape[0])
    least = RELATIVE_GAIN * abs(value)
    while True:
        before = value
        changes = entropy_swap_changes(others, K[np.ix_(order, order)], ridge=ridge)
        ranked = np.argsort(changes, kind="stable")[: K.shape[0]]
        touched = np.zeros(K.shape[0], dtype=bool)
        for number in ranked[changes[ranked] < -least]:
            pair = [first[number], second[number]]
            if touched[pair].any():
                continue
            # An exchange changes the gains of the next ones, so each is checked.
            trial = order.copy()
            trial[pair] = order[pair[::-1]]
            proposed = multiway_entropy([others, K[np.ix_(trial, trial)]], ridge=ridge)
            if proposed < value - least:
                order, value = trial, proposed
                touched[pair] = True
        if value == before:
            return order, value
