"""Bags to try an estimator on, all that it says about them, and whether it said the same twice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor

Array = NDArray[np.float64]
Answers = dict[str, NDArray[Any]]

WIDTH = 3
SIZE = 8
# Of 18 bags to fit, six per fold and class remain for a threefold cross-validation.
N_BAGS, N_NEW = 18, 6
# One row of the answer for each bag.
PER_BAG = ("transform", "predict", "decision_function", "predict_proba")


@dataclass(frozen=True)
class Case:
    """Bags of two kinds, far apart, some of them kept back."""

    bags: Any  # list of arrays (n_i, WIDTH) to fit, in some checks in another form
    y: NDArray[Any]  # their kinds 0 and 1, or a number for each where a regressor is tried
    new: Any  # bags that come later
    new_y: NDArray[Any]

    def with_points(self, change: Callable[[Array], Any]) -> "Case":
        """The same bags, each changed in its points."""
        return self.with_lists(lambda bags: [change(bag) for bag in bags])

    def with_lists(self, change: Callable[[Any], Any]) -> "Case":
        """The same bags, both lists of them in another form."""
        return replace(self, bags=change(self.bags), new=change(self.new))


def make_case(estimator: Any, *, ragged: bool = False, n_kinds: int = 2, seed: int = 0) -> Case:
    """Bags of one size, or of `SIZE` points give or take two, with a target that suits."""
    rng = np.random.default_rng(seed)
    kinds = np.arange(N_BAGS + N_NEW) % n_kinds
    places = 3.0 * np.eye(WIDTH)[:n_kinds]
    sizes = SIZE + (np.arange(kinds.size) * 7 % 5 - 2 if ragged else np.zeros(kinds.size, int))
    bags = [
        places[kind] + rng.normal(size=(size, WIDTH)) * (1.0 + 0.3 * kind)
        for kind, size in zip(kinds, sizes, strict=True)
    ]
    y = np.array([bag.mean() for bag in bags]) if is_regressor(estimator) else kinds
    return Case(bags[:N_BAGS], y[:N_BAGS], bags[N_BAGS:], y[N_BAGS:])


def prepared(estimator: Any, **parameters: Any) -> Any:
    """Unfitted copy whose random numbers are fixed, with these parameters at every level."""
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


def fit_to(estimator: Any, case: Case, **parameters: Any) -> Any:
    """An unfitted copy with these parameters, fitted to the bags of a case."""
    return prepared(estimator, **parameters).fit(case.bags, case.y)


def fitted_case(estimator: Any, *, ragged: bool = True) -> tuple[Any, Case]:
    """The estimator fitted to bags of different sizes, or of one size if it refuses these."""
    case = make_case(estimator, ragged=ragged)
    try:
        return fit_to(estimator, case), case
    except ValueError:
        if not ragged:
            raise
        return fitted_case(estimator, ragged=False)


def shuffled(bags: Sequence[Array], seed: int = 0) -> list[Array]:
    """The same bags, their points in another order."""
    rng = np.random.default_rng(seed)
    return [bag[rng.permutation(len(bag))] for bag in bags]


def is_set_kernel(estimator: Any) -> bool:
    """Whether it gives Gram matrices: `kernel` is a method, not a parameter that names one."""
    return callable(getattr(type(estimator), "kernel", None))


def require(kept: bool, message: str) -> None:
    """Fail with this message unless a promise was kept, also under `python -O`."""
    if not kept:
        raise AssertionError(message)


def questions(estimator: Any) -> list[str]:
    """Methods that can be asked about new bags."""
    return [name for name in (*PER_BAG, "align") if hasattr(estimator, name)]


def refusal(
    ask: Callable[[], Any], name: str, what: str, kind: type[Exception] = ValueError
) -> str:
    """Message with which something is refused."""
    try:
        ask()
    except kind as error:
        return str(error)
    except Exception as error:
        raise AssertionError(
            f"{name} answers {what} with {type(error).__name__}: it must raise {kind.__name__} "
            f"with a message that says what is wrong. It said: {error}"
        ) from error
    raise AssertionError(f"{name} accepts {what}: it must raise {kind.__name__}.")


def answers(fitted: Any, case: Case) -> Answers:
    """What each method of a fitted estimator says about the new bags of a case."""
    found = answers_per_bag(fitted, case.new)
    if is_set_kernel(fitted):
        found["kernel"] = np.asarray(fitted.kernel(case.new))
    if hasattr(fitted, "score"):
        found["score"] = np.asarray(fitted.score(case.new, case.new_y))
    if hasattr(fitted, "labels_"):
        found["labels_"] = np.asarray(fitted.labels_)
    require(
        bool(found),
        f"{type(fitted).__name__} has none of the methods {', '.join(PER_BAG)}, nor `kernel` or "
        "`labels_`: there is nothing to check.",
    )
    return found


def told(estimator: Any, case: Case, **parameters: Any) -> Answers:
    """Answers of an estimator with these parameters, fitted to a case."""
    return answers(fit_to(estimator, case, **parameters), case)


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
