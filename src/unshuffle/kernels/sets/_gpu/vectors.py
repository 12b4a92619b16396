"""Sets described by vectors in PyTorch, and the products and distances of these vectors."""

from typing import Any

import numpy as np

from unshuffle._core.bags import Bags
from unshuffle._run.device import check_device_memory
from unshuffle.kernels.sets._gpu.tensors import BATCH_NUMBERS, Batch, Place, batches, fill_blocks
from unshuffle.kernels.sets._models.set_vectors import (
    Coordinates,
    GridWaves,
    MeanFeatures,
    Monomials,
    RandomWaves,
)

# Rows of a block of products: enough for a GPU.
SIDE = 4096
# Below this share of |x|^2 + |y|^2 the expanded square has lost too many digits.
CANCELED = 1e-6


def _empty_vectors(n_sets: int, length: int, place: Place) -> Any:
    import torch

    check_device_memory(
        place.device,
        float(place.dtype.itemsize) * n_sets * length,
        what=f"Describing {n_sets:,} sets by {length:,} numbers each",
        instead="Ask for fewer numbers per set, or pass fewer sets at a time.",
    )
    return torch.empty((n_sets, length), dtype=place.dtype, device=place.device)


def quantile_vectors(
    sets: Bags, directions: Any, center: Any, weights: Any, length: int, place: Place
) -> Any:
    """Weighted sums of sorted projections of each set, shape (n_sets, length).

    `weights` gives those of sorted values, (size, n_quantiles), for each size of a set.
    """
    import torch

    vectors = _empty_vectors(len(sets), length, place)
    axes = torch.as_tensor(directions, device=place.device, dtype=place.dtype)
    # Centered in double precision: far from the origin, single precision has no digits left.
    near = Bags(sets.points - center, sets.offsets)
    for batch in batches(near, place, float(len(axes)), place.dtype, padding=0.0):
        size = batch.points.shape[1]
        projected = (axes @ batch.points.mT).sort(-1).values
        shares = torch.as_tensor(weights(size), device=place.device, dtype=place.dtype)
        vectors[batch.indices] = (projected @ shares).flatten(1)
    return vectors


def mean_vectors(sets: Bags, features: MeanFeatures, place: Place) -> Any:
    """Mean features of the points of each set, shape (n_sets, length)."""
    vectors = _empty_vectors(len(sets), features.length, place)
    near = Bags(sets.points - getattr(features, "center", 0.0), sets.offsets)
    n_numbers = max(features.length, sets.width)
    if isinstance(features, GridWaves):  # products are summed as they are formed
        n_numbers = 2 * features.kept.size // int(min(sets.sizes.min(), features.kept.size))
        n_numbers += 2 * features.kept.size // features.amplitudes[-1].size
    per_point = min(float(n_numbers), BATCH_NUMBERS / float(sets.sizes.max()))
    for batch in batches(near, place, per_point, place.dtype):
        n_sets, n_points = batch.inside.shape
        step = max(1, int(BATCH_NUMBERS / (n_sets * n_numbers)))
        total: Any = 0.0
        for start in range(0, n_points, step):
            some = slice(start, start + step)
            part = Batch(batch.indices, batch.points[:, some], batch.inside[:, some])
            total = total + _feature_sums(part, features)
        vectors[batch.indices] = total / batch.inside.sum(1, keepdim=True)
    return vectors


def _feature_sums(batch: Batch, features: MeanFeatures) -> Any:
    """Sums of the features of centered points, shape (n_sets, length)."""
    import torch

    points, inside = batch.points, batch.inside[..., None]

    def tensor(values: Any) -> Any:
        return torch.as_tensor(values, device=points.device, dtype=points.dtype)

    if isinstance(features, Coordinates):
        return (points * inside).sum(1)
    if isinstance(features, Monomials):
        values = inside.to(points.dtype)
        for k in range(points.shape[2]):
            exponents = torch.arange(features.degree + 1, device=points.device)
            table = points[..., k, None] ** exponents
            values = values * table[..., torch.as_tensor(features.powers[:, k])]
        return values.sum(1) * tensor(features.weights)
    if isinstance(features, RandomWaves):
        phases = points @ tensor(features.frequencies)
        sums = [(waves * inside).sum(1) for waves in (phases.cos(), phases.sin())]
        return torch.cat(sums, dim=1) / features.frequencies.shape[1] ** 0.5
    assert isinstance(features, GridWaves)
    products = inside.to(points.dtype)
    waves = []
    for k, amplitudes in enumerate(features.amplitudes):
        numbers = torch.arange(amplitudes.size // 2 + 1, device=points.device)
        angles = (points[..., k, None] * features.steps[k]) * numbers
        both = torch.cat([angles.cos(), angles[..., 1:].sin()], dim=-1)
        waves.append(both * tensor(amplitudes))
    for each in waves[:-1]:
        products = (products[..., None] * each[..., None, :]).flatten(2)
    kept = torch.as_tensor(np.flatnonzero(features.kept), device=points.device)
    return (products.mT @ waves[-1]).flatten(1)[:, kept]


def inner_products(a: Any, b: Any | None) -> Any:
    """Inner products of rows; exactly symmetric if `b` is None."""
    other = a if b is None else b
    K = a.new_empty((len(a), len(other)))
    fill_blocks(K, lambda i, j: a[i] @ other[j].T, SIDE, half=b is None)
    return K


def squared_distances(a: Any, b: Any | None) -> Any:
    """Squared distances of rows; exactly symmetric if `b` is None."""
    import torch

    center = a.mean(0)
    a = a - center
    other = a if b is None else b - center
    squares, other_squares = a.square().sum(1), other.square().sum(1)
    D = a.new_empty((len(a), len(other)))
    n_pairs = max(1, BATCH_NUMBERS // max(1, a.shape[1]))

    def block(rows: slice, columns: slice) -> Any:
        sums = squares[rows, None] + other_squares[columns]
        found = torch.addmm(sums, a[rows], other[columns].T, alpha=-2.0)
        i, j = torch.nonzero(found <= CANCELED * sums, as_tuple=True)
        for start in range(0, len(i), n_pairs):
            some = slice(start, start + n_pairs)
            gaps = a[rows][i[some]] - other[columns][j[some]]
            found[i[some], j[some]] = gaps.square().sum(1)
        return found

    fill_blocks(D, block, SIDE, half=b is None)
    return D


def exponential_of(D: Any, gamma: float) -> Any:
    """exp(-gamma D), written over D."""
    return D.mul_(-gamma).exp_()
