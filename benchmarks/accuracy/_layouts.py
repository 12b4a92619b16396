"""Layout quality on real data compared with FLAS, and the paper's objective for "classic".

The schedules were chosen on the data of `report`. The data of `report_held_out` were not used
until the schedules were final.
"""

import csv
import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_sample_image
from sklearn.preprocessing import StandardScaler

from benchmarks._flas import (
    SEEDS,
    Problem,
    beside_flas,
    colors,
    compiled_layouts,
    fixed,
    flas,
)
from unshuffle import GridLayout
from unshuffle.images import lab_pixels
from unshuffle.metrics import hsic

QUALITIES = ("fast", "balanced", "best")
# HSIC reached by the authors' code.
AUTHORS = {"colors 32x32": 0.0509, "flickr320 16x20": 0.025}
PATCH = 8
NEW_COLORS = 7001  # first seed


def report(folder: Path, *, tuned: bool) -> Iterator[str]:
    """Data used to choose the schedules, and the paper's objective."""
    yield from _compare(_chosen_on(folder), tuned=tuned)
    for problem in (colors(32), _photos(folder, "flickr320", (16, 20))):
        yield _classic(problem)


def report_held_out(folder: Path, *, tuned: bool) -> Iterator[str]:
    """Data not used for any choice."""
    yield from _compare(_held_out(folder), tuned=tuned)


def _chosen_on(folder: Path) -> Iterator[Problem]:
    yield _photos(folder, "flickr320", (16, 20))
    yield _photos(folder, "aloi1000", (25, 40))
    yield _photos(folder, "cifar10_1000", (25, 40))
    yield fixed("digits", (42, 42), load_digits().data)
    for side in (32, 64, 128):
        yield colors(side)


def _held_out(folder: Path) -> Iterator[Problem]:
    for side in (32, 64):
        yield colors(side, first_seed=NEW_COLORS)
    standardized = StandardScaler().fit_transform(load_breast_cancer().data)
    yield fixed("breast cancer", (23, 24), standardized)
    yield fixed("patches of china.jpg", (32, 32), _patches())
    yield fixed("optdigits", (61, 62), _new_digits(folder))
    yield fixed("satimage", (80, 80), _table(folder, "satimage"))
    for name, shape in (("coil20_obj1to12", (27, 32)), ("mnist3000", (50, 60))):
        images = np.load(folder / f"{name}.npz")["images"]
        yield fixed(name, shape, images.reshape(len(images), -1))


def _compare(problems: Iterable[Problem], *, tuned: bool) -> Iterator[str]:
    """One line per problem and method."""
    methods = compiled_layouts(QUALITIES)
    if tuned:
        methods["FLAS tuned"] = flas(tuned=True)
    for problem in problems:
        for name, found in beside_flas(problem, methods).items():
            yield (
                f"{problem.title}, {name}: DPQ16 {found.quality:.4f} (sd {found.deviation:.4f}) "
                f"in {found.seconds:.3g} s, {found.share:.2f}x FLAS; "
                f"FLAS {found.flas_quality:.4f} in {found.flas_seconds:.3g} s"
            )


def _classic(problem: Problem) -> str:
    """The paper's objective, which "classic" maximizes: tr(HKHL) / n^2 with median widths."""
    reached = []
    for seed in SEEDS:
        X = problem.draw(seed)
        layout = GridLayout(problem.shape, quality="classic", random_state=seed).fit(X)
        n = len(X)
        reached.append(hsic(X, layout.positions_) * ((n - 1) / n) ** 2)
    each = ", ".join(f"{value:.5f}" for value in reached)
    return (
        f"{problem.title}, classic: HSIC {np.mean(reached):.5f} ({each}); "
        f"the authors' code {AUTHORS[problem.title]}"
    )


def _photos(folder: Path, name: str, shape: tuple[int, int]) -> Problem:
    return fixed(name, shape, lab_pixels(np.load(folder / f"{name}.npz")["images"]))


def _patches() -> NDArray[np.float64]:
    """Lab pixels of random patches of one photo."""
    image = load_sample_image("china.jpg")
    rows, columns = (length // PATCH for length in image.shape[:2])
    cut = image[: rows * PATCH, : columns * PATCH].reshape(rows, PATCH, columns, PATCH, 3)
    patches = cut.swapaxes(1, 2).reshape(-1, PATCH, PATCH, 3)
    return lab_pixels(patches[np.random.default_rng(0).permutation(len(patches))])


def _new_digits(folder: Path) -> NDArray[np.float64]:
    """Digits of the table that do not ship with scikit-learn."""
    known = {row.tobytes() for row in load_digits().data}
    return np.array([row for row in _table(folder, "optdigits") if row.tobytes() not in known])


def _table(folder: Path, name: str) -> NDArray[np.float64]:
    with gzip.open(folder / "uci" / f"{name}.csv.gz", "rt", newline="") as file:
        records = list(csv.reader(file))[1:]
    return np.array([record[:-1] for record in records], dtype=float)
