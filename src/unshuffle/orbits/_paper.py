"""The paper's cost: matrices of small volume that carry each pair by the log-trace error.

Lowered by L-BFGS, or by the paper's majorise-minimise steps with the gradient and the factor put
right, which also take linear constraints.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls

from unshuffle._arrays import as_numbers, check_magnitude
from unshuffle.orbits._low_rank import Run
from unshuffle.orbits._problem import MatrixSpace, Pairs, Problem
from unshuffle.orbits._search import OrbitSearch, Settings, Solution, spectrum

Array = NDArray[np.float64]
Constraints = tuple[Array, Array]

_SIGN_NOISE = 1e-2  # of the product of two lengths: what may be noise about zero


def check_log_trace(structure: str) -> None:
    """Refuse the log-trace loss for matrices by which it has no least value."""
    if structure not in ("symmetric", "diagonal"):
        raise ValueError(
            f'loss="logtrace" cannot learn matrices of structure={structure!r}: it has no least '
            "value for general matrices, and rotations all cost the same, whatever the data. Use "
            'structure="symmetric" or "diagonal", or loss="squared", which learns all of them.'
        )


def refuse_constraints() -> NoReturn:
    """Say that only the log-trace loss takes constraints."""
    raise ValueError(
        '`constraints` hold for the matrix of every pair, which loss="squared" does not keep '
        'apart from its generators. Use loss="logtrace"; `structure` and `pattern` work with '
        "both."
    )


@dataclass(frozen=True)
class _LogTraceCost:
    """log|M + eps1| + eps2 tr M + error_weight * sum of errors, with one matrix for each pair."""

    space: MatrixSpace
    pairs: Pairs
    error_weight: float
    eps1: float
    eps2: float

    def errors(self, a: Array) -> tuple[float, Array]:
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

    def __call__(self, a: Array) -> tuple[float, Array]:
        """The cost and its gradient; infinite where a trial step leads beyond the floats."""
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
class _VolumeRun:
    """One descent: coordinates (n, p) of the matrix of each pair, and costs that never rise."""

    matrices: Array
    path: list[float]
    converged: bool = False


Report = Callable[[_VolumeRun], None]


def learn_log_trace(
    problem: Problem,
    settings: Settings,
    search: OrbitSearch,
    weights: tuple[float, float, float],
    constraints: Any,
    solver: str,
) -> Solution:
    """Principal directions of the matrices of least cost; `weights` are those of the cost."""
    space, pairs = problem.space, problem.pairs
    inside = None if constraints is None else _checked_constraints(constraints, space)
    _check_positive(pairs, space)
    cost = _LogTraceCost(space, pairs, *weights)

    def solution(run: _VolumeRun, *, converged: bool) -> Solution:
        values, directions = spectrum(run.matrices)
        generators = directions[: settings.number(values, problem)]
        found = Run(generators, run.matrices @ generators.T, [*run.path], converged)
        return Solution(found, values, 1.0)

    def report(run: _VolumeRun) -> None:
        so_far = solution(run, converged=False)
        search.offer(so_far, len(run.path))  # each is as good as the last, or better
        search.tell(-run.path[-1], so_far.run.generators[:1])

    start = _feasible_start(len(pairs.targets), space.n_dimensions, inside)
    run = _VolumeRun(start, [cost(start)[0]])
    report(run)
    if solver == "mm" or inside is not None:
        _majorize(cost, run, inside, settings, report)
    else:
        _follow_gradients(cost, run, settings, report)
    return solution(run, converged=run.converged)


def _feasible_start(n_pairs: int, n_dimensions: int, constraints: Constraints | None) -> Array:
    """The matrices closest to zero that meet the constraints; refused where there are none."""
    start = np.zeros((n_pairs, n_dimensions))
    if constraints is not None:
        start = _project_rows(start, constraints)
        if np.isnan(start).any():
            raise ValueError(
                "No matrix of this structure and pattern meets all `constraints`. Relax h, or "
                "drop rows that contradict each other."
            )
    return start


def _follow_gradients(
    cost: _LogTraceCost, run: _VolumeRun, settings: Settings, report: Report
) -> None:
    """Lower the cost by L-BFGS; for diagonal matrices and eps1 * eps2 >= 1/8 to its minimum."""
    shape = run.matrices.shape

    def flat(vector: Array) -> tuple[float, Array]:
        value, gradient = cost(vector.reshape(shape))
        return value, gradient.ravel()

    def step(intermediate_result: object) -> None:
        run.matrices = intermediate_result.x.reshape(shape).copy()  # type: ignore[attr-defined]
        run.path.append(float(intermediate_result.fun))  # type: ignore[attr-defined]
        report(run)

    most = settings.max_iter
    options = {"maxiter": most, "maxfun": 4 * most, "ftol": settings.tol, "gtol": 1e-10}
    found = minimize(
        flat, run.matrices.ravel(), jac=True, method="L-BFGS-B", callback=step, options=options
    )
    run.converged = bool(found.success)


def _majorize(
    cost: _LogTraceCost,
    run: _VolumeRun,
    constraints: Constraints | None,
    settings: Settings,
    report: Report,
) -> None:
    """Lower the cost by minimising quadratic bounds of it, one after another.

    The log-determinant lies below its tangent. The error of a pair lies below a quadratic of
    curvature L at the last matrices: of curvature 1 for diagonal matrices, while for symmetric
    ones no L holds everywhere, so L is doubled until the cost falls. With constraints, which the
    first matrices must meet, a step is a quadratic program.
    """
    curvature = 1.0
    for _ in range(settings.max_iter):
        _, slopes = cost.errors(run.matrices)
        weights = _volume_weights(cost, run.matrices)
        while True:
            trial = _bound_minimum(cost, run.matrices, slopes, weights, curvature, constraints)
            value = cost(trial)[0]
            if value <= run.path[-1] or curvature > 1e12:
                break
            curvature *= 2.0
        fall = run.path[-1] - value
        if fall <= 0.0:  # no step, however short, gains anything
            run.converged = True
            break
        run.matrices = trial
        run.path.append(value)
        report(run)
        if fall <= settings.tol * max(abs(value), 1.0):
            run.converged = True
            break
        curvature = max(curvature / 2.0, 1e-3)


def _volume_weights(cost: _LogTraceCost, a: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of (M + eps1)^-1 + eps2, M the mean of a a'."""
    values, vectors = np.linalg.eigh(a.T @ a / len(a))
    return 1.0 / (np.maximum(values, 0.0) + cost.eps1) + cost.eps2, vectors


def _bound_minimum(
    cost: _LogTraceCost,
    a: Array,
    slopes: Array,
    weights: tuple[Array, Array],
    curvature: float,
    constraints: Constraints | None,
) -> Array:
    """Minimum of the bound: (1 + 2 W / (error_weight L n))^-1 (a - slope / L)."""
    values, vectors = weights
    pull = 2.0 * values / (cost.error_weight * curvature * len(a))
    wanted = a - slopes / curvature
    result = (wanted @ vectors / (1.0 + pull)) @ vectors.T
    if constraints is None:
        return np.asarray(result)
    metric = (vectors * (1.0 + pull)) @ vectors.T
    return _project_rows(result, constraints, metric)


def _project_rows(wanted: Array, constraints: Constraints, metric: Array | None = None) -> Array:
    """Rows closest to those wanted among all that meet linear constraints, by `metric`.

    The least-distance program of each row, min |u| subject to G u <= h, is solved by its dual, a
    least-squares problem over numbers that are not negative (Lawson and Hanson).

    Distance is d'W d by a metric W, plain without one. Rows that cannot meet G a <= h become NaN.
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
        size = -room[i].min()  # units in which the least distance is about 1
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


def _check_positive(pairs: Pairs, space: MatrixSpace) -> None:
    """Refuse pairs that no exponential of a symmetric, or diagonal, matrix can carry along."""
    sources, targets = pairs.sources, pairs.targets
    lengths = np.linalg.norm(sources, axis=1) * np.linalg.norm(targets, axis=1)
    beyond = np.flatnonzero(~(np.sum(sources * targets, axis=1) > 1e-12 * lengths))
    if beyond.size:
        raise ValueError(
            f"The vectors of pair {beyond[0]} are at a right angle or beyond ({beyond.size} such "
            'pair(s)), and no matrix that loss="logtrace" can learn carries one onto the other: '
            "it needs a positive inner product. Pass pairs of closer vectors, such as "
            'pairs="knn", or use loss="squared".'
        )
    wrong = np.argwhere(sources * targets < -_SIGN_NOISE * lengths[:, np.newaxis])
    if space.is_diagonal and len(wrong):
        n_pairs = np.unique(wrong[:, 0]).size
        raise ValueError(
            f"Coordinate {wrong[0, 1]} of pair {wrong[0, 0]} changes its sign ({n_pairs} such "
            'pair(s)), which no diagonal matrix does, and loss="logtrace" does not see. Pass '
            'pairs of closer vectors, or use structure="symmetric", or loss="squared".'
        )


def _checked_constraints(constraints: Any, space: MatrixSpace) -> Constraints:
    """Linear inequalities G A.ravel() <= h, as such of coordinates in the space."""
    d = space.n_rows
    try:
        G, h = constraints
        G, h = as_numbers(G, "G"), as_numbers(h, "h")
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`constraints` must be a pair (G, h) of arrays of real numbers, which asks for "
            f"G @ A.ravel() <= h, got {type(constraints).__name__}."
        ) from error
    if G.ndim != 2 or G.shape[1] != d * d or h.shape != (len(G),):
        raise ValueError(
            f"`constraints` must be (G, h) with G of shape (m, {d * d}) and h of shape (m,), got "
            f"{G.shape} and {h.shape}. A row of G weighs the {d * d} entries of A.ravel()."
        )
    if not (np.all(np.isfinite(G)) and np.all(np.isfinite(h))):
        raise ValueError("`constraints` hold NaN or infinity. Leave out rows without a bound.")
    check_magnitude(G, "G of `constraints`")
    check_magnitude(h, "h of `constraints`")
    return space.coordinates(G.reshape(-1, d, d)), h


def log_trace_errors(A: Array, targets: Array, sources: Array) -> tuple[Array, Array]:
    """Errors log(x'exp(-A)x + z'exp(A)z) of symmetric matrices, with z = x', and their gradients.

    Least, log(2 x'z), where exp(A) carries z onto x, provided that x'z > 0: no symmetric matrix
    carries a vector onto one at a right angle to it or beyond. It is sign-blind, and for matrices
    that are not symmetric it has no least value. The gradients are divided differences of the
    exponential (Daleckii and Krein).
    """
    values, vectors = np.linalg.eigh(A)
    x = np.einsum("nij,ni->nj", vectors, targets)
    z = np.einsum("nij,ni->nj", vectors, sources)
    # the largest exponent is taken out of all: a trial step may be wild
    shift = np.abs(values).max(axis=1, keepdims=True)
    total = np.sum(np.exp(-values - shift) * x**2 + np.exp(values - shift) * z**2, axis=1)
    inner = z[:, :, None] * z[:, None, :] * _divided(values, shift)
    inner -= x[:, :, None] * x[:, None, :] * _divided(-values, shift)
    inner /= total[:, None, None]
    gradients = vectors @ inner @ np.swapaxes(vectors, 1, 2)
    return np.log(total) + shift[:, 0], gradients


def log_trace_errors_diagonal(
    diagonals: Array, targets: Array, sources: Array
) -> tuple[Array, Array]:
    """The same for diagonal matrices, given by their diagonals, for which it is convex."""
    shift = np.abs(diagonals).max(axis=1, keepdims=True)
    back = np.exp(-diagonals - shift) * targets**2
    on = np.exp(diagonals - shift) * sources**2
    total = np.sum(back + on, axis=1)
    return np.log(total) + shift[:, 0], (on - back) / total[:, None]


def matrix_volume(vectors: Array, *, eps1: float, eps2: float) -> tuple[float, Array]:
    """Volume log|M + eps1| + eps2 tr M of matrices written as vectors, M = mean of a a'.

    M is not centred: matrices sum_j c_j V_j fill a subspace through zero, and a mean that costs
    nothing would grow without bound. Convex from eps1 * eps2 = 1/8 on.
    """
    n, p = vectors.shape
    values, directions = np.linalg.eigh(vectors.T @ vectors / n)
    values = np.maximum(values, 0.0)
    volume = float(np.sum(np.log(values + eps1)) + eps2 * np.sum(values))
    weights = (directions / (values + eps1)) @ directions.T + eps2 * np.eye(p)
    return volume, 2.0 / n * vectors @ weights


def _divided(values: Array, shift: Array) -> Array:
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
