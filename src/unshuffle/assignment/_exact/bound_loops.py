"""Compiled loops of lower bounds for quadratic assignment; imported when needed.

`_quadratic_ascent` describes the costs of a node.
"""

import numpy as np

from unshuffle._run.compile import compiled
from unshuffle._run.types import Floats, Indices
from unshuffle.assignment._exact.ascent import FORBIDDEN


@compiled()
def least_products(X: Floats, Y: Floats, w: float, start: int, stop: int) -> Floats:
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
def reduce_choices(
    pairs: Floats,
    leader: Floats,
    totals: Floats,
    gap: float,
    start: int,
    stop: int,
    forward: bool,
    ahead: bool,
    work: Floats,
    price: Floats,
    distance: Floats,
    indices: Indices,
    column_of: Indices,
) -> float:
    """Solve the assignments of choices `start` to `stop`; return the total of the last one.

    Choice i n + a (from the end, unless `forward`) assigns all pairs with i on a; choice n^2
    assigns the leader. Totals of the former are added to `totals`, which may be the leader, if
    these are below the gap. Pairs and leader are left reduced and nonnegative, and pairs that
    would close the gap are forbidden. Of pairs with a row that comes later, one half is used.

    With `ahead` all is used, the leader is added, and nothing is changed but `totals`. `pairs` and
    `leader` are flat. `work` (n, n) is scratch space, as are the others, of n columns.
    """
    n = work.shape[0]
    row_of, before, reached, starts = indices[0], indices[1], indices[2], indices[3]
    large = FORBIDDEN * gap
    total = 0.0
    for choice in range(start, stop):
        is_leader = choice == n * n
        place = choice if forward else n * n - 1 - choice
        i, a = place // n, place % n
        source, size, limit = pairs, n - 1, gap
        if is_leader:
            source, size, limit, i, a = leader, n, np.inf, n, n
        elif totals[place] >= gap:
            continue

        for column in range(size):
            price[column] = -np.inf
            row_of[column] = -1
            column_of[column] = -1
        row = 0
        for j in range(n):
            if j == i:
                continue
            if is_leader:
                at, stride = j * n, 1
            elif j < i:
                at, stride = (j * (2 * n - j - 1) // 2 + i - j - 1) * n * n + a, n
            else:
                at, stride = (i * (2 * n - i - 1) // 2 + j - i - 1) * n * n + a * n, 1
            starts[row] = at
            share = 1.0 if is_leader or ahead or (j < i) == forward else 0.5
            for b in range(n):
                if b != a:
                    # unsigned, since numba tests every signed index for being negative
                    to = np.uintp(b - (b > a))
                    cost = share * source[np.uintp(at)]
                    if ahead:
                        cost += leader[j * n + b]
                    work[row, to] = cost
                    price[to] = max(price[to], -cost)
                at += stride
            row += 1

        # Rows whose cheapest column is free take it; then each other by a shortest path.
        for by_path in range(2):
            for first in range(size):
                if column_of[first] >= 0:
                    continue
                least, nearest = np.inf, 0
                for column in range(size):
                    distance[column] = work[first, column] + price[column]
                    before[column] = first
                    reached[column] = 0
                    if distance[column] < least:
                        least, nearest = distance[column], column
                row = row_of[nearest]
                if row >= 0 and by_path == 0:
                    continue
                while row >= 0:
                    reached[nearest] = 1
                    behind = least - work[row, nearest] - price[nearest]
                    least = np.inf
                    for column in range(size):
                        if reached[column] == 0:
                            through = behind + work[row, column] + price[column]
                            if through < distance[column]:
                                distance[column] = through
                                before[column] = row
                            if distance[column] < least:
                                least, nearest = distance[column], column
                    if least == np.inf:
                        return np.nan
                    row = row_of[nearest]
                for column in range(size):
                    if reached[column] == 1:
                        price[column] += least - distance[column]
                while row != first:
                    row = before[nearest]
                    row_of[nearest] = row
                    column_of[row], nearest = nearest, column_of[row]

        total = 0.0
        for row in range(size):
            total += work[row, column_of[row]] + price[column_of[row]] - price[row]
        if not is_leader:
            totals[place] += total
            limit -= totals[place]
        if ahead:
            continue
        row = 0
        for j in range(n):
            if j == i:
                continue
            at = starts[row]
            stride = n if j < i < n else 1
            rest = 0.0 if is_leader or (j < i) == forward else 0.5
            least = work[row, column_of[row]] + price[column_of[row]]
            for b in range(n):
                if b != a:
                    of = np.uintp(b - (b > a))
                    cost = rest * source[np.uintp(at)] + max(
                        work[row, of] - least + price[of], 0.0
                    )
                    source[np.uintp(at)] = large if cost + leader[j * n + b] >= limit else cost
                at += stride
            row += 1
    return total
