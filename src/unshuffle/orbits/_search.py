"""The search of the squared loss: starts of descents, and the choice among their results."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unshuffle._core.matrix_exponentials import matrices_of
from unshuffle._run.search import Callback, Search
from unshuffle._run.types import Floats
from unshuffle.orbits._algebra import complete_algebra
from unshuffle.orbits._exponential_derivatives import action
from unshuffle.orbits._least_squares import EXACT, Descent, descend, start_descent
from unshuffle.orbits._likelihood import PairDensity
from unshuffle.orbits._locate import locate
from unshuffle.orbits._problem import MatrixSpace, OrbitProblem, VectorPairs
from unshuffle.orbits._surface_flows import fit_flows

_NO_PERMUTATION = np.empty(0, dtype=np.intp)
# Descents.
_TRIAL_STEPS = 30  # steps of each start before the best are continued
# Extra cost allowed, in units of what free parameters gain by fitting noise; chosen on noisy
# pieces of four spheres.
_ALLOWANCE = 3.0  # of surface flows over free generators
_SMOOTHING = 0.5  # of smoother surface flows over the best surface flows
_COMMON = 0.1  # share of the squared displacements that one common motion may leave
_COMMON_TURN = 0.25  # the same of a rotation, which has fewer parameters to fit them
_WORSE = 2.0  # ratio of squared errors up to which a rotation is preferred to a general matrix
_MOST_LOCATED = 50  # rows whose distance from an orbit is computed
_MOST_OBLIQUE = 1e8  # condition of eigenvectors above which a logarithm by them is not trusted
# Fewer generators that explain the pairs as well.
_ROUNDING = 1e-6  # difference of mean log densities that counts as zero
_TOLERATED = 3.0  # ratio of their error variance, which an extra generator lowers by fitting noise
# Relaxed fit.
_SMALLEST = 1e-8  # last ridge as a share of the first
_N_STEPS = 100  # more steps span fewer directions
_N_STEPS_LARGE = 24
_LARGE = 2_000_000  # size of the linear maps above which fewer steps are taken
_LARGEST = 30_000_000  # size of the linear maps above which pairs are left out
_RELATIVE_ERROR = 1e-2  # share of the squared displacements attributed to noise
_GAP = 10.0  # ratio of successive spectrum values that separates signal from noise
_MOST_SUGGESTED = 10


@dataclass(frozen=True)
class SearchOptions:
    """Parameters of the estimator that control the search."""

    n_generators: int | None
    n_init: int
    max_iter: int
    tol: float
    n_jobs: int | None

    def choose_n_generators(self, spectrum: Floats, problem: OrbitProblem) -> int:
        """The number the user asked for, or the number that the spectrum suggests."""
        if self.n_generators is not None:
            return self.n_generators
        space, pairs = problem.space, problem.pairs
        most = min(space.n_dimensions, len(pairs.targets), _MOST_SUGGESTED)
        # More generators than equations determine would fit any pairs.
        most = min(most, max(1, pairs.targets.size // space.n_dimensions))
        return _suggest_number(spectrum, most)


@dataclass(frozen=True)
class Solution:
    """Result of a search."""

    descent: Descent
    spectrum: Floats  # mean squares of the matrices of all pairs along principal directions
    scale: float  # factor from costs to the user's units
    n_determined: int  # generators that the pairs determine
    n_open: int = 0  # others that do not follow from these by commutators


class OrbitSearch(Search[Solution]):
    """A search that reports generators to the callback."""

    def __init__(
        self, callback: Callback | None, space: MatrixSpace, options: SearchOptions
    ) -> None:
        super().__init__(callback)
        self._space = space
        self._expected = options.n_init * _TRIAL_STEPS + 2 * options.max_iter

    def report(self, objective: float, generators: Floats) -> None:
        """Report one step; `generators` are coordinates."""
        if self._is_kept("report", objective, generators):
            return
        self.step(
            objective,
            _NO_PERMUTATION,
            stage="learning generators",
            fraction=self.iteration / self._expected,
            generators=self._space.matrices(generators),
        )


def learn_squared(problem: OrbitProblem, options: SearchOptions, search: OrbitSearch) -> Solution:
    """Generators of least squared error, or surface flows that explain the pairs as well.

    If fewer generators explain the pairs as well, the data do not determine the others. These are
    then completed by commutators, if the determined ones and their commutators span an algebra of
    the right dimension. If not, they are dropped, unless the user asked for them.
    """
    descents = _Descents(problem, options, search, options.n_generators or 1)
    if options.n_generators is None:
        common = descents.follow_common_motion()
        if common is not None:
            return descents.solution(common)
    k = options.choose_n_generators(descents.relaxed[0], problem)
    descents.wanted = k
    found = _learn(descents, k)
    fewer = _learn_fewer(descents, found)
    m = len(fewer.generators)
    if m == k:
        return descents.solution(found)
    completed = complete_algebra(problem.space, fewer.generators, k)
    if completed is not None:
        run = start_descent(problem.space, problem.pairs, completed)
        run.converged = True
        return replace(descents.solution(run), n_determined=m)
    if options.n_generators is None:
        return descents.solution(fewer)
    return replace(descents.solution(found), n_determined=m, n_open=k - m)


def learn_again(problem: OrbitProblem, options: SearchOptions, search: OrbitSearch) -> Floats:
    """Matrices of as many generators as `options` says, from the informed starts alone."""
    k = options.n_generators or 1
    descents = _Descents(problem, options, search, k)
    return problem.space.matrices(
        descents.finish(descents.try_informed(k, n_init=1)[0]).generators
    )


def _learn(descents: "_Descents", k: int) -> Descent:
    """The best of informed and random starts.

    Each is tried for a few steps; the best informed and the best random one are continued to the
    end.
    """
    best, n_informed, done = descents.try_informed(k, n_init=descents.options.n_init)
    if done:
        return best
    n_init, n_jobs = descents.options.n_init, descents.options.n_jobs
    starts = [descents.random_start(k, seed) for seed in range(n_init - n_informed)]
    tried = descents.search.map(descents.attempt, starts, n_jobs=n_jobs)
    # an informed start may be slow at first and still end lower
    finalists = [best, min(tried, key=lambda run: run.cost)] if tried else [best]
    ended = descents.search.map(descents.finish, finalists, n_jobs=n_jobs)
    return min(ended, key=lambda run: run.cost)


def _learn_fewer(descents: "_Descents", found: Descent) -> Descent:
    """The fewest generators that explain the pairs as well as those found."""
    kept = found
    while len(kept.generators) > 1:
        fewer, _, done = descents.try_informed(len(kept.generators) - 1, n_init=1)
        if not descents.is_as_good(fewer, kept):
            break
        kept = fewer if done else descents.finish(fewer)
    return kept


@dataclass
class _Descents:
    """Descents on one problem, which report every step to the search."""

    problem: OrbitProblem
    options: SearchOptions
    search: OrbitSearch
    wanted: int  # number of generators

    @cached_property
    def relaxed(self) -> tuple[Floats, Floats]:
        """Spectrum and principal directions of the relaxed fit, in coordinates."""
        return principal_spectrum(_fit_relaxed(self.problem.space, self.problem.pairs))

    def solution(self, descent: Descent) -> Solution:
        """A descent with what the estimator stores beside it."""
        scale, k = self.problem.pairs.scale**2, len(descent.generators)
        return Solution(descent, self.relaxed[0], scale, n_determined=k)

    def random_start(self, k: int, seed: int) -> Floats:
        """Random orthonormal generators."""
        random = np.random.RandomState((self.problem.seed + seed) % 2**32)
        return _orthonormalize(random.normal(size=(k, self.problem.space.n_dimensions)))

    def try_informed(self, k: int, *, n_init: int) -> tuple[Descent, int, bool]:
        """The best of two starts, the number of starts tried, and whether the search can end.

        If all pairs share one motion, its generator is the answer. Otherwise, the first start
        comes from the relaxed fit, the second, if `n_init` allows it, from surface flows. These
        are returned themselves if free generators gain no more over them than fitting noise would
        explain: they use all points and extrapolate further.
        """
        common = self.follow_common_motion() if k == 1 else None
        if common is not None:
            return common, 1, True
        start = self.relaxed[1][:k]
        if len(start) < k:  # fewer pairs than generators
            rest = self.random_start(k, 0)[len(start) :]
            start = _orthonormalize(np.concatenate([start, rest]))
        best, n_tried = self.attempt(start), 1
        if self._is_exact(best):
            return best, n_tried, True
        smooth = self._fit_surface_flows(k)
        if smooth and n_init > 1:
            second = self.attempt(min(smooth, key=lambda run: run.cost).generators)
            best, n_tried = min(best, second, key=lambda run: run.cost), 2
            if self._is_exact(best):
                return best, n_tried, True
        kept = _choose_smooth(self.problem.pairs, smooth, best)
        return (best, n_tried, False) if kept is None else (kept, n_tried, True)

    def follow_common_motion(self) -> Descent | None:
        """Descent from the one motion that all pairs share, if they do.

        A rotation is preferred unless a general matrix explains the data much better: it has half
        as many unknowns, and never grows, so that it extrapolates further.
        """
        space, pairs = self.problem.space, self.problem.pairs
        turns = space.rotations()
        start = None if turns is None else _common_turn(turns, pairs)
        if turns is not None and start is not None:
            found = self._turn(turns, start)
            if turns.n_dimensions == space.n_dimensions:
                return found
            errors = [self._error(run) for run in (found, self.attempt(found.generators))]
            if errors[0] <= _WORSE * errors[1]:
                return found
        start = _common_motion(space, pairs)
        return None if start is None else self.finish(self.attempt(start))

    def _error(self, run: Descent) -> float:
        """Squared distances of the rows from the orbit of the prototype; of targets, the cost.

        Steps between neighbors may hide that a matrix grows; it shows on the way to far rows.
        """
        rows, start = self.problem.rows, self.problem.prototype.inner
        if rows is None:
            return run.cost
        rows = rows[:: max(1, len(rows) // _MOST_LOCATED)]
        V = self.problem.space.matrices(run.generators)
        found = locate(V, start, rows, slack=0.0, seed=self.problem.seed)
        return float(
            np.sum((rows - action(matrices_of(V, found), np.broadcast_to(start, rows.shape))) ** 2)
        )

    def _turn(self, turns: MatrixSpace, start: Floats) -> Descent:
        """Descent among rotations."""
        space, pairs, options = self.problem.space, self.problem.pairs, self.options

        def general(run: Descent) -> Descent:
            return replace(run, generators=space.coordinates(turns.matrices(run.generators)))

        def report(run: Descent) -> None:
            self._report(general(run))

        run = start_descent(turns, pairs, start)
        report(run)
        run = descend(turns, pairs, run, max_iter=options.max_iter, tol=options.tol, report=report)
        return general(run)

    def attempt(self, generators: Floats) -> Descent:
        """Take the first steps from a start."""
        run = start_descent(self.problem.space, self.problem.pairs, generators)
        self._report(run)
        return self._continue(run, min(_TRIAL_STEPS, self.options.max_iter))

    def finish(self, run: Descent) -> Descent:
        """Take the remaining steps."""
        n_left = self.options.max_iter - (len(run.path) - 2)
        return run if run.converged else self._continue(run, n_left)

    def _fit_surface_flows(self, k: int) -> list[Descent]:
        """Surface flows with fitted coefficients, the smoothest first."""
        space, pairs, rows = self.problem.space, self.problem.pairs, self.problem.rows
        if rows is None:
            return []
        found = fit_flows(space, rows, k, seed=self.problem.seed)
        return [start_descent(space, pairs, each) for each in found if len(each) == k]

    def _is_exact(self, run: Descent) -> bool:
        """Whether the cost is zero up to rounding."""
        return run.cost <= 100 * EXACT * len(self.problem.pairs.targets)

    def is_as_good(self, fewer: Descent, found: Descent) -> bool:
        """Whether fewer generators explain the pairs about as well as those found."""
        space, x, z = self.problem.space, self.problem.pairs.targets, self.problem.pairs.sources
        densities, logs = [], []
        for run in (fewer, found):
            V, c = space.matrices(run.generators), run.coefficients
            densities.append(PairDensity.fitted(V, c, x, z))
            logs.append(densities[-1].mean_log(c, x, z))
        saturated = len(found.generators) >= x.shape[1]  # then any pairs fit
        close = densities[0].across <= _TOLERATED * densities[1].across
        return logs[0] >= logs[1] - _ROUNDING and (saturated or close)

    def _continue(self, run: Descent, max_iter: int) -> Descent:
        space, pairs, tol = self.problem.space, self.problem.pairs, self.options.tol
        return descend(space, pairs, run, max_iter=max_iter, tol=tol, report=self._report)

    def _report(self, run: Descent) -> None:
        if len(run.generators) == self.wanted:
            so_far = replace(run, path=[*run.path], converged=False)
            self.search.offer(self.solution(so_far), -run.cost)
        self.search.report(-run.cost * self.problem.pairs.scale**2, run.generators)


def _choose_smooth(pairs: VectorPairs, smooth: list[Descent], best: Descent) -> Descent | None:
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


def _common_motion(space: MatrixSpace, pairs: VectorPairs) -> Floats | None:
    """Generator of the linear map that takes all sources to their targets, if one does.

    This is the case in a film, where each vector follows the one before. The generator is then the
    logarithm of the least squares map. A ridge keeps directions at rest that the pairs leave open.
    """
    x, z = pairs.targets, pairs.sources
    n, d = x.shape
    shift, total = x - z, float(np.sum((x - z) ** 2))
    if n <= d or not total:  # some map fits any pairs, or nothing moves
        return None
    missed = float(np.sum((shift - z @ np.linalg.lstsq(z, shift, rcond=None)[0]) ** 2))
    if missed > _COMMON * total:
        return None
    ridge = missed / (n - d) * float(np.sum(z**2)) / total  # variances of noise over motion
    change = np.linalg.solve(z.T @ z + (ridge + 1e-12) * np.eye(d), z.T @ shift)
    return _logarithm(space, np.eye(d) + change.T)


def _common_turn(rotations: MatrixSpace, pairs: VectorPairs) -> Floats | None:
    """Generator of the rotation that takes all sources to their targets, if one does."""
    x, z = pairs.targets, pairs.sources
    n, d = x.shape
    total = float(np.sum((x - z) ** 2))
    if not total or n * d <= rotations.n_dimensions:
        return None
    left, _, right = np.linalg.svd(x.T @ z)
    right[-1] *= np.sign(np.linalg.det(left @ right))  # a rotation, no reflection
    turn = left @ right
    missed = float(np.sum((x - z @ turn.T) ** 2))
    if missed > _COMMON_TURN * total:
        return None
    return _logarithm(rotations, turn)


def _logarithm(space: MatrixSpace, step: Floats) -> Floats | None:
    """Direction of the logarithm of a matrix, by its eigenvectors; None if it has none."""
    values, vectors = np.linalg.eig(step)
    if np.any((values.real <= 0.0) & (np.abs(values.imag) <= 1e-8 * np.abs(values.real))):
        return None  # no real logarithm
    if np.linalg.cond(vectors) > _MOST_OBLIQUE:
        return None
    logarithm = (vectors * np.log(values.astype(complex))) @ np.linalg.inv(vectors)
    coordinates = space.coordinates(logarithm.real[np.newaxis])
    norm = np.linalg.norm(coordinates)
    return coordinates / norm if np.isfinite(norm) and norm > 1e-12 else None


def _orthonormalize(coordinates: Floats) -> Floats:
    return np.ascontiguousarray(np.linalg.qr(coordinates.T)[0].T)


def _fit_relaxed(space: MatrixSpace, pairs: VectorPairs) -> Floats:
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
    squared_maps = maps @ np.swapaxes(maps, 1, 2)
    squares = np.sum(shift**2, axis=1)
    ridge = float(np.mean(squares / np.maximum(np.sum(middle**2, axis=1), 1e-12))) / p
    noise = max(_RELATIVE_ERROR * float(squares.mean()) / d, np.finfo(float).tiny)
    factor = np.zeros((p, 0))
    coordinates = np.zeros((len(x), p))
    n_steps = _N_STEPS if maps.size < _LARGE else _N_STEPS_LARGE
    shrink = _SMALLEST ** (1.0 / n_steps)
    for _ in range(n_steps):
        S = ridge * squared_maps + noise * np.eye(d)
        coordinates = _ridge_regression(maps, shift, factor, S, ridge=ridge)
        root = coordinates if len(x) <= p else np.linalg.qr(coordinates)[1]
        factor = root.T / np.sqrt(len(x))  # of the mean of a a'
        ridge *= shrink
    return coordinates


def principal_spectrum(coordinates: Floats) -> tuple[Floats, Floats]:
    """Mean squares along the (uncentered) principal directions, largest first, and these."""
    _, singular, directions = np.linalg.svd(coordinates, full_matrices=False)
    return singular**2 / len(coordinates), directions


def _suggest_number(values: Floats, most: int) -> int:
    """Directions before the first tenfold drop of the spectrum, or 95% of its sum without one."""
    most = min(most, values.size)
    padded = np.append(values, 0.0)
    falls = np.flatnonzero(padded[:most] >= _GAP * padded[1 : most + 1])
    if falls.size:
        return int(falls[0]) + 1
    held = np.cumsum(values) / values.sum()
    return min(int(np.searchsorted(held, 0.95)) + 1, most)


def _linear_maps(space: MatrixSpace, vectors: Floats) -> Floats:
    """Linear maps from the coordinates of A to A x, shape (n, d, p)."""
    n, d = vectors.shape
    index = np.arange(space.n_dimensions)
    maps = np.zeros((n, d, index.size))
    if space.mirror:
        maps[:, space.columns, index] = space.mirror * space.scale * vectors[:, space.rows]
    maps[:, space.rows, index] = space.scale * vectors[:, space.columns]
    return maps


def _ridge_regression(
    maps: Floats, shift: Floats, factor: Floats, fixed: Floats, *, ridge: float
) -> Floats:
    """Ridge regression for each pair, with prior covariance factor factor' + ridge.

    `fixed` is the covariance of the shifts without `factor`: of the ridge and the noise.
    """
    low = maps @ factor
    S = low @ np.swapaxes(low, 1, 2) + fixed
    weights = np.linalg.solve(S, shift[:, :, None])[:, :, 0]
    kept = np.einsum("ndr,nd->nr", low, weights) @ factor.T
    return np.asarray(kept + ridge * np.einsum("ndp,nd->np", maps, weights))
