"""What displays share: data of their own, axes, pictures in cells, panels, colours, checks."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._arrays import as_array, check_plain
from unshuffle._bags import Bags
from unshuffle._parameters import check_count

Points = NDArray[np.float64]

# More would only be thrown away again by the screen.
_MAX_PIXELS = 2**24
# A frame more stretched than this has columns of different units: each gets a scale of its own.
_MOST_STRETCHED = 4.0
_GAP, _TITLE = 0.12, 0.14
# Few panels are drawn larger, many no smaller than can be made out.
_INCHES, _LEAST, _MOST = 8.0, 1.9, 4.0
# Seen from above and from the side: depth is drawn as a slant.
_AZIMUTH, _ELEVATION = np.radians(-60.0), np.radians(25.0)


class Display:
    """Base of the displays, each a dataclass of what it draws."""

    ax_: Any
    figure_: Any

    def __post_init__(self) -> None:
        """Keep copies, so that a display does not change with the user's arrays."""
        for name, value in vars(self).items():
            setattr(self, name, deepcopy(value))

    def _take_axes(self, ax: Any, size: tuple[float, float], *, space: bool | None = None) -> Any:
        """Draw on these axes, or those of a new figure of this size in inches.

        `space` asks for axes in space or for axes of the plane; None takes both.
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
                "This is drawn in the plane, got axes in space. Pass what plt.subplots() returns "
                "second, or ax=None for a new figure."
            )
        if space and not in_space:
            raise ValueError(
                "Vectors of 3 numbers need axes in space, got axes of the plane. Pass "
                'plt.figure().add_subplot(projection="3d"), or ax=None for a new figure.'
            )
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _show(self, across: tuple[float, float], up: tuple[float, float]) -> None:
        """Show this part of the plane, a unit as long in both directions, and no axes."""
        self.ax_.set(xlim=across, ylim=up, aspect="equal")
        self.ax_.set_axis_off()


def cell_pictures(
    images: NDArray[np.uint8], grid: NDArray[np.intp], *, gap: float = 0.0
) -> NDArray[np.uint8]:
    """One picture of a whole grid: images side by side, transparent where a cell is empty.

    `gap` is the width of a transparent margin around each image as a share of its longer side.
    Where the picture would be too large, every second (third, ...) pixel is left out.
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


def kind_colors(labels: NDArray[Any]) -> tuple[NDArray[np.float64], list[Any]]:
    """A colour for each item by its kind, and the kinds with their colours for a legend.

    Up to twenty kinds are told apart well, more as far as eyes can.
    """
    from matplotlib import colormaps
    from matplotlib.patches import Patch

    kinds, codes = np.unique(labels, return_inverse=True)
    if len(kinds) <= 20:
        shades = colormaps["tab10" if len(kinds) <= 10 else "tab20"](np.arange(len(kinds)))
    else:
        shades = colormaps["turbo"](np.linspace(0.02, 0.98, len(kinds)))
    colors = np.array(shades)[:, :3]
    named = [
        Patch(color=color, label=str(kind)) for color, kind in zip(colors, kinds, strict=True)
    ]
    return colors[codes.ravel()], named


def point_colors(points: Points) -> NDArray[np.float64]:
    """A colour for each point by its direction from the middle, lighter towards the top."""
    from matplotlib.colors import hsv_to_rgb

    centred = points[:, :2] - points[:, :2].mean(axis=0)
    hue = (np.arctan2(centred[:, 1], centred[:, 0]) / (2 * np.pi)) % 1.0
    height = centred[:, 1] / (np.abs(centred[:, 1]).max() or 1.0)
    shades = np.stack([hue, np.full_like(hue, 0.75), 0.72 + 0.16 * height], axis=1)
    return np.asarray(hsv_to_rgb(shades))


@dataclass(frozen=True)
class Panels:
    """Places for small pictures that share one frame, row after row from the top left."""

    middle: Points  # of the frame, in the unit of the points
    scale: Points  # the frame is drawn at most one wide and one high
    size: Points  # width and height of a picture, without the gap to the next
    step: Points  # from one picture to the next
    top: float  # upper edge of the first row
    n_rows: int
    n_columns: int

    @classmethod
    def around(
        cls, points: Points, n_panels: int, n_columns: int | None, *, titled: bool = True
    ) -> "Panels":
        """Panels with room for all these points of the plane in each."""
        if n_columns is None:
            n_columns = max(4, int(np.ceil(np.sqrt(2 * n_panels))))
        n_columns = min(check_count(n_columns, "n_columns"), n_panels)
        low, high = points.min(axis=0), points.max(axis=0)
        extent = np.maximum(high - low, 1e-9 * max(float(np.abs(points).max()), 1e-9))
        alike = extent.max() <= _MOST_STRETCHED * extent.min()
        scale = np.full(2, extent.max()) if alike else extent
        size, title = extent / scale, _TITLE * titled
        step, top = size + _GAP + np.array([0.0, title]), size[1] / 2 + _GAP / 2 + title
        n_rows = ceil(n_panels / n_columns)
        return cls((low + high) / 2, scale, size, step, top, n_rows, n_columns)

    @property
    def inches(self) -> tuple[float, float]:
        """Size of a figure for them."""
        across, up = float(np.clip(_INCHES / self.n_columns, _LEAST, _MOST)) * self.step
        return across * self.n_columns, up * self.n_rows

    def place(self, points: Points, i: int) -> Points:
        """Points where panel i is."""
        return (points - self.middle) / self.scale + self._middle_of(i)

    def frame(self, ax: Any, i: int) -> None:
        """Draw the edges of panel i."""
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) / 2
        edges = self.place(self.middle + corners * (self.size + 0.6 * _GAP) * self.scale, i)
        ax.plot(*edges.T, color="0.85", linewidth=0.8, zorder=0)

    def title(self, ax: Any, i: int, text: str) -> None:
        """Write above panel i."""
        x, y = self._middle_of(i)
        ax.text(x, y + self.size[1] / 2 + _GAP / 2, text, ha="center", va="bottom", fontsize=9)

    @property
    def limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Part of the plane, across and up, that all panels take."""
        across, up = self.step
        bottom = -(self.n_rows - 1) * up - self.size[1] / 2 - _GAP / 2
        return (-across / 2, (self.n_columns - 0.5) * across), (bottom, self.top)

    def _middle_of(self, i: int) -> Points:
        """Where the middle of panel i is drawn."""
        row, column = divmod(i, self.n_columns)
        return np.array([column, -row]) * self.step


def in_plane(points: Points, columns: Sequence[int]) -> Points:
    """Two of the columns, or a view of three from above and the side."""
    chosen = points[..., list(columns)]
    if len(columns) == 2:
        return chosen
    turn = np.array([np.cos(_AZIMUTH), np.sin(_AZIMUTH)])
    x, y, z = np.moveaxis(chosen, -1, 0)
    across = -turn[1] * x + turn[0] * y
    depth = turn[0] * x + turn[1] * y
    return np.stack([across, np.cos(_ELEVATION) * z - np.sin(_ELEVATION) * depth], axis=-1)


def ordered(bags: Bags, orders: NDArray[np.intp]) -> Points:
    """Points of each bag in an order, NaN where one is missing."""
    points = bags.points[bags.offsets[:-1, np.newaxis] + np.maximum(orders, 0)]
    return np.where((orders >= 0)[:, :, np.newaxis], points, np.nan)


def check_orders(permutations: Any, sizes: NDArray[np.intp]) -> NDArray[np.intp]:
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
            "`labels` holds labels that cannot be put in order. Pass labels of one type, such as "
            "all strings."
        ) from error
    return array
