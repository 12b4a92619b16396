"""`check_bag_estimator`, which runs all checks, and the same checks as pytest tests."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import SkipTest

from sklearn.base import is_classifier

from unshuffle._core.parameters import check_option, check_real
from unshuffle.testing import _fitting_checks, _input_checks
from unshuffle.testing._cases import is_set_kernel

Check = Callable[[Any, float], None]


def _has(*names: str) -> Callable[[Any], bool]:
    """Whether an estimator has one of several methods."""
    return lambda estimator: any(hasattr(estimator, name) for name in names)


def _has_jobs(estimator: Any) -> bool:
    names = estimator.get_params(deep=True)
    return any(name.rsplit("__", 1)[-1] == "n_jobs" for name in names)


_CHECKS: tuple[Check, ...] = tuple(
    check
    for module in (_input_checks, _fitting_checks)
    for name, check in vars(module).items()
    if name.startswith("check_")
)
# Checks that apply to some estimators only.
_ONLY_FOR: dict[Check, Callable[[Any], bool]] = {
    _input_checks.check_alignment: _has("align"),
    _fitting_checks.check_n_jobs: _has_jobs,
    _fitting_checks.check_fit_transform: _has("transform"),
    _fitting_checks.check_cross_validation: _has("score", "transform"),
    _fitting_checks.check_gram_matrix: is_set_kernel,
    _fitting_checks.check_classes_separated: is_classifier,
    _fitting_checks.check_decision_values: is_classifier,
    _fitting_checks.check_one_class_refused: is_classifier,
    _fitting_checks.check_label_count_refused: is_classifier,
}
_NAMES = tuple(check.__name__ for check in _CHECKS)


@dataclass(frozen=True)
class BagCheckResult:
    """Result of one check.

    Attributes
    ----------
    name : str
        Name of the check, such as "check_order_inside_bags".
    status : {"passed", "failed", "expected to fail", "skipped"}
        Outcome of the check.
    error : Exception or None
        Why the check failed or was skipped. The message states the requirement and the
        difference.

    Examples
    --------
    >>> from unshuffle import SetAligner
    >>> from unshuffle.testing import check_bag_estimator
    >>> results = check_bag_estimator(SetAligner())
    >>> {result.status for result in results}
    {'passed'}
    """

    name: str
    status: str
    error: Exception | None = None


def check_bag_estimator(
    estimator: Any,
    *,
    tol: float = 1e-6,
    expected_failed_checks: Mapping[str, str] | None = None,
    on_fail: str = "raise",
) -> list[BagCheckResult]:
    """Check that an estimator of bags fulfills the contract of such estimators.

    The counterpart of scikit-learn's `check_estimator` for estimators whose samples are bags of
    points. The requirements are:

    - Outputs depend neither on the order of points inside a bag nor on the other new bags.
    - Bags may be lists, tuples, object arrays, 3-D arrays, data frames, or the rows of a table
      (bags of one point). Different sizes are accepted, or raise a clear error.
    - Bags that are empty, have another number of columns, or hold NaN, infinity or text raise a
      ValueError that names the bag.
    - Arguments and parameters are not changed. Outputs depend on `random_state`, not on `n_jobs`.
      Clones, pickles, pipelines, cross-validation and grid searches work.
    - Gram matrices are positive semi-definite. Classifiers accept any labels but a single class,
      and predict as their decision values say. `align` does not depend on the order of points.

    Parameters
    ----------
    estimator : estimator
        Unfitted estimator; it is cloned, not changed. A classifier, regressor, clusterer, kernel
        or transformer (to rows of numbers or to bags) with `fit(bags, y)`; it may ignore `y`.
    tol : float, default=1e-6
        Largest allowed difference between outputs that must agree, relative to the largest
        value. Larger values are more lenient.
    expected_failed_checks : dict or None, default=None
        Names of checks that are expected to fail, each with the reason.
    on_fail : {"raise", "collect"}, default="raise"
        Whether to raise the first failure, or to return all of them.

    Returns
    -------
    results : list of BagCheckResult
        One for each check that applies to the estimator, in order.

    See Also
    --------
    parametrize_with_bag_checks : The same checks as separate pytest tests.

    Notes
    -----
    Each check fits two to six copies of the estimator to 18 bags of about eight points with three
    columns. A `UserWarning`, such as `ConvergenceWarning`, is ignored; a `RuntimeWarning` is not.

    Examples
    --------
    >>> from unshuffle import MinimumVolumePCA
    >>> from unshuffle.testing import check_bag_estimator
    >>> results = check_bag_estimator(MinimumVolumePCA(2))
    >>> {result.status for result in results}
    {'passed'}
    """
    tol = check_real(tol, "tol", least=0)
    check_option(on_fail, "on_fail", ("raise", "collect"))
    expected = _check_expected(expected_failed_checks)
    return [
        _result(check, estimator, tol, check.__name__ in expected, on_fail)
        for check in _checks_for(estimator)
    ]


def parametrize_with_bag_checks(
    estimators: Iterable[Any],
    *,
    tol: float = 1e-6,
    expected_failed_checks: Callable[[Any], Mapping[str, str]] | None = None,
) -> Any:
    """Pytest decorator that runs each check of each estimator as a separate test.

    Parameters
    ----------
    estimators : list of estimators
        Unfitted estimators.
    tol : float, default=1e-6
        Largest allowed difference between outputs that must agree, relative to the largest
        value. Larger values are more lenient.
    expected_failed_checks : callable or None, default=None
        Takes an estimator and returns a dict of checks that are expected to fail, each with the
        reason. Their tests are marked as strict xfail.

    Returns
    -------
    decorator : pytest.MarkDecorator
        Decorator for a test with the arguments `estimator` and `check`.

    See Also
    --------
    check_bag_estimator : Runs all checks at once, and lists the requirements.

    Examples
    --------
    >>> from unshuffle import MinimumVolumePCA
    >>> from unshuffle.testing import parametrize_with_bag_checks
    >>> @parametrize_with_bag_checks([MinimumVolumePCA(2)])
    ... def test_bag_checks(estimator, check):
    ...     check(estimator)
    """
    try:
        import pytest
    except ImportError as error:
        raise ImportError(
            "parametrize_with_bag_checks needs pytest: pip install 'unshuffle[test]'"
        ) from error
    tol = check_real(tol, "tol", least=0)
    cases = []
    for estimator in estimators:
        given = None if expected_failed_checks is None else expected_failed_checks(estimator)
        expected = _check_expected(given)
        for check in _checks_for(estimator):
            reason = expected.get(check.__name__)
            marks = () if reason is None else (pytest.mark.xfail(reason=reason, strict=True),)
            name = re.sub(r"\s+", "", str(estimator))
            quiet = partial(_run_quietly, check, tol=tol)
            cases.append(
                pytest.param(estimator, quiet, id=f"{name}-{check.__name__}", marks=marks)
            )
    return pytest.mark.parametrize(("estimator", "check"), cases)


def _checks_for(estimator: Any) -> list[Check]:
    _check_instance(estimator)
    return [check for check in _CHECKS if check not in _ONLY_FOR or _ONLY_FOR[check](estimator)]


def _run_quietly(check: Check, estimator: Any, tol: float) -> None:
    """Run a check, ignoring warnings about its sample data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator, tol)


def _result(
    check: Check, estimator: Any, tol: float, expected: bool, on_fail: str
) -> BagCheckResult:
    name = check.__name__
    try:
        _run_quietly(check, estimator, tol)
    except SkipTest as error:
        return BagCheckResult(name, "skipped", error)
    except Exception as error:
        if expected:
            return BagCheckResult(name, "expected to fail", error)
        if on_fail == "raise":
            error.add_note(f"{type(estimator).__name__} fails {name}.")
            raise
        return BagCheckResult(name, "failed", error)
    return BagCheckResult(name, "passed")


def _check_instance(estimator: Any) -> None:
    """Raise TypeError for a class, or for an object without `fit` and `get_params`."""
    if isinstance(estimator, type):
        raise TypeError(
            f"`estimator` is the class {estimator.__name__}. Pass an instance, such as "
            f"{estimator.__name__}()."
        )
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(
            f"`estimator` is a {type(estimator).__name__} without fit and get_params. Pass an "
            "estimator, such as one that inherits from sklearn.base.BaseEstimator."
        )


def _check_expected(given: Any) -> Mapping[str, str]:
    """Dict of check names and reasons."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            "`expected_failed_checks` must be a dict of names and reasons, got "
            f"{type(given).__name__}."
        )
    unknown = sorted(set(given) - set(_NAMES))
    if unknown:
        raise ValueError(
            f"`expected_failed_checks` names {unknown[0]!r}, which is not a known check. Use "
            f"one of {', '.join(_NAMES)}."
        )
    return given
