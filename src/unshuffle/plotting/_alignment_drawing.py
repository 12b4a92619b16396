"""Marks of an alignment: points that keep their colours, and arrows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BEFORE = "#9a8c78"
AFTER = "#0f6948"
Points = NDArray[np.float64]


def point_colors(points: Points) -> NDArray[np.float64]:
    """A colour for each point by its direction from the middle, lighter towards the top."""
    from matplotlib.colors import hsv_to_rgb

    centred = points[:, :2] - points[:, :2].mean(axis=0)
    hue = (np.arctan2(centred[:, 1], centred[:, 0]) / (2 * np.pi)) % 1.0
    height = centred[:, 1] / (np.abs(centred[:, 1]).max() or 1.0)
    shades = np.stack([hue, np.full_like(hue, 0.75), 0.72 + 0.16 * height], axis=1)
    colors: NDArray[np.float64] = hsv_to_rgb(shades)
    return colors


def draw_points(ax: Any, points: Points, colors: NDArray[np.float64]) -> None:
    """Points of one moment, without axes around them."""
    ax.scatter(*points.T, c=colors, s=float(np.clip(1400 / len(points), 3, 40)), linewidths=0)
    ax.set_aspect("equal")
    ax.set_axis_off()


def draw_arrows(ax: Any, start: Points, end: Points, colors: NDArray[np.float64]) -> None:
    """Filled points where arrows start, hollow ones where they end."""
    way = end - start
    ax.quiver(
        *start.T,
        *way.T,
        color=colors,
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.004,
        headwidth=4,
        headlength=5,
        alpha=0.85,
        zorder=2,
    )
    ax.scatter(*start.T, c=colors, s=16, linewidths=0, zorder=3)
    ax.scatter(*end.T, facecolors="none", edgecolors="0.35", s=18, linewidths=0.7, zorder=1)
    ax.set_aspect("equal")
    ax.set_axis_off()
