"""Checks of what is drawn."""

from collections.abc import Sequence
from operator import index
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._arrays import (
    as_array,
    as_numbers,
    as_real,
    check_finite,
    check_magnitude,
    check_plain,
    kind_of,
)

Array = NDArray[np.float64]


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


def check_set_kernel(estimator: Any) -> None:
    """Refuse what cannot compare sets."""
    if not callable(getattr(type(estimator), "kernel", None)):
        raise TypeError(
            f"`estimator` is a {type(estimator).__name__}, which has no method `kernel`. Pass a "
            "kernel between sets, such as unshuffle.kernels.MeanMapKernel()."
        )


def check_set_mixtures(estimator: Any) -> None:
    """Refuse what does not describe sets by mixtures."""
    if not callable(getattr(estimator, "mixtures", None)):
        raise TypeError(
            f"`estimator` is a {type(estimator).__name__}, which has no method `mixtures`. Pass a "
            "fitted unshuffle.kernels.ExpectedLikelihoodKernel or BhattacharyyaKernel."
        )


def check_set_template(estimator: Any) -> None:
    """Refuse what does not align sets to a template."""
    if not callable(getattr(estimator, "align", None)):
        raise TypeError(
            f"`estimator` is a {type(estimator).__name__}, which has no method `align`. Pass a "
            "fitted SetAligner, PermutationInvariantSVC or MinimumVolumePCA."
        )
    if np.ndim(getattr(estimator, "template_", ())) == 3:
        raise ValueError(
            f"`estimator` has {len(estimator.template_)} templates, one for each class, since "
            "lam > 0. Pass one of them to from_predictions, with a set of `permutations_`."
        )


def check_order(order: Any, n_items: int) -> NDArray[np.intp]:
    """Each of the items once."""
    array = as_array(order, "`order`")
    whole = array.shape == (n_items,) and array.dtype.kind in "iu"
    if not whole or not np.array_equal(np.sort(array), np.arange(n_items)):
        raise ValueError(
            f"`order` must hold each number from 0 to {n_items - 1} once, got shape {array.shape} "
            f"and dtype {array.dtype}. Leave it out to have an order found."
        )
    return array.astype(np.intp)


def check_template(template: Any, width: int, n_points: int) -> NDArray[np.float64]:
    """One point for each slot, with the columns of the sets."""
    array = as_numbers(template, "`template`")
    if array.shape != (n_points, width):
        raise ValueError(
            f"`template` has shape {array.shape}; sets of {n_points} ordered points with {width} "
            f"columns need ({n_points}, {width}). Pass `template_` of the estimator that aligned "
            "them."
        )
    check_finite(array, "template")
    return array


def check_mixture(
    mixture: Any, width: int, i: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Weights, means and covariances of one mixture that fit points of this width."""
    try:
        weights, means, covariances = (as_numbers(each, f"Mixture {i}") for each in mixture)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Mixture {i} of `mixtures` must be weights, means and covariances, got "
            f"{type(mixture).__name__}. Pass what `mixtures` of a set kernel returns."
        ) from error
    n = weights.size
    shapes = (weights.shape, means.shape, covariances.shape)
    if shapes != ((n,), (n, width), (n, width, width)) or n == 0:
        raise ValueError(
            f"Mixture {i} has weights, means and covariances of shapes {shapes}; for points of "
            f"{width} columns and m components they are (m,), (m, {width}), (m, {width}, {width})."
        )
    for array, name in ((weights[:, None], "weights"), (means, "means")):
        check_finite(array, f"{name} of mixture {i}")
    check_finite(covariances.reshape(n, -1), f"covariances of mixture {i}")
    if weights.min() < 0.0 or weights.max() == 0.0:
        raise ValueError(
            f"Mixture {i} has weights from {weights.min():.3g} to {weights.max():.3g}. Weights "
            "are shares: none is below 0, and one at least is above."
        )
    return weights, means, covariances


def check_same_number(n: int, n_sets: int, name: str) -> None:
    """Refuse a list that does not go with the sets."""
    if n != n_sets:
        raise ValueError(f"`{name}` has {n} entries for {n_sets} sets. Give one for each set.")


def check_drawn_columns(columns: Any, width: int, *, allowed: Sequence[int]) -> tuple[int, ...]:
    """Different columns of a point that are drawn, as many as `allowed` says."""
    listed = tuple(columns) if isinstance(columns, Sequence | np.ndarray) else (columns,)
    inside = all(
        isinstance(each, int | np.integer)
        and not isinstance(each, bool | np.bool_)
        and 0 <= each < width
        for each in listed
    )
    if not inside or len(listed) not in allowed or len(set(listed)) < len(listed):
        counts = " or ".join(str(each) for each in allowed)
        raise ValueError(
            f"`columns` must be {counts} different columns from 0 to {width - 1}, got {columns!r}."
        )
    return tuple(int(each) for each in listed)


def check_item_colors(values: ArrayLike, n_items: int) -> NDArray[np.float64]:
    """One finite number for each item, or red, green and blue from 0 to 1."""
    array = as_array(values, "`values`")
    if array.shape not in ((n_items,), (n_items, 3)) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"`values` must be {n_items} numbers or {n_items} rows of red, green and blue, one "
            f"for each item, got shape {array.shape} and dtype {array.dtype}."
        )
    if array.ndim == 2 and array.dtype == np.uint8:
        return array / 255.0
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("`values` holds NaN or infinity. Give each item a finite number.")
    if np.abs(numbers).max(initial=0.0) > 1e300:
        raise ValueError(
            "`values` holds numbers beyond 1e300, whose differences may be too large for a float. "
            "Divide them by a common number first."
        )
    if array.ndim == 2 and numbers.size and (numbers.min() < 0 or numbers.max() > 1):
        raise ValueError(
            "Colours in `values` must be from 0 to 1 (or whole numbers from 0 to 255 of dtype "
            f"uint8), got values from {numbers.min():.6g} to {numbers.max():.6g}. Rescale them."
        )
    return numbers


def check_item_labels(labels: ArrayLike, n_items: int) -> NDArray[Any]:
    """One label for each item."""
    array = as_array(labels, "`labels`", plain=False)
    if array.shape != (n_items,):
        raise ValueError(
            f"`labels` must be {n_items} labels, one for each item, got shape {array.shape}."
        )
    try:
        np.unique(array)
    except TypeError as error:
        raise ValueError(
            "`labels` holds labels that cannot be put in order. Pass labels of one type, such as "
            "all strings."
        ) from error
    return array


def check_one_look(given: dict[str, Any]) -> None:
    """Refuse to draw items in two ways at once."""
    names = [f"`{name}`" for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ValueError(
            f"{' and '.join(names)} were given, but a cell shows one of them. "
            "Draw a second display for the other."
        )


def check_features_given(X: Any) -> Any:
    """Refuse to measure distances between items of which nothing is known."""
    if X is None:
        raise ValueError(
            "Distances to neighbours need the features of the items, but `X` is None. "
            "Pass X when the display is made."
        )
    return X


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


def check_any_matched(permutation: NDArray[np.intp]) -> None:
    """Refuse to draw kernels of pairs where there are less than two."""
    n_matched = int(np.count_nonzero(permutation >= 0))
    if n_matched < 2:
        count = "None" if n_matched == 0 else "Only one"
        raise ValueError(
            f"{count} of the {permutation.size} items of X has a partner, so there is no common "
            "order to draw the kernels in. Raise `unmatched_cost`, or use `plot`, which also "
            "shows items without a partner."
        )
