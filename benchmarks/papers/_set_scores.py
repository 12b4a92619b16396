"""Accuracy of classifiers of sets, with all parameters chosen on the training part."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from benchmarks.papers._set_tasks import Task
from unshuffle.kernels import MeanMapKernel, SetKernelSum, SlicedWassersteinKernel
from unshuffle.preprocessing import NeighborhoodShape, SetNormalizer

COSTS = (1.0, 3.0, 10.0, 30.0, 100.0)


def searched(estimator: Any, grid: Mapping[str, Any], task: Task) -> float:
    """Percent right on the test part, after five-fold cross-validation on the training part."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(estimator, grid, cv=folds).fit(task.train, task.y_train)
    return 100 * float(search.score(task.test, task.y_test))


def by_kernel(candidates: Iterable[Any], task: Task, costs: Sequence[float] = COSTS) -> float:
    """The same for transformers from sets to Gram blocks, and an SVM.

    The Gram matrix of the training part is computed once for each candidate. Widths estimated from
    it therefore use the points of held-out folds, but not their labels.
    """
    folds = list(
        StratifiedKFold(5, shuffle=True, random_state=0).split(task.y_train, task.y_train)
    )
    best, winner = -1.0, None
    for candidate in candidates:
        fitted = clone(candidate)
        K = fitted.fit_transform(task.train)
        for cost in costs:
            right = np.mean([_fold(K, task.y_train, fold, cost) for fold in folds])
            if right > best + 1e-9:
                best, winner = float(right), (fitted, K, cost)
    assert winner is not None
    fitted, K, cost = winner
    model = SVC(C=cost, kernel="precomputed").fit(K, task.y_train)
    return 100 * float(model.score(fitted.transform(task.test), task.y_test))


def _fold(K: NDArray[np.float64], y: NDArray[Any], fold: tuple[Any, Any], cost: float) -> float:
    seen, left_out = fold
    model = SVC(C=cost, kernel="precomputed").fit(K[np.ix_(seen, seen)], y[seen])
    return float(model.score(K[np.ix_(left_out, seen)], y[left_out]))


def in_order(order: Callable[[Any], Any], kernel: str) -> Any:
    """An SVM of sets as vectors in some order, with scaled columns."""
    return make_pipeline(FunctionTransformer(order), StandardScaler(), SVC(kernel=kernel))


def sorted_vectors(bags: Any) -> Any:
    """Sort points by distance from the origin, as in the paper, and single numbers by value."""
    ordered = []
    for bag in np.asarray(bags):
        keys = bag[:, 0] if bag.shape[1] == 1 else np.linalg.norm(bag, axis=1)
        ordered.append(bag[np.argsort(keys, kind="stable")].ravel())
    return np.array(ordered)


def as_given(bags: Any) -> Any:
    """Points in the order given, which is random."""
    return np.asarray(bags).reshape(len(bags), -1)


def of_strokes(columns: Sequence[int] | None = None) -> Any:
    """The best kernel we know for handwriting: directions of strokes of upright sets, summed."""
    kernels = [
        *(
            MeanMapKernel(gamma=g, outer="rbf", n_features=2000, random_state=0)
            for g in (1.0, 3.0)
        ),
        SlicedWassersteinKernel(random_state=0),
    ]
    return make_pipeline(
        SetNormalizer(shear=True, columns=columns),
        NeighborhoodShape(weight=0.75, columns=columns),
        SetKernelSum(kernels),
    )
