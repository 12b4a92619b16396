"""Set kernels, with parameters chosen on the training part."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.accuracy._set_tasks import (
    Task,
    digit_pairs,
    mnist_images,
    mnist_sets,
    permuted_table,
    plane_dart,
    score_line,
)
from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    FisherVectorKernel,
    MeanMapKernel,
    SetKernelSum,
    SlicedWassersteinKernel,
)
from unshuffle.preprocessing import NeighborhoodShape, SetNormalizer

COSTS = (1.0, 3.0, 10.0, 30.0, 100.0)

# Candidates of one method: transformers from sets to Gram blocks, keyed by their parameters.
Candidates = Mapping[str, Any]


def digits(folder: Path, *, n_draws: int = 10) -> Iterator[str]:
    """3s and 9s as sets of 70 points, with 100 training and 200 test sets of each."""
    methods = {**kernels_between_sets(), **kernels_of_shapes()}
    yield from _table(
        "digits 3 and 9", partial(digit_pairs, folder), methods, range(10, 10 + n_draws)
    )


def mnist(folder: Path, *, n_draws: int = 10, first: int = 0) -> Iterator[str]:
    """A thousand digits as sets of (x, y, intensity) and as images, 700 for training."""
    whole = [_image_accuracy(mnist_images(folder, seed, first=first)) for seed in range(n_draws)]
    yield score_line("mnist sets", "whole images, rbf", whole)
    methods = {**kernels_between_sets(), **kernels_of_shapes(columns=(0, 1))}
    tasks = partial(mnist_sets, folder, first=first)
    yield from _table("mnist sets", tasks, methods, range(n_draws))


def tables(folder: Path, *, n_draws: int = 10) -> Iterator[str]:
    """Table rows with permuted features, 70 percent for training."""
    for name in ("ionosphere", "pima", "heart"):
        yield from _table(
            name, partial(permuted_table, folder, name), kernels_of_numbers(), range(n_draws)
        )


def objects(folder: Path, *, n_draws: int = 8) -> Iterator[str]:
    """Plane and dart, with three training views of each."""
    centered = SetNormalizer(scale=None)
    methods = {
        f"centered, {name}": _each(
            (width, make_pipeline(centered, kernel)) for width, kernel in candidates.items()
        )
        for name, candidates in {
            "mean map": {"": MeanMapKernel(outer="rbf")},
            "sliced Wasserstein": {"": SlicedWassersteinKernel()},
            "sum of both": {
                "": SetKernelSum([MeanMapKernel(outer="rbf"), SlicedWassersteinKernel()])
            },
            "expected likelihood, M=1": {"": ExpectedLikelihoodKernel(1, random_state=0)},
            "Bhattacharyya": {"": BhattacharyyaKernel()},
        }.items()
    }
    yield from _table("plane and dart", partial(plane_dart, folder), methods, range(n_draws))


def _table(
    title: str, task_of: Callable[[int], Task], methods: Mapping[str, Candidates], seeds: range
) -> Iterator[str]:
    for name, candidates in methods.items():
        yield score_line(title, name, [accuracy(task_of(seed), candidates) for seed in seeds])


def accuracy(task: Task, candidates: Candidates, costs: Sequence[float] = COSTS) -> float:
    """Choose a candidate and C by five-fold cross-validation on the training part; score once.

    The Gram matrix of the training part is computed once for each candidate. Widths estimated from
    it therefore use the points of held-out folds, but not their labels.
    """
    folds = list(
        StratifiedKFold(5, shuffle=True, random_state=0).split(task.y_train, task.y_train)
        if min(np.unique(task.y_train, return_counts=True)[1]) >= 5
        else _leave_pairs_out(task.y_train)
    )
    best, winner = -1.0, None
    for candidate in candidates.values():
        fitted = clone(candidate)
        K = fitted.fit_transform(task.train)
        for cost in costs:
            right = np.mean([_fold(K, task.y_train, fold, cost) for fold in folds])
            if right > best + 1e-9:
                best, winner = float(right), (fitted, K, cost)
    assert winner is not None
    fitted, K, cost = winner
    model = SVC(C=cost, kernel="precomputed").fit(K, task.y_train)
    return float(model.score(fitted.transform(task.test), task.y_test))


def kernels_between_sets() -> dict[str, Candidates]:
    """Every set kernel on the original sets, with typical widths."""
    widths = {"wide": None, "narrow": 30.0, "narrower": 100.0}
    return {
        "mean map": _each(
            (f"gamma={width}", MeanMapKernel(gamma=gamma)) for width, gamma in widths.items()
        ),
        "mean map, outer rbf": _each(
            (f"gamma={width}", MeanMapKernel(gamma=gamma, outer="rbf"))
            for width, gamma in widths.items()
        ),
        "sliced Wasserstein": {"": SlicedWassersteinKernel()},
        "Fisher vectors": _each((f"M={M}", FisherVectorKernel(M)) for M in (8, 16, 32)),
        **{
            f"expected likelihood, M={M}": {"": ExpectedLikelihoodKernel(M, random_state=0)}
            for M in (1, 3, 5, 8)
        },
        "Bhattacharyya": {"": BhattacharyyaKernel()},
        **{
            f"{name} in feature space": _each(
                (f"eta={eta}", kernel(base_kernel="rbf", gamma=100.0, eta=eta, **options))
                for eta in (0.005, 0.02, 0.05, 0.1)
            )
            for name, kernel, options in (
                ("expected likelihood, M=1,", ExpectedLikelihoodKernel, {"n_components": 1}),
                ("Bhattacharyya", BhattacharyyaKernel, {}),
            )
        },
    }


def kernels_of_shapes(columns: Sequence[int] | None = None) -> dict[str, Candidates]:
    """Kernels between centered, scaled and sheared sets, with and without strokes."""
    upright = SetNormalizer(shear=True, columns=columns)
    strokes = {w: NeighborhoodShape(weight=w, columns=columns) for w in (0.5, 0.75, 1.5)}
    narrow, wide = 6.0, 1.0

    def mean_map(gamma: float, n_features: int | None = None) -> MeanMapKernel:
        return MeanMapKernel(gamma=gamma, outer="rbf", n_features=n_features, random_state=0)

    def along(weight: float, kernel: Any) -> Any:
        return make_pipeline(upright, strokes[weight], kernel)

    return {
        "upright, mean map": _each(
            (f"gamma={gamma:g}", make_pipeline(upright, mean_map(gamma)))
            for gamma in (wide, 3.0, narrow, 12.0)
        ),
        "upright, sliced Wasserstein": {"": make_pipeline(upright, SlicedWassersteinKernel())},
        "upright, sum of both": _each(
            (
                f"gamma={gamma:g}",
                make_pipeline(upright, SetKernelSum([mean_map(gamma), SlicedWassersteinKernel()])),
            )
            for gamma in (wide, 3.0, narrow)
        ),
        "upright strokes, mean map": _each(
            (f"weight={w}, gamma={gamma:g}", along(w, mean_map(gamma, 2000)))
            for w in strokes
            for gamma in (wide, 3.0, narrow)
        ),
        "upright strokes, sliced Wasserstein": _each(
            (f"weight={w}", along(w, SlicedWassersteinKernel(random_state=0))) for w in strokes
        ),
        "upright strokes, sum of both": _each(
            (
                f"weight={w}, gamma={gamma:g}",
                along(
                    w,
                    SetKernelSum([mean_map(gamma, 2000), SlicedWassersteinKernel(random_state=0)]),
                ),
            )
            for w in strokes
            for gamma in (wide, 3.0, narrow)
        ),
        "upright strokes, sum of three": {
            "": along(
                0.75,
                SetKernelSum(
                    [
                        mean_map(1.0, 2000),
                        mean_map(3.0, 2000),
                        SlicedWassersteinKernel(random_state=0),
                    ]
                ),
            )
        },
    }


def kernels_of_numbers() -> dict[str, Candidates]:
    """Kernels between sets of numbers: sorted values (sliced) or their distribution (mean map)."""

    def mean_map(gamma: float) -> MeanMapKernel:
        return MeanMapKernel(gamma=gamma, outer="rbf", n_features=500, random_state=0)

    sliced = {
        f"gamma={gamma}": SlicedWassersteinKernel(gamma=gamma) for gamma in (None, 30.0, 100.0)
    }
    counted = {f"gamma={gamma:g}": mean_map(gamma) for gamma in (30.0, 300.0, 3000.0)}
    both = {
        f"gammas={one}, {other}": SetKernelSum([clone(first), clone(second)])
        for one, first in sliced.items()
        for other, second in counted.items()
    }
    return {
        "sliced Wasserstein": sliced,
        "mean map": counted,
        "sum of both": both,
        "whichever is best in training": {
            **sliced,
            **{f"counted, {k}": v for k, v in counted.items()},
            **both,
        },
    }


def _image_accuracy(task: Task) -> float:
    grid = {"C": COSTS, "gamma": (0.003, 0.01, 0.03)}
    return float(
        GridSearchCV(SVC(), grid).fit(task.train, task.y_train).score(task.test, task.y_test)
    )


def _each(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return dict(pairs)


def _fold(K: NDArray[np.float64], y: NDArray[Any], fold: tuple[Any, Any], cost: float) -> float:
    seen, left_out = fold
    model = SVC(C=cost, kernel="precomputed").fit(K[np.ix_(seen, seen)], y[seen])
    return float(model.score(K[np.ix_(left_out, seen)], y[left_out]))


def _leave_pairs_out(y: NDArray[Any]) -> Iterable[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Folds that leave out one set of each class, in all combinations; for few sets."""
    groups = [np.flatnonzero(y == each) for each in np.unique(y)]
    for left_out in np.stack(np.meshgrid(*groups), axis=-1).reshape(-1, len(groups)):
        yield np.setdiff1d(np.arange(len(y)), left_out), left_out
