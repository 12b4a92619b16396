"""Several sets side by side on one pair of axes, all in the same frame."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

# A frame more stretched than this has columns of different units: each gets a scale of its own.
_MOST_STRETCHED = 4.0
_GAP = 0.12
_TITLE = 0.14
# Few panels are drawn larger, many no smaller than can be made out.
_INCHES, _LEAST, _MOST = 8.0, 1.9, 4.0
# Seen from above and from the side: depth is drawn as a slant.
_AZIMUTH, _ELEVATION = np.radians(-60.0), np.radians(25.0)


@dataclass(frozen=True)
class Panels:
    """Places for small pictures, row after row from the top left.

    Attributes
    ----------
    middle, scale : ndarray of shape (2,)
        Of the frame that all pictures share; it is drawn at most one wide and one high.
    size : ndarray of shape (2,)
        Width and height of a picture, without the gap to the next.
    n_panels, n_columns : int
        Number of pictures, in all and in a row.
    titled : bool
        Whether there is room for words above them.
    """

    middle: Points
    scale: Points
    size: Points
    n_panels: int
    n_columns: int
    titled: bool

    @classmethod
    def around(
        cls, points: Points, n_panels: int, *, n_columns: int | None = None, titled: bool = True
    ) -> "Panels":
        """Panels with room for all these points of the plane in each."""
        low, high = points.min(axis=0), points.max(axis=0)
        extent = np.maximum(high - low, 1e-9 * max(float(np.abs(points).max()), 1e-9))
        if extent.max() <= _MOST_STRETCHED * extent.min():
            scale = np.full(2, extent.max())
        else:
            scale = extent
        wanted = n_columns or min(n_panels, max(4, int(np.ceil(np.sqrt(2 * n_panels)))))
        n_columns = min(wanted, n_panels)
        return cls((low + high) / 2, scale, extent / scale, n_panels, n_columns, titled)

    @property
    def inches(self) -> tuple[float, float]:
        """Size of a figure for them."""
        across, up = self._step
        unit = float(np.clip(_INCHES / self.n_columns, _LEAST, _MOST))
        n_rows = -(-self.n_panels // self.n_columns)
        return unit * across * self.n_columns, unit * up * n_rows

    def place(self, points: Points, i: int) -> Points:
        """Points where panel i is."""
        row, column = divmod(i, self.n_columns)
        across, up = self._step
        return (points - self.middle) / self.scale + np.array([column * across, -row * up])

    def frame(self, ax: Any, i: int) -> None:
        """Draw the edges of panel i."""
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]) / 2
        edges = self.place(self.middle + corners * (self.size + 0.6 * _GAP) * self.scale, i)
        ax.plot(*edges.T, color="0.85", linewidth=0.8, zorder=0)

    def title(self, ax: Any, i: int, text: str) -> None:
        """Write above panel i."""
        row, column = divmod(i, self.n_columns)
        across, up = self._step
        y = -row * up + self.size[1] / 2 + _GAP / 2
        ax.text(column * across, y, text, ha="center", va="bottom", fontsize=9)

    def finish(self, ax: Any) -> None:
        """Show all panels and nothing else."""
        across, up = self._step
        n_rows = -(-self.n_panels // self.n_columns)
        ax.set_aspect("equal")
        ax.set_xlim(-across / 2, (self.n_columns - 0.5) * across)
        ax.set_ylim(-(n_rows - 1) * up - self.size[1] / 2 - _GAP / 2, self._top)
        ax.set_axis_off()

    @property
    def _step(self) -> tuple[float, float]:
        return float(self.size[0] + _GAP), float(self.size[1] + _GAP + _TITLE * self.titled)

    @property
    def _top(self) -> float:
        return float(self.size[1] / 2 + _GAP / 2 + _TITLE * self.titled)


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
