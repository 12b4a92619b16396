"""Which point of each set stands in which slot of a template."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._assign import assign, assign_many, slot_distances
from unshuffle._bags import Bags, canonical_order
from unshuffle._parallel import map_parallel
from unshuffle._sizes import equal_sizes

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


def nearest_candidates(
    template: Array,
    features: Bags,
    *,
    prices: Array | None = None,
    n_jobs: int | None = None,
) -> Orders:
    """Candidates of each set that together lie closest to the slots of a template.

    Parameters
    ----------
    template : ndarray of shape (n_slots, n_features), or (n_sets, n_slots, n_features)
        One for all sets, or one for each.
    features : Bags
        Candidates of each set. Of those with more than there are slots, some stand nowhere; of
        those with fewer, all stand equally often, give or take one.
    prices : ndarray of shape (n_sets, n_slots) or None, default=None
        Where each set has as many candidates as there are slots: prices from a similar template,
        which save time, replaced by those of this one. None starts afresh, which gives a set the
        same order always, even where several are equally good.
    n_jobs : int or None, default=None
        Threads over sets; more are faster.

    Returns
    -------
    orders : ndarray of shape (n_sets, n_slots)
        The candidate in each slot.
    """
    n_sets, n_slots = len(features), template.shape[-2]
    square = bool((features.sizes == n_slots).all())
    if square and n_slots == 1:
        return np.zeros((n_sets, 1), dtype=np.intp)
    if square and features.width == 1:
        return _sorted_alike(template[..., 0], features.points.reshape(n_sets, n_slots))
    _check_range(template, features.points)
    prices = np.zeros((n_sets, n_slots)) if prices is None else prices
    orders = np.empty((n_sets, n_slots), dtype=np.intp)

    def place(start: int) -> None:
        sets = range(start, min(start + PORTION, n_sets))
        part = slice(sets.start, sets.stop)
        if square:
            orders[part] = assign_many(_square_costs(template, features, sets), prices[part])
            return
        for i in sets:
            target = template if template.ndim == 2 else template[i]
            orders[i] = _rectangular(slot_distances(target, features[i]))

    map_parallel(place, range(0, n_sets, PORTION), n_jobs=n_jobs)
    return orders


def _check_range(template: Array, points: Array) -> None:
    """Refuse features whose squared distances, added up over the slots, do not fit into floats."""
    largest = max(float(np.abs(each).max(initial=0.0)) for each in (template, points))
    if largest > 1e150 / np.sqrt(max(template[..., 0].size, 1) * max(points.shape[1], 1)):
        raise ValueError(
            f"Features of points, or of the template moved by `lam`, are as large as "
            f"{largest:.3g}: their squared distances are too large for a float. Divide the "
            "points by a common number first, or pass a smaller `lam`."
        )


def _square_costs(template: Array, features: Bags, sets: range) -> Array:
    """Costs of sets with as many candidates as slots, shape (n_sets, n_slots, n_slots)."""
    if template.ndim == 3:
        return np.stack([slot_distances(template[i], features[i]) for i in sets])
    n_slots = len(template)
    # one product for all, rather than many small ones
    costs = slot_distances(template, features.part(sets.start, sets.stop).points)
    return np.ascontiguousarray(costs.reshape(n_slots, -1, n_slots).swapaxes(0, 1))


def _sorted_alike(target: Array, values: Array) -> Orders:
    """Orders in which single numbers are sorted as those of the target are: the best matching."""
    ranks = np.argsort(np.argsort(target, axis=-1, kind="stable"), axis=-1, kind="stable")
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(order, np.broadcast_to(ranks, order.shape), axis=1)


def _rectangular(cost: Array) -> Orders:
    """Column for each row: of many columns the best, of few all, equally often or one more."""
    n_slots, size = cost.shape
    if size >= n_slots:
        return assign(-cost).columns
    n_copies, n_more = divmod(n_slots, size)
    copies = np.tile(cost, (1, n_copies + bool(n_more)))
    # One copy too many of some: dear enough that the others are all used first.
    copies[:, n_copies * size :] += n_slots * max(float(np.ptp(cost)), np.finfo(float).tiny)
    return np.asarray(assign(-copies).columns % size)
