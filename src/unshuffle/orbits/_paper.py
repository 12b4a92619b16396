"""The paper's log-trace loss: one matrix for each pair, of small volume and small error.

Minimized by L-BFGS, or by the paper's majorize-minimize steps with its gradient and factor
corrected, which also allow linear constraints.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls

from unshuffle._core.arrays import as_numbers, check_magnitude
from unshuffle._run.types import Floats
from unshuffle.orbits._least_squares import Descent
from unshuffle.orbits._problem import MatrixSpace, OrbitProblem, VectorPairs
from unshuffle.orbits._search import OrbitSearch, SearchOptions, Solution, principal_spectrum

Constraints = tuple[Floats, Floats]

_SIGN_NOISE = 1e-2  # sign changes below this share of the lengths may be noise


@dataclass(frozen=True)
class _LogTraceCost:
    """log|M + eps1| + eps2 tr M + error_weight * sum of errors, with one matrix for each pair."""

    space: MatrixSpace
    pairs: VectorPairs
    error_weight: float
    eps1: float
    eps2: float

    def errors(self, a: Floats) -> tuple[float, Floats]:
        """Sum of the log-trace errors, and its gradient."""
        x, z = self.pairs.targets, self.pairs.sources
        if self.space.is_diagonal:
            own = self.space.rows
            full = np.zeros_like(x)
            full[:, own] = a
            errors, slopes = log_trace_errors_diagonal(full, x, z)
            return float(errors.sum()), slopes[:, own]
        errors, slopes = log_trace_errors(self.space.matrices(a), x, z)
        return float(errors.sum()), self.space.coordinates(slopes)

    def __call__(self, a: Floats) -> tuple[float, Floats]:
        """The cost and its gradient; the cost is infinite if a trial step overflows."""
        with np.errstate(all="ignore"):
            try:
                volume, by_volume = matrix_volume(a, eps1=self.eps1, eps2=self.eps2)
                errors, by_errors = self.errors(a)
            except np.linalg.LinAlgError:
                return np.inf, np.zeros_like(a)
            cost = volume + self.error_weight * errors
            slopes = by_volume + self.error_weight * by_errors
        if not (np.isfinite(cost) and np.isfinite(slopes).all()):
            return np.inf, np.zeros_like(a)
        return cost, slopes


@dataclass
class _MatrixDescent:
    """State of one descent."""

    matrices: Floats  # coordinates of the matrix of each pair, (n, p)
    path: list[float]  # cost at the start and after each step; never rises
    converged: bool = False


Report = Callable[[_MatrixDescent], None]


def learn_log_trace(
    problem: OrbitProblem,
    options: SearchOptions,
    search: OrbitSearch,
    weights: tuple[float, float, float],
    constraints: Any,
    solver: str,
) -> Solution:
    """Principal directions of the matrices of least cost; `weights` are those of the cost."""
    space, pairs = problem.space, problem.pairs
    inside = None if constraints is None else _check_constraints(constraints, space)
    _check_positive(pairs, space)
    cost = _LogTraceCost(space, pairs, *weights)

    def solution(run: _MatrixDescent, *, converged: bool) -> Solution:
        values, directions = principal_spectrum(run.matrices)
        generators = directions[: options.choose_n_generators(values, problem)]
        found = Descent(generators, run.matrices @ generators.T, [*run.path], converged)
        return Solution(found, values, 1.0, n_determined=len(generators))

    def report(run: _MatrixDescent) -> None:
        so_far = solution(run, converged=False)
        search.offer(so_far, len(run.path))  # the cost never rises
        search.report(-run.path[-1], so_far.descent.generators[:1])

    start = np.zeros((len(pairs.targets), space.n_dimensions))
    if inside is not None:
        start = _project_rows(start, inside)
        if np.isnan(start).any():
            raise ValueError(
                "No matrix of this structure and pattern satisfies all `constraints`. Relax h, or "
                "drop rows that contradict each other."
            )
    run = _MatrixDescent(start, [cost(start)[0]])
    report(run)
    if solver == "mm" or inside is not None:
        _majorize(cost, run, inside, options, report)
    else:
        _lbfgs(cost, run, options, report)
    return solution(run, converged=run.converged)


def _lbfgs(
    cost: _LogTraceCost, run: _MatrixDescent, options: SearchOptions, report: Report
) -> None:
    """Minimize by L-BFGS; a global minimum for diagonal matrices and eps1 * eps2 >= 1/8."""
    shape = run.matrices.shape

    def flat(vector: Floats) -> tuple[float, Floats]:
        value, gradient = cost(vector.reshape(shape))
        return value, gradient.ravel()

    def step(intermediate_result: object) -> None:
        run.matrices = intermediate_result.x.reshape(shape).copy()  # type: ignore[attr-defined]
        run.path.append(float(intermediate_result.fun))  # type: ignore[attr-defined]
        report(run)

    most = options.max_iter
    limits = {"maxiter": most, "maxfun": 4 * most, "ftol": options.tol, "gtol": 1e-10}
    found = minimize(
        flat, run.matrices.ravel(), jac=True, method="L-BFGS-B", callback=step, options=limits
    )
    run.converged = bool(found.success)


def _majorize(
    cost: _LogTraceCost,
    run: _MatrixDescent,
    constraints: Constraints | None,
    options: SearchOptions,
    report: Report,
) -> None:
    """Minimize quadratic upper bounds of the cost, one after another.

    The log-determinant lies below its tangent. The error of a pair lies below a quadratic of
    curvature L = 1 for diagonal matrices; for symmetric ones no L holds everywhere, so L is
    doubled until the cost falls. With constraints, a step is a quadratic program.
    """
    curvature = 1.0
    for _ in range(options.max_iter):
        _, slopes = cost.errors(run.matrices)
        # eigenvalues and eigenvectors of W = (M + eps1)^-1 + eps2, with M the mean of a a'
        values, vectors = np.linalg.eigh(run.matrices.T @ run.matrices / len(run.matrices))
        weights = 1.0 / (np.maximum(values, 0.0) + cost.eps1) + cost.eps2, vectors
        while True:
            trial = _bound_minimum(cost, run.matrices, slopes, weights, curvature, constraints)
            value = cost(trial)[0]
            if value <= run.path[-1] or curvature > 1e12:
                break
            curvature *= 2.0
        fall = run.path[-1] - value
        if fall <= 0.0:  # not even a tiny step lowers the cost
            run.converged = True
            break
        run.matrices = trial
        run.path.append(value)
        report(run)
        if fall <= options.tol * max(abs(value), 1.0):
            run.converged = True
            break
        curvature = max(curvature / 2.0, 1e-3)


def _bound_minimum(
    cost: _LogTraceCost,
    a: Floats,
    slopes: Floats,
    weights: tuple[Floats, Floats],
    curvature: float,
    constraints: Constraints | None,
) -> Floats:
    """Minimum of the bound: (1 + 2 W / (error_weight L n))^-1 (a - slope / L)."""
    values, vectors = weights
    pull = 2.0 * values / (cost.error_weight * curvature * len(a))
    wanted = a - slopes / curvature
    result = (wanted @ vectors / (1.0 + pull)) @ vectors.T
    if constraints is None:
        return np.asarray(result)
    metric = (vectors * (1.0 + pull)) @ vectors.T
    return _project_rows(result, constraints, metric)


def _project_rows(
    wanted: Floats, constraints: Constraints, metric: Floats | None = None
) -> Floats:
    """Project rows onto G a <= h, with squared distance d'W d by a metric W; NaN if infeasible.

    The dual of each projection is a nonnegative least-squares problem (Lawson and Hanson).
    """
    G, h = constraints
    factor = np.eye(wanted.shape[1]) if metric is None else np.linalg.cholesky(metric)
    turned = np.linalg.solve(factor, G.T).T  # G L^-T: constraints of u = L'(a - wanted)
    lengths = np.linalg.norm(turned, axis=1)
    lengths[lengths == 0.0] = 1.0
    turned = turned / lengths[:, None]
    result = wanted.copy()
    room = (h - wanted @ G.T) / lengths
    for i in np.flatnonzero((room < 0).any(axis=1)):
        size = -room[i].min()  # scales the smallest distance to about 1
        system = np.vstack([-turned.T, -room[i] / size])
        right = np.zeros(len(system))
        right[-1] = 1.0
        dual = nnls(system, right)[0]
        rest = system @ dual - right
        if rest[-1] > -1e-12:
            result[i] = np.nan
        else:
            result[i] += np.linalg.solve(factor.T, -size * rest[:-1] / rest[-1])
    return result


def _check_positive(pairs: VectorPairs, space: MatrixSpace) -> None:
    """Raise ValueError for pairs that no symmetric, or diagonal, matrix can explain."""
    sources, targets = pairs.sources, pairs.targets
    lengths = np.linalg.norm(sources, axis=1) * np.linalg.norm(targets, axis=1)
    beyond = np.flatnonzero(~(np.sum(sources * targets, axis=1) > 1e-12 * lengths))
    if beyond.size:
        raise ValueError(
            f"The vectors of pair {beyond[0]} are at a right angle or beyond ({beyond.size} such "
            'pair(s)), but loss="logtrace" needs a positive inner product. Pass pairs of closer '
            'vectors, such as pairs="knn", or use loss="squared".'
        )
    wrong = np.argwhere(sources * targets < -_SIGN_NOISE * lengths[:, np.newaxis])
    if space.is_diagonal and len(wrong):
        n_pairs = np.unique(wrong[:, 0]).size
        raise ValueError(
            f"Coordinate {wrong[0, 1]} of pair {wrong[0, 0]} changes its sign ({n_pairs} such "
            "pair(s)), which no diagonal matrix can explain. Pass pairs of closer vectors, or use "
            'structure="symmetric" or loss="squared".'
        )


def _check_constraints(constraints: Any, space: MatrixSpace) -> Constraints:
    """Linear inequalities G A.ravel() <= h, converted to coordinates of the space."""
    d = space.n_rows
    try:
        G, h = constraints
        G, h = as_numbers(G, "G"), as_numbers(h, "h")
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`constraints` must be a pair (G, h) of arrays of real numbers, for "
            f"G @ A.ravel() <= h, got {type(constraints).__name__}."
        ) from error
    if G.ndim != 2 or G.shape[1] != d * d or h.shape != (len(G),):
        raise ValueError(
            f"`constraints` must be (G, h) with G of shape (m, {d * d}) and h of shape (m,), got "
            f"{G.shape} and {h.shape}. A row of G weighs the {d * d} entries of A.ravel()."
        )
    if not (np.all(np.isfinite(G)) and np.all(np.isfinite(h))):
        raise ValueError("`constraints` hold NaN or infinity. Drop rows without a bound.")
    check_magnitude(G, "G of `constraints`")
    check_magnitude(h, "h of `constraints`")
    return space.coordinates(G.reshape(-1, d, d)), h


def log_trace_errors(A: Floats, targets: Floats, sources: Floats) -> tuple[Floats, Floats]:
    """Errors log(x'exp(-A)x + z'exp(A)z) of symmetric matrices, with z = x', and their gradients.

    The minimum, log(2 x'z), is where exp(A) maps z to x, if x'z > 0. The gradients are divided
    differences of the exponential (Daleckii and Krein).
    """
    values, vectors = np.linalg.eigh(A)
    x = np.einsum("nij,ni->nj", vectors, targets)
    z = np.einsum("nij,ni->nj", vectors, sources)
    # factor out the largest exponent: a trial step may be huge
    shift = np.abs(values).max(axis=1, keepdims=True)
    total = np.sum(np.exp(-values - shift) * x**2 + np.exp(values - shift) * z**2, axis=1)
    inner = z[:, :, None] * z[:, None, :] * _divided(values, shift)
    inner -= x[:, :, None] * x[:, None, :] * _divided(-values, shift)
    inner /= total[:, None, None]
    gradients = vectors @ inner @ np.swapaxes(vectors, 1, 2)
    return np.log(total) + shift[:, 0], gradients


def log_trace_errors_diagonal(
    diagonals: Floats, targets: Floats, sources: Floats
) -> tuple[Floats, Floats]:
    """The same for diagonal matrices, given by their diagonals, for which it is convex."""
    shift = np.abs(diagonals).max(axis=1, keepdims=True)
    back = np.exp(-diagonals - shift) * targets**2
    on = np.exp(diagonals - shift) * sources**2
    total = np.sum(back + on, axis=1)
    return np.log(total) + shift[:, 0], (on - back) / total[:, None]


def matrix_volume(vectors: Floats, *, eps1: float, eps2: float) -> tuple[float, Floats]:
    """Volume log|M + eps1| + eps2 tr M of vectors a, with M = mean of a a', and its gradient."""
    n, p = vectors.shape
    values, directions = np.linalg.eigh(vectors.T @ vectors / n)
    values = np.maximum(values, 0.0)
    volume = float(np.sum(np.log(values + eps1)) + eps2 * np.sum(values))
    weights = (directions / (values + eps1)) @ directions.T + eps2 * np.eye(p)
    return volume, 2.0 / n * vectors @ weights


def _divided(values: Floats, shift: Floats) -> Floats:
    """(exp(v_i) - exp(v_j)) / (v_i - v_j) over exp(shift), and exp(v_i) where they are equal."""
    first, second = values[:, :, None], values[:, None, :]
    gap = first - second
    near = np.abs(gap) < 0.1
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.exp(values - shift)
        far_apart = (scaled[:, :, None] - scaled[:, None, :]) / np.where(near, 1.0, gap)
    half = np.where(near, gap / 2, 0.0)
    # sinh(h) / h to rounding for |h| < .05
    ratio = 1 + half**2 / 6 * (1 + half**2 / 20 * (1 + half**2 / 42))
    middle = np.exp((first + second) / 2 - shift[:, :, None]) * ratio
    return np.asarray(np.where(near, middle, far_apart))
