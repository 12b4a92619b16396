"""Sets put into the order of a template and classified, beside sets that are merely sorted.

The parameters of every method are chosen by cross-validation on the training part alone, the
alignment included; the test part is scored once.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from benchmarks.accuracy._set_tasks import Task, digit_pairs, permuted_table, plane_dart
from unshuffle import PermutationInvariantSVC, SetAligner
from unshuffle.preprocessing import SetNormalizer


class Method(NamedTuple):
    """An estimator and what to try of its parameters."""

    estimator: Any
    grid: Mapping[str, Any]


COSTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LARGE_COSTS = (1.0, 10.0, 100.0)
TABLES = ("ionosphere", "pima", "heart")


def digits(folder: Path, *, pair: tuple[int, int] = (3, 9), n_draws: int = 10) -> Iterator[str]:
    """Two digits as clouds of 70 points, 100 of each to learn from and 200 of each to score."""
    upright = ("upright", SetNormalizer(shear=True))
    machine = PermutationInvariantSVC(kernel="rbf", template="mean")
    widths = (3.0, 10.0, 30.0, 100.0)
    upright_widths = (0.3, 1.0, 3.0, 10.0)
    methods = {
        "sorted, linear": Method(_sorted("linear"), {"svc__C": (0.01, 0.1, 1.0, 10.0)}),
        "sorted, rbf": Method(_sorted("rbf"), {"svc__C": (1.0, 3.0, 10.0)}),
        "permutation-invariant, linear": Method(PermutationInvariantSVC(), {"C": COSTS}),
        "permutation-invariant, rbf": Method(machine, {"C": COSTS[:4], "gamma": widths}),
        "upright, permutation-invariant, rbf": Method(
            Pipeline([upright, ("svc", machine)]),
            {"svc__C": COSTS[:4], "svc__gamma": upright_widths},
        ),
        "upright, aligned, rbf of rbf": Method(
            Pipeline([upright, ("align", SetAligner(kernel="rbf")), ("svc", SVC())]),
            {"svc__C": (1.0, 3.0, 10.0), "align__gamma": upright_widths},
        ),
    }
    tasks = partial(digit_pairs, folder, digits=pair)
    yield from _table(f"digits {pair[0]} and {pair[1]}", tasks, methods, range(10, 10 + n_draws))


def tables(folder: Path, *, n_draws: int = 10) -> Iterator[str]:
    """Rows of tables with permuted features, 70 per cent to learn from."""
    widths = (0.3, 1.0, 3.0, 10.0, 30.0)
    methods = {
        "random order, linear": Method(
            Pipeline([("flat", FunctionTransformer(_flat)), ("svc", SVC(kernel="linear"))]),
            {"svc__C": COSTS},
        ),
        "sorted, linear": Method(_sorted("linear"), {"svc__C": COSTS}),
        "permutation-invariant, linear": Method(
            PermutationInvariantSVC(), {"C": (*COSTS, 30.0, 100.0)}
        ),
        "sorted, rbf": Method(
            _sorted("rbf"), {"svc__C": COSTS[2:], "svc__gamma": (0.01, 0.03, 0.1, 0.3, 1.0)}
        ),
        "permutation-invariant, rbf": Method(
            PermutationInvariantSVC(kernel="rbf", template="mean"), {"C": COSTS, "gamma": widths}
        ),
        "aligned, rbf": Method(
            Pipeline([("align", SetAligner()), ("scale", StandardScaler()), ("svc", SVC())]),
            {"svc__C": COSTS[2:], "svc__gamma": (0.01, 0.03, 0.1, 0.3, 1.0)},
        ),
        "aligned, rbf of rbf": Method(
            Pipeline([("align", SetAligner(kernel="rbf", rank=20)), ("svc", SVC())]),
            {"svc__C": COSTS[2:], "align__gamma": (1.0, 10.0, 30.0)},
        ),
    }
    for name in TABLES:
        tasks = partial(permuted_table, folder, name)
        yield from _table(name, tasks, methods, range(n_draws))


def objects(folder: Path, *, n_draws: int = 8) -> Iterator[str]:
    """Plane and dart, three views of each to learn from."""
    centered = ("center", SetNormalizer(scale=None))
    machine = PermutationInvariantSVC(template="mean")
    rbf = PermutationInvariantSVC(kernel="rbf", template="mean")
    methods = {
        "sorted, linear": Method(_sorted("linear"), {"svc__C": LARGE_COSTS}),
        "permutation-invariant, linear": Method(machine, {"C": LARGE_COSTS}),
        "centred, permutation-invariant, linear": Method(
            Pipeline([centered, ("svc", machine)]), {"svc__C": LARGE_COSTS}
        ),
        "centred, permutation-invariant, rbf": Method(
            Pipeline([centered, ("svc", rbf)]), {"svc__C": LARGE_COSTS}
        ),
    }
    tasks = partial(plane_dart, folder)
    yield from _table("plane and dart", tasks, methods, range(n_draws))


def _table(
    title: str,
    task_of: Callable[[int], Task],
    methods: Mapping[str, Method],
    seeds: range,
) -> Iterator[str]:
    for name, method in methods.items():
        scores = np.array([_score(task_of(seed), method) for seed in seeds])
        error = scores.std(ddof=1) / np.sqrt(len(scores))
        yield (
            f"{title}: {name} {100 * scores.mean():.1f} % (standard error {100 * error:.1f}, "
            f"{len(scores)} draws, worst {100 * scores.min():.1f})"
        )


def _score(task: Task, method: Method) -> float:
    few = np.unique(task.y_train, return_counts=True)[1].min() < 5
    folds = LeaveOneOut() if few else StratifiedKFold(5, shuffle=True, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        estimator = method.estimator
        if isinstance(estimator, Pipeline):
            estimator.set_params(memory=folder)  # sets are aligned once for all C
        search = GridSearchCV(estimator, method.grid, cv=folds).fit(task.train, task.y_train)
        return float(search.score(task.test, task.y_test))


def _sorted(kernel: str) -> Pipeline:
    return Pipeline(
        [
            ("sort", FunctionTransformer(_sorted_vectors)),
            ("scale", StandardScaler()),
            ("svc", SVC(kernel=kernel)),
        ]
    )


def _sorted_vectors(bags: Any) -> Any:
    """Points by their distance from the origin, as in the paper; single numbers by value."""
    ordered = []
    for bag in np.asarray(bags):
        keys = bag[:, 0] if bag.shape[1] == 1 else np.linalg.norm(bag, axis=1)
        ordered.append(bag[np.argsort(keys, kind="stable")].ravel())
    return np.array(ordered)


def _flat(bags: Any) -> Any:
    return np.asarray(bags).reshape(len(bags), -1)
