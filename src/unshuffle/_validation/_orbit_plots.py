"""What is asked of orbits that are to be drawn."""

from operator import index
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from unshuffle._validation._clouds import check_axes
from unshuffle._validation._collections import check_magnitude
from unshuffle._validation._orbit_motions import as_real, kind_of

Array = NDArray[np.float64]


def check_orbit_array(
    values: Any, name: str, shape: tuple[int | None, ...], meaning: str
) -> NDArray[np.float64]:
    """Finite numbers of a shape, None standing for any length above zero."""
    try:
        array = as_real(values)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must hold real numbers, {meaning}, got {kind_of(values)}."
        ) from error
    fits = array.ndim == len(shape) and all(
        length == (asked or length) > 0 for length, asked in zip(array.shape, shape, strict=True)
    )
    if not fits:
        asked = ", ".join("n" if length is None else str(length) for length in shape)
        asked = f"({asked},)" if len(shape) == 1 else f"({asked})"
        raise ValueError(f"`{name}` must have shape {asked}, {meaning}, got shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"`{name}` contains NaN or infinity. Pass finite numbers.")
    check_magnitude(array, f"`{name}`")
    return array


def check_square_generators(generators: Any, width: int) -> Array:
    """Square matrices that act on vectors of a width."""
    return check_orbit_array(
        generators, "generators", (None, width, width), f"matrices that move {width} coordinates"
    )


def check_both_or_none(mean: Any, components: Any) -> None:
    """Refuse half a subspace."""
    if (mean is None) != (components is None):
        given, missing = ("mean", "components") if components is None else ("components", "mean")
        raise ValueError(
            f"`{given}` was passed without `{missing}`. Pass both, where the generators move "
            "coordinates along components, or neither."
        )


def check_orbit_drawable(n_features: int) -> None:
    """Refuse vectors that are points neither of the plane nor of space."""
    if n_features not in (2, 3):
        raise ValueError(
            f"Vectors of {n_features} numbers cannot be drawn as points of the plane or of space. "
            "Use plot_flow with the shape of the images that they are, or plot_spectrum."
        )


def check_axes_of_plane(ax: Any) -> Any:
    """Axes with two directions."""
    if getattr(check_axes(ax), "name", "") == "3d":
        raise ValueError(
            "This is drawn in the plane, got axes in space. Pass what plt.subplots() returns "
            "second, or ax=None for a new figure."
        )
    return ax


def check_axes_in_space(ax: Any) -> Any:
    """Axes with three directions."""
    if getattr(check_axes(ax), "name", "") != "3d":
        raise ValueError(
            "Vectors of 3 numbers need axes in space, got axes of the plane. Pass "
            'plt.figure().add_subplot(projection="3d"), or ax=None for a new figure.'
        )
    return ax


def check_image_shape(shape: Any, n_features: int) -> tuple[int, int]:
    """Height and width of images that are so many numbers."""
    try:
        height, width = (index(length) for length in shape)
    except (TypeError, ValueError):
        height, width = 0, 0
    if min(height, width) < 1 or height * width != n_features:
        raise ValueError(
            f"`shape` must be (height, width) of images of {n_features} pixels, got {shape!r}. "
            "Vectors are read row by row."
        )
    return height, width


def raise_no_flow(n_features: int) -> NoReturn:
    """Say what a flow can be drawn of."""
    raise ValueError(
        f"The flow of vectors of {n_features} numbers can be drawn where they are images: pass "
        "their shape=(height, width)."
    )


def raise_no_spectrum() -> NoReturn:
    """Say that the spectrum is not known."""
    raise ValueError(
        "There is no spectrum to draw. Build the display with from_estimator, or pass "
        "`spectrum` to from_predictions."
    )


def raise_no_orbit_path() -> NoReturn:
    """Say that the path of the fit is not known."""
    raise ValueError(
        "There is no path to draw. Build the display with from_estimator, or pass "
        "`objective_path` to from_predictions."
    )
