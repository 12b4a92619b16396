"""MixtureDisplay: sets of points drawn with the mixtures that describe them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import as_numbers, check_finite
from unshuffle._core.bags import Bags
from unshuffle._core.parameters import check_count
from unshuffle._run.types import Points
from unshuffle.plotting._display import Display, check_item_labels, check_planar, point_colors
from unshuffle.plotting._panels import Panels, check_columns

Mixture = tuple[Points, Points, Points]
# Standard deviations at which ellipses are drawn.
_RADII = (2.0, 1.0)
_CIRCLE = np.stack([f(np.linspace(0, 2 * np.pi, 73)) for f in (np.cos, np.sin)])


@dataclass(eq=False, repr=False)
class MixtureDisplay(Display):
    """Sets of points with the mixtures that describe them.

    Each component is drawn as two ellipses, at one and two standard deviations. Components with
    larger weights are more opaque.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    sets : list of ndarray of shape (n_i, n_features)
        Points of each set.
    mixtures : list of (weights, means, covariances)
        Arrays of shapes (m,), (m, n_features) and (m, n_features, n_features) for m components.
    labels : ndarray of shape (n_sets,) or None, default=None
        Title of each set.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was last drawn.

    Examples
    --------
    >>> from unshuffle.datasets import digit_sets
    >>> from unshuffle.kernels import ExpectedLikelihoodKernel
    >>> from unshuffle.plotting import MixtureDisplay
    >>> sets, labels = digit_sets(4, n_points=60)
    >>> kernel = ExpectedLikelihoodKernel(3, random_state=0).fit(sets)
    >>> display = MixtureDisplay.from_estimator(kernel, sets, labels)
    >>> len(display.mixtures)
    4
    """

    sets: list[Points]
    mixtures: list[Mixture]
    labels: NDArray[Any] | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, labels: ArrayLike | None = None) -> Self:
        """Display of the mixtures that a fitted kernel describes sets by.

        Parameters
        ----------
        estimator : ExpectedLikelihoodKernel or BhattacharyyaKernel
            Fitted, in input space (base_kernel=None).
        X : list of array of shape (n_i, n_features), or 3-D array
            Sets, fitted or new. Pass a single one as [points].
        labels : array-like of shape (n_sets,) or None, default=None
            Title of each set.

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
        return cls.from_predictions(X, estimator.mixtures(X), labels)

    @classmethod
    def from_predictions(
        cls, sets: Any, mixtures: Sequence[Any], labels: ArrayLike | None = None
    ) -> Self:
        """Display of any sets and mixtures.

        Parameters
        ----------
        sets : list of array of shape (n_i, n_features), or 3-D array
            Sets of points. Pass a single one as [points].
        mixtures : list of (weights, means, covariances)
            One for each set, with full covariances.
        labels : array-like of shape (n_sets,) or None, default=None
            Title of each set.

        Returns
        -------
        display : MixtureDisplay
            Ready to `plot`.
        """
        given = Bags.of(sets, name="`sets`")
        check_planar(given.width)
        if not isinstance(mixtures, Sequence):
            raise TypeError(f"`mixtures` must be a list, got {type(mixtures).__name__}.")
        if len(mixtures) != len(given):
            raise ValueError(
                f"`mixtures` has {len(mixtures)} entries for {len(given)} sets. Pass one for each "
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
    ) -> Self:
        """Draw the first sets side by side, each with the ellipses of its mixture.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        n_sets : int, default=8
            Number of sets to draw, at most. More are drawn smaller.
        n_columns : int or None, default=None
            Panels in a row. None chooses a number that suits them.
        columns : sequence of two int, default=(0, 1)
            Coordinates to draw. The ellipses show the marginal mixture of these two.

        Returns
        -------
        display : MixtureDisplay
            Itself.
        """
        n_sets = min(check_count(n_sets, "n_sets"), len(self.sets))
        chosen = check_columns(columns, self.sets[0].shape[1], allowed=(2,))
        sets = [points[:, chosen] for points in self.sets[:n_sets]]
        ellipses = [_ellipses(mixture, chosen) for mixture in self.mixtures[:n_sets]]
        everything = np.concatenate([*sets, *(each.reshape(-1, 2) for each in ellipses)])
        panels = Panels.around(everything, n_sets, n_columns, titled=self.labels is not None)
        ax = self._take_axes(ax, panels.inches)
        for i, (points, outlines) in enumerate(zip(sets, ellipses, strict=True)):
            size = float(np.clip(500 / len(points), 1.5, 12))
            panels.frame(ax, i)
            ax.scatter(*panels.place(points, i).T, c="0.25", s=size, linewidths=0, zorder=2)
            self._draw_ellipses(panels.place(outlines, i), i, chosen)
            if self.labels is not None:
                panels.title(ax, i, str(self.labels[i]))
        self._show(*panels.limits)
        return self

    def _draw_ellipses(self, outlines: Points, i: int, chosen: list[int]) -> None:
        from matplotlib.collections import PolyCollection

        weights, means, _ = self.mixtures[i]
        colors = point_colors(means[:, chosen])
        shares = weights / weights.max()
        faces = np.column_stack([colors, 0.06 + 0.22 * shares])
        edges = np.column_stack([colors, 0.25 + 0.65 * shares])
        look: dict[str, Any] = {"facecolors": faces, "edgecolors": edges, "linewidths": 0.9}
        for k in range(len(_RADII)):
            self.ax_.add_collection(PolyCollection(list(outlines[:, k]), zorder=1, **look))


def _ellipses(mixture: Mixture, columns: list[int]) -> Points:
    """Ellipses of each component in two columns, shape (m, n_radii, n_corners, 2)."""
    _, means, covariances = mixture
    values, vectors = np.linalg.eigh(covariances[:, columns][:, :, columns])
    axes = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    shapes = np.einsum("mij,jc->mci", axes, _CIRCLE)
    radii = np.array(_RADII)[None, :, None, None]
    return means[:, columns][:, None, None, :] + radii * shapes[:, None]


def _check_mixture(mixture: Any, width: int, i: int) -> Mixture:
    """Weights, means and covariances of one mixture of points with `width` columns."""
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
            f"Mixture {i} has weights from {weights.min():.3g} to {weights.max():.3g}. Pass "
            "weights that are at least 0, with one above 0."
        )
    return weights, means, covariances
