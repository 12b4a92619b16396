"""Compiled loops: auctions within small groups of cells, and exchanges between near cells.

Importing this module imports numba.
"""

import math
from typing import Any

import numpy as np

from unshuffle._run.compile import compiled

# "nnan" makes max() one instruction. There are no NaN or infinities here.
_compiled: Any = compiled(error_model="numpy", fastmath={"nnan", "reassoc", "contract", "nsz"})

BLOCK = 16
_WORTHLESS = np.float32(-3e38)
_UNAFFORDABLE = np.float32(1e30)
# For similar items, cells outbid each other by the least raise only. The raise doubles each time
# after this many bids for each cell: the auction ends sooner, a little farther from the optimum.
_BIDS_BEFORE_DOUBLING = 8


def assign_groups(
    board: Any, values: Any, field: Any, n_cells: int, cells: Any, starts: Any, prices: Any,
    raise_by: float, stay: float,
) -> None:  # fmt: skip
    """Assign the items of each group of cells to these cells.

    Board, its values and the field are those of `_surface_loops`. `starts` are the beginnings of
    the groups in `cells`, and the end of the last. `prices` of the items, and last of empty cells,
    are kept from call to call: they are a good start for the next auction. A larger `raise_by`,
    the least raise of a bid, is faster and leaves a larger gap to the optimum. `stay` is an extra
    benefit of each item in the cell where it is; larger values leave more items there.
    """
    largest = int(np.diff(starts).max(initial=0))
    width, n_planes = -(-largest // BLOCK) * BLOCK, len(field) // n_cells
    run_auctions(
        board, values, field, n_cells, cells, starts, prices, raise_by, stay,
        np.empty((largest, width), np.float32), np.empty((n_planes + 3, width), np.float32),
        np.empty((2, max(largest, n_planes))), np.empty((4, largest), np.int64),
    )  # fmt: skip


@_compiled
def run_auctions(
    board: Any, values: Any, field: Any, n_cells: int, cells: Any, starts: Any, prices: Any,
    raise_by: float, stay: float, benefit: Any, features: Any, numbers: Any, indices: Any,
) -> None:  # fmt: skip
    """`assign_groups`, with work space: cells bid for items until each has one."""
    n_planes = field.shape[0] // n_cells
    asked, worth = features[n_planes], features[n_planes + 1]
    best_of_block = features[n_planes + 2]
    local, common = numbers[0], numbers[1]
    items, item_of, cell_of, waiting = indices[0], indices[1], indices[2], indices[3]
    for group in range(starts.shape[0] - 1):
        start = starts[group]
        n = starts[group + 1] - start
        if n < 2:
            continue
        width = (n + BLOCK - 1) // BLOCK * BLOCK
        # Benefits within a group differ by little. Their common part moves into the prices,
        # since single precision would lose the differences.
        for plane in range(n_planes):
            mean = 0.0
            for j in range(n):
                mean += field[plane * n_cells + cells[start + j]]
            common[plane] = mean / n
        for j in range(n):
            cell = cells[start + j]
            items[j] = board[n_planes * n_cells + cell]
            price = prices[items[j]]
            for plane in range(n_planes):
                features[plane, j] = values[plane * n_cells + cell]
                price -= common[plane] * features[plane, j]
            local[j] = price
        lowest = local[0]
        for j in range(1, n):
            if local[j] < lowest:
                lowest = local[j]
        for j in range(n):
            asked[j] = local[j] - lowest
        for j in range(n, width):
            asked[j] = _UNAFFORDABLE
        for i in range(n):
            cell = cells[start + i]
            row = benefit[i]
            for j in range(width):
                row[j] = np.float32(0.0)
            for plane in range(n_planes):
                wanted = np.float32(field[plane * n_cells + cell] - common[plane])
                line = features[plane]
                for j in range(n):
                    row[j] += wanted * line[j]
            row[i] += np.float32(stay)
        n_blocks = width // BLOCK
        for i in range(n):
            waiting[i] = n - 1 - i
            cell_of[i] = -1
        n_waiting = n
        bids = 0
        least = np.float32(raise_by)
        while n_waiting > 0:
            cell = waiting[n_waiting - 1]
            row = benefit[cell]
            for block in range(n_blocks):
                highest = _WORTHLESS
                for k in range(BLOCK):  # a constant length can be unrolled
                    place = np.uintp(block * BLOCK + k)
                    here = row[place] - asked[place]
                    worth[place] = here
                    highest = max(highest, here)
                best_of_block[np.uintp(block)] = highest
            best = _WORTHLESS
            best_block = 0
            for block in range(n_blocks):
                if best_of_block[np.uintp(block)] > best:
                    best = best_of_block[np.uintp(block)]
                    best_block = block
            item = best_block * BLOCK
            for k in range(best_block * BLOCK, (best_block + 1) * BLOCK):
                if worth[np.uintp(k)] == best:
                    item = k
                    break
            second = _WORTHLESS
            for block in range(n_blocks):
                if block != best_block:
                    second = max(second, best_of_block[np.uintp(block)])
            for k in range(best_block * BLOCK, (best_block + 1) * BLOCK):
                if k != item:
                    second = max(second, worth[np.uintp(k)])
            asked[item] += best - second + least
            loser = cell_of[item]
            cell_of[item] = cell
            item_of[cell] = item
            if loser >= 0:
                waiting[n_waiting - 1] = loser
            else:
                n_waiting -= 1
            bids += 1
            if bids == _BIDS_BEFORE_DOUBLING * n:
                bids = 0
                least *= np.float32(2.0)
        for i in range(n):
            cell = cells[start + i]
            j = item_of[i]
            for plane in range(n_planes):
                values[plane * n_cells + cell] = features[plane, j]
            board[n_planes * n_cells + cell] = items[j]
        # Only differences matter. Empty cells keep their price, so the mean must not change.
        risen = 0.0
        for j in range(n):
            risen += asked[j] - (local[j] - lowest)
        for j in range(n):
            if items[j] >= 0:
                change = asked[j] - (local[j] - lowest) - risen / n
                prices[items[j]] += change


@_compiled
def exchange_neighbors(
    items: Any, features: Any, neighbors: Any, weights: Any, regions: Any, cells: Any,
    n_tries: int, n_steps: int, seed: int,
) -> None:  # fmt: skip
    """Try exchanges between cells a few steps apart, and keep those that bring neighbors closer.

    Cells are exchanged within a region, and not at all in regions below 0. Empty cells stay
    empty, since an item would always gain by moving to where it has fewer neighbors.
    """
    bits = np.uint64(seed) * np.uint64(2654435761) + np.uint64(88172645463325252)
    n_neighbors, n_features = neighbors.shape[1], features.shape[1]
    for i in range(cells.shape[0]):
        p = cells[i]
        if regions[p] < 0:
            continue
        for _ in range(n_tries):
            q, left = p, -1
            while left != 0:
                # Xorshift, so that the draws depend on nothing but the seed.
                bits ^= bits << np.uint64(13)
                bits ^= bits >> np.uint64(7)
                bits ^= bits << np.uint64(17)
                draw = bits >> np.uint64(33)
                if left < 0:
                    left = 1 + int(draw % np.uint64(n_steps))
                    continue
                left -= 1
                step = neighbors[q, int(draw % np.uint64(n_neighbors))]
                if step >= 0:
                    q = step
            a = items[p]
            b = items[q]
            if q == p or regions[q] != regions[p] or a < 0 or b < 0:
                continue
            gain = np.float32(0.0)
            for k in range(n_neighbors):
                for side in range(2):
                    cell, other, old, new = p, q, a, b
                    if side:
                        cell, other, old, new = q, p, b, a
                    c = neighbors[cell, k]
                    if c < 0 or c == other or items[c] < 0:
                        continue
                    before, after = np.float32(0.0), np.float32(0.0)
                    beside, leaving, coming = features[items[c]], features[old], features[new]
                    for f in range(n_features):
                        change = leaving[f] - beside[f]
                        before += change * change
                        change = coming[f] - beside[f]
                        after += change * change
                    gain += weights[cell, k] * (math.sqrt(before) - math.sqrt(after))
            if gain > np.float32(1e-6):
                items[p] = b
                items[q] = a
