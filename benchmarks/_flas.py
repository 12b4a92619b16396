"""Comparison of layouts with FLAS.

FLAS runs with default settings just before each of our layouts, in the same process and after
compilation. Both may use all cores and get 32-bit features. Both run equally often and report the
shortest duration. Tuned FLAS takes forty times as long and runs once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import vc_flas
from numpy.typing import NDArray

from benchmarks._measure import timed
from unshuffle import GridLayout
from unshuffle.metrics import distance_preservation_quality

SEEDS = (0, 1, 2)
SCORED_ITEMS = 4096  # above this, quality is estimated from a sample
SCORED_ROWS = 640
LARGE = 300_000  # numbers in X; above this, only two runs are timed
TUNED = {"radius_decay": 0.99, "max_swap_positions": 81}

Items = NDArray[np.float32]
Grid = NDArray[np.intp]
Shape = tuple[int, int]
# (items, shape, seed, repeats) -> (grid, shortest duration in seconds)
Method = Callable[[Items, Shape, int, int], tuple[Grid, float]]


@dataclass(frozen=True)
class Problem:
    """Items to lay out on a rectangle; `draw` takes a seed, which it may ignore."""

    title: str
    shape: Shape
    draw: Callable[[int], Items]


@dataclass(frozen=True)
class Standing:
    """Results of a method and of FLAS with default settings, averaged over the seeds.

    Attributes
    ----------
    seconds, flas_seconds : float
        Wall-clock time.
    share : float
        Our time divided by that of FLAS for the same seed.
    quality, flas_quality : float
        Distance preservation quality, p = 16.
    deviation : float
        Standard deviation of `quality` over the seeds.
    """

    seconds: float
    flas_seconds: float
    share: float
    quality: float
    flas_quality: float
    deviation: float

    @classmethod
    def over_seeds(cls, runs: NDArray[np.float64]) -> "Standing":
        """Average rows of two times and two qualities, ours first."""
        seconds, flas_seconds, quality, flas_quality = runs.T
        return cls(
            seconds=float(seconds.mean()),
            flas_seconds=float(flas_seconds.mean()),
            share=float((seconds / flas_seconds).mean()),
            quality=float(quality.mean()),
            flas_quality=float(flas_quality.mean()),
            deviation=float(quality.std(ddof=1)),
        )


def beside_flas(problem: Problem, methods: Mapping[str, Method]) -> dict[str, Standing]:
    """Measure each method, and FLAS just before it."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in methods}
    for seed in SEEDS:
        X = problem.draw(seed)
        repeats = 5 if X.size < LARGE else 2
        their_quality = None
        for name, method in methods.items():
            theirs, their_seconds = flas()(X, problem.shape, seed, repeats)
            ours, seconds = method(X, problem.shape, seed, repeats)
            if their_quality is None:  # the same seed gives the same grid
                their_quality = quality_of(X, theirs)
            found[name].append((seconds, their_seconds, quality_of(X, ours), their_quality))
    return {name: Standing.over_seeds(np.array(runs)) for name, runs in found.items()}


def flas(*, tuned: bool = False) -> Method:
    """FLAS with default or slower, better settings; it starts from a random order."""
    options = TUNED if tuned else {}

    def lay_out(X: Items, shape: Shape, seed: int, repeats: int) -> tuple[Grid, float]:
        order = np.random.default_rng(seed).permutation(len(X))
        cells = np.ascontiguousarray(X[order].reshape(*shape, -1))
        found, seconds = timed(partial(vc_flas.flas, cells, seed=seed, **options), repeats=repeats)
        return order[np.asarray(found.sorting)], seconds

    return lay_out


def grid_layout(quality: str) -> Method:
    """`GridLayout` on all cores."""

    def lay_out(X: Items, shape: Shape, seed: int, repeats: int) -> tuple[Grid, float]:
        layout = GridLayout(shape, quality=quality, n_jobs=-1, random_state=seed)
        found, seconds = timed(partial(layout.fit, X), repeats=repeats)
        return found.grid_, seconds

    return lay_out


def compiled_layouts(qualities: Iterable[str]) -> dict[str, Method]:
    """`GridLayout` for each quality, compiled before timing."""
    for quality in qualities:
        # one has enough cells to be split, the other enough features for the final exchanges
        warm_up(quality, side=130, n_features=3)
        warm_up(quality, side=12, n_features=64)
    return {quality: grid_layout(quality) for quality in qualities}


def warm_up(quality: str, *, side: int, n_features: int) -> None:
    X = np.random.default_rng(0).random((side * side, n_features), dtype=np.float32)
    grid_layout(quality)(X, (side, side), 0, 1)


def quality_of(X: Items, grid: Grid) -> float:
    n_rows = None if len(X) <= SCORED_ITEMS else SCORED_ROWS
    return distance_preservation_quality(X, grid, n_rows=n_rows, random_state=0)


def colors(side: int, *, first_seed: int = 100) -> Problem:
    """Random colors, drawn anew for each seed."""

    def draw(seed: int) -> Items:
        random = np.random.default_rng(first_seed + seed)
        return random.random((side * side, 3)).astype(np.float32)

    return Problem(f"colors {side}x{side}", (side, side), draw)


def fixed(title: str, shape: Shape, X: NDArray) -> Problem:
    """As many items as fill the shape, the same for every seed."""
    items = np.ascontiguousarray(X[: shape[0] * shape[1]], dtype=np.float32)
    return Problem(f"{title} {shape[0]}x{shape[1]}", shape, lambda seed: items)
