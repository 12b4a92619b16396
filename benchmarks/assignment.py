"""Linear assignment against SciPy's `linear_sum_assignment`, lap and POT's network simplex."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from benchmarks._measure import Method, Problem
from unshuffle._assign.linear import assign
from unshuffle.datasets import grid_points
from unshuffle.kernels import center, rbf_kernel

TITLE = "Linear assignment"
ABOUT = (
    "Smooth benefits are those of a step of kernelized sorting, of random colors on a grid; the "
    "next step starts from the prices of the one before. Rough ones are uniform numbers, ties are "
    "20 different integers. We stop at a certified gap of 1e-5; the loss is measured against the "
    "exact solution of SciPy."
)
SIZE = "items"
CORES = None
TOL = 1e-5
SIZES = (256, 1024, 2025, 4096)
QUICK = (256, 1024)

Benefit = NDArray[np.float64]


class Costs(NamedTuple):
    """What is maximized, and prices from an earlier assignment."""

    benefit: Benefit
    prices: NDArray[np.float64] | None = None


def problems() -> Iterator[Problem]:
    methods = (
        Method("unshuffle", ours, "ours"),
        Method("SciPy", by_scipy),
        Method("lap", by_lap, needs="lap"),
        Method("POT emd", by_pot, needs="ot"),
    )
    kinds: dict[str, Callable[[int], Costs]] = {
        "smooth": lambda n: Costs(sorting_steps(n)[0]),
        "smooth, next step": next_step,
        "rough": rough,
        "ties": tied,
    }
    for name, make in kinds.items():
        for n_items in SIZES if name == "smooth" else SIZES[:3]:
            quick = n_items in QUICK
            yield Problem(name, n_items, partial(make, n_items), methods, loss, quick)


def sorting_steps(n_items: int) -> tuple[Benefit, Benefit]:
    """Benefits of two successive steps of kernelized sorting: random colors on a grid."""
    random = np.random.default_rng(0)
    side = int(np.ceil(np.sqrt(n_items)))
    K = center(rbf_kernel(random.random((n_items, 3))))
    L = center(rbf_kernel(grid_points(side, side)[:n_items]))
    first = np.ascontiguousarray(K @ L[random.permutation(n_items)])
    second = np.ascontiguousarray(K @ L[assign(first, tol=TOL).columns])
    return first, second


def next_step(n_items: int) -> Costs:
    first, second = sorting_steps(n_items)
    return Costs(second, assign(first, tol=TOL, solver="auction").prices)


def rough(n_items: int) -> Costs:
    return Costs(np.random.default_rng(0).random((n_items, n_items)))


def tied(n_items: int) -> Costs:
    return Costs(np.random.default_rng(0).integers(0, 20, (n_items, n_items)).astype(float))


def ours(costs: Costs) -> Callable[[], Any]:
    assign(np.eye(20), solver="auction")  # compile
    return lambda: assign(costs.benefit, costs.prices, tol=TOL).columns


def by_scipy(costs: Costs) -> Callable[[], Any]:
    return lambda: linear_sum_assignment(costs.benefit, maximize=True)[1]


def by_lap(costs: Costs) -> Callable[[], Any]:
    import lap

    return lambda: lap.lapjv(-costs.benefit)[1]


def by_pot(costs: Costs) -> Callable[[], Any]:
    import ot

    return lambda: ot.emd([], [], -costs.benefit, numItermax=10**8).argmax(axis=1)


def loss(costs: Costs, columns: NDArray[np.intp]) -> dict[str, float]:
    """Share of the best total that is missed."""
    rows = np.arange(len(columns))
    best = costs.benefit[linear_sum_assignment(costs.benefit, maximize=True)].sum()
    return {"loss": max(0.0, (best - costs.benefit[rows, columns].sum()) / abs(best))}
