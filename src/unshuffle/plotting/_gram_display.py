"""GramDisplay: similarities between sets as a heat map with similar sets side by side."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import as_array
from unshuffle._core.grams import check_gram
from unshuffle.layout import GridLayout
from unshuffle.plotting._display import Display, check_item_labels, label_colors

Gram = NDArray[np.float64]
# Labels in a legend, at most.
_MAX_LABELS = 20
_STRIP, _GAP = 0.035, 0.012


@dataclass(eq=False, repr=False)
class GramDisplay(Display):
    """Kernel between all pairs of sets, as a heat map.

    Kernelized sorting matches the sets to positions on a line and so puts similar sets side by
    side: groups show as blocks on the diagonal. Colored strips along the edges show the labels of
    the sets, if given. The order does not use them.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Similarities, with the sets in the order given.
    order : ndarray of shape (n,)
        Set in each row of the heat map, from the top.
    labels : ndarray of shape (n,) or None, default=None
        Label of each set, in the order given.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was last drawn.

    Notes
    -----
    Memory grows with n^2. Finding an order of 1,000 sets takes one to two seconds.

    Examples
    --------
    >>> from unshuffle.datasets import digit_sets
    >>> from unshuffle.kernels import MeanMapKernel
    >>> from unshuffle.plotting import GramDisplay
    >>> sets, labels = digit_sets(20, n_points=30)
    >>> display = GramDisplay.from_estimator(MeanMapKernel(), sets, labels)
    >>> display.order.shape
    (20,)
    """

    gram: Gram
    order: NDArray[np.intp]
    labels: NDArray[Any] | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, labels: ArrayLike | None = None) -> Self:
        """Display of a set kernel between sets.

        Parameters
        ----------
        estimator : set kernel
            Such as `MeanMapKernel`, fitted or not. One that is not fitted takes its parameters
            from these sets. It is not changed.
        X : list of array of shape (n_i, n_features), or 3-D array
            Sets to compare with each other.
        labels : array-like of shape (n,) or None, default=None
            Label of each set.

        Returns
        -------
        display : GramDisplay
            Ready to `plot`.
        """
        if not callable(getattr(type(estimator), "gram", None)):
            raise TypeError(
                f"`estimator` is a {type(estimator).__name__}, which has no method `gram`. Pass "
                "a kernel between sets, such as unshuffle.kernels.MeanMapKernel()."
            )
        return cls.from_predictions(estimator.gram(X), labels)

    @classmethod
    def from_predictions(
        cls, K: ArrayLike, labels: ArrayLike | None = None, *, order: ArrayLike | None = None
    ) -> Self:
        """Display of any Gram matrix.

        Parameters
        ----------
        K : array-like of shape (n, n)
            Similarities between all pairs, symmetric.
        labels : array-like of shape (n,) or None, default=None
            Label of each item.
        order : array-like of shape (n,) or None, default=None
            Item in each row. None finds an order that puts similar items side by side.

        Returns
        -------
        display : GramDisplay
            Ready to `plot`.
        """
        gram = check_gram(K, "K")
        checked = check_item_labels(labels, len(gram))
        if order is None:
            return cls(gram, line_order(gram), checked)
        rows = as_array(order, "`order`")
        whole = rows.shape == (len(gram),) and rows.dtype.kind in "iu"
        if not whole or not np.array_equal(np.sort(rows), np.arange(len(gram))):
            raise ValueError(
                f"`order` must hold each number from 0 to {len(gram) - 1} once, got shape "
                f"{rows.shape} and dtype {rows.dtype}. Pass order=None to find an order."
            )
        return cls(gram, rows.astype(np.intp), checked)

    def plot(self, ax: Any = None, *, cmap: str = "YlGnBu_r", legend: bool = True) -> Self:
        """Draw the heat map, with strips of colors for the labels.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        cmap : str, default="YlGnBu_r"
            Name of a matplotlib color map. It spans the 1st to the 99th percentile of the
            similarities between different sets.
        legend : bool, default=True
            Add a legend if there are at most twenty labels.

        Returns
        -------
        display : GramDisplay
            Itself.
        """
        ax = self._take_axes(ax, (5.6 if self.labels is None else 6.4, 4.8))
        low, high = _limits(self.gram)
        look = {"cmap": cmap, "vmin": low, "vmax": high, "interpolation": "nearest"}
        image = ax.imshow(self.gram[np.ix_(self.order, self.order)], extent=(0, 1, 0, 1), **look)
        self._add_colorbar(image, "similarity", shrink=0.8, pad=0.02, aspect=30)
        edge = 0.0 if self.labels is None else _STRIP + _GAP
        if self.labels is not None:
            colors, named = label_colors(self.labels)
            strip = colors[self.order]
            style = {"interpolation": "nearest", "aspect": "auto"}
            ax.imshow(strip[:, None], extent=(-edge, -_GAP, 0, 1), **style)
            ax.imshow(strip[None], extent=(0, 1, 1 + _GAP, 1 + edge), **style)
            if legend and len(named) <= _MAX_LABELS:
                place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.01), "frameon": False}
                space = {"handlelength": 0.9, "handletextpad": 0.4, "columnspacing": 1.1}
                ax.legend(handles=named, ncols=min(len(named), 10), **place, **space)
        self._show((-edge - 0.005, 1.005), (-0.005, 1 + edge + 0.005))
        return self


def line_order(gram: Gram) -> NDArray[np.intp]:
    """Order of the items when kernelized sorting matches them to positions on a line."""
    n = len(gram)
    if n < 3 or np.ptp(gram) == 0:
        return np.arange(n)
    layout = GridLayout(shape=(1, n), kernel="precomputed", quality="best", random_state=0)
    order = layout.fit(gram).grid_.ravel()
    # A line has no direction: the end with the lower index comes first.
    return order if order[0] < order[-1] else order[::-1]


def _limits(gram: Gram) -> tuple[float, float]:
    apart = gram[~np.eye(len(gram), dtype=bool)]
    if not apart.size:
        return float(gram.min()) - 0.5, float(gram.max()) + 0.5
    low, high = np.quantile(apart, [0.01, 0.99])
    return (float(low), float(high)) if high > low else (float(low) - 0.5, float(low) + 0.5)
