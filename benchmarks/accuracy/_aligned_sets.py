"""Classification of sets in the order of a template, compared with sorted sets.

All parameters, including those of the alignment, are chosen by cross-validation on the training
part. The test part is scored once.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from benchmarks.accuracy._set_tasks import (
    Task,
    digit_pairs,
    mnist_sets,
    permuted_table,
    plane_dart,
    score_line,
)
from unshuffle import PermutationInvariantSVC, SetAligner
from unshuffle.preprocessing import SetNormalizer


class Method(NamedTuple):
    """An estimator and its parameter grid.

    Attributes
    ----------
    estimator : estimator
        Estimator to search; pipelines align sets once for all values of C.
    grid : dict
        Parameter values to try.
    final : callable or None
        Builds the estimator to score from the chosen parameters; None scores `estimator`.
    """

    estimator: Any
    grid: Mapping[str, Any]
    final: Callable[[Mapping[str, Any]], Any] | None = None


COSTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LARGE_COSTS = (1.0, 10.0, 100.0)
TABLES = ("ionosphere", "pima", "heart")


def digits(folder: Path, *, pair: tuple[int, int] = (3, 9), n_draws: int = 10) -> Iterator[str]:
    """Two digits as sets of 70 points, with 100 training and 200 test sets of each."""
    upright = ("upright", SetNormalizer(shear=True))
    widths = (3.0, 10.0, 30.0, 100.0)
    upright_widths = (0.3, 1.0, 3.0, 10.0)
    methods = {
        "sorted, linear": Method(_sorted("linear"), {"svc__C": (0.01, 0.1, 1.0, 10.0)}),
        "sorted, rbf": Method(_sorted("rbf"), {"svc__C": (1.0, 3.0, 10.0)}),
        "permutation-invariant, linear": Method(
            PermutationInvariantSVC(template="ball"), {"C": COSTS}
        ),
        "permutation-invariant, rbf": _machine(widths, COSTS[:4]),
        "upright, permutation-invariant, rbf": _machine(upright_widths, COSTS[:4], upright),
        "upright, aligned, rbf of rbf": Method(
            Pipeline([upright, ("align", SetAligner(kernel="rbf")), ("svc", SVC())]),
            {"svc__C": (1.0, 3.0, 10.0), "align__gamma": upright_widths},
        ),
    }
    tasks = partial(digit_pairs, folder, digits=pair)
    yield from _table(f"digits {pair[0]} and {pair[1]}", tasks, methods, range(10, 10 + n_draws))


def tables(folder: Path, *, n_draws: int = 10) -> Iterator[str]:
    """Table rows with permuted features, 70 percent for training."""
    widths = (0.3, 1.0, 3.0, 10.0, 30.0)
    methods = {
        "random order, linear": Method(
            Pipeline([("flat", FunctionTransformer(_flat)), ("svc", SVC(kernel="linear"))]),
            {"svc__C": COSTS},
        ),
        "sorted, linear": Method(_sorted("linear"), {"svc__C": COSTS}),
        "permutation-invariant, linear": Method(
            PermutationInvariantSVC(template="ball"), {"C": (*COSTS, 30.0, 100.0)}
        ),
        "sorted, rbf": Method(
            _sorted("rbf"), {"svc__C": COSTS[2:], "svc__gamma": (0.01, 0.03, 0.1, 0.3, 1.0)}
        ),
        "permutation-invariant, rbf": _machine(widths, COSTS),
        "aligned, linear": Method(
            Pipeline(
                [
                    ("align", SetAligner()),
                    ("scale", StandardScaler()),
                    ("svc", SVC(kernel="linear")),
                ]
            ),
            {"svc__C": COSTS},
        ),
        "aligned, rbf": Method(
            Pipeline([("align", SetAligner()), ("scale", StandardScaler()), ("svc", SVC())]),
            {"svc__C": COSTS[2:], "svc__gamma": (0.01, 0.03, 0.1, 0.3, 1.0)},
        ),
        "aligned, rbf of rbf": Method(
            Pipeline([("align", SetAligner(kernel="rbf", n_landmarks=20)), ("svc", SVC())]),
            {"svc__C": COSTS[2:], "align__gamma": (1.0, 10.0, 30.0)},
        ),
    }
    for name in TABLES:
        tasks = partial(permuted_table, folder, name)
        yield from _table(name, tasks, methods, range(n_draws))


def objects(folder: Path, *, n_draws: int = 8) -> Iterator[str]:
    """Plane and dart, with three training views of each."""
    centered = ("center", SetNormalizer(scale=None))
    machine = PermutationInvariantSVC(template="mean")
    rbf = PermutationInvariantSVC(kernel="rbf", template="mean")
    methods = {
        "sorted, linear": Method(_sorted("linear"), {"svc__C": LARGE_COSTS}),
        "permutation-invariant, linear": Method(machine, {"C": LARGE_COSTS}),
        "centered, permutation-invariant, linear": Method(
            Pipeline([centered, ("svc", machine)]), {"svc__C": LARGE_COSTS}
        ),
        "centered, permutation-invariant, rbf": Method(
            Pipeline([centered, ("svc", rbf)]), {"svc__C": LARGE_COSTS}
        ),
    }
    tasks = partial(plane_dart, folder)
    yield from _table("plane and dart", tasks, methods, range(n_draws))


def images(folder: Path, *, n_draws: int = 10) -> Iterator[str]:
    """A thousand digits as sets of (x, y, intensity), 700 for training."""
    aligned = Pipeline(
        [
            ("upright", SetNormalizer(shear=True, columns=[0, 1])),
            ("align", SetAligner(kernel="rbf", n_points=100, random_state=0)),
            ("svc", SVC()),
        ]
    )
    grid = {"align__gamma": (0.7, 1.5, 3.0), "svc__C": (3.0, 10.0)}
    methods = {"upright, aligned, rbf of rbf": Method(aligned, grid)}
    yield from _table("MNIST sets", partial(mnist_sets, folder), methods, range(n_draws))


def _table(
    title: str,
    task_of: Callable[[int], Task],
    methods: Mapping[str, Method],
    seeds: range,
) -> Iterator[str]:
    for name, method in methods.items():
        yield score_line(title, name, [_score(task_of(seed), method) for seed in seeds])


def _score(task: Task, method: Method) -> float:
    few = np.unique(task.y_train, return_counts=True)[1].min() < 5
    folds = LeaveOneOut() if few else StratifiedKFold(5, shuffle=True, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        estimator = method.estimator
        if isinstance(estimator, Pipeline):
            estimator.set_params(memory=folder)  # sets are aligned once for all C
        search = GridSearchCV(estimator, method.grid, cv=folds, refit=method.final is None)
        search.fit(task.train, task.y_train)
        if method.final is None:
            return float(search.score(task.test, task.y_test))
    chosen = method.final(search.best_params_).fit(task.train, task.y_train)
    return float(chosen.score(task.test, task.y_test))


def _machine(widths: Sequence[float], costs: Sequence[float], *before: Any) -> Method:
    """Permutation-invariant SVM with an RBF kernel, after the given steps.

    Its parameters are chosen with an aligner and a linear SVM, which is the same classifier up to
    the approximation of the kernel features.
    """
    steps = [*before, ("align", SetAligner(kernel="rbf")), ("svc", SVC(kernel="linear"))]

    def final(chosen: Mapping[str, Any]) -> Pipeline:
        machine = PermutationInvariantSVC(
            chosen["svc__C"], kernel="rbf", gamma=chosen["align__gamma"], template="mean"
        )
        return Pipeline([*before, ("svc", machine)])

    return Method(Pipeline(steps), {"svc__C": costs, "align__gamma": widths}, final)


def _sorted(kernel: str) -> Pipeline:
    return Pipeline(
        [
            ("sort", FunctionTransformer(_sorted_vectors)),
            ("scale", StandardScaler()),
            ("svc", SVC(kernel=kernel)),
        ]
    )


def _sorted_vectors(bags: Any) -> Any:
    """Sort points by distance from the origin, as in the paper, and single numbers by value."""
    ordered = []
    for bag in np.asarray(bags):
        keys = bag[:, 0] if bag.shape[1] == 1 else np.linalg.norm(bag, axis=1)
        ordered.append(bag[np.argsort(keys, kind="stable")].ravel())
    return np.array(ordered)


def _flat(bags: Any) -> Any:
    return np.asarray(bags).reshape(len(bags), -1)
