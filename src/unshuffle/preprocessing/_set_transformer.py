"""What transformers from sets to sets share."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from unshuffle._bag_estimator import BagEstimatorMixin
from unshuffle._bags import Bags, canonical_order, check_gap, is_list_of_bags, listed
from unshuffle._parameters import check_parameters
from unshuffle._progress import refitting
from unshuffle.preprocessing._checks import check_columns

Array = NDArray[np.float64]


class SetTransformer(BagEstimatorMixin, TransformerMixin, BaseEstimator, ABC):
    """Changes each set by itself and gives sets of the form that it was given.

    A subclass says how, in `_change`. It learns nothing from the fitted sets but the columns of a
    point.
    """

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
        # Sums round by the order of their terms: in a fixed one, not even the last digit depends
        # on the order given.
        order = canonical_order(points)
        found = self._change(points[order])
        changed = np.empty_like(found)
        changed[order] = found
        return changed
