"""Descents from several starts, and the best order that any of them has seen."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unshuffle._progress import Reporter
from unshuffle.alignment._arrangement import Arrangement
from unshuffle.alignment._covariance import covariance_sweep
from unshuffle.alignment._mean import filled, mean_sweep, trace
from unshuffle.alignment._variational import variational_sweep
from unshuffle.objectives import log_volume

MEAN_STAGE = "aligning to the mean"
VOLUME_STAGE = "shrinking the volume"


@dataclass(frozen=True)
class Settings:
    """What all descents share.

    Attributes
    ----------
    estimator : {"mean", "covariance", "variational"}
        What is lowered, and how.
    ridge : float
        Added to the eigenvalues of the covariance.
    swaps : bool
        Whether "covariance" exchanges pairs of points too.
    max_iter : int
        Most sweeps of a stage.
    tol : float
        Fall of the objective in one sweep below which a stage ends.
    """

    estimator: str
    ridge: float
    swaps: bool
    max_iter: int
    tol: float


@dataclass
class Run:
    """One descent.

    Attributes
    ----------
    order : ndarray of shape (n_bags, n_points)
        The order it has come to.
    traces : list of float
        Trace at the start and after each sweep.
    volumes : list of float
        Log-volume at the start of the estimator's own stage and after each of its sweeps.
    n_sweeps : int
        Sweeps over all bags.
    converged : bool
        Whether every stage ended by itself.
    rank : (int, float)
        Stage, and what it has gained there; larger is better.
    """

    order: NDArray[np.intp]
    traces: list[float] = field(default_factory=list)
    volumes: list[float] = field(default_factory=list)
    n_sweeps: int = 0
    converged: bool = True
    rank: tuple[int, float] = (0, -np.inf)


class Search:
    """Progress of a fit and the best order it has seen.

    Parameters
    ----------
    settings : Settings
        How to descend.
    reporter : Reporter
        Calls the user's callback; raises `Stopped` when it says so.
    to_user : callable
        Turns an order into the user's numbering.
    n_starts : int
        Descents, for the share of work done.
    """

    def __init__(
        self,
        settings: Settings,
        reporter: Reporter,
        to_user: Callable[[NDArray[np.intp]], NDArray[np.intp]],
        n_starts: int,
    ) -> None:
        self.settings = settings
        self.reporter = reporter
        self.to_user = to_user
        self.best: Run | None = None
        self._n_stages = n_starts * (1 if settings.estimator == "mean" else 2)
        self._n_done = 0
        self._lock = threading.Lock()

    def descend(self, bags: Arrangement) -> Run:
        """Lower the objective from one start until no bag moves."""
        own, ridge = self.settings.estimator, self.settings.ridge
        run = Run(bags.order.copy(), [trace(bags)], rank=(0, -trace(bags)))
        if own == "mean":
            run.volumes.append(self._volume(bags))
        alone = bags.order.shape[1] == 1  # bags of one point have one order
        self._report(run, MEAN_STAGE, share=float(self._n_stages) if alone else 0.0)
        if alone:
            run.n_sweeps = 1
            return run
        self._stage(run, bags, partial(mean_sweep, bags), by_volume=False)
        if own == "covariance":
            swaps = self.settings.swaps
            sweep = partial(covariance_sweep, bags, ridge=ridge, swaps=swaps)
            self._stage(run, bags, sweep, by_volume=True)
        elif own == "variational":
            self._stage(run, bags, partial(variational_sweep, bags, ridge=ridge), by_volume=True)
        return run

    def _stage(
        self, run: Run, bags: Arrangement, sweep: Callable[[], int], *, by_volume: bool
    ) -> None:
        settings = self.settings
        if by_volume:
            run.volumes.append(self._volume(bags))
        path, settled = run.volumes if by_volume else run.traces, False
        for k in range(settings.max_iter):
            before, n_moved = path[-1], sweep()
            run.n_sweeps += 1
            run.order = bags.order.copy()
            run.traces.append(trace(bags))
            if run.volumes:
                run.volumes.append(self._volume(bags))
            # A log-volume has no scale; a trace has that of the data.
            least = settings.tol * (1.0 if by_volume else before)
            settled = n_moved == 0 or before - path[-1] <= least
            run.rank = (int(by_volume), -path[-1])
            name = VOLUME_STAGE if by_volume else MEAN_STAGE
            self._report(run, name, share=1.0 if settled else (k + 1) / settings.max_iter)
            if settled:
                break
        run.converged &= settled
        with self._lock:
            self._n_done += 1

    def _volume(self, bags: Arrangement) -> float:
        return log_volume(filled(bags), ridge=self.settings.ridge)

    def _report(self, run: Run, stage: str, *, share: float) -> None:
        with self._lock:
            if self.best is None or run.rank > self.best.rank:
                self.best = replace(
                    run, traces=[*run.traces], volumes=[*run.volumes], converged=False
                )
            fraction = (self._n_done + share) / self._n_stages
        self.reporter.step(run.rank[1], self.to_user(run.order), stage=stage, fraction=fraction)
