"""Descents of the trace or log-volume from several starts, and checks of the bags."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.arrays import as_array
from unshuffle._core.bags import MISSING, Bags, check_gap, gathered
from unshuffle._core.kernel_features import PointFeatures, kernel_name
from unshuffle._run.search import Callback, Search
from unshuffle._run.types import Floats, Order
from unshuffle.alignment._paper import variational_sweep
from unshuffle.alignment._sweeps import BagOrders, covariance_sweep, filled, mean_sweep, trace
from unshuffle.alignment._volume import log_volume


@dataclass(frozen=True)
class SizedBags:
    """Bags of one size, with the features of their points."""

    bags: Bags
    chosen: Order  # indices into the bags, shape (n_bags, n_points); -1 if missing
    present: NDArray[np.bool_]
    mapped: Floats  # features, shape (n_bags, n_points, n_features); zeros if missing

    @classmethod
    def of(cls, bags: Bags, chosen: Order, features: PointFeatures) -> "SizedBags":
        """Choose these points of the bags, and map them to features."""
        present, points = chosen != MISSING, gathered(bags, chosen)
        mapped = features.map(points.reshape(-1, bags.width)).reshape(*chosen.shape, -1)
        return cls(bags, chosen, present, np.where(present[:, :, None], mapped, 0.0))

    def starts(self, init: Any, n_init: int, random: np.random.RandomState) -> list[int | Order]:
        """Indices of complete bags to assign all others to; `init` replaces the first."""
        full = np.flatnonzero(self.present.all(axis=1))
        others = full[1:][random.permutation(full.size - 1)]
        starts: list[int | Order] = [int(each) for each in [*full[:1], *others][:n_init]]
        if init is not None:
            wanted = _init_orders(init, self.bags.sizes, self.chosen.shape[1])
            # in the solver's own numbering of the points
            starts[0] = np.take_along_axis(np.argsort(self.chosen, axis=1), wanted, axis=1)
        return starts


@dataclass(frozen=True)
class DescentOptions:
    """Parameters of the estimator that control a descent."""

    method: str
    ridge: float  # in units of the data
    swaps: bool
    max_iter: int
    tol: float


@dataclass(frozen=True)
class DescentRun:
    """State of one descent."""

    order: Order
    traces: tuple[float, ...]  # at the start and after each sweep
    volumes: tuple[float, ...]  # the same, from the start of the method's own stage
    rank: tuple[int, float]  # the stage, and the negative of the value it lowers
    n_sweeps: int = 0
    converged: bool = False


class Descents(Search[DescentRun]):
    """A search by descents from several starts."""

    def __init__(
        self, callback: Callback | None, options: DescentOptions, sized: SizedBags, n_starts: int
    ) -> None:
        super().__init__(callback)
        self.options = options
        self.sized = sized
        self._n_stages = n_starts * (1 if options.method == "mean" else 2)
        self._n_done = 0

    def solve(self, starts: list[int | Order], n_jobs: int | None) -> DescentRun:
        """Descend from all starts, and return the best run."""
        runs = self.map(self._descend, starts, n_jobs=n_jobs)
        return max(runs, key=lambda run: run.rank)  # the first of ties, whatever n_jobs

    def _descend(self, start: int | Order) -> DescentRun:
        """Descend from one start until no bag moves."""
        points, present = self.sized.mapped, self.sized.present
        if isinstance(start, np.ndarray):
            bags = BagOrders.ordered(points, present, start)
        else:
            bags = BagOrders.assigned_to(points, present, start)
        method, first = self.options.method, trace(bags)
        volumes = (self._volume(bags),) if method == "mean" else ()
        run = DescentRun(bags.order.copy(), (first,), volumes, rank=(0, -first))
        single = bags.order.shape[1] == 1  # bags of one point have one order
        self._report(run, share=float(self._n_stages) if single else 0.0)
        if single:
            return replace(run, n_sweeps=1, converged=True)
        run = self._sweep(run, bags, partial(mean_sweep, bags), by_volume=False)
        if method == "mean":
            return run
        ridge, mean_converged = self.options.ridge, run.converged
        sweep = partial(variational_sweep, bags, ridge=ridge)
        if method == "covariance":
            sweep = partial(covariance_sweep, bags, ridge=ridge, swaps=self.options.swaps)
        run = replace(run, volumes=(self._volume(bags),), converged=False)
        run = self._sweep(run, bags, sweep, by_volume=True)
        return replace(run, converged=mean_converged and run.converged)

    def _sweep(
        self, run: DescentRun, bags: BagOrders, sweep: Callable[[], int], *, by_volume: bool
    ) -> DescentRun:
        """Repeat a sweep until convergence, or at most `max_iter` times."""
        converged = False
        for k in range(self.options.max_iter):
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
            # The trace has the scale of the data; the log-volume has none.
            scale = 1 if by_volume else before
            converged = n_moved == 0 or before - value <= self.options.tol * scale
            self._report(run, share=1.0 if converged else (k + 1) / self.options.max_iter)
            if converged:
                break
        self._end_stage()
        return replace(run, converged=converged)

    def _end_stage(self) -> None:
        if not self._is_kept("_end_stage"):
            with self._lock:
                self._n_done += 1

    def _volume(self, bags: BagOrders) -> float:
        return log_volume(filled(bags), ridge=self.options.ridge)

    def _report(self, run: DescentRun, *, share: float) -> None:
        """Offer a run to the search, and call the callback."""
        if self._is_kept("_report", run, share=share):
            return
        self.offer(run, run.rank)
        stage, objective = run.rank
        order = np.take_along_axis(self.sized.chosen, run.order, axis=1)
        name = "shrinking the volume" if stage else "aligning to the mean"
        self.step(objective, order, stage=name, fraction=(self._n_done + share) / self._n_stages)


def check_points_vary(points: Floats) -> None:
    """Refuse points that are all equal, for which all orders are equivalent."""
    if not np.ptp(points, axis=0).any():
        raise ValueError("All points of X are equal. Check that the right columns were passed.")
    check_gap(points, "X")


def check_features_vary(features: Floats, kernel: Any) -> None:
    """Refuse a kernel that maps all points to one."""
    gap = float(np.ptp(features, axis=0).max())
    if not gap > 1e-12 * float(np.abs(features).max()):
        raise ValueError(
            f"For the kernel {kernel_name(kernel)} all points are equal. Pass a larger gamma, or "
            "another kernel."
        )


def check_no_larger(sizes: Order, n_points: int) -> None:
    """Refuse bags with more points than the common order."""
    large = np.flatnonzero(sizes > n_points)
    if large.size:
        raise ValueError(
            f"Bag {large[0]} of X has {sizes[large[0]]} points, more than the {n_points} of "
            f'the common order ({large.size} larger bag(s)). Fit with unequal="resample", which '
            "draws some of them."
        )


def check_missing_points(unequal: str, method: str, n_points: int | None) -> None:
    """Refuse missing points with a method, or a number of points, that does not support them."""
    if unequal == "missing" and method != "mean":
        raise ValueError(
            f'unequal="missing" leaves positions empty, which method={method!r} does not support. '
            'Use method="mean", or unequal="resample".'
        )
    if unequal == "missing" and n_points is not None:
        raise ValueError(
            f'unequal="missing" uses the size of the largest bag, got n_points={n_points}. Leave '
            'n_points out, or use unequal="resample".'
        )


def _init_orders(init: Any, sizes: Order, n_points: int) -> Order:
    """One order of all points for each bag; all bags must have one size."""
    orders = as_array(init, "`init`")
    if (sizes != n_points).any():
        raise ValueError(
            f"`init` requires bags of one size, but bags have from {sizes.min()} to {sizes.max()} "
            "points. Leave `init` out, or pass bags of one size."
        )
    if orders.shape != (sizes.size, n_points) or not np.issubdtype(orders.dtype, np.integer):
        raise ValueError(
            f"`init` must hold integers and have shape {(sizes.size, n_points)}, one order for "
            f"each bag, got shape {orders.shape} and dtype {orders.dtype}. Pass `permutations_` "
            "of a fitted estimator."
        )
    wrong = np.flatnonzero((np.sort(orders, axis=1) != np.arange(n_points)).any(axis=1))
    if wrong.size:
        raise ValueError(
            f"Row {wrong[0]} of `init` is not an order of {n_points} points. Each number from 0 "
            f"to {n_points - 1} must appear once."
        )
    return orders.astype(np.intp)
