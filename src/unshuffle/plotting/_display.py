"""Base class of the displays, with the pictures, colors and checks that they share."""

from copy import deepcopy
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import as_array, check_plain
from unshuffle._core.bags import Bags
from unshuffle._run.types import Points

# Largest picture to draw. A screen would drop the pixels beyond it.
_MAX_PIXELS = 2**24


class Display:
    """Base of the displays: each is a dataclass of the data that it draws."""

    ax_: Any
    figure_: Any

    def __post_init__(self) -> None:
        """Copy the data, so that later changes to the user's arrays have no effect."""
        for name, value in vars(self).items():
            setattr(self, name, deepcopy(value))

    def _take_axes(self, ax: Any, size: tuple[float, float], *, space: bool | None = None) -> Any:
        """Use these axes, or make a figure of this size in inches.

        `space` requires 3-D axes if True and 2-D axes if False; None accepts both.
        """
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                message = "Drawing needs matplotlib: pip install 'unshuffle[plot]'"
                raise ImportError(message) from error
            kind = {"projection": "3d"} if space else {}
            ax = plt.subplots(figsize=size, layout="constrained", subplot_kw=kind)[1]
        if not (hasattr(ax, "plot") and hasattr(ax, "figure")):
            raise TypeError(
                f"`ax` must be matplotlib Axes, got {type(ax).__name__}. Pass what plt.subplots() "
                "returns second, one entry of it, or None for a new figure."
            )
        in_space = getattr(ax, "name", "") == "3d"
        if space is False and in_space:
            raise ValueError(
                "This plot needs 2-D axes, got 3-D axes. Pass what plt.subplots() returns second, "
                "or ax=None for a new figure."
            )
        if space and not in_space:
            raise ValueError(
                "Vectors of 3 numbers need 3-D axes, got 2-D axes. Pass "
                'plt.figure().add_subplot(projection="3d"), or ax=None for a new figure.'
            )
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _show(self, across: tuple[float, float], up: tuple[float, float]) -> None:
        """Set the limits, with equal scales in both directions, and hide the axes."""
        self.ax_.set(xlim=across, ylim=up, aspect="equal")
        self.ax_.set_axis_off()

    def _add_colorbar(self, mappable: Any, label: str, **look: Any) -> Any:
        """Add a labeled color bar without a frame."""
        bar = self.figure_.colorbar(mappable, ax=self.ax_, **look)
        bar.set_label(label)
        bar.outline.set_visible(False)
        return bar

    def _draw_paths(self, ax: Any, *paths: tuple[str, str, Any]) -> None:
        """Draw values after each step: the (label, color, values) whose values are known."""
        known = [each for each in paths if each[2] is not None]
        if not known:
            raise ValueError(
                "There is no path to draw. Build the display with from_estimator, or pass "
                "`objective_path` to from_predictions."
            )
        ax = self._take_axes(ax, (6.0, 3.6), space=False)
        ax.set_xlabel("step")
        ax.xaxis.get_major_locator().set_params(integer=True)
        # A path may lack the first steps: all of them end together.
        n_steps = max(len(values) for *_, values in known)
        for k, (label, color, values) in enumerate(known):
            side = ax if k == 0 else ax.twinx()
            steps = np.arange(n_steps - len(values), n_steps)
            side.plot(steps, values, "o-", color=color, markersize=3.5)
            side.set_ylabel(label, color=color)
            side.spines["top"].set_visible(False)
            side.spines["right"].set_visible(len(known) > 1)


def cell_pictures(
    images: NDArray[np.uint8], grid: NDArray[np.intp], *, gap: float = 0.0
) -> NDArray[np.uint8]:
    """One picture of a whole grid, transparent where a cell is empty.

    `gap` is the transparent margin around each image as a share of its longer side. A picture
    that would be too large keeps every second (third, ...) pixel only.
    """
    step = ceil(sqrt(grid.size * images.shape[1] * images.shape[2] / _MAX_PIXELS))
    images = images[:, ::step, ::step]
    height, width = images.shape[1:3]
    margin = ceil(gap * max(height, width))
    rows, columns = grid.shape
    sheet = np.zeros((rows, height + 2 * margin, columns, width + 2 * margin, 4), dtype=np.uint8)
    inner = sheet[:, margin : margin + height, :, margin : margin + width]
    for row, items in zip(inner, grid, strict=True):
        filled = np.flatnonzero(items >= 0)
        row[:, filled, :, :3] = images[items[filled]].swapaxes(0, 1)
        row[:, filled, :, 3] = 255
    return sheet.reshape(rows * sheet.shape[1], columns * sheet.shape[3], 4)


def label_colors(labels: NDArray[Any]) -> tuple[NDArray[np.float64], list[Any]]:
    """A color for each item by its label, and legend handles for the labels."""
    from matplotlib import colormaps
    from matplotlib.patches import Patch

    distinct, codes = np.unique(labels, return_inverse=True)
    if len(distinct) <= 20:
        shades = colormaps["tab10" if len(distinct) <= 10 else "tab20"](np.arange(len(distinct)))
    else:
        shades = colormaps["turbo"](np.linspace(0.02, 0.98, len(distinct)))
    colors = np.array(shades)[:, :3]
    named = [
        Patch(color=color, label=str(each)) for color, each in zip(colors, distinct, strict=True)
    ]
    return colors[codes.ravel()], named


def point_colors(points: Points) -> NDArray[np.float64]:
    """A color for each point: hue by its direction from the mean, lighter toward the top."""
    from matplotlib.colors import hsv_to_rgb

    centered = points[:, :2] - points[:, :2].mean(axis=0)
    hue = (np.arctan2(centered[:, 1], centered[:, 0]) / (2 * np.pi)) % 1.0
    height = centered[:, 1] / (np.abs(centered[:, 1]).max() or 1.0)
    shades = np.stack([hue, np.full_like(hue, 0.75), 0.72 + 0.16 * height], axis=1)
    return np.asarray(hsv_to_rgb(shades))


def reorder(bags: Bags, orders: NDArray[np.intp]) -> Points:
    """Points of each bag in its order, NaN where one is missing."""
    points = bags.points[bags.offsets[:-1, np.newaxis] + np.maximum(orders, 0)]
    return np.where((orders >= 0)[:, :, np.newaxis], points, np.nan)


def check_orders(permutations: Any, sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Indices into each bag, equally many for all; -1 is a missing point."""
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
            f"`permutations` has shape {orders.shape}: it has no columns. Pass at least one."
        )
    wrong = (orders >= sizes[:, np.newaxis]) | (orders < -1)
    if wrong.any():
        bag, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"`permutations` names point {orders[bag, column]} of bag {bag}, which has "
            f"{sizes[bag]} points. Pass the bags that the estimator was fitted to."
        )
    return orders.astype(np.intp)


def check_planar(n_features: int) -> None:
    """Refuse points with a single coordinate."""
    if n_features < 2:
        raise ValueError(
            f"Points with {n_features} coordinate cannot be drawn in the plane. Pass points with "
            "two or more coordinates."
        )


def check_item_labels(labels: ArrayLike | None, n_items: int) -> NDArray[Any] | None:
    """One label for each item, or None."""
    if labels is None:
        return None
    array = as_array(labels, "`labels`", plain=False)
    if array.shape != (n_items,):
        raise ValueError(
            f"`labels` must be {n_items} labels, one for each item, got shape {array.shape}."
        )
    try:
        np.unique(array)
    except TypeError as error:
        raise ValueError(
            "`labels` cannot be sorted. Pass labels of one type, such as all strings."
        ) from error
    return array
