"""Gaussian mixtures of sets, drawn over their points."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._bags import Bags
from unshuffle._parameters import check_count
from unshuffle.plotting._alignment_drawing import point_colors
from unshuffle.plotting._checks import (
    check_drawn_columns,
    check_item_labels,
    check_mixture,
    check_planar,
    check_same_number,
    check_set_mixtures,
)
from unshuffle.plotting._drawing import axes_or_new, own
from unshuffle.plotting._panels import Panels

Points = NDArray[np.float64]
Mixture = tuple[Points, Points, Points]
# Standard deviations at which ellipses are drawn.
_RINGS = (2.0, 1.0)
_CIRCLE = np.stack([f(np.linspace(0, 2 * np.pi, 73)) for f in (np.cos, np.sin)])


class MixtureDisplay:
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

    def __init__(
        self, sets: list[Points], mixtures: list[Mixture], labels: NDArray[Any] | None = None
    ) -> None:
        self.sets = own(sets)
        self.mixtures = own(mixtures)
        self.labels = own(labels)

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
        check_set_mixtures(estimator)
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
        check_same_number(len(mixtures), len(given), "mixtures")
        found = [check_mixture(each, given.width, i) for i, each in enumerate(mixtures)]
        kinds = None if labels is None else check_item_labels(labels, len(given))
        return cls(list(given), found, kinds)

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
        if n_columns is not None:
            n_columns = check_count(n_columns, "n_columns")
        chosen = list(check_drawn_columns(columns, self.sets[0].shape[1], allowed=(2,)))
        sets = [points[:, chosen] for points in self.sets[:n_sets]]
        rings = [_rings(mixture, chosen) for mixture in self.mixtures[:n_sets]]
        everything = np.concatenate([*sets, *(ring.reshape(-1, 2) for ring in rings)])
        titled = self.labels is not None
        panels = Panels.around(everything, n_sets, n_columns=n_columns, titled=titled)
        self.ax_ = axes_or_new(ax, panels.inches)
        self.figure_ = self.ax_.figure
        for i, (points, ring) in enumerate(zip(sets, rings, strict=True)):
            size = float(np.clip(500 / len(points), 1.5, 12))
            placed = panels.place(points, i)
            panels.frame(self.ax_, i)
            self.ax_.scatter(*placed.T, c="0.25", s=size, linewidths=0, zorder=2)
            self._draw_ellipses(panels, ring, i, chosen)
            if self.labels is not None:
                panels.title(self.ax_, i, str(self.labels[i]))
        panels.finish(self.ax_)
        return self

    def _draw_ellipses(self, panels: Panels, rings: Points, i: int, chosen: list[int]) -> None:
        from matplotlib.collections import PolyCollection

        weights, means, _ = self.mixtures[i]
        colors = point_colors(means[:, chosen])
        shares = weights / weights.max()
        for k in range(len(_RINGS)):
            outlines = [panels.place(each[k], i) for each in rings]
            faces = np.column_stack([colors, 0.06 + 0.22 * shares])
            edges = np.column_stack([colors, 0.25 + 0.65 * shares])
            self.ax_.add_collection(
                PolyCollection(
                    outlines, facecolors=faces, edgecolors=edges, linewidths=0.9, zorder=1
                )
            )


def _rings(mixture: Mixture, columns: list[int]) -> Points:
    """Ellipses of each component in two columns, shape (m, n_rings, n_corners, 2)."""
    _, means, covariances = mixture
    values, vectors = np.linalg.eigh(covariances[:, columns][:, :, columns])
    axes = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    shapes = np.einsum("mij,jc->mci", axes, _CIRCLE)
    radii = np.array(_RINGS)[None, :, None, None]
    return means[:, columns][:, None, None, :] + radii * shapes[:, None]
