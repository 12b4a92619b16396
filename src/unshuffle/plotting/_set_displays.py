"""Sets side by side: in the order of a template, or with the mixtures that describe them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unshuffle._arrays import as_numbers, check_finite
from unshuffle._bags import Bags
from unshuffle._parameters import check_count
from unshuffle.plotting._drawing import (
    Display,
    Panels,
    check_item_labels,
    check_orders,
    check_planar,
    in_plane,
    ordered,
    point_colors,
)

Points = NDArray[np.float64]
Mixture = tuple[Points, Points, Points]
# Standard deviations at which ellipses are drawn.
_RINGS = (2.0, 1.0)
_CIRCLE = np.stack([f(np.linspace(0, 2 * np.pi, 73)) for f in (np.cos, np.sin)])


@dataclass(eq=False, repr=False)
class TemplateDisplay(Display):
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

    template: Points
    sets: Points
    labels: NDArray[Any] | None = None

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
        orders = check_orders(permutations, given.sizes)
        shape, slots = (orders.shape[1], given.width), as_numbers(template, "`template`")
        if slots.shape != shape:
            raise ValueError(
                f"`template` has shape {slots.shape}; sets of {shape[0]} ordered points with "
                f"{shape[1]} columns need {shape}. Pass `template_` of the estimator that aligned "
                "them."
            )
        check_finite(slots, "template")
        return cls(slots, ordered(given, orders), check_item_labels(labels, len(given)))

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
        width = self.template.shape[1]
        sets = self.sets[:n_sets]
        if width == 1:
            rank = np.argsort(np.argsort(self.template[:, 0], kind="stable"), kind="stable")
            place = np.broadcast_to(rank[:, None], self.template.shape)
            profiles = [np.hstack([place, each]) for each in (self.template, *sets)]
            return profiles[0], profiles[1:]
        columns = range(width if width == 3 else 2) if columns is None else columns
        chosen = _check_columns(columns, width, allowed=(2, 3))
        return in_plane(self.template, chosen), list(in_plane(sets, chosen))

    def _colors(self, template: Points) -> Points:
        """A colour for each slot."""
        if self.template.shape[1] > 1:
            return point_colors(template)
        from matplotlib import colormaps

        return np.asarray(colormaps["viridis"](0.9 * template[:, 0] / max(len(template) - 1, 1)))

    def _draw_set(self, slots: Points, points: Points, colors: Points, size: float) -> None:
        """The points of a set, each with a line from its slot."""
        from matplotlib.collections import LineCollection

        filled = np.isfinite(points).all(axis=1)
        lines = np.stack([slots[filled], points[filled]], axis=1)
        look = {"linewidths": 0.9, "alpha": 0.7, "zorder": 2}
        self.ax_.add_collection(LineCollection(list(lines), colors=colors[filled], **look))
        self.ax_.scatter(*slots.T, c="0.82", s=0.5 * size, linewidths=0, zorder=1)
        self.ax_.scatter(*points[filled].T, c=colors[filled], s=size, linewidths=0, zorder=3)


@dataclass(eq=False, repr=False)
class MixtureDisplay(Display):
    """Sets of points with the mixtures that describe them.

    Each component is drawn as two ellipses, at one and at two standard deviations, the more opaque
    the larger its share of the points.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    sets : list of ndarray of shape (n_i, n_features)
        Points of each set.
    mixtures : list of (weights, means, covariances)
        Of shapes (m,), (m, n_features) and (m, n_features, n_features) for m components.
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
    >>> from unshuffle.datasets import digit_clouds
    >>> from unshuffle.kernels import ExpectedLikelihoodKernel
    >>> from unshuffle.plotting import MixtureDisplay
    >>> bags, labels = digit_clouds(4, n_points=60)
    >>> kernel = ExpectedLikelihoodKernel(3, random_state=0).fit(bags)
    >>> display = MixtureDisplay.from_estimator(kernel, bags, labels)
    >>> len(display.mixtures)
    4
    """

    sets: list[Points]
    mixtures: list[Mixture]
    labels: NDArray[Any] | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, bags: Any, labels: ArrayLike | None = None
    ) -> "MixtureDisplay":
        """Display of the mixtures by which a fitted kernel describes sets.

        Parameters
        ----------
        estimator : ExpectedLikelihoodKernel or BhattacharyyaKernel
            Fitted, in input space (base_kernel=None).
        bags : list of array of shape (n_i, n_features), or 3-D array
            Sets that were fitted, or new ones; a single one as [bag].
        labels : array-like of shape (n_sets,) or None, default=None
            What to write above each.

        Returns
        -------
        display : MixtureDisplay
            Ready to `plot`.
        """
        if not callable(getattr(estimator, "mixtures", None)):
            raise TypeError(
                f"`estimator` is a {type(estimator).__name__}, which has no method `mixtures`. "
                "Pass a fitted unshuffle.kernels.ExpectedLikelihoodKernel or BhattacharyyaKernel."
            )
        return cls.from_predictions(bags, estimator.mixtures(bags), labels)

    @classmethod
    def from_predictions(
        cls, bags: Any, mixtures: Sequence[Any], labels: ArrayLike | None = None
    ) -> "MixtureDisplay":
        """Display of any sets and mixtures.

        Parameters
        ----------
        bags : list of array of shape (n_i, n_features), or 3-D array
            Sets of points; a single one as [bag].
        mixtures : list of (weights, means, covariances)
            One for each set, with full covariances.
        labels : array-like of shape (n_sets,) or None, default=None
            What to write above each set.

        Returns
        -------
        display : MixtureDisplay
            Ready to `plot`.
        """
        given = Bags.of(bags)
        check_planar(given.width)
        if not isinstance(mixtures, Sequence):
            raise TypeError(f"`mixtures` must be a list, got {type(mixtures).__name__}.")
        if len(mixtures) != len(given):
            raise ValueError(
                f"`mixtures` has {len(mixtures)} entries for {len(given)} sets. Give one for each "
                "set."
            )
        found = [_check_mixture(each, given.width, i) for i, each in enumerate(mixtures)]
        return cls(list(given), found, check_item_labels(labels, len(given)))

    def plot(
        self,
        ax: Any = None,
        *,
        n_sets: int = 8,
        n_columns: int | None = None,
        columns: Sequence[int] = (0, 1),
    ) -> "MixtureDisplay":
        """Draw the first sets side by side, each with the ellipses of its mixture.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        n_sets : int, default=8
            Sets to draw at most, from the first on. More are drawn smaller.
        n_columns : int or None, default=None
            Panels in a row; None chooses by their number.
        columns : sequence of two int, default=(0, 1)
            Coordinates to draw. The ellipses are those of the mixture in these two alone.

        Returns
        -------
        display : MixtureDisplay
            Itself.
        """
        n_sets = min(check_count(n_sets, "n_sets"), len(self.sets))
        chosen = _check_columns(columns, self.sets[0].shape[1], allowed=(2,))
        sets = [points[:, chosen] for points in self.sets[:n_sets]]
        rings = [_rings(mixture, chosen) for mixture in self.mixtures[:n_sets]]
        everything = np.concatenate([*sets, *(ring.reshape(-1, 2) for ring in rings)])
        panels = Panels.around(everything, n_sets, n_columns, titled=self.labels is not None)
        ax = self._take_axes(ax, panels.inches)
        for i, (points, ring) in enumerate(zip(sets, rings, strict=True)):
            size = float(np.clip(500 / len(points), 1.5, 12))
            panels.frame(ax, i)
            ax.scatter(*panels.place(points, i).T, c="0.25", s=size, linewidths=0, zorder=2)
            self._draw_ellipses(panels, ring, i, chosen)
            if self.labels is not None:
                panels.title(ax, i, str(self.labels[i]))
        self._show(*panels.limits)
        return self

    def _draw_ellipses(self, panels: Panels, rings: Points, i: int, chosen: list[int]) -> None:
        from matplotlib.collections import PolyCollection

        weights, means, _ = self.mixtures[i]
        colors = point_colors(means[:, chosen])
        shares = weights / weights.max()
        faces = np.column_stack([colors, 0.06 + 0.22 * shares])
        edges = np.column_stack([colors, 0.25 + 0.65 * shares])
        look: dict[str, Any] = {"facecolors": faces, "edgecolors": edges, "linewidths": 0.9}
        for k in range(len(_RINGS)):
            outlines = [panels.place(each[k], i) for each in rings]
            self.ax_.add_collection(PolyCollection(outlines, zorder=1, **look))


def _rings(mixture: Mixture, columns: list[int]) -> Points:
    """Ellipses of each component in two columns, shape (m, n_rings, n_corners, 2)."""
    _, means, covariances = mixture
    values, vectors = np.linalg.eigh(covariances[:, columns][:, :, columns])
    axes = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    shapes = np.einsum("mij,jc->mci", axes, _CIRCLE)
    radii = np.array(_RINGS)[None, :, None, None]
    return means[:, columns][:, None, None, :] + radii * shapes[:, None]


def _check_mixture(mixture: Any, width: int, i: int) -> Mixture:
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
    parts = {"weights": weights, "means": means, "covariances": covariances}
    for name, array in parts.items():
        check_finite(array.reshape(n, -1), f"{name} of mixture {i}")
    if weights.min() < 0.0 or weights.max() == 0.0:
        raise ValueError(
            f"Mixture {i} has weights from {weights.min():.3g} to {weights.max():.3g}. Weights "
            "are shares: none is below 0, and one at least is above."
        )
    return weights, means, covariances


def _check_columns(columns: Any, width: int, *, allowed: Sequence[int]) -> list[int]:
    """Different columns of a point that are drawn, as many as `allowed` says."""
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
