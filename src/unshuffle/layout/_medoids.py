"""k-medoids: the rows of a table of distances that its columns are nearest to."""

import heapq

import numpy as np
from numpy.typing import NDArray

Distances = NDArray[np.float32] | NDArray[np.float64]

# An exchange counts if it lowers the sum of distances by more than this share of it.
_LEAST_GAIN = 1e-6


def find_medoids(
    D: Distances, k: int, *, start: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Choose k rows so that the sum of the columns' distances to the nearest is small.

    Parameters
    ----------
    D : ndarray of shape (n_candidates, n_items), float32 or float64
        Distance of each candidate to each item.
    k : int
        How many to choose, at most `n_candidates`.
    start : ndarray of shape (k,) or None, default=None
        A choice to improve on; None begins with a greedy one.

    Returns
    -------
    chosen : ndarray of shape (k,)
        Different rows. No exchange of one of them for another row lowers the sum noticeably.
    """
    if k == 1:
        # The greedy choice tries them all.
        return _greedy(D, k)
    return _exchange(D, _greedy(D, k) if start is None else start)


def _greedy(D: Distances, k: int) -> NDArray[np.intp]:
    """Each time the row that lowers the sum most."""
    sums = D.sum(axis=1, dtype=np.float64)
    chosen = [int(sums.argmin())]
    nearest = D[chosen[0]].copy()
    # What a row gains only shrinks as others are chosen, so a gain known from before is a
    # bound, and most rows need not be looked at again.
    queue = [(-_gain(nearest, row), c) for c, row in enumerate(D) if c != chosen[0]]
    heapq.heapify(queue)
    while len(chosen) < k:
        _, best = heapq.heappop(queue)
        gain = _gain(nearest, D[best])
        if queue and -gain > queue[0][0]:
            heapq.heappush(queue, (-gain, best))
            continue
        chosen.append(best)
        np.minimum(nearest, D[best], out=nearest)
    return np.array(chosen, dtype=np.intp)


def _gain(nearest: Distances, row: Distances) -> float:
    return float(np.maximum(nearest - row, 0.0).sum(dtype=np.float64))


def _exchange(D: Distances, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """Exchange a chosen row for another as soon as that gains, until none does."""
    state = _Nearest(D, chosen)
    taken = np.zeros(len(D), dtype=bool)
    taken[chosen] = True
    candidate, n_since = 0, 0
    while n_since < len(D):
        n_since += 1
        if not taken[candidate]:
            change, slot = state.best_exchange(D[candidate])
            before, old = state.total(), int(state.chosen[slot])
            if change < -_LEAST_GAIN * before:
                state.exchange(slot, candidate)
                if state.total() < before:
                    taken[old], taken[candidate] = False, True
                    n_since = 0
                else:  # rounding alone promised a gain
                    state.exchange(slot, old)
        candidate = (candidate + 1) % len(D)
    return state.chosen


class _Nearest:
    """The two chosen rows that are nearest to each column, kept through exchanges."""

    def __init__(self, D: Distances, chosen: NDArray[np.intp]) -> None:
        self.D = D
        self.chosen = chosen.copy()
        n_items = D.shape[1]
        self.slots = np.zeros((2, n_items), dtype=np.intp)
        self.distances = np.zeros((2, n_items), dtype=np.float64)
        self._find(np.arange(n_items))

    def total(self) -> float:
        """Sum of the distances to the nearest."""
        return float(self.distances[0].sum())

    def best_exchange(self, row: Distances) -> tuple[float, int]:
        """Change of the sum if `row` took the best slot, and which that is."""
        first, second = self.distances
        # Other columns stay with whom they have, or go to their second.
        near = np.flatnonzero(row < second)
        to_row, to_first, to_second = row[near], first[near], second[near]
        gained = np.minimum(to_row - to_first, 0.0)
        # Columns whose nearest goes move to `row`, not to their second.
        kept = np.where(to_row < to_first, to_first, to_row) - to_second
        changes = self.losses + np.bincount(
            self.slots[0, near], weights=kept, minlength=len(self.chosen)
        )
        slot = int(changes.argmin())
        return float(changes[slot] + gained.sum()), slot

    def exchange(self, slot: int, candidate: int) -> None:
        """Give `slot` to another row of D."""
        self.chosen[slot] = candidate
        row = self.D[candidate]
        stale = (self.slots == slot).any(axis=0)
        nearest = ~stale & (row < self.distances[0])
        middle = ~stale & ~nearest & (row < self.distances[1])
        self.slots[1, nearest], self.distances[1, nearest] = (
            self.slots[0, nearest],
            self.distances[0, nearest],
        )
        for rank, where in ((0, nearest), (1, middle)):
            self.slots[rank, where], self.distances[rank, where] = slot, row[where]
        self._find(np.flatnonzero(stale))

    def _find(self, columns: NDArray[np.intp]) -> None:
        """Look up the two nearest of some columns anew."""
        found = self.D[np.ix_(self.chosen, columns)]
        two = np.argpartition(found, 1, axis=0)[:2]
        self.slots[:, columns] = two
        self.distances[:, columns] = np.take_along_axis(found, two, axis=0)
        gap = self.distances[1] - self.distances[0]
        # What is lost by taking each slot away: its columns go to their second.
        self.losses = np.bincount(self.slots[0], weights=gap, minlength=len(self.chosen))
