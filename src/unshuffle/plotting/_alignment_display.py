"""AlignmentDisplay: bags of points before and after alignment."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.bags import Bags, check_several_bags
from unshuffle._core.parameters import check_count, check_real
from unshuffle.plotting._display import Display, check_orders, check_planar, point_colors, reorder

Stack = NDArray[np.float64]
_BEFORE, _AFTER = "#9a8c78", "#0f6948"


@dataclass(eq=False, repr=False)
class AlignmentDisplay(Display):
    """Bags of points before and after they were put into a common order.

    `plot` compares how many principal components each order needs. `plot_morph` turns one bag
    into another, `plot_correspondence` draws an arrow from each point to its partner, and
    `plot_path` shows the objective after each step of the fit.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    before, after : ndarray of shape (n_bags, n_points, n_features)
        The same points in the order given and in the common order.
    log_volume_path, objective_path : ndarray of shape (n_steps,) or None, default=None
        What the fit minimized, after each step.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was last drawn.

    Notes
    -----
    Spectra are computed from the points themselves, even if the estimator used a kernel. Time
    and memory of a spectrum grow with the square of the number of bags.

    Examples
    --------
    >>> from unshuffle import MinimumVolumePCA
    >>> from unshuffle.datasets import digit_sets
    >>> from unshuffle.plotting import AlignmentDisplay
    >>> bags, labels = digit_sets(20, n_points=30)
    >>> aligned = MinimumVolumePCA().fit(bags)
    >>> before, after = AlignmentDisplay.from_estimator(aligned, bags).components_for(0.9)
    >>> before > after
    True
    """

    before: Stack
    after: Stack
    _: KW_ONLY
    log_volume_path: Stack | None = None
    objective_path: Stack | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any) -> Self:
        """Display of a fitted `MinimumVolumePCA` or `MultiwaySorting`.

        Parameters
        ----------
        estimator : MinimumVolumePCA or MultiwaySorting
            Fitted to `X`.
        X : list of array of shape (n_i, n_features), or 3-D array
            The bags it was fitted to.

        Returns
        -------
        display : AlignmentDisplay
            Ready to `plot`.
        """
        check_is_fitted(estimator, "permutations_")
        names = ("log_volume_path", "objective_path")
        paths = {name: getattr(estimator, f"{name}_", None) for name in names}
        return cls.from_predictions(X, estimator.permutations_, **paths)

    @classmethod
    def from_predictions(
        cls,
        bags: Any,
        permutations: ArrayLike,
        *,
        log_volume_path: ArrayLike | None = None,
        objective_path: ArrayLike | None = None,
    ) -> Self:
        """Display of any alignment.

        Parameters
        ----------
        bags : list of array of shape (n_i, n_features), or 3-D array
            Two or more bags of points.
        permutations : array of int of shape (n_bags, n_points)
            ``bags[i][permutations[i]]`` is bag i in the common order; -1 is a missing point,
            which is drawn at the mean of its partners.
        log_volume_path, objective_path : array of shape (n_steps,) or None, default=None
            What the fit minimized, after each step.

        Returns
        -------
        display : AlignmentDisplay
            Ready to `plot`.
        """
        given = Bags.of(bags, name="`bags`")
        check_several_bags(len(given), "`bags`")
        orders = check_orders(permutations, given.sizes)
        volumes, costs = (
            None if path is None else np.asarray(path, dtype=np.float64)
            for path in (log_volume_path, objective_path)
        )
        before, after = _stacked(given, _as_given(orders)), _stacked(given, orders)
        return cls(before, after, log_volume_path=volumes, objective_path=costs)

    @property
    def spectra(self) -> tuple[Stack, Stack]:
        """Variances along the principal components before and after, largest first."""
        return _spectrum(self.before), _spectrum(self.after)

    def components_for(self, share: float = 0.95) -> tuple[int, int]:
        """Number of components that explain a share of the variance, before and after.

        Parameters
        ----------
        share : float, default=0.95
            From 0 to 1. A larger share needs more components.

        Returns
        -------
        before, after : int
            Alignment should lower the number. Few components alone do not prove a good order:
            look at the morphs too, or at the error on new bags.
        """
        share = check_real(share, "share", above=0, most=1)
        before, after = self.spectra
        return _n_components(before, share), _n_components(after, share)

    def plot(self, ax: Any = None, *, share: float = 0.95) -> Self:
        """Draw the share of variance that the first components explain, before and after.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        share : float, default=0.95
            Share to mark, with the number of components that it needs. Larger shares need more.

        Returns
        -------
        display : AlignmentDisplay
            Itself.
        """
        counts = self.components_for(share)
        ax = self._take_axes(ax, (6.4, 4.0))
        names, colors = ("order as given", "common order"), (_BEFORE, _AFTER)
        for name, color, values, count in zip(names, colors, self.spectra, counts, strict=True):
            held = np.concatenate([[0.0], np.cumsum(values) / (values.sum() or 1.0)])
            label = f"{name}: {count} for {share:.0%}"
            ax.plot(np.arange(len(held)), held, color=color, linewidth=2, label=label)
            ax.plot([count, count], [0, held[count]], color=color, linewidth=1, linestyle=":")
            ax.plot(count, held[count], "o", color=color, markersize=5)
        ax.axhline(share, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        ax.set(xlabel="components", ylabel="share of variation", ylim=(0, 1.02))
        ax.set_xlim(0, min(len(self.before), 1.4 * max(counts) + 2))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="lower right")
        return self

    def plot_morph(
        self, i: int = 0, j: int = 1, ax: Any = None, *, n_frames: int = 7, compare: bool = True
    ) -> Self:
        """Draw one bag turning into another, each point on a straight line to its partner.

        Parameters
        ----------
        i, j : int, default=0 and 1
            First and last bag.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        n_frames : int, default=7
            Number of frames, both ends included. More show smaller steps.
        compare : bool, default=True
            Also draw the morph in the order given, above.

        Returns
        -------
        display : AlignmentDisplay
            Itself. Each point keeps the color of its start. Only the first two coordinates are
            drawn.
        """
        i, j = self._check_pair(i, j)
        n_frames = check_count(n_frames, "n_frames", least=2, most=50)
        rows = [(self.before, "order as given")] if compare else []
        rows.append((self.after, "common order"))
        # A frame that holds both ends also holds everything between them.
        across, up = 1.2 * np.ptp(self.after[[i, j], :, :2], axis=1).max(axis=0).clip(1e-9)
        ax = self._take_axes(ax, (2.1 * n_frames * across / up + 0.4, 2.1 * len(rows)))
        size = float(np.clip(1400 / self.after.shape[1], 3, 40))
        for row, (bags, label) in enumerate(rows):
            colors = point_colors(bags[i])
            for k, t in enumerate(np.linspace(0, 1, n_frames)):
                points = (1 - t) * _center(bags[i]) + t * _center(bags[j])
                placed = points + np.array([k * across, -row * up])
                ax.scatter(*placed.T, c=colors, s=size, linewidths=0)
            if compare:
                ax.text(-0.55 * across, -row * up, label, rotation=90, va="center", ha="right")
        ends = -0.53 * across, (n_frames - 0.47) * across
        self._show(ends, (-(len(rows) - 0.45) * up, 0.55 * up))
        return self

    def plot_correspondence(self, i: int = 0, j: int = 1, ax: Any = None) -> Self:
        """Draw two bags with an arrow from each point of the first to its partner.

        Parameters
        ----------
        i, j : int, default=0 and 1
            First and last bag of the arrows.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : AlignmentDisplay
            Itself. Where adjacent arrows are parallel, neighbors stay together.
        """
        i, j = self._check_pair(i, j)
        ax = self._take_axes(ax, (4.6, 4.6))
        start, end = self.after[i][:, :2], self.after[j][:, :2]
        colors, way = point_colors(start), end - start
        unit: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1}
        arrow = {"width": 0.004, "headwidth": 4, "headlength": 5, "alpha": 0.85, "zorder": 2}
        ax.quiver(*start.T, *way.T, color=colors, **unit, **arrow)
        # Filled points where arrows start, hollow ones where they end.
        ax.scatter(*start.T, c=colors, s=16, linewidths=0, zorder=3)
        ax.scatter(*end.T, facecolors="none", edgecolors="0.35", s=18, linewidths=0.7, zorder=1)
        ax.set_aspect("equal")
        ax.set_axis_off()
        return self

    def plot_path(self, ax: Any = None) -> Self:
        """Draw what the fit minimized after each step: log-volume and total variance.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : AlignmentDisplay
            Itself.
        """
        # The covariance method starts with steps of the mean method, which have no volume.
        volumes = ("log-volume", _AFTER, self.log_volume_path)
        self._draw_paths(ax, volumes, ("objective", _BEFORE, self.objective_path))
        return self

    def _check_pair(self, i: int, j: int) -> tuple[int, int]:
        check_planar(self.after.shape[2])
        most = len(self.after) - 1
        return check_count(i, "i", least=0, most=most), check_count(j, "j", least=0, most=most)


def _as_given(orders: NDArray[np.intp]) -> NDArray[np.intp]:
    """The same points in the order given, missing ones last."""
    last = np.iinfo(np.intp).max
    given = np.sort(np.where(orders < 0, last, orders), axis=1)
    return np.where(given == last, -1, given)


def _stacked(bags: Bags, orders: NDArray[np.intp]) -> Stack:
    """Ordered bags, the mean of its partners in place of a missing point."""
    points = reorder(bags, orders)
    n_present = np.maximum((orders >= 0).sum(axis=0), 1)[:, np.newaxis]
    return np.where(np.isnan(points), np.nansum(points, axis=0) / n_present, points)


def _spectrum(bags: Stack) -> Stack:
    flat = bags.reshape(len(bags), -1)
    flat = flat - flat.mean(axis=0)
    values = np.linalg.eigvalsh(flat @ flat.T / len(flat))[::-1]
    # The last is rounding only, since the mean was subtracted.
    return np.asarray(np.maximum(values[:-1], 0.0))


def _n_components(values: Stack, share: float) -> int:
    total = values.sum()
    if total == 0:
        return 0
    # Rounding must not ask for more components than there are.
    return min(int(np.searchsorted(np.cumsum(values) / total, share) + 1), len(values))


def _center(bag: Stack) -> Stack:
    """Points of the plane about the middle of their bounding box."""
    plane = bag[:, :2]
    return plane - (plane.min(axis=0) + plane.max(axis=0)) / 2
