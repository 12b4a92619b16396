"""The mean estimator: each bag is assigned to the mean of the others, section 3 of the paper."""

import numpy as np

from unshuffle._assign import assign, slot_distances
from unshuffle.alignment._arrangement import Arrangement

# A step must lower the squared distance by this share of it: less is rounding.
LEAST_GAIN = 1e-12


def mean_sweep(bags: Arrangement) -> int:
    """Assign every bag in turn to the mean of the others; never raises the trace.

    A point at distance r from the mean of the c other points of its slot adds c / (c + 1) r^2 to
    the sum of squares, so these are the costs; where no point is missing the factor is the same
    everywhere. All bags move, the first too: kept in place it would never join the others.

    Parameters
    ----------
    bags : Arrangement
        Changed in place.

    Returns
    -------
    n_moved : int
        Bags whose order changed.
    """
    complete = bool(bags.present.all())
    total = bags.points.sum(axis=0)
    counts = bags.present.sum(axis=0).astype(np.float64)
    slots = np.arange(bags.order.shape[1])
    n_moved = 0
    for t in range(len(bags.points)):
        here = bags.present[t].astype(np.float64)
        total -= bags.points[t]
        counts -= here
        mean = total / np.maximum(counts, 1.0)[:, None]
        cost = slot_distances(mean, bags.points[t])
        if not complete:
            cost *= (counts / (counts + 1.0))[:, None]
            cost *= here[None, :]
        columns = assign(-cost).columns
        before, after = np.trace(cost), cost[slots, columns].sum()
        if after < before - LEAST_GAIN * abs(before):
            bags.move(t, columns)
            n_moved += 1
        total += bags.points[t]
        counts += bags.present[t]
    return n_moved


def slot_means(bags: Arrangement) -> np.ndarray:
    """Mean of the points that fill each slot, shape (n_points, n_features)."""
    counts = bags.present.sum(axis=0)
    return np.asarray(bags.points.sum(axis=0) / np.maximum(counts, 1)[:, None])


def trace(bags: Arrangement) -> float:
    """Mean over bags of the squared distances of their points from the means of the slots."""
    deviations = (bags.points - slot_means(bags)) * bags.present[:, :, None]
    return float(np.sum(deviations**2)) / len(bags.points)


def filled(bags: Arrangement) -> np.ndarray:
    """Bags with the mean of the slot where a point is missing, (n_bags, n_points, n_features)."""
    if bags.present.all():
        return bags.points
    return np.where(bags.present[:, :, None], bags.points, slot_means(bags))
