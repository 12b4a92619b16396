"""Descents from several starts, and which of their ends is kept."""

import threading
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import map_parallel
from unshuffle._progress import Reporter
from unshuffle.orbits._log_trace import (
    Constraints,
    LogTraceCost,
    VolumeRun,
    descend_by_gradients,
    descend_by_majorizing,
)
from unshuffle.orbits._low_rank import EXACT, Run, descend, started
from unshuffle.orbits._matrices import MatrixSpace
from unshuffle.orbits._pairs import Pairs
from unshuffle.orbits._tangents import tangent_starts
from unshuffle.orbits._volume_start import spectrum

Array = NDArray[np.float64]

_TRIAL_STEPS = 30  # of each start, before the best go on
# In units of what free numbers gain by fitting noise; chosen on noisy pieces of four spheres.
_ALLOWANCE = 3.0  # by which flows within a surface may explain the pairs less well
_SMOOTHING = 0.5  # by which smoother flows may do so than the best of them
_NOTHING_ORDERED = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Settings:
    """How to search.

    Attributes
    ----------
    n_init : int
        Starts.
    max_iter : int
        Most steps of a descent.
    tol : float
        Relative fall below which a descent ends.
    seed : int
        Of random starts.
    n_jobs : int or None
        Threads over starts.
    """

    n_init: int
    max_iter: int
    tol: float
    seed: int
    n_jobs: int | None


class Search:
    """Progress of a fit and the best it has seen.

    Parameters
    ----------
    space : MatrixSpace
        Matrices to choose from.
    pairs : Pairs
        What is to be carried where.
    settings : Settings
        How to search.
    reporter : Reporter
        Calls the user's callback; raises `Stopped` when it says so.
    scale : float
        Squared length of the user's vectors over that of the pairs', for costs reported.
    """

    def __init__(
        self,
        space: MatrixSpace,
        pairs: Pairs,
        settings: Settings,
        reporter: Reporter,
        scale: float,
    ) -> None:
        self.space = space
        self.pairs = pairs
        self.settings = settings
        self.reporter = reporter
        self.scale = scale
        self.best: Run | None = None
        self.best_volume: VolumeRun | None = None
        self._lock = threading.Lock()
        self._expected = settings.n_init * _TRIAL_STEPS + 2 * settings.max_iter

    def low_rank(self, directions: Array, points: Array | None, k: int) -> Run:
        """Generators of least squared error, or simpler ones that explain the pairs as well.

        The first start is the span of a relaxed fit (`directions`), the second that of flows
        within the surface of the `points`; the rest are random. Each goes some steps, and the
        best of the first two and the best of the rest go on to the end. Where the pairs are
        noisy, flows within the surface are kept unless they explain the pairs less well than free
        generators do after allowance for the noise that these fit: they come from all points at
        once and extrapolate further.
        """
        random = np.random.RandomState(self.settings.seed)
        shape = (k, self.space.n_dimensions)
        # fewer pairs than generators leave the rest of the span to chance
        rest = random.normal(size=(max(0, k - len(directions)), shape[1]))
        informed = [_orthonormal(np.concatenate([directions[:k], rest]))]
        best = self._try(informed[0])
        if self._exact(best):
            return best
        smooth = self._flows(points, k)
        if smooth and self.settings.n_init > 1:
            informed.append(min(smooth, key=lambda run: run.cost).generators)
            best = min(best, self._try(informed[1]), key=lambda run: run.cost)
        kept = None if self._exact(best) else self._simplest(smooth, best)
        if kept is not None:
            return kept
        n_random = self.settings.n_init - len(informed)
        starts = [_orthonormal(random.normal(size=shape)) for _ in range(n_random)]
        tried = map_parallel(self._try, starts, n_jobs=self.settings.n_jobs)
        # an informed start may be slow at first and end lower
        finalists = [best, min(tried, key=lambda run: run.cost)] if tried else [best]
        ends = map_parallel(self._finish, finalists, n_jobs=self.settings.n_jobs)
        return min(ends, key=lambda run: run.cost)

    def log_trace(
        self, cost: LogTraceCost, start: Array, constraints: Constraints | None, *, solver: str
    ) -> VolumeRun:
        """Matrices of least log-trace cost."""
        max_iter, tol = self.settings.max_iter, self.settings.tol
        self._report_volume(VolumeRun(start, [cost(start)[0]]))
        if solver == "mm" or constraints is not None:
            return descend_by_majorizing(
                cost, start, constraints, max_iter=max_iter, tol=tol, report=self._report_volume
            )
        return descend_by_gradients(
            cost, start, max_iter=max_iter, tol=tol, report=self._report_volume
        )

    def _flows(self, points: Array | None, k: int) -> list[Run]:
        """Flows within the surface of the points, from the smoothest to the closest fit."""
        if points is None:
            return []
        found = tangent_starts(self.space, points, k, seed=self.settings.seed)
        return [started(self.space, self.pairs, each) for each in found if len(each) == k]

    def _simplest(self, smooth: list[Run], best: Run) -> Run | None:
        """The smoothest flows, if they explain the pairs about as well as free generators."""
        if not smooth:
            return None
        k, p = best.generators.shape
        d = self.pairs.targets.shape[1]
        # share of a cost that is all noise by which k (p - k) free numbers lower it
        gain = k * (p - k) / (self.pairs.n_points * max(1, d - k))
        least = min(run.cost for run in smooth)
        if least > (1.0 + _ALLOWANCE * gain) * best.cost:
            return None
        run = next(run for run in smooth if run.cost <= (1.0 + _SMOOTHING * gain) * least)
        run.converged = True
        return run

    def _try(self, generators: Array) -> Run:
        return self._descend(generators, max_iter=min(_TRIAL_STEPS, self.settings.max_iter))

    def _finish(self, run: Run) -> Run:
        n_left = self.settings.max_iter - (len(run.path) - 2)
        return run if run.converged else self._go_on(run, n_left)

    def _descend(self, generators: Array, *, max_iter: int) -> Run:
        run = started(self.space, self.pairs, generators)
        self._report(run)
        return self._go_on(run, max_iter)

    def _go_on(self, run: Run, max_iter: int) -> Run:
        tol = self.settings.tol
        return descend(
            self.space, self.pairs, run, max_iter=max_iter, tol=tol, report=self._report
        )

    def _exact(self, run: Run) -> bool:
        return run.cost <= 100 * EXACT * len(self.pairs.targets)

    def _report(self, run: Run) -> None:
        with self._lock:
            if self.best is None or run.cost < self.best.cost:
                self.best = replace(run, path=[*run.path], converged=False)
        self._step(-run.cost * self.scale, run.generators)

    def _report_volume(self, run: VolumeRun) -> None:
        self.best_volume = replace(run, path=[*run.path], converged=False)
        self._step(-run.path[-1], spectrum(run.matrices)[1][:1])

    def _step(self, objective: float, generators: Array) -> None:
        self.reporter.step(
            objective,
            _NOTHING_ORDERED,
            stage="learning generators",
            fraction=self.reporter.iteration / self._expected,
            generators=self.space.matrices(generators),
        )


def _orthonormal(coordinates: Array) -> Array:
    return np.ascontiguousarray(np.linalg.qr(coordinates.T)[0].T)
