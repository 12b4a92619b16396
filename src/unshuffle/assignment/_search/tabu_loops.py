"""Compiled loops of tabu search for quadratic matching; imported when needed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.compile import compiled
from unshuffle._run.types import Floats, Permutation

Until = NDArray[np.int32]

NO_GAIN = -1e300
# Lets sums be vectorized.
ROUNDING = {"reassoc", "contract", "nsz", "arcp"}


@compiled(error_model="numpy", fastmath=ROUNDING)
def tabu_swaps(
    K: Floats,
    matched: Floats,
    skew: NDArray[np.bool_],
    slopes: Floats,
    order: Permutation,
    best_order: Permutation,
    gains: Floats,
    taboo: Until,
    until: Until,
    x: Floats,
    y: Floats,
    best_of: Floats,
    n_steps: int,
    shortest: int,
    n_lengths: int,
    least_gain: float,
    random: NDArray[np.uint64],
) -> float:
    """Swap partners for `n_steps`, always by the best one that is not taboo; return the best gain.

    K and `matched` (n_layers, m, m) are symmetric layers, or `skew` ones, whose products add up;
    `matched` is that of the larger collection in the order of the partners. `order` holds the
    partners of the n rows of `slopes`, then those that are unused; `best_order` becomes the best
    one met. A place that an item has left is taboo for `shortest` steps or more, by one of
    `n_lengths`, unless the swap leads to a new best. `slopes` (n, m), in that order, are
    overwritten.

    `gains` (n, m) are those of swaps of i < j; the rest is scratch. `taboo` (m, m) says until when
    item i must not return to a place, `until` (n, m) until when i and j must not swap, and all
    zeros forbid nothing. `x` and `y` (n_layers, m) are zero, and `best_of` (m,) is scratch.

    All gains are kept up to date. After a swap of a and b, those of other pairs change by
    -(x_i - x_j)(y_i - y_j), where x and y are differences of rows of K and L, and those with a
    and b follow from the slopes, to which x y' is added. A step takes about 3 n m operations.
    """
    n, m = slopes.shape
    last = K.shape[0] - 1
    current = best = 0.0
    for step in range(1, n_steps + 1):
        now = np.int32(step)
        needed = best - current + least_gain
        # Maxima are kept for each column, since a maximum over a row would not be vectorized.
        for j in range(m):
            best_of[j] = NO_GAIN
        for i in range(n):
            row, bars, best_row = gains[i, i + 1 :], until[i, i + 1 :], best_of[i + 1 :]
            for layer in range(last):
                x_i, y_i = x[layer, i], y[layer, i]
                xs, ys = x[layer, i + 1 :], y[layer, i + 1 :]
                for j in range(row.shape[0]):
                    row[j] -= (x_i - xs[j]) * (y_i - ys[j])
            x_i, y_i = x[last, i], y[last, i]
            xs, ys = x[last, i + 1 :], y[last, i + 1 :]
            for j in range(row.shape[0]):
                gain = row[j] - (x_i - xs[j]) * (y_i - ys[j])
                row[j] = gain
                allowed = gain if (bars[j] < now) | (gain > needed) else NO_GAIN
                best_row[j] = allowed if allowed > best_row[j] else best_row[j]
        highest = NO_GAIN
        for j in range(m):
            highest = max(highest, best_of[j])
        # The best move that is allowed, a random one of several; any if all are taboo.
        a = b = n_equal = 0
        if highest > NO_GAIN:
            for j in range(m):
                if best_of[j] == highest:
                    for i in range(min(j, n)):
                        if gains[i, j] == highest and (until[i, j] < now or highest > needed):
                            n_equal += 1
                            if _below(random, n_equal) == 0:
                                a, b = i, j
        else:
            first = _below(random, n)
            second = _below(random, m - 1)
            second += second >= first
            a, b = min(first, second), max(first, second)

        current += gains[a, b]
        for place in (a, b):
            taboo[place, order[place]] = step + shortest + _below(random, n_lengths)
        order[a], order[b] = order[b], order[a]
        for layer in range(last + 1):
            for k in range(m):
                x[layer, k] = 2.0 * (K[layer, a, k] - K[layer, b, k])
                of_a, of_b = matched[layer, a, k], matched[layer, b, k]
                y[layer, k] = of_b - of_a
                matched[layer, a, k], matched[layer, b, k] = of_b, of_a
            for i in range(n):
                row, x_i, ys = slopes[i], x[layer, i], y[layer]
                for j in range(m):
                    row[j] += x_i * ys[j]
            for k in range(m):
                of_a, of_b = matched[layer, k, a], matched[layer, k, b]
                matched[layer, k, a], matched[layer, k, b] = of_b, of_a
            y[layer, a], y[layer, b] = y[layer, b], y[layer, a]
        for i in range(n):
            slopes[i, a], slopes[i, b] = slopes[i, b], slopes[i, a]
        for place in (a, b):
            for j in range(m):
                first, second = min(place, j), max(place, j)
                if first == second or first >= n:
                    continue
                gain = slopes[first, second] - slopes[first, first]
                if second < n:
                    gain += slopes[second, first] - slopes[second, second]
                for layer in range(last + 1):
                    if second < n and not skew[layer]:
                        gain += 4.0 * K[layer, place, j] * matched[layer, place, j]
                    # The next scan subtracts the common change, which is in the slopes already.
                    gain += (x[layer, place] - x[layer, j]) * (y[layer, place] - y[layer, j])
                gains[first, second] = gain
                until[first, second] = min(taboo[place, order[j]], taboo[j, order[place]])
        if current > best + least_gain:
            best = current
            for k in range(m):  # whole arrays would take half a second longer to compile
                best_order[k] = order[k]
    return best


@compiled(error_model="numpy")
def _below(random: NDArray[np.uint64], n: int) -> Any:
    """Whole number from 0 to n - 1 by Marsaglia's xorshift generator."""
    state = random[0]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    random[0] = state
    return np.int64((state >> np.uint64(33)) % np.uint64(n))
