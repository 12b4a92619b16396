"""Does an answer say when it cannot be trusted? One line for each data set of a wide panel.

Tables are split by alternate columns, so that both sides describe the same rows. Strong cases
(photos, texts, encoder features), weak ones (ordinary tables, cells) and independent noise are
matched with the default call.
"""

import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from benchmarks.accuracy._attributes import load_table
from benchmarks.accuracy._photos import halves
from unshuffle import KernelizedSorting
from unshuffle.images import color_histogram, lab_pixels
from unshuffle.metrics import foscttm

MOST_ROWS = 600
N_NOISE = 50
UCI = (
    *("abalone", "australian", "bodyfat", "breast-cancer", "dermatology", "heart", "ionosphere"),
    *("optdigits", "pima", "satimage", "segment", "vehicle", "wdbc"),
)

Array = NDArray[np.float64]


class Task(NamedTuple):
    """Two collections of the same items: item i of `X` belongs to item i of `y`."""

    name: str
    X: Any
    y: Any
    kernel: Any = "rbf"
    common: Array | None = None  # where the rank error is measured; None is `y`
    share: float = 1.0  # of the items that the second collection keeps


class Found(NamedTuple):
    """Result of one fit."""

    name: str
    n_items: int
    n_right: int
    rank_error: float  # share of y closer to the partner found than the true one; chance is .5
    confidence: float
    ambiguity: float
    warned: bool


def report(folder: Path) -> Iterator[str]:
    """One line for each data set, then the counts that matter."""
    found = []
    for task in panel(folder):
        found.append(match(task))
        yield _line(found[-1])
    noise = [match(task) for task in independent()]
    wrong = [each for each in found if is_wrong(each)]
    right = [each for each in found if each.n_right >= 0.8 * each.n_items]
    silent = [each.name for each in wrong if not each.warned]
    yield f"wrong: {len(wrong)} of {len(found)}, without a warning: {', '.join(silent) or 'none'}"
    yield f"right: {len(right)}, warned all the same: {sum(each.warned for each in right)}"
    yield (
        f"noise: {sum(not each.warned for each in noise)} of {len(noise)} without a warning, "
        f"mean confidence {np.mean([each.confidence for each in noise]):.2f}"
    )


def match(task: Task, seed: int = 0, **options: Any) -> Found:
    """Shuffle the second collection, match with the default call, and compare with the truth."""
    several = isinstance(task.kernel, list)
    n_items = len(task.y[0] if several else task.y)
    order = np.random.RandomState(seed).permutation(n_items)[: round(task.share * n_items)]
    y = [take(part, order) for part in task.y] if several else take(task.y, order)
    sorting = KernelizedSorting(task.kernel, random_state=0, **options)
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        sorting.fit(task.X, y)
    items, partners = sorting.pairs_[:, 0], order[sorting.pairs_[:, 1]]
    common = task.y if task.common is None else task.common
    return Found(
        task.name,
        len(items),
        int((partners == items).sum()),
        foscttm(common[partners], common[items]),
        float(sorting.confidence_[items].mean()),
        float(sorting.ambiguity_),
        any(issubclass(each.category, UserWarning) for each in issued),
    )


def is_wrong(found: Found) -> bool:
    """Whether fewer than half of the pairs are right and partners are not even close."""
    return found.n_right < 0.5 * found.n_items and found.rank_error > 0.1


def panel(folder: Path) -> Iterator[Task]:
    """All data sets but noise."""
    for name in UCI:
        X, _ = load_table(folder / "uci" / f"{name}.csv.gz")
        yield split(f"uci {name}", X)
    for name in ("wine", "diabetes", "digits", "breast_cancer"):
        yield split(name, getattr(datasets, f"load_{name}")().data)
    yield from _measured_twice(folder)
    yield from _pictures(folder)
    for name in ("europarl7", "lohelp9"):
        with gzip.open(folder / f"{name}.json.gz", "rt", encoding="utf-8") as file:
            texts = json.load(file)
        for language in sorted(set(texts) - {"ids", "titles", "en"}):
            common = np.eye(len(texts["en"]))  # texts that are not the same are equally far
            yield Task(f"{name} {language}-en", texts[language], texts["en"], "text", common)


def _measured_twice(folder: Path) -> Iterator[Task]:
    """Tables that describe the same items by other measurements."""
    digits = np.load(folder / "mfeat.npz")
    chosen = np.random.RandomState(0).permutation(2000)[:400]
    views = ("pix", "kar", "fou", "zer")
    for i, first in enumerate(views):
        for second in views[i + 1 :]:
            X, y = (digits[view][chosen].astype(float) for view in (first, second))
            yield Task(f"mfeat {first}-{second}", scaled(X), scaled(y))
    mice = np.load(folder / "nutrimouse.npz")
    yield Task("nutrimouse", scaled(mice["gene"]), scaled(mice["lipid"]))
    cells = np.load(folder / "snareseq.npz")
    rna, atac = cells["rna"].astype(float), cells["atac"].astype(float)
    yield Task("snareseq", rna, atac)
    yield Task("snareseq, 80 % of one side", rna, atac, share=0.8)


def _pictures(folder: Path) -> Iterator[Task]:
    """Halves of photos, and features of the same pictures by two encoders."""
    flickr = np.load(folder / "flickr320.npz")["images"]
    cifar = np.load(folder / "cifar10_1000.npz")["images"][:400]
    for name, images in (("flickr320", flickr), ("cifar10", cifar)):
        X, y = ([lab_pixels(half), color_histogram(half)] for half in halves(images))
        yield Task(f"{name} halves", X, y, ["rbf", "rbf"], y[0])
    features = np.load(folder / "encoder_features.npz")
    for name in ("flickr320", "cifar10_1000"):
        X, y = (features[f"{name}_lite{k}"][:400].astype(float) for k in (0, 2))
        yield Task(f"encoders {name}", X, y)


def independent() -> Iterator[Task]:
    """Collections that have nothing to do with each other."""
    for seed in range(N_NOISE):
        rng = np.random.default_rng(seed)
        n_items = int(rng.integers(60, 300))
        X, y = (rng.normal(size=(n_items, int(rng.integers(3, 12)))) for _ in range(2))
        yield Task(f"noise {seed}", X, y)


def split(name: str, X: Array) -> Task:
    """Both halves of the columns of a table, every second one in each."""
    X = X[np.random.RandomState(0).permutation(len(X))[:MOST_ROWS]]
    X = scaled(X[:, X.std(axis=0) > 0])
    return Task(name, X[:, ::2], X[:, 1::2])


def scaled(X: NDArray[Any]) -> Array:
    """Columns with mean 0 and variance 1."""
    return np.asarray(StandardScaler().fit_transform(X.astype(float)))


def take(collection: Any, order: NDArray[np.intp]) -> Any:
    """Items of an array or a list in another order."""
    return (
        collection[order] if isinstance(collection, np.ndarray) else [collection[i] for i in order]
    )


def _line(found: Found) -> str:
    return (
        f"{found.name}: {found.n_right} of {found.n_items} right, rank error "
        f"{found.rank_error:.3f}, confidence {found.confidence:.2f}, ambiguity "
        f"{found.ambiguity:.2f}, {'warned' if found.warned else 'no warning'}"
    )
