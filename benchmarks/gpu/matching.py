"""Matchings on a GPU: how right, how fast, how much memory.

`python -m benchmarks.gpu.matching` prints the table. All fits run in one process: the first call
of each row, then five draws, then two without the check of the answer. `--rows cloud even` leaves
out the others, `--seconds` stops after the row in which they pass.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.scale._problems import Problem, load, named

GIB = 2**30
# Kind, items and noise of the table.
ROWS = (
    ("cloud", 16_384, 0.1),
    ("cloud", 100_000, 0.1),
    ("cloud", 1_000_000, 0.1),
    ("ball", 16_384, 0.1),
    ("even", 10_000, 0.1),
    ("even", 100_000, 0.1),
    ("tree", 10_000, 0.1),
    ("tree", 100_000, 0.1),
    ("tree", 1_000_000, 0.05),
)


class Fit(NamedTuple):
    """One matching."""

    seconds: float
    gib: float  # of the device, above what was held before
    right: float
    clusters: float
    believed: float
    warned: bool


def fit(problem: Problem, device: str, **parameters: Any) -> Fit:
    """Match once, and measure."""
    import torch

    from unshuffle import KernelizedSorting

    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    sorting = KernelizedSorting(random_state=0, device=device, **parameters)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sorting.fit(problem.X, problem.y)
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated() - before if on_gpu else 0
    found = sorting.permutation_
    clusters = np.nan
    if problem.labels_x is not None and problem.labels_y is not None:
        clusters = float(np.mean(problem.labels_x == problem.labels_y[found]))
    return Fit(
        seconds,
        peak / GIB,
        float(np.mean(found == problem.partner)),
        clusters,
        sorting.expected_accuracy_,
        bool(sorting.doubts_),
    )


def table(device: str, rows: list[tuple[str, int, float]], seeds: list[int]) -> Iterator[str]:
    """Lines of the table."""
    yield (
        "| data | items | right (worst) | clusters (worst) | first, s | s (worst) | "
        "without check, s | GiB | believed | warned |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for kind, n_items, noise in rows:
        problems = [load(named(kind, n_items, noise, seed)) for seed in seeds]
        first = fit(problems[0], device)
        fits = [fit(problem, device) for problem in problems]
        bare = [fit(problem, device, trust=False) for problem in problems[:2]]
        right, clusters, seconds = (
            np.array([getattr(each, name) for each in fits])
            for name in ("right", "clusters", "seconds")
        )
        yield (
            f"| {kind}, noise {noise} | {n_items:,} | {np.median(right):.4f} ({right.min():.4f}, "
            f"draw {seeds[int(right.argmin())]}) | {np.median(clusters):.4f} "
            f"({clusters.min():.4f}) | {first.seconds:.2f} | {np.median(seconds):.2f} "
            f"({seconds.max():.2f}) | {np.median([each.seconds for each in bare]):.2f} | "
            f"{max(each.gib for each in fits):.2f} | "
            f"{np.median([each.believed for each in fits]):.3f} | "
            f"{sum(each.warned for each in fits)} of {len(fits)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = sorted({row[0] for row in ROWS})
    parser.add_argument("--rows", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--draws", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--largest", type=int, default=10**9, help="leave out more items")
    parser.add_argument("--smallest", type=int, default=0, help="leave out fewer items")
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    start = time.perf_counter()
    rows = [
        row
        for row in ROWS
        if row[0] in options.rows and options.smallest <= row[1] <= options.largest
    ]
    for line in table(options.device, rows, options.draws):
        print(line, flush=True)
        if time.perf_counter() - start > options.seconds:
            break


if __name__ == "__main__":
    main()
