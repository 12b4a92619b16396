"""Mean maps of sets in PyTorch, by vectors or by all pairs of points: the latter with Triton."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.bags import Bags
from unshuffle._core.kernel_features import PointKernel, polynomial
from unshuffle._run.device import has_triton
from unshuffle.kernels.sets._gpu.tensors import BATCH_NUMBERS, Place, batches, mirror_upper
from unshuffle.kernels.sets._gpu.vectors import (
    SIDE,
    exponential_of,
    inner_products,
    mean_vectors,
    squared_distances,
)
from unshuffle.kernels.sets._models.set_vectors import choose_sets

# Points on the sides of a tile, sets that one program compares with, and its warps: the fastest
# of those tried in double precision, and within 3 % of it in single.
ROWS, COLUMNS, SETS, WARPS = 8, 64, 16, 1
# exp(-d) is 2^-(d log_2 e), which takes one instruction less.
LOG_2_E = 1.4426950408889634


class DeviceMaps(NamedTuple):
    """Mean maps of sets, as `MeanMaps` on a device."""

    sets: Bags  # in NumPy
    lengths: Any  # of the mean maps in feature space
    vectors: Any  # mean maps themselves, or None
    outside: NDArray[np.bool_]  # sets without a vector, compared by all pairs of points


def check_point_kernel(kernel: PointKernel, sets: Bags) -> None:
    """Refuse kernels that are not computed on a device, and points whose kernel overflows."""
    if callable(kernel.kind):
        raise ValueError(
            "A callable `base_kernel` is called with NumPy arrays, on the CPU. Leave `device` "
            'out (and call .cpu() on tensors), or use "linear", "poly" or "rbf".'
        )
    if kernel.kind == "poly":
        largest = np.einsum("ij,ij->i", sets.points, sets.points).max(keepdims=True)
        polynomial(largest, kernel.gamma, kernel.degree)


def point_means(a: Bags, b: Bags | None, kernel: PointKernel, center: Any, place: Place) -> Any:
    """Mean similarity of the points of each set of `a` to those of each of `b`.

    If `b` is None, that of the sets of `a` with each other, exactly symmetric.
    """
    import torch

    n_columns = len(a if b is None else b)
    K = torch.empty((len(a), n_columns), dtype=place.dtype, device=place.device)
    left = _scaled(a, kernel, center)
    right = left if b is None else _scaled(b, kernel, center)
    degree = kernel.degree if kernel.kind == "poly" else 0
    fill = _fill_by_kernel if has_triton(place.device) else _fill_by_batches
    fill(K, left, right, degree, place, half=b is None)
    return K


def _scaled(sets: Bags, kernel: PointKernel, center: Any) -> Bags:
    """Points in units in which `gamma` is 1, in double precision."""
    origin = 0.0 if kernel.kind == "poly" else center
    return Bags(np.sqrt(kernel.gamma) * (sets.points - origin), sets.offsets)


def own_means(sets: Bags, kernel: PointKernel, center: Any, place: Place) -> Any:
    """Mean similarity of the points inside each set."""
    import torch

    degree = kernel.degree if kernel.kind == "poly" else 0
    found = torch.empty(len(sets), dtype=place.dtype, device=place.device)
    scaled, largest = _scaled(sets, kernel, center), float(sets.sizes.max())
    for batch in batches(scaled, place, min(largest, BATCH_NUMBERS / largest), place.dtype):
        inside = batch.inside.to(place.dtype)
        shares = inside / inside.sum(1, keepdim=True)
        step = max(1, BATCH_NUMBERS // inside.numel())
        total: Any = 0.0
        for start in range(0, inside.shape[1], step):
            some = slice(start, start + step)
            values = _similarities(batch.points[:, some], batch.points, degree)
            sums = (values @ shares[..., None])[..., 0]
            total = total + (sums * shares[:, some]).sum(1)
        found[batch.indices] = total
    return found


def _similarities(x: Any, y: Any, degree: int) -> Any:
    """Kernel between points (..., n, d) and (..., m, d), in units in which gamma is 1."""
    if degree > 0:
        return (x @ y.mT + 1.0) ** degree
    squares: Any = 0.0
    for k in range(x.shape[-1]):
        squares = squares + (x[..., :, None, k] - y[..., None, :, k]).square()
    return (-squares).exp()


def _fill_by_kernel(K: Any, a: Bags, b: Bags, degree: int, place: Place, *, half: bool) -> None:
    import torch

    from unshuffle.kernels.sets._gpu import pair_kernels as kernels

    unit = 1.0 if degree else LOG_2_E**0.5

    def tensors(sets: Bags) -> tuple[Any, Any]:
        points = torch.as_tensor(unit * sets.points.T, device=place.device, dtype=place.dtype)
        points = points.contiguous()
        return points, torch.as_tensor(sets.offsets, device=place.device, dtype=torch.int32)

    left = tensors(a)
    right = left if a is b else tensors(b)
    grid = K.shape[0], -(-K.shape[1] // SETS)
    kernels.point_means[grid](
        *left, *right, K, K.shape[1], len(a.points), len(b.points), a.width, DEGREE=degree,
        HALF=half, SETS=SETS, ROWS=ROWS, COLUMNS=COLUMNS, num_warps=WARPS,
    )  # fmt: skip


def _fill_by_batches(K: Any, a: Bags, b: Bags, degree: int, place: Place, *, half: bool) -> None:
    """One set of `a` with batches of `b` at a time, in PyTorch alone."""
    import torch

    points = torch.as_tensor(a.points, device=place.device, dtype=place.dtype)
    for batch in batches(b, place, 1.0, place.dtype):
        inside = batch.inside.to(place.dtype)
        flat = batch.points.flatten(0, 1)
        shares = inside / inside.sum(1, keepdim=True)
        step = max(1, BATCH_NUMBERS // (4 * len(flat)))
        columns = torch.as_tensor(batch.indices, device=place.device)
        for i in range(len(a)):
            first, last = int(a.offsets[i]), int(a.offsets[i + 1])
            sums: Any = 0.0
            for start in range(first, last, step):
                rows = points[start : min(start + step, last)]
                sums = sums + _similarities(rows, flat, degree).sum(0)
            K[i, columns] = (sums.reshape(inside.shape) * shares).sum(1) / (last - first)
    if half:
        mirror_upper(K)


def describe(model: Any, sets: Bags, place: Place) -> DeviceMaps:
    """Mean map of each set, for a `MeanMapModel`."""
    features, pairs = model.features, model.pairs
    if pairs is not None:
        check_point_kernel(pairs.kernel, sets)
    if features is None:
        lengths = own_means(sets, pairs.kernel, pairs.center, place).clamp(min=0.0).sqrt()
        return DeviceMaps(sets, lengths, None, np.ones(len(sets), dtype=bool))
    vectors = mean_vectors(sets, features, place)
    lengths = vectors.square().sum(1).sqrt()
    outside = np.zeros(len(sets), dtype=bool)
    if not features.holds(sets.points):
        outside = np.array([not features.holds(points) for points in sets])
        far = choose_sets(sets, np.flatnonzero(outside))
        squares = own_means(far, pairs.kernel, pairs.center, place)
        lengths[_indices(outside, place)] = squares.clamp(min=0.0).sqrt()
    return DeviceMaps(sets, lengths, vectors, outside)


def compare(model: Any, a: DeviceMaps, b: DeviceMaps | None, place: Place) -> Any:
    """Inner products of mean maps, or the outer kernel of their distances."""
    if model.outer == "rbf":
        return exponential_of(squares(model, a, b, place), model.outer_gamma)
    return _combine(model, a, b, place, distances=False)


def squares(model: Any, a: DeviceMaps, b: DeviceMaps | None, place: Place) -> Any:
    """Squared distances between mean maps."""
    import torch

    D = _combine(model, a, b, place, distances=True)
    if b is None:
        D.fill_diagonal_(0.0)
    # A set compared with itself: a large outer_gamma would amplify rounding.
    return D.masked_fill_(64.0 * torch.finfo(D.dtype).eps * D.amax() > D, 0.0)


def _combine(
    model: Any, a: DeviceMaps, b: DeviceMaps | None, place: Place, *, distances: bool
) -> Any:
    """Inner products or distances, by vectors if there are any, else by pairs of points."""
    other = a if b is None else b
    divisors, other_divisors = _divisors(model, a), _divisors(model, other)
    if a.vectors is None:
        sets = None if b is None else b.sets
        K = point_means(a.sets, sets, model.pairs.kernel, model.pairs.center, place)
        _scale(K, a.lengths, divisors, other.lengths, other_divisors, distances)
        return K
    vectors = a.vectors / divisors[:, None]
    others = None if b is None else other.vectors / other_divisors[:, None]
    K = squared_distances(vectors, others) if distances else inner_products(vectors, others)
    _replace_outside(model, K, a, other, distances, place)
    if b is not None:
        _replace_outside(model, K.T, b, a, distances, place)
    elif a.outside.any():
        far = _indices(a.outside, place)
        K[:, far] = K[far].T
        mirror_upper(K)
    return K


def _scale(
    K: Any, lengths: Any, divisors: Any, other_lengths: Any, other_divisors: Any, distances: bool
) -> None:
    """Mean similarities divided by both divisors, or the squared distances from them, in place."""
    squares, other_squares = (lengths / divisors) ** 2, (other_lengths / other_divisors) ** 2
    for start in range(0, len(K), SIDE):
        rows = slice(start, start + SIDE)
        # Products and sums of two are the same in either order, so symmetry stays exact.
        K[rows] /= divisors[rows, None] * other_divisors
        if distances:
            both = squares[rows, None] + other_squares
            K[rows] = (both - 2.0 * K[rows]).clamp_(min=0.0)


def _replace_outside(
    model: Any, K: Any, a: DeviceMaps, b: DeviceMaps, distances: bool, place: Place
) -> None:
    """Rows of the sets of `a` without a vector, from all pairs of points."""
    if not a.outside.any():
        return
    far = _indices(a.outside, place)
    sets = choose_sets(a.sets, np.flatnonzero(a.outside))
    found = point_means(sets, b.sets, model.pairs.kernel, model.pairs.center, place)
    divisors = _divisors(model, a)[far]
    _scale(found, a.lengths[far], divisors, b.lengths, _divisors(model, b), distances)
    K[far] = found


def _divisors(model: Any, maps: DeviceMaps) -> Any:
    import torch

    if not model.normalize:
        return torch.ones_like(maps.lengths)
    return torch.where(maps.lengths > 0, maps.lengths, 1.0)


def _indices(mask: NDArray[np.bool_], place: Place) -> Any:
    import torch

    return torch.as_tensor(np.flatnonzero(mask), device=place.device)
