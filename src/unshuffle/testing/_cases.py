"""Sample bags, the outputs of an estimator for them, and comparisons between outputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor

from unshuffle._run.types import Floats

Outputs = dict[str, NDArray[Any]]

WIDTH = 3
SIZE = 8
# With 18 bags and two classes, threefold cross-validation trains on six bags of each class.
N_BAGS, N_NEW = 18, 6
# Methods that return one row for each bag.
PER_BAG = ("transform", "predict", "decision_function", "predict_proba")


@dataclass(frozen=True)
class Case:
    """Bags of well separated classes, some of them held out."""

    bags: Any  # list of arrays (n_i, WIDTH) to fit, in some checks in another form
    y: NDArray[Any]  # their classes 0, 1, ..., or real numbers for a regressor
    new: Any  # held-out bags
    new_y: NDArray[Any]  # targets of the held-out bags

    def with_points(self, change: Callable[[Floats], Any]) -> "Case":
        """Apply a function to each bag."""
        return self.with_lists(lambda bags: [change(bag) for bag in bags])

    def with_lists(self, change: Callable[[Any], Any]) -> "Case":
        """Apply a function to each list of bags."""
        return replace(self, bags=change(self.bags), new=change(self.new))


def make_case(estimator: Any, *, ragged: bool = False, n_classes: int = 2, seed: int = 0) -> Case:
    """Bags of `SIZE` points (plus or minus two if ragged), and targets for the estimator."""
    rng = np.random.default_rng(seed)
    classes = np.arange(N_BAGS + N_NEW) % n_classes
    centers = 3.0 * np.eye(WIDTH)[:n_classes]
    sizes = SIZE + (np.arange(classes.size) * 7 % 5 - 2 if ragged else np.zeros(classes.size, int))
    bags = [
        centers[label] + rng.normal(size=(size, WIDTH)) * (1.0 + 0.3 * label)
        for label, size in zip(classes, sizes, strict=True)
    ]
    y = np.array([bag.mean() for bag in bags]) if is_regressor(estimator) else classes
    return Case(bags[:N_BAGS], y[:N_BAGS], bags[N_BAGS:], y[N_BAGS:])


def seeded_copy(estimator: Any, **parameters: Any) -> Any:
    """Unfitted copy with a fixed random_state and these parameters, nested ones included."""
    fresh = clone(estimator)
    wanted = {"random_state": 0, **parameters}
    fresh.set_params(
        **{
            name: wanted[last]
            for name, value in fresh.get_params(deep=True).items()
            if (last := name.rsplit("__", 1)[-1]) in wanted
            and (last != "random_state" or value is None)
        }
    )
    return fresh


def fit_copy(estimator: Any, case: Case, **parameters: Any) -> Any:
    """Fit a copy with these parameters to the bags of a case."""
    return seeded_copy(estimator, **parameters).fit(case.bags, case.y)


def fit_case(estimator: Any, *, ragged: bool = True) -> tuple[Any, Case]:
    """Fit a copy to bags of different sizes, or of one size if it refuses the former."""
    case = make_case(estimator, ragged=ragged)
    try:
        return fit_copy(estimator, case), case
    except ValueError:
        if not ragged:
            raise
        return fit_case(estimator, ragged=False)


def shuffle_points(bags: Sequence[Floats], seed: int = 0) -> list[Floats]:
    """Shuffle the points inside each bag."""
    rng = np.random.default_rng(seed)
    return [bag[rng.permutation(len(bag))] for bag in bags]


def is_set_kernel(estimator: Any) -> bool:
    """Whether the estimator has a method `gram` that returns Gram matrices."""
    return callable(getattr(type(estimator), "gram", None))


def require(condition: bool, message: str) -> None:
    """Raise AssertionError unless the condition holds, also under `python -O`."""
    if not condition:
        raise AssertionError(message)


def list_output_methods(estimator: Any) -> list[str]:
    """Methods of the estimator that take new bags."""
    return [name for name in (*PER_BAG, "align") if hasattr(estimator, name)]


def catch_error(
    call: Callable[[], Any], name: str, what: str, kind: type[Exception] = ValueError
) -> str:
    """Call a function that must raise, and return the error message."""
    try:
        call()
    except kind as error:
        return str(error)
    except Exception as error:
        raise AssertionError(
            f"{name} raises {type(error).__name__} for {what}: it must raise {kind.__name__} with "
            f"a message that says what is wrong. The message was: {error}"
        ) from error
    raise AssertionError(f"{name} accepts {what}: it must raise {kind.__name__}.")


def compute_outputs(fitted: Any, case: Case) -> Outputs:
    """Outputs of all methods of a fitted estimator for the held-out bags of a case."""
    found = compute_bag_outputs(fitted, case.new)
    if is_set_kernel(fitted):
        found["gram"] = np.asarray(fitted.gram(case.new))
    if hasattr(fitted, "score"):
        found["score"] = np.asarray(fitted.score(case.new, case.new_y))
    if hasattr(fitted, "labels_"):
        found["labels_"] = np.asarray(fitted.labels_)
    require(
        bool(found),
        f"{type(fitted).__name__} has none of the methods {', '.join(PER_BAG)}, `gram` or "
        "`labels_`, so there is nothing to check.",
    )
    return found


def fit_outputs(estimator: Any, case: Case, **parameters: Any) -> Outputs:
    """Fit a copy with these parameters and return its outputs."""
    return compute_outputs(fit_copy(estimator, case, **parameters), case)


def compute_bag_outputs(fitted: Any, bags: Any) -> Outputs:
    """Outputs of the methods that return one row for each bag."""
    found = {
        name: to_rows(getattr(fitted, name)(bags)) for name in PER_BAG if hasattr(fitted, name)
    }
    for name, values in found.items():
        require(
            len(values) == len(bags),
            f"{name} returns {len(values)} rows for {len(bags)} bags: it must return one per bag.",
        )
    return found


def to_rows(values: Any) -> NDArray[Any]:
    """One row for each bag; a bag of several points is summarized regardless of their order."""
    if not are_bags(values):
        return np.asarray(values)
    bags = [np.asarray(bag) for bag in values]
    if all(len(bag) == 1 for bag in bags):
        return np.concatenate(bags)
    return np.array([_summarize(bag) for bag in bags])


def are_bags(values: Any) -> bool:
    """Whether the values are bags of points rather than rows of numbers."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.ndim == 3
    return len(values) > 0 and all(getattr(each, "ndim", 0) == 2 for each in values)


def _summarize(bag: NDArray[Any]) -> NDArray[np.float64]:
    """Size, range, mean and spread of the points."""
    middle = bag.mean(axis=0)
    spread = (bag - middle).T @ (bag - middle) / len(bag)
    return np.hstack([len(bag), bag.min(axis=0), bag.max(axis=0), middle, spread.ravel()])


def assert_same(found: Outputs, expected: Outputs, promise: str, tol: float) -> None:
    """Require that outputs agree; the message names the method and the difference."""
    for name, values in expected.items():
        assert_close(found[name], values, name, promise, tol)


def assert_close(
    found: NDArray[Any], expected: NDArray[Any], name: str, promise: str, tol: float
) -> None:
    """Require that one output agrees: floats to within `tol` of the largest, others exactly."""
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
            f"{n_bad} of {values.size} values of {name} are NaN or infinite, but no point was.",
        )
    scale = float(np.abs(expected).max(initial=0.0)) or 1.0
    gap = float(np.abs(found - expected).max(initial=0.0)) / scale
    require(
        gap <= tol,
        f"{name} differs by {gap:.2g} of its largest value ({tol:.2g} is allowed): {promise}.",
    )
