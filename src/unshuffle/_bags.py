"""Bags: several unordered sets of points, read and checked, and what their estimators share."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_feature_names

from unshuffle._arrays import (
    as_numbers,
    check_column_names,
    check_magnitude,
    check_none_wild,
    check_plain,
    check_resolved,
    distances_from_middle,
    is_text,
    ordinary,
    table_shape,
)
from unshuffle._parameters import check_memory

MISSING = -1


_FORMS = (
    "Pass a list with one (n_points, n_features) array for each bag, a 3-D array, a pandas "
    "groupby, or a 2-D array whose rows are bags of one point."
)


@dataclass(frozen=True)
class Bags:
    """Sets of points of one width, stacked.

    Attributes
    ----------
    points : ndarray of shape (n_points_in_all, n_features)
        The points of all bags, bag after bag, float64.
    offsets : ndarray of shape (n_bags + 1,)
        Bag i holds the rows from `offsets[i]` up to `offsets[i + 1]`.

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
    def of(cls, bags: Any, *, name: str = "bags") -> "Bags":
        """Bags from a list of (n_i, d) arrays, a groupby, or an array of 3 or 2 dimensions.

        Parameters
        ----------
        bags : list of array-like of shape (n_i, d), pandas groupby, or array-like
            Points may stand in any order inside a bag. Each group is a bag, without the columns
            grouped by; the rows of a 2-D array are bags of one point.
        name : str, default="bags"
            What to call them in an error message.

        Returns
        -------
        bags : Bags
            With at least one bag, none of them empty, all of one width and finite.
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

    def sorted(self) -> "Bags":
        """Bags whose points stand in an order that does not depend on how they were given."""
        holder = np.repeat(np.arange(len(self)), self.sizes)
        return Bags(self.points[np.lexsort((*self.points.T[::-1], holder))], self.offsets)

    def check_none_wild(self) -> None:
        """Refuse a point so far from all others that their squares are lost beside its own."""

        def called(point: int) -> str:
            bag = int(np.searchsorted(self.offsets, point, side="right")) - 1
            return f"Point {point - self.offsets[bag]} of bag {bag}"

        sizes = distances_from_middle(self.points)
        check_none_wild(sizes, ordinary(sizes), called)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of points in each bag."""
        return np.diff(self.offsets)

    @property
    def width(self) -> int:
        """Number of columns of every point."""
        return int(self.points.shape[1])


def canonical_order(points: NDArray[np.float64]) -> NDArray[np.intp]:
    """Order of the points by their coordinates: the same however they were given."""
    return np.lexsort(points.T[::-1])


def equal_sizes(bags: Bags, n_points: int, *, missing: bool, seed: int) -> NDArray[np.intp]:
    """Indices of `n_points` points of each bag, shape (n_bags, n_points), in an order of our own.

    Smaller bags are filled up with -1 where `missing`, else with copies of their points; larger
    ones lose points. All bags use the seed alike, so that no answer depends on the other bags.
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
    """Points at these indices, shape (n_bags, n_points, width); zeros where missing."""
    rows = bags.offsets[:-1, None] + np.maximum(chosen, 0)
    points: NDArray[np.float64] = bags.points[rows]
    points[chosen == MISSING] = 0.0
    return points


class BagEstimatorMixin:
    """Takes bags to fit, and asks that later ones are like them.

    Attributes
    ----------
    n_features_in_ : int
        Columns of a point.
    feature_names_in_ : ndarray of str
        Names of those columns, where the bags came as tables with names.
    """

    n_features_in_: int
    _bags_of_one: bool

    def _record_columns(self, bags: Any, given: Bags) -> None:
        """Remember the columns of the bags that are fitted."""
        self._check_names(listed(bags), reset=True)
        self._bags_of_one = bool(given.sizes.max() == 1)
        self.n_features_in_ = given.width

    def _bags_like_fitted(self, bags: Any) -> Bags:
        """Bags with the columns of the fitted ones."""
        bags = listed(bags)
        self._check_names(bags, reset=False)
        given = Bags.of(bags)
        if not self._bags_of_one:
            check_not_one_bag(bags, "bags")
        check_bag_width(given.width, self.n_features_in_, type(self).__name__)
        return given

    def _check_names(self, bags: Any, *, reset: bool) -> None:
        """Compare the names of columns with those that were fitted, or remember them."""
        named = _named(bags)
        check_column_names(named, "bags")
        _check_feature_names(self, named, reset=reset)


def _named(bags: Any) -> Any:
    """What holds the names of columns: the bags, or the first of several data frames."""
    frames = isinstance(bags, list | tuple) and bags and hasattr(bags[0], "columns")
    return bags[0] if frames else bags


def _check_bags(bags: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Points of all bags in one float64 array, and where each bag begins in it."""
    if sparse.issparse(bags):
        raise TypeError(
            f"{name} is a sparse matrix, but points are compared by their distances, which need "
            f"dense numbers. Call toarray() on it first."
        )
    if isinstance(bags, dict | set | frozenset):
        raise TypeError(
            f"{name} is a {type(bags).__name__}, but the answer has one row for each bag, in "
            "their order. Pass a list, such as list(bags.values())."
        )
    if isinstance(bags, str) or is_text(bags):
        raise ValueError(f"{name} holds strings, but bags hold points: rows of numbers. {_FORMS}")
    bags = listed(bags)
    if is_list_of_bags(bags):
        return _stack(list(bags), name)
    shape = _shape(bags, name)
    empty = shape[:1] == (0,)
    if empty or len(shape) not in (2, 3):
        what = f"is a {type(bags).__name__} of {len(shape)} dimension(s), shape {shape}"
        what = "is empty: found 0 bags" if empty else what
        # scikit-learn's checks look for "Reshape your data".
        raise ValueError(f"{name} {what}. Reshape your data: {_FORMS[0].lower()}{_FORMS[1:]}")
    if len(shape) == 3:
        check_plain(bags, name)
        return _stack(list(np.asarray(bags)), name)
    _check_no_names(bags, name)
    points = _check_points(bags, holder=name).copy()  # which is kept, and must not change
    return points, np.arange(len(points) + 1)


def listed(bags: Any) -> Any:
    """Sets that come one after the other as a list: of an iterator, or of a pandas groupby."""
    if isinstance(bags, Iterator):
        return list(bags)
    if hasattr(bags, "groups") and hasattr(bags, "exclusions"):
        return [_without(group, bags.exclusions) for _, group in bags]
    return bags


def _without(group: Any, exclusions: Collection[Any]) -> Any:
    """One group of a frame without the columns it was grouped by; of a single column, that."""
    if group.ndim == 1:
        return group.to_frame()
    return group.drop(columns=[column for column in group.columns if column in exclusions])


def is_list_of_bags(bags: Any) -> bool:
    """Tell a list of bags from a table written as a list of rows."""
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
    """Points of a list of bags, and where each bag begins."""
    points = []
    for i, bag in enumerate(bags):
        n_axes = _dimensions(bag)
        if (np.size(bag) if n_axes < 2 else table_shape(bag)[0]) == 0:
            raise ValueError(f"Bag {i} of {name} is empty. Drop it, or give it a point.")
        if sparse.issparse(bag):
            raise TypeError(f"Bag {i} of {name} is sparse. Call toarray() on it first.")
        if n_axes != 2:
            raise ValueError(
                f"Bag {i} of {name} has {n_axes} dimension(s); a bag has 2, points by features. "
                f"{_FORMS}"
            )
        points.append(_check_points(bag, holder=f"bag {i} of {name}"))
        _check_same_columns(bag, bags[0], i, name)
        if points[i].shape[1] != points[0].shape[1]:
            raise ValueError(
                f"Points of bag {i} of {name} have {points[i].shape[1]} columns, those of bag 0 "
                f"have {points[0].shape[1]}. Describe the points of all bags by the same columns."
            )
    sizes = [len(each) for each in points]
    return np.concatenate(points), np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


def _check_points(bag: Any, *, holder: str) -> NDArray[np.float64]:
    try:
        points = as_numbers(bag, holder)
    except ValueError as error:
        if "different lengths" in str(error):
            raise ValueError(
                f"Points of {holder} have different numbers of columns. Describe all points by "
                "the same columns."
            ) from error
        if "holds text" not in str(error):
            raise
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
    """Refuse a data frame with a column of text: it likely says which set each row is in."""
    if not hasattr(table, "iloc"):
        return
    for place, column in enumerate(table.columns):
        values = np.asarray(table.iloc[:, place])
        if values.dtype.kind in "US" or any(isinstance(each, str) for each in values[:1]):
            raise ValueError(
                f"Column {column!r} of {name} holds text. If it says which set each row belongs "
                f"to, pass {name}.groupby({column!r}): one set for each group. Otherwise drop it, "
                "or encode it as numbers."
            )


def _check_same_columns(bag: Any, first: Any, i: int, name: str) -> None:
    """Refuse data frames whose columns have the same number, but other names."""
    if not (hasattr(bag, "columns") and hasattr(first, "columns")):
        return
    columns, expected = list(bag.columns), list(first.columns)
    if columns != expected and len(columns) == len(expected):
        raise ValueError(
            f"Bag {i} of {name} has the columns {columns}, bag 0 has {expected}. Give all bags "
            "the same columns in the same order."
        )


def check_several_bags(n_bags: int, name: str) -> None:
    """Refuse a single bag: there is nothing to align it with."""
    if n_bags < 2:
        raise ValueError(
            f"{name} holds {n_bags} bag (n_samples = {n_bags}). Bags are aligned with each other, "
            "so pass at least two; to align new bags with fitted ones use transform."
        )


def check_gap(points: NDArray[np.float64], name: str) -> None:
    """Refuse points whose differences are rounding, or have no square among the floats."""
    gap = float((points.max(axis=0) - points.min(axis=0)).max())
    if 0.0 < gap < 1e-150:
        raise ValueError(
            f"Points of {name} differ by at most {gap:.3g}, whose square is too small for a "
            "float. Multiply the values by a common number first."
        )
    check_resolved(points, name)


def check_not_one_bag(bags: Any, name: str, *, others: str = "the fitted bags") -> None:
    """Refuse a table where other bags have several points: it would be bags of one."""
    if _dimensions(bags) == 2 and not is_list_of_bags(bags):
        raise ValueError(
            f"{name} is 2-D, {len(bags)} bags of one point each, but {others} have "
            "several. For a single bag pass [bag]; for bags of one point, a list of arrays with "
            "one row."
        )


def check_bag_width(width: int, expected: int, estimator: str) -> None:
    """Refuse new bags whose points have other columns than the fitted ones."""
    if width != expected:
        # scikit-learn's checks look for these words.
        raise ValueError(
            f"X has {width} features, but {estimator} is expecting {expected} features "
            "as input: points of new bags need the columns of the fitted ones."
        )


def check_bags_memory(n_bags: int, n_points: int, n_features: int) -> None:
    """Refuse features and costs that would not fit into the memory that is free now."""
    n_numbers = n_points * n_features
    check_memory(
        # features, their ordered copy, and what a decomposition takes beside them; costs
        8 * (4 * n_bags * n_numbers + 3 * n_bags * min(n_bags, n_numbers) + 4 * n_points**2),
        what=f"Aligning {n_bags:,} bags of {n_points:,} points with {n_features} features each",
        instead="Pass a smaller n_points, or fewer n_landmarks.",
    )
