"""All checks of an estimator of bags, in a row or as tests."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import SkipTest

from sklearn.base import is_classifier

from unshuffle._parameters import check_option, check_real
from unshuffle.testing import _input, _learned
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
    for module in (_input, _learned)
    for name, check in vars(module).items()
    if name.startswith("check_")
)
# Which estimators a check is for, where it is not for all.
_ONLY_FOR: dict[Check, Callable[[Any], bool]] = {
    _input.check_alignment: _has("align"),
    _learned.check_n_jobs: _has_jobs,
    _learned.check_fit_transform: _has("transform"),
    _learned.check_cross_validation: _has("score", "transform"),
    _learned.check_gram_matrix: is_set_kernel,
    _learned.check_kinds_told_apart: is_classifier,
    _learned.check_decisions: is_classifier,
    _learned.check_one_class_refused: is_classifier,
    _learned.check_number_of_labels: is_classifier,
}
_NAMES = tuple(check.__name__ for check in _CHECKS)


@dataclass(frozen=True)
class BagCheckResult:
    """How one check of an estimator went.

    Attributes
    ----------
    name : str
        Name of the check, such as "check_order_inside_bags".
    status : {"passed", "failed", "expected to fail", "skipped"}
        What came of it.
    error : Exception or None
        Why it failed or was skipped; the message says which promise was broken, and by how much.

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
    """Check that an estimator of bags keeps what such estimators promise.

    The counterpart of scikit-learn's `check_estimator`, for estimators whose samples are sets of
    points. These are the promises:

    - The order of points inside a bag changes no answer, and what is said of a new bag does not
      depend on the bags beside it.
    - Bags come as lists, tuples, object arrays, 3-D arrays, data frames, or as the rows of a table
      (bags of one point). Different sizes are accepted, or refused in plain words.
    - Bags that are empty, of another width, or hold NaN, infinity or text are refused with a
      ValueError that names the bag.
    - Arguments and parameters stay as they were. The same `random_state` gives the same, whatever
      `n_jobs`. Clones, pickles, pipelines, cross-validation and grid searches work.
    - Gram matrices are positive semi-definite; classifiers take any labels, refuse a single class
      and agree with their decision values; `align` puts points where their order has no say.

    Parameters
    ----------
    estimator : estimator
        Not fitted; it is cloned and stays so. A classifier, regressor, clusterer, kernel or
        transformer (to rows of numbers, or to other bags) whose `fit` takes bags and a target,
        which it may ignore.
    tol : float, default=1e-6
        Largest difference between answers that must be the same, as a share of their largest
        value. A larger one forgives more.
    expected_failed_checks : dict or None, default=None
        Names of checks that cannot hold for this estimator, each with the reason.
    on_fail : {"raise", "collect"}, default="raise"
        Whether the first failure is raised, or all are returned.

    Returns
    -------
    results : list of BagCheckResult
        One for each check that applies to the estimator, in the order they ran.

    See Also
    --------
    parametrize_with_bag_checks : the same as separate tests for pytest.

    Notes
    -----
    Each check fits two to six copies of the estimator to 18 bags of about eight points with three
    columns. Warnings such as `ConvergenceWarning` are left out, those about arithmetic
    (`RuntimeWarning`) are not.

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
    """Make a test of each check of each estimator, as a decorator for pytest.

    Parameters
    ----------
    estimators : list of estimators
        Not fitted.
    tol : float, default=1e-6
        Largest difference between answers that must be the same, as a share of their largest
        value. A larger one forgives more.
    expected_failed_checks : callable or None, default=None
        Takes an estimator and gives a dict with the names of checks that cannot hold for it, each
        with the reason. Their tests are expected to fail, and fail if they do not.

    Returns
    -------
    decorator : pytest.MarkDecorator
        For a test with the arguments `estimator` and `check`.

    See Also
    --------
    check_bag_estimator : all checks at once, and what they are.

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
            "Tests of estimators need pytest: pip install 'unshuffle[test]'"
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
            quiet = partial(_quietly, check, tol=tol)
            cases.append(
                pytest.param(estimator, quiet, id=f"{name}-{check.__name__}", marks=marks)
            )
    return pytest.mark.parametrize(("estimator", "check"), cases)


def _checks_for(estimator: Any) -> list[Check]:
    _check_instance(estimator)
    return [check for check in _CHECKS if check not in _ONLY_FOR or _ONLY_FOR[check](estimator)]


def _quietly(check: Check, estimator: Any, tol: float) -> None:
    """Run a check without warnings that are about the data it makes up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator, tol)


def _result(
    check: Check, estimator: Any, tol: float, expected: bool, on_fail: str
) -> BagCheckResult:
    name = check.__name__
    try:
        _quietly(check, estimator, tol)
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


def _check_expected(given: Any) -> Mapping[str, str]:
    """Names of checks, each with the reason why it cannot hold."""
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
            f"`expected_failed_checks` names {unknown[0]!r}, which is no check. There are "
            f"{', '.join(_NAMES)}."
        )
    return given
