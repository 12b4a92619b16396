"""Checks of bags that are put in order."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import (
    _as_numbers,
    as_array,
    as_numbers,
    as_rows,
    check_finite,
    check_magnitude,
)
from unshuffle._bags import check_gap


def check_points_vary(points: NDArray[np.float64], name: str) -> None:
    """Refuse points that are all the same: any order of them is as good."""
    if not np.ptp(points, axis=0).any():
        raise ValueError(
            f"All points of {name} are equal, so nothing tells one from another. Check that the "
            "right columns were passed."
        )
    check_gap(points, name)


def raise_weak_regularization(error: Exception) -> NoReturn:
    """Say that the covariance has no inverse."""
    raise ValueError(
        "`regularization` is too small for these bags: without more of it their covariance has "
        "no inverse in floating point. Pass 1e-6 or more; the default is 0.1."
    ) from error


def check_no_larger(sizes: NDArray[np.intp], n_points: int, name: str) -> None:
    """Refuse bags with more points than there are slots, where none may be left out."""
    large = np.flatnonzero(sizes > n_points)
    if large.size:
        raise ValueError(
            f"Bag {large[0]} of {name} has {sizes[large[0]]} points for {n_points} slots "
            f'({large.size} such bag(s)). Pass unequal="resample", which draws some of them.'
        )


def check_missing_estimator(unequal: str, estimator: str, n_points: int | None) -> None:
    """Refuse missing points where every bag must fill every slot."""
    if unequal == "missing" and estimator != "mean":
        raise ValueError(
            f'unequal="missing" leaves slots empty, and estimator={estimator!r} has no covariance '
            'for these. Use estimator="mean", or unequal="resample".'
        )
    if unequal == "missing" and n_points is not None:
        raise ValueError(
            f'unequal="missing" has as many slots as the largest bag has points, got n_points='
            f'{n_points}. Leave n_points out, or use unequal="resample".'
        )


def check_directions(n_directions: int) -> None:
    """Refuse the paper's bound where it would take all day."""
    if n_directions > 2000:
        raise ValueError(
            f'estimator="variational" decomposes a {n_directions:,} x {n_directions:,} matrix '
            "(points times features) for every bag. Use fewer points, a smaller rank, or "
            'estimator="covariance", which does not grow so.'
        )


def check_n_components(n_components: Any, most: int) -> None:
    """Refuse more components than the bags span."""
    if isinstance(n_components, int | np.integer) and n_components > most:
        raise ValueError(
            f"n_components={n_components} is more than the {most} that these bags can have: one "
            "less than their number, and at most n_points times the features of a point. Pass "
            "fewer, or None for all."
        )


def check_scores(scores: Any, n_components: int) -> NDArray[np.float64]:
    """Coordinates of bags, one row of `n_components` numbers for each."""
    try:
        values: NDArray[np.float64] = as_rows(as_numbers(scores, "Y"), "Y")
    except ValueError as error:
        if "holds text" not in str(error) and "different lengths" not in str(error):
            raise
        raise ValueError(
            f"Y must hold real numbers, {n_components} in every row. Pass what transform "
            "returned, or rows of that length."
        ) from error
    if values.shape[1] != n_components:
        raise ValueError(
            f"Y has {values.shape[1]} columns; the fitted estimator has {n_components} "
            "components. Pass what transform returned, or rows of that length."
        )
    return values


def check_fractions(t: Any) -> NDArray[np.float64]:
    """One moment of a morph, or several."""
    try:
        values = as_numbers(t, "`t`")
    except (TypeError, ValueError) as error:
        raise ValueError(f"`t` must be a number or a list of numbers, got {t!r}.") from error
    if values.ndim > 1 or not np.all(np.abs(values) <= 1e6):  # nor NaN
        raise ValueError(
            f"`t` must be a number from -1e6 to 1e6 or a 1-D array of these, got shape "
            f"{values.shape}{'' if values.ndim > 1 else ' with others'}. 0 is the first bag, 1 "
            "the second."
        )
    return values


def check_init_orders(init: Any, sizes: NDArray[np.intp], n_points: int) -> NDArray[np.intp]:
    """One order of all points for each bag, all bags of one size."""
    orders = as_array(init, "`init`")
    if (sizes != n_points).any():
        raise ValueError(
            f"`init` gives an order of {n_points} points to each bag, but bags have from "
            f"{sizes.min()} to {sizes.max()} points. Leave `init` out, or pass bags of one size."
        )
    if orders.shape != (sizes.size, n_points) or not np.issubdtype(orders.dtype, np.integer):
        raise ValueError(
            f"`init` must hold whole numbers and have shape {(sizes.size, n_points)}, one order "
            f"for each bag, got shape {orders.shape} and dtype {orders.dtype}. Pass the "
            "`permutations_` of a fitted estimator."
        )
    wrong = np.flatnonzero((np.sort(orders, axis=1) != np.arange(n_points)).any(axis=1))
    if wrong.size:
        raise ValueError(
            f"Row {wrong[0]} of `init` is no order of {n_points} points: each number from 0 to "
            f"{n_points - 1} must stand there once."
        )
    return orders.astype(np.intp)


def check_two_clouds(first: Any, second: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two clouds with as many points each, of the same dimension, that have some extent."""
    both = []
    for points, name in ((first, "first"), (second, "second")):
        array = _as_numbers(points, name)
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(
                f"`{name}` must be a cloud of points of shape (n_points, n_features), got shape "
                f"{array.shape}."
            )
        check_finite(array, name)
        check_magnitude(array, name)
        if not np.ptp(array, axis=0).any():
            raise ValueError(
                f"All {len(array)} points of `{name}` are equal, so it has no shape. Give a cloud "
                "with at least two different points."
            )
        both.append(array)
    if both[0].shape != both[1].shape:
        raise ValueError(
            f"`first` has shape {both[0].shape} and `second` {both[1].shape}. Points are paired "
            "one to one: draw as many from each, with the same coordinates."
        )
    return both[0], both[1]


def check_features_vary(features: NDArray[np.float64], kernel: Any) -> None:
    """Refuse a kernel by which all points are the same."""
    gap = float(np.ptp(features, axis=0).max())
    if not gap > 1e-12 * float(np.abs(features).max()):
        label = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "callable")
        raise ValueError(
            f"By the kernel {label} all points are equal, so nothing tells one from another. Pass "
            "a larger gamma, or another kernel."
        )
