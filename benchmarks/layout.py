"""Layouts against FLAS, and against UMAP whose points are assigned to cells."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from benchmarks._measure import Method, Problem
from unshuffle import GridLayout
from unshuffle.datasets import grid_points
from unshuffle.metrics import distance_preservation_quality, neighbor_distance

TITLE = "Layout on a grid"
ABOUT = (
    "Random colors from 0 to 255 on squares, and handwritten digits of 64 pixels. FLAS runs with "
    "its defaults. UMAP embeds in the plane, and SciPy assigns its points to cells. All may use "
    "all cores (UMAP uses one if its result is to be the same each time). DPQ is the distance "
    "preservation quality (p = 16; 1 is perfect), neighbor distance the mean distance of touching "
    "items; beyond 4,096 items, DPQ is estimated from 640 of them, and beyond 65,536 left out."
)
SIZE = "items"
CORES = None
SIDES = (20, 32, 64, 128, 256, 512, 1024)
QUICK_SIDES = (20, 32, 128)
LARGEST_EMBEDDED = 64  # side; the assignment of more points takes minutes
SCORED_ITEMS, SCORED_ROWS, MOST_SCORED = 4096, 640, 65536

Grid = NDArray[np.intp]


class Items(NamedTuple):
    """What is laid out, and on which rectangle."""

    X: NDArray[np.float32]
    shape: tuple[int, int]


def problems() -> Iterator[Problem]:
    for side in SIDES:
        quick = side in QUICK_SIDES
        methods = list(METHODS if side <= LARGEST_EMBEDDED else METHODS[:4])
        if side > 512:
            methods = [each for each in methods if "best" not in each.name]
        yield Problem("colors", side**2, partial(colors, side), methods, judge, quick)
    yield Problem("digits", 1764, digits, METHODS, judge, quick=True)


def colors(side: int) -> Items:
    X = np.random.default_rng(0).random((side * side, 3), dtype=np.float32) * 255
    return Items(X, (side, side))


def digits() -> Items:
    return Items(load_digits().data[:1764].astype(np.float32), (42, 42))


def grid_layout(items: Items, *, quality: str) -> Callable[[], Grid]:
    # One has enough cells to be split, the other enough features for the final exchanges.
    for side, n_features in ((130, 3), (12, 64)):
        X = np.random.default_rng(0).random((side * side, n_features), dtype=np.float32)
        GridLayout((side, side), quality=quality, n_jobs=-1, random_state=0).fit(X)
    layout = GridLayout(items.shape, quality=quality, n_jobs=-1, random_state=0)
    return lambda: layout.fit(items.X).grid_


def flas(items: Items) -> Callable[[], Grid]:
    """FLAS starts from a random order."""
    import vc_flas

    order = np.random.default_rng(0).permutation(len(items.X))
    cells = np.ascontiguousarray(items.X[order].reshape(*items.shape, -1))
    return lambda: order[np.asarray(vc_flas.flas(cells, seed=0).sorting)]


def by_umap(items: Items) -> Callable[[], Grid]:
    import umap

    umap.UMAP(random_state=0, n_jobs=1).fit(items.X[:200])  # compile
    embed = umap.UMAP(random_state=0, n_jobs=1).fit_transform
    return lambda: assigned(embed(items.X), items.shape)


def assigned(points: NDArray[Any], shape: tuple[int, int]) -> Grid:
    """Cells of least squared distance in all, over the rectangle that the points fill."""
    low, high = points.min(axis=0), points.max(axis=0)
    cells = grid_points(*shape).astype(float)
    cells = (cells - cells.min(axis=0)) / np.ptp(cells, axis=0)
    cost = cdist(cells, (points - low) / (high - low), "sqeuclidean")
    return np.asarray(linear_sum_assignment(cost)[1]).reshape(shape)


def judge(items: Items, grid: Grid) -> dict[str, float]:
    found = {"neighbor distance": float(neighbor_distance(items.X, grid))}
    if len(items.X) <= MOST_SCORED:
        n_rows = None if len(items.X) <= SCORED_ITEMS else SCORED_ROWS
        quality = distance_preservation_quality(items.X, grid, n_rows=n_rows, random_state=0)
        found = {"DPQ": float(quality), **found}
    return found


METHODS = (
    *(
        Method(f"GridLayout, {quality}", partial(grid_layout, quality=quality), "ours")
        for quality in ("fast", "balanced", "best")
    ),
    Method("FLAS", flas, needs="vc_flas"),
    Method("UMAP, assigned", by_umap, needs="umap", quick=False),
)
