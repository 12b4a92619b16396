"""Compiled loops of tabu search for quadratic matching; imported when needed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._compile import compiled

Array = NDArray[np.float64]
Permutation = NDArray[np.intp]

NO_GAIN = -1e300
# Lets sums be vectorized.
ROUNDING = {"reassoc", "contract", "nsz", "arcp"}


@compiled(error_model="numpy", fastmath=ROUNDING)
def tabu_swaps(
    K: Array,
    L: Array,
    skew: NDArray[np.bool_],
    slopes: Array,
    order: Permutation,
    n_steps: int,
    shortest: int,
    longest: int,
    least_gain: float,
    seed: int,
) -> float:
    """Swap partners for `n_steps`, always by the best one that is not taboo; return the best gain.

    K and L (n_layers, m, m) are symmetric layers, or `skew` ones, whose products add up. `order`
    holds the partners of the n rows of `slopes`, then those that are unused; it is replaced by the
    best one met. A place that an item has left is taboo for `shortest` to `longest` steps, unless
    the swap leads to a new best. `slopes` (n, m), in that order, are overwritten.

    All gains are kept up to date. After a swap of a and b, those of other pairs change by
    -(x_i - x_j)(y_i - y_j), where x and y are differences of rows of K and L, and those with a
    and b follow from the slopes, to which x y' is added. A step takes about 3 n m operations.
    """
    n, m = slopes.shape
    n_layers = K.shape[0]
    matched = np.empty_like(L)
    for layer in range(n_layers):
        for i in range(m):
            for j in range(m):
                matched[layer, i, j] = L[layer, order[i], order[j]]
    gains = np.zeros((n, m))  # of i < j; the rest is scratch
    for i in range(n):
        _gains_with(K, matched, skew, slopes, gains, i)
    taboo = np.zeros((m, m), dtype=np.int32)  # until when item i must not return to a place
    until = np.zeros((n, m), dtype=np.int32)  # until when i and j must not swap
    x = np.zeros((n_layers, m))
    y = np.zeros((n_layers, m))
    best_of = np.empty(m)
    best_order = order.copy()
    random = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    current = best = 0.0
    for step in range(1, n_steps + 1):
        a, b, random = _best_move(
            gains, until, x, y, best_of, step, best - current + least_gain, random
        )
        current += gains[a, b]
        random = _next(random)
        taboo[a, order[a]] = step + shortest + _below(random, longest - shortest + 1)
        random = _next(random)
        taboo[b, order[b]] = step + shortest + _below(random, longest - shortest + 1)
        order[a], order[b] = order[b], order[a]
        for layer in range(n_layers):
            _swap_in_layer(K[layer], matched[layer], slopes, x[layer], y[layer], a, b)
        for i in range(n):
            slopes[i, a], slopes[i, b] = slopes[i, b], slopes[i, a]
        for place in (a, b):
            _gains_with(K, matched, skew, slopes, gains, place)
            for j in range(m):
                first, second = min(place, j), max(place, j)
                if first < n:
                    until[first, second] = min(taboo[place, order[j]], taboo[j, order[place]])
        # The next scan adds the common change to these gains too, which are exact already.
        _take_back(gains, x, y, a, b)
        if current > best + least_gain:
            best = current
            for k in range(m):  # whole arrays would take half a second longer to compile
                best_order[k] = order[k]
    for k in range(m):
        order[k] = best_order[k]
    return best


@compiled(error_model="numpy", fastmath=ROUNDING)
def _best_move(
    gains: Array,
    until: NDArray[np.int32],
    x: Array,
    y: Array,
    best_of: Array,
    step: int,
    needed: float,
    random: Any,
) -> tuple[int, int, Any]:
    """Update the gains and return the best move that is allowed, a random one of several.

    Maxima are kept for each column, since a maximum over a row would not be vectorized.
    """
    n, m = gains.shape
    last = x.shape[0] - 1
    now = np.int32(step)
    best_of[:] = NO_GAIN
    for i in range(n):
        row = gains[i, i + 1 :]
        for layer in range(last):
            x_i, y_i = x[layer, i], y[layer, i]
            xs, ys = x[layer, i + 1 :], y[layer, i + 1 :]
            for j in range(row.shape[0]):
                row[j] -= (x_i - xs[j]) * (y_i - ys[j])
        x_i, y_i = x[last, i], y[last, i]
        xs, ys, bars, best = (
            x[last, i + 1 :],
            y[last, i + 1 :],
            until[i, i + 1 :],
            best_of[i + 1 :],
        )
        for j in range(row.shape[0]):
            gain = row[j] - (x_i - xs[j]) * (y_i - ys[j])
            row[j] = gain
            allowed = gain if (bars[j] < now) | (gain > needed) else NO_GAIN
            best[j] = allowed if allowed > best[j] else best[j]
    highest = NO_GAIN
    for j in range(m):
        highest = max(highest, best_of[j])
    if highest == NO_GAIN:
        random = _next(random)
        a = _below(random, n)
        random = _next(random)
        b = _below(random, m - 1)
        b += b >= a
        return min(a, b), max(a, b), random
    a = b = n_equal = 0
    for j in range(m):
        if best_of[j] == highest:
            for i in range(min(j, n)):
                if gains[i, j] == highest and (until[i, j] < now or highest > needed):
                    n_equal += 1
                    random = _next(random)
                    if _below(random, n_equal) == 0:
                        a, b = i, j
    return a, b, random


@compiled(error_model="numpy", fastmath=ROUNDING)
def _swap_in_layer(
    K: Array, matched: Array, slopes: Array, x: Array, y: Array, a: int, b: int
) -> None:
    """Swap the partners of a and b in `matched`, update the slopes, and fill x and y."""
    n, m = slopes.shape
    K_a, K_b, L_a, L_b = K[a], K[b], matched[a], matched[b]
    for k in range(m):
        x[k] = 2.0 * (K_a[k] - K_b[k])
        y[k] = L_b[k] - L_a[k]
    for i in range(n):
        row, x_i = slopes[i], x[i]
        for j in range(m):
            row[j] += x_i * y[j]
    for k in range(m):
        L_a[k], L_b[k] = L_b[k], L_a[k]
    for k in range(m):
        matched[k, a], matched[k, b] = matched[k, b], matched[k, a]
    y[a], y[b] = y[b], y[a]


@compiled(error_model="numpy", fastmath=ROUNDING)
def _gains_with(
    K: Array, matched: Array, skew: NDArray[np.bool_], slopes: Array, gains: Array, a: int
) -> None:
    """Compute the gains of all swaps with `a` from the slopes; diagonals are zero."""
    n, m = slopes.shape
    if a >= n:
        for i in range(n):
            gains[i, a] = slopes[i, a] - slopes[i, i]
        return
    row = gains[a]
    for j in range(m):
        row[j] = slopes[a, j] - slopes[a, a]
    for j in range(n):
        row[j] += slopes[j, a] - slopes[j, j]
    for layer in range(K.shape[0]):
        if not skew[layer]:
            similar, partner = K[layer, a], matched[layer, a]
            for j in range(n):
                row[j] += 4.0 * similar[j] * partner[j]
    for i in range(a):
        gains[i, a] = row[i]


@compiled(error_model="numpy", fastmath=ROUNDING)
def _take_back(gains: Array, x: Array, y: Array, a: int, b: int) -> None:
    """Add (x_i - x_j)(y_i - y_j) to the gains with a or b, which `_best_move` subtracts."""
    n, m = gains.shape
    for layer in range(x.shape[0]):
        x_l, y_l = x[layer], y[layer]
        for j in range(m):
            if j != a:
                first, second = min(a, j), max(a, j)
                if first < n:
                    gains[first, second] += (x_l[a] - x_l[j]) * (y_l[a] - y_l[j])
            if j != a and j != b:
                first, second = min(b, j), max(b, j)
                if first < n:
                    gains[first, second] += (x_l[b] - x_l[j]) * (y_l[b] - y_l[j])


@compiled()
def _next(random: Any) -> Any:
    """Next state of Marsaglia's xorshift generator."""
    random ^= random << np.uint64(13)
    random ^= random >> np.uint64(7)
    random ^= random << np.uint64(17)
    return random


@compiled()
def _below(random: Any, n: int) -> Any:
    """Whole number from 0 to n - 1 from the state of the generator."""
    return np.int64((random >> np.uint64(33)) % np.uint64(n))
