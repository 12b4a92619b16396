"""Pair swaps (2-opt) for quadratic matching, and replacements by unused items."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._contracts import takes
from unshuffle._parallel import per_call, spans
from unshuffle._parameters import check_kernel_memory
from unshuffle.assignment._quadratic import READ, Array, Permutation, QuadraticProblem

# Gains below this share of the objective per item are rounding, and would cycle.
RELATIVE_GAIN = 1e-11
# More candidates than this many for each item wait for the next sweep, when gains are fresh.
CANDIDATES_PER_ITEM = 16


@takes(problem="problem n m", permutation="n among m", max_sweeps="count")
def swap_ascent(
    problem: QuadraticProblem,
    permutation: Permutation,
    *,
    max_sweeps: int = 100,
    slopes: Array | None = None,
) -> tuple[Permutation, int]:
    """Improve a matching by exchanging partners until no exchange of two gains.

    Each sweep reads the gain of every exchange from the gradient and carries out those that gain,
    best first; as one exchange changes the gain of the next, each is checked in O(n) first. The
    gradient is then updated by one product over the items that moved. Where the second collection
    is larger, an item may also take a partner nobody has.

    Parameters
    ----------
    problem : QuadraticProblem
        What to maximise; the diagonals of K and L must be zero.
    permutation : ndarray of shape (n,)
        Where to start; not changed.
    max_sweeps : int, default=100
        Most sweeps; more come closer to a matching that no exchange improves.
    slopes : ndarray of shape (n, m) or None
        Gradient at `permutation`, where the caller has it; on return it is the gradient at the
        result.

    Returns
    -------
    permutation : ndarray of shape (n,)
        Never worse than the start.
    n_moves : int
        Exchanges made.
    """
    check_kernel_memory(*problem.shape, n_copies=3.3)
    from unshuffle.assignment._loops import NO_COST, apply_replacements, apply_swaps

    permutation = np.array(permutation, dtype=np.intp)
    rows = problem.free_rows
    if rows.size < 1:
        return permutation, 0
    near, _ = problem.about_middle()
    if near is not problem:
        permutation, n_moves = swap_ascent(near, permutation, max_sweeps=max_sweeps)
        if slopes is not None:
            slopes[...] = problem.gradient(permutation)
        return permutation, n_moves
    K, L = problem.K, problem.L
    cost = NO_COST if problem.cost is None else problem.cost
    least_gain = RELATIVE_GAIN * max(abs(problem.value(permutation)), np.finfo(float).tiny)
    n_moves = 0
    if slopes is None:
        slopes = problem.gradient(permutation)
    for _ in range(max_sweeps):
        before = permutation.copy()
        first, second = _best_first(_swap_gains(problem, permutation, slopes, rows), least_gain)
        first, second, moved = rows[first], rows[second], 0
        for start, stop in spans(first.size, 3 * READ * rows.size):
            pairs = first[start:stop], second[start:stop]
            moved += apply_swaps(K, L, cost, permutation, *pairs, least_gain)[1]
        if problem.squared_L is not None:
            used = np.zeros(L.shape[0], dtype=np.bool_)
            used[permutation] = True
            free = problem.free_columns
            free = free[~used[free]]
            gains = _replacement_gains(problem, permutation, slopes, rows, free)
            items, unused = _best_first(gains, least_gain)
            items, unused = rows[items], free[unused]
            for start, stop in spans(items.size, 3 * READ * rows.size):
                pairs = items[start:stop], unused[start:stop]
                moved += apply_replacements(K, L, cost, permutation, *pairs, used, least_gain)[1]
        n_moves += moved
        if moved == 0:
            break
        problem.update_gradient(slopes, before, permutation)
    return permutation, n_moves


def _swap_gains(
    problem: QuadraticProblem, permutation: Permutation, slopes: Array, rows: NDArray[np.intp]
) -> Array:
    """Gain of exchanging the partners of each two of `rows`, upper triangle."""
    from unshuffle.assignment._loops import swap_gains

    n = rows.size
    known = slopes, problem.K, problem.L, rows, permutation[rows]
    if per_call(4 * READ * n) >= n:
        return swap_gains(*known, 0, n)
    gains = np.empty((n, n))
    for start, stop in spans(n, 4 * READ * n):
        gains[start:stop] = swap_gains(*known, start, stop)
    return gains


def _replacement_gains(
    problem: QuadraticProblem,
    permutation: Permutation,
    slopes: Array,
    rows: NDArray[np.intp],
    free: NDArray[np.intp],
) -> Array:
    """Gain of giving each of `rows` each unused partner in `free`."""
    partners = permutation[rows]
    stay = slopes[rows, partners]
    squared = problem.squared_L if problem.squared_L is not None else problem.L
    # The slope of an unused partner counts the old one beside it; after the exchange it is gone.
    gains: Array = slopes[np.ix_(rows, free)] - stay[:, None] + squared[np.ix_(partners, free)]
    return gains


def _best_first(gains: Array, least_gain: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Index pairs whose gain exceeds `least_gain`, the largest first."""
    first, second = np.nonzero(gains > least_gain)
    size = gains[first, second]
    most = CANDIDATES_PER_ITEM * gains.shape[0]
    if size.size > most:
        kept = np.argpartition(-size, most)[:most]
        kept.sort()
        first, second, size = first[kept], second[kept], size[kept]
    order = np.argsort(-size, kind="stable")
    return first[order], second[order]
