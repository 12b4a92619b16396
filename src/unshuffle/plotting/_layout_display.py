"""LayoutDisplay: the items of a layout in their cells, and their distances to neighbors."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import as_array, as_rows, check_same_items, check_vectors, is_text
from unshuffle._core.grids import (
    check_cell_points,
    check_grid,
    check_images,
    check_points_end,
    pair_distances,
    touching_cells,
)
from unshuffle._core.parameters import check_real
from unshuffle._run.types import Floats
from unshuffle.plotting._display import Display, cell_pictures, check_item_labels, label_colors

_PLAIN, _EMPTY = (0.13, 0.2, 0.23), (0.93, 0.92, 0.9)
_MAX_LABELS = 40  # in a legend
_SIZE = (7.0, 5.6)


@dataclass(eq=False, repr=False)
class LayoutDisplay(Display):
    """A layout on a grid, a mask or points.

    `plot` draws each item in its cell, as a color, a number, a label or a picture.
    `plot_neighbors` shows the distance of each item from its neighbors: dark regions hold
    similar items, bright lines separate different ones.

    Build it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    grid : ndarray of shape (rows, columns), or (n_cells,) with `points`
        Item in each cell; -1 is empty.
    points : ndarray of shape (n_cells, 2) or None, default=None
        Row and column of each cell, for a layout on points.
    wrap : bool, default=False
        Whether opposite edges meet.
    values : ndarray of shape (n_items,) or (n_items, 3), or None, default=None
        A number or a color for each item.
    labels : ndarray of shape (n_items,) or None, default=None
        Label of each item.
    images : ndarray of shape (n_items, height, width, 3) or None, default=None
        Picture of each item.
    X : array of shape (n_items, d) or None, default=None
        Features of the items, for `plot_neighbors`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was last drawn.

    Examples
    --------
    >>> from unshuffle.plotting import LayoutDisplay
    >>> X = [[0.0], [1.0], [5.0], [6.0]]
    >>> display = LayoutDisplay.from_predictions([[0, 1], [2, 3]], values=[0, 1, 5, 6], X=X)
    >>> display.neighbor_distances.tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    grid: NDArray[np.intp]
    _: KW_ONLY
    points: Floats | None = None
    wrap: bool = False
    values: Floats | None = None
    labels: NDArray[Any] | None = None
    images: NDArray[np.uint8] | None = None
    X: Any = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        values: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        images: ArrayLike | None = None,
        X: Any = None,
    ) -> Self:
        """Display of a fitted `GridLayout`.

        Parameters
        ----------
        estimator : GridLayout
            Fitted.
        values, labels, images, X : as in `from_predictions`
            How to show the items, in the order fitted.

        Returns
        -------
        display : LayoutDisplay
            Ready to `plot`.
        """
        check_is_fitted(estimator, "grid_")
        points = estimator._cells.points if estimator.grid_.ndim == 1 else None
        looks = {"values": values, "labels": labels, "images": images}
        return cls.from_predictions(
            estimator.grid_, points=points, wrap=estimator.wrap, X=X, **looks
        )

    @classmethod
    def from_predictions(
        cls,
        grid: ArrayLike,
        *,
        points: ArrayLike | None = None,
        wrap: bool = False,
        values: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        images: ArrayLike | None = None,
        X: Any = None,
    ) -> Self:
        """Display of any layout.

        Parameters
        ----------
        grid : array of int, shape (rows, columns), or (n_cells,) with `points`
            Item in each cell; -1 is empty.
        points : array of shape (n_cells, 2) or None, default=None
            Row and column of each cell, for a layout on points; rows count downward.
        wrap : bool, default=False
            Whether opposite edges meet.
        values : array of shape (n_items,) or (n_items, 3), or None, default=None
            A number for each item, shown by a color map, or its color: red, green and blue
            from 0 to 1 (from 0 to 255 if uint8).
        labels : array of shape (n_items,) or None, default=None
            Label of each item, shown by color with a legend.
        images : array of shape (n_items, height, width, 3) or (n_items, height, width), uint8
            Picture of each item. Pass at most one of `values`, `labels` and `images`. Without
            any of them, all filled cells look alike.
        X : array of shape (n_items, d) or None, default=None
            Features of the items, for `plot_neighbors`.

        Returns
        -------
        display : LayoutDisplay
            Ready to `plot`.
        """
        looks = {"values": values, "labels": labels, "images": images}
        given = [f"`{name}`" for name, look in looks.items() if look is not None]
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} were given, but a cell shows one of them. Draw a second "
                "display for the other."
            )
        if X is not None:
            words = isinstance(X, str) or is_text(X)
            X = check_vectors(X, "X", kernel="linear") if words else as_rows(X, "X")
        n_axes = 2 if points is None else 1
        if X is None:
            n_items = max(int(check_grid(grid, 2**62, n_axes=n_axes).max()), 0) + 1
        else:
            n_items = X.shape[0]
        for name, look in looks.items():
            if look is not None:
                n_items = len(look if isinstance(look, list | tuple) else np.atleast_1d(look))
                check_same_items(n_items, n_items if X is None else X.shape[0], name, "X")
        cells = check_grid(grid, n_items, n_axes=n_axes)
        if points is not None:
            check_points_end(wrap)
            points = check_cell_points(points, cells.size)
        return cls(
            cells,
            points=points,
            wrap=wrap,
            values=None if values is None else _check_item_colors(values, n_items),
            labels=check_item_labels(labels, n_items),
            images=None if images is None else check_images(images),
            X=X,
        )

    @property
    def neighbor_distances(self) -> Floats:
        """Mean distance of each item to its neighbors, in the shape of `grid`.

        On points, neighbors are at most 1.3 times as far as the nearest. NaN where a cell is
        empty or has no neighbor.
        """
        if self.X is None:
            raise ValueError(
                "Distances to neighbors need the features of the items, but `X` is None. Pass `X` "
                "to from_estimator or from_predictions."
            )
        filled = self.grid >= 0
        if self.points is None:
            first, second = touching_cells(filled, self.wrap)
        else:
            first, second = _neighbor_pairs(self.points, filled)
        items = self.grid.ravel()
        apart = pair_distances(self.X, items[first], items[second])
        ends = np.concatenate([first, second])
        counts = np.bincount(ends, minlength=items.size)
        sums = np.bincount(ends, np.concatenate([apart, apart]), minlength=items.size)
        means = np.divide(sums, counts, out=np.full(items.size, np.nan), where=counts > 0)
        return means.reshape(self.grid.shape)

    def plot(self, ax: Any = None, *, cmap: str = "viridis", gap: float = 0.04) -> Self:
        """Draw each item in its cell.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        cmap : str, default="viridis"
            Name of a matplotlib color map for `values` that are numbers.
        gap : float, default=0.04
            Margin around each picture as a share of its longer side. Larger values move
            pictures further apart; 0 joins them.

        Returns
        -------
        display : LayoutDisplay
            Itself.
        """
        gap = check_real(gap, "gap", least=0, most=10)
        self._take_axes(ax, _SIZE).set_axis_off()
        if self.images is not None:
            self._draw_pictures(self.images, gap)
        elif self.labels is not None:
            self._draw_labels(self.labels)
        elif self.values is not None and self.values.ndim == 1:
            self._draw_numbers(self._in_cells(self.values), cmap)
        elif self.values is not None:
            self._draw_colors(self._in_cells(self.values))
        else:
            self._draw_colors(self._in_cells(np.tile(_PLAIN, (self.grid.max() + 1, 1))))
        return self

    def plot_neighbors(self, ax: Any = None, *, cmap: str = "magma") -> Self:
        """Draw the mean distance of each item to its neighbors, by the features in `X`.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        cmap : str, default="magma"
            Name of a matplotlib color map. Its upper end shows the largest distances.

        Returns
        -------
        display : LayoutDisplay
            Itself.
        """
        distances = self.neighbor_distances
        self._take_axes(ax, _SIZE).set_axis_off()
        self._draw_numbers(distances, cmap, name="mean distance to neighbors")
        return self

    def _in_cells(self, of_items: Floats) -> Floats:
        """Values of the items moved to their cells; NaN where a cell is empty."""
        filled = self.grid >= 0
        cells = np.full(self.grid.shape + of_items.shape[1:], np.nan)
        cells[filled] = of_items[self.grid[filled]]
        return cells

    def _draw_numbers(self, cells: Floats, cmap: str, name: str = "") -> None:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        finite = cells[np.isfinite(cells)]
        bounds = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        scale = ScalarMappable(Normalize(*bounds), cmap)
        colors = scale.to_rgba(np.ma.masked_invalid(cells))[..., :3]
        colors[np.isnan(cells)] = np.nan
        self._draw_colors(colors)
        self._add_colorbar(scale, name, shrink=0.7, pad=0.02)

    def _draw_labels(self, labels: NDArray[Any]) -> None:
        colors, named = label_colors(labels)
        self._draw_colors(self._in_cells(colors))
        if len(named) <= _MAX_LABELS:
            place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False}
            self.ax_.legend(handles=named, ncols=1 if len(named) <= 20 else 2, **place)

    def _draw_colors(self, cells: Floats) -> None:
        """Fill each cell with its color; empty cells, whose color is NaN, stay pale."""
        empty = np.isnan(cells[..., 0])
        if self.points is None:
            colors = np.concatenate([np.nan_to_num(cells), ~empty[..., np.newaxis]], axis=-1)
            self.ax_.imshow(colors, extent=_cell_extent(self.grid), interpolation="nearest")
            return
        from matplotlib.collections import EllipseCollection

        size = np.full(len(self.points), 0.92 * _spacing(self.points))
        faces = np.where(empty[:, np.newaxis], _EMPTY, cells)
        where = {"offsets": self.points[:, ::-1], "offset_transform": self.ax_.transData}
        discs = EllipseCollection(size, size, 0.0 * size, units="xy", facecolors=faces, **where)
        self.ax_.add_collection(discs)
        self._frame(self.points)

    def _draw_pictures(self, images: NDArray[np.uint8], gap: float) -> None:
        if self.points is None:
            picture = cell_pictures(images, self.grid, gap=gap)
            self.ax_.imshow(picture, extent=_cell_extent(self.grid))
            # Pictures keep their proportions, so cells need not be square.
            cell = np.array(picture.shape[:2]) / self.grid.shape
            self.ax_.set_aspect(cell[0] / cell[1])
            return
        size = np.array(images.shape[1:3]) / max(images.shape[1:3]) / (1 + 2 * gap)
        height, width = size * _spacing(self.points) / 2
        for (row, column), item in zip(self.points, self.grid, strict=True):
            if item >= 0:
                extent = (column - width, column + width, row + height, row - height)
                self.ax_.imshow(images[item], extent=extent)
        self._frame(self.points)

    def _frame(self, points: Floats) -> None:
        margin = 0.6 * _spacing(points)
        top, left = points.min(axis=0) - margin
        bottom, right = points.max(axis=0) + margin
        self._show((left, right), (bottom, top))


def _cell_extent(grid: NDArray[np.intp]) -> tuple[float, float, float, float]:
    """Bounds that put the center of each cell at its row and column, row 0 at the top."""
    return (-0.5, grid.shape[1] - 0.5, grid.shape[0] - 0.5, -0.5)


def _spacing(points: Floats) -> float:
    """Diameter of markers that rarely overlap."""
    if len(points) < 2:
        return 1.0
    nearest = cKDTree(points).query(points, k=2)[0][:, 1]
    return float(np.quantile(nearest, 0.1)) or float(np.ptp(points, axis=0).max()) / 20 or 1.0


def _neighbor_pairs(points: Floats, filled: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Pairs of filled points at most 1.3 times as far apart as one of them and its nearest."""
    here = np.flatnonzero(filled)
    if here.size < 2:
        return np.empty((2, 0), dtype=np.intp)
    tree = cKDTree(points[here])
    reach = 1.3 * tree.query(points[here], k=2)[0][:, 1]
    around = tree.query_ball_point(points[here], reach * (1 + 1e-9))
    one = np.repeat(np.arange(here.size), [len(each) for each in around])
    other = np.concatenate(around).astype(np.intp)
    pairs = np.unique(np.sort(np.stack([one, other], axis=1), axis=1), axis=0)
    return here[pairs[pairs[:, 0] != pairs[:, 1]]].T


def _check_item_colors(values: ArrayLike, n_items: int) -> Floats:
    """One finite number for each item, or red, green and blue from 0 to 1."""
    array = as_array(values, "`values`")
    if array.shape not in ((n_items,), (n_items, 3)) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"`values` must be {n_items} numbers or {n_items} rows of red, green and blue, one "
            f"for each item, got shape {array.shape} and dtype {array.dtype}."
        )
    if array.ndim == 2 and array.dtype == np.uint8:
        return array / 255.0
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("`values` holds NaN or infinity. Pass a finite number for each item.")
    if np.abs(numbers).max(initial=0.0) > 1e300:
        raise ValueError(
            "`values` holds numbers beyond 1e300, whose differences may overflow. Divide them by "
            "a common number first."
        )
    if array.ndim == 2 and numbers.size and (numbers.min() < 0 or numbers.max() > 1):
        raise ValueError(
            "Colors in `values` must be from 0 to 1 (or whole numbers from 0 to 255 of dtype "
            f"uint8), got values from {numbers.min():.6g} to {numbers.max():.6g}. Rescale them."
        )
    return numbers
