"""A template and the sets that were aligned to it, drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unshuffle._bags import Bags
from unshuffle._parameters import check_count
from unshuffle.plotting._alignment_drawing import point_colors
from unshuffle.plotting._checks import (
    check_alignment,
    check_drawn_columns,
    check_item_labels,
    check_set_template,
    check_template,
)
from unshuffle.plotting._drawing import axes_or_new, own
from unshuffle.plotting._panels import Panels, in_plane

Points = NDArray[np.float64]


class TemplateDisplay:
    """Sets in the order of a template.

    Each slot of the template has a colour, by its direction from the middle. In the panels of the
    sets, the point that stands in a slot has its colour, and a line leads to it from the slot:
    colours that lie as in the template, and short lines, mean that the sets agree with it.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    template : ndarray of shape (n_points, n_features)
        The point of each slot.
    sets : ndarray of shape (n_sets, n_points, n_features)
        Sets in the order of the template; NaN where a slot is empty.
    labels : ndarray of shape (n_sets,) or None, default=None
        What is written above each set.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What was drawn on last.
    figure_ : matplotlib Figure
        The figure it is in.

    Examples
    --------
    >>> from unshuffle import MinimumVolumePCA
    >>> from unshuffle.datasets import digit_clouds
    >>> from unshuffle.plotting import TemplateDisplay
    >>> bags, labels = digit_clouds(20, n_points=30)
    >>> aligned = MinimumVolumePCA().fit(bags)
    >>> display = TemplateDisplay.from_estimator(aligned, bags[:4], labels[:4])
    >>> display.sets.shape
    (4, 30, 2)
    """

    def __init__(self, template: Points, sets: Points, labels: NDArray[Any] | None = None) -> None:
        self.template = own(template)
        self.sets = own(sets)
        self.labels = own(labels)

    @classmethod
    def from_estimator(
        cls, estimator: Any, bags: Any, labels: ArrayLike | None = None
    ) -> "TemplateDisplay":
        """Display of sets that a fitted estimator aligns.

        Parameters
        ----------
        estimator : SetAligner, PermutationInvariantSVC or MinimumVolumePCA
            Fitted. Of `MinimumVolumePCA` the mean of the ordered bags is the template.
        bags : list of array of shape (n_i, n_features), or 3-D array
            Sets to align, those that were fitted or new ones.
        labels : array-like of shape (n_sets,) or None, default=None
            What to write above each.

        Returns
        -------
        display : TemplateDisplay
            Ready to `plot`.
        """
        check_set_template(estimator)
        name = "mean_" if hasattr(estimator, "mean_") else "template_"
        check_is_fitted(estimator, name)
        template = getattr(estimator, name)
        return cls.from_predictions(template, bags, estimator.align(bags), labels)

    @classmethod
    def from_predictions(
        cls,
        template: ArrayLike,
        bags: Any,
        permutations: ArrayLike,
        labels: ArrayLike | None = None,
    ) -> "TemplateDisplay":
        """Display of any template and the order of sets that goes with it.

        Parameters
        ----------
        template : array-like of shape (n_points, n_features)
            The point of each slot.
        bags : list of array of shape (n_i, n_features), or 3-D array
            Sets of points.
        permutations : array-like of shape (n_sets, n_points)
            ``bags[i][permutations[i]]`` is set i in the order of the template; -1 is empty.
        labels : array-like of shape (n_sets,) or None, default=None
            What to write above each set.

        Returns
        -------
        display : TemplateDisplay
            Ready to `plot`.
        """
        given = Bags.of(bags)
        orders = check_alignment(permutations, given.sizes)
        slots = check_template(template, given.width, orders.shape[1])
        points = given.points[given.offsets[:-1, None] + np.maximum(orders, 0)]
        sets = np.where((orders >= 0)[:, :, None], points, np.nan)
        kinds = None if labels is None else check_item_labels(labels, len(given))
        return cls(slots, sets, kinds)

    def plot(
        self,
        ax: Any = None,
        *,
        n_sets: int = 7,
        n_columns: int | None = None,
        columns: Sequence[int] | None = None,
    ) -> "TemplateDisplay":
        """Draw the template, and beside it the first sets with lines from slots to points.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        n_sets : int, default=7
            Sets to draw at most, from the first on. More are drawn smaller.
        n_columns : int or None, default=None
            Panels in a row; None chooses by their number.
        columns : sequence of two or three int, or None, default=None
            Coordinates to draw. Three are seen from above and the side. None is all of points with
            two or three, and otherwise the first two. Points of one coordinate are drawn as
            profiles: their values from the smallest slot to the largest.

        Returns
        -------
        display : TemplateDisplay
            Itself.
        """
        n_sets = min(check_count(n_sets, "n_sets"), len(self.sets))
        if n_columns is not None:
            n_columns = check_count(n_columns, "n_columns")
        template, sets = self._in_plane(columns, n_sets)
        everything = np.concatenate([template, *sets])
        everything = everything[np.isfinite(everything).all(axis=1)]
        panels = Panels.around(everything, n_sets + 1, n_columns=n_columns)
        self.ax_ = axes_or_new(ax, panels.inches)
        self.figure_ = self.ax_.figure
        colors = self._colors(template)
        size = float(np.clip(900 / len(template), 4, 30))
        slots = panels.place(template, 0)
        self.ax_.scatter(*slots.T, c=colors, s=1.4 * size, linewidths=0, zorder=3)
        panels.title(self.ax_, 0, "template")
        for i, points in enumerate(sets, start=1):
            self._draw_set(panels.place(template, i), panels.place(points, i), colors, size)
            if self.labels is not None:
                panels.title(self.ax_, i, str(self.labels[i - 1]))
        panels.finish(self.ax_)
        return self

    def _in_plane(self, columns: Sequence[int] | None, n_sets: int) -> tuple[Points, list[Points]]:
        width = self.template.shape[1]
        sets = self.sets[:n_sets]
        if width == 1:
            rank = np.argsort(np.argsort(self.template[:, 0], kind="stable"), kind="stable")
            place = np.broadcast_to(rank[:, None], self.template.shape)
            profiles = [np.hstack([place, each]) for each in (self.template, *sets)]
            return profiles[0], profiles[1:]
        chosen = check_drawn_columns(
            range(width if width == 3 else 2) if columns is None else columns,
            width,
            allowed=(2, 3),
        )
        return in_plane(self.template, chosen), list(in_plane(sets, chosen))

    def _colors(self, template: Points) -> NDArray[np.float64]:
        if self.template.shape[1] > 1:
            return point_colors(template)
        from matplotlib import colormaps

        return np.asarray(colormaps["viridis"](0.9 * template[:, 0] / max(len(template) - 1, 1)))

    def _draw_set(
        self, slots: Points, points: Points, colors: NDArray[np.float64], size: float
    ) -> None:
        from matplotlib.collections import LineCollection

        filled = np.isfinite(points).all(axis=1)
        lines = np.stack([slots[filled], points[filled]], axis=1)
        self.ax_.add_collection(
            LineCollection(list(lines), colors=colors[filled], linewidths=0.9, alpha=0.7, zorder=2)
        )
        self.ax_.scatter(*slots.T, c="0.82", s=0.5 * size, linewidths=0, zorder=1)
        self.ax_.scatter(*points[filled].T, c=colors[filled], s=size, linewidths=0, zorder=3)
