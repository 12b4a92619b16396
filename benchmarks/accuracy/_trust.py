"""Does an answer say when it cannot be trusted? One line for each data set of a wide panel.

Tables are split by alternate columns, so that both sides describe the same rows. Strong cases
(photos, texts, encoder features), weak ones (ordinary tables, cells) and independent noise are
matched with the default call. The constants of the estimate were fitted on every second set
(`calibration`), marked A; the others are marked B.
"""

import gzip
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

from benchmarks.papers._kernelized_sorting import halves
from benchmarks.papers._set_tasks import load_table
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
    kernel: Any = "auto"
    common: Array | None = None  # where the rank error is measured; None is `y`
    share: float = 1.0  # of the items that the second collection keeps

    @property
    def n_items(self) -> int:
        return len(self.y[0] if isinstance(self.kernel, list) else self.y)

    def shuffled(self, order: NDArray[np.intp]) -> Any:
        """The second collection in another order."""
        if isinstance(self.kernel, list):
            return [take(part, order) for part in self.y]
        return take(self.y, order)


class Found(NamedTuple):
    """Result of one fit."""

    name: str
    n_items: int
    n_right: int
    rank_error: float  # share of y closer to the partner found than the true one; chance is .5
    sorting: KernelizedSorting
    warned: bool

    @property
    def right(self) -> float:
        return self.n_right / self.n_items


def report(folder: Path) -> Iterator[str]:
    """One line for each data set, then the counts that matter for both halves of the panel."""
    found = []
    for number, task in enumerate(panel(folder)):
        found.append(match(task))
        yield f"{'AB'[number % 2]} {_line(found[-1])}"
    for half, some in (("A", found[::2]), ("B", found[1::2])):
        wrong = [each for each in some if is_wrong(each)]
        right = [each for each in some if each.right >= 0.8]
        silent = [each.name for each in wrong if not each.warned]
        off = np.mean([abs(each.sorting.expected_accuracy_ - each.right) for each in some])
        inside = np.mean([_holds(each) for each in some])
        yield (
            f"{half}: wrong {len(wrong)} of {len(some)}, without a warning: "
            f"{', '.join(silent) or 'none'}; right {len(right)}, warned all the same: "
            f"{sum(each.warned for each in right)}; believed against right: {off:.3f} apart on "
            f"average, {inside:.0%} inside the interval"
        )
    noise = [match(task) for task in independent()]
    yield (
        f"noise: {sum(not each.warned for each in noise)} of {len(noise)} without a warning, "
        f"believed right {np.mean([each.sorting.expected_accuracy_ for each in noise]):.3f}, mean "
        f"confidence {np.mean([each.sorting.confidence_.mean() for each in noise]):.3f}"
    )


def match(task: Task, seed: int = 0, **options: Any) -> Found:
    """Shuffle the second collection, match with the default call, and compare with the truth."""
    n_kept = round(task.share * task.n_items)
    order = np.random.RandomState(seed).permutation(task.n_items)[:n_kept]
    sorting = KernelizedSorting(task.kernel, random_state=0, **options)
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        sorting.fit(task.X, task.shuffled(order))
    items, partners = sorting.pairs_[:, 0], order[sorting.pairs_[:, 1]]
    common = task.y if task.common is None else task.common
    return Found(
        task.name,
        len(items),
        int((partners == items).sum()),
        foscttm(common[partners], common[items]),
        sorting,
        any(issubclass(each.category, UserWarning) for each in issued),
    )


def is_wrong(found: Found) -> bool:
    """Whether fewer than half of the pairs are right and partners are not even close."""
    return found.right < 0.5 and found.rank_error > 0.1


def _holds(found: Found) -> bool:
    low, high = found.sorting.expected_accuracy_interval_
    return bool(low <= found.right <= high)


def calibrate(folder: Path) -> Iterator[str]:
    """Fit the constants of the estimate on half of the panel, of graded tasks and of noise."""
    tasks = [*list(panel(folder))[::2], *list(graded(folder))[::2], *list(independent())[::4]]
    measures, right, resampled = [], [], []
    for task in tasks:
        kernel = "rbf" if task.kernel == "auto" else task.kernel
        found = match(task._replace(kernel=kernel))
        evidence = found.sorting._evidence
        measures.append([evidence.persistence, evidence.excess, 1.0 - evidence.ambiguity, 1.0])
        right.append(found.right)
        alone = KernelizedSorting(kernel, random_state=0, trust=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            order = np.random.RandomState(0).permutation(task.n_items)
            order = order[: round(task.share * task.n_items)]
            resampled.append(alone.fit(task.X, task.shuffled(order)).confidence_.mean())
        yield (
            f"{task.name}: right {right[-1]:.3f}, measures {np.round(measures[-1][:3], 3)}, "
            f"resampled {resampled[-1]:.3f}"
        )
    F, y, c = np.array(measures), np.array(right), np.array(resampled)
    # As in `Evidence.probability`.
    certain = np.clip(np.maximum(F[:, 0] / 0.5, F[:, 1] / 0.15), 0.0, 1.0)
    certain *= 1.0 - np.maximum(0.0, 0.1 - F[:, 2]) / 0.2  # of the rivals

    def error(weights: Array) -> float:
        believed = c * certain / (1.0 + np.exp(-(F @ weights)))
        return float(np.abs(believed - y).sum() + 1e-3 * (weights**2).sum())

    starts = [np.array([s, 4 * s, 8 * s, -2 * s]) for s in (0.5, 1.0, 2.0)]
    fits = [minimize(error, start, method="Nelder-Mead", options=NELDER) for start in starts]
    best = min(fits, key=lambda fit: fit.fun)
    yield f"LOG_ODDS = {tuple(best.x.round(1).tolist())}, mean error {best.fun / len(y):.3f}"


def graded(folder: Path) -> Iterator[Task]:
    """Tasks from easy to hopeless, apart from the panel."""
    rng = np.random.default_rng(7)
    flickr = np.load(folder / "flickr320.npz")["images"]
    cifar = np.load(folder / "cifar10_1000.npz")["images"]
    for name, images in (
        ("flickr", flickr[:200]),
        ("cifar", cifar[400:600]),
        ("cifar", cifar[600:900]),
        ("cifar", cifar[600:]),
    ):
        X, y = ([lab_pixels(half), color_histogram(half)] for half in halves(images))
        yield Task(f"{name} {len(images)} pixels and colors", X, y, ["rbf", "rbf"], y[0])
        yield Task(f"{name} {len(images)} pixels", X[0], y[0])
        yield Task(f"{name} {len(images)} colors", X[1], y[1])
    digits = np.load(folder / "mfeat.npz")
    chosen = np.random.RandomState(5).permutation(2000)[:300]
    for noise in (0.25, 0.5, 0.75, 1.0):
        X, y = (scaled(digits[view][chosen]) for view in ("pix", "kar"))
        X, y = (table + noise * rng.normal(size=table.shape) for table in (X, y))
        yield Task(f"mfeat pix-kar, noise {noise}", X, y)
    for n_dimensions in (3, 6, 12):
        for noise in (0.05, 0.1, 0.2, 0.3, 0.4):
            widths = np.linspace(2.0, 0.6, n_dimensions)
            X = rng.standard_exponential(size=(250, n_dimensions)) * widths
            y = X @ np.linalg.qr(rng.normal(size=(n_dimensions, n_dimensions)))[0]
            X, y = (table + noise * rng.normal(size=table.shape) for table in (X, y))
            yield Task(f"{n_dimensions} dimensions, noise {noise}", X, y)


NELDER = {"maxiter": 20_000, "maxfev": 20_000}


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


def split(name: str, X: Array, n_rows: int = MOST_ROWS) -> Task:
    """Both halves of the columns of a table, every second one in each."""
    X = X[np.random.RandomState(0).permutation(len(X))[:n_rows]]
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
    sorting = found.sorting
    low, high = sorting.expected_accuracy_interval_
    chosen = f", {sorting.scaling_}, {sorting.kernel_}" if hasattr(sorting, "scaling_") else ""
    return (
        f"{found.name}: {found.n_right} of {found.n_items} right, rank error "
        f"{found.rank_error:.3f}, believed {sorting.expected_accuracy_:.2f} ({low:.2f} to "
        f"{high:.2f}), ambiguity {sorting.ambiguity_:.2f}{chosen}, "
        f"{'warned: ' + '; '.join(sorting.doubts_) if found.warned else 'no warning'}"
    )
