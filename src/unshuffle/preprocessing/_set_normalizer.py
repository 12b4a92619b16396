"""SetNormalizer: removes position, size and slant from each set; and its base class."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from unshuffle._core.arrays import as_array, check_outliers, middle
from unshuffle._core.bags import (
    BagEstimatorMixin,
    Bags,
    canonical_order,
    check_gap,
    is_list_of_bags,
    listed,
)
from unshuffle._core.parameters import ARRAY, FLAG, Constraints, check_parameters, option
from unshuffle._run.search import refitting
from unshuffle._run.types import Floats

# A spread below this share of the largest coordinate is rounding, and must not be scaled up.
ROUNDING = 8 * np.finfo(float).eps
# The same for the share of a column's square that other columns do not predict.
NEGLIGIBLE = 1e-12


class SetTransformer(BagEstimatorMixin, TransformerMixin, BaseEstimator, ABC):
    """Base of transformers that change each set by itself and keep the form of the input."""

    columns: Any

    @abstractmethod
    def _transform_set(self, points: Floats) -> Floats:
        """One set, transformed: a row for each row."""

    def _check_set(self, points: Floats, index: int) -> None:
        """Refuse a set that cannot be transformed; by default none."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Record the columns of the points.

        Parameters
        ----------
        X : list of array-like of shape (n_i, n_features), 3-D array, or 2-D array
            Sets of points in any order. The rows of a 2-D array are sets of one point.
        y : None
            Ignored.

        Returns
        -------
        self : SetTransformer
            Fitted.
        """
        check_parameters(self)
        sets = Bags.of(X)
        columns = check_columns(self.columns, sets.width)
        with refitting(self):
            self._columns = columns
            self._record_columns(X, sets)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Record the columns of the points, and transform each set by itself.

        Parameters
        ----------
        X : list of array-like, 3-D array, or 2-D array
            Sets, as for `fit`.
        y : None
            Ignored.

        Returns
        -------
        X_new : list of ndarray, 3-D array or 2-D array
            As from `transform`.
        """
        X = listed(X)
        return self.fit(X, y).transform(X)

    def transform(self, X: Any) -> Any:
        """Transform each set by itself.

        Parameters
        ----------
        X : list of array-like, 3-D array, or 2-D array
            Sets, as for `fit`. Pass a single set as [points].

        Returns
        -------
        X_new : list of ndarray, 3-D array or 2-D array
            A list for a list, an array for an array. Points keep their order inside each set.
        """
        check_is_fitted(self, "n_features_in_")
        X = listed(X)
        sets = self._bags_like_fitted(X)
        check_gap(sets.points, "X")
        for index, points in enumerate(sets):
            self._check_set(points, index)
        changed = []
        for points in sets:
            # Sums round by the order of points, so that order is fixed.
            order = canonical_order(points)
            changed.append(self._transform_set(points[order])[np.argsort(order)])
        n_axes = getattr(X, "ndim", 1)
        if n_axes == 3:
            return np.stack(changed)
        if n_axes == 2 or (n_axes == 1 and not is_list_of_bags(X)):
            return np.concatenate(changed)
        return changed


class SetNormalizer(SetTransformer):
    """Center, scale and straighten each set of points, so that only its shape is left.

    Position, size and slant often say nothing about the class of a set, yet account for much of
    the difference between two sets.

    Parameters
    ----------
    center : bool, default=True
        Whether to move each set so that its mean is at the origin.
    scale : {"set", "columns"} or None, default="set"
        "set" divides a set by the root mean square distance of its points from their mean,
        "columns" each column by its own standard deviation. None does not scale.
    shear : bool, default=False
        Whether to remove slant: the least-squares prediction from later columns is subtracted
        from each column, so that columns are uncorrelated. For points (x, y), strokes that lean
        become upright. With `scale="columns"` the sets are whitened.
    columns : array-like of int or None, default=None
        Columns that are coordinates; others, such as an intensity, do not change. None is all.

    Attributes
    ----------
    n_features_in_ : int
        Columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, if the sets came as tables with names.

    Notes
    -----
    Each set is transformed by itself; nothing is learned from the others. Sets without spread (one
    point) are moved but not scaled. Linear in the number of points.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.preprocessing import SetNormalizer
    >>> leaning = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.5, 6.0], [3.5, 8.0]])
    >>> upright = SetNormalizer(shear=True).fit_transform([leaning])[0]
    >>> bool(abs(np.corrcoef(upright.T)[0, 1]) < 1e-12)
    True
    """

    _constraints: ClassVar[Constraints] = {
        "center": [FLAG],
        "scale": [option("set", "columns"), None],
        "shear": [FLAG],
        "columns": [ARRAY, None],
    }

    def __init__(
        self,
        *,
        center: bool = True,
        scale: str | None = "set",
        shear: bool = False,
        columns: Any = None,
    ) -> None:
        self.center = center
        self.scale = scale
        self.shear = shear
        self.columns = columns

    def _check_set(self, points: Floats, index: int) -> None:
        check_outliers(points[:, self._columns], lambda point: f"Point {point} of set {index}")

    def _transform_set(self, points: Floats) -> Floats:
        changed = points.copy()
        chosen = points[:, self._columns]
        start = middle(chosen)
        centered = chosen - start
        mean = centered.mean(axis=0)
        centered -= mean
        centered[:, np.ptp(chosen, axis=0) <= ROUNDING * np.abs(chosen).max(axis=0)] = 0.0
        if self.shear:
            centered = remove_slant(centered)
        spread = _spread(centered, self.scale)
        changed[:, self._columns] = (centered + (0.0 if self.center else start + mean)) / spread
        return changed


def remove_slant(points: Floats) -> Floats:
    """Centered columns, minus their least-squares predictions from later columns."""
    straight = points.copy()
    for j in range(points.shape[1] - 2, -1, -1):
        # Later columns are uncorrelated by now, so each slope is a separate regression.
        later = straight[:, j + 1 :]
        squares = np.einsum("nc,nc->c", later, later)
        products = later.T @ straight[:, j]
        seen = (squares > NEGLIGIBLE * squares.max()) & (squares > 0.0)
        slopes = np.divide(products, squares, out=np.zeros_like(squares), where=seen)
        straight[:, j] -= later @ slopes
    return straight


def _spread(centered: Floats, scale: str | None) -> Any:
    """Divisor of each column; 1 if there is no spread."""
    if scale is None:
        return 1.0
    squares = np.einsum("nc,nc->c", centered, centered) / len(centered)
    roots = np.sqrt(squares if scale == "columns" else squares.sum(keepdims=True))
    return np.where(roots > 0.0, roots, 1.0)


def check_columns(columns: Any, width: int) -> NDArray[np.intp]:
    """Columns that are coordinates, as indices from 0; None is all of them."""
    if columns is None:
        return np.arange(width)
    chosen = as_array(columns, "`columns`")
    if chosen.ndim != 1 or not chosen.size or not np.issubdtype(chosen.dtype, np.integer):
        raise ValueError(
            f"`columns` must be a list of whole numbers, the indices of columns, got {columns!r}."
        )
    beyond = chosen[(chosen < -width) | (chosen >= width)]
    if beyond.size:
        raise ValueError(
            f"`columns` names column {beyond[0]}, but points have {width} columns. Count from 0."
        )
    chosen = chosen.astype(np.intp) % width
    if np.unique(chosen).size < chosen.size:
        raise ValueError(f"`columns` names a column twice: {columns!r}. Name each once.")
    return chosen
