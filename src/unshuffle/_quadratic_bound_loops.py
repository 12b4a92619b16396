"""Compiled loops of lower bounds for quadratic assignment; imported when needed.

Pair costs of a node with n free rows and columns are `pairs` (n (n - 1) / 2, n, n): the block of
rows i < j holds at [a, b] what it costs to put i on a and j on b. Entries [a, a] are not used.
"""

import numpy as np
from numpy.typing import NDArray

from unshuffle._assign_loops import augment_rows, take_cheapest
from unshuffle._compile import compiled

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Costs of forbidden choices, in gaps: large enough to stay above the gap when costs are moved.
FORBIDDEN = 8.0
# Sinkhorn's steps in a soft assignment; more gain little.
PASSES = 2


@compiled()
def least_products(X: Array, Y: Array, w: float, start: int, stop: int) -> Array:
    """Least sum of x y + w y^2 over injections of each row of X into each row of Y.

    Rows of X descend and those of Y ascend. The sum is then least for an injection that keeps the
    order, since exchanging the partners of x > x' changes it by (x - x') (y' - y). Which y stay
    free is found by dynamic programming.
    """
    n, m = X.shape[1], Y.shape[1]
    values = np.empty((stop - start, Y.shape[0]))
    best = np.empty(m - n + 1)  # of the first k entries of x, with the given number of y skipped
    for i in range(max(start, 0), stop):
        for a in range(Y.shape[0]):
            best[:] = 0.0
            for k in range(n):
                x = X[i, k]
                before = np.inf
                for skipped in range(m - n + 1):
                    y = Y[a, k + skipped]
                    before = min(before, best[skipped] + x * y + w * y * y)
                    best[skipped] = before
            values[i - start, a] = best[m - n]
    return values


@compiled()
def ascend(
    pairs: Array,
    leader: Array,
    bound: float,
    threshold: float,
    patience: float,
    temperature: float,
    step: int,
    n_steps: int,
    matching: Index,
) -> tuple[float, int, bool]:
    """Dual ascent by Hahn and Grant, in place, for `n_steps` assignments from number `step`.

    Costs move between `leader` (n, n), `pairs` and `bound` so that each matching keeps its value.
    Returns the bound, the next step and whether the ascent is over: when the bound reaches the
    threshold, or when it would not within `patience` more rounds that gain as much as the last.
    `matching` is then the cheapest one of the leader. A round has n^2 steps. From the end of the
    first one on, the bound is valid and no cost is negative.

    With a positive temperature assignments are soft. The bound falls, but later rounds at
    temperature 0 raise it further than without, since hard ones alone get stuck.
    """
    n = leader.shape[0]
    work = np.empty((n - 1, n - 1))
    floats, indices = np.empty((3, n)), np.empty((3, n), dtype=np.intp)
    partners = np.empty(n, dtype=np.intp)
    for at in range(step, step + n_steps):
        sweep, place = divmod(at, n * n)
        # costs may be negative in the first round and in soft ones: nothing can be forbidden
        gap = threshold - bound if sweep > 0 and temperature == 0.0 else np.inf
        if place == 0 and sweep > 0:
            _spread(pairs, leader, gap)
        forward = sweep % 2 == 0
        i, a = divmod(place if forward else n * n - 1 - place, n)
        if leader[i, a] < gap:
            _take(pairs, i, a, forward, work)
            if temperature > 0.0:
                leader[i, a] += _balance(work, temperature, floats)
            else:
                leader[i, a] += assign(work, floats, indices, partners)
            _give(pairs, leader, i, a, forward, work, gap)
        if place < n * n - 1:
            continue
        if temperature > 0.0:
            bound += _balance(leader, temperature, floats)
        else:
            gain = assign(leader, floats, indices, matching)
            bound += gain
            if gain * patience < threshold - bound:
                return bound, at + 1, True
        if bound >= threshold:
            return bound, at + 1, True
    return bound, step + n_steps, False


@compiled()
def _spread(pairs: Array, leader: Array, gap: float) -> None:
    """Move what is left in the leader to the pairs; forbid choices that would close the gap."""
    n = leader.shape[0]
    large = FORBIDDEN * gap
    shares = np.empty((n, n))
    for i in range(n):
        for a in range(n):
            forbidden = leader[i, a] >= gap
            shares[i, a] = np.inf if forbidden else leader[i, a] / (n - 1)
            leader[i, a] = large if forbidden else 0.0
    for i in range(n):
        for j in range(i + 1, n):
            block = pairs[_block(i, j, n)]
            for a in range(n):
                for b in range(n):
                    share = shares[i, a] + shares[j, b]
                    block[a, b] = block[a, b] + share if share < np.inf else large


@compiled()
def _take(pairs: Array, i: int, a: int, forward: bool, work: Array) -> None:
    """Copy the share of i on a in its pairs: half if the partner comes later in this round."""
    n = pairs.shape[1]
    for j in range(n):
        if j < i:
            _copy(pairs[_block(j, i, n), :, a], a, 1.0 if forward else 0.5, work[j])
        elif j > i:
            _copy(pairs[_block(i, j, n), a], a, 0.5 if forward else 1.0, work[j - 1])


@compiled()
def _give(
    pairs: Array, leader: Array, i: int, a: int, forward: bool, work: Array, gap: float
) -> None:
    """Put back what the assignment left; forbid pairs that would close the gap."""
    n = pairs.shape[1]
    large = FORBIDDEN * gap
    gap -= leader[i, a]
    for j in range(n):
        if j < i:
            rest = 0.0 if forward else 0.5
            _add(pairs[_block(j, i, n), :, a], a, rest, work[j], leader[j], gap, large)
        elif j > i:
            rest = 0.5 if forward else 0.0
            _add(pairs[_block(i, j, n), a], a, rest, work[j - 1], leader[j], gap, large)


@compiled()
def _copy(line: Array, skipped: int, share: float, row: Array) -> None:
    """Copy a share of all entries but one."""
    for b in range(skipped):
        row[b] = share * line[b]
    for b in range(skipped, row.shape[0]):
        row[b] = share * line[b + 1]


@compiled()
def _add(
    line: Array, skipped: int, rest: float, row: Array, alone: Array, gap: float, large: float
) -> None:
    """Reverse of `_copy`: keep the rest of each entry and add the row."""
    for b in range(skipped):
        value = rest * line[b] + row[b]
        line[b] = large if value + alone[b] >= gap else value
    for b in range(skipped + 1, line.shape[0]):
        value = rest * line[b] + row[b - 1]
        line[b] = large if value + alone[b] >= gap else value


@compiled()
def _block(i: int, j: int, n: int) -> int:
    """Place of the rows i < j in the list of pairs."""
    return i * (2 * n - i - 1) // 2 + j - i - 1


@compiled()
def look_ahead(pairs: Array, leader: Array, gap: float) -> Array:
    """Least that each choice adds to the bound, by an assignment of its child; forbidden: inf."""
    n = leader.shape[0]
    small = np.empty((n - 1, n - 1))
    floats, indices = np.empty((3, n)), np.empty((3, n), dtype=np.intp)
    partners = np.empty(n, dtype=np.intp)
    added = np.empty((n, n))
    for i in range(n):
        for a in range(n):
            added[i, a] = leader[i, a]
            if added[i, a] < gap:
                _small_leader(pairs, leader, i, a, small)
                added[i, a] += assign(small, floats, indices, partners)
            if added[i, a] >= gap:
                added[i, a] = np.inf
    return added


@compiled()
def _small_leader(pairs: Array, leader: Array, i: int, a: int, small: Array) -> None:
    """Leader of the child that puts i on a."""
    n = leader.shape[0]
    for j in range(n):
        if j < i:
            row = small[j]
            _copy(pairs[_block(j, i, n), :, a], a, 1.0, row)
        elif j > i:
            row = small[j - 1]
            _copy(pairs[_block(i, j, n), a], a, 1.0, row)
        else:
            continue
        for b in range(n - 1):
            row[b] += leader[j, b if b < a else b + 1]


@compiled()
def place(pairs: Array, leader: Array, i: int, a: int, few_pairs: Array, small: Array) -> float:
    """Fill the costs of the child that puts i on a; return what it adds to the bound."""
    n = leader.shape[0]
    _small_leader(pairs, leader, i, a, small)
    k = 0
    for j in range(n - 1):
        for other in range(j + 1, n - 1):
            block = pairs[_block(j if j < i else j + 1, other if other < i else other + 1, n)]
            for b in range(n - 1):
                _copy(block[b if b < a else b + 1], a, 1.0, few_pairs[k, b])
            k += 1
    floats, indices = np.empty((3, n)), np.empty((3, n), dtype=np.intp)
    partners = np.empty(n, dtype=np.intp)
    added: float = leader[i, a] + assign(small, floats, indices, partners)
    return added


@compiled()
def assign(cost: Array, floats: Array, indices: Index, column_of: Index) -> float:
    """Cheapest assignment by shortest augmenting paths; `cost` is left reduced and nonnegative.

    `floats` and `indices`, of two rows or more, are scratch space.
    """
    n = cost.shape[0]
    price = floats[0, :n]
    row_of, free = indices[0, :n], indices[1, :n]
    for j in range(n):
        price[j] = -cost[0, j]
    for i in range(1, n):
        for j in range(n):
            price[j] = max(price[j], -cost[i, j])
    n_free = take_cheapest(cost, price, row_of, column_of, free)
    augment_rows(cost, price, row_of, column_of, free[:n_free])
    total = 0.0
    for i in range(n):
        u = cost[i, column_of[i]] + price[column_of[i]]
        total += u - price[i]
        for j in range(n):
            cost[i, j] = max(cost[i, j] - u + price[j], 0.0)
    return total


@compiled()
def _balance(cost: Array, temperature: float, floats: Array) -> float:
    """Soft assignment: Sinkhorn's steps on exp(-cost / temperature), in place.

    What is subtracted from columns and rows is returned; costs left are nonnegative.
    """
    n = cost.shape[0]
    sums, v = floats[0], floats[1]
    total = 0.0
    for _ in range(PASSES):
        for j in range(n):
            sums[j] = 0.0
            v[j] = cost[0, j]
        for i in range(1, n):
            for j in range(n):
                v[j] = min(v[j], cost[i, j])
        for i in range(n):
            for j in range(n):
                sums[j] += np.exp((v[j] - cost[i, j]) / temperature)
        for j in range(n):
            v[j] -= temperature * np.log(sums[j])
            total += v[j]
        for i in range(n):
            least, row_sum = np.inf, 0.0
            for j in range(n):
                cost[i, j] -= v[j]
                least = min(least, cost[i, j])
            for j in range(n):
                row_sum += np.exp((least - cost[i, j]) / temperature)
            least -= temperature * np.log(row_sum)
            total += least
            for j in range(n):
                cost[i, j] = max(cost[i, j] - least, 0.0)
    return total


@compiled()
def complete(
    A: Array, B: Array, C: Array, w: float, permutation: Index, rows: Index, columns: Index
) -> None:
    """Place the free rows on free columns in the best way, by trying all."""
    n, m = rows.shape[0], columns.shape[0]
    alone = np.empty((n, m))
    for k in range(n):
        for c in range(m):
            alone[k, c] = C[rows[k], columns[c]]
            for j in range(permutation.shape[0]):
                if permutation[j] >= 0:
                    alone[k, c] += _pair_cost(A, B, w, rows[k], j, columns[c], permutation[j])
    chosen = np.full(n, -1, dtype=np.intp)
    costs = np.zeros(n + 1)  # of the rows before
    used = np.zeros(m, dtype=np.bool_)
    least = np.inf
    best = chosen.copy()
    k = 0
    while k >= 0:
        chosen[k] += 1
        c = chosen[k]
        if c == m:
            chosen[k] = -1
            k -= 1
            if k >= 0:
                used[chosen[k]] = False
        elif not used[c]:
            costs[k + 1] = costs[k] + alone[k, c]
            for other in range(k):
                a, b = columns[c], columns[chosen[other]]
                costs[k + 1] += _pair_cost(A, B, w, rows[k], rows[other], a, b)
            if k < n - 1:
                used[c] = True
                k += 1
            elif costs[n] < least:
                least = float(costs[n])
                for i in range(n):
                    best[i] = chosen[i]
    for i in range(n):
        permutation[rows[i]] = columns[best[i]]


@compiled()
def _pair_cost(A: Array, B: Array, w: float, i: int, j: int, a: int, b: int) -> float:
    """Cost of i on a together with j on b."""
    square = B[a, b] * B[a, b] + B[b, a] * B[b, a]
    cost: float = A[i, j] * B[a, b] + A[j, i] * B[b, a] + w * square
    return cost
