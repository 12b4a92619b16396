"""Multi-instance benchmarks: sets in which one point, the mean or the shape decides the class.

On real data, five times ten folds; on made data, ten draws. Columns are scaled and every choice is
made on the training part: widths, outer kernels, C, and in the last row the kernel itself.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from benchmarks.papers._set_tasks import Bag, Task
from unshuffle import PermutationInvariantSVC
from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    FisherVectorKernel,
    MaxMapKernel,
    MeanMapKernel,
    SetKernel,
    SetKernelSum,
    SlicedWassersteinKernel,
)

N_POINTS = 50  # of each set of the made data
COSTS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
CHOSEN = "chosen in training among all kernels"


class Fold(NamedTuple):
    """Scaled training and test sets, and where the latter come from."""

    task: Task
    tested: NDArray[np.intp]


class Outcome(NamedTuple):
    """What a method reached in training, and which test sets it classified correctly."""

    trained: float
    right: NDArray[np.bool_]


def report(folder: Path, *, first_seed: int = 0) -> Iterator[str]:
    """Musk1, elephant and protein; then made data. Other seeds are for experiments."""
    for name in ("musk1", "elephant", "protein"):
        sets, labels = read_bags(folder, name)
        folds = [fold for s in range(5) for fold in ten_folds(sets, labels, first_seed + s)]
        yield from _lines(name, folds, len(sets))
    for name, draw in MADE.items():
        folds = [drawn(draw, first_seed + s) for s in range(10, 20)]
        yield from _lines(name, folds, None)


def read_bags(folder: Path, name: str) -> tuple[list[Bag], NDArray[np.intp]]:
    """Sets and labels of a multi-instance data set."""
    with np.load(folder / "multi_instance.npz") as data:
        points, bag, labels = (data[f"{name}_{each}"] for each in ("points", "bag", "label"))
    return [points[bag == each].astype(float) for each in np.unique(bag)], labels


def ten_folds(sets: list[Bag], labels: NDArray[Any], seed: int) -> Iterator[Fold]:
    """Ten splits of sets into nine tenths for training and one for testing."""
    folds = StratifiedKFold(10, shuffle=True, random_state=seed)
    for train, test in folds.split(labels, labels):
        scaler = StandardScaler().fit(np.concatenate([sets[i] for i in train]))
        scaled = [scaler.transform(points) for points in sets]
        task = Task(
            [scaled[i] for i in train], labels[train], [scaled[i] for i in test], labels[test]
        )
        yield Fold(task, test)


def drawn(draw: Callable[..., NDArray[np.float64]], seed: int) -> Fold:
    """200 training and 300 test sets; the classes alternate."""
    rng = np.random.default_rng(seed)
    labels = np.arange(500) % 2
    sets = list(draw(labels, rng))
    return Fold(Task(sets[:200], labels[:200], sets[200:], labels[200:]), np.arange(300))


def one_point(labels: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
    """Gaussian points in five dimensions; sets of class 1 have one point in a small region.

    The region is as far from the mean as many other points. With its place known, 91 % of the
    sets could be classified.
    """
    middle = rng.normal(size=5)
    middle *= np.sqrt(5.0) / np.linalg.norm(middle)
    sets = rng.normal(size=(len(labels), N_POINTS, 5))
    sets[labels == 1, 0] = middle + 0.3 * rng.normal(size=(int((labels == 1).sum()), 5))
    return sets


def mean(labels: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
    """Gaussian points in five dimensions; those of class 1 are all moved a little."""
    step = rng.normal(size=5)
    step *= 0.3 / np.linalg.norm(step)
    return rng.normal(size=(len(labels), N_POINTS, 5)) + labels[:, None, None] * step


def shape(labels: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
    """Points around three or four corners in the plane, with the same mean and covariance."""
    corner = rng.integers((3 + labels)[:, None], size=(len(labels), N_POINTS))
    angle = 2 * np.pi * corner / (3 + labels)[:, None]
    corners = np.sqrt(2.0) * np.stack([np.cos(angle), np.sin(angle)], axis=2)
    return corners + 0.8 * rng.normal(size=corners.shape)


MADE = {"one point decides": one_point, "the mean decides": mean, "the shape decides": shape}


def kernels(train: list[Bag]) -> dict[str, list[SetKernel]]:
    """Candidates of each set kernel, with widths around the defaults for these sets."""
    some = {"n_features": 500, "random_state": 0} if _many(train) else {}
    few = {"n_landmarks": 500} if _many(train) else {}
    mean, largest = MeanMapKernel(**some).fit(train).gamma_, MaxMapKernel(**few).fit(train).gamma_
    outers, floors = ("linear", "rbf"), (0.02, 1.0, 30.0)

    def mean_map(width: float, outer: str) -> MeanMapKernel:
        return MeanMapKernel(gamma=width * mean, outer=outer, **some)

    def max_map(width: float, outer: str) -> MaxMapKernel:
        return MaxMapKernel(gamma=width * largest, outer=outer, **few)

    return {
        "mean map": [mean_map(w, outer) for w in (0.25, 1, 4, 16) for outer in outers],
        "max map": [max_map(w, outer) for w in (0.5, 1, 2, 4) for outer in outers],
        "max map of columns": [MaxMapKernel("linear", outer=outer) for outer in outers],
        "sum of both max maps": [
            SetKernelSum([max_map(w, "rbf"), MaxMapKernel("linear")]) for w in (0.5, 1, 2)
        ],
        "sum of mean and max map": [
            SetKernelSum([mean_map(w, outer), max_map(1, outer)])
            for w in (1, 4)
            for outer in outers
        ],
        "sliced Wasserstein": [
            SlicedWassersteinKernel(n, n_quantiles=16, random_state=0) for n in (30, 100)
        ],
        "Fisher vectors": [FisherVectorKernel(M, random_state=0) for M in (2, 8)],
        "Bhattacharyya": [
            BhattacharyyaKernel(covariance_type="diag", regularization=each) for each in floors
        ],
        "expected likelihood": [
            ExpectedLikelihoodKernel(
                M, covariance_type="diag", regularization=each, random_state=0
            )
            for M in (1, 3)
            for each in floors[:2]
        ],
    }


def others(train: list[Bag]) -> dict[str, Any]:
    """Classifiers of sets to compare with, and their own searches.

    Those of sawmil are left out if it is not installed, or would take hours or too much memory.
    """
    pooled = FunctionTransformer(pool)
    found = {
        "PermutationInvariantSVC": GridSearchCV(
            PermutationInvariantSVC(n_points=50 if _many(train) else None, random_state=0),
            [{"kernel": ["linear"], "C": (0.01, 1.0)}, {"kernel": ["rbf"], "C": (0.1, 1.0)}],
            cv=3,
        ),
        "max pooling, logistic": GridSearchCV(
            make_pipeline(pooled, StandardScaler(), LogisticRegression(max_iter=5000)),
            {"logisticregression__C": (0.001, 0.01, 0.1, 1.0, 10.0)},
        ),
        "max pooling, forest": make_pipeline(pooled, RandomForestClassifier(300, random_state=0)),
    }
    if find_spec("sawmil") and sum(map(len, train)) < 2000:
        grid = {"C": (1.0, 30.0, 1000.0), "gamma": (0.25, 1.0, 4.0)}
        found["sawmil, NSK"] = GridSearchCV(SawMil("NSK"), grid, cv=3)
        found["sawmil, sMIL"] = GridSearchCV(SawMil("sMIL"), grid, cv=3)
    return found


def pool(sets: list[Bag]) -> NDArray[np.float64]:
    """Largest and smallest value of each column."""
    return np.array([np.append(points.max(axis=0), points.min(axis=0)) for points in sets])


class SawMil(ClassifierMixin, BaseEstimator):
    """A machine of the package sawmil with an RBF kernel; `gamma` is relative to the median."""

    def __init__(self, kind: str, C: float = 1.0, gamma: float = 1.0) -> None:
        self.kind = kind
        self.C = C
        self.gamma = gamma

    def fit(self, X: list[Bag], y: NDArray[Any]) -> "SawMil":
        import sawmil

        self.classes_ = np.unique(y)
        width = self.gamma * MeanMapKernel(n_features=2).fit(X).gamma_
        machine = getattr(sawmil, self.kind)(
            C=self.C,
            kernel=sawmil.RBF(width),
            solver="osqp",
            normalizer="featurespace",
            scale_C=False,
        )
        self.machine_ = machine.fit(X, 2.0 * y - 1.0)
        return self

    def predict(self, X: list[Bag]) -> NDArray[Any]:
        return (self.machine_.decision_function(X) > 0).astype(int)


def _many(train: list[Bag]) -> bool:
    """Whether all pairs of points would take hours."""
    return sum(map(len, train)) > 15_000


def _lines(title: str, folds: Sequence[Fold], n_sets: int | None) -> Iterator[str]:
    """A line for each method."""
    found: dict[str, list[Outcome]] = {}
    for fold in folds:
        outcomes = {name: best(fold.task, each) for name, each in kernels(fold.task.train).items()}
        outcomes[CHOSEN] = max(outcomes.values(), key=lambda each: each.trained)
        for name, outcome in outcomes.items():
            found.setdefault(name, []).append(outcome)
    for name, several in found.items():
        yield score(title, name, folds, [each.right for each in several], n_sets)
    for name, model in others(folds[0].task.train).items():
        right = []
        for fold in folds:
            model.fit(fold.task.train, fold.task.y_train)
            right.append(model.predict(fold.task.test) == fold.task.y_test)
        yield score(title, name, folds, right, n_sets)


def best(task: Task, candidates: Sequence[SetKernel]) -> Outcome:
    """Choose a candidate and C by five-fold cross-validation on the training part; test once."""
    y = task.y_train
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(y, y))
    best, winner = -1.0, None
    for candidate in candidates:
        kernel = SetKernelSum([candidate])  # brings all to one scale, and so the costs
        K = kernel.fit_transform(task.train)
        for cost in COSTS:
            machine = SVC(C=cost, kernel="precomputed")
            right = np.mean(
                [machine.fit(K[np.ix_(a, a)], y[a]).score(K[np.ix_(b, a)], y[b]) for a, b in folds]
            )
            if right > best + 1e-9:
                best, winner = float(right), (kernel, K, cost)
    assert winner is not None
    kernel, K, cost = winner
    machine = SVC(C=cost, kernel="precomputed").fit(K, y)
    return Outcome(best, machine.predict(kernel.transform(task.test)) == task.y_test)


def score(
    title: str,
    method: str,
    folds: Sequence[Fold],
    right: Sequence[NDArray[np.bool_]],
    n_sets: int | None,
) -> str:
    """Mean accuracy and its standard error: over the sets of one data set, or over draws.

    Folds share their training sets and repetitions share all sets, so that an error over folds
    would be too small.
    """
    if n_sets is None:
        parts = np.array([each.mean() for each in right])
    else:
        counts = np.bincount(np.concatenate([fold.tested for fold in folds]), minlength=n_sets)
        hits = np.concatenate([fold.tested[each] for fold, each in zip(folds, right, strict=True)])
        parts = np.bincount(hits, minlength=n_sets) / counts
    error = parts.std(ddof=1) / np.sqrt(len(parts))
    return f"{title}: {method} {100 * parts.mean():.1f} % (standard error {100 * error:.1f})"
