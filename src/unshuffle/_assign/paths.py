"""Compiled loops of assignment by shortest augmenting paths; imported when needed."""

import numpy as np

from unshuffle._run.compile import compiled
from unshuffle._run.types import Floats, Indices


@compiled()
def assign_each(costs: Floats, prices: Floats, columns: Indices) -> bool:
    """Solve square problems exactly; False if a cost or a price is not finite.

    `prices` (n_problems, n) hold any starting prices and are replaced by those of the solution;
    `columns` is filled with the column of each row.
    """
    n = costs.shape[1]
    row_of = np.empty(n, dtype=np.intp)
    free = np.empty(n, dtype=np.intp)
    for each in range(costs.shape[0]):
        cost, price, column_of = costs[each], prices[each], columns[each]
        n_free = take_cheapest(cost, price, row_of, column_of, free)
        if not augment_rows(cost, price, row_of, column_of, free[:n_free]):
            return False
    return True


@compiled()
def augment_rows(
    cost: Floats, price: Floats, row_of: Indices, column_of: Indices, free: Indices
) -> bool:
    """Match the free rows one after the other; False if a cost is not finite.

    Dijkstra's shortest path leads from each to a free column.
    """
    n = cost.shape[0]
    before = np.empty(n, dtype=np.intp)
    distance = np.empty(n)
    reached = np.empty(n, dtype=np.bool_)
    for place in range(free.shape[0]):
        start = free[place]
        for j in range(n):
            distance[j] = cost[start, j] + price[j]
            before[j] = start
            reached[j] = False
        while True:
            least, nearest = np.inf, -1
            for j in range(n):
                if not reached[j] and distance[j] < least:
                    least, nearest = distance[j], j
            if nearest < 0:  # all remaining costs are infinite or NaN
                return False
            reached[nearest] = True
            i = row_of[nearest]
            if i < 0:
                break
            behind = least - cost[i, nearest] - price[nearest]
            for j in range(n):
                if not reached[j]:
                    through = behind + cost[i, j] + price[j]
                    if through < distance[j]:
                        distance[j] = through
                        before[j] = i
        for j in range(n):
            if reached[j]:
                price[j] += least - distance[j]
        j = nearest
        while True:
            i = before[j]
            row_of[j] = i
            column_of[i], j = j, column_of[i]
            if i == start:
                break
    return True


@compiled()
def take_cheapest(
    cost: Floats, price: Floats, row_of: Indices, column_of: Indices, free: Indices
) -> int:
    """Match each row to its cheapest column if that is free, and return the number of free rows.

    With the prices of a similar problem few rows stay free, and their paths are short.
    """
    n = cost.shape[0]
    row_of[:] = -1
    n_free = 0
    for i in range(n):
        least, cheapest = np.inf, 0
        for j in range(n):
            total = cost[i, j] + price[j]
            if total < least:
                least, cheapest = total, j
        if row_of[cheapest] < 0:
            row_of[cheapest] = i
            column_of[i] = cheapest
        else:
            free[n_free] = i
            n_free += 1
    return n_free
