"""Orders in which the points of bags lie closest to a target."""

import numpy as np
from numpy.typing import NDArray

from unshuffle.assignment._solve import assign

Array = NDArray[np.float64]
Order = NDArray[np.intp]


def nearest_order(target: Array, points: Array) -> Order:
    """Order of the points in which they lie closest to the target, slot by slot.

    Parameters
    ----------
    target : ndarray of shape (n_points, n_features)
        Where the points should be.
    points : ndarray of shape (n_points, n_features)
        The points of one bag.

    Returns
    -------
    columns : ndarray of shape (n_points,)
        `points[columns]` is as close to `target` as a reordering can be.
    """
    return assign(-squared_distances(target, points)).columns


def nearest_orders(
    target: Array,
    points: Array,
    *,
    weights: Array | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Order:
    """`nearest_order` of many bags, towards one target or each towards its own.

    Parameters
    ----------
    target : ndarray of shape (n_points, n_features) or (n_bags, n_points, n_features)
        Where the points should be.
    points : ndarray of shape (n_bags, n_points, n_features)
        Bags.
    weights : ndarray of shape (n_points,) or None, default=None
        What a squared distance costs in each slot.
    present : ndarray of shape (n_bags, n_points), bool, or None, default=None
        Points that are missing may go to any slot at no cost.

    Returns
    -------
    orders : ndarray of shape (n_bags, n_points)
        Indices as `nearest_order` gives them.
    """
    orders = np.empty(points.shape[:2], dtype=np.intp)
    for bag, each in enumerate(points):
        cost = squared_distances(target if target.ndim == 2 else target[bag], each)
        if weights is not None:
            cost *= weights[:, None]
        if present is not None:
            cost *= present[bag][None, :]
        orders[bag] = assign(-cost).columns
    return orders


def squared_distances(target: Array, points: Array) -> Array:
    """Squared distances from each slot of the target (rows) to each point (columns)."""
    # Not inner products, though the optimum is the same: the solver is several times faster
    # where most entries are far above the least.
    distances = target @ points.T
    distances *= -2.0
    distances += np.einsum("nr,nr->n", target, target)[:, None]
    distances += np.einsum("nr,nr->n", points, points)[None, :]
    return np.asarray(distances)
