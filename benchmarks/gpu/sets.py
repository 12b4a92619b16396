"""Set kernels on a GPU: agreement with stored results of the cores, and times of 20,000 sets.

Run `python -m benchmarks.gpu.sets reference FILE` where numba is, then
`python -m benchmarks.gpu.sets FILE` on a GPU. Times are seconds of a warm call, the first call
beside it.
"""

import sys
import time
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    MeanMapKernel,
    SlicedWassersteinKernel,
)

N_SETS, N_POINTS, WIDTH = 20_000, 50, 5
N_COMPARED = 500

KERNELS: dict[str, tuple[Any, int]] = {
    "likelihood": (ExpectedLikelihoodKernel(5, random_state=0), N_COMPARED),
    "tied": (ExpectedLikelihoodKernel(3, "tied", random_state=0), 60),
    "diagonal": (ExpectedLikelihoodKernel(3, "diag", random_state=0), 60),
    "spherical, bic": (ExpectedLikelihoodKernel("bic", "spherical", random_state=0), 60),
    "cv": (ExpectedLikelihoodKernel("cv", max_components=3, random_state=0), 60),
    "affinity": (BhattacharyyaKernel(), 60),
    "mean map": (MeanMapKernel(), 60),
    "mean map, features": (MeanMapKernel(n_features=256, random_state=0), 60),
    "mean map, poly": (MeanMapKernel("poly"), 60),
    "mean map, outer": (MeanMapKernel(outer="rbf"), 60),
    "sliced": (SlicedWassersteinKernel(random_state=0), N_COMPARED),
}


def make_sets(n_sets: int, seed: int, *, ragged: bool = False) -> list[NDArray[np.float64]]:
    """Sets of points around five centers each, a quarter of which they share with other sets."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=1.5, size=(n_sets, 5, WIDTH))
    shared = rng.normal(scale=1.5, size=(8, 5, WIDTH))[rng.integers(8, size=n_sets)]
    centers = shared + 0.5 * centers
    spreads = rng.normal(size=(n_sets, 5, WIDTH, WIDTH)) * 0.3
    labels = rng.integers(5, size=(n_sets, N_POINTS))
    rows = np.arange(n_sets)[:, None]
    noise = rng.normal(size=(n_sets, N_POINTS, WIDTH))
    points = centers[rows, labels] + np.einsum("snij,snj->sni", spreads[rows, labels], noise)
    sizes = rng.integers(20, N_POINTS + 1, size=n_sets) if ragged else [N_POINTS] * n_sets
    return [each[:size] for each, size in zip(points, sizes, strict=True)]


def write_reference(path: str) -> None:
    """Gram matrices by the cores, with the sets they are of."""
    sets = make_sets(N_COMPARED, 0, ragged=True)
    found: dict[str, Any] = {
        "sizes": np.array(list(map(len, sets))),
        "points": np.concatenate(sets),
    }
    for name, (kernel, n) in KERNELS.items():
        start = time.process_time()
        found[name] = kernel.fit_transform(sets[:n]).astype(np.float32 if n > 100 else np.float64)
        found[name + " new"] = kernel.transform(sets[n - 20 : n])
        print(name, f"{time.process_time() - start:.1f} s")
    np.savez(path, **found)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Result and seconds until the device is done."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return result, time.perf_counter() - start


def compare(path: str) -> None:
    """Largest differences from the stored matrices, by precision."""
    import torch

    stored = np.load(path)
    sets = np.split(stored["points"], np.cumsum(stored["sizes"])[:-1])
    for name, (kernel, n) in KERNELS.items():
        line = []
        for dtype in (torch.float64, torch.float32):
            given = [torch.as_tensor(each, device="cuda", dtype=dtype) for each in sets[:n]]
            K = kernel.fit_transform(given)
            again = kernel.fit_transform(given)
            new = kernel.transform(given[n - 20 : n])
            gaps = [
                float(np.abs(a.double().cpu().numpy() - b).max())
                for a, b in ((K, stored[name]), (new, stored[name + " new"]))
            ]
            same = bool((again == K).all()), bool((K == K.T).all())
            line.append(f"{dtype}: {gaps[0]:.1e}, new {gaps[1]:.1e}, repeats/symmetric {same}")
        arrays = kernel.set_params(device="cuda").fit_transform(sets[:n])
        line.append(f"arrays {np.abs(arrays - stored[name]).max():.1e} {type(arrays).__name__}")
        print(f"{name:20}", "; ".join(line))


def time_kernel(name: str, kernel: Any, sets: Any) -> None:
    """First and warm fits and Gram matrices, by precision, with the memory they take."""
    import torch

    for dtype in (torch.float32, torch.float64):
        given = torch.as_tensor(sets, device="cuda", dtype=dtype)
        rows = []
        torch.cuda.reset_peak_memory_stats()
        for _ in range(3):
            place = kernel._find_place(given)
            _, fit = timed(partial(kernel.fit, given))
            K, gram = timed(partial(kernel._gram, kernel._describe_fitted(place), None, place))
            del K
            rows.append((fit, gram))
        K, both = timed(partial(kernel.fit_transform, given))
        del K
        peak = torch.cuda.max_memory_allocated() / 1e9
        text = " ".join(f"({fit:.3f} + {gram:.3f})" for fit, gram in rows)
        print(f"{name}, {dtype}: fit + Gram {text}; fit_transform {both:.3f} s; {peak:.1f} GB")


def time_draws() -> None:
    """The first Gram matrix of this process, then those of five draws; the slowest is named."""
    import torch

    seconds = []
    for seed in (1, 1, 2, 3, 4, 5):
        given = torch.as_tensor(np.array(make_sets(N_SETS, seed)), device="cuda").float()
        kernel = ExpectedLikelihoodKernel(5, random_state=0)
        K, both = timed(partial(kernel.fit_transform, given))
        del K
        seconds.append(both)
    worst = int(np.argmax(seconds[1:])) + 1
    text = ", ".join(f"{each:.3f}" for each in seconds[1:])
    print(f"first {seconds[0]:.3f} s; draws {text}; slowest is draw {worst}")
    arrays = np.array(make_sets(N_SETS, 1))
    for given in (arrays, arrays.astype(np.float32), list(arrays)):
        kernel = ExpectedLikelihoodKernel(5, random_state=0, device="cuda")
        K, both = timed(partial(kernel.fit_transform, given))
        print(f"arrays in and out, {type(given).__name__}, {K.dtype}: {both:.3f} s")


def time_stages(sets: Any) -> None:
    """Where a fit of mixtures spends its time."""
    import torch

    from unshuffle.kernels.sets import _gaussian_tensors, _mixture_tensors, _tensors
    from unshuffle.kernels.sets._mixtures import InputSpace

    given = torch.as_tensor(sets, device="cuda", dtype=torch.float32)
    pieces = list(given)
    place = _tensors.find_place(None, given)
    assert place is not None
    kernel = ExpectedLikelihoodKernel(5, random_state=0)
    for turn in range(2):
        line = {}
        _, line["list to host"] = timed(partial(_tensors.hosted, pieces))
        host, line["to host"] = timed(partial(_tensors.hosted, given))
        bags, line["check"] = timed(partial(_tensors.stack_sets, host))
        bags, line["sort"] = timed(partial(_tensors.sort_sets, bags, place))
        space, line["moments"] = timed(partial(InputSpace.of, bags.points))
        model, line["model"] = timed(partial(kernel._build_model, bags))
        standard, line["standardize"] = timed(partial(space.standardize, bags))
        fits, line["mixtures"] = timed(
            partial(_mixture_tensors.fit_mixtures, standard, model.settings, place)
        )
        mixtures, line["likelihoods"] = timed(partial(space.likelihoods, fits))
        own, line["norms"] = timed(partial(_gaussian_tensors.own_log_products, mixtures, place))
        table, line["table"] = timed(partial(_gaussian_tensors._table, mixtures, 0.5 * own, place))
        K, line["allocate"] = timed(partial(torch.empty, (N_SETS, N_SETS), device="cuda"))
        _, line["products"] = timed(
            partial(_gaussian_tensors._fill_by_kernel, K, table, table, WIDTH, False, half=True)
        )
        del K
        if turn:
            print({key: round(value, 4) for key, value in line.items()})
            print(
                "rounds",
                np.bincount(fits.rounds)[:100].tolist(),
                "moving",
                (~fits.converged).sum(),
            )


def time_tiles(sets: Any) -> None:
    """The kernels of full covariances and of points, by their tiles."""
    import torch
    import triton

    from unshuffle.kernels.sets import _gaussian_tensors as gaussians
    from unshuffle.kernels.sets import _mean_map_tensors as means

    for dtype in (np.float32, np.float64):
        kernel = ExpectedLikelihoodKernel(5, random_state=0, max_iter=3, n_init=1)
        given = torch.as_tensor(sets[: N_SETS // 2].astype(dtype), device="cuda")
        kernel.fit(given)
        place = kernel._find_place(given)
        a = kernel._describe_fitted(place)
        table = gaussians._table(a.mixtures, a.log_norms, place)
        K = torch.empty((len(given), len(given)), dtype=given.dtype, device="cuda")
        run = partial(gaussians._fill_by_kernel, K, table, table, WIDTH, False, half=True)
        for tile in ((32, 16, 4), (16, 16, 8), (16, 8, 4), (32, 8, 8)):
            gaussians.TILE = gaussians.LIGHT_TILE = tile
            milliseconds = triton.testing.do_bench(run, 20, 60)
            print("full", given.dtype, len(given), tile, f"{milliseconds:.2f} ms")
        del K
        given = given[: N_SETS // 4]
        maps = MeanMapKernel(gamma=0.05).fit(given)
        place = maps._find_place(given)
        a, pairs = maps._describe_fitted(place), maps._model.pairs
        compare_points = partial(
            means.point_means, a.sets, None, pairs.kernel, pairs.center, place
        )
        expected = compare_points()
        for tile in (
            (32, 32, 16, 1), (16, 32, 16, 1), (8, 32, 16, 1), (16, 64, 16, 1), (8, 64, 16, 1),
            (32, 64, 16, 2), (16, 64, 16, 2), (64, 64, 16, 4), (16, 32, 64, 1), (8, 64, 16, 2),
        ):  # fmt: skip
            means.ROWS, means.COLUMNS, means.SETS, means.WARPS = tile
            gap = float((compare_points() - expected).abs().max())
            milliseconds = triton.testing.do_bench(compare_points, 20, 60)
            print("points", given.dtype, len(given), tile, f"{milliseconds:.2f} ms, {gap:.0e}")
    time_without_triton(sets)


def time_without_triton(sets: Any) -> None:
    """Blocks in PyTorch alone."""
    import torch

    from unshuffle.kernels.sets import _gaussian_tensors as gaussians

    given = torch.as_tensor(sets[:4000].astype(np.float32), device="cuda")
    kernel = ExpectedLikelihoodKernel(5, random_state=0, max_iter=3, n_init=1).fit(given)
    place = kernel._find_place(given)
    a = kernel._describe_fitted(place)
    found = gaussians.has_triton
    try:
        K = kernel._gram(a, None, place)
        gaussians.has_triton = lambda device: False
        run = partial(kernel._gram, a, None, place)
        run()
        other, seconds = timed(run)
        print(
            f"4,000 sets without Triton: {seconds:.3f} s, differs by {(K - other).abs().max():.1e}"
        )
    finally:
        gaussians.has_triton = found


def profile(sets: Any) -> None:
    """Operations that take most of a fit."""
    import torch

    given = torch.as_tensor(sets, device="cuda", dtype=torch.float32)
    kernel = ExpectedLikelihoodKernel(5, random_state=0)
    with torch.profiler.profile() as seen:
        kernel.fit(given)
        torch.cuda.synchronize()
    print(
        seen.key_averages().table(
            sort_by="self_cuda_time_total", row_limit=14, max_name_column_width=60
        )
    )


def main() -> None:
    """Compare and time everything; a part that fails does not stop the others."""
    if sys.argv[1] == "reference":
        write_reference(sys.argv[2])
        return
    import torch

    warnings.simplefilter("ignore")
    print(torch.__version__, torch.cuda.get_device_name(), "numba" in sys.modules)
    sets = np.array(make_sets(N_SETS, 1))
    # The first use of the device, not of the kernels, takes up to a second.
    torch.ones(1, device="cuda").sum().item()
    sliced, maps = SlicedWassersteinKernel(random_state=0), MeanMapKernel()
    likelihood = ExpectedLikelihoodKernel(5, random_state=0)
    parts: dict[str, Callable[[], None]] = {
        "draws": time_draws,
        "compare": partial(compare, sys.argv[1]),
        "likelihood": partial(time_kernel, "likelihood", likelihood, sets),
        "stages": partial(time_stages, sets),
        "sliced": partial(time_kernel, "sliced", sliced, sets),
        "maps": partial(time_kernel, "mean map", maps, sets),
        "waves": partial(time_kernel, "mean map, 512 features",
                         MeanMapKernel(n_features=512, random_state=0), sets),
        "tiles": partial(time_tiles, sets),
        "profile": partial(profile, sets),
    }  # fmt: skip
    chosen = sys.argv[2:] or list(parts)
    for name in chosen:
        start = time.perf_counter()
        try:
            parts[name]()
        except Exception:
            traceback.print_exc(file=sys.stdout)
        print(f"-- {name}: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
