"""Aligned bags, drawn: how few components they need, how they morph, which point is which."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unshuffle._bags import Bags, check_several_bags
from unshuffle._parameters import check_count, check_real
from unshuffle.plotting._drawing import Display, check_orders, check_planar, ordered, point_colors

Stack = NDArray[np.float64]
_BEFORE, _AFTER = "#9a8c78", "#0f6948"


@dataclass(eq=False, repr=False)
class AlignmentDisplay(Display):
    """Bags of points before and after they were put into a common order.

    `plot` compares how much of their variation few components hold. `plot_morph` turns one bag
    into another, `plot_correspondence` draws an arrow from each point to its partner, and
    `plot_path` shows what the fit lowered, step by step.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    before, after : ndarray of shape (n_bags, n_points, n_features)
        The same points in the order they were given and in the common order.
    log_volume_path, objective_path : ndarray of shape (n_steps,) or None, default=None
        What the fit lowered, after each step.

    Attributes
    ----------
    ax_ : matplotlib Axes
        What was drawn on last.
    figure_ : matplotlib Figure
        The figure it is in.

    Notes
    -----
    Spectra are those of the points as they are, also where the estimator compared them by a
    kernel. Time and memory of a spectrum grow with the square of the number of bags.

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
    def from_estimator(cls, estimator: Any, bags: Any) -> "AlignmentDisplay":
        """Display of a fitted `MinimumVolumePCA` or `MultiwaySorting`.

        Parameters
        ----------
        estimator : MinimumVolumePCA or MultiwaySorting
            Fitted to `bags`.
        bags : list of array of shape (n_i, n_features), or 3-D array
            What it was fitted to.

        Returns
        -------
        display : AlignmentDisplay
            Ready to `plot`.
        """
        check_is_fitted(estimator, "permutations_")
        names = ("log_volume_path", "objective_path")
        paths = {name: getattr(estimator, f"{name}_", None) for name in names}
        return cls.from_predictions(bags, estimator.permutations_, **paths)

    @classmethod
    def from_predictions(
        cls,
        bags: Any,
        permutations: ArrayLike,
        *,
        log_volume_path: ArrayLike | None = None,
        objective_path: ArrayLike | None = None,
    ) -> "AlignmentDisplay":
        """Display of any alignment, wherever it comes from.

        Parameters
        ----------
        bags : list of array of shape (n_i, n_features), or 3-D array
            Bags of points, two or more.
        permutations : array of int of shape (n_bags, n_points)
            ``bags[i][permutations[i]]`` is bag i in the common order; -1 is a missing point,
            which is drawn at the mean of its partners.
        log_volume_path, objective_path : array of shape (n_steps,) or None, default=None
            What the fit lowered, after each step.

        Returns
        -------
        display : AlignmentDisplay
            Ready to `plot`.
        """
        given = Bags.of(bags)
        check_several_bags(len(given), "bags")
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
        """How many components hold a share of the variation, before and after.

        Parameters
        ----------
        share : float, default=0.95
            From 0 to 1. A larger share needs more components.

        Returns
        -------
        before, after : int
            Fewer after is what alignment is for. Not every order with few components is a good
            one, though: look at the morphs too, or at the error on new bags.
        """
        share = check_real(share, "share", above=0, most=1)
        before, after = (_n_components(each, share) for each in self.spectra)
        return before, after

    def plot(self, ax: Any = None, *, share: float = 0.95) -> "AlignmentDisplay":
        """Draw the share of variation that the first components hold, before and after.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        share : float, default=0.95
            Marked, with the number of components that it takes.

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
        self,
        i: int = 0,
        j: int = 1,
        ax: Any = None,
        *,
        n_frames: int = 7,
        compare: bool = True,
    ) -> "AlignmentDisplay":
        """Draw one bag turning into another, each point on a straight line to its partner.

        Parameters
        ----------
        i, j : int, default=0 and 1
            Bags to start from and to end at.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        n_frames : int, default=7
            Moments to draw, both ends included.
        compare : bool, default=True
            Whether the same is drawn above in the order that the points were given in.

        Returns
        -------
        display : AlignmentDisplay
            Itself. A point keeps its colour on the way; colours tell where it started. Of points
            with more than two coordinates the first two are drawn.
        """
        i, j = self._check_pair(i, j)
        n_frames = check_count(n_frames, "n_frames", least=2, most=50)
        rows = [(self.before, "order as given")] if compare else []
        rows.append((self.after, "common order"))
        # A frame has room for both ends, and so for all between.
        across, up = 1.2 * np.ptp(self.after[[i, j], :, :2], axis=1).max(axis=0).clip(1e-9)
        ax = self._take_axes(ax, (2.1 * n_frames * across / up + 0.4, 2.1 * len(rows)))
        size = float(np.clip(1400 / self.after.shape[1], 3, 40))
        for row, (bags, label) in enumerate(rows):
            colors = point_colors(bags[i])
            for k, t in enumerate(np.linspace(0, 1, n_frames)):
                points = (1 - t) * _centred(bags[i]) + t * _centred(bags[j])
                placed = points + np.array([k * across, -row * up])
                ax.scatter(*placed.T, c=colors, s=size, linewidths=0)
            if compare:
                ax.text(-0.55 * across, -row * up, label, rotation=90, va="center", ha="right")
        ends = -0.53 * across, (n_frames - 0.47) * across
        self._show(ends, (-(len(rows) - 0.45) * up, 0.55 * up))
        return self

    def plot_correspondence(self, i: int = 0, j: int = 1, ax: Any = None) -> "AlignmentDisplay":
        """Draw two bags with an arrow from each point of the first to its partner.

        Parameters
        ----------
        i, j : int, default=0 and 1
            Bags that arrows start from and end at.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : AlignmentDisplay
            Itself. Arrows side by side that point the same way: neighbours stay together.
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

    def plot_path(self, ax: Any = None) -> "AlignmentDisplay":
        """Draw what the fit lowered: log-volume and total variance after each step.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : AlignmentDisplay
            Itself.
        """
        volumes = ("log-volume", _AFTER, self.log_volume_path)
        costs = ("objective", _BEFORE, self.objective_path)
        known = [(*name, path) for *name, path in (volumes, costs) if path is not None]
        if not known:
            raise ValueError(
                "There is no path to draw: neither `log_volume_path` nor `objective_path` was "
                "given. Build the display with `from_estimator`, or pass one of them."
            )
        ax = self._take_axes(ax, (6.0, 3.6))
        ax.set_xlabel("step")
        ax.xaxis.get_major_locator().set_params(integer=True)
        # The covariance estimator starts with steps of the mean estimator, of which only the
        # objective is kept: both paths end together.
        n_steps = max(len(path) for *_, path in known)
        for k, (name, color, path) in enumerate(known):
            side = ax if k == 0 else ax.twinx()
            steps = np.arange(n_steps - len(path), n_steps)
            side.plot(steps, path, "o-", color=color, markersize=3.5)
            side.set_ylabel(name, color=color)
            side.spines["top"].set_visible(False)
        return self

    def _check_pair(self, i: int, j: int) -> tuple[int, int]:
        check_planar(self.after.shape[2])
        most = len(self.after) - 1
        return check_count(i, "i", least=0, most=most), check_count(j, "j", least=0, most=most)


def _as_given(orders: NDArray[np.intp]) -> NDArray[np.intp]:
    """The same points in the order of their bags, those that are missing last."""
    last = np.iinfo(np.intp).max
    given = np.sort(np.where(orders < 0, last, orders), axis=1)
    return np.where(given == last, -1, given)


def _stacked(bags: Bags, orders: NDArray[np.intp]) -> Stack:
    """Ordered bags, the mean of its slot in place of a missing point."""
    points = ordered(bags, orders)
    n_present = np.maximum((orders >= 0).sum(axis=0), 1)[:, np.newaxis]
    return np.where(np.isnan(points), np.nansum(points, axis=0) / n_present, points)


def _spectrum(bags: Stack) -> Stack:
    flat = bags.reshape(len(bags), -1)
    flat = flat - flat.mean(axis=0)
    values = np.linalg.eigvalsh(flat @ flat.T / len(flat))[::-1]
    # The last is zero but for rounding: the mean was taken out.
    return np.asarray(np.maximum(values[:-1], 0.0))


def _n_components(values: Stack, share: float) -> int:
    total = values.sum()
    if total == 0:
        return 0
    # Rounding must not ask for a component more than there are.
    return min(int(np.searchsorted(np.cumsum(values) / total, share) + 1), len(values))


def _centred(bag: Stack) -> Stack:
    """In the middle of its frame."""
    plane = bag[:, :2]
    return plane - (plane.min(axis=0) + plane.max(axis=0)) / 2
