"""Bags of different sizes brought to one size, by indices into the bags as given."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags, canonical_order

MISSING = -1


def equal_sizes(bags: Bags, n_points: int, *, missing: bool, seed: int) -> NDArray[np.intp]:
    """Indices of `n_points` points of each bag, in an order that is not that of the bag.

    Parameters
    ----------
    bags : Bags
        Bags of any sizes.
    n_points : int
        Points wanted of each.
    missing : bool
        Whether smaller bags are filled up with -1, rather than with copies of their points.
    seed : int
        Which points are copied, or left out where there are too many. All bags use it alike, so
        that the answer for a bag does not depend on its neighbours.

    Returns
    -------
    chosen : ndarray of shape (n_bags, n_points)
        Row indices into each bag.
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
