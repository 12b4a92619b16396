"""Bags in some order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._assign import nearest_orders

Array = NDArray[np.float64]
Order = NDArray[np.intp]


@dataclass
class Arrangement:
    """Bags of features in the order found so far.

    Attributes
    ----------
    points : ndarray of shape (n_bags, n_points, n_features)
        Features of the point in each slot; zeros where it is missing.
    order : ndarray of shape (n_bags, n_points)
        Index, in the bag as it was given to the solver, of the point in each slot.
    present : ndarray of shape (n_bags, n_points), bool
        Whether the slot is filled.
    """

    points: Array
    order: Order
    present: NDArray[np.bool_]

    @classmethod
    def assigned_to(
        cls, points: Array, present: NDArray[np.bool_], reference: int
    ) -> "Arrangement":
        """All bags assigned to one of them."""
        n_points = points.shape[1]
        weights = present[reference].astype(np.float64)
        order = nearest_orders(points[reference], points, weights=weights, present=present)
        order[reference] = np.arange(n_points)
        return cls.ordered(points, present, order)

    @classmethod
    def ordered(cls, points: Array, present: NDArray[np.bool_], order: Order) -> "Arrangement":
        """Bags in a given order."""
        return cls(
            np.take_along_axis(points, order[:, :, None], axis=1),
            order.copy(),
            np.take_along_axis(present, order, axis=1),
        )

    def move(self, bag: int, columns: Order) -> None:
        """Put the points of one bag into the slots in the order `columns`."""
        self.points[bag] = self.points[bag, columns]
        self.order[bag] = self.order[bag, columns]
        self.present[bag] = self.present[bag, columns]

    @property
    def vectors(self) -> Array:
        """Each bag as one vector; a view."""
        return self.points.reshape(len(self.points), -1)
