"""Work on all pairs of two collections, one tile of products at a time.

Scores of pairs are inner products plus a number of each column: score[i, j] = queries[i] @ keys[j]
+ bias[j]. Neither they nor anything else of their size is kept, so memory grows with the number of
items, not with its square. `Tiles` is all that a search needs of a machine; its results do not
depend on the number of threads. `DeviceTiles` does the same work on a GPU.
"""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._run.parallel import Workers, one_blas_thread
from unshuffle._run.types import Indices

Array = NDArray[np.float32]

ROWS, COLUMNS = 256, 2048  # of a tile: 2 MiB, which a core's cache nearly holds
N_WIDTHS = 8
N_BINS = 512  # columns that share a bin hide each other; of fewer columns the best are exact
N_ADDED = 16  # columns of each row that a sparse cost may add
LOWEST, NOTHING = np.float32(-3e38), np.float32(-1e29)
N_SINKHORN, SINKHORN_TOL = 100, 1e-3
BIDS_PER_CALL = 2_000_000  # about a tenth of a second, so that Ctrl-C works


class Tiles:
    """Sums, means and maxima over all pairs, on the CPU."""

    device = None
    sampled = 4096  # rows of a step of a search that takes a sample of them
    exact = 1500  # rows that are assigned exactly at most
    climbed = 16_384  # items of a search with many rounds, which takes a sample of more

    def __init__(self, n_jobs: int | None = None) -> None:
        self._workers = Workers(cpu_count() if n_jobs is None else n_jobs)
        self._context = ExitStack()

    def __enter__(self) -> "Tiles":
        self._context.enter_context(self._workers)
        # Also outside of tiles: sums of several BLAS threads round differently.
        self._context.enter_context(one_blas_thread())
        return self

    def __exit__(self, *reason: object) -> None:
        self._context.close()

    def put(self, array: Any) -> Any:
        """An array in single precision, where this machine works."""
        return np.asarray(array, dtype=np.float32)

    def double(self, array: Any) -> Any:
        """The same in double precision."""
        return np.asarray(array, dtype=np.float64)

    def densities(self, points: Array, rows: Indices, rate: float) -> Array:
        """Log of the sums over all points of exp(-2^t rate d^2), t = 0 .. 7, for some points."""
        from unshuffle.matching._all_pairs.loops import LOG2_E, add_densities

        queries = np.ascontiguousarray(points[rows])
        across = np.ascontiguousarray(points.T)
        squares, other_squares = _squares(queries), _squares(points)
        sums = np.zeros((rows.size, N_WIDTHS), dtype=np.float32)
        rate_2 = np.float32(rate) * LOG2_E

        def add(tile: Array, begin: int, end: int, first: int, last: int) -> None:
            add_densities(
                tile, squares[begin:end], other_squares[first:last], rate_2, sums[begin:end]
            )

        self._for_tiles(queries, across, add)
        return np.log(sums)

    def soft_means(
        self, queries: Array, keys: Array, bias: Array, values: Array, cost: Any = None
    ) -> tuple[Array, Array]:
        """Means of `values` under the softmax of the scores of each row, and its log-sums.

        `cost`, an array or a CSR matrix, is subtracted from the scores.
        """
        return self._soften(queries, keys, bias, values, cost)

    def log_sums(self, queries: Array, keys: Array, bias: Array) -> Array:
        """Log of the sum of the exponentials of the scores of each row."""
        return self._soften(queries, keys, bias, None)[1]

    def _soften(
        self, queries: Array, keys: Array, bias: Array, values: Array | None, cost: Any = None
    ) -> tuple[Array, Array]:
        from unshuffle.matching._all_pairs.loops import exponentiate

        n_rows = queries.shape[0]
        width = 0 if values is None else values.shape[1]
        means = np.zeros((n_rows, width), dtype=np.float32)
        highest, sums = np.full(n_rows, LOWEST), np.zeros(n_rows, dtype=np.float32)
        shrinks = np.empty(n_rows, dtype=np.float32)

        def add(tile: Array, begin: int, end: int, first: int, last: int) -> None:
            if cost is not None:
                part = cost[begin:end, first:last]
                tile -= part.toarray() if sparse.issparse(part) else part
            exponentiate(tile, highest[begin:end], sums[begin:end], shrinks[begin:end])
            if values is not None:
                means[begin:end] *= shrinks[begin:end, None]
                means[begin:end] += tile @ values[first:last]

        self._for_tiles(*_with_bias(queries, keys, bias), add)
        means /= sums[:, None]
        return means, highest + np.log(sums)

    def best_columns(
        self, queries: Array, keys: Array, bias: Array, k: int, cost: Any = None
    ) -> tuple[NDArray[np.int32], Array]:
        """Columns with the k best scores of each row (nearly all of them), and these scores.

        `cost`, an array or a sparse matrix, is subtracted from the scores.
        """
        from unshuffle.matching._all_pairs.loops import keep_best

        n_rows, n_columns = queries.shape[0], keys.shape[0]
        k = min(k, n_columns)
        n_bins = min(max(N_BINS, 4 * k), n_columns)
        columns = np.empty((n_rows, k), dtype=np.int32)
        scores = np.empty((n_rows, k), dtype=np.float32)
        dense = None if sparse.issparse(cost) else cost
        kept: dict[int, tuple[Array, NDArray[np.int32]]] = {}

        def keep(tile: Array, begin: int, end: int, first: int, last: int) -> None:
            if first == 0:
                kept[begin] = (
                    np.full((end - begin, n_bins), LOWEST),
                    np.zeros((end - begin, n_bins), dtype=np.int32),
                )
            if dense is not None:
                tile -= dense[begin:end, first:last]
            best, places = kept[begin]
            keep_best(tile, first, best, places)
            if last == n_columns:
                del kept[begin]
                chosen = np.argpartition(best, n_bins - k, axis=1)[:, n_bins - k :]
                columns[begin:end] = np.take_along_axis(places, chosen, axis=1)
                scores[begin:end] = np.take_along_axis(best, chosen, axis=1)

        self._for_tiles(*_with_bias(queries, keys, bias), keep, n_bins)
        if sparse.issparse(cost):
            return _with_sparse_cost(columns, scores, sparse.csr_matrix(cost), queries, keys, bias)
        return columns, scores

    def quantiles(self, points: Array, others: Array, ranks: Indices) -> Array:
        """Squared distances of each point to the others, at some ranks."""
        found = np.empty((len(points), ranks.size), dtype=np.float32)
        across = np.ascontiguousarray(others.T)
        squares, other_squares = _squares(points), _squares(others)

        def run(begin: int, end: int) -> None:
            apart = points[begin:end] @ across
            apart *= np.float32(-2.0)
            apart += other_squares
            apart.partition(ranks, axis=1)
            found[begin:end] = apart[:, ranks] + squares[begin:end, None]

        self._for_rows(len(points), run)
        return np.maximum(found, 0.0)

    def group_means(self, values: Array, groups: Indices, n_groups: int) -> Array:
        """Mean of the rows of each group, 0 of an empty one."""
        members = sparse.csr_matrix(
            (np.ones(len(groups), dtype=np.float32), (groups, np.arange(len(groups)))),
            shape=(n_groups, len(groups)),
        )
        sizes = np.maximum(np.bincount(groups, minlength=n_groups), 1)
        return np.asarray((members @ values) / sizes[:, None].astype(np.float32))

    def auction(
        self,
        columns: NDArray[np.int32],
        scores: Array,
        n_columns: int,
        *,
        floors: Array,
        step: float,
        spare: int = 0,
    ) -> tuple[Indices, Array]:
        """Give each row one of its columns so that the scores add up to nearly the most.

        Rows whose best column is worth less than their floor, after what others bid, get -1. Also
        returns the prices of the columns. `spare` rows may be left over, which saves no time
        here: rows bid one after the other, and the last ones are as fast as the first.
        """
        from unshuffle.matching._all_pairs.loops import bid_in_chains

        n_rows = columns.shape[0]
        prices = np.zeros(n_columns, dtype=np.float32)
        owners = np.full(n_columns, -1, dtype=np.int32)
        waiting = np.arange(n_rows - 1, -1, -1, dtype=np.int32)
        n_waiting = n_rows
        while n_waiting:
            n_waiting = bid_in_chains(
                columns,
                scores,
                floors,
                prices,
                owners,
                waiting,
                n_waiting,
                np.float32(step),
                BIDS_PER_CALL,
            )
        found = np.full(n_rows, -1, dtype=np.intp)
        taken = np.flatnonzero(owners >= 0)
        found[owners[taken]] = taken
        return found, prices

    def balance(
        self, columns: NDArray[np.int32], worth: Array, *, surplus: bool
    ) -> NDArray[np.float64]:
        """Shares of each row in its columns by the exponentials of their worth.

        They are scaled until rows sum to 1 and columns to 1, or to at most 1 if there is a
        surplus of columns. A worth of `NOTHING` or less gives nothing.
        """
        n_rows, k = columns.shape
        possible = np.flatnonzero(worth.ravel() > NOTHING)
        i = possible // k
        values = worth.ravel()[possible].astype(np.float64)
        _, places = np.unique(columns.ravel()[possible], return_inverse=True)
        heights = np.zeros(int(places.max(initial=-1)) + 1)
        for _ in range(N_SINKHORN if possible.size else 0):
            shares = _normalized(values - heights[places], i, n_rows)
            sums = np.bincount(places, weights=shares)
            if sums.max() < 1.0 + SINKHORN_TOL and (surplus or sums.min() > 1.0 - SINKHORN_TOL):
                break
            more = np.log(np.maximum(sums, np.finfo(float).tiny))
            heights += np.maximum(more, -heights) if surplus else more
        found = np.zeros(n_rows * k)
        found[possible] = _normalized(values - heights[places], i, n_rows)
        return found.reshape(n_rows, k)

    def _for_tiles(
        self,
        queries: Array,
        across: Array,
        work: Callable[[Array, int, int, int, int], None],
        multiple: int = 1,
    ) -> None:
        """Call `work(tile, begin, end, first, last)` on each tile of `queries @ across`.

        Tiles of the same rows come one after the other, from left to right; all but the last have
        a multiple of `multiple` columns.
        """
        n_rows, n_columns = queries.shape[0], across.shape[1]
        width = min(max(COLUMNS // multiple, 1) * multiple, n_columns)

        def run(begin: int, end: int) -> None:
            buffer = np.empty((end - begin) * width, dtype=np.float32)
            for first in range(0, n_columns, width):
                last = min(first + width, n_columns)
                tile = buffer[: (end - begin) * (last - first)].reshape(end - begin, last - first)
                np.matmul(queries[begin:end], across[:, first:last], out=tile)
                work(tile, begin, end, first, last)

        self._for_rows(n_rows, run)

    def _for_rows(self, n_rows: int, run: Callable[[int, int], None]) -> None:
        spans = [(begin, min(begin + ROWS, n_rows)) for begin in range(0, n_rows, ROWS)]
        self._workers.each(run, spans)


def tiles_for(device: Any, n_jobs: int | None = None) -> Any:
    """`Tiles` on a device, or on the CPU if it is None."""
    if device is None:
        return Tiles(n_jobs)
    from unshuffle.matching._all_pairs.gpu import DeviceTiles

    return DeviceTiles(device)


def _with_bias(queries: Array, keys: Array, bias: Array) -> tuple[Array, Array]:
    """Queries and transposed keys with one more dimension, which adds the bias."""
    ones = np.ones((queries.shape[0], 1), dtype=np.float32)
    across = np.empty((keys.shape[1] + 1, keys.shape[0]), dtype=np.float32)
    across[:-1] = keys.T
    across[-1] = bias
    return np.hstack([queries, ones], dtype=np.float32), across


def _with_sparse_cost(
    columns: NDArray[np.int32],
    scores: Array,
    cost: Any,
    queries: Array,
    keys: Array,
    bias: Array,
) -> tuple[NDArray[np.int32], Array]:
    """Best columns with a sparse cost subtracted, and the columns it favors most added."""
    n_rows, n_columns = cost.shape
    scores = scores.copy()
    entries = cost.tocoo()
    # The cost of the columns found: positions of (row, column) in the sorted entries.
    order = np.argsort(entries.row.astype(np.int64) * n_columns + entries.col, kind="stable")
    places = (entries.row.astype(np.int64) * n_columns + entries.col)[order]
    costs = entries.data[order].astype(np.float32)
    wanted = np.arange(n_rows, dtype=np.int64)[:, None] * n_columns + columns
    at = np.minimum(np.searchsorted(places, wanted), places.size - 1)
    named = places[at] == wanted if places.size else np.zeros(wanted.shape, dtype=bool)
    scores[named] = LOWEST  # added again below, or ruled out
    rows, cols = places // n_columns, places % n_columns
    worth = np.einsum("ij,ij->i", queries[rows], keys[cols]) + bias[cols] - costs
    order = np.lexsort((-worth, rows))
    rows, cols, worth = rows[order], cols[order], worth[order]
    rank = np.arange(rows.size) - np.searchsorted(rows, rows)
    best = rank < N_ADDED
    n_added = min(N_ADDED, int(rank.max(initial=-1)) + 1)
    more = np.zeros((n_rows, n_added), dtype=np.int32)
    more_scores = np.full((n_rows, n_added), LOWEST)
    more[rows[best], rank[best]] = cols[best]
    more_scores[rows[best], rank[best]] = worth[best]
    return np.hstack([columns, more]), np.hstack([scores, more_scores])


def _normalized(values: Any, rows: Indices, n_rows: int) -> Any:
    """Exponentials that sum to 1 in each row; entries are sorted by row."""
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    highest = np.zeros(n_rows)
    highest[rows[starts]] = np.maximum.reduceat(values, starts) if starts.size else 0.0
    shares = np.exp(values - highest[rows])
    return shares / np.bincount(rows, weights=shares, minlength=n_rows)[rows]


def _squares(points: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", points, points))
