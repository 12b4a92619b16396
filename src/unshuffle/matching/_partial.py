"""Letting items go without a partner on both sides."""

import numpy as np
from numpy.typing import NDArray

from unshuffle.assignment import QuadraticProblem, solve_assignment
from unshuffle.matching._kernel_pair import root_mean_square

Array = NDArray[np.float64]
Permutation = NDArray[np.intp]

MAX_ROUNDS = 50
# As a share of chance; every pair stays, and a larger limit would drown the disagreements.
NEVER = 1e6


def release(
    problem: QuadraticProblem, permutation: Permutation, unmatched_cost: float
) -> tuple[Permutation, int]:
    """Part the pairs that disagree too much with the rest of the matching.

    The disagreement of a pair (i, a) is the mean of (K[i, j] - L[a, p(j)])^2 / 2 over the other
    pairs (j, p(j)), both kernels scaled alike, as a share of what a random pair has. Matched
    pairs gain `unmatched_cost` less their disagreement, summed over all two of them; that
    objective is climbed by assignments in which an item may stay alone.

    Parameters
    ----------
    problem : QuadraticProblem
        Kernels with zeroed diagonals, linear cost and frozen pairs.
    permutation : ndarray of shape (n,)
        Matching of all items of the smaller side.
    unmatched_cost : float
        Disagreement above which a pair parts: near 0 only pairs that agree exactly stay, at 1
        those no better than chance still do.

    Returns
    -------
    permutation : ndarray of shape (n,)
        -1 where an item stays alone.
    n_assignments : int
        Assignments solved.
    """
    K, L, cost = _scaled(problem)
    chance = 1.0 - _mean_off_diagonal(K) * _mean_off_diagonal(L)
    limit = min(float(unmatched_cost), NEVER) * chance
    value = _value(K, L, cost, permutation, limit)
    n_assignments = 0
    while n_assignments < MAX_ROUNDS:
        gains = _gains(K, L, cost, permutation, limit)
        found = solve_assignment(
            gains, maximize=True, frozen=problem.frozen, unmatched_cost=0.0
        ).columns
        n_assignments += 1
        proposed = _value(K, L, cost, found, limit)
        if not proposed > value + 1e-12 * abs(value):
            break
        permutation, value = found, proposed
    return permutation, n_assignments


def _scaled(problem: QuadraticProblem) -> tuple[Array, Array, Array | None]:
    scale_K, scale_L = root_mean_square(problem.K), root_mean_square(problem.L)
    cost = None if problem.cost is None else problem.cost / (scale_K * scale_L)
    return problem.K / scale_K, problem.L / scale_L, cost


def _mean_off_diagonal(S: Array) -> float:
    return float(S.sum()) / (S.shape[0] * (S.shape[0] - 1))


def _value(
    K: Array, L: Array, cost: Array | None, permutation: Permutation, limit: float
) -> float:
    rows = np.flatnonzero(permutation >= 0)
    partners = permutation[rows]
    apart = K[np.ix_(rows, rows)] - L[np.ix_(partners, partners)]
    value = limit * rows.size * (rows.size - 1) - 0.5 * float(np.vdot(apart, apart))
    if cost is not None:
        value -= float(cost[rows, partners].sum())
    return value


def _gains(
    K: Array, L: Array, cost: Array | None, permutation: Permutation, limit: float
) -> Array:
    """Change of the objective when each item takes each partner, the others as they stand."""
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
