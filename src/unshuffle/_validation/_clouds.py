"""What is asked of clouds of points, of pictures they are drawn from, and of how they move."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._validation._collections import (
    as_numbers,
    check_finite,
    check_magnitude,
    check_plain,
    table_of,
)


def check_digits(digits: Any) -> list[int]:
    """Different digits from 0 to 9, at least one."""
    listed = list(np.atleast_1d(digits)) if isinstance(digits, np.ndarray) else digits
    listed = list(listed) if isinstance(listed, Sequence) else [listed]
    whole = all(isinstance(each, int | np.integer) and 0 <= each <= 9 for each in listed)
    if not listed or not whole or isinstance(digits, str) or len(set(listed)) < len(listed):
        raise ValueError(
            f"`digits` must be different whole numbers from 0 to 9, got {digits!r}. Pass e.g. "
            "(3, 9)."
        )
    return [int(each) for each in listed]


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


def _as_numbers(points: Any, name: str) -> NDArray[np.float64]:
    if sparse.issparse(points):
        raise TypeError(f"`{name}` is sparse. Call toarray() on it first.")
    check_plain(points, f"`{name}`")
    try:
        given = np.asarray(table_of(points, name))
        if np.iscomplexobj(given):
            raise TypeError("complex numbers")
        return given.astype(np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"`{name}` must hold real numbers, as many in every row, and this "
            f"{type(points).__name__} does not. Pass an array with one row for each point."
        ) from error


def check_path_of_points(points: Any, name: str, *, least: int = 1) -> NDArray[np.float64]:
    """Positions of the same points at several moments, shape (n_moments, n_points, 2)."""
    array = _as_numbers(points, name)
    if array.ndim != 3 or array.shape[2] != 2 or 0 in array.shape or len(array) < least:
        raise ValueError(
            f"`{name}` must hold points in the plane at {least} or more moments, with shape "
            f"(n_moments, n_points, 2), got {array.shape}. `morph` of MinimumVolumePCA gives them."
        )
    check_finite(array.reshape(len(array), -1), name)
    check_magnitude(array, name)
    return array


def check_frames(frames: Any) -> list[Any]:
    """Pictures of one size, at least one."""
    listed = list(frames) if isinstance(frames, Sequence) else []
    sizes = {getattr(each, "size", None) for each in listed if hasattr(each, "save")}
    if not listed or len(sizes) != 1 or not all(hasattr(each, "save") for each in listed):
        raise ValueError(
            f"`frames` must be a list of one or more PIL images of one size, got "
            f"{type(frames).__name__} with {len(listed)} entries. `morph_frames` draws them."
        )
    return listed


def check_colors(colors: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """Colours from 0 to 255, repeated to fill `shape`."""
    try:
        array = as_numbers(colors, f"`{name}`")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must be colours (red, green, blue) from 0 to 255, got {colors!r}."
        ) from error
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"`{name}` has shape {array.shape}, which does not fill {shape}. Give one colour "
            "(red, green, blue), or one for each."
        ) from None
    # Blending two colours may leave the range by a rounding error.
    if not (np.isfinite(array).all() and array.min() >= -1e-6 and array.max() <= 255 + 1e-6):
        raise ValueError(
            f"`{name}` must be colours (red, green, blue) from 0 to 255, got values from "
            f"{array.min():g} to {array.max():g}."
        )
    return np.clip(array, 0.0, 255.0)


def check_ink(ink: NDArray[np.float64], path: str | Path) -> None:
    """Refuse a picture with nothing drawn on it."""
    if not ink.any():
        raise ValueError(
            f"{path} is all of one shade, so there is nothing to draw points from. Give a picture "
            "with a shape in it, such as dark ink on white."
        )


def raise_no_drawing(path: str | Path, why: str, cause: Exception) -> NoReturn:
    """Refuse a file that is no picture."""
    raise ValueError(
        f"{path} cannot be read as a picture: {why}. Give a PNG, JPEG, GIF, BMP, TIFF or WebP "
        "file."
    ) from cause


def check_alignment(permutations: Any, sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Indices into each bag, as many for all; -1 is a missing point."""
    check_plain(permutations, "`permutations`")
    try:
        orders = np.asarray(permutations)
    except ValueError:
        orders = np.empty(0)
    if orders.ndim != 2 or len(orders) != len(sizes) or orders.dtype.kind not in "iu":
        raise ValueError(
            f"`permutations` must be whole numbers of shape (n_bags, n_points) for {len(sizes)} "
            f"bags, got shape {orders.shape} and dtype {orders.dtype}. Pass `permutations_` of "
            "the estimator that was fitted to these bags."
        )
    if orders.shape[1] == 0:
        raise ValueError(
            f"`permutations` has shape {orders.shape}: it orders no points. Pass at least one "
            "column."
        )
    wrong = (orders >= sizes[:, np.newaxis]) | (orders < -1)
    if wrong.any():
        bag, slot = np.argwhere(wrong)[0]
        raise ValueError(
            f"`permutations` names point {orders[bag, slot]} of bag {bag}, which has "
            f"{sizes[bag]} points. Pass the bags that the estimator was fitted to."
        )
    return orders.astype(np.intp)


def check_planar(n_features: int) -> None:
    """Refuse points that cannot be drawn."""
    if n_features < 2:
        raise ValueError(
            f"Points with {n_features} coordinate cannot be drawn in the plane. Give points with "
            "two or more; of these the first two are drawn."
        )


def check_axes(ax: Any) -> Any:
    """Refuse what cannot be drawn on, such as a figure or an array of axes."""
    if not (hasattr(ax, "plot") and hasattr(ax, "figure")):
        raise TypeError(
            f"`ax` must be matplotlib Axes, got {type(ax).__name__}. Pass what plt.subplots() "
            "returns second, one entry of it, or None for a new figure."
        )
    return ax


def check_any_path(n_paths: int) -> None:
    """Refuse to draw how a fit went when nobody told."""
    if n_paths == 0:
        raise ValueError(
            "There is no path to draw: neither `log_volume_path` nor `objective_path` was given. "
            "Build the display with `from_estimator`, or pass one of them."
        )
