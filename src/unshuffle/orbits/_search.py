"""The search of the squared loss: starts of descents, and the choice among their results."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import map_parallel
from unshuffle._progress import Callback, Search
from unshuffle.orbits._least_squares import EXACT, Descent, descend, start_descent
from unshuffle.orbits._problem import Array, MatrixSpace, Pairs, Problem

_NO_PERMUTATION = np.empty(0, dtype=np.intp)
# Descents.
_TRIAL_STEPS = 30  # steps of each start before the best are continued
# Extra cost allowed, in units of what free parameters gain by fitting noise; chosen on noisy
# pieces of four spheres.
_ALLOWANCE = 3.0  # of surface flows over free generators
_SMOOTHING = 0.5  # of smoother surface flows over the best surface flows
# Relaxed fit.
_SMALLEST = 1e-8  # last ridge as a share of the first
_N_STEPS = 100  # more steps span fewer directions
_N_STEPS_LARGE = 24
_LARGE = 2_000_000  # size of the linear maps above which fewer steps are taken
_LARGEST = 30_000_000  # size of the linear maps above which pairs are left out
_RELATIVE_ERROR = 1e-2  # share of the squared displacements attributed to noise
_GAP = 10.0  # ratio of successive spectrum values that separates signal from noise
_MOST_SUGGESTED = 10
# Surface flows.
_MOST_POINTS = 400  # points to fit surfaces to
_MOST_TANGENTS = 4
_MOST_DIMENSIONS = 200  # largest space of matrices
_FADING = 0.7  # decay of weights with squared distance; chosen on noisy pieces of twenty spheres


@dataclass(frozen=True)
class SearchOptions:
    """Parameters of the estimator that control the search."""

    n_generators: int | None
    n_init: int
    max_iter: int
    tol: float
    n_jobs: int | None

    def choose_n_generators(self, spectrum: Array, problem: Problem) -> int:
        """The number the user asked for, or the number that the spectrum suggests."""
        if self.n_generators is not None:
            return self.n_generators
        most = min(problem.space.n_dimensions, len(problem.pairs.targets), _MOST_SUGGESTED)
        return _suggest_number(spectrum, most)


@dataclass(frozen=True)
class Solution:
    """Result of a search."""

    descent: Descent
    spectrum: Array  # mean squares of the matrices of all pairs along principal directions
    scale: float  # factor from costs to the user's units


class OrbitSearch(Search[Solution]):
    """A search that reports generators to the callback."""

    def __init__(
        self, callback: Callback | None, space: MatrixSpace, options: SearchOptions
    ) -> None:
        super().__init__(callback)
        self._space = space
        self._expected = options.n_init * _TRIAL_STEPS + 2 * options.max_iter

    def report(self, objective: float, generators: Array) -> None:
        """Report one step; `generators` are coordinates."""
        self.step(
            objective,
            _NO_PERMUTATION,
            stage="learning generators",
            fraction=self.iteration / self._expected,
            generators=self._space.matrices(generators),
        )


def learn_squared(problem: Problem, options: SearchOptions, search: OrbitSearch) -> Solution:
    """Generators of least squared error, or surface flows that explain the pairs as well.

    The first start comes from a relaxed fit, the second from surface flows (`_fit_flows`), and the
    others are random. Each is tried for a few steps; the best of the first two and the best of the
    others are continued to the end. Surface flows are returned at once if free generators gain no
    more over them than fitting noise would explain: they use all points and extrapolate further.
    """
    values, directions = principal_spectrum(_fit_relaxed(problem.space, problem.pairs))
    k = options.choose_n_generators(values, problem)
    descents = _Descents(problem, options, search, values)
    random = np.random.RandomState(problem.seed)
    shape = (k, problem.space.n_dimensions)
    # with fewer pairs than generators, random directions fill the span
    rest = random.normal(size=(max(0, k - len(directions)), shape[1]))
    informed = [_orthonormalize(np.concatenate([directions[:k], rest]))]
    best = descents.attempt(informed[0])
    if descents.is_exact(best):
        return descents.solution(best)
    smooth = descents.fit_surface_flows(k)
    if smooth and options.n_init > 1:
        informed.append(min(smooth, key=lambda run: run.cost).generators)
        best = min(best, descents.attempt(informed[1]), key=lambda run: run.cost)
    kept = None if descents.is_exact(best) else _choose_smooth(problem.pairs, smooth, best)
    if kept is not None:
        return descents.solution(kept)
    n_random = options.n_init - len(informed)
    starts = [_orthonormalize(random.normal(size=shape)) for _ in range(n_random)]
    tried = map_parallel(descents.attempt, starts, n_jobs=options.n_jobs)
    # an informed start may be slow at first and still end lower
    finalists = [best, min(tried, key=lambda run: run.cost)] if tried else [best]
    ends = map_parallel(descents.finish, finalists, n_jobs=options.n_jobs)
    return descents.solution(min(ends, key=lambda run: run.cost))


@dataclass(frozen=True)
class _Descents:
    """Descents on one problem, which report every step to the search."""

    problem: Problem
    options: SearchOptions
    search: OrbitSearch
    spectrum: Array

    def solution(self, descent: Descent) -> Solution:
        """A descent with what the estimator stores beside it."""
        return Solution(descent, self.spectrum, self.problem.pairs.scale**2)

    def attempt(self, generators: Array) -> Descent:
        """Take the first steps from a start."""
        run = start_descent(self.problem.space, self.problem.pairs, generators)
        self._report(run)
        return self._continue(run, min(_TRIAL_STEPS, self.options.max_iter))

    def finish(self, run: Descent) -> Descent:
        """Take the remaining steps."""
        n_left = self.options.max_iter - (len(run.path) - 2)
        return run if run.converged else self._continue(run, n_left)

    def fit_surface_flows(self, k: int) -> list[Descent]:
        """Surface flows with fitted coefficients, the smoothest first."""
        space, pairs, rows = self.problem.space, self.problem.pairs, self.problem.rows
        if rows is None:
            return []
        found = _fit_flows(space, rows, k, seed=self.problem.seed)
        return [start_descent(space, pairs, each) for each in found if len(each) == k]

    def is_exact(self, run: Descent) -> bool:
        """Whether the cost is zero up to rounding."""
        return run.cost <= 100 * EXACT * len(self.problem.pairs.targets)

    def _continue(self, run: Descent, max_iter: int) -> Descent:
        space, pairs, tol = self.problem.space, self.problem.pairs, self.options.tol
        return descend(space, pairs, run, max_iter=max_iter, tol=tol, report=self._report)

    def _report(self, run: Descent) -> None:
        so_far = replace(run, path=[*run.path], converged=False)
        self.search.offer(self.solution(so_far), -run.cost)
        self.search.report(-run.cost * self.problem.pairs.scale**2, run.generators)


def _choose_smooth(pairs: Pairs, smooth: list[Descent], best: Descent) -> Descent | None:
    """The smoothest surface flows, if they explain the pairs about as well as `best` does."""
    if not smooth:
        return None
    k, p = best.generators.shape
    d = pairs.targets.shape[1]
    # relative gain of k (p - k) free parameters if the cost is all noise
    gain = k * (p - k) / (pairs.n_points * max(1, d - k))
    least = min(run.cost for run in smooth)
    if least > (1.0 + _ALLOWANCE * gain) * best.cost:
        return None
    run = next(run for run in smooth if run.cost <= (1.0 + _SMOOTHING * gain) * least)
    run.converged = True
    return run


def _orthonormalize(coordinates: Array) -> Array:
    return np.ascontiguousarray(np.linalg.qr(coordinates.T)[0].T)


def _fit_relaxed(space: MatrixSpace, pairs: Pairs) -> Array:
    """One matrix for each pair, in coordinates, that together span few directions.

    Each satisfies x - x' = A (x + x') / 2, whose error is of third order in A. Of the many
    solutions, those of small volume log|M + eps| are found, where M is the mean of a a': each step
    is a ridge regression with the last M as prior, while eps shrinks. A regular sample of the
    pairs is used where n * d * p numbers would be too many.
    """
    n, d = pairs.targets.shape
    p = space.n_dimensions
    every = int(np.ceil(n * d * p / _LARGEST))
    x, z = pairs.targets[::every], pairs.sources[::every]
    shift, middle = x - z, 0.5 * (x + z)
    maps = _linear_maps(space, middle)
    squares = np.sum(shift**2, axis=1)
    ridge = float(np.mean(squares / np.maximum(np.sum(middle**2, axis=1), 1e-12))) / p
    noise = max(_RELATIVE_ERROR * float(squares.mean()) / d, np.finfo(float).tiny)
    factor = np.zeros((p, 0))
    coordinates = np.zeros((len(x), p))
    n_steps = _N_STEPS if maps.size < _LARGE else _N_STEPS_LARGE
    shrink = _SMALLEST ** (1.0 / n_steps)
    for _ in range(n_steps):
        coordinates = _ridge_regression(maps, shift, factor, ridge=ridge, noise=noise)
        values, directions = principal_spectrum(coordinates)
        factor = np.asarray(directions.T * np.sqrt(values))  # of the mean of a a'
        ridge *= shrink
    return coordinates


def principal_spectrum(coordinates: Array) -> tuple[Array, Array]:
    """Mean squares along the (uncentered) principal directions, largest first, and these."""
    _, singular, directions = np.linalg.svd(coordinates, full_matrices=False)
    return singular**2 / len(coordinates), directions


def _suggest_number(values: Array, most: int) -> int:
    """Directions before the first tenfold drop of the spectrum, or 95% of its sum without one."""
    most = min(most, values.size)
    padded = np.append(values, 0.0)
    falls = np.flatnonzero(padded[:most] >= _GAP * padded[1 : most + 1])
    if falls.size:
        return int(falls[0]) + 1
    held = np.cumsum(values) / values.sum()
    return min(int(np.searchsorted(held, 0.95)) + 1, most)


def _linear_maps(space: MatrixSpace, vectors: Array) -> Array:
    """Linear maps from the coordinates of A to A x, shape (n, d, p)."""
    n, d = vectors.shape
    index = np.arange(space.n_dimensions)
    maps = np.zeros((n, d, index.size))
    if space.mirror:
        maps[:, space.columns, index] = space.mirror * space.scale * vectors[:, space.rows]
    maps[:, space.rows, index] = space.scale * vectors[:, space.columns]
    return maps


def _ridge_regression(
    maps: Array, shift: Array, factor: Array, *, ridge: float, noise: float
) -> Array:
    """Ridge regression for each pair, with prior covariance factor factor' + ridge."""
    d = shift.shape[1]
    low = maps @ factor
    S = low @ np.swapaxes(low, 1, 2) + ridge * (maps @ np.swapaxes(maps, 1, 2))
    S += noise * np.eye(d)
    weights = np.linalg.solve(S, shift[:, :, None])[:, :, 0]
    kept = np.einsum("ndr,nd->nr", low, weights) @ factor.T
    return np.asarray(kept + ridge * np.einsum("ndp,nd->np", maps, weights))


def _fit_flows(space: MatrixSpace, X: Array, n_generators: int, *, seed: int) -> list[Array]:
    """Surface flows: generators V whose flow V x is tangent to the surface of the points.

    A quadratic surface is fitted around each point; with its normals n, the generators are the
    null space of all n'V x. Wide neighborhoods average out noise and narrow ones follow curvature,
    so several widths are tried, the widest first. Returns orthonormal coordinates for each width;
    an empty list if there are too few points or too many dimensions.
    """
    points = np.unique(X, axis=0)
    d = points.shape[1]
    n_tangents = min(n_generators, d - 1)
    n_terms = 1 + n_tangents + n_tangents * (n_tangents + 1) // 2
    if not (1 <= n_tangents <= _MOST_TANGENTS and space.n_dimensions <= _MOST_DIMENSIONS):
        return []
    if len(points) > _MOST_POINTS:
        chosen = np.random.RandomState(seed).permutation(len(points))[:_MOST_POINTS]
        points = points[np.sort(chosen)]
    widths, width = [], len(points)
    while width >= 3 * n_terms:
        widths.append(width)
        width //= 2
    squares = np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=2)
    nearest = np.argsort(squares, axis=1, kind="stable")
    fitted = (_fit_surfaces(points, nearest[:, :width], n_tangents) for width in widths)
    return [_solve_flows(space, *surfaces, n_generators) for surfaces in fitted]


def _fit_surfaces(
    points: Array, nearest: NDArray[np.intp], n_tangents: int
) -> tuple[Array, Array, Array]:
    """Points projected onto quadratic surfaces through their neighbors, normals, and weights.

    `nearest` holds the neighbors of each point, itself first. The weights are inverse variances
    of the slopes, which are smaller at the boundary of the data.
    """
    around = points[nearest] - points[:, None, :]
    squares = np.sum(around**2, axis=2)
    weights = 1.0 - _FADING * squares / squares.max(axis=1, keepdims=True)
    frame = _principal_frame(around, weights)
    for _ in range(2):  # the second time in the frame of the fitted surface
        tangents, normals = frame[:, :, :n_tangents], frame[:, :, n_tangents:]
        coefficients, precision = _quadratic_fit(around @ tangents, around @ normals, weights)
        projected = points + np.einsum("ndj,nj->nd", normals, coefficients[:, 0])
        slopes = np.swapaxes(coefficients[:, 1 : 1 + n_tangents], 1, 2)
        tilted = tangents + normals @ slopes
        frame = np.linalg.qr(np.concatenate([tilted, normals], axis=2))[0]
    return projected, frame[:, :, n_tangents:], precision


def _solve_flows(
    space: MatrixSpace, projected: Array, normals: Array, precision: Array, n_generators: int
) -> Array:
    """Coordinates of the matrices V with the smallest n'V x, the smallest first."""
    d = projected.shape[1]
    # n'V x is the inner product of V and n x'
    leaving = np.einsum("n,nia,nj->naij", np.sqrt(precision), normals, projected).reshape(-1, d, d)
    rows = space.coordinates(leaving)
    moving = space.coordinates(np.einsum("ai,nj->naij", np.eye(d), projected).reshape(-1, d, d))
    # leave out matrices that move no point: they are tangent to any surface
    values, axes = np.linalg.eigh(moving.T @ moving)
    axes = axes[:, values > 1e-9 * values[-1]]
    _, directions = np.linalg.eigh(axes.T @ (rows.T @ rows) @ axes)
    return np.asarray((axes @ directions[:, :n_generators]).T)


def _principal_frame(around: Array, weights: Array) -> Array:
    """Principal axes of weighted neighborhoods, widest first, as columns."""
    middle = np.einsum("nk,nkd->nd", weights, around) / weights.sum(axis=1)[:, None]
    centered = around - middle[:, None, :]
    scatter = np.swapaxes(centered * weights[:, :, None], 1, 2) @ centered
    return np.asarray(np.linalg.eigh(scatter)[1][:, :, ::-1])


def _quadratic_fit(along: Array, across: Array, weights: Array) -> tuple[Array, Array]:
    """Coefficients of `across` as a quadratic function of `along`, and precision of the slopes."""
    n_tangents = along.shape[2]
    first, second = np.triu_indices(along.shape[2])
    scale = np.sqrt(np.mean(along**2, axis=(1, 2), keepdims=True)) + np.finfo(float).tiny
    unit = along / scale
    terms = np.concatenate(
        [np.ones((*along.shape[:2], 1)), unit, unit[:, :, first] * unit[:, :, second]], axis=2
    )
    weighted = np.swapaxes(terms * weights[:, :, None], 1, 2)
    H = weighted @ terms
    H += 1e-12 * np.trace(H, axis1=1, axis2=2)[:, None, None] * np.eye(H.shape[1])
    inverse = np.linalg.inv(H)
    found = inverse @ (weighted @ across)
    spread = inverse @ (weighted * weights[:, None, :]) @ terms
    slopes = slice(1, 1 + n_tangents)
    variances = np.trace((spread @ inverse)[:, slopes, slopes], axis1=1, axis2=2)
    found[:, slopes] /= scale
    precision = scale[:, 0, 0] ** 2 / np.maximum(variances, np.finfo(float).tiny)
    return np.asarray(found), np.asarray(precision / precision.max())
