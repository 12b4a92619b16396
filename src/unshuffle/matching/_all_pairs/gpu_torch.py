"""Loops over all pairs in plain PyTorch, a block of rows at a time; imported when needed.

They serve where Triton is missing. The functions of `gpu_triton` have the same names.
"""

from collections.abc import Iterator
from typing import Any

import torch

N_WIDTHS = 8
BLOCK_BYTES = 2**26  # of the products of a block of rows
RESOLUTION = 2.4e-7  # of single precision, relative
LOWEST = -3e38
ROW_BITS = 32  # of the word of a column: bits of its price above, its owner's number below
N_ROUNDS = 64  # of bids before the rows that wait are counted
PATIENCE = 64  # calls of few rows that get nowhere before they may give up


def densities(points: Any, rows: Any, rate: float) -> Any:
    """Sums over all points of exp(-2^t rate d^2), t = 0 .. 7, for some points."""
    points = points - points.mean(dim=0)
    squares = points.square().sum(dim=1)
    sums = torch.empty((len(rows), N_WIDTHS), device=points.device)
    for begin, end in _blocks(len(rows), len(points)):
        chosen = rows[begin:end]
        products = points[chosen] @ points.T
        apart = squares[chosen, None] + squares - 2.0 * products
        values = apart.clamp_(min=0.0).mul_(-rate).exp_()
        for t in range(N_WIDTHS):
            sums[begin:end, t] = values.sum(dim=1)
            values.square_()
    return sums


def soften(queries: Any, keys: Any, bias: Any, values: Any, cost: Any) -> tuple[Any, Any]:
    """Means of `values` (if any) under the softmax of the scores of each row, and its log-sums.

    `cost` is None, a tensor, or the entries of a sparse matrix.
    """
    means = None if values is None else queries.new_empty((len(queries), values.shape[1]))
    sums = queries.new_empty(len(queries))
    rows = None if cost is None or isinstance(cost, torch.Tensor) else cost.rows
    for begin, end in _blocks(len(queries), len(keys)):
        scores = torch.addmm(bias, queries[begin:end], keys.T)
        if rows is not None:
            here = slice(int(cost.starts[begin]), int(cost.starts[end]))
            places = (rows[here] - begin) * len(keys) + cost.columns[here]
            scores.view(-1).index_add_(0, places, -cost.costs[here])
        elif cost is not None:
            scores -= cost[begin:end]
        highest = scores.amax(dim=1)
        scores.sub_(highest[:, None]).exp_()
        total = scores.sum(dim=1)
        sums[begin:end] = highest + total.log()
        if means is not None:
            means[begin:end] = (scores @ values) / total[:, None]
    return means, sums


def best_columns(queries: Any, keys: Any, bias: Any, k: int, cost: Any) -> tuple[Any, Any]:
    """Columns with the k best scores of each row, the best first, and these scores."""
    columns = torch.empty((len(queries), k), dtype=torch.int32, device=queries.device)
    found = queries.new_empty((len(queries), k))
    for begin, end in _blocks(len(queries), len(keys)):
        scores = torch.addmm(bias, queries[begin:end], keys.T)
        if cost is not None:
            scores -= cost[begin:end]
        found[begin:end], columns[begin:end] = scores.topk(k, dim=1)
    return columns, found


def quantiles(points: Any, others: Any, ranks: Any) -> Any:
    """Squared distances of each point to the others, at some ranks."""
    squares, other_squares = points.square().sum(dim=1), others.square().sum(dim=1)
    found = points.new_empty((len(points), len(ranks)))
    for begin, end in _blocks(len(points), len(others)):
        apart = torch.addmm(other_squares, points[begin:end], others.T, alpha=-2.0)
        ordered = apart.sort(dim=1).values
        found[begin:end] = ordered[:, ranks] + squares[begin:end, None]
    return found.clamp_(min=0.0)


def bid(
    columns: Any, scores: Any, floors: Any, step: float, words: Any, bids: Any, waiting: Any
) -> None:
    """Let the rows that wait bid for their columns in some rounds.

    A row bids for its best column at the current prices (of equally good ones for one that depends
    on the row), and raises the price by as much as it prefers that column, plus `step`. The place
    of a row that wins is taken by the row that lost the column, and by -1 if none did; -1 also
    replaces a row whose best column is worth less than its floor. `words` and `bids` are alike
    between the rounds.
    """
    n_choices = columns.shape[1]
    for _ in range(N_ROUNDS):
        slots = (waiting >= 0).nonzero()[:, 0]
        if len(slots) == 0:
            return
        rows = waiting[slots].long()
        choices = columns[rows].long()
        prices = (words[choices] >> ROW_BITS).to(torch.int32).view(torch.float32)
        worth = scores[rows] - prices
        best = worth.amax(dim=1)
        turn = (torch.arange(n_choices, device=rows.device) - rows[:, None]) % n_choices
        place = torch.where(worth == best[:, None], turn, n_choices).argmin(dim=1)[:, None]
        second = worth.scatter(1, place, LOWEST).amax(dim=1)
        second = torch.maximum(second, floors[rows] - 1.0)
        own = scores[rows].gather(1, place)[:, 0]
        price = prices.gather(1, place)[:, 0]
        # A smaller step would not show in the worth of a column with a large score.
        raised = price + (best - second + (RESOLUTION * own.abs()).clamp(min=step))
        # Nor would a step that rounding takes from the price: it always rises.
        bits = torch.maximum(raised.view(torch.int32), price.view(torch.int32) + 1)
        word = (bits.long() << ROW_BITS) | (rows + 1)
        column = choices.gather(1, place)[:, 0]
        bidding = best >= floors[rows]
        waiting[slots[~bidding]] = -1
        slots, word, column = slots[bidding], word[bidding], column[bidding]
        bids.scatter_reduce_(0, column, word, "amax")
        won = bids[column] == word
        slots, word, column = slots[won], word[won], column[won]
        waiting[slots] = ((words[column] & ((1 << ROW_BITS) - 1)) - 1).to(waiting.dtype)
        words[column] = word


def _blocks(n_rows: int, n_columns: int) -> Iterator[tuple[int, int]]:
    """Spans of rows whose products with all columns fit into a block."""
    size = max(1, BLOCK_BYTES // (4 * max(1, n_columns)))
    for begin in range(0, n_rows, size):
        yield begin, min(begin + size, n_rows)
