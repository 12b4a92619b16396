"""Matchings on a GPU."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks._measure import Method, Problem
from benchmarks.scale._problems import Problem as Pairs
from benchmarks.scale._problems import load, named

TITLE = "Matching on a GPU"
ABOUT = (
    "Arrays in and out. Rotated points: normal points in six dimensions, and the same points "
    "rotated, with noise .1; with equal axes, every rotation is a symmetry. Two views of "
    "clusters: points in 16 dimensions, seen by two random networks of different widths; 40 "
    "clusters with independent centers, or 60 on a tree. Right are items with their true partner, "
    "clusters right those with a partner in their cluster, believed is what the fit expects. MB "
    "are those of the device."
)
SIZE = "items"
CORES = None
DEVICE = "cuda"
KINDS = {
    "cloud": "rotated points",
    "ball": "rotated points, equal axes",
    "even": "two views of 40 clusters",
    "tree": "two views of 60 clusters on a tree",
}
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
QUICK = 20_000


def problems() -> Iterator[Problem]:
    methods = (
        Method("KernelizedSorting", match, "ours"),
        Method("KernelizedSorting, not checked", partial(match, trust=False), "ours"),
    )
    for kind, n_items, noise in ROWS:
        title = f"{KINDS[kind]}, noise {noise}"
        make = partial(load, named(kind, n_items, noise, 0))
        yield Problem(title, n_items, make, methods, judge, quick=n_items < QUICK)


def match(pairs: Pairs, **options: Any) -> Callable[[], Any]:
    from unshuffle import KernelizedSorting

    sorting = KernelizedSorting(random_state=0, device=DEVICE, **options)
    sorting.fit(pairs.X, pairs.y)  # compile
    return lambda: sorting.fit(pairs.X, pairs.y)


def judge(pairs: Pairs, sorting: Any) -> dict[str, float]:
    found = sorting.permutation_
    quality = {"right": float(np.mean(found == pairs.partner))}
    if pairs.labels_x is not None and pairs.labels_y is not None:
        quality["clusters right"] = float(np.mean(pairs.labels_x == pairs.labels_y[found]))
    if sorting.trust:
        quality["believed"] = float(sorting.expected_accuracy_)
    return quality
