"""Linear assignment against SciPy's `linear_sum_assignment` and POT's network simplex."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import ot
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from benchmarks._measure import Row, timed
from unshuffle import _auction
from unshuffle._assign import MAX_BIDS_PER_ROW, assign
from unshuffle.datasets import grid_points
from unshuffle.kernels import center, rbf_kernel

TOPIC = "Linear assignment"
TOL = 1e-5
SMOOTH = {True: (256, 1024, 2025), False: (256, 1024, 2025, 4096)}
OTHERS = {True: 1024, False: 2025}

Benefit = NDArray[np.float64]


def rows(*, quick: bool) -> Iterator[Row]:
    """Smooth costs with cold and warm starts, then costs that are harder for the auction."""
    compile_auction()
    for n_items in SMOOTH[quick]:
        first, second = sorting_steps(n_items)
        yield from against_peers(f"smooth, m={n_items}", first)
        prices = assign(first, tol=TOL, solver="auction").prices
        yield from against_peers(f"smooth, next step, m={n_items}", second, prices)
    n_items = OTHERS[quick]
    wide = np.ascontiguousarray(first[: int(0.8 * n_items), :n_items])
    yield from against_peers(f"smooth, {wide.shape[0]} x {wide.shape[1]}", wide)
    random = np.random.default_rng(0)
    rough = random.random((n_items, n_items))
    yield from against_peers(f"rough (uniform), m={n_items}", rough)
    tied = random.integers(0, 20, (n_items, n_items)).astype(float)
    yield from against_peers(f"ties (20 integers), m={n_items}", tied)


def compile_auction() -> None:
    """Compile, or load from the cache, before timing."""
    for dtype in (np.float64, np.float32):
        assign(np.eye(20, dtype=dtype), solver="auction")


def sorting_steps(n_items: int) -> tuple[Benefit, Benefit]:
    """Benefits of two successive steps of kernelized sorting: random colors on a grid."""
    random = np.random.default_rng(0)
    side = int(np.ceil(np.sqrt(n_items)))
    K = center(rbf_kernel(random.random((n_items, 3))))
    L = center(rbf_kernel(grid_points(side, side)[:n_items]))
    first = np.ascontiguousarray(K @ L[random.permutation(n_items)])
    second = np.ascontiguousarray(K @ L[assign(first, tol=TOL).columns])
    return first, second


def against_peers(
    problem: str, benefit: Benefit, prices: NDArray[np.float64] | None = None
) -> Iterator[Row]:
    """One row per peer, with our certified gap, our true loss and the number of bids."""
    repeats = 3 if benefit.shape[0] < 3000 else 1
    found, seconds = timed(
        partial(assign, benefit, prices, tol=TOL, solver="auction"), repeats=repeats
    )
    _, n_bids = _auction.auction(
        benefit, prices, tol=TOL, offset=0.0, max_bids_per_row=MAX_BIDS_PER_ROW
    )
    # lower bound: a solver must read the matrix once; "reads" is our time in that unit
    _, one_read = timed(benefit.max, repeats=3)
    best: float | None = None
    for peer, solve in (("scipy", by_scipy), ("POT emd", by_pot)):
        if solve is by_pot and benefit.shape[0] != benefit.shape[1]:
            continue
        value, peer_seconds = timed(partial(solve, benefit))
        best = value if best is None else max(best, value)
        yield Row(
            TOPIC,
            problem,
            f"unshuffle {found.solver}",
            seconds,
            peer,
            peer_seconds,
            {
                "gap": found.gap,
                "true loss": max(0.0, (best - found.value) / abs(best)),
                "bids/row": n_bids / max(benefit.shape),
                "reads": seconds / one_read,
            },
        )


def by_scipy(benefit: Benefit) -> float:
    matched = linear_sum_assignment(benefit, maximize=True)
    return float(benefit[matched].sum())


def by_pot(benefit: Benefit) -> float:
    plan = ot.emd([], [], -benefit, numItermax=10**8)
    return float((plan * benefit).sum()) * benefit.shape[0]
