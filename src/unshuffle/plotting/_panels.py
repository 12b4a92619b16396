"""Panels: places for small pictures side by side on one pair of axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Self

import numpy as np

from unshuffle._core.parameters import check_count
from unshuffle._run.types import Points

# Columns whose ranges differ by more than this factor are scaled separately: their units differ.
_MOST_STRETCHED = 4.0
_GAP, _TITLE = 0.12, 0.14
# Width of all panels, and limits of the width of one, in inches.
_INCHES, _LEAST, _MOST = 8.0, 1.9, 4.0


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
    ) -> Self:
        """Panels that are each large enough for all these points of the plane."""
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
        """Size of a figure for all panels."""
        across, up = float(np.clip(_INCHES / self.n_columns, _LEAST, _MOST)) * self.step
        return across * self.n_columns, up * self.n_rows

    @property
    def limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Limits of the axes, across and up."""
        across, up = self.step
        bottom = -(self.n_rows - 1) * up - self.size[1] / 2 - _GAP / 2
        return (-across / 2, (self.n_columns - 0.5) * across), (bottom, self.top)

    def place(self, points: Points, i: int) -> Points:
        """Points moved into panel i."""
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

    def _middle_of(self, i: int) -> Points:
        row, column = divmod(i, self.n_columns)
        return np.array([column, -row]) * self.step


def check_columns(columns: Any, width: int, *, allowed: Sequence[int]) -> list[int]:
    """Distinct columns of the points, as many as `allowed` says."""
    listed = tuple(columns) if isinstance(columns, Sequence | np.ndarray) else (columns,)
    inside = all(
        isinstance(each, int | np.integer) and not isinstance(each, bool) and 0 <= each < width
        for each in listed
    )
    if not inside or len(listed) not in allowed or len(set(listed)) < len(listed):
        counts = " or ".join(str(each) for each in allowed)
        raise ValueError(
            f"`columns` must be {counts} different columns from 0 to {width - 1}, got {columns!r}."
        )
    return [int(each) for each in listed]
