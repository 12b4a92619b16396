"""Checks of bags as they are given: their forms, their order, and what must be refused."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from unshuffle.testing._cases import (
    WIDTH,
    Array,
    Case,
    answers,
    answers_per_bag,
    assert_close,
    assert_same,
    fit_to,
    fitted_case,
    is_set_kernel,
    make_case,
    prepared,
    questions,
    refusal,
    require,
    shuffled,
    told,
)

_BAD = 2  # the bag that is spoilt


def check_fit_returns_itself(estimator: Any, tol: float) -> None:
    """`fit` returns the estimator and records the width of a point."""
    fresh = prepared(estimator)
    case = make_case(estimator)
    require(fresh.fit(case.bags, case.y) is fresh, "fit must return the estimator itself.")
    width = getattr(fresh, "n_features_in_", None)
    require(
        width == WIDTH, f"`n_features_in_` is {width} after a fit to points of {WIDTH} columns."
    )


def check_forms_of_input(estimator: Any, tol: float) -> None:
    """Lists, tuples, object arrays, nested lists and 3-D arrays of the same bags are alike."""
    case = make_case(estimator)
    expected = told(estimator, case)
    forms: dict[str, Callable[[Any], Any]] = {
        "a tuple": tuple,
        "an array of objects": _object_array,
        "nested lists": lambda bags: [bag.tolist() for bag in bags],
        "a 3-D array": np.array,
    }
    for form, make in forms.items():
        promise = f"bags in {form} must be taken like the same bags in a list"
        assert_same(told(estimator, case.with_lists(make)), expected, promise, tol)


def check_bags_of_one_point(estimator: Any, tol: float) -> None:
    """The rows of a 2-D array are bags of one point."""
    case = make_case(estimator).with_points(lambda bag: bag[:1])
    expected = told(estimator, case)
    for form, make in (("2-D", np.concatenate), ("3-D", np.array)):
        promise = f"the {form} array of these points must be taken as bags of one point"
        assert_same(told(estimator, case.with_lists(make)), expected, promise, tol)


def check_bags_of_different_sizes(estimator: Any, tol: float) -> None:
    """Bags of different sizes are accepted, or refused in words about sizes."""
    case = make_case(estimator, ragged=True)
    try:
        fitted = fit_to(estimator, case)
    except ValueError as error:
        require(
            any(word in str(error).lower() for word in ("size", "points", "length")),
            "Bags of different sizes are refused without a word about sizes: the message is "
            f"{str(error)!r}. Say that bags must be of one size, or accept them.",
        )
        return
    answers(fitted, case)


def check_float32_and_integers(estimator: Any, tol: float) -> None:
    """Numbers of any kind are taken at their value."""
    _, case = fitted_case(estimator)
    for dtype in (np.float32, np.int64):
        narrow = case.with_points(partial(_rounded, dtype=dtype))
        wide = narrow.with_points(lambda bag: bag.astype(np.float64))
        promise = f"points of {np.dtype(dtype).name} must be taken like float64 of the same value"
        assert_same(told(estimator, narrow), told(estimator, wide), promise, tol)


def check_data_frames(estimator: Any, tol: float) -> None:
    """Tables with named columns are taken like arrays, and other names are refused."""
    try:
        import pandas as pd
    except ImportError as error:
        raise SkipTest("pandas is not installed") from error
    fitted, case = fitted_case(estimator)
    names = [f"column {i}" for i in range(WIDTH)]
    frames = case.with_points(partial(pd.DataFrame, columns=names))
    by_name = fit_to(estimator, frames)
    found = answers(by_name, frames)
    promise = "data frames must be taken like the arrays they hold"
    assert_same(found, answers(fitted, case), promise, tol)
    kept = list(getattr(by_name, "feature_names_in_", ()))
    require(
        kept == names,
        f"`feature_names_in_` is {kept} after a fit to data frames with the columns {names}.",
    )
    renamed = [frame.rename(columns={names[0]: "other"}) for frame in frames.new]
    what = f"data frames with a column named 'other' after a fit to {names}"
    for name in found.keys() - {"labels_", "score"}:
        refusal(partial(getattr(by_name, name), renamed), name, what)


def check_order_inside_bags(estimator: Any, tol: float) -> None:
    """Reordering the points of any bag, fitted or new, changes no answer."""
    fitted, case = fitted_case(estimator)
    _assert_order_free(estimator, fitted, case, tol)


def check_order_of_equal_points(estimator: Any, tol: float) -> None:
    """The same where points are equal, or equally far from each other."""
    _, case = fitted_case(estimator)
    coarse = case.with_points(lambda bag: 2 * np.round(bag / 2))
    _assert_order_free(estimator, fit_to(estimator, coarse), coarse, tol)


def check_order_of_bags(estimator: Any, tol: float) -> None:
    """Reordering new bags reorders the answers about them."""
    fitted, case = fitted_case(estimator)
    order = np.random.default_rng(0).permutation(len(case.new))
    expected = {name: rows[order] for name, rows in answers_per_bag(fitted, case.new).items()}
    found = answers_per_bag(fitted, [case.new[i] for i in order])
    assert_same(found, expected, "new bags in another order must get the same rows", tol)


def check_bags_one_by_one(estimator: Any, tol: float) -> None:
    """What is said of a new bag does not depend on the bags beside it."""
    fitted, case = fitted_case(estimator)
    together = answers_per_bag(fitted, case.new)
    alone = [answers_per_bag(fitted, [bag]) for bag in case.new]
    promise = "a new bag must get the same answer alone as among others"
    for name, expected in together.items():
        found = np.concatenate([each[name] for each in alone])
        assert_close(found, expected, name, promise, tol)
    if is_set_kernel(estimator):
        expected = fitted.kernel(case.new, case.bags)
        found = np.concatenate([fitted.kernel([bag], case.bags) for bag in case.new])
        assert_close(found, expected, "kernel", promise, tol)


def check_alignment(estimator: Any, tol: float) -> None:
    """Where `align` puts the points of a new bag does not depend on their order."""
    fitted, case = fitted_case(estimator)
    mixed = shuffled(case.new)
    orders, others = np.asarray(fitted.align(case.new)), np.asarray(fitted.align(mixed))
    require(
        len(orders) == len(case.new),
        f"align gives {len(orders)} rows for {len(case.new)} bags: it must give one for each.",
    )
    promise = "the points of a new bag must take the same slots in whatever order they come"
    for i in range(len(case.new)):
        order, size = orders[i], len(case.new[i])
        require(
            order.dtype.kind in "iu" and order.min() >= -1 and order.max() < size,
            f"align gives {order.min()} to {order.max()} ({order.dtype}) for bag {i} of {size} "
            "points, where indices of points are asked for, and -1 for an empty slot.",
        )
        found, expected = _placed(mixed[i], others[i]), _placed(case.new[i], orders[i])
        assert_close(found, expected, f"align (bag {i})", promise, tol)


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
    case = make_case(estimator)
    refusal(lambda: prepared(estimator).fit("a bag", case.y), "fit", "a string")


def check_nothing_refused(estimator: Any, tol: float) -> None:
    """An empty list of bags is refused."""
    refusal(lambda: prepared(estimator).fit([], np.empty(0)), "fit", "an empty list")
    fitted, _ = fitted_case(estimator, ragged=False)
    for name in questions(fitted):
        refusal(partial(getattr(fitted, name), []), name, "an empty list")


def check_other_width_refused(estimator: Any, tol: float) -> None:
    """New bags of another width than the fitted ones are refused, and both widths told."""
    fitted, _ = fitted_case(estimator, ragged=False)
    for width in (WIDTH - 1, WIDTH + 1):
        new = [np.ones((5, width)) * i for i in range(3)]
        what = f"bags of {width} columns after a fit to {WIDTH}"
        for name in questions(fitted):
            message = refusal(partial(getattr(fitted, name), new), name, what)
            told = set(re.findall(r"\d+", message))
            require(
                {str(width), str(WIDTH)} <= told,
                f"{name} refuses {what} without both numbers: the message is {message!r}.",
            )


def _rounded(bag: Array, dtype: Any) -> NDArray[Any]:
    return (4 * bag).astype(dtype)


def _object_array(bags: list[Array]) -> NDArray[np.object_]:
    return np.fromiter(bags, dtype=object, count=len(bags))


def _assert_order_free(estimator: Any, fitted: Any, case: Case, tol: float) -> None:
    expected = answers(fitted, case)
    found = answers(fitted, replace(case, new=shuffled(case.new)))
    promise = "the order of points inside new bags must not matter"
    assert_same(found, expected, promise, tol)
    again = fit_to(estimator, replace(case, bags=shuffled(case.bags, seed=1)))
    promise = "the order of points inside the fitted bags must not matter"
    assert_same(answers(again, case), expected, promise, tol)


def _placed(bag: Any, order: Any) -> Any:
    """Points in their slots, zero where a slot is empty."""
    return np.where((order >= 0)[:, np.newaxis], bag[order], 0.0)


def _spoilt(value: float) -> Array:
    points = np.ones((5, WIDTH))
    points[3, 1] = value
    return points


def _assert_bag_refused(estimator: Any, bag: Any, what: str) -> None:
    """Refused by fit and by every question about new bags, in words that name the bag."""
    fitted, case = fitted_case(estimator, ragged=False)
    bad = case.with_lists(lambda bags: [*bags[:_BAD], bag, *bags[_BAD + 1 :]])
    asked = {name: partial(getattr(fitted, name), bad.new) for name in questions(fitted)}
    asked["fit"] = partial(fit_to, estimator, bad)
    for name, ask in asked.items():
        message = refusal(ask, name, what)
        require(
            bool(re.search(rf"\bbag\W*{_BAD}\b", message, re.IGNORECASE)),
            f"{name} refuses {what} without saying which: the message {message!r} does not name "
            f"bag {_BAD}.",
        )
