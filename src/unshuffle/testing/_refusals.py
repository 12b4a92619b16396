"""Checks that bags without a meaning are refused in words that help."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from unshuffle.testing._answers import PER_BAG, require
from unshuffle.testing._cases import WIDTH, Array, make_case, prepared

_BAD = 2


def check_empty_bag_refused(estimator: Any, tol: float) -> None:
    """A bag without points is refused, and named."""
    _assert_bag_refused(estimator, np.empty((0, WIDTH)), "an empty bag")


def check_nan_refused(estimator: Any, tol: float) -> None:
    """A bag with NaN is refused, and named."""
    _assert_bag_refused(estimator, _spoilt(np.nan), "a bag with NaN")


def check_infinity_refused(estimator: Any, tol: float) -> None:
    """A bag with an infinite number is refused, and named."""
    _assert_bag_refused(estimator, _spoilt(np.inf), "a bag with infinity")


def check_widths_refused(estimator: Any, tol: float) -> None:
    """A bag whose points have other columns than those of the rest is refused, and named."""
    _assert_bag_refused(estimator, np.ones((5, WIDTH + 1)), "a bag of another width")


def check_text_refused(estimator: Any, tol: float) -> None:
    """A bag of words is refused, and named; so are words alone."""
    words = np.array([["a", "b", "c"]] * 4, dtype=object)
    _assert_bag_refused(estimator, words, "a bag of text")
    case = make_case(estimator, ragged=False)
    _refusal(lambda: prepared(estimator).fit("a bag", case.y), "fit", "a string")


def check_nothing_refused(estimator: Any, tol: float) -> None:
    """An empty list of bags is refused."""
    _refusal(lambda: prepared(estimator).fit([], np.empty(0)), "fit", "an empty list")
    case = make_case(estimator, ragged=False)
    fitted = prepared(estimator).fit(case.bags, case.y)
    for name in _methods(fitted):
        _refusal(partial(getattr(fitted, name), []), name, "an empty list")


def check_other_width_refused(estimator: Any, tol: float) -> None:
    """New bags of another width than the fitted ones are refused, and both widths told."""
    case = make_case(estimator, ragged=False)
    fitted = prepared(estimator).fit(case.bags, case.y)
    for width in (WIDTH - 1, WIDTH + 1):
        new = [np.ones((5, width)) * i for i in range(3)]
        what = f"bags of {width} columns after a fit to {WIDTH}"
        for name in _methods(fitted):
            message = _refusal(partial(getattr(fitted, name), new), name, what)
            told = set(re.findall(r"\d+", message))
            require(
                {str(width), str(WIDTH)} <= told,
                f"{name} refuses {what} without both numbers: the message is {message!r}.",
            )


def _methods(fitted: Any) -> list[str]:
    """What can be asked about new bags."""
    return [name for name in (*PER_BAG, "align") if hasattr(fitted, name)]


def _spoilt(value: float) -> Array:
    points = np.ones((5, WIDTH))
    points[3, 1] = value
    return points


def _assert_bag_refused(estimator: Any, bag: Any, what: str) -> None:
    """Refused by fit and by every question about new bags, in words that name the bag."""
    case = make_case(estimator, ragged=False)
    fitted = prepared(estimator).fit(case.bags, case.y)
    bags, new = list(case.bags), list(case.new)
    bags[_BAD] = new[_BAD] = bag
    questions = {name: partial(getattr(fitted, name), new) for name in _methods(fitted)}
    questions["fit"] = partial(prepared(estimator).fit, bags, case.y)
    for name, ask in questions.items():
        message = _refusal(ask, name, what)
        require(
            bool(re.search(rf"\bbag\W*{_BAD}\b", message, re.IGNORECASE)),
            f"{name} refuses {what} without saying which: the message {message!r} does not name "
            f"bag {_BAD}.",
        )


def _refusal(ask: Callable[[], Any], name: str, what: str) -> str:
    """Message with which something is refused."""
    try:
        ask()
    except ValueError as error:
        return str(error)
    except Exception as error:
        raise AssertionError(
            f"{name} answers {what} with {type(error).__name__}: it must raise ValueError with a "
            f"message that says what is wrong. It said: {error}"
        ) from error
    raise AssertionError(f"{name} accepts {what}: it must raise ValueError.")
