"""Descents from several starts: what they lower, and the best order that any of them has seen."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import as_array
from unshuffle._bags import MISSING, Bags, check_gap, gathered
from unshuffle._parallel import map_parallel
from unshuffle._points import PointFeatures
from unshuffle._progress import Callback, Search
from unshuffle.alignment._paper import variational_sweep
from unshuffle.alignment._sweeps import (
    Arrangement,
    Array,
    Order,
    covariance_sweep,
    filled,
    mean_sweep,
    trace,
)
from unshuffle.alignment._volume import log_volume


@dataclass(frozen=True)
class Sized:
    """Bags brought to one size, with the features of their points."""

    bags: Bags
    chosen: Order  # indices into the bags, shape (n_bags, n_points); -1 where a point is missing
    present: NDArray[np.bool_]
    mapped: Array  # features, shape (n_bags, n_points, n_features); zeros where missing

    @classmethod
    def of(cls, bags: Bags, chosen: Order, features: PointFeatures) -> "Sized":
        """These points of the bags, and their features."""
        present, points = chosen != MISSING, gathered(bags, chosen)
        mapped = features.map(points.reshape(-1, bags.width)).reshape(*chosen.shape, -1)
        return cls(bags, chosen, present, np.where(present[:, :, None], mapped, 0.0))

    def starts(self, init: Any, n_init: int, random: np.random.RandomState) -> list[int | Order]:
        """Bags to assign all others to, from the first that fills all slots on.

        An order that the user gave takes the place of the first.
        """
        full = np.flatnonzero(self.present.all(axis=1))
        others = full[1:][random.permutation(full.size - 1)]
        starts: list[int | Order] = [int(each) for each in [*full[:1], *others][:n_init]]
        if init is not None:
            wanted = _init_orders(init, self.bags.sizes, self.chosen.shape[1])
            # where the solver has each of the user's points
            starts[0] = np.take_along_axis(np.argsort(self.chosen, axis=1), wanted, axis=1)
        return starts


@dataclass(frozen=True)
class Descending:
    """What is lowered and how, by parameters of the estimator; the ridge is in units of data."""

    method: str
    ridge: float
    swaps: bool
    max_iter: int
    tol: float


@dataclass(frozen=True)
class Run:
    """What one descent has come to.

    Volumes are known from the start of the method's own stage on. The rank is the stage, and
    what has been gained there.
    """

    order: Order
    traces: tuple[float, ...]  # at the start and after each sweep
    volumes: tuple[float, ...]
    rank: tuple[int, float]
    n_sweeps: int = 0
    converged: bool = False


class Descents(Search[Run]):
    """A search by descents from several starts."""

    def __init__(
        self, callback: Callback | None, how: Descending, sized: Sized, n_starts: int
    ) -> None:
        super().__init__(callback)
        self.how = how
        self.sized = sized
        self._n_stages = n_starts * (1 if how.method == "mean" else 2)
        self._n_done = 0

    def solve(self, starts: list[int | Order], n_jobs: int | None) -> Run:
        """Best end of all descents."""
        runs = map_parallel(self._descend, starts, n_jobs=n_jobs)
        return max(runs, key=lambda run: run.rank)  # the first of equals, whatever n_jobs

    def _descend(self, start: int | Order) -> Run:
        """Lower the objective from one start until no bag moves."""
        points, present = self.sized.mapped, self.sized.present
        if isinstance(start, np.ndarray):
            bags = Arrangement.ordered(points, present, start)
        else:
            bags = Arrangement.assigned_to(points, present, start)
        own, first = self.how.method, trace(bags)
        volumes = (self._volume(bags),) if own == "mean" else ()
        run = Run(bags.order.copy(), (first,), volumes, rank=(0, -first))
        alone = bags.order.shape[1] == 1  # bags of one point have one order
        self._report(run, share=float(self._n_stages) if alone else 0.0)
        if alone:
            return replace(run, n_sweeps=1, converged=True)
        run = self._stage(run, bags, partial(mean_sweep, bags), by_volume=False)
        if own == "mean":
            return run
        ridge, settled = self.how.ridge, run.converged
        sweep = partial(variational_sweep, bags, ridge=ridge)
        if own == "covariance":
            sweep = partial(covariance_sweep, bags, ridge=ridge, swaps=self.how.swaps)
        run = replace(run, volumes=(self._volume(bags),), converged=False)
        run = self._stage(run, bags, sweep, by_volume=True)
        return replace(run, converged=settled and run.converged)

    def _stage(
        self, run: Run, bags: Arrangement, sweep: Callable[[], int], *, by_volume: bool
    ) -> Run:
        """Sweep until nothing moves; whether it came to that is in `converged`."""
        settled = False
        for k in range(self.how.max_iter):
            before, n_moved = (run.volumes if by_volume else run.traces)[-1], sweep()
            now = trace(bags)
            volumes = (*run.volumes, self._volume(bags)) if run.volumes else ()
            value = volumes[-1] if by_volume else now
            run = replace(
                run,
                order=bags.order.copy(),
                traces=(*run.traces, now),
                volumes=volumes,
                rank=(int(by_volume), -value),
                n_sweeps=run.n_sweeps + 1,
            )
            # A log-volume has no scale; a trace has that of the data.
            settled = n_moved == 0 or before - value <= self.how.tol * (1 if by_volume else before)
            self._report(run, share=1.0 if settled else (k + 1) / self.how.max_iter)
            if settled:
                break
        with self._lock:
            self._n_done += 1
        return replace(run, converged=settled)

    def _volume(self, bags: Arrangement) -> float:
        return log_volume(filled(bags), ridge=self.how.ridge)

    def _report(self, run: Run, *, share: float) -> None:
        """Offer a run, and tell the callback."""
        self.offer(run, run.rank)
        stage, gained = run.rank
        self.step(
            gained,
            np.take_along_axis(self.sized.chosen, run.order, axis=1),
            stage="shrinking the volume" if stage else "aligning to the mean",
            fraction=(self._n_done + share) / self._n_stages,
        )


def check_points_vary(points: NDArray[np.float64], name: str) -> None:
    """Refuse points that are all the same: any order of them is as good."""
    if not np.ptp(points, axis=0).any():
        raise ValueError(
            f"All points of {name} are equal, so nothing tells one from another. Check that the "
            "right columns were passed."
        )
    check_gap(points, name)


def check_features_vary(features: NDArray[np.float64], kernel: Any) -> None:
    """Refuse a kernel by which all points are the same."""
    gap = float(np.ptp(features, axis=0).max())
    if not gap > 1e-12 * float(np.abs(features).max()):
        label = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "callable")
        raise ValueError(
            f"By the kernel {label} all points are equal, so nothing tells one from another. Pass "
            "a larger gamma, or another kernel."
        )


def check_no_larger(sizes: NDArray[np.intp], n_points: int, name: str) -> None:
    """Refuse bags with more points than there are slots, where none may be left out."""
    large = np.flatnonzero(sizes > n_points)
    if large.size:
        raise ValueError(
            f"Bag {large[0]} of {name} has {sizes[large[0]]} points for {n_points} slots "
            f'({large.size} such bag(s)). Pass unequal="resample", which draws some of them.'
        )


def check_missing_points(unequal: str, method: str, n_points: int | None) -> None:
    """Refuse missing points where every bag must fill every slot."""
    if unequal == "missing" and method != "mean":
        raise ValueError(
            f'unequal="missing" leaves slots empty, and method={method!r} has no covariance '
            'for these. Use method="mean", or unequal="resample".'
        )
    if unequal == "missing" and n_points is not None:
        raise ValueError(
            f'unequal="missing" has as many slots as the largest bag has points, got n_points='
            f'{n_points}. Leave n_points out, or use unequal="resample".'
        )


def _init_orders(init: Any, sizes: NDArray[np.intp], n_points: int) -> NDArray[np.intp]:
    """One order of all points for each bag, all bags of one size."""
    orders = as_array(init, "`init`")
    if (sizes != n_points).any():
        raise ValueError(
            f"`init` gives an order of {n_points} points to each bag, but bags have from "
            f"{sizes.min()} to {sizes.max()} points. Leave `init` out, or pass bags of one size."
        )
    if orders.shape != (sizes.size, n_points) or not np.issubdtype(orders.dtype, np.integer):
        raise ValueError(
            f"`init` must hold whole numbers and have shape {(sizes.size, n_points)}, one order "
            f"for each bag, got shape {orders.shape} and dtype {orders.dtype}. Pass the "
            "`permutations_` of a fitted estimator."
        )
    wrong = np.flatnonzero((np.sort(orders, axis=1) != np.arange(n_points)).any(axis=1))
    if wrong.size:
        raise ValueError(
            f"Row {wrong[0]} of `init` is no order of {n_points} points: each number from 0 to "
            f"{n_points - 1} must stand there once."
        )
    return orders.astype(np.intp)
