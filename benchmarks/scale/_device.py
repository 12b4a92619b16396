"""Matchings on a GPU, one after the other in one process: the first call, then five draws."""

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


def device_table(device: str, seeds: list[int], largest: int) -> Iterator[str]:
    """Seconds of the first call and of the others, memory, and how right they are."""
    yield (
        "| data | items | right (worst) | clusters (worst) | first, s | s (worst) | "
        "without check, s | GiB | believed | warned |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for kind, n_items, noise in ROWS:
        if n_items > largest:
            continue
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
