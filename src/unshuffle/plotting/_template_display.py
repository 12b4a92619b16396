"""TemplateDisplay: sets of points drawn in the order of a template."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import as_numbers, check_finite
from unshuffle._core.bags import Bags
from unshuffle._core.parameters import check_count
from unshuffle._run.types import Points
from unshuffle.plotting._display import (
    Display,
    check_item_labels,
    check_orders,
    point_colors,
    reorder,
)
from unshuffle.plotting._panels import Panels, check_columns

# View of points in space, from above and the side.
_AZIMUTH, _ELEVATION = np.radians(-60.0), np.radians(25.0)


@dataclass(eq=False, repr=False)
class TemplateDisplay(Display):
    """Sets in the order of a template.

    Each template point has a color, by its direction from the middle. The point of a set that is
    matched to it has the same color and is joined to it by a line. A set agrees with the template
    if its colors are arranged alike and its lines are short.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    template : ndarray of shape (n_points, n_features)
        The template points.
    sets : ndarray of shape (n_sets, n_points, n_features)
        Sets in the order of the template; NaN where a template point is unmatched.
    labels : ndarray of shape (n_sets,) or None, default=None
        Title of each set.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was last drawn.

    Examples
    --------
    >>> from unshuffle import MinimumVolumePCA
    >>> from unshuffle.datasets import digit_sets
    >>> from unshuffle.plotting import TemplateDisplay
    >>> sets, labels = digit_sets(20, n_points=30)
    >>> aligned = MinimumVolumePCA().fit(sets)
    >>> display = TemplateDisplay.from_estimator(aligned, sets[:4], labels[:4])
    >>> display.sets.shape
    (4, 30, 2)
    """

    template: Points
    sets: Points
    labels: NDArray[Any] | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, labels: ArrayLike | None = None) -> Self:
        """Display of sets that a fitted estimator aligns.

        Parameters
        ----------
        estimator : SetAligner, PermutationInvariantSVC or MinimumVolumePCA
            Fitted. The template of a `MinimumVolumePCA` is the mean of the ordered bags.
        X : list of array of shape (n_i, n_features), or 3-D array
            Sets to align, fitted or new.
        labels : array-like of shape (n_sets,) or None, default=None
            Title of each set.

        Returns
        -------
        display : TemplateDisplay
            Ready to `plot`.
        """
        if not callable(getattr(estimator, "align", None)):
            raise TypeError(
                f"`estimator` is a {type(estimator).__name__}, which has no method `align`. Pass "
                "a fitted SetAligner, PermutationInvariantSVC or MinimumVolumePCA."
            )
        templates = getattr(estimator, "templates_", None)
        if templates is not None and len(templates) > 1:
            raise ValueError(
                f"`estimator` has {len(templates)} templates, one for each class, since "
                "margin_weight > 0. Pass one of them to from_predictions, with its row of "
                "`permutations_`."
            )
        name = "mean_" if hasattr(estimator, "mean_") else "template_"
        check_is_fitted(estimator, name if templates is None else "templates_")
        template = getattr(estimator, name) if templates is None else templates[0]
        return cls.from_predictions(template, X, estimator.align(X), labels)

    @classmethod
    def from_predictions(
        cls,
        template: ArrayLike,
        sets: Any,
        permutations: ArrayLike,
        labels: ArrayLike | None = None,
    ) -> Self:
        """Display of any template and sets that are ordered like it.

        Parameters
        ----------
        template : array-like of shape (n_points, n_features)
            The template points.
        sets : list of array of shape (n_i, n_features), or 3-D array
            Sets of points.
        permutations : array-like of shape (n_sets, n_points)
            ``sets[i][permutations[i]]`` is set i in the order of the template; -1 is unmatched.
        labels : array-like of shape (n_sets,) or None, default=None
            Title of each set.

        Returns
        -------
        display : TemplateDisplay
            Ready to `plot`.
        """
        given = Bags.of(sets, name="`sets`")
        orders = check_orders(permutations, given.sizes)
        shape, points = (orders.shape[1], given.width), as_numbers(template, "`template`")
        if points.shape != shape:
            raise ValueError(
                f"`template` has shape {points.shape}; sets of {shape[0]} ordered points with "
                f"{shape[1]} columns need {shape}. Pass `template_` of the estimator that aligned "
                "them."
            )
        check_finite(points, "template")
        return cls(points, reorder(given, orders), check_item_labels(labels, len(given)))

    def plot(
        self,
        ax: Any = None,
        *,
        n_sets: int = 7,
        n_columns: int | None = None,
        columns: Sequence[int] | None = None,
    ) -> Self:
        """Draw the template and the first sets, with a line from each template point.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        n_sets : int, default=7
            Number of sets to draw, at most. More are drawn smaller.
        n_columns : int or None, default=None
            Panels in a row. None chooses a number that suits them.
        columns : sequence of two or three int, or None, default=None
            Coordinates to draw; three are drawn in perspective. None draws all coordinates of
            points with two or three, otherwise the first two. Points with one coordinate are
            drawn as profiles: their values in ascending order of the template.

        Returns
        -------
        display : TemplateDisplay
            Itself.
        """
        n_sets = min(check_count(n_sets, "n_sets"), len(self.sets))
        template, sets = self._in_plane(columns, n_sets)
        everything = np.concatenate([template, *sets])
        everything = everything[np.isfinite(everything).all(axis=1)]
        panels = Panels.around(everything, n_sets + 1, n_columns)
        ax = self._take_axes(ax, panels.inches)
        colors = self._colors(template)
        size = float(np.clip(900 / len(template), 4, 30))
        ax.scatter(*panels.place(template, 0).T, c=colors, s=1.4 * size, linewidths=0, zorder=3)
        panels.title(ax, 0, "template")
        for i, points in enumerate(sets, start=1):
            self._draw_set(panels.place(template, i), panels.place(points, i), colors, size)
            if self.labels is not None:
                panels.title(ax, i, str(self.labels[i - 1]))
        self._show(*panels.limits)
        return self

    def _in_plane(self, columns: Sequence[int] | None, n_sets: int) -> tuple[Points, list[Points]]:
        """Template and sets as points of the plane."""
        width = self.template.shape[1]
        sets = self.sets[:n_sets]
        if width == 1:
            rank = np.argsort(np.argsort(self.template[:, 0], kind="stable"), kind="stable")
            place = np.broadcast_to(rank[:, None], self.template.shape)
            profiles = [np.hstack([place, each]) for each in (self.template, *sets)]
            return profiles[0], profiles[1:]
        columns = range(width if width == 3 else 2) if columns is None else columns
        chosen = check_columns(columns, width, allowed=(2, 3))
        return _project(self.template[:, chosen]), list(_project(sets[..., chosen]))

    def _colors(self, template: Points) -> Points:
        """A color for each template point."""
        if self.template.shape[1] > 1:
            return point_colors(template)
        from matplotlib import colormaps

        return np.asarray(colormaps["viridis"](0.9 * template[:, 0] / max(len(template) - 1, 1)))

    def _draw_set(self, template: Points, points: Points, colors: Points, size: float) -> None:
        """Draw the points of a set, each with a line from its template point."""
        from matplotlib.collections import LineCollection

        matched = np.isfinite(points).all(axis=1)
        lines = np.stack([template[matched], points[matched]], axis=1)
        look = {"linewidths": 0.9, "alpha": 0.7, "zorder": 2}
        self.ax_.add_collection(LineCollection(list(lines), colors=colors[matched], **look))
        self.ax_.scatter(*template.T, c="0.82", s=0.5 * size, linewidths=0, zorder=1)
        self.ax_.scatter(*points[matched].T, c=colors[matched], s=size, linewidths=0, zorder=3)


def _project(points: Points) -> Points:
    """Points of the plane as they are, those in space seen from above and the side."""
    if points.shape[-1] == 2:
        return points
    turn = np.array([np.cos(_AZIMUTH), np.sin(_AZIMUTH)])
    x, y, z = np.moveaxis(points, -1, 0)
    across = -turn[1] * x + turn[0] * y
    depth = turn[0] * x + turn[1] * y
    return np.stack([across, np.cos(_ELEVATION) * z - np.sin(_ELEVATION) * depth], axis=-1)
