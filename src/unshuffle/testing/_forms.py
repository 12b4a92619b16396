"""Checks of the forms in which bags may come."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from unshuffle.testing._answers import answers, assert_same, require
from unshuffle.testing._cases import (
    WIDTH,
    Case,
    fitted_case,
    make_case,
    prepared,
    rows_as_bags,
)


def check_forms_of_input(estimator: Any, tol: float) -> None:
    """Lists, tuples, object arrays, nested lists and 3-D arrays of the same bags are alike."""
    case = make_case(estimator, ragged=False)
    expected = _answers_to(estimator, case, case.bags, case.new)
    forms: dict[str, Callable[[Any], Any]] = {
        "a tuple": tuple,
        "an array of objects": _object_array,
        "nested lists": lambda bags: [bag.tolist() for bag in bags],
        "a 3-D array": np.array,
    }
    for form, make in forms.items():
        found = _answers_to(estimator, case, make(case.bags), make(case.new))
        promise = f"bags in {form} must be taken like the same bags in a list"
        assert_same(found, expected, promise, tol)


def check_bags_of_one_point(estimator: Any, tol: float) -> None:
    """The rows of a 2-D array are bags of one point."""
    case = rows_as_bags(estimator)
    expected = _answers_to(estimator, case, case.bags, case.new)
    for form, make in (("2-D", np.concatenate), ("3-D", np.array)):
        found = _answers_to(estimator, case, make(case.bags), make(case.new))
        promise = f"the {form} array of these points must be taken as bags of one point"
        assert_same(found, expected, promise, tol)


def check_bags_of_different_sizes(estimator: Any, tol: float) -> None:
    """Bags of different sizes are accepted, or refused in words about sizes."""
    case = make_case(estimator, ragged=True)
    try:
        fitted = prepared(estimator).fit(case.bags, case.y)
    except ValueError as error:
        require(
            any(word in str(error).lower() for word in ("size", "points", "length")),
            "Bags of different sizes are refused without a word about sizes: the message is "
            f"{str(error)!r}. Say that bags must be of one size, or accept them.",
        )
        return
    answers(fitted, case.new, case.new_y)


def check_float32_and_integers(estimator: Any, tol: float) -> None:
    """Numbers of any kind are taken at their value."""
    _, case = fitted_case(estimator)
    for dtype in (np.float32, np.int64):
        narrow = case.with_points(partial(_rounded, dtype=dtype))
        wide = narrow.with_points(lambda bag: bag.astype(np.float64))
        expected = _answers_to(estimator, wide, wide.bags, wide.new)
        found = _answers_to(estimator, narrow, narrow.bags, narrow.new)
        promise = f"points of {np.dtype(dtype).name} must be taken like float64 of the same value"
        assert_same(found, expected, promise, tol)


def check_data_frames(estimator: Any, tol: float) -> None:
    """Tables with named columns are taken like arrays, and other names are refused."""
    try:
        import pandas as pd
    except ImportError as error:
        raise SkipTest("pandas is not installed") from error
    fitted, case = fitted_case(estimator)
    names = [f"column {i}" for i in range(WIDTH)]
    bags, new = (
        [pd.DataFrame(bag, columns=names) for bag in each] for each in (case.bags, case.new)
    )
    by_name = prepared(estimator).fit(bags, case.y)
    found = answers(by_name, new, case.new_y)
    promise = "data frames must be taken like the arrays they hold"
    assert_same(found, answers(fitted, case.new, case.new_y), promise, tol)
    kept = list(getattr(by_name, "feature_names_in_", ()))
    require(
        kept == names,
        f"`feature_names_in_` is {kept} after a fit to data frames with the columns {names}.",
    )
    renamed = [frame.rename(columns={names[0]: "other"}) for frame in new]
    for name in found.keys() - {"labels_", "score"}:
        try:
            getattr(by_name, name)(renamed)
        except ValueError:
            continue
        raise AssertionError(
            f"{name} accepts data frames with a column named 'other' after a fit to {names}: "
            "other names must be refused with a ValueError."
        )


def _answers_to(estimator: Any, case: Case, bags: Any, new: Any) -> dict[str, NDArray[Any]]:
    return answers(prepared(estimator).fit(bags, case.y), new, case.new_y)


def _rounded(bag: NDArray[np.float64], dtype: Any) -> NDArray[Any]:
    return (4 * bag).astype(dtype)


def _object_array(bags: list[NDArray[np.float64]]) -> NDArray[np.object_]:
    array = np.empty(len(bags), dtype=object)
    for i, bag in enumerate(bags):
        array[i] = bag
    return array
