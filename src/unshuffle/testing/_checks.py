"""Checks of estimators under test."""

from collections.abc import Iterable, Mapping
from typing import Any


def check_estimator_instance(estimator: Any) -> None:
    """Refuse classes, and what cannot be fitted."""
    if isinstance(estimator, type):
        raise TypeError(
            f"`estimator` is the class {estimator.__name__}. Pass one made from it, such as "
            f"{estimator.__name__}()."
        )
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(
            f"`estimator` is a {type(estimator).__name__} without fit and get_params. Pass an "
            "estimator, such as one that inherits from sklearn.base.BaseEstimator."
        )


def check_expected_failures(given: Any, names: Iterable[str]) -> Mapping[str, str]:
    """Names of checks, each with the reason why it cannot hold."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            "`expected_failed_checks` must be a dict of names and reasons, got "
            f"{type(given).__name__}."
        )
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ValueError(
            f"`expected_failed_checks` names {unknown[0]!r}, which is no check. There are "
            f"{', '.join(names)}."
        )
    return given
