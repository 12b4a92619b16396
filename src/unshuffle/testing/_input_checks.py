"""Checks of the input: containers, dtypes, the order of points and bags, and bad input."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import SkipTest

import numpy as np

from unshuffle._run.types import Floats
from unshuffle.testing._cases import (
    WIDTH,
    Case,
    assert_close,
    assert_same,
    catch_error,
    compute_bag_outputs,
    compute_outputs,
    fit_case,
    fit_copy,
    fit_outputs,
    is_set_kernel,
    list_output_methods,
    make_case,
    require,
    seeded_copy,
    shuffle_points,
)

_BAD = 2  # index of the bad bag


def check_fit_returns_self(estimator: Any, tol: float) -> None:
    """`fit` returns the estimator and records the number of columns."""
    fresh = seeded_copy(estimator)
    case = make_case(estimator)
    require(fresh.fit(case.bags, case.y) is fresh, "fit must return the estimator itself.")
    width = getattr(fresh, "n_features_in_", None)
    require(
        width == WIDTH, f"`n_features_in_` is {width} after fitting points with {WIDTH} columns."
    )


def check_input_containers(estimator: Any, tol: float) -> None:
    """Lists, tuples, object arrays, nested lists and 3-D arrays give the same outputs."""
    case = make_case(estimator)
    expected = fit_outputs(estimator, case)
    containers: dict[str, Callable[[Any], Any]] = {
        "a tuple": tuple,
        "an array of objects": lambda bags: np.fromiter(bags, dtype=object),
        "nested lists": lambda bags: [bag.tolist() for bag in bags],
        "a 3-D array": np.array,
    }
    for container, make in containers.items():
        promise = f"bags in {container} must give the same outputs as in a list"
        assert_same(fit_outputs(estimator, case.with_lists(make)), expected, promise, tol)


def check_bags_of_one_point(estimator: Any, tol: float) -> None:
    """The rows of a 2-D array are bags of one point."""
    case = make_case(estimator).with_points(lambda bag: bag[:1])
    expected = fit_outputs(estimator, case)
    for form, make in (("2-D", np.concatenate), ("3-D", np.array)):
        promise = f"a {form} array of single points must be treated as bags of one point"
        assert_same(fit_outputs(estimator, case.with_lists(make)), expected, promise, tol)


def check_bags_of_different_sizes(estimator: Any, tol: float) -> None:
    """Bags of different sizes are accepted, or raise an error that mentions sizes."""
    case = make_case(estimator, ragged=True)
    try:
        fitted = fit_copy(estimator, case)
    except ValueError as error:
        require(
            any(word in str(error).lower() for word in ("size", "points", "length")),
            f"The error for bags of different sizes does not mention sizes: {str(error)!r}. Say "
            "that bags must have the same size, or accept them.",
        )
        return
    compute_outputs(fitted, case)


def check_float32_and_integers(estimator: Any, tol: float) -> None:
    """float32 and integer points give the same outputs as equal float64 points."""
    _, case = fit_case(estimator)
    scaled = case.with_points(lambda bag: 4 * bag)
    for dtype in (np.float32, np.int64):
        narrow = scaled.with_points(partial(np.ndarray.astype, dtype=dtype))
        wide = narrow.with_points(lambda bag: bag.astype(np.float64))
        promise = f"{np.dtype(dtype).name} points must give the same outputs as float64"
        assert_same(fit_outputs(estimator, narrow), fit_outputs(estimator, wide), promise, tol)


def check_data_frames(estimator: Any, tol: float) -> None:
    """Data frames give the same outputs as arrays, and unknown column names raise an error."""
    try:
        import pandas as pd
    except ImportError as error:
        raise SkipTest("pandas is not installed") from error
    fitted, case = fit_case(estimator)
    names = [f"column {i}" for i in range(WIDTH)]
    frames = case.with_points(partial(pd.DataFrame, columns=names))
    by_name = fit_copy(estimator, frames)
    found = compute_outputs(by_name, frames)
    promise = "data frames must give the same outputs as arrays"
    assert_same(found, compute_outputs(fitted, case), promise, tol)
    kept = list(getattr(by_name, "feature_names_in_", ()))
    require(
        kept == names,
        f"`feature_names_in_` is {kept} after fitting data frames with columns {names}.",
    )
    renamed = [frame.rename(columns={names[0]: "other"}) for frame in frames.new]
    what = f"data frames with a column 'other' after fitting {names}"
    for name in found.keys() - {"labels_", "score"}:
        catch_error(partial(getattr(by_name, name), renamed), name, what)


def check_order_inside_bags(estimator: Any, tol: float) -> None:
    """Outputs do not depend on the order of points inside fitted or new bags."""
    fitted, case = fit_case(estimator)
    _assert_order_ignored(estimator, fitted, case, tol)


def check_order_of_equal_points(estimator: Any, tol: float) -> None:
    """The same for points that are equal or equally far apart."""
    _, case = fit_case(estimator)
    coarse = case.with_points(lambda bag: 2 * np.round(bag / 2))
    _assert_order_ignored(estimator, fit_copy(estimator, coarse), coarse, tol)


def check_order_of_bags(estimator: Any, tol: float) -> None:
    """Reordering new bags reorders their outputs."""
    fitted, case = fit_case(estimator)
    order = np.random.default_rng(0).permutation(len(case.new))
    expected = {name: rows[order] for name, rows in compute_bag_outputs(fitted, case.new).items()}
    found = compute_bag_outputs(fitted, [case.new[i] for i in order])
    assert_same(found, expected, "reordering new bags must reorder their rows", tol)


def check_bags_independent(estimator: Any, tol: float) -> None:
    """The output for a new bag does not depend on the other new bags."""
    fitted, case = fit_case(estimator)
    together = compute_bag_outputs(fitted, case.new)
    alone = [compute_bag_outputs(fitted, [bag]) for bag in case.new]
    promise = "the output for a new bag must not depend on the other bags"
    for name, expected in together.items():
        found = np.concatenate([each[name] for each in alone])
        assert_close(found, expected, name, promise, tol)
    if is_set_kernel(estimator):
        expected = fitted.gram(case.new, case.bags)
        found = np.concatenate([fitted.gram([bag], case.bags) for bag in case.new])
        assert_close(found, expected, "gram", promise, tol)


def check_alignment(estimator: Any, tol: float) -> None:
    """The positions that `align` gives to points do not depend on the order of points."""
    fitted, case = fit_case(estimator)
    reordered = shuffle_points(case.new)
    orders, others = np.asarray(fitted.align(case.new)), np.asarray(fitted.align(reordered))
    require(
        len(orders) == len(case.new),
        f"align returns {len(orders)} rows for {len(case.new)} bags: it must return one for each.",
    )
    promise = "the positions of points must not depend on the order of points"
    for i in range(len(case.new)):
        order, size = orders[i], len(case.new[i])
        require(
            order.dtype.kind in "iu" and order.min() >= -1 and order.max() < size,
            f"align returns {order.min()} to {order.max()} ({order.dtype}) for bag {i} of {size} "
            "points: it must return indices of points, or -1 for an empty position.",
        )
        found = _arrange_points(reordered[i], others[i])
        expected = _arrange_points(case.new[i], order)
        assert_close(found, expected, f"align (bag {i})", promise, tol)


def check_empty_bag_refused(estimator: Any, tol: float) -> None:
    """An empty bag raises an error that names the bag."""
    _assert_bag_refused(estimator, np.empty((0, WIDTH)), "an empty bag")


def check_nan_refused(estimator: Any, tol: float) -> None:
    """NaN raises an error that names the bag."""
    _assert_bag_refused(estimator, _points_with(np.nan), "a bag with NaN")


def check_infinity_refused(estimator: Any, tol: float) -> None:
    """Infinity raises an error that names the bag."""
    _assert_bag_refused(estimator, _points_with(np.inf), "a bag with infinity")


def check_mixed_widths_refused(estimator: Any, tol: float) -> None:
    """A bag with another number of columns raises an error that names the bag."""
    _assert_bag_refused(estimator, np.ones((5, WIDTH + 1)), "a bag with another number of columns")


def check_text_refused(estimator: Any, tol: float) -> None:
    """A bag of strings, or a string in place of bags, raises an error."""
    text = np.array([["a", "b", "c"]] * 4, dtype=object)
    _assert_bag_refused(estimator, text, "a bag of text")
    case = make_case(estimator)
    catch_error(lambda: seeded_copy(estimator).fit("a bag", case.y), "fit", "a string")


def check_empty_list_refused(estimator: Any, tol: float) -> None:
    """An empty list of bags raises an error."""
    catch_error(lambda: seeded_copy(estimator).fit([], np.empty(0)), "fit", "an empty list")
    fitted, _ = fit_case(estimator, ragged=False)
    for name in list_output_methods(fitted):
        catch_error(partial(getattr(fitted, name), []), name, "an empty list")


def check_new_width_refused(estimator: Any, tol: float) -> None:
    """New bags with another number of columns raise an error that states both numbers."""
    fitted, _ = fit_case(estimator, ragged=False)
    for width in (WIDTH - 1, WIDTH + 1):
        new = [np.ones((5, width)) * i for i in range(3)]
        what = f"bags of {width} columns after fitting {WIDTH}"
        for name in list_output_methods(fitted):
            message = catch_error(partial(getattr(fitted, name), new), name, what)
            numbers = set(re.findall(r"\d+", message))
            require(
                {str(width), str(WIDTH)} <= numbers,
                f"The error of {name} for {what} does not state both numbers: {message!r}.",
            )


def _assert_order_ignored(estimator: Any, fitted: Any, case: Case, tol: float) -> None:
    expected = compute_outputs(fitted, case)
    found = compute_outputs(fitted, replace(case, new=shuffle_points(case.new)))
    promise = "the order of points inside new bags must not matter"
    assert_same(found, expected, promise, tol)
    again = fit_copy(estimator, replace(case, bags=shuffle_points(case.bags, seed=1)))
    promise = "the order of points inside the fitted bags must not matter"
    assert_same(compute_outputs(again, case), expected, promise, tol)


def _arrange_points(bag: Any, order: Any) -> Any:
    """Points in the positions given by `order`, zeros in empty positions."""
    return np.where((order >= 0)[:, np.newaxis], bag[order], 0.0)


def _points_with(value: float) -> Floats:
    points = np.ones((5, WIDTH))
    points[3, 1] = value
    return points


def _assert_bag_refused(estimator: Any, bag: Any, what: str) -> None:
    """Require that `fit` and every method that takes new bags raise an error naming the bag."""
    fitted, case = fit_case(estimator, ragged=False)
    bad = case.with_lists(lambda bags: [*bags[:_BAD], bag, *bags[_BAD + 1 :]])
    calls = {name: partial(getattr(fitted, name), bad.new) for name in list_output_methods(fitted)}
    calls["fit"] = partial(fit_copy, estimator, bad)
    for name, call in calls.items():
        message = catch_error(call, name, what)
        require(
            bool(re.search(rf"\bbag\W*{_BAD}\b", message, re.IGNORECASE)),
            f"The error of {name} for {what} does not name bag {_BAD}: {message!r}.",
        )
