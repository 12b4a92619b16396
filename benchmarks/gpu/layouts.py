"""Layouts on a GPU."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks._measure import Method, Problem

TITLE = "Layout on a GPU"
ABOUT = (
    "Tensors on the device. Random colors from 0 to 255 on squares, and on 512 x 300 cells with a "
    "hole and 100 frozen items; 64 channels that follow 8 hidden numbers. Neighbor distance is "
    "the mean distance of touching items; lower is better. MB are those of the device."
)
SIZE = "items"
CORES = None
DEVICE = "cuda"
QUALITIES = ("fast", "balanced", "best")
N_FROZEN = 100


class Items(NamedTuple):
    """Vectors, the cells to put them in, and pairs of an item and a cell that stay."""

    X: Any
    shape: Any
    frozen: Any = None


def problems() -> Iterator[Problem]:
    methods = tuple(Method(each, partial(lay_out, quality=each), "ours") for each in QUALITIES)
    for side in (256, 512, 1024, 2048, 4096):
        some = methods if side < 4096 else methods[:1]
        yield Problem("colors", side**2, partial(colors, side), some, judge, quick=side < 1024)
    yield Problem("64 channels", 1024**2, channels, methods[:2], judge)
    yield Problem("colors, a hole, 100 frozen", 145_600, with_hole, methods, judge, quick=True)


def colors(side: int) -> Items:
    drawn = np.random.default_rng(3).integers(0, 256, (side * side, 3))
    return Items(on_device(drawn), (side, side))


def channels(side: int = 1024, n_channels: int = 64) -> Items:
    """Channels of real scenes have much in common: these follow 8 hidden numbers."""
    rng = np.random.default_rng(3)
    hidden = rng.standard_normal((side * side, 8), dtype=np.float32)
    mixed = np.tanh(hidden @ rng.standard_normal((8, n_channels), dtype=np.float32))
    noisy = mixed + 0.1 * rng.standard_normal(mixed.shape, dtype=np.float32)
    return Items(on_device(noisy), (side, side))


def with_hole() -> Items:
    mask = np.ones((512, 300), dtype=bool)
    mask[200:300, 100:180] = False
    n_items = int(mask.sum())
    rng = np.random.default_rng(3)
    X = on_device(rng.integers(0, 256, (n_items, 3)))
    cells = rng.choice(np.flatnonzero(mask), N_FROZEN, replace=False)
    items = rng.choice(n_items, N_FROZEN, replace=False)
    return Items(X, mask, np.stack([items, cells], axis=1))


def on_device(values: np.ndarray) -> Any:
    import torch

    return torch.as_tensor(values.astype(np.float32), device=DEVICE)


def lay_out(items: Items, *, quality: str) -> Callable[[], Any]:
    from unshuffle import GridLayout

    layout = GridLayout(items.shape, quality=quality, random_state=3)
    layout.fit(items.X, frozen=items.frozen)  # compile
    return lambda: layout.fit(items.X, frozen=items.frozen).grid_


def judge(items: Items, grid: Any) -> dict[str, float]:
    check(items, grid)
    return {"neighbor distance": mean_neighbor_distance(items.X, grid)}


def check(items: Items, grid: Any) -> None:
    """Fail if the grid is not a layout of the items."""
    cells = grid.reshape(-1).cpu().numpy()
    is_open = np.ones(cells.size, dtype=bool)
    if not isinstance(items.shape, tuple):
        is_open = items.shape.ravel()
    if not np.array_equal(np.sort(cells[is_open]), np.arange(len(items.X))):
        raise ValueError("not every item has one cell")
    frozen = items.frozen
    if (cells[~is_open] != -1).any() or (
        frozen is not None and (cells[frozen[:, 1]] != frozen[:, 0]).any()
    ):
        raise ValueError("the hole is not empty, or a frozen item moved")


def mean_neighbor_distance(X: Any, grid: Any) -> float:
    """`metrics.neighbor_distance` on the device."""
    total, count = 0.0, 0
    for axis in (0, 1):
        for part in range(0, grid.shape[1 - axis], 256):
            strip = grid.narrow(1 - axis, part, min(256, grid.shape[1 - axis] - part))
            first = strip.narrow(axis, 0, grid.shape[axis] - 1)
            second = strip.narrow(axis, 1, grid.shape[axis] - 1)
            both = (first >= 0) & (second >= 0)
            apart = (X[first[both]] - X[second[both]]).norm(dim=1)
            total += float(apart.double().sum())
            count += apart.numel()
    return total / count
