"""Compiled loops of quadratic matching; imported when needed, since numba loads slowly."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._compile import compiled

Array = NDArray[np.float64]
Permutation = NDArray[np.intp]


@compiled()
def matched_sums(
    K: Array,
    L: Array,
    permutation: Permutation,
    start: int,
    stop: int,
    product: float,
    square: float,
) -> tuple[float, float]:
    """Add K[i, j] L[p(i), p(j)] and L[p(i), p(j)]^2 to two sums, for some rows i and all j."""
    n = permutation.shape[0]
    for i in range(max(start, 0), stop):
        similar = K[i]
        partner = L[permutation[i]]
        row_product = 0.0
        row_square = 0.0
        for j in range(n):
            other = partner[permutation[j]]
            row_product += similar[j] * other
            row_square += other * other
        product += row_product
        square += row_square
    return product, square


@compiled()
def swap_gains(
    slopes: Array,
    K: Array,
    L: Array,
    rows: Permutation,
    partners: Permutation,
    start: int,
    stop: int,
) -> Array:
    """Gain of swapping the partners of items i < j of `rows`, i from `start` to `stop`; else 0.

    Slopes assume that all other items stay, so the pair (i, j), which a swap does not change, is
    miscounted twice; the last term corrects this.
    """
    n = rows.shape[0]
    gains = np.zeros((stop - start, n))
    stay = np.empty(n)
    for i in range(n):
        stay[i] = slopes[rows[i], partners[i]]
    for i in range(max(start, 0), stop):  # tells numba that no index is negative
        own = slopes[rows[i]]
        similar = K[rows[i]]
        partner = L[partners[i]]
        column = partners[i]
        for j in range(i + 1, n):
            gains[i - start, j] = (
                own[partners[j]]
                + slopes[rows[j], column]
                - stay[i]
                - stay[j]
                + 4.0 * similar[rows[j]] * partner[partners[j]]
            )
    return gains


@compiled()
def apply_swaps(
    K: Array,
    L: Array,
    cost: Array,
    permutation: Permutation,
    first: Permutation,
    second: Permutation,
    least_gain: float,
) -> tuple[float, int]:
    """Swap the partners of each listed pair if that still gains; return (gain, number of swaps).

    `cost` is (n, m), or (0, 0) for none. Each gain is recomputed in O(n), since earlier swaps may
    have changed it.
    """
    n = permutation.shape[0]
    total = 0.0
    count = 0
    for c in range(first.shape[0]):
        a = first[c]
        b = second[c]
        pa = permutation[a]
        pb = permutation[b]
        gain = 0.0
        for k in range(n):
            pk = permutation[k]
            if k != a and k != b:
                gain += (K[a, k] - K[b, k]) * (L[pb, pk] - L[pa, pk])
        gain *= 2.0
        if cost.shape[0]:
            gain += cost[a, pa] + cost[b, pb] - cost[a, pb] - cost[b, pa]
        if gain > least_gain:
            permutation[a] = pb
            permutation[b] = pa
            total += gain
            count += 1
    return total, count


@compiled()
def apply_replacements(
    K: Array,
    L: Array,
    cost: Array,
    permutation: Permutation,
    rows: Permutation,
    columns: Permutation,
    used: NDArray[np.bool_],
    least_gain: float,
) -> tuple[float, int]:
    """Move each listed row to its unused column if that still gains; return (gain, number)."""
    n = permutation.shape[0]
    total = 0.0
    count = 0
    for c in range(rows.shape[0]):
        a = rows[c]
        new = columns[c]
        if used[new]:
            continue
        old = permutation[a]
        gain = 0.0
        for k in range(n):
            pk = permutation[k]
            if k != a:
                after = L[new, pk]
                before = L[old, pk]
                gain += 2.0 * K[a, k] * (after - before) - (after * after - before * before)
        if cost.shape[0]:
            gain += cost[a, old] - cost[a, new]
        if gain > least_gain:
            permutation[a] = new
            used[old] = False
            used[new] = True
            total += gain
            count += 1
    return total, count


NO_COST = np.empty((0, 0))
