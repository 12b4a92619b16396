"""All that an estimator says about bags, and whether it said the same twice."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Answers = dict[str, NDArray[Any]]

# One row of the answer for each bag.
PER_BAG = ("transform", "predict", "decision_function", "predict_proba")


def require(kept: bool, message: str) -> None:
    """Fail with this message unless a promise was kept, also under `python -O`."""
    if not kept:
        raise AssertionError(message)


def answers(fitted: Any, bags: Any, y: Any = None) -> Answers:
    """What each method of a fitted estimator says about bags."""
    found = answers_per_bag(fitted, bags)
    if callable(getattr(type(fitted), "kernel", None)):
        found["kernel"] = np.asarray(fitted.kernel(bags))
    if y is not None and hasattr(fitted, "score"):
        found["score"] = np.asarray(fitted.score(bags, y))
    if hasattr(fitted, "labels_"):
        found["labels_"] = np.asarray(fitted.labels_)
    require(
        bool(found),
        f"{type(fitted).__name__} has none of the methods {', '.join(PER_BAG)}, nor `kernel` or "
        "`labels_`: there is nothing to check.",
    )
    return found


def answers_per_bag(fitted: Any, bags: Any) -> Answers:
    """What each method says that gives one row for each bag."""
    found = {
        name: as_rows(getattr(fitted, name)(bags)) for name in PER_BAG if hasattr(fitted, name)
    }
    for name, values in found.items():
        require(
            len(values) == len(bags),
            f"{name} gives {len(values)} rows for {len(bags)} bags: it must give one for each.",
        )
    return found


def as_rows(values: Any) -> NDArray[Any]:
    """One row for each bag; where the answer is a bag itself, one in which order has no part."""
    if not are_bags(values):
        return np.asarray(values)
    bags = [np.asarray(bag) for bag in values]
    if all(len(bag) == 1 for bag in bags):
        return np.concatenate(bags)
    return np.array([_description(bag) for bag in bags])


def are_bags(values: Any) -> bool:
    """Whether an answer holds a set of points for each bag, rather than a row of numbers."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.ndim == 3
    return len(values) > 0 and all(getattr(each, "ndim", 0) == 2 for each in values)


def _description(bag: NDArray[Any]) -> NDArray[np.float64]:
    """Size, range, mean and spread of the points."""
    middle = bag.mean(axis=0)
    spread = (bag - middle).T @ (bag - middle) / len(bag)
    return np.hstack([len(bag), bag.min(axis=0), bag.max(axis=0), middle, spread.ravel()])


def assert_same(found: Answers, expected: Answers, promise: str, tol: float) -> None:
    """Compare answers that must agree, and say which do not and by how much."""
    for name, values in expected.items():
        assert_close(found[name], values, name, promise, tol)


def assert_close(
    found: NDArray[Any], expected: NDArray[Any], name: str, promise: str, tol: float
) -> None:
    """Compare one answer: numbers to within `tol` of the largest, all else exactly."""
    require(
        found.shape == expected.shape,
        f"{name} has shape {found.shape} instead of {expected.shape}: {promise}.",
    )
    if not np.issubdtype(expected.dtype, np.floating):
        wrong = int(np.sum(found != expected))
        require(wrong == 0, f"{wrong} of {expected.size} values of {name} differ: {promise}.")
        return
    for values in (found, expected):
        n_bad = int(np.sum(~np.isfinite(values)))
        require(
            n_bad == 0,
            f"{n_bad} of {values.size} values of {name} are NaN or infinite; no point was.",
        )
    scale = float(np.abs(expected).max(initial=0.0)) or 1.0
    gap = float(np.abs(found - expected).max(initial=0.0)) / scale
    require(
        gap <= tol,
        f"{name} differs by {gap:.2g} of its largest value ({tol:.2g} is allowed): {promise}.",
    )
