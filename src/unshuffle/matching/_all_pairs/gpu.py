"""Work on all pairs of two collections on a GPU; imported when needed.

`DeviceTiles` does on a device what `Tiles` does on the CPU, on float32 tensors.
The loops over pairs are Triton kernels, or plain PyTorch where Triton is missing.
"""

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse

from unshuffle._run.device import has_triton
from unshuffle.matching._all_pairs import gpu_torch
from unshuffle.matching._all_pairs.gpu_torch import ROW_BITS

LOWEST = -3e38
NONE = -1e29  # a worth below stands for a pair that does not exist
PART = 2**16  # rows whose membership in groups is held at a time
N_ADDED = 16  # columns of each row that a sparse cost may add
FEW = 512  # rows that may fight for long; kernels let no more bid in one program
SMALL_LOSS = 0.1  # share of all steps that rows may lose by giving up early
N_SINKHORN, SINKHORN_TOL = 100, 1e-3


class Entries(NamedTuple):
    """A sparse cost on the device, in the order of PyTorch's CSR tensors."""

    starts: Any  # int64, where the entries of each row begin
    columns: Any  # int64
    costs: Any  # float32

    @property
    def rows(self) -> Any:
        """Row of each entry."""
        n_rows = len(self.starts) - 1
        each = torch.arange(n_rows, device=self.columns.device)
        return each.repeat_interleave(self.starts.diff(), output_size=len(self.columns))


class DeviceTiles:
    """Sums, means and maxima over all pairs, on one device.

    Results are the same in each run on the same device. With Triton, products are of numbers
    rounded to half precision and summed in single precision; biases and exponentials are in
    single precision. Integer arguments may be NumPy arrays. A sparse cost is a SciPy matrix or a
    tuple of tensors (starts of rows, columns, costs) without repeated entries.
    """

    sampled = 32_768  # rows of a step of a search that takes a sample of them
    exact = 256  # rows that are assigned exactly at most, on the CPU
    climbed = 131_072  # items of a search with many rounds, which takes a sample of more

    def __init__(self, device: Any) -> None:
        self.device = torch.device(device)
        self._context = ExitStack()
        self._loops = _load_loops(self.device)

    def __enter__(self) -> "DeviceTiles":
        self._context.enter_context(torch.no_grad())
        if self.device.type == "cuda":
            self._context.enter_context(torch.cuda.device(self.device))  # of kernels
        return self

    def __exit__(self, *reason: object) -> None:
        self._context.close()

    def put(self, array: Any) -> Any:
        """An array as a tensor in single precision on the device."""
        if not isinstance(array, torch.Tensor):
            array = np.ascontiguousarray(array, dtype=np.float32)
        return torch.as_tensor(array, dtype=torch.float32, device=self.device)

    def double(self, array: Any) -> Any:
        """The same in double precision."""
        if not isinstance(array, torch.Tensor):
            array = np.asarray(array, dtype=np.float64)
        return torch.as_tensor(array, dtype=torch.float64, device=self.device)

    def densities(self, points: Any, rows: Any, rate: float) -> Any:
        """Log of the sums over all points of exp(-2^t rate d^2), t = 0 .. 7, for some points."""
        rows = torch.as_tensor(rows, dtype=torch.int64, device=self.device)
        return self._loops.densities(points, rows, float(rate)).log()

    def soft_means(
        self, queries: Any, keys: Any, bias: Any, values: Any, cost: Any = None
    ) -> tuple[Any, Any]:
        """Means of `values` under the softmax of the scores of each row, and its log-sums.

        `cost`, a tensor or a sparse matrix, is subtracted from the scores.
        """
        return self._loops.soften(queries, keys, bias, values, self._on_device(cost))

    def log_sums(self, queries: Any, keys: Any, bias: Any) -> Any:
        """Log of the sum of the exponentials of the scores of each row."""
        return self._loops.soften(queries, keys, bias, None, None)[1]

    def best_columns(
        self, queries: Any, keys: Any, bias: Any, k: int, cost: Any = None
    ) -> tuple[Any, Any]:
        """Columns with the k best scores of each row (nearly all of them), and these scores.

        `cost`, a tensor or a sparse matrix, is subtracted from the scores.
        """
        cost = self._on_device(cost)
        dense = None if isinstance(cost, Entries) else cost
        k = min(k, len(keys))
        columns, scores = self._loops.best_columns(queries, keys, bias, k, dense)
        if isinstance(cost, Entries):
            return _with_sparse_cost(columns, scores, cost, queries, keys, bias)
        return columns, scores

    def quantiles(self, points: Any, others: Any, ranks: Any) -> Any:
        """Squared distances of each point to the others, at some ranks."""
        ranks = torch.as_tensor(ranks, dtype=torch.int64, device=self.device)
        center = others.mean(dim=0)
        return self._loops.quantiles(points - center, others - center, ranks)

    def group_means(self, values: Any, groups: Any, n_groups: int) -> Any:
        """Mean of the rows of each group, 0 of an empty one."""
        groups = torch.as_tensor(groups, dtype=torch.int64, device=self.device)
        each = torch.arange(n_groups, device=self.device)[:, None]
        total = torch.zeros((n_groups, values.shape[1]), device=self.device)
        sizes = torch.zeros((n_groups, 1), device=self.device)
        for some, at in zip(values.split(PART), groups.split(PART), strict=True):
            members = (at == each).to(
                torch.float32
            )  # sums by atomics would differ from run to run
            total += members @ some
            sizes += members.sum(dim=1, keepdim=True)
        return total / sizes.clamp(min=1.0)

    def auction(
        self,
        columns: Any,
        scores: Any,
        n_columns: int,
        *,
        floors: Any,
        step: float,
        spare: int = 0,
    ) -> tuple[Any, Any]:
        """Give each row one of its columns so that the scores add up to nearly the most.

        Rows whose best column is worth less than their floor, after what others bid, get -1. Also
        returns the prices of the columns. All rows without a column bid at once, and the highest
        bid for a column wins, of equal ones that of the last row.

        The last few rows may fight for millions of bids, one after the other, which takes a GPU
        seconds. After a while they get -1 if all that they could gain is a tenth of what the
        steps may cost. So do the last `spare` rows, whatever they could gain.
        """
        n_rows = len(columns)
        columns = columns.to(torch.int32).contiguous()
        scores, floors = scores.contiguous(), floors.contiguous()
        words = torch.zeros(n_columns, dtype=torch.int64, device=self.device)
        bids = torch.zeros_like(words)
        waiting = torch.arange(n_rows, dtype=torch.int32, device=self.device)
        n_stuck = 0
        while len(waiting) > spare:
            self._loops.bid(columns, scores, floors, float(step), words, bids, waiting)
            n_before, waiting = len(waiting), waiting[waiting >= 0]
            n_stuck += n_before <= FEW and 4 * len(waiting) > n_before
            if n_stuck >= self._loops.PATIENCE and len(waiting):
                most = (scores[waiting].amax(dim=1) - floors[waiting]).sum()
                if most <= SMALL_LOSS * step * n_rows:
                    break
        found = torch.full((n_rows,), -1, dtype=torch.int64, device=self.device)
        owners = (words & ((1 << ROW_BITS) - 1)) - 1
        taken = (owners >= 0).nonzero()[:, 0]
        found[owners[taken]] = taken
        return found, prices_of(words)

    def balance(self, columns: Any, worth: Any, *, surplus: bool) -> Any:
        """Shares of each row in its columns by the exponentials of their worth.

        They are scaled until rows sum to 1 and columns to 1, or to at most 1 if there is a
        surplus of columns. A worth of -1e29 or less gives nothing.
        """
        possible = worth > NONE
        n_columns = int(columns.max()) + 1
        values = torch.where(possible, worth, -torch.inf)
        highest = values.amax(dim=1, keepdim=True)
        values = values - torch.where(highest.isfinite(), highest, 0.0)
        columns = columns.to(torch.int64)
        order = columns.reshape(-1).argsort(stable=True)
        counts = torch.bincount(columns.reshape(-1), minlength=n_columns)
        listed = torch.bincount(columns[possible], minlength=n_columns) > 0
        heights = torch.zeros(n_columns, device=self.device)
        for _ in range(N_SINKHORN):
            shares = _normalized(values - heights[columns])
            # Sums of sorted segments are deterministic; sums by atomics are not.
            sums = torch.segment_reduce(
                shares.reshape(-1)[order], "sum", lengths=counts, unsafe=True, initial=0.0
            )
            balanced = sums.max() < 1.0 + SINKHORN_TOL
            if not surplus:
                balanced &= torch.where(listed, sums, 1.0).min() > 1.0 - SINKHORN_TOL
            if balanced:
                break
            more = sums.clamp(min=torch.finfo(sums.dtype).tiny).log()
            if surplus:
                heights = heights + torch.maximum(more, -heights)
            else:
                heights = heights + torch.where(sums > 0, more, 0.0)
        return _normalized(values - heights[columns])

    def _on_device(self, cost: Any) -> Any:
        """The cost as a tensor or as `Entries`."""
        if sparse.issparse(cost):
            cost = sparse.csr_matrix(cost)
            if not cost.has_canonical_format:
                cost = cost.copy()
                cost.sum_duplicates()
            cost = (torch.from_numpy(each) for each in (cost.indptr, cost.indices, cost.data))
        elif cost is None or isinstance(cost, torch.Tensor):
            return cost if cost is None else cost.contiguous()
        starts, columns, costs = (each.to(self.device) for each in cost)
        return Entries(starts.to(torch.int64), columns.to(torch.int64), costs.to(torch.float32))


def _load_loops(device: Any) -> Any:
    """Module with the loops over pairs for a device."""
    if has_triton(device):
        from unshuffle.matching._all_pairs import gpu_triton

        return gpu_triton
    return gpu_torch


def prices_of(words: Any) -> Any:
    """Prices in the words of columns."""
    return (words >> ROW_BITS).to(torch.int32).view(torch.float32)


def _normalized(values: Any) -> Any:
    """Exponentials that sum to 1 in each row; nothing in rows without any value."""
    highest = values.amax(dim=1, keepdim=True)
    shares = (values - torch.where(highest.isfinite(), highest, 0.0)).exp_()
    return shares.div_(shares.sum(dim=1, keepdim=True).clamp(min=torch.finfo(shares.dtype).tiny))


def _with_sparse_cost(
    columns: Any, scores: Any, cost: Entries, queries: Any, keys: Any, bias: Any
) -> tuple[Any, Any]:
    """Best columns with a sparse cost subtracted, and the columns it favors most added."""
    n_rows, n_columns = len(columns), len(keys)
    if len(cost.columns) == 0:
        return columns, scores
    rows, cols = cost.rows, cost.columns
    worth = (queries[rows] * keys[cols]).sum(dim=1) + bias[cols] - cost.costs
    # The cost of the columns found: positions of (row, column) in the sorted entries.
    places = (rows * n_columns + cols).sort().values
    each = torch.arange(n_rows, device=columns.device)[:, None]
    wanted = each * n_columns + columns
    at = torch.searchsorted(places, wanted).clamp_(max=len(places) - 1)
    scores = torch.where(places[at] == wanted, LOWEST, scores)  # added again below, or ruled out
    order = worth.argsort(descending=True, stable=True)
    order = order[rows[order].argsort(stable=True)]
    rows, cols, worth = rows[order], cols[order], worth[order]
    rank = torch.arange(len(rows), device=rows.device) - cost.starts[rows]
    best = rank < N_ADDED
    n_added = min(N_ADDED, int(cost.starts.diff().max()))
    more = torch.zeros((n_rows, n_added), dtype=columns.dtype, device=columns.device)
    more_scores = torch.full((n_rows, n_added), LOWEST, device=columns.device)
    more[rows[best], rank[best]] = cols[best].to(columns.dtype)
    more_scores[rows[best], rank[best]] = worth[best]
    return torch.hstack([columns, more]), torch.hstack([scores, more_scores])
