"""Repeated assignment: the ascent that all estimators share."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import as_numbers
from unshuffle._assign import assign
from unshuffle._contracts import takes
from unshuffle._parameters import check_kernel_memory
from unshuffle._printing import short_repr
from unshuffle.assignment._quadratic import Array, Permutation, QuadraticProblem
from unshuffle.assignment._swaps import swap_ascent

Report = Callable[[float, Permutation], None]


@dataclass(frozen=True)
class Climbed:
    """Where an ascent ended.

    Attributes
    ----------
    permutation : ndarray of shape (n,)
        Partner of each item.
    value : float
        Its objective.
    converged : bool
        Whether it ended because nothing gained any more.
    n_assignments : int
        Linear assignments solved.
    """

    permutation: Permutation
    value: float
    converged: bool
    n_assignments: int

    def __repr__(self) -> str:
        return short_repr(self)


@takes(problem="problem n m", benefit="n m")
def assign_free(
    problem: QuadraticProblem, benefit: Array, prices: NDArray[np.float64] | None = None
) -> tuple[Permutation, NDArray[np.float64] | None]:
    """Matching with the largest total benefit that keeps the frozen pairs, and its prices."""
    benefit = as_numbers(benefit, "benefit")
    if problem.frozen.size == 0:
        found = assign(benefit, prices)
        return found.columns, found.prices
    rows, columns = problem.free_rows, problem.free_columns
    permutation = np.empty(benefit.shape[0], dtype=np.intp)
    permutation[problem.frozen[:, 0]] = problem.frozen[:, 1]
    if rows.size == 0:
        return permutation, None
    found = assign(np.ascontiguousarray(benefit[np.ix_(rows, columns)]), prices)
    permutation[rows] = columns[found.columns]
    return permutation, found.prices


@takes(
    problem="problem n m",
    permutation="n among m",
    max_iter="count",
    tol="at least 0",
    swaps="flag",
)
def climb(
    problem: QuadraticProblem,
    permutation: Permutation,
    *,
    max_iter: int = 100,
    tol: float = 0.0,
    swaps: bool = True,
    report: Report | None = None,
) -> Climbed:
    """Climb from a matching by assignments on the gradient, alternated with swaps.

    Parameters
    ----------
    problem : QuadraticProblem
        What to maximise.
    permutation : ndarray of shape (n,)
        Where to start; must keep the frozen pairs.
    max_iter : int, default=100
        Most assignments; more may climb higher.
    tol : float, default=0.0
        Relative gain below which assignments stop; larger stops sooner. Any strict gain counts
        at 0: equal objectives would let the ascent cycle.
    swaps : bool, default=True
        Whether to leave the points where assignments stand still by exchanging pairs.
    report : callable or None
        Called with the objective and the matching after each accepted step; may raise to stop.

    Returns
    -------
    climbed : Climbed
        Never worse than the start.
    """
    check_kernel_memory(*problem.shape, n_copies=3.3)
    permutation = np.array(permutation, dtype=np.intp)
    # Gains are judged by what varies, not by a constant that every matching has.
    given = problem
    problem, constant = given.about_middle()
    if report is not None:
        report = partial(_report_true, report, constant)
    value = problem.value(permutation)
    slopes = problem.gradient(permutation)
    prices: NDArray[np.float64] | None = None
    n_assignments = 0
    while True:
        rose = False
        while n_assignments < max_iter:
            proposal, prices = assign_free(problem, slopes, prices)
            n_assignments += 1
            proposed = problem.value(proposal)
            if not proposed > value + max(tol, 1e-12) * abs(value):
                break
            problem.update_gradient(slopes, permutation, proposal)
            permutation, value, rose = proposal, proposed, True
            if report is not None:
                report(value, permutation)
        else:
            return Climbed(permutation, given.value(permutation), False, n_assignments)
        if not swaps or (n_assignments > 1 and not rose):
            return Climbed(permutation, given.value(permutation), True, n_assignments)
        permutation, n_moves = swap_ascent(problem, permutation, slopes=slopes)
        if n_moves == 0:
            return Climbed(permutation, given.value(permutation), True, n_assignments)
        value = problem.value(permutation)
        if report is not None:
            report(value, permutation)


def _report_true(report: Report, constant: float, value: float, permutation: Permutation) -> None:
    report(value + constant, permutation)
