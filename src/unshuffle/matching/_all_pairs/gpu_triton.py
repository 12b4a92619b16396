"""Loops over all pairs as Triton kernels; imported when needed.

Each kernel forms a tile of products and does something cheap with it, so that nothing of the size
of all pairs reaches memory. Products are of numbers rounded to half precision and summed in single
precision: a score moves by up to 5e-4 of the lengths of its two rows, once both sides are
centered. Items are padded to whole tiles, which no mask then has to guard; bins and sums of few
rows are split over several programs, whose results are joined in a fixed order. Sizes are not
compiled into the kernels, since each new size would then take half a second.
"""
# Arguments of kernels have types of Triton's own compiler.
# mypy: disable-error-code="no-untyped-def"

from typing import Any

import torch
import triton
import triton.language as tl

from unshuffle.matching._all_pairs import gpu_torch
from unshuffle.matching._all_pairs.gpu_bids import PATIENCE, bid
from unshuffle.matching._all_pairs.gpu_torch import N_WIDTHS

__all__ = ["PATIENCE", "best_columns", "bid", "densities", "quantiles", "soften"]

LOG2_E = 1.4426950408889634
HALF_BITS = 12  # rounded numbers are below 2^12, far from the ends of half precision
MOST_FEATURES = 128  # wider rows are left to plain PyTorch
N_PROGRAMS = 1024  # that keep a large GPU busy to the end
FEWEST_TILES = 8  # of columns that a program works on
# Bins for each column that is asked for, since columns that share a bin hide each other. So many
# columns have a bin each.
BINS_PER_COLUMN, N_EXACT = 8, 512
RESCORED = 16  # columns at least that are ranked in single precision
ROWS_PER_CALL = 2**16  # whose bins are kept at a time

# Rows and columns of a tile, warps and stages, by number of features.
DENSITY = {16: (64, 128, 4, 3), 32: (64, 128, 4, 3), 64: (64, 128, 4, 3), 128: (64, 128, 4, 3)}
SOFTEN = {16: (128, 64, 8, 3), 32: (128, 64, 8, 3), 64: (128, 64, 8, 3), 128: (128, 64, 8, 3)}
BINS = {16: (64, 128, 4, 3), 32: (64, 128, 4, 3), 64: (64, 128, 4, 3), 128: (64, 128, 4, 3)}


@triton.jit(do_not_specialize=["n_rows", "width", "stride"])
def _pack_kernel(
    X, CENTER, SCALES, WEIGHTS, BIAS, PACKED, EXTRA, SHIFTS, n_rows, width, stride,
    KIND: tl.constexpr, R: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """Centered and scaled rows in half precision, padded, and a number or two of each row."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    features = tl.arange(0, R)
    wide = features < width
    inside = (rows < n_rows)[:, None] & wide[None, :]
    x = tl.load(
        X + rows[:, None].to(tl.int64) * stride + features[None, :], mask=inside, other=0.0
    )
    center = tl.load(CENTER + features, mask=wide, other=0.0)
    centered = tl.where(inside, x - center[None, :], 0.0)
    if KIND == "queries":  # each row has a scale of its own
        size = tl.maximum(tl.max(tl.abs(centered), 1), 1e-15)
        scale = tl.exp2(12.0 - tl.ceil(tl.log2(size)))
        packed = (centered * scale[:, None]).to(tl.float16)
        weights = tl.load(WEIGHTS + features, mask=wide, other=0.0)
        tl.store(EXTRA + rows, 1.4426950408889634 / scale / tl.load(SCALES))
        tl.store(SHIFTS + rows, tl.sum(x * weights[None, :], 1))
    else:
        scales = tl.load(SCALES + features, mask=wide, other=0.0)
        # Points may lie far outside; the others are scaled to fit.
        scaled = tl.minimum(tl.maximum(centered * scales[None, :], -6.0e4), 6.0e4)
        packed = scaled.to(tl.float16)
    if KIND == "keys":
        weights = tl.load(WEIGHTS + features, mask=wide, other=0.0)
        bias = tl.load(BIAS + rows, mask=rows < n_rows, other=float("-inf"))
        bias = (bias + tl.sum(centered * weights[None, :], 1)) * 1.4426950408889634
        tl.store(EXTRA + rows, bias)
    if KIND == "points":
        rounded = packed.to(tl.float32)
        height = 0.5 * tl.sum(rounded * rounded, 1)
        tl.store(EXTRA + rows, tl.where(rows < n_rows, height, float("inf")))
    tl.store(PACKED + rows[:, None] * R + features[None, :], packed)


@triton.jit(do_not_specialize=["n_rows", "n_columns", "per"])
def _density_kernel(
    Q, HEIGHTS, P, OTHERS, SUMS, n_rows, n_columns, per,
    R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Sums of 2^(2^t (q.p - height - other)), t = 0 .. 7; heights are half squared lengths."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    features = tl.arange(0, R)
    q = tl.load(Q + rows[:, None] * R + features[None, :])
    height = tl.load(HEIGHTS + rows)
    s0 = tl.zeros([BM], tl.float32)
    s1, s2, s3, s4, s5, s6, s7 = s0, s0, s0, s0, s0, s0, s0
    first = tl.program_id(1) * per
    for begin in range(first, tl.minimum(first + per, n_columns), BN):
        columns = tl.multiple_of(begin, BN) + tl.arange(0, BN)
        p = tl.load(P + columns[:, None] * R + features[None, :])
        other = tl.load(OTHERS + columns)
        apart = tl.dot(q, p.T) - height[:, None] - other[None, :]
        value = tl.exp2(tl.minimum(apart, 0.0))
        s0 += tl.sum(value, 1)
        value *= value
        s1 += tl.sum(value, 1)
        value *= value
        s2 += tl.sum(value, 1)
        value *= value
        s3 += tl.sum(value, 1)
        value *= value
        s4 += tl.sum(value, 1)
        value *= value
        s5 += tl.sum(value, 1)
        value *= value
        s6 += tl.sum(value, 1)
        s7 += tl.sum(value * value, 1)
    out = SUMS + (tl.program_id(1) * n_rows + rows) * 8
    tl.store(out, s0)
    tl.store(out + 1, s1)
    tl.store(out + 2, s2)
    tl.store(out + 3, s3)
    tl.store(out + 4, s4)
    tl.store(out + 5, s5)
    tl.store(out + 6, s6)
    tl.store(out + 7, s7)


@triton.jit(do_not_specialize=["n_rows", "n_columns", "n_padded", "n_columns_padded", "per"])
def _soften_kernel(
    Q, FACTORS, K, BIAS, V, COST, ENTRY_COLUMNS, ENTRY_ROWS, FIRST, HIGHEST, SUMS, MEANS,
    n_rows, n_columns, n_padded, n_columns_padded, per,
    R: tl.constexpr, RV: tl.constexpr, KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Highest score, sum of powers of two and mean value of each row, over some columns.

    KIND is 0 without cost, 1 with a dense one, 2 with a sparse one whose entries are sorted by
    blocks of rows and then by column.
    """
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    features = tl.arange(0, R)
    q = tl.load(Q + rows[:, None] * R + features[None, :])
    factor = tl.load(FACTORS + rows)
    highest = tl.full([BM], -3.0e38, tl.float32)
    total = tl.zeros([BM], tl.float32)
    if RV > 0:
        widths = tl.arange(0, RV)
        mean = tl.zeros([BM, RV], tl.float32)
    first = tl.program_id(1) * per
    if KIND == 2:
        at = FIRST + tl.program_id(0) * (tl.num_programs(1) + 1) + tl.program_id(1)
        entry = tl.load(at)
        last_entry = tl.load(at + 1)
        entry_column = tl.load(ENTRY_COLUMNS + entry, mask=entry < last_entry, other=2147483647)
    for begin in range(first, tl.minimum(first + per, n_columns_padded), BN):
        columns = tl.multiple_of(begin, BN) + tl.arange(0, BN)
        k = tl.load(K + columns[:, None] * R + features[None, :])
        score = tl.dot(q, k.T) * factor[:, None] + tl.load(BIAS + columns)[None, :]
        if KIND == 1:
            place = rows[:, None].to(tl.int64) * n_columns + columns[None, :]
            inside = (rows[:, None] < n_rows) & (columns[None, :] < n_columns)
            score -= tl.load(COST + place, mask=inside, other=0.0) * 1.4426950408889634
        if KIND == 2:
            while entry_column < begin + BN:
                here = (rows == tl.load(ENTRY_ROWS + entry))[:, None]
                here = here & (columns == entry_column)[None, :]
                score -= tl.where(here, tl.load(COST + entry) * 1.4426950408889634, 0.0)
                entry += 1
                entry_column = tl.load(
                    ENTRY_COLUMNS + entry, mask=entry < last_entry, other=2147483647
                )
        most = tl.maximum(highest, tl.max(score, 1))
        share = tl.exp2(score - most[:, None])
        shrink = tl.exp2(highest - most)
        total = total * shrink + tl.sum(share, 1)
        if RV > 0:
            v = tl.load(V + columns[:, None] * RV + widths[None, :])
            mean = tl.dot(share.to(tl.float16), v, mean * shrink[:, None])
        highest = most
    out = tl.program_id(1) * n_padded + rows
    tl.store(HIGHEST + out, highest)
    tl.store(SUMS + out, total)
    if RV > 0:
        tl.store(MEANS + out[:, None] * RV + widths[None, :], mean)


@triton.jit(do_not_specialize=["n_rows", "n_columns", "n_columns_padded", "per"])
def _bins_kernel(
    Q, FACTORS, K, BIAS, COST, BEST, PLACES, n_rows, n_columns, n_columns_padded, per,
    HAS_COST: tl.constexpr, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Best score of each bin and its column; a bin holds every BN-th of some columns."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    features = tl.arange(0, R)
    offsets = tl.arange(0, BN)
    q = tl.load(Q + rows[:, None] * R + features[None, :])
    factor = tl.load(FACTORS + rows)
    best = tl.full([BM, BN], float("-inf"), tl.float32)
    place = tl.zeros([BM, BN], tl.int32)
    first = tl.program_id(1) * per
    for begin in range(first, tl.minimum(first + per, n_columns_padded), BN):
        columns = tl.multiple_of(begin, BN) + offsets
        k = tl.load(K + columns[:, None] * R + features[None, :])
        score = tl.dot(q, k.T) * factor[:, None] + tl.load(BIAS + columns)[None, :]
        if HAS_COST:
            at = rows[:, None].to(tl.int64) * n_columns + columns[None, :]
            inside = (rows[:, None] < n_rows) & (columns[None, :] < n_columns)
            score -= tl.load(COST + at, mask=inside, other=0.0) * 1.4426950408889634
        better = score > best
        best = tl.where(better, score, best)
        place = tl.where(better, begin, place)
    out = rows[:, None] * (tl.num_programs(1) * BN) + tl.program_id(1) * BN + offsets[None, :]
    inside = rows[:, None] < n_rows
    tl.store(BEST + out, best, mask=inside)
    tl.store(PLACES + out, place + offsets[None, :], mask=inside)


@triton.jit(do_not_specialize=["n_columns", "width", "stride", "key_stride", "k"])
def _rescore_kernel(
    Q, K, BIAS, COST, COLUMNS, SCORES, n_columns, width, stride, key_stride, k,
    HAS_COST: tl.constexpr, R: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Scores of some columns of a row in single precision."""
    row = tl.program_id(0).to(tl.int64)
    features = tl.arange(0, R)
    choices = tl.arange(0, BK)
    inside = choices < k
    wide = features < width
    columns = tl.load(COLUMNS + row * k + choices, mask=inside, other=0).to(tl.int64)
    q = tl.load(Q + row * stride + features, mask=wide, other=0.0)
    keys = tl.load(
        K + columns[:, None] * key_stride + features[None, :], mask=wide[None, :], other=0.0
    )
    score = tl.sum(keys * q[None, :], 1) + tl.load(BIAS + columns)
    if HAS_COST:
        score -= tl.load(COST + row * n_columns + columns)
    tl.store(SCORES + row * k + choices, score, mask=inside)


def densities(points: Any, rows: Any, rate: float) -> Any:
    """Sums over all points of exp(-2^t rate d^2), t = 0 .. 7, for some points.

    Points are rounded first and compared exactly then, so that distances are those of points
    moved by less than 5e-4 of their distance from the center.
    """
    if not _fits(rows, points):
        return gpu_torch.densities(points, rows, rate)
    R = _padded_width(points.shape[1])
    BM, BN, n_warps, n_stages = DENSITY[R]
    center = points.mean(dim=0)
    scales = torch.full_like(center, (2.0 * rate * LOG2_E) ** 0.5)
    P, heights, _ = _pack(points, R, BN, "points", center, scales)
    chosen = torch.zeros(_whole(len(rows), BM), dtype=torch.int64, device=P.device)
    chosen[: len(rows)] = rows
    n_splits, per = _splits(len(chosen) // BM, len(P) // BN)
    sums = torch.empty((n_splits, len(chosen), N_WIDTHS), device=P.device)
    _density_kernel[(len(chosen) // BM, n_splits)](
        P[chosen], heights[chosen], P, heights, sums, len(chosen), len(P), per * BN,
        R=R, BM=BM, BN=BN, num_warps=n_warps, num_stages=n_stages,
    )  # fmt: skip
    # A point is at no distance from itself, whatever rounding says of one far from the center.
    return sums[:, : len(rows)].sum(dim=0).clamp_(min=1.0)


def soften(queries: Any, keys: Any, bias: Any, values: Any, cost: Any) -> tuple[Any, Any]:
    """Means of `values` (if any) under the softmax of the scores of each row, and its log-sums.

    `cost` is None, a tensor, or the entries of a sparse matrix.
    """
    if not _fits(queries, queries, queries if values is None else values):
        return gpu_torch.soften(queries, keys, bias, values, cost)
    n_values = 0 if values is None else values.shape[1]
    n_rows, n_columns, device = len(queries), len(keys), queries.device
    R = _padded_width(queries.shape[1])
    RV = _padded_width(n_values) if n_values else 0
    BM, BN, n_warps, n_stages = SOFTEN[max(R, RV)]
    Q, factors, K, padded_bias, shifts = _rounded(queries, keys, bias, R, BM, BN)
    n_splits, per = _splits(len(Q) // BM, len(K) // BN)
    highest, sums = torch.empty((2, n_splits, len(Q)), device=device)
    means = torch.empty((n_splits, len(Q), RV), device=device)
    V = Q
    if values is not None:
        center, scales = _center_and_scales(values)
        V = _pack(values, RV, BN, "values", center, scales)[0]
    kind, entries = 0, (Q, Q, Q, Q)
    if isinstance(cost, torch.Tensor):
        kind, entries = 1, (cost.contiguous(), Q, Q, Q)
    elif cost is not None:
        kind, entries = 2, _sorted_entries(cost, len(Q) // BM, n_splits, BM, per * BN)
    _soften_kernel[(len(Q) // BM, n_splits)](
        Q, factors, K, padded_bias, V, *entries, highest, sums, means,
        n_rows, n_columns, len(Q), len(K), per * BN,
        R=R, RV=RV, KIND=kind, BM=BM, BN=BN, num_warps=n_warps, num_stages=n_stages,
    )  # fmt: skip
    highest, sums = highest[:, :n_rows], sums[:, :n_rows]
    most = highest.amax(dim=0)
    weights = torch.exp2(highest - most)
    total = (sums * weights).sum(dim=0).clamp_(min=1e-38)
    logs = (most + total.log2()) / LOG2_E + shifts[:n_rows]
    if values is None:
        return None, logs
    joined = (means[:, :n_rows, :n_values] * weights[:, :, None]).sum(dim=0)
    return joined / total[:, None] / scales + center, logs


def best_columns(queries: Any, keys: Any, bias: Any, k: int, cost: Any) -> tuple[Any, Any]:
    """Columns with the k best scores of each row (nearly all of them), and these scores.

    Columns are chosen by scores of half precision and then scored in single precision.
    """
    if not _fits(queries, queries):
        return gpu_torch.best_columns(queries, keys, bias, k, cost)
    n_rows, device = len(queries), queries.device
    R = _padded_width(queries.shape[1])
    BM, BN, n_warps, n_stages = BINS[R]
    n_chosen = min(max(k, RESCORED), len(keys))
    columns = torch.empty((n_rows, n_chosen), dtype=torch.int32, device=device)
    Q, factors, K, padded_bias, _ = _rounded(queries, keys, bias, R, BM, BN)
    n_blocks = min(len(Q), ROWS_PER_CALL) // BM
    n_bins = BINS_PER_COLUMN * n_chosen if len(keys) > N_EXACT else len(keys)
    fewest = triton.cdiv(n_bins, BN)
    n_splits, per = _splits(n_blocks, len(K) // BN, fewest=fewest)
    for begin in range(0, n_rows, ROWS_PER_CALL):
        end = min(begin + ROWS_PER_CALL, n_rows)
        part = slice(begin, _whole(end - begin, BM) + begin)
        best = torch.empty((end - begin, n_splits * BN), device=device)
        places = torch.empty(best.shape, dtype=torch.int32, device=device)
        _bins_kernel[(triton.cdiv(end - begin, BM), n_splits)](
            Q[part], factors[part], K, padded_bias, Q if cost is None else cost[begin:end],
            best, places, end - begin, len(keys), len(K), per * BN,
            HAS_COST=cost is not None, R=R, BM=BM, BN=BN, num_warps=n_warps, num_stages=n_stages,
        )  # fmt: skip
        columns[begin:end] = places.gather(1, best.topk(n_chosen, dim=1).indices)
    scores = _rescored(queries, keys, bias, columns, cost, R)
    if n_chosen > k:
        scores, order = scores.topk(k, dim=1)
        columns = columns.gather(1, order)
    return columns, scores


def _rescored(queries: Any, keys: Any, bias: Any, columns: Any, cost: Any, R: int) -> Any:
    queries, keys = _with_rows(queries), _with_rows(keys)
    n_rows, k = columns.shape
    scores = torch.empty((n_rows, k), device=columns.device)
    _rescore_kernel[(n_rows,)](
        queries, keys, bias.contiguous(), queries if cost is None else cost, columns, scores,
        len(keys), keys.shape[1], queries.stride(0), keys.stride(0), k,
        HAS_COST=cost is not None, R=R, BK=triton.next_power_of_2(k), num_warps=4,
    )  # fmt: skip
    return scores


quantiles = gpu_torch.quantiles


def _rounded(
    queries: Any, keys: Any, bias: Any, R: int, BM: int, BN: int
) -> tuple[Any, Any, Any, Any, Any]:
    """Queries and keys in half precision, with what makes scores in powers of two of them.

    A score is product * factor[row] + bias[column], and what was shifted out of the row. Both
    sides are centered, since rounding errors grow with the distance from the origin.
    """
    center, (key_center, scales) = queries.mean(dim=0), _center_and_scales(keys)
    scale = scales.amin().expand(keys.shape[1]).contiguous()
    K, padded_bias, _ = _pack(keys, R, BN, "keys", key_center, scale, center, bias.contiguous())
    Q, factors, shifts = _pack(queries, R, BM, "queries", center, scale, key_center)
    return Q, factors, K, padded_bias, shifts


def _pack(
    x: Any, R: int, tile: int, kind: str, center: Any, scales: Any, weights: Any = None,
    bias: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Rows as `_pack_kernel` leaves them, and what it tells of each."""
    x = _with_rows(x)
    weights, bias = (center if each is None else each for each in (weights, bias))
    n_padded = _whole(len(x), tile)
    packed = torch.empty((n_padded, R), dtype=torch.float16, device=x.device)
    extra, shifts = torch.empty((2, n_padded), device=x.device)
    _pack_kernel[(n_padded // 32,)](
        x, center, scales, weights, bias, packed, extra, shifts, len(x), x.shape[1], x.stride(0),
        KIND=kind, R=R, BM=32, num_warps=4,
    )  # fmt: skip
    return packed, extra, shifts


def _center_and_scales(x: Any) -> tuple[Any, Any]:
    """Means of the columns, and powers of two that bring what is left of them below 2^12."""
    center = x.mean(dim=0)
    least, most = x.aminmax(dim=0)
    sizes = torch.maximum(most - center, center - least).clamp_(min=1e-15)
    return center, torch.exp2(HALF_BITS - sizes.log2().ceil())


def _with_rows(x: Any) -> Any:
    """The same rows, each of them contiguous."""
    return x if x.stride(1) == 1 else x.contiguous()


def _fits(rows: Any, *features: Any) -> bool:
    """Whether there are rows, and kernels for this many features."""
    return len(rows) > 0 and all(each.shape[1] <= MOST_FEATURES for each in features)


def _sorted_entries(cost: Any, n_blocks: int, n_splits: int, BM: int, per: int) -> tuple[Any, ...]:
    """Costs, columns and rows of entries by blocks of rows, and where those of programs begin."""
    rows, columns = cost.rows, cost.columns
    blocks = rows.div(BM, rounding_mode="floor")
    span = n_splits * per  # no column lies beyond
    keys, order = (blocks * span + columns).sort(stable=True)
    edges = torch.arange(n_splits + 1, device=keys.device) * per
    edges = edges + torch.arange(n_blocks, device=keys.device)[:, None] * span
    first = torch.searchsorted(keys, edges).to(torch.int32)
    return cost.costs[order], columns[order].to(torch.int32), rows[order].to(torch.int32), first


def _splits(n_blocks: int, n_tiles: int, *, fewest: int = 1) -> tuple[int, int]:
    """Number of programs that share the columns of a block of rows, and tiles of each."""
    n_splits = min(triton.cdiv(N_PROGRAMS, max(n_blocks, 1)), n_tiles // FEWEST_TILES)
    per = triton.cdiv(n_tiles, min(max(n_splits, fewest), n_tiles))
    return triton.cdiv(n_tiles, per), per


def _padded_width(width: int) -> int:
    return max(16, int(triton.next_power_of_2(width)))


def _whole(size: int, tile: int) -> int:
    return int(triton.cdiv(size, tile)) * tile
