"""SetNormalizer: position, size and slant removed from each set; and its base class."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from unshuffle._arrays import as_array, check_outliers, middle
from unshuffle._bags import (
    BagEstimatorMixin,
    Bags,
    canonical_order,
    check_gap,
    is_list_of_bags,
    listed,
)
from unshuffle._parameters import ARRAY, FLAG, Constraints, check_parameters, option
from unshuffle._progress import refitting

Array = NDArray[np.float64]

# Spread below this share of the largest coordinate is rounding, and must not be blown up.
ROUNDING = 8 * np.finfo(float).eps
# So is what is left of a column, as a share of its square, once others predict it.
NEGLIGIBLE = 1e-12


class SetTransformer(BagEstimatorMixin, TransformerMixin, BaseEstimator, ABC):
    """Changes each set by itself, as `_change` says, and gives sets in the form they came in."""

    columns: Any

    @abstractmethod
    def _change(self, points: Array) -> Array:
        """One set, changed: a row for each row."""

    def _check(self, points: Array, bag: int) -> None:
        """Refuse a set that cannot be changed so; any will do unless a subclass says otherwise."""

    def fit(self, bags: Any, y: Any = None) -> Self:
        """Record the columns of the points.

        Parameters
        ----------
        bags : list of array-like of shape (n_i, n_features), 3-D array, or 2-D array
            Sets of points in any order; the rows of a 2-D array are sets of one point.
        y : None
            Not used.

        Returns
        -------
        self : SetTransformer
            Fitted.
        """
        check_parameters(self)
        given = Bags.of(bags)
        columns = check_columns(self.columns, given.width)
        with refitting(self):
            self._columns = columns
            self._record_columns(bags, given)
        return self

    def fit_transform(self, bags: Any, y: Any = None) -> Any:
        """Record the columns of the points, and change each set by itself.

        Parameters
        ----------
        bags : what `fit` takes
            Sets of points in any order.
        y : None
            Not used.

        Returns
        -------
        bags : list of ndarray, 3-D array or 2-D array
            As `transform` gives them.
        """
        bags = listed(bags)
        return self.fit(bags, y).transform(bags)

    def transform(self, bags: Any) -> Any:
        """Sets, each changed by itself.

        Parameters
        ----------
        bags : what `fit` takes
            Sets of points; a single one as [bag].

        Returns
        -------
        bags : list of ndarray, 3-D array or 2-D array
            In the form of `bags`: a list for a list, an array for an array. Points keep their
            order inside each set.
        """
        check_is_fitted(self, "n_features_in_")
        bags = listed(bags)
        given = self._bags_like_fitted(bags)
        check_gap(given.points, "bags")
        for bag, points in enumerate(given):
            self._check(points, bag)
        changed = [self._in_canonical_order(points) for points in given]
        n_axes = getattr(bags, "ndim", 1)
        if n_axes == 3:
            return np.stack(changed)
        if n_axes == 2 or (n_axes == 1 and not is_list_of_bags(bags)):
            return np.concatenate(changed)
        return changed

    def _in_canonical_order(self, points: Array) -> Array:
        # In a fixed order, since sums round by it: not even the last digit depends on that given.
        order = canonical_order(points)
        return self._change(points[order])[np.argsort(order)]


class SetNormalizer(SetTransformer):
    """Move, scale and straighten each set of points, so that what is left is its shape.

    Where a cloud lies, how large it is and how it slants often say nothing about what it shows,
    and much of the difference between two clouds is just that. On handwritten digits the errors of
    kernels between sets fall by a fifth to a half without it (see Notes).

    Parameters
    ----------
    center : bool, default=True
        Whether to move each set so that its mean is at the origin.
    scale : {"set", "columns"} or None, default="set"
        "set" divides a set by the root mean square distance of its points from their mean,
        "columns" each column by its own standard deviation. None leaves sizes alone.
    shear : bool, default=False
        Whether to remove slant: each column loses what the columns after it predict of it by
        least squares, so that the columns are uncorrelated. The last one stays as it is: for
        points as (x, y), x shifts with height, and strokes that lean stand upright. With
        `scale="columns"` the sets are whitened.
    columns : array-like of int or None, default=None
        Columns that are coordinates; the others, such as an intensity, are left alone. None is
        all of them.

    Attributes
    ----------
    n_features_in_ : int
        Columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, where the bags came as tables with names.

    Notes
    -----
    Each set is changed by itself, so nothing is learned from the others. Sets without any spread
    (one point) are moved but not scaled. Linear in the number of points.

    Errors on fresh handwritten digits, widths and C chosen in training, by the sliced Wasserstein
    kernel on sets as given and on sets scaled and sheared: 2.9 and 2.3 per cent between 3s and 9s
    (clouds of 70 points, 200 to learn from, ten draws), 10.1 and 5.3 per cent among ten digits
    (700 to learn from, ten splits).

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

    def _check(self, points: Array, bag: int) -> None:
        check_outliers(points[:, self._columns], lambda point: f"Point {point} of bag {bag}")

    def _change(self, points: Array) -> Array:
        changed = points.copy()
        chosen = points[:, self._columns]
        start = middle(chosen)
        centered = chosen - start
        mean = centered.mean(axis=0)
        centered -= mean
        centered[:, np.ptp(chosen, axis=0) <= ROUNDING * np.abs(chosen).max(axis=0)] = 0.0
        if self.shear:
            centered = straightened(centered)
        spread = _spread(centered, self.scale)
        changed[:, self._columns] = (centered + (0.0 if self.center else start + mean)) / spread
        return changed


def straightened(points: Array) -> Array:
    """Columns about their mean, without what the columns after them predict of them."""
    straight = points.copy()
    for j in range(points.shape[1] - 2, -1, -1):
        # Later columns are uncorrelated by now, so each regression is a number of its own.
        later = straight[:, j + 1 :]
        squares = np.einsum("nc,nc->c", later, later)
        products = later.T @ straight[:, j]
        seen = (squares > NEGLIGIBLE * squares.max()) & (squares > 0.0)
        slopes = np.divide(products, squares, out=np.zeros_like(squares), where=seen)
        straight[:, j] -= later @ slopes
    return straight


def _spread(centered: Array, scale: str | None) -> Any:
    """What to divide by; 1 where there is no spread."""
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
            f"`columns` must be a list of whole numbers, one for each column that is a "
            f"coordinate, got {columns!r}."
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
