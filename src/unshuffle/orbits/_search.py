"""Where descents start, and which of their ends is kept."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import map_parallel
from unshuffle._progress import Callback, Search
from unshuffle.orbits._low_rank import EXACT, Run, descend, started
from unshuffle.orbits._problem import MatrixSpace, Pairs, Problem

Array = NDArray[np.float64]

_NOTHING_ORDERED = np.empty(0, dtype=np.intp)
# Of the descents.
_TRIAL_STEPS = 30  # of each start, before the best go on
# In units of what free numbers gain by fitting noise; chosen on noisy pieces of four spheres.
_ALLOWANCE = 3.0  # by which flows within a surface may explain the pairs less well
_SMOOTHING = 0.5  # by which smoother flows may do so than the best of them
# Of the relaxed fit.
_SMALLEST = 1e-8  # ridge at the end, as a share of the first
_N_STEPS = 100  # slower steps span fewer directions
_N_STEPS_LARGE = 24
_LARGE = 2_000_000  # numbers in the stack of linear maps from which on time matters
_LARGEST = 30_000_000
_RELATIVE_ERROR = 1e-2  # of squared displacements, left to noise
_GAP = 10.0  # from one value of the spectrum to the next
_MOST_SUGGESTED = 10
# Of flows within a surface.
_MOST_POINTS = 400  # of which surfaces are fitted
_MOST_TANGENTS = 4
_MOST_DIMENSIONS = 200  # of the space of matrices
_FADING = 0.7  # of weights with squared distance; chosen on noisy pieces of twenty spheres


@dataclass(frozen=True)
class Settings:
    """How to search, as the parameters of the estimator say."""

    n_generators: int | None
    n_init: int
    max_iter: int
    tol: float
    n_jobs: int | None

    def number(self, spectrum: Array, problem: Problem) -> int:
        """Generators wanted, or suggested by a spectrum."""
        if self.n_generators is not None:
            return self.n_generators
        most = (problem.space.n_dimensions, len(problem.pairs.targets), _MOST_SUGGESTED)
        return _suggested_number(spectrum, min(most))


@dataclass(frozen=True)
class Solution:
    """What is stored of a descent.

    Attributes
    ----------
    run : Run
        Generators, coefficients, and the costs on the way.
    spectrum : ndarray
        Mean squares of one matrix for each pair along their principal directions.
    scale : float
        Of the costs in the user's units.
    """

    run: Run
    spectrum: Array
    scale: float


class OrbitSearch(Search[Solution]):
    """A search that tells the callback of generators."""

    def __init__(self, callback: Callback | None, space: MatrixSpace, settings: Settings) -> None:
        super().__init__(callback)
        self._space = space
        self._expected = settings.n_init * _TRIAL_STEPS + 2 * settings.max_iter

    def tell(self, objective: float, generators: Array) -> None:
        """Count one step of a solver, whose generators are in coordinates of the space."""
        self.step(
            objective,
            _NOTHING_ORDERED,
            stage="learning generators",
            fraction=self.iteration / self._expected,
            generators=self._space.matrices(generators),
        )


def learn_squared(problem: Problem, settings: Settings, search: OrbitSearch) -> Solution:
    """Generators of least squared error, or simpler ones that explain the pairs as well.

    The first start is the span of a relaxed fit, the second that of flows within the surface of
    the points; the rest are random. Each goes some steps, and the best of the first two and the
    best of the rest go on to the end. Where the pairs are noisy, flows within the surface are kept
    unless they explain the pairs less well than free generators do after allowance for the noise
    that these fit: they come from all points at once and extrapolate further.
    """
    values, directions = spectrum(_small_matrices(problem.space, problem.pairs))
    k = settings.number(values, problem)
    descents = _Descents(problem, settings, search, values)
    random = np.random.RandomState(problem.seed)
    shape = (k, problem.space.n_dimensions)
    # fewer pairs than generators leave the rest of the span to chance
    rest = random.normal(size=(max(0, k - len(directions)), shape[1]))
    informed = [_orthonormal(np.concatenate([directions[:k], rest]))]
    best = descents.trial(informed[0])
    if descents.is_exact(best):
        return descents.solution(best)
    smooth = descents.flows(k)
    if smooth and settings.n_init > 1:
        informed.append(min(smooth, key=lambda run: run.cost).generators)
        best = min(best, descents.trial(informed[1]), key=lambda run: run.cost)
    kept = None if descents.is_exact(best) else _simplest(problem.pairs, smooth, best)
    if kept is not None:
        return descents.solution(kept)
    n_random = settings.n_init - len(informed)
    starts = [_orthonormal(random.normal(size=shape)) for _ in range(n_random)]
    tried = map_parallel(descents.trial, starts, n_jobs=settings.n_jobs)
    # an informed start may be slow at first and end lower
    finalists = [best, min(tried, key=lambda run: run.cost)] if tried else [best]
    ends = map_parallel(descents.finish, finalists, n_jobs=settings.n_jobs)
    return descents.solution(min(ends, key=lambda run: run.cost))


@dataclass(frozen=True)
class _Descents:
    """Descents on one problem, which offer and report each of their steps."""

    problem: Problem
    settings: Settings
    search: OrbitSearch
    spectrum: Array

    def solution(self, run: Run) -> Solution:
        """A run as it is stored."""
        return Solution(run, self.spectrum, self.problem.pairs.scale**2)

    def trial(self, generators: Array) -> Run:
        """The first steps from a start."""
        run = started(self.problem.space, self.problem.pairs, generators)
        self._report(run)
        return self._go_on(run, min(_TRIAL_STEPS, self.settings.max_iter))

    def finish(self, run: Run) -> Run:
        """The other steps."""
        n_left = self.settings.max_iter - (len(run.path) - 2)
        return run if run.converged else self._go_on(run, n_left)

    def flows(self, k: int) -> list[Run]:
        """Flows within the surface of the points, from the smoothest to the closest fit."""
        space, pairs, rows = self.problem.space, self.problem.pairs, self.problem.rows
        if rows is None:
            return []
        found = _tangent_starts(space, rows, k, seed=self.problem.seed)
        return [started(space, pairs, each) for each in found if len(each) == k]

    def is_exact(self, run: Run) -> bool:
        """Whether nothing is left to gain."""
        return run.cost <= 100 * EXACT * len(self.problem.pairs.targets)

    def _go_on(self, run: Run, max_iter: int) -> Run:
        space, pairs, tol = self.problem.space, self.problem.pairs, self.settings.tol
        return descend(space, pairs, run, max_iter=max_iter, tol=tol, report=self._report)

    def _report(self, run: Run) -> None:
        so_far = replace(run, path=[*run.path], converged=False)
        self.search.offer(self.solution(so_far), -run.cost)
        self.search.tell(-run.cost * self.problem.pairs.scale**2, run.generators)


def _simplest(pairs: Pairs, smooth: list[Run], best: Run) -> Run | None:
    """The smoothest flows, if they explain the pairs about as well as free generators."""
    if not smooth:
        return None
    k, p = best.generators.shape
    d = pairs.targets.shape[1]
    # share of a cost that is all noise by which k (p - k) free numbers lower it
    gain = k * (p - k) / (pairs.n_points * max(1, d - k))
    least = min(run.cost for run in smooth)
    if least > (1.0 + _ALLOWANCE * gain) * best.cost:
        return None
    run = next(run for run in smooth if run.cost <= (1.0 + _SMOOTHING * gain) * least)
    run.converged = True
    return run


def _orthonormal(coordinates: Array) -> Array:
    return np.ascontiguousarray(np.linalg.qr(coordinates.T)[0].T)


def _small_matrices(space: MatrixSpace, pairs: Pairs) -> Array:
    """One matrix for each pair, in coordinates, that together span few directions.

    Each carries its pair to first order, (x - x') = A (x + x') / 2, which errs by the third power
    of A only. Among the many that do, those of small volume log|M + eps| are sought, where M is
    the mean of a a': each step is a ridge regression with the last M, while eps shrinks from the
    size of the matrices to a trifle of it. Of many pairs, where n * d * p numbers would be too
    much, a regular part is taken.
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
        coordinates = _regressed(maps, shift, factor, ridge=ridge, noise=noise)
        values, directions = spectrum(coordinates)
        factor = np.asarray(directions.T * np.sqrt(values))  # of the mean of a a'
        ridge *= shrink
    return coordinates


def spectrum(coordinates: Array) -> tuple[Array, Array]:
    """Mean squares along the principal directions of matrices, largest first, and these.

    Not centred, as the span of the matrices is not.
    """
    _, singular, directions = np.linalg.svd(coordinates, full_matrices=False)
    return singular**2 / len(coordinates), directions


def _suggested_number(values: Array, most: int) -> int:
    """Directions before a spectrum first falls tenfold; as many as hold 95% where it does not."""
    most = min(most, values.size)
    padded = np.append(values, 0.0)
    falls = np.flatnonzero(padded[:most] >= _GAP * padded[1 : most + 1])
    if falls.size:
        return int(falls[0]) + 1
    held = np.cumsum(values) / values.sum()
    return min(int(np.searchsorted(held, 0.95)) + 1, most)


def _linear_maps(space: MatrixSpace, vectors: Array) -> Array:
    """Maps from the coordinates of A to A x, shape (n, d, p)."""
    n, d = vectors.shape
    index = np.arange(space.n_dimensions)
    maps = np.zeros((n, d, index.size))
    if space.mirror:
        maps[:, space.columns, index] = space.mirror * space.scale * vectors[:, space.rows]
    maps[:, space.rows, index] = space.scale * vectors[:, space.columns]
    return maps


def _regressed(maps: Array, shift: Array, factor: Array, *, ridge: float, noise: float) -> Array:
    """Ridge regression with prior covariance factor factor' + ridge, one for each pair."""
    d = shift.shape[1]
    low = maps @ factor
    S = low @ np.swapaxes(low, 1, 2) + ridge * (maps @ np.swapaxes(maps, 1, 2))
    S += noise * np.eye(d)
    weights = np.linalg.solve(S, shift[:, :, None])[:, :, 0]
    kept = np.einsum("ndr,nd->nr", low, weights) @ factor.T
    return np.asarray(kept + ridge * np.einsum("ndp,nd->np", maps, weights))


def _tangent_starts(space: MatrixSpace, X: Array, n_generators: int, *, seed: int) -> list[Array]:
    """Generators whose flow V x stays within the surface on which the points lie.

    A quadratic surface is fitted around each point; with its normals n, the generators are the
    null space of all n'V x. Wide neighbourhoods average noise out and narrow ones follow curves,
    so several widths are tried, the widest first. Returns coordinates of orthonormal generators,
    one array for each width, and none where there are too few points or too many dimensions.
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
    fitted = (_local_surfaces(points, nearest[:, :width], n_tangents) for width in widths)
    return [_flows_within(space, *surfaces, n_generators) for surfaces in fitted]


def _local_surfaces(
    points: Array, nearest: NDArray[np.intp], n_tangents: int
) -> tuple[Array, Array, Array]:
    """Points moved onto a quadratic surface through their neighbours, and its normals there.

    `nearest` are the neighbours of each point, nearest first, itself included. The last result is
    the trust in each: one over the variance of the slopes per unit of noise, less at the rim than
    amid the data.
    """
    around = points[nearest] - points[:, None, :]
    squares = np.sum(around**2, axis=2)
    weights = 1.0 - _FADING * squares / squares.max(axis=1, keepdims=True)
    frame = _principal_frame(around, weights)
    for _ in range(2):  # again in the frame of the surface, no longer that of the cloud
        tangents, normals = frame[:, :, :n_tangents], frame[:, :, n_tangents:]
        coefficients, trust = _quadratic_fit(around @ tangents, around @ normals, weights)
        on = points + np.einsum("ndj,nj->nd", normals, coefficients[:, 0])
        slopes = np.swapaxes(coefficients[:, 1 : 1 + n_tangents], 1, 2)
        tilted = tangents + normals @ slopes
        frame = np.linalg.qr(np.concatenate([tilted, normals], axis=2))[0]
    return on, frame[:, :, n_tangents:], trust


def _flows_within(
    space: MatrixSpace, on: Array, normals: Array, trust: Array, n_generators: int
) -> Array:
    """Matrices V, in coordinates, for which all n'V x are smallest, the smallest first."""
    d = on.shape[1]
    # n'V x is the product of V with n x', entry by entry
    leaving = np.einsum("n,nia,nj->naij", np.sqrt(trust), normals, on).reshape(-1, d, d)
    rows = space.coordinates(leaving)
    moving = space.coordinates(np.einsum("ai,nj->naij", np.eye(d), on).reshape(-1, d, d))
    # matrices that move nothing stay within any surface, and are left out
    values, axes = np.linalg.eigh(moving.T @ moving)
    axes = axes[:, values > 1e-9 * values[-1]]
    _, directions = np.linalg.eigh(axes.T @ (rows.T @ rows) @ axes)
    return np.asarray((axes @ directions[:, :n_generators]).T)


def _principal_frame(around: Array, weights: Array) -> Array:
    """Orthonormal axes of weighted neighbourhoods, widest first, as columns."""
    middle = np.einsum("nk,nkd->nd", weights, around) / weights.sum(axis=1)[:, None]
    centred = around - middle[:, None, :]
    scatter = np.swapaxes(centred * weights[:, :, None], 1, 2) @ centred
    return np.asarray(np.linalg.eigh(scatter)[1][:, :, ::-1])


def _quadratic_fit(along: Array, across: Array, weights: Array) -> tuple[Array, Array]:
    """Coefficients of `across` as a quadratic function of `along`, and trust in the slopes."""
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
    trust = scale[:, 0, 0] ** 2 / np.maximum(variances, np.finfo(float).tiny)
    return np.asarray(found), np.asarray(trust / trust.max())
