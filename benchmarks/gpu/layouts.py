"""Layouts on a GPU: seconds, neighbor distance and memory of every quality.

`python -m benchmarks.gpu.layouts` prints the table. `--cores FILE` computes the layouts of the
cores that it is compared with and saves their neighbor distances, on a machine that has numba;
`--compare FILE` reads them.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unshuffle import GridLayout
from unshuffle.metrics import neighbor_distance

DRAWS = range(3, 8)  # settings were chosen on draws 0 to 2
QUALITIES = ("fast", "balanced", "best")
GIB = 2**30


@dataclass(frozen=True)
class Problem:
    """Items of one draw, the cells to put them in, and where some of them stay."""

    title: str
    qualities: tuple[str, ...]
    shape: Any
    on_cores: tuple[str, ...] = ()  # qualities of the cores to compare with
    n_channels: int = 3
    n_frozen: int = 0
    draws: tuple[int, ...] = tuple(DRAWS)
    core_draws: tuple[int, ...] = ()

    @property
    def n_items(self) -> int:
        """One for each open cell."""
        return int(np.prod(self.shape)) if isinstance(self.shape, tuple) else int(self.shape.sum())

    def items(self, draw: int) -> np.ndarray:
        """Random colors, or channels that depend on each other."""
        rng = np.random.default_rng(draw)
        if self.n_channels == 3:
            return rng.integers(0, 256, (self.n_items, 3)).astype(np.float32)
        # Channels of real scenes have much in common: these follow 8 hidden numbers.
        hidden = rng.standard_normal((self.n_items, 8), dtype=np.float32)
        mixed = np.tanh(hidden @ rng.standard_normal((8, self.n_channels), dtype=np.float32))
        return mixed + 0.1 * rng.standard_normal(mixed.shape, dtype=np.float32)

    def frozen(self, draw: int) -> Any:
        """Random pairs of an item and a cell, or None."""
        if not self.n_frozen:
            return None
        rng = np.random.default_rng(1000 + draw)
        cells = rng.choice(np.flatnonzero(self.shape), self.n_frozen, replace=False)
        return np.stack([rng.choice(self.n_items, self.n_frozen, replace=False), cells], axis=1)


def problems() -> Iterator[Problem]:
    """Those of the table."""
    for side in (256, 512, 1024, 2048):
        yield Problem(f"{side} x {side}", QUALITIES, (side, side))
    yield Problem("4096 x 4096", ("fast",), (4096, 4096), ("fast",), core_draws=(3,))
    yield Problem(
        "1024 x 1024, 64 channels", ("fast",), (1024, 1024), ("fast",), 64, core_draws=(3,)
    )
    mask = np.ones((512, 300), dtype=bool)
    mask[200:300, 100:180] = False
    yield Problem(
        "512 x 300, a hole, 100 frozen", QUALITIES, mask, ("fast", "balanced"), 3, 100,
        core_draws=tuple(DRAWS),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=Path, metavar="FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE")
    parser.add_argument("--only", help="problems whose title contains this")
    options = parser.parse_args()
    chosen = [each for each in problems() if (options.only or "") in each.title]
    if options.cores:
        for each in chosen:
            lay_out_on_cores(each, options.cores)
        return
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. --cores lays out on the cores.")
    found = json.loads(options.compare.read_text()) if options.compare else {}
    print("problem, quality: first call, warm seconds (worst), neighbor distance (worst), GiB")
    for each in chosen:
        for quality in each.qualities:
            print(measure(each, quality, found), flush=True)


def lay_out_on_cores(problem: Problem, path: Path) -> None:
    """Add the neighbor distances that the cores reach to a file."""
    for draw in problem.core_draws:
        items = problem.items(draw)
        for quality in problem.on_cores:
            layout = GridLayout(problem.shape, quality=quality, random_state=draw, n_jobs=-1)
            layout.fit(items, frozen=problem.frozen(draw))
            distance = neighbor_distance(items, layout.grid_)
            found = json.loads(path.read_text()) if path.exists() else {}
            found.setdefault(f"{problem.title}, {quality}", {})[str(draw)] = distance
            path.write_text(json.dumps(found, indent=1))
            print(problem.title, quality, draw, f"{distance:.4f}", flush=True)


def measure(problem: Problem, quality: str, on_cores: dict[str, Any]) -> str:
    """One row of the table."""
    import torch

    seconds, distances, first = [], [], None
    for draw in problem.draws:
        X = torch.as_tensor(problem.items(draw), device="cuda")
        frozen = problem.frozen(draw)
        if first is None:
            first, _ = timed_fit(problem, quality, X, frozen, draw)
            torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        taken, layout = timed_fit(problem, quality, X, frozen, draw)
        seconds.append(taken)
        memory = torch.cuda.max_memory_allocated() / GIB
        check(problem, layout.grid_, frozen)
        distances.append(mean_neighbor_distance(X, layout.grid_))
        del X, layout
    row = f"{problem.title}, {quality}: {first:.2f} s, {np.median(seconds):.4f} s"
    row += f" ({max(seconds):.4f} in draw {problem.draws[int(np.argmax(seconds))]})"
    row += f", {np.mean(distances):.4f} ({max(distances):.4f} in draw"
    row += f" {problem.draws[int(np.argmax(distances))]}), {memory:.2f} GiB"
    for each in problem.on_cores:
        known = on_cores.get(f"{problem.title}, {each}", {})
        ratios = [distances[problem.draws.index(int(draw))] / known[draw] for draw in known]
        if ratios:
            row += f"; {max(ratios):.3f} of the cores' {each} at worst"
    return row


def timed_fit(problem: Problem, quality: str, X: Any, frozen: Any, seed: int) -> tuple[float, Any]:
    import torch

    layout = GridLayout(problem.shape, quality=quality, random_state=seed)
    torch.cuda.synchronize()
    start = time.perf_counter()
    layout.fit(X, frozen=frozen)
    torch.cuda.synchronize()
    return time.perf_counter() - start, layout


def check(problem: Problem, grid: Any, frozen: Any) -> None:
    """Stop if the grid is not a layout of the problem."""
    cells = grid.reshape(-1).cpu().numpy()
    is_open = np.ones(cells.size, dtype=bool)
    if not isinstance(problem.shape, tuple):
        is_open = problem.shape.ravel()
    if not np.array_equal(np.sort(cells[is_open]), np.arange(problem.n_items)):
        raise SystemExit(f"{problem.title}: not every item has one cell.")
    if (cells[~is_open] != -1).any() or (
        frozen is not None and (cells[frozen[:, 1]] != frozen[:, 0]).any()
    ):
        raise SystemExit(f"{problem.title}: the hole is not empty, or a frozen item moved.")


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


if __name__ == "__main__":
    main()
