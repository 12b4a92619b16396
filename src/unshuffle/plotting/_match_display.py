"""MatchDisplay: the pairs of a match, and the kernels of both sides in one order."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import check_vectors
from unshuffle._core.grams import check_gram, check_permutation, count_items, gram_copies
from unshuffle._core.grids import check_sheet_values
from unshuffle._core.parameters import check_kernel_memory
from unshuffle._core.scalings import SCALINGS
from unshuffle._run.types import Floats
from unshuffle.kernels import center, combined_gram, zero_diagonal
from unshuffle.plotting._display import Display

# Low to high confidence, dark enough in the middle for thin lines on white.
_RAMP = ("#b2182b", "#e8803c", "#d9b310", "#5fae7b", "#0f6948")


@dataclass(eq=False, repr=False)
class MatchDisplay(Display):
    """A match of two collections.

    `plot` draws a map of each collection, with similar items close together, and a line from
    each item to its partner. Parallel lines mean that the two maps agree. `plot_kernels` draws
    the two similarity matrices in one order. A correct match shows the same pattern twice.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    gram_x, gram_y : ndarray of shape (n, n) and (m, m)
        Similarities inside each collection.
    permutation : ndarray of shape (n,)
        Item of y matched to each item of X; -1 is unmatched.
    confidence : ndarray of shape (n,) or None, default=None
        Confidence in each pair, from 0 to 1, shown as the color of its line.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was last drawn.

    Notes
    -----
    Memory grows with n² and m², the time of `plot` with n³ and m³.

    Examples
    --------
    >>> from unshuffle import KernelizedSorting
    >>> from unshuffle.datasets import make_paired_views
    >>> from unshuffle.plotting import MatchDisplay
    >>> X, y, truth = make_paired_views(30, random_state=0)
    >>> sorting = KernelizedSorting(random_state=0).fit(X, y)
    >>> display = MatchDisplay.from_estimator(sorting, X, y)
    >>> display.positions_x.shape
    (30, 2)
    """

    gram_x: Floats
    gram_y: Floats
    permutation: NDArray[np.intp]
    confidence: Floats | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any) -> Self:
        """Display of a fitted `KernelizedSorting`.

        Parameters
        ----------
        estimator : KernelizedSorting
            Fitted to X and y.
        X, y : collection
            The collections it was fitted to. Its own kernels compare the items.

        Returns
        -------
        display : MatchDisplay
            Ready to `plot`.
        """
        check_is_fitted(estimator, "permutation_")
        how = {
            "kernel": estimator.kernel_,
            "kernel_y": estimator.kernel_y_,
            "gamma": estimator.gamma,
            "kernel_weights": estimator.kernel_weights,
        }
        n_items, n_fitted = count_items(X, estimator.kernel_), len(estimator.permutation_)
        if n_items != n_fitted:
            raise ValueError(
                f"X has {n_items:,} items, but the estimator was fitted to {n_fitted:,}. Pass the "
                "collections that it was fitted to."
            )
        if estimator.scaling_ != "as given":
            scale = SCALINGS[estimator.scaling_]
            X, y = scale(check_vectors(X, "X")), scale(check_vectors(y, "y"))
        partners, sure = estimator.permutation_, estimator.confidence_
        return cls.from_predictions(X, y, partners, confidence=sure, **how)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        y: Any,
        permutation: ArrayLike,
        *,
        confidence: ArrayLike | None = None,
        kernel: Any = "rbf",
        kernel_y: Any = None,
        gamma: Any = None,
        kernel_weights: ArrayLike | None = None,
    ) -> Self:
        """Display of any match.

        Parameters
        ----------
        X, y : collection
            The items, or Gram matrices with ``kernel="precomputed"``.
        permutation : array of shape (n_X,)
            ``y[permutation[i]]`` is matched to ``X[i]``; -1 is unmatched.
        confidence : array of shape (n_X,) or None, default=None
            Confidence in each pair, from 0 to 1.
        kernel, kernel_y, gamma, kernel_weights : as in KernelizedSorting
            Similarity inside each collection. None for `kernel_y` means `kernel`.

        Returns
        -------
        display : MatchDisplay
            Ready to `plot`.
        """
        second = kernel if kernel_y is None else kernel_y
        largest = max(count_items(X, kernel), count_items(y, second, "y"))
        check_kernel_memory(largest, largest, n_copies=4.0 + gram_copies(second))
        grams = []
        for items, how, name in ((X, kernel, "X"), (y, second, "y")):
            weights = kernel_weights if isinstance(how, list | tuple) else None
            gram = combined_gram(items, how, gamma=gamma, weights=weights, name=name)
            grams.append(check_gram(gram, name))
        gram_x, gram_y = grams
        partners = check_permutation(permutation, len(gram_x), len(gram_y))
        if confidence is not None:
            confidence = check_sheet_values(confidence, len(gram_x), "confidence")
        return cls(gram_x, gram_y, partners, confidence)

    @property
    def positions_x(self) -> Floats:
        """Map of X: the first two kernel principal components, shape (n, 2)."""
        return _map(self.gram_x)

    @property
    def positions_y(self) -> Floats:
        """Map of y, rotated or reflected to lie as close to that of X as the match allows."""
        first, second = _map(self.gram_x), _map(self.gram_y)
        matched = self.permutation >= 0
        if matched.sum() < 2:
            return second
        # Orthogonal Procrustes: a map has no natural orientation.
        u, _, vt = np.linalg.svd(second[self.permutation[matched]].T @ first[matched])
        return second @ u @ vt

    def plot(
        self, ax: Any = None, *, labels: tuple[str, str] = ("X", "y"), max_lines: int = 300
    ) -> Self:
        """Draw both maps side by side, with a line from each item to its partner.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        labels : (str, str), default=("X", "y")
            Names of the collections.
        max_lines : int, default=300
            Number of lines to draw, at most, evenly chosen. With more, lines hide each other.

        Returns
        -------
        display : MatchDisplay
            Itself.
        """
        ax = self._take_axes(ax, (9.0, 3.9))
        left, right = _in_unit_box(self.positions_x), _in_unit_box(self.positions_y)
        right = right + np.array([1.6, 0.0])
        matched = np.flatnonzero(self.permutation >= 0)
        if len(matched) > max_lines:
            matched = matched[np.linspace(0, len(matched) - 1, max_lines).astype(int)]
        self._draw_lines(left[matched], right[self.permutation[matched]], matched)
        n, m = len(left), len(right)
        size = float(np.clip(4000 / max(n, m), 6, 40))
        style = {"s": size, "linewidths": 0.7, "zorder": 3}
        free = ~np.isin(np.arange(m), self.permutation)
        for points, alone in ((left, self.permutation < 0), (right, free)):
            ax.scatter(*points[~alone].T, c="#22333b", edgecolors="white", **style)
            ax.scatter(*points[alone].T, facecolors="white", edgecolors="#22333b", **style)
        for x, label, count in ((0.5, labels[0], n), (2.1, labels[1], m)):
            ax.text(x, 1.08, f"{label} ({count})", ha="center", va="bottom", fontsize=11)
        self._show((-0.06, 2.66), (-0.06, 1.2))
        return self

    def plot_kernels(
        self, ax: Any = None, *, labels: tuple[str, str] = ("X", "y"), cmap: str = "RdBu_r"
    ) -> Self:
        """Draw the two centered similarity matrices in one common order.

        Matched items of X are sorted by their first kernel principal component, and those of y
        like their partners. Similar pictures mean a good match.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        labels : (str, str), default=("X", "y")
            Names of the collections.
        cmap : str, default="RdBu_r"
            Name of a matplotlib color map. Its middle shows average similarity.

        Returns
        -------
        display : MatchDisplay
            Itself.
        """
        n_matched = int(np.count_nonzero(self.permutation >= 0))
        if n_matched < 2:
            count = "None" if n_matched == 0 else "Only one"
            raise ValueError(
                f"{count} of the {self.permutation.size} items of X has a partner, so there is no "
                "common order to draw the kernels in. Raise `unmatched_cost`, or use `plot`, "
                "which also shows unmatched items."
            )
        ax = self._take_axes(ax, (9.0, 4.6))
        order = np.argsort(_map(self.gram_x)[:, 0], kind="stable")
        order = order[self.permutation[order] >= 0]
        pairs = ((self.gram_x, order), (self.gram_y, self.permutation[order]))
        for start, label, (gram, chosen) in zip((0.0, 1.1), labels, pairs, strict=True):
            part = zero_diagonal(center(gram[np.ix_(chosen, chosen)]))
            # A few large values (duplicates) must not make the rest pale.
            limit = float(np.quantile(np.abs(part), 0.98)) or 1.0
            extent = (start, start + 1.0, 0.0, 1.0)
            ax.imshow(part, cmap=cmap, vmin=-limit, vmax=limit, extent=extent)
            ax.text(start + 0.5, 1.03, label, ha="center", va="bottom", fontsize=11)
        self._show((-0.02, 2.12), (-0.02, 1.12))
        return self

    def _draw_lines(self, starts: Floats, ends: Floats, matched: NDArray[np.intp]) -> None:
        from matplotlib.collections import LineCollection
        from matplotlib.colors import LinearSegmentedColormap

        alpha = float(np.clip(60 / max(len(matched), 1), 0.3, 0.8))
        pairs = list(np.stack([starts, ends], axis=1))
        lines = LineCollection(pairs, linewidths=0.9, alpha=alpha, zorder=1)
        if self.confidence is None:
            lines.set_color("#6c757d")
        else:
            cmap = LinearSegmentedColormap.from_list("confidence", _RAMP)
            lines.set(array=self.confidence[matched], cmap=cmap, clim=(0.0, 1.0))
            self._add_colorbar(lines, "confidence", shrink=0.7, pad=0.01).solids.set(alpha=1)
        self.ax_.add_collection(lines)


def _map(gram: Floats) -> Floats:
    """First two kernel principal components, signs fixed by their largest entries."""
    values, vectors = np.linalg.eigh(center(gram))
    positions = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0.0))
    largest = np.take_along_axis(positions, np.abs(positions).argmax(axis=0)[np.newaxis], axis=0)
    return positions * np.where(largest < 0, -1.0, 1.0)


def _in_unit_box(points: Floats) -> Floats:
    low, high = points.min(axis=0), points.max(axis=0)
    # One scale for both directions keeps the shape.
    scale = float((high - low).max()) or 1.0
    return (points - (low + high) / 2) / scale + 0.5
