"""Set kernels on a GPU."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks._measure import Method, Problem
from unshuffle.kernels import (
    ExpectedLikelihoodKernel,
    MeanMapKernel,
    SlicedWassersteinKernel,
)

TITLE = "Kernels between sets on a GPU"
ABOUT = (
    "Sets of 50 points in five dimensions, passed as one tensor: fits, and the Gram matrix of "
    "fitted sets. MB are those of the device."
)
SIZE = "sets"
CORES = None
DEVICE = "cuda"
SIZES = (2000, 5000, 20_000)
N_POINTS, WIDTH = 50, 5
KERNELS: dict[str, Callable[[], Any]] = {
    "ExpectedLikelihoodKernel, five full Gaussians": lambda: ExpectedLikelihoodKernel(
        5, random_state=0
    ),
    "SlicedWassersteinKernel": lambda: SlicedWassersteinKernel(random_state=0),
    "MeanMapKernel, 512 random features": lambda: MeanMapKernel(n_features=512, random_state=0),
    "MeanMapKernel, all pairs of points": MeanMapKernel,
}


def problems() -> Iterator[Problem]:
    for what, start in (("fit", fit), ("Gram matrix", gram)):
        methods = tuple(
            Method(name, partial(start, make), "ours") for name, make in KERNELS.items()
        )
        for dtype in ("float32", "float64"):
            for n in SIZES:
                yield Problem(
                    f"{what}, {dtype}", n, partial(tensor, n, dtype), methods, quick=n == SIZES[0]
                )


def tensor(n_sets: int, dtype: str) -> Any:
    import torch

    return torch.as_tensor(make_sets(n_sets), device=DEVICE, dtype=getattr(torch, dtype))


def make_sets(n_sets: int) -> np.ndarray:
    """Points around five centers each, a quarter of which sets share with others."""
    rng = np.random.default_rng(1)
    centers = rng.normal(scale=1.5, size=(n_sets, 5, WIDTH))
    shared = rng.normal(scale=1.5, size=(8, 5, WIDTH))[rng.integers(8, size=n_sets)]
    centers = shared + 0.5 * centers
    spreads = rng.normal(size=(n_sets, 5, WIDTH, WIDTH)) * 0.3
    labels = rng.integers(5, size=(n_sets, N_POINTS))
    rows = np.arange(n_sets)[:, None]
    noise = rng.normal(size=(n_sets, N_POINTS, WIDTH))
    return np.asarray(
        centers[rows, labels] + np.einsum("snij,snj->sni", spreads[rows, labels], noise)
    )


def fit(make: Callable[[], Any], sets: Any) -> Callable[[], Any]:
    kernel = make().fit(sets)  # compile
    return lambda: kernel.fit(sets)


def gram(make: Callable[[], Any], sets: Any) -> Callable[[], Any]:
    kernel = make().fit(sets)
    place = kernel._find_place(sets)

    def compute() -> Any:
        return kernel._gram(kernel._describe_fitted(place), None, place)

    compute()  # compile
    return compute
