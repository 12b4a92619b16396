"""Soft matchings of a quadratic problem: mean field, its annealing, and Frank-Wolfe steps."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unshuffle._quadratic.problem import QuadraticProblem, assign_free
from unshuffle._run.parallel import per_call
from unshuffle._run.types import Floats, Permutation

SINKHORN_ITERATIONS = 60
SINKHORN_TOL = 1e-3
SMALLEST_MASS = 1e-150  # the product of two inverses stays finite
LARGEST_ENTRY = 1e6  # sums of its cubes fit into single precision
LARGEST_SPREAD = 1e300
COLDEST = 1e-100  # as a share of the largest slope
SMALLEST = 5e-324  # above zero
COOLING = (0.5, 0.35, 0.25, 0.15, 0.1)
ROUNDS_PER_STEP = 4


def best_step(slope: float, curvature: float) -> float:
    """Best step in [0, 1] along a parabola."""
    if curvature >= 0:  # convex along the line
        return 1.0
    return min(1.0, -slope / (2.0 * curvature))


def mean_field(
    problem: QuadraticProblem,
    shares: Floats,
    *,
    temperature: float = 0.2,
    max_iter: int = 12,
    tol: float = 1e-2,
    slopes: Callable[[Floats], Floats] | None = None,
    report: Callable[[Floats], None] | None = None,
) -> Floats:
    """Soft matching (n, m): share of each possible partner, by mean-field iteration.

    Alternates the gradient of the objective at the current shares with the entropic assignment on
    that gradient. The fixed point is the mean-field approximation of the distribution
    exp(objective / temperature) over matchings. Assigning by the shares maximizes the expected
    number of correct pairs, while the maximum of the objective may fit its noise.

    `temperature` is in standard deviations of the gradient, without its linear cost and its row
    and column means; larger values spread the shares. Stops when shares change by less than `tol`
    per item on average. `slopes` replaces the gradient without the cost, as a function of shares
    in single precision. `report` receives the shares after each round, and may raise to stop.
    """
    rows, columns = problem.free_rows, problem.free_columns
    if rows.size == 0:
        return shares
    everyone = rows.size == problem.K.shape[0]
    shares = shares.copy()
    if slopes is None:
        problem = _of_order_one(problem.about_middle()[0])
        # A few digits suffice for the shares; only the scaling needs double precision.
        slopes = problem.in_single_precision().gradient_at
    scaling: Floats | None = None
    for _ in range(max_iter):
        gradient = slopes(shares.astype(np.float32)).astype(np.float64)
        # Without the linear cost, whose size must not raise the temperature.
        spread = interaction_spread(gradient)
        if problem.cost is not None:
            gradient -= problem.cost
        if not everyone:
            gradient = gradient[np.ix_(rows, columns)]
        found, scaling = _scaled(gradient, temperature * spread, scaling)
        if everyone:
            moved = float(np.abs(found - shares).sum()) / rows.size
            shares = found
        else:
            moved = float(np.abs(found - shares[np.ix_(rows, columns)]).sum()) / rows.size
            shares[np.ix_(rows, columns)] = found
        if report is not None:
            report(shares)
        if moved < tol:
            break
    return shares


def one_hot(permutation: Permutation, n_partners: int) -> Floats:
    """Permutation as a matrix of shares, shape (n, n_partners)."""
    shares = np.zeros((permutation.size, n_partners))
    shares[np.arange(permutation.size), permutation] = 1.0
    return shares


def anneal_shares(problem: QuadraticProblem, shares: Floats) -> Permutation:
    """Matching found by lowering the temperature of the mean field step by step.

    For weakly dependent collections this avoids most poor local optima of single matchings. The
    result need not be a local optimum.
    """
    for temperature in COOLING:
        shares = mean_field(problem, shares, temperature=temperature, max_iter=ROUNDS_PER_STEP)
    return assign_free(problem, shares)[0]


def frank_wolfe(
    problem: QuadraticProblem,
    shares: Floats,
    *,
    max_iter: int,
    tol: float,
    step_size: Callable[[float, float], float] = best_step,
    report: Callable[[float, Permutation], None] | None = None,
) -> tuple[Floats, bool]:
    """Climb the objective of soft matchings by steps towards the best matching of its gradient.

    `step_size` receives slope and curvature along the step. `report` receives the objective and
    that matching, and may raise to stop. Stops at a relative gain below `tol`; returns the shares
    and whether that was the reason.
    """
    shares = shares.copy()
    gradient = problem.gradient_at(shares)
    value = _value_at(problem, shares, gradient)
    prices: NDArray[np.float64] | None = None
    for _ in range(max_iter):
        vertex, prices = assign_free(problem, gradient, prices)
        direction = -shares
        direction[np.arange(vertex.size), vertex] += 1.0
        slope, curvature = float(np.vdot(gradient, direction)), problem.curvature(direction)
        size = step_size(slope, curvature)
        gain = size * slope + size**2 * curvature
        if not gain > max(tol, 1e-12) * abs(value):
            return shares, True
        shares += size * direction
        value += gain
        if report is not None:
            report(value, vertex)
        gradient = problem.gradient_at(shares)
    return shares, False


def _value_at(problem: QuadraticProblem, shares: Floats, gradient: Floats) -> float:
    """Objective of a soft matching; the quadratic part is half of what the gradient gives."""
    value = 0.5 * float(np.vdot(gradient, shares))
    if problem.cost is not None:
        value -= 0.5 * float(np.vdot(problem.cost, shares))
    return value


def soften(problem: QuadraticProblem, benefit: Floats, *, temperature: float) -> Floats:
    """Soft matching by a linear benefit that keeps frozen pairs: a start for `anneal_shares`."""
    rows, columns = problem.free_rows, problem.free_columns
    shares = np.zeros(benefit.shape)
    shares[problem.frozen[:, 0], problem.frozen[:, 1]] = 1.0
    if rows.size:
        free = benefit[np.ix_(rows, columns)]
        found, _ = _scaled(free, temperature * interaction_spread(free), None)
        shares[np.ix_(rows, columns)] = found
    return shares


def interaction_spread(benefit: Floats) -> float:
    """Standard deviation of a matrix without its row and column means.

    Only this part affects an assignment; constants added to rows or columns do not.
    """
    if benefit.size == 0:
        return 1.0
    largest = max(float(benefit.max()), -float(benefit.min()))
    if not 1e-100 < largest < 1e100 and 0.0 < largest < np.inf:
        # Squares and sums would overflow or underflow.
        return min(interaction_spread(benefit / largest) * largest, LARGEST_SPREAD)
    # Deviations from the columns first: digits that all columns share do not matter.
    apart = benefit - benefit.mean(axis=0, dtype=np.float64)
    apart -= apart.mean(axis=1, keepdims=True)
    return float(np.sqrt(np.einsum("ij,ij->", apart, apart) / apart.size)) or 1.0


def _of_order_one(problem: QuadraticProblem) -> QuadraticProblem:
    """Problem rescaled if entries of K and L would leave single precision."""
    sizes = [float(np.abs(S).max(initial=0.0)) or 1.0 for S in (problem.K, problem.L)]
    if max(sizes) < LARGEST_ENTRY and min(sizes) > 1.0 / LARGEST_ENTRY:
        return problem
    if problem.squared_L is not None:
        sizes = [max(sizes)] * 2  # the squared term needs one unit for both
    cost = None if problem.cost is None else problem.cost / sizes[0] / sizes[1]
    return replace(problem, K=problem.K / sizes[0], L=problem.L / sizes[1], cost=cost)


def _scaled(
    benefit: Floats, temperature: float, scaling: NDArray[np.float64] | None
) -> tuple[Floats, NDArray[np.float64]]:
    """Entropic assignment by Sinkhorn scaling; warm start if `scaling` is given.

    Rows have mass 1; columns too if the matrix is square, else at most 1.
    """
    from unshuffle._quadratic.mean_field_loops import scale  # numba is slow to load

    n_rows, n_columns = benefit.shape
    # Largest entry of each row at 0: nothing overflows, and underflow is a share of 0.
    benefit = benefit - benefit.max(axis=1, keepdims=True)
    # A temperature near 0 would overflow.
    benefit /= max(temperature, -COLDEST * float(benefit.min()), SMALLEST)
    kernel = np.exp(benefit)
    columns = np.ones(n_columns) if scaling is None else scaling.copy()
    mass = np.empty(n_columns)
    left = SINKHORN_ITERATIONS
    at_once = min(left, per_call(0.5 * kernel.size))
    while left > 0:
        square, n_rounds = n_rows == n_columns, min(at_once, left)
        if scale(kernel, columns, mass, square, SMALLEST_MASS, SINKHORN_TOL, n_rounds):
            break
        left -= n_rounds
    kernel *= columns
    totals = kernel.sum(axis=1, keepdims=True)
    if totals.min() > SMALLEST_MASS:
        kernel /= totals
        return kernel, columns
    # In the log domain, so that rows sum to 1 even if the scaling was clipped.
    shares = benefit + np.log(np.maximum(columns, SMALLEST_MASS))
    shares = np.exp(shares - shares.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True), columns
