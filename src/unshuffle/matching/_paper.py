"""The methods of the paper: full steps, steps with bias correction, and entropy."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from unshuffle._parallel import map_parallel
from unshuffle.assignment import QuadraticProblem, assign_free, climb, one_hot
from unshuffle.kernels import zero_diagonal
from unshuffle.matching._kernel_pair import KernelPair
from unshuffle.matching._search import Outcome, Search
from unshuffle.matching._starts import spectral_starts
from unshuffle.objectives import entropy_value, entropy_weights

Permutation = NDArray[np.intp]

STEPS = np.arange(1, 11) / 10
# Share of the mean diagonal that keeps the log-determinant finite.
ENTROPY_RIDGE = 1e-2


def solve_classic(
    pair: KernelPair, search: Search, *, max_iter: int, tol: float, n_jobs: int | None
) -> Outcome:
    """Full steps on the biased objective from the leading eigenvectors, section 3.

    The sign of an eigenvector is arbitrary and decides between 160 right pairs and none, so
    both are tried and the objective chooses.
    """
    problem = pair.biased_problem()

    def run(maker: Callable[[], Permutation]) -> tuple[float, Permutation, bool, list[float]]:
        path: list[float] = []
        record = search.recorder("climbing", level=0, fraction=0.5, path=path)
        start = maker()
        record(problem.value(start), start)
        climbed = climb(problem, start, max_iter=max_iter, tol=tol, swaps=False, report=record)
        search.count(climbed.n_assignments)
        return climbed.value, climbed.permutation, climbed.converged, path

    return _best(pair, map_parallel(run, spectral_starts(pair), n_jobs=n_jobs))


def solve_unbiased(
    pair: KernelPair,
    search: Search,
    *,
    max_iter: int,
    tol: float,
    step: str,
    n_jobs: int | None,
) -> Outcome:
    """Partial steps on the objective with zeroed diagonals, which is not convex, eq. (10)."""
    problem = pair.full_problem

    def run(maker: Callable[[], Permutation]) -> tuple[float, Permutation, bool, list[float]]:
        path: list[float] = []
        record = search.recorder("climbing", level=0, fraction=0.5, path=path)
        permutation = maker()
        record(problem.value(permutation), permutation)
        shares = one_hot(permutation, pair.L.shape[0])
        value = problem.value(permutation)
        prices, converged = None, False
        for _ in range(max_iter):
            gradient = problem.gradient_at(shares)
            vertex, prices = assign_free(problem, gradient, prices)
            search.count(1)
            direction = -shares
            direction[np.arange(vertex.size), vertex] += 1.0
            slope = float(np.vdot(gradient, direction))
            curvature = problem.curvature(direction)
            size = _step_size(slope, curvature, step)
            gain = size * slope + size**2 * curvature
            if not gain > max(tol, 1e-12) * abs(value):
                converged = True
                break
            shares += size * direction
            value += gain
            record(value, vertex)
        # The last step is a full one, so that the answer is a permutation.
        ends = [
            assign_free(problem, problem.gradient_at(shares))[0],
            assign_free(problem, shares)[0],
        ]
        search.count(2)
        permutation = max(ends, key=problem.value)
        record(problem.value(permutation), permutation)
        return problem.value(permutation), permutation, converged, path

    return _best(pair, map_parallel(run, spectral_starts(pair), n_jobs=n_jobs))


def solve_entropy(
    pair: KernelPair, search: Search, *, max_iter: int, tol: float, n_jobs: int | None
) -> Outcome:
    """Least joint entropy, eq. (17), by climbing a bound that touches it at each step.

    The log-determinant is concave in the joint kernel, so its tangent bounds it from above;
    what lowers the tangent, a quadratic problem, lowers the entropy.
    """
    ridge = ENTROPY_RIDGE * float(np.mean(np.diag(pair.K)) * np.mean(np.diag(pair.L)))
    L_zeroed = zero_diagonal(pair.L)

    def value_of(permutation: Permutation) -> float:
        value = -entropy_value(pair.K, pair.L, permutation, ridge=ridge)
        if pair.cost is not None:
            value -= float(pair.cost[np.arange(permutation.size), permutation].sum())
        return value

    def tangent(permutation: Permutation) -> QuadraticProblem:
        weights = entropy_weights(pair.K, pair.L, permutation, ridge=ridge)
        cost = np.outer(np.diag(weights), np.diag(pair.L))
        if pair.cost is not None:
            cost = cost + pair.cost
        return QuadraticProblem(-zero_diagonal(weights), L_zeroed, cost, pair.frozen)

    def run(maker: Callable[[], Permutation]) -> tuple[float, Permutation, bool, list[float]]:
        path: list[float] = []
        record = search.recorder("climbing", level=0, fraction=0.5, path=path)
        permutation = maker()
        value, converged = value_of(permutation), False
        record(value, permutation)
        for _ in range(max_iter):
            climbed = climb(tangent(permutation), permutation, max_iter=max_iter)
            search.count(climbed.n_assignments)
            proposed = value_of(climbed.permutation)
            if not proposed > value + max(tol, 1e-12) * abs(value):
                converged = True
                break
            permutation, value = climbed.permutation, proposed
            record(value, permutation)
        return value, permutation, converged, path

    try:
        return _best(pair, map_parallel(run, spectral_starts(pair), n_jobs=n_jobs))
    except ValueError as error:
        # A product that is not positive semi-definite has no factor, or no ridge above 0.
        if not (isinstance(error, LinAlgError) or "`ridge`" in str(error)):
            raise
        raise ValueError(
            'method="entropy" needs positive semi-definite kernels, and the product of these is '
            'not. Choose kernel="rbf" or "linear", or method="refined", which takes any kernel.'
        ) from error


def _best(pair: KernelPair, runs: list[tuple[float, Permutation, bool, list[float]]]) -> Outcome:
    best = max(runs, key=lambda run: run[0])
    return Outcome(
        permutation=best[1],
        converged=best[2],
        objective_path=best[3],
        ends=[best[1], *(run[1] for run in runs)],
        problem=pair.full_problem,
    )


def _step_size(slope: float, curvature: float, step: str) -> float:
    """Step in [0, 1] that gains most: of the fixed set, or of all."""
    if step == "set":
        return float(STEPS[np.argmax(STEPS * slope + STEPS**2 * curvature)])
    if curvature >= 0:  # convex along the line: the far end is best
        return 1.0
    return min(1.0, -slope / (2.0 * curvature))
