"""Bags: several unordered sets of points, as one stacked array and offsets."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle import _validation as check
from unshuffle._middle import distances_from_middle, ordinary
from unshuffle._validation._collections import check_none_wild


def canonical_order(points: NDArray[np.float64]) -> NDArray[np.intp]:
    """Order of the points by their coordinates: the same however they were given."""
    return np.lexsort(points.T[::-1])


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
        points, offsets = check.check_bags(bags, name)
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
