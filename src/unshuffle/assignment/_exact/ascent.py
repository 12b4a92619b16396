"""Dual ascent of lower bounds for quadratic assignment, and the children of a node.

Pair costs of a node with n free rows and columns are `pairs` (n (n - 1) / 2, n, n): the block of
rows i < j holds at [a, b] what it costs to put i on a and j on b. Entries [a, a] are not used. The
`leader` (n, n) holds what single choices cost. Both are C-contiguous and are changed in place.
"""

from functools import lru_cache

import numpy as np

from unshuffle._run.types import Floats, Indices

# Costs of forbidden choices, in gaps: large enough to stay above the gap when costs are moved.
FORBIDDEN = 8.0
# Sinkhorn's steps in a soft assignment; more gain little.
PASSES = 2
# Above all costs, with no share in a soft assignment.
UNREACHABLE = 1e200


def ascend(
    pairs: Floats,
    leader: Floats,
    bound: float,
    threshold: float,
    patience: float,
    temperature: float,
    step: int,
    n_steps: int,
    matching: Indices,
) -> tuple[float, int, bool]:
    """Dual ascent by Hahn and Grant for `n_steps` assignments from number `step`.

    Costs move between `leader`, `pairs` and `bound` so that each matching keeps its value.
    Returns the bound, the next step and whether the ascent is over: when the bound reaches the
    threshold, or when it would not within `patience` more rounds that gain as much as the last.
    `matching` is then the cheapest one of the leader. A round has n^2 steps. From the end of the
    first one on, the bound is valid and no cost is negative.

    With a positive temperature assignments are soft, and end with those of a row. The bound falls,
    but later rounds at temperature 0 raise it further than without, since hard ones alone get
    stuck.
    """
    n = leader.shape[0]
    end = step + n_steps
    while step < end:
        sweep, place = divmod(step, n * n)
        # costs may be negative in the first round and in soft ones: nothing can be forbidden
        gap = threshold - bound if sweep > 0 and temperature == 0.0 else np.inf
        if place == 0 and sweep > 0:
            _spread(pairs, leader, gap)
        forward = sweep % 2 == 0
        stop = min(place + end - step, n * n)
        if temperature > 0.0:
            rows = range(place // n, -(-stop // n))
            stop = rows.stop * n
            for row in rows:
                _soften_row(pairs, leader, row if forward else n - 1 - row, forward, temperature)
            if stop == n * n:
                bound += float(_balance(leader[:, :, None], temperature)[0])
        else:
            last = stop + (stop == n * n)
            gain = _reduce(pairs, leader, leader, gap, place, last, forward, matching)
            if stop == n * n:
                bound += gain
        step += stop - place
        if stop < n * n:
            break
        stuck = temperature == 0.0 and gain * patience < threshold - bound
        if stuck or bound >= threshold:
            return bound, step, True
    return bound, step, False


def look_ahead(pairs: Floats, leader: Floats, gap: float) -> Floats:
    """Least that each choice adds to the bound, by an assignment of its child; forbidden: inf."""
    n = leader.shape[0]
    added = leader.copy()
    unused = np.empty(n, dtype=np.intp)
    _reduce(pairs, leader, added, gap, 0, n * n, True, unused, ahead=True)
    added[added >= gap] = np.inf
    return added


def child_costs(pairs: Floats, leader: Floats, i: int, a: int) -> tuple[Floats, Floats, float]:
    """Pairs and leader of the child that puts i on a, and what it adds to the bound."""
    n = leader.shape[0]
    rows, columns = np.delete(np.arange(n), i), np.delete(np.arange(n), a)
    first, second = _pair_rows(n)
    kept = np.flatnonzero((first != i) & (second != i))
    cells = (columns[:, None] * n + columns).ravel()
    few = pairs.reshape(-1, n * n).take(kept, axis=0).take(cells, axis=1)
    few = few.reshape(-1, n - 1, n - 1)
    before, later = _blocks_with(i, n)
    small = np.concatenate([pairs[before, :, a], pairs[later, a]]).take(columns, axis=1)
    small += leader[np.ix_(rows, columns)]
    places = small.size
    gain = _reduce(few, small, small, np.inf, places, places + 1, True, np.empty_like(columns))
    return few, small, float(leader[i, a]) + gain


def _reduce(
    pairs: Floats,
    leader: Floats,
    totals: Floats,
    gap: float,
    start: int,
    stop: int,
    forward: bool,
    matching: Indices,
    *,
    ahead: bool = False,
) -> float:
    """Assignments of some choices, with scratch space; see `reduce_choices`."""
    from unshuffle.assignment._exact.bound_loops import reduce_choices

    n = leader.shape[0]
    flat = pairs.reshape(-1), leader.reshape(-1), totals.reshape(-1)
    scratch = np.empty((n, n)), np.empty(n), np.empty(n), np.empty((4, n), dtype=np.intp)
    return float(
        reduce_choices(*flat, float(gap), start, stop, forward, ahead, *scratch, matching)
    )


@lru_cache(maxsize=64)
def _pair_rows(n: int) -> tuple[Indices, Indices]:
    """Rows i < j of each block of pairs."""
    first, second = np.triu_indices(n, 1)
    return first, second


def _blocks_with(i: int, n: int) -> tuple[Indices, slice]:
    """Blocks of the pairs of row i with the rows before it and with those after it."""
    j = np.arange(i)
    start = i * (2 * n - i - 1) // 2
    return j * (2 * n - j - 1) // 2 + i - j - 1, slice(start, start + n - 1 - i)


def _spread(pairs: Floats, leader: Floats, gap: float) -> None:
    """Move what is left in the leader to the pairs; forbid choices that would close the gap."""
    forbidden = leader >= gap
    shares = leader / (leader.shape[0] - 1)
    shares[forbidden] = np.inf
    first, second = _pair_rows(leader.shape[0])
    pairs += shares[first][:, :, None]
    pairs += shares[second][:, None, :]
    leader[:] = 0.0
    if forbidden.any():
        pairs[pairs == np.inf] = leader[forbidden] = FORBIDDEN * gap


def _soften_row(pairs: Floats, leader: Floats, i: int, forward: bool, temperature: float) -> None:
    """Soft assignments of the pairs with row i, on each of the columns."""
    n = leader.shape[0]
    before, later = _blocks_with(i, n)
    costs = np.empty((n, n, n))  # of other rows j on columns b with i on a, as [j, b, a]
    costs[:i], costs[i + 1 :] = pairs[before], pairs[later].swapaxes(1, 2)
    # One half is left for a row that comes later in this round.
    left = costs[i + 1 :] if forward else costs[:i]
    left *= 0.5
    rest = left.copy()
    # Row i itself is on a at no cost, and nothing else is.
    costs[i], items = UNREACHABLE, np.arange(n)
    costs[:, items, items] = UNREACHABLE
    costs[i, items, items] = 0.0
    leader[i] += _balance(costs, temperature)
    left += rest
    pairs[before], pairs[later] = costs[:i], costs[i + 1 :].swapaxes(1, 2)


def _balance(costs: Floats, temperature: float) -> Floats:
    """Soft assignments of each `costs[:, :, a]`: Sinkhorn's steps on exp(-cost / temperature).

    What is subtracted from columns and rows is returned; costs left are nonnegative.
    """
    totals, shares = np.zeros(costs.shape[2]), np.empty_like(costs)
    for axis in (0, 1) * PASSES:
        least = np.minimum.reduce(costs, axis=axis, keepdims=True)
        np.subtract(least, costs, out=shares)
        shares /= temperature
        np.exp(shares, out=shares)
        least -= temperature * np.log(np.add.reduce(shares, axis=axis, keepdims=True))
        costs -= least
        totals += least.sum(axis=(0, 1))
        if axis == 1:
            np.maximum(costs, 0.0, out=costs)
    return totals
