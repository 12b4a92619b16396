"""Exact results of eight ways through the library, to compare two versions bit by bit.

    python -m tests.repo.ways save ways.json
    python -m tests.repo.ways compare ways.json

A change that only moves code leaves every bit as it is. Numbers differ between processors, so a
record is of use on the machine that made it only, and with the same libraries.
"""

import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image

from unshuffle import GridLayout, KernelizedSorting, OrbitLearner, PermutationInvariantSVC
from unshuffle._run import device as _device
from unshuffle.cli import main
from unshuffle.datasets import make_paired_views, mixture_sets
from unshuffle.kernels import ExpectedLikelihoodKernel
from unshuffle.web._wall.session import Session
from unshuffle.web._work import state_file as _state_file


def of_estimator(fitted: Any) -> list[Any]:
    """All that a fit found, without times."""
    return [value for name, value in sorted(vars(fitted).items()) if name.endswith("_")]


def dense() -> list[Any]:
    X, y, _ = make_paired_views(90, noise=0.05, random_state=0)
    return of_estimator(KernelizedSorting(random_state=0).fit(X, y))


def low_rank(device: str = "cpu") -> list[Any]:
    X, y, _ = make_paired_views(300, noise=0.02, random_state=0)
    return of_estimator(
        KernelizedSorting(method="low_rank", random_state=0, device=device).fit(X, y)
    )


def layout(device: str = "cpu") -> list[Any]:
    X = np.random.default_rng(0).random((256, 3))
    found = []
    for quality in ("fast", "balanced", "best", "classic")[: 3 if device == "cuda" else 4]:
        fitted = GridLayout((16, 16), quality=quality, random_state=0, device=device).fit(X[:250])
        found += [fitted.grid_, fitted.score_]
    return found


def machine() -> list[Any]:
    sets = mixture_sets(40, n_features=3, random_state=0)
    return of_estimator(PermutationInvariantSVC(random_state=0).fit(sets.sets, sets.labels))


def set_kernel(device: str = "cpu") -> list[Any]:
    sets = mixture_sets(40, n_features=3, random_state=0).sets
    kernel = ExpectedLikelihoodKernel(random_state=0, device=device)
    return [kernel.fit_transform(sets), kernel.transform(sets[:5])]


def orbit() -> list[Any]:
    angles = np.linspace(0, 1.2, 14)
    X = np.stack([np.cos(angles), np.sin(angles), np.full(14, 0.3)], axis=1)
    return of_estimator(OrbitLearner(1, random_state=0).fit(X))


def request() -> list[Any]:
    """A picture is moved on a wall of the page."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "photos"
        folder.mkdir()
        rng = np.random.default_rng(0)
        for k in range(20):
            picture = Image.fromarray(rng.integers(0, 256, (3, 3, 3), dtype=np.uint8))
            picture.resize((40, 40)).save(folder / f"{k:02}.png")
        file = _state_file.StateFile(Path(place) / "wall.json")
        session = Session(folder, file, Path(place) / "cache")
        session.open()
        session.jobs.wait()
        found = [session.now.grid.copy()]
        session.move(3, 0, *session.now.grid.shape)
        session.jobs.wait()
        found.append(session.now.grid.copy())
        session.close()
    return found


def command() -> list[Any]:
    """`unshuffle match a.csv b.csv`."""
    X, y, _ = make_paired_views(40, noise=0.02, random_state=0)
    with tempfile.TemporaryDirectory() as place:
        paths = [f"{place}/{name}.csv" for name in "ab"]
        for path, values in zip(paths, (X, y), strict=True):
            np.savetxt(path, values, delimiter=",")
        output = Path(place) / "pairs.csv"
        arguments, sys.argv = sys.argv, ["unshuffle", "match", *paths, "-q", "-o", str(output)]
        try:
            main()
        except SystemExit as done:
            if done.code:
                raise
        finally:
            sys.argv = arguments
        return [output.read_bytes()]


WAYS: dict[str, Callable[[], list[Any]]] = {
    "dense match": dense,
    "low-rank match": low_rank,
    "layout": layout,
    "machine for sets": machine,
    "set kernel": set_kernel,
    "orbit": orbit,
    "request": request,
    "command": command,
    "low-rank match, GPU": lambda: low_rank("cuda"),
    "layout, GPU": lambda: layout("cuda"),
    "set kernel, GPU": lambda: set_kernel("cuda"),
}


def digest(value: Any) -> str:
    """Of the bits of arrays, numbers and texts, in order."""
    found = hashlib.sha256()

    def take(value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype != object:
            found.update(str((value.dtype.str, value.shape)).encode() + value.tobytes())
        elif isinstance(value, float | np.floating):
            found.update(np.float64(value).tobytes())
        elif isinstance(value, str | int | bool | np.integer | type(None)):
            found.update(repr(value).encode())
        elif isinstance(value, bytes):
            found.update(value)
        elif isinstance(value, list | tuple | np.ndarray):
            for each in value:
                take(each)

    take(value)
    return found.hexdigest()


def take_all() -> dict[str, tuple[str, float]]:
    """Digest and seconds of each way, the second time."""
    taken = {}
    for name, way in WAYS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            way()  # compiles
            began = perf_counter()
            taken[name] = digest(way()), perf_counter() - began
    return taken


def run(verb: str, path: str) -> int:
    try:
        import torch
    except ImportError:
        torch = None
    for name in [name for name in WAYS if name.endswith("GPU")] if torch is None else []:
        del WAYS[name]
    if torch is not None and not torch.cuda.is_available():
        _device._gpu = lambda torch, name: torch.device("cpu")
        torch.set_num_threads(1)
    taken = take_all()
    if verb == "save":
        Path(path).write_text(json.dumps(taken, indent=1))
        return 0
    before = json.loads(Path(path).read_text())
    for name, (bits, seconds) in taken.items():
        same = "same" if before[name][0] == bits else "CHANGED"
        print(f"{name:22} {same:8} {seconds:7.3f} s, {seconds / before[name][1]:5.2f} of before")
    return int(any(before[name][0] != bits for name, (bits, _) in taken.items()))


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
