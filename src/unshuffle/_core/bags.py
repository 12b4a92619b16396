"""Bags of points: validation, storage, and the base class of estimators that take them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from unshuffle._core.arrays import (
    LARGEST,
    HoldsText,
    RaggedRows,
    as_numbers,
    check_column_names,
    check_magnitude,
    check_outliers,
    check_plain,
    check_resolved,
    is_polars,
    is_text,
    table_shape,
    unwrap_anndata,
)
from unshuffle._core.parameters import check_memory
from unshuffle._run.printing import warn_user

MISSING = -1
_FORMS = (
    "Pass a list with one (n_points, n_features) array for each bag, a 3-D array, a pandas "
    "groupby, or a 2-D array whose rows are bags of one point."
)


@dataclass(frozen=True)
class Bags:
    """Several sets of points with the same columns, stacked.

    Attributes
    ----------
    points : ndarray of shape (n_points_in_all, n_features)
        Points of all bags, one bag after the other.
    offsets : ndarray of shape (n_bags + 1,)
        Bag i is the rows from `offsets[i]` up to `offsets[i + 1]`.

    Examples
    --------
    >>> bags = Bags.of([[[0, 0], [1, 0]], [[2, 0], [3, 0], [4, 0]]])
    >>> bags.sizes
    array([2, 3])
    >>> bags[1]
    array([[2., 0.],
           [3., 0.],
           [4., 0.]])
    """

    points: NDArray[np.float64]
    offsets: NDArray[np.intp]

    @classmethod
    def of(cls, bags: Any, *, name: str = "X") -> "Bags":
        """Validate a list of (n_i, d) arrays, a pandas groupby, or a 3-D or 2-D array.

        The rows of a 2-D array are bags of one point. Sparse matrices in a list become dense;
        a sparse matrix alone is refused. `name` is used in error messages.
        """
        points, offsets = _check_bags(bags, name)
        return cls(points, offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, i: int) -> NDArray[np.float64]:
        return self.points[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        return (self[i] for i in range(len(self)))

    def part(self, start: int, stop: int) -> "Bags":
        """Bags from `start` up to `stop`."""
        first, last = self.offsets[start], self.offsets[stop]
        return Bags(self.points[first:last], self.offsets[start : stop + 1] - first)

    def chosen(self, bags: NDArray[np.intp]) -> "Bags":
        """Some of the bags, in the order of their numbers."""
        offsets = _offsets(self.sizes[bags])
        rows = np.arange(offsets[-1]) + np.repeat(
            self.offsets[bags] - offsets[:-1], np.diff(offsets)
        )
        return Bags(self.points[rows], offsets)

    def sorted(self) -> "Bags":
        """Same bags with the points of each in canonical order."""
        holder = np.repeat(np.arange(len(self)), self.sizes)
        return Bags(self.points[canonical_order(self.points, holder)], self.offsets)

    def check_outliers(self) -> None:
        """Refuse a point so far from the others that their squares are lost to rounding."""

        def name_point(point: int) -> str:
            bag = int(np.searchsorted(self.offsets, point, side="right")) - 1
            return f"Point {point - self.offsets[bag]} of bag {bag}"

        check_outliers(self.points, name_point)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of points in each bag."""
        return np.diff(self.offsets)

    @property
    def width(self) -> int:
        """Number of columns of a point."""
        return int(self.points.shape[1])


def canonical_order(
    points: NDArray[np.float64], holder: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Indices that sort points by holder, then coordinates, whatever their original order."""
    first = () if holder is None else (holder,)
    n_columns = 1
    while True:
        # A few columns often tell all points apart; sorting by all of them takes longer.
        keys = (*first, *points.T[:n_columns])
        order = np.lexsort(keys[::-1])
        equal = np.ones(max(0, len(order) - 1), dtype=bool)
        for key in keys:
            ordered = key[order]
            equal &= ordered[1:] == ordered[:-1]
        if n_columns >= points.shape[1] or not equal.any():
            return order
        n_columns *= 4


def equal_sizes(bags: Bags, n_points: int, *, missing: bool, seed: int) -> NDArray[np.intp]:
    """Indices of `n_points` points of each bag, shape (n_bags, n_points), in canonical order.

    Smaller bags are padded with -1 if `missing`, else with copies of their points; larger ones
    lose points. Each bag starts from the same seed, so that no result depends on other bags.
    """
    chosen = np.full((len(bags), n_points), MISSING, dtype=np.intp)
    for row, points in zip(chosen, bags, strict=True):
        order, size = canonical_order(points), len(points)
        if size == n_points or (missing and size < n_points):
            row[:size] = order
            continue
        rng = np.random.default_rng(seed)
        n_copies, n_more = divmod(n_points, size)
        more = np.sort(rng.choice(size, n_more, replace=False))
        row[:] = np.concatenate([np.tile(order, n_copies), order[more]])
    return chosen


def gathered(bags: Bags, chosen: NDArray[np.intp]) -> NDArray[np.float64]:
    """Points at these indices, shape (n_bags, n_points, width); missing points are zero."""
    rows = bags.offsets[:-1, None] + np.maximum(chosen, 0)
    points: NDArray[np.float64] = bags.points[rows]
    points[chosen == MISSING] = 0.0
    return points


class BagEstimatorMixin:
    """Base of estimators whose samples are sets of points (bags).

    Inherit from it first, then from scikit-learn's mixins and `BaseEstimator`. In `fit`, call
    ``bags = self._record_columns(bags)``; in every method that takes new bags, call
    ``bags = self._bags_like_fitted(bags)``. Both accept a list of arrays of shape (n_i, d),
    sparse ones included, a pandas groupby, or a 3-D or 2-D array (whose rows are bags of one
    point), refuse anything else with an error that says what to do, and return the validated bags:
    iterate over them for one float64 array per bag; `bags.points` holds all points stacked and
    `bags.sizes` their numbers.

    Methods for subclasses:

    - ``_record_columns(bags)`` validates the bags to be fitted and sets the attributes below.
    - ``_bags_like_fitted(bags)`` validates new bags and refuses columns that differ in number or
      name from the fitted ones.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns of a point.
    feature_names_in_ : ndarray of str
        Names of the columns, if the fitted bags were data frames with string names.

    See Also
    --------
    unshuffle.testing.check_bag_estimator : Tests an estimator of bags.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, TransformerMixin
    >>> from unshuffle.base import BagEstimatorMixin
    >>> class MeanPoint(BagEstimatorMixin, TransformerMixin, BaseEstimator):
    ...     def fit(self, bags, y=None):
    ...         self._record_columns(bags)
    ...         return self
    ...
    ...     def transform(self, bags):
    ...         return np.array([bag.mean(axis=0) for bag in self._bags_like_fitted(bags)])
    >>> MeanPoint().fit_transform([[[0, 0], [2, 4]], [[1, 1], [2, 2], [3, 6]]])
    array([[1., 2.],
           [2., 3.]])
    """

    n_features_in_: int
    _bags_of_one: bool

    def _record_columns(self, bags: Any, given: Bags | None = None) -> Bags:
        """Validate bags, unless `given` holds them already, and remember their columns."""
        bags = listed(bags)
        given = Bags.of(bags) if given is None else given
        self._check_names(bags, reset=True)
        _warn_of_frame(bags)
        self._bags_of_one = bool(given.sizes.max() == 1)
        self.n_features_in_ = given.width
        return given

    def _bags_like_fitted(self, bags: Any) -> Bags:
        """Validate new bags, which must have the columns of the fitted ones."""
        bags = listed(bags)
        self._check_names(bags, reset=False)
        given = Bags.of(bags)
        if not self._bags_of_one:
            self._check_not_one_bag(bags, "X")
        self._check_width(given)
        return given

    def _check_names(self, bags: Any, *, reset: bool) -> None:
        """Compare column names with the fitted ones, or remember them if `reset`."""
        named = _named(bags)
        check_column_names(named, "X")
        validate_data(self, named, reset=reset, skip_check_array=True, ensure_2d=False)

    def _check_width(self, bags: Bags) -> None:
        """Refuse bags whose points have another number of columns than the fitted ones."""
        if bags.width != self.n_features_in_:
            # scikit-learn's checks look for these words.
            raise ValueError(
                f"X has {bags.width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: points of new bags need the columns of "
                "the fitted ones."
            )

    def _check_not_one_bag(self, bags: Any, name: str, *, others: str = "the fitted bags") -> None:
        """Refuse a table, whose rows would be bags of one point, if other bags have several."""
        if _dimensions(bags) == 2 and not is_list_of_bags(bags):
            raise ValueError(
                f"{name} is 2-D, {len(bags)} bags of one point each, but {others} have "
                "several. For a single one pass [points]; for bags of one point, a list of arrays "
                "with one row."
            )


def _named(bags: Any) -> Any:
    """Holder of the column names: the bags, or the first of several data frames."""
    frames = isinstance(bags, list | tuple) and bags and hasattr(bags[0], "columns")
    return bags[0] if frames else bags


def _check_bags(bags: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Points of all bags in one float64 array, and the offset of each bag."""
    if sparse.issparse(bags):
        raise TypeError(
            f"{name} is a sparse matrix, but distances between points need dense numbers. Call "
            "toarray() on it first."
        )
    if isinstance(bags, dict | set | frozenset):
        raise TypeError(
            f"{name} is a {type(bags).__name__}, but results have one row for each bag, in "
            "order. Pass a list, such as list(bags.values())."
        )
    if isinstance(bags, str) or is_text(bags):
        raise ValueError(f"{name} holds strings, but bags hold points: rows of numbers. {_FORMS}")
    bags = listed(bags)
    if is_list_of_bags(bags):
        return _stack(list(bags), name)
    shape = _shape(bags, name)
    empty = shape[:1] == (0,)
    if empty or len(shape) not in (2, 3):
        what = f"has type {type(bags).__name__} and {len(shape)} dimension(s), shape {shape}"
        what = "is empty: found 0 bags" if empty else what
        # scikit-learn's checks look for "Reshape your data".
        raise ValueError(f"{name} {what}. Reshape your data: {_FORMS[0].lower()}{_FORMS[1:]}")
    if len(shape) == 3:
        check_plain(bags, name)
        return _stack(list(np.asarray(bags)), name)
    _check_no_names(bags, name)
    points = _check_points(bags, holder=name).copy()  # kept by the estimator
    return points, np.arange(len(points) + 1)


def listed(bags: Any) -> Any:
    """List of the bags of an iterator or a pandas groupby; anything else unchanged."""
    if isinstance(bags, Iterator):
        return list(bags)
    if hasattr(bags, "groups") and hasattr(bags, "exclusions"):
        return [_without(group, bags.exclusions) for _, group in bags]
    return bags


def _without(group: Any, exclusions: Collection[Any]) -> Any:
    """One group of a data frame without the columns it was grouped by."""
    if group.ndim == 1:
        return group.to_frame()
    return group.drop(columns=[column for column in group.columns if column in exclusions])


def is_list_of_bags(bags: Any) -> bool:
    """Whether this is a list of bags, not a table written as a list of rows."""
    if isinstance(bags, np.ndarray):
        several = bags.dtype == object and bags.ndim == 1
    else:
        several = isinstance(bags, list | tuple)
    return several and any(_dimensions(each) >= 2 for each in bags)


def _dimensions(item: Any) -> int:
    if isinstance(getattr(item, "shape", None), tuple):
        return len(item.shape)
    if isinstance(item, list | tuple):
        return 1 + max((_dimensions(each) for each in item), default=0)
    return 0


def _shape(bags: Any, name: str) -> tuple[int, ...]:
    try:
        return tuple(bags.shape if hasattr(bags, "shape") else np.asarray(bags).shape)
    except ValueError as error:
        raise ValueError(f"{name} holds rows of different lengths. {_FORMS}") from error


def _stack(bags: list[Any], name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Points of a list of bags, stacked, and the offset of each bag."""
    if all(_is_plain(bag) and bag.shape[1] == bags[0].shape[1] for bag in bags):
        together = np.ascontiguousarray(np.concatenate(bags))
        if float(np.abs(together).max()) <= LARGEST:  # False for NaN
            return together, _offsets([len(bag) for bag in bags])
    bags = [unwrap_anndata(bag, f"Bag {i} of {name}") for i, bag in enumerate(bags)]
    _check_dense_memory(bags, name)
    points = []
    for i, bag in enumerate(bags):
        n_axes = _dimensions(bag)
        if (np.size(bag) if n_axes < 2 else table_shape(bag)[0]) == 0:
            raise ValueError(f"Bag {i} of {name} is empty. Drop it, or add a point.")
        if n_axes != 2:
            raise ValueError(
                f"Bag {i} of {name} has {n_axes} dimension(s); a bag has 2, points by features. "
                f"{_FORMS}"
            )
        dense = bag.toarray() if sparse.issparse(bag) else bag
        points.append(_check_points(dense, holder=f"bag {i} of {name}"))
        _check_same_columns(bag, bags[0], i, name)
        if points[i].shape[1] != points[0].shape[1]:
            raise ValueError(
                f"Points of bag {i} of {name} have {points[i].shape[1]} columns, those of bag 0 "
                f"have {points[0].shape[1]}. Describe the points of all bags by the same columns."
            )
    return np.concatenate(points), _offsets([len(each) for each in points])


def _check_dense_memory(bags: list[Any], name: str) -> None:
    """Refuse sparse bags that would not fit into free memory as dense points."""
    n_numbers = sum(prod(bag.shape) for bag in bags if sparse.issparse(bag))
    check_memory(
        16 * n_numbers,  # each bag, and all of them together
        what=f"Dense points of the sparse bags of {name}",
        instead="Reduce their columns first, for example with TruncatedSVD.",
    )


def _is_plain(bag: Any) -> bool:
    """Whether a bag needs no conversion, and no error message unless for its numbers."""
    return type(bag) is np.ndarray and bag.dtype == np.float64 and bag.ndim == 2 and bag.size > 0


def _offsets(sizes: Sequence[int] | NDArray[np.intp]) -> NDArray[np.intp]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def _check_points(bag: Any, *, holder: str) -> NDArray[np.float64]:
    try:
        points = as_numbers(bag, holder)
    except RaggedRows as error:
        raise ValueError(
            f"Points of {holder} have different numbers of columns. Describe all points by the "
            "same columns."
        ) from error
    except HoldsText as error:
        raise ValueError(
            f"Points of {holder} hold text ({error.__cause__}). Encode it as numbers, or drop "
            "these columns."
        ) from error
    if points.shape[1] == 0:
        # scikit-learn's checks look for these words.
        raise ValueError(
            f"{holder} has 0 feature(s) (shape={points.shape}) while a minimum of 1 is required. "
            "Describe the points by at least one column."
        )
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        what = "NaN" if np.isnan(points).any() else "infinity"
        raise ValueError(
            f"Input {holder} contains {what} (in {bad.size} of {len(points)} points, the first is "
            f"point {bad[0]}). Drop these points or fill in their values first."
        )
    check_magnitude(points, holder)
    return points


def _check_no_names(table: Any, name: str) -> None:
    """Refuse a data frame with a column of text, which likely names the set of each row."""
    if not hasattr(table, "iloc"):
        return
    for place, column in enumerate(table.columns):
        values = np.asarray(table.iloc[:, place])
        if values.dtype.kind in "US" or any(isinstance(each, str) for each in values[:1]):
            raise ValueError(
                f"Column {column!r} of {name} holds text. If it names the set of each row, pass "
                f"{name}.groupby({column!r}): one set for each group. Otherwise drop it, or "
                "encode it as numbers."
            )


def _warn_of_frame(bags: Any) -> None:
    """Warn of a data frame whose rows are read as bags: it may hold points of larger ones."""
    if not hasattr(bags, "columns") or _dimensions(bags) != 2:
        return
    groups = 'X.partition_by("bag", include_key=False)' if is_polars(bags) else 'X.groupby("bag")'
    warn_user(
        f"X is a data frame, and each of its {len(bags):,} rows is read as a bag of one point. If "
        f"a column, such as bag, says which bag a row belongs to, pass {groups}. If bags of one "
        "point are meant, pass X.to_numpy()."
    )


def _check_same_columns(bag: Any, first: Any, i: int, name: str) -> None:
    """Refuse data frames with as many columns but other names."""
    if not (hasattr(bag, "columns") and hasattr(first, "columns")):
        return
    columns, expected = list(bag.columns), list(first.columns)
    if columns != expected and len(columns) == len(expected):
        raise ValueError(
            f"Bag {i} of {name} has columns {columns}, bag 0 has {expected}. Give all bags the "
            "same columns in the same order."
        )


def check_several_bags(n_bags: int, name: str) -> None:
    """Refuse fewer than two bags, since bags are aligned with each other."""
    if n_bags < 2:
        raise ValueError(
            f"{name} holds {n_bags} bag (n_samples = {n_bags}). Bags are aligned with each other, "
            "so pass at least two; to align new bags with fitted ones use transform."
        )


def check_gap(points: NDArray[np.float64], name: str) -> None:
    """Refuse points whose differences are rounding errors, or too small to square."""
    gap = float((points.max(axis=0) - points.min(axis=0)).max())
    if 0.0 < gap < 1e-150:
        raise ValueError(
            f"Points of {name} differ by at most {gap:.3g}, whose square is too small for a "
            "float. Multiply the values by a common number first."
        )
    check_resolved(points, name)


def check_bags_memory(n_bags: int, n_points: int, n_features: int) -> None:
    """Refuse features and costs that would not fit into free memory."""
    n_numbers = n_points * n_features
    check_memory(
        # features, their ordered copy, and a decomposition; costs
        8 * (4 * n_bags * n_numbers + 3 * n_bags * min(n_bags, n_numbers) + 4 * n_points**2),
        what=f"Aligning {n_bags:,} bags of {n_points:,} points with {n_features} features each",
        instead="Pass a smaller n_points, or fewer n_landmarks.",
    )
