"""Marks of an orbit: points given and not, curves and surfaces, images and how they change."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

GIVEN = "#9a8c78"
UNSEEN = "#c2571a"
PROTOTYPE = "#1c1c1c"
CURVES = ("#0f6948", "#3f5fa8", "#8a4fa0", "#b0891b")
Array = NDArray[np.float64]

_VIEW = 10.0  # how far around the data to draw, in extents of these


def curve_color(j: int) -> str:
    """Colour of a generator, the same in every plot."""
    return CURVES[j % len(CURVES)]


def draw_vectors(ax: Any, points: Array, unseen: Array | None, prototype: Array) -> None:
    """Points that were given, points that were not, and where the orbit starts."""
    size = float(np.clip(2400 / len(points), 8, 30))
    ax.scatter(*points.T, c=GIVEN, s=size, linewidths=0, label="given", zorder=3)
    if unseen is not None:
        look: dict[str, Any] = {"facecolors": "none", "edgecolors": UNSEEN, "linewidths": 0.9}
        ax.scatter(*unseen.T, s=18, label="not given", zorder=3, **look)
    look = {"marker": "*", "c": PROTOTYPE, "s": 110, "linewidths": 0}
    ax.scatter(*prototype[:, np.newaxis], label="prototype", zorder=5, **look)


def draw_curve(ax: Any, curve: Array, inside: NDArray[np.bool_], j: int) -> None:
    """The way along one generator: thick as far as the data go, thin beyond."""
    color, name = curve_color(j), f"along generator {j}"
    known = np.where(inside[:, np.newaxis], curve, np.nan)
    ax.plot(*curve.T, color=color, linewidth=1.1, zorder=2)
    ax.plot(*known.T, color=color, linewidth=3.0, label=name, zorder=4)


def draw_surface(ax: Any, surface: Array) -> None:
    """A surface in space through which one can see the points, shape (n, m, 3)."""
    look: dict[str, Any] = {"color": CURVES[0], "alpha": 0.16, "linewidth": 0.3}
    x, y, z = np.moveaxis(surface, 2, 0)
    ax.plot_surface(x, y, z, rcount=len(x), ccount=len(x), edgecolor="#0f694850", **look)


def look_at(ax: Any, prototype: Array) -> None:
    """Turn axes in space so that the prototype is in front, seen a little from the side.

    Matrices leave the origin where it is, so orbits go around it or away from it: what is seen
    from outside is the side away from the origin.
    """
    ax.view_init(elev=28, azim=float(np.degrees(np.arctan2(*prototype[1::-1]))) + 20)
    # By depth, matplotlib would hide points behind the transparent surface that they lie on.
    ax.computed_zorder = False
    ax.locator_params(nbins=5)


def in_view(places: Array, seen: Array) -> Array:
    """Places, NaN where so far away that the vectors would be a dot beside them."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    room = _VIEW * float((high - low).max())
    outside = ((places < low - room) | (places > high + room)).any(axis=1)
    return np.where(outside[:, np.newaxis], np.nan, places)


def equal_sides(ax: Any, drawn: Array) -> None:
    """Limits around all that is drawn, NaN left out, a unit as long in every direction."""
    low, high = np.nanmin(drawn, axis=0), np.nanmax(drawn, axis=0)
    half = 0.54 * float((high - low).max()) or 1.0
    middle = (low + high) / 2
    setters = (ax.set_xlim, ax.set_ylim, getattr(ax, "set_zlim", None))
    for set_limits, centre in zip(setters, middle, strict=False):
        if set_limits is not None:
            set_limits(centre - half, centre + half)
    if drawn.shape[1] == 3:
        ax.set_box_aspect((1, 1, 1))
    else:
        ax.set_aspect("equal")


def draw_field(ax: Any, places: Array, directions: Array, j: int) -> None:
    """Arrows of the plane, those of mean length as long as half the step between places."""
    lengths = np.hypot(*directions.T)  # does not overflow where squares would
    step = float(np.ptp(places, axis=0).max()) / max(np.sqrt(len(places)) - 1, 1)
    scale = float(lengths.mean()) / (0.6 * step) or 1.0
    look: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": scale, "width": 0.004}
    ax.quiver(*places.T, *directions.T, color=curve_color(j), alpha=0.8, zorder=1, **look)


def draw_tiles(ax: Any, tiles: list[tuple[Array, str, bool]]) -> None:
    """Images side by side, each with its name; True marks one that shows change, in two colours.

    Images share one grey scale, so that one can see which are brighter; change has a scale of its
    own, white where there is none.
    """
    views = [image for image, _, change in tiles if not change]
    low, high = min(map(np.min, views)), max(map(np.max, views))
    height, width = tiles[0][0].shape
    for k, (image, name, change) in enumerate(tiles):
        left = 1.08 * k * width
        most = float(np.abs(image).max()) or 1.0
        look = {"cmap": "RdBu_r", "vmin": -most, "vmax": most} if change else _grey(low, high)
        ax.imshow(image, extent=(left, left + width, height, 0), **look)
        ax.text(left + width / 2, -0.05 * height, name, ha="center", va="bottom", fontsize=9)
    ax.set_xlim(-0.04 * width, (1.08 * len(tiles) - 0.04) * width)
    ax.set_ylim(1.03 * height, -0.25 * height)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _grey(low: float, high: float) -> dict[str, Any]:
    return {"cmap": "gray_r", "vmin": low, "vmax": high}
