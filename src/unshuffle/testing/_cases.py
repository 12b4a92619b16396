"""Bags to try an estimator on, and the estimator fitted to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor

Array = NDArray[np.float64]

WIDTH = 3
SIZE = 8
# Of 18 bags to fit, six per fold and class remain for a threefold cross-validation.
N_BAGS, N_NEW = 18, 6


@dataclass(frozen=True)
class Case:
    """Bags of two kinds, far apart, some of them kept back.

    Attributes
    ----------
    bags, new : list of ndarray of shape (n_i, WIDTH)
        Bags to fit and bags that come later.
    y, new_y : ndarray
        Their kinds 0 and 1, or a number for each where a regressor is tried.
    """

    bags: list[Array]
    y: NDArray[Any]
    new: list[Array]
    new_y: NDArray[Any]

    def with_points(self, change: Callable[[Array], Any]) -> "Case":
        """The same bags, each changed in its points."""
        return replace(
            self,
            bags=[change(bag) for bag in self.bags],
            new=[change(bag) for bag in self.new],
        )


def make_case(estimator: Any, *, ragged: bool, n_kinds: int = 2, seed: int = 0) -> Case:
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


def rows_as_bags(estimator: Any) -> Case:
    """Bags of one point."""
    return make_case(estimator, ragged=False).with_points(lambda bag: bag[:1])


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


def fitted_case(estimator: Any) -> tuple[Any, Case]:
    """The estimator fitted to bags of different sizes, or of one size if it refuses these."""
    case = make_case(estimator, ragged=True)
    try:
        return prepared(estimator).fit(case.bags, case.y), case
    except ValueError:
        case = make_case(estimator, ragged=False)
        return prepared(estimator).fit(case.bags, case.y), case


def shuffled(bags: Sequence[Array], seed: int = 0) -> list[Array]:
    """The same bags, their points in another order."""
    rng = np.random.default_rng(seed)
    return [bag[rng.permutation(len(bag))] for bag in bags]


def is_set_kernel(estimator: Any) -> bool:
    """Whether it gives Gram matrices: `kernel` is a method, not a parameter that names one."""
    return callable(getattr(type(estimator), "kernel", None))


def is_transformer(estimator: Any) -> bool:
    """Whether it turns bags into rows of numbers."""
    return hasattr(estimator, "transform")


def learns_kinds(estimator: Any) -> bool:
    """Whether it predicts classes."""
    return bool(is_classifier(estimator))
