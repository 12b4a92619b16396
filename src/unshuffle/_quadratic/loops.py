"""Compiled loops of quadratic matching; imported when needed, since numba loads slowly."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.compile import compiled
from unshuffle._run.types import Floats, Permutation

NO_COST = np.empty((0, 0))


@compiled()
def apply_swaps(
    K: Floats,
    L: Floats,
    cost: Floats,
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
                gain += ((K[a, k] - K[b, k]) * np.conj(L[pb, pk] - L[pa, pk])).real
        gain = 2.0 * gain - 4.0 * K[a, b].imag * L[pa, pb].imag
        gain += (K[a, a] - K[b, b]).real * (L[pb, pb] - L[pa, pa]).real
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
    K: Floats,
    L: Floats,
    cost: Floats,
    permutation: Permutation,
    rows: Permutation,
    columns: Permutation,
    used: NDArray[np.bool_],
    least_gain: float,
    square: float,
) -> tuple[float, int]:
    """Move each listed row to its unused column if that still gains; return (gain, number).

    `square` is the weight of the squared entries of L that is subtracted, 1 or 0.
    """
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
                gain += 2.0 * (K[a, k] * np.conj(after - before)).real
                gain -= square * (after * np.conj(after) - before * np.conj(before)).real
        after = L[new, new]
        before = L[old, old]
        gain += (K[a, a] * (after - before)).real
        gain -= 0.5 * square * (after * np.conj(after) - before * np.conj(before)).real
        if cost.shape[0]:
            gain += cost[a, old] - cost[a, new]
        if gain > least_gain:
            permutation[a] = new
            used[old] = False
            used[new] = True
            total += gain
            count += 1
    return total, count
