"""Checks that order has no part: of points inside bags, and of bags among each other."""

from typing import Any

import numpy as np

from unshuffle.testing._answers import answers, answers_per_bag, assert_close, assert_same, require
from unshuffle.testing._cases import (
    Case,
    fitted_case,
    is_set_kernel,
    prepared,
    shuffled,
)


def check_order_inside_bags(estimator: Any, tol: float) -> None:
    """Reordering the points of any bag, fitted or new, changes no answer."""
    fitted, case = fitted_case(estimator)
    _assert_order_free(estimator, fitted, case, tol)


def check_order_of_equal_points(estimator: Any, tol: float) -> None:
    """The same where points are equal, or equally far from each other."""
    _, case = fitted_case(estimator)
    coarse = case.with_points(lambda bag: 2 * np.round(bag / 2))
    fitted = prepared(estimator).fit(coarse.bags, coarse.y)
    _assert_order_free(estimator, fitted, coarse, tol)


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
        _assert_indices(orders[i], len(case.new[i]), i)
        found, expected = _placed(mixed[i], others[i]), _placed(case.new[i], orders[i])
        assert_close(found, expected, f"align (bag {i})", promise, tol)


def _assert_order_free(estimator: Any, fitted: Any, case: Case, tol: float) -> None:
    expected = answers(fitted, case.new, case.new_y)
    found = answers(fitted, shuffled(case.new), case.new_y)
    promise = "the order of points inside new bags must not matter"
    assert_same(found, expected, promise, tol)
    again = prepared(estimator).fit(shuffled(case.bags, seed=1), case.y)
    promise = "the order of points inside the fitted bags must not matter"
    assert_same(answers(again, case.new, case.new_y), expected, promise, tol)


def _assert_indices(order: Any, size: int, i: int) -> None:
    inside = np.issubdtype(order.dtype, np.integer) and order.min() >= -1 and order.max() < size
    require(
        inside,
        f"align gives {order.min()} to {order.max()} ({order.dtype}) for bag {i} of {size} "
        "points, where indices of points are asked for, and -1 for an empty slot.",
    )


def _placed(bag: Any, order: Any) -> Any:
    """Points in their slots, zero where a slot is empty."""
    return np.where((order >= 0)[:, np.newaxis], bag[order], 0.0)
