"""Which point of each set stands in which slot of a template."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags, canonical_order
from unshuffle._parallel import map_parallel
from unshuffle._sizes import equal_sizes
from unshuffle.assignment._orders import squared_distances
from unshuffle.assignment._solve import assign

Array = NDArray[np.float64]
Orders = NDArray[np.intp]

# Sets that one thread takes at a time.
PORTION = 16


@dataclass(frozen=True)
class Candidates:
    """What may stand in the slots: for each set some of its points, in an order of our own.

    Attributes
    ----------
    features : Bags
        Features of the candidates of each set.
    indices : ndarray of shape (n_candidates_in_all,)
        Which point of its set, as the user gave it, each candidate is.
    """

    features: Bags
    indices: Orders

    @classmethod
    def of(
        cls,
        bags: Bags,
        features: Callable[[Array], Array],
        *,
        n_points: int,
        resampled: bool,
        seed: int,
    ) -> "Candidates":
        """Candidates for `n_points` slots: exactly so many where resampled, else all points."""
        if resampled:
            chosen = equal_sizes(bags, n_points, missing=False, seed=seed)
            indices, offsets = chosen.ravel(), np.arange(len(bags) + 1) * n_points
        else:
            indices = np.concatenate([canonical_order(points) for points in bags])
            offsets = bags.offsets
        holder = np.repeat(bags.offsets[:-1], np.diff(offsets))
        mapped = features(bags.points[holder + indices])
        return cls(Bags(mapped, offsets), indices)

    def __len__(self) -> int:
        return len(self.features)

    def of_sets(self, chosen: Orders) -> "Candidates":
        """Candidates of some of the sets."""
        sizes = self.features.sizes[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
        rows = np.repeat(self.features.offsets[:-1][chosen], sizes) + within
        return Candidates(Bags(self.features.points[rows], offsets), self.indices[rows])

    def points(self, orders: Orders) -> Orders:
        """Indices into each set as the user gave it, shape (n_sets, n_slots)."""
        return self.indices[self.features.offsets[:-1, None] + orders]

    def ordered(self, orders: Orders) -> Array:
        """Features of what stands in the slots, shape (n_sets, n_slots, n_features)."""
        return np.asarray(self.features.points[self.features.offsets[:-1, None] + orders])


def nearest_candidates(template: Array, features: Bags, *, n_jobs: int | None = None) -> Orders:
    """Candidates of each set that together lie closest to the slots of a template.

    Parameters
    ----------
    template : ndarray of shape (n_slots, n_features), or (n_sets, n_slots, n_features)
        One for all sets, or one for each.
    features : Bags
        Candidates of each set. Of those with more than there are slots, some stand nowhere; of
        those with fewer, all stand equally often, give or take one.
    n_jobs : int or None, default=None
        Threads over sets; more are faster.

    Returns
    -------
    orders : ndarray of shape (n_sets, n_slots)
        The candidate in each slot.
    """
    n_sets, n_slots = len(features), template.shape[-2]
    if n_slots == 1 and features.sizes.max() == 1:
        return np.zeros((n_sets, 1), dtype=np.intp)
    if features.width == 1 and (features.sizes == n_slots).all():
        return _sorted_alike(template[..., 0], features.points.reshape(n_sets, n_slots))
    orders = np.empty((n_sets, n_slots), dtype=np.intp)

    def place(start: int) -> None:
        for i in range(start, min(start + PORTION, n_sets)):
            target = template if template.ndim == 2 else template[i]
            orders[i] = _nearest(target, features[i])

    map_parallel(place, range(0, n_sets, PORTION), n_jobs=n_jobs)
    return orders


def _sorted_alike(target: Array, values: Array) -> Orders:
    """Orders in which single numbers are sorted as those of the target are: the best matching."""
    ranks = np.argsort(np.argsort(target, axis=-1, kind="stable"), axis=-1, kind="stable")
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(order, np.broadcast_to(ranks, order.shape), axis=1)


def _nearest(target: Array, candidates: Array) -> Orders:
    cost = squared_distances(target, candidates)
    n_slots, size = cost.shape
    if size >= n_slots:
        return assign(-cost).columns
    n_copies, n_more = divmod(n_slots, size)
    copies = np.tile(cost, (1, n_copies + bool(n_more)))
    # One copy too many of some: dear enough that the others are all used first.
    copies[:, n_copies * size :] += n_slots * max(float(np.ptp(cost)), np.finfo(float).tiny)
    return np.asarray(assign(-copies).columns % size)
