"""Low-rank factors of the kernel of a collection of any size: its kernel principal components."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._distances import sampled_gamma
from unshuffle._parallel import eigh, map_parallel, one_blas_thread
from unshuffle.matching._landmarks import (
    Array,
    Features,
    Rows,
    Table,
    check_rows,
    draw,
    linear_features,
    rbf_features,
)

# Most coordinates of the points.
MOST_COORDINATES = 64
# Components whose variance is below this share of the largest are noise in single precision.
NEGLIGIBLE = 1e-7
# Items per landmark that choose the components; all items then decide their variances.
ITEMS_PER_LANDMARK = 16
# Numbers in one block of similarities, 8 MB.
BLOCK = 2**21
# Blocks whose sums are held at a time.
BLOCKS_HELD = 32


@dataclass(frozen=True, eq=False)
class Factors:
    """Kernel principal components of a collection, and coordinates of its items."""

    scores: NDArray[np.float32]  # (n, r), each of mean 0 and variance 1, uncorrelated
    eigenvalues: Array  # (r,) variances before scaling, decreasing, above 0
    points: NDArray[np.float32]  # (n, d) coordinates, whose distances stand for those of the items
    spread: float  # median squared distance between points


def compute_factors(
    collection: Any,
    kernel: Any,
    *,
    gamma: Any,
    weights: Any,
    name: str,
    rank: int,
    n_landmarks: int = 1024,
    n_jobs: int | None = None,
) -> Factors:
    """Factors of the centered kernel, which is about (scores * eigenvalues) @ scores.T."""
    rows = check_rows(collection, kernel, name)
    table = Table.of(rows)
    if kernel == "linear":
        features = linear_features(table)
    else:
        width = sampled_gamma(rows, "rbf", name=name) if gamma is None else gamma
        features = rbf_features(table, width, n_landmarks)
    with one_blas_thread():
        scores, eigenvalues = principal_components(
            features, rank, n_sample=ITEMS_PER_LANDMARK * n_landmarks, n_jobs=n_jobs
        )
    points = table.read_single(slice(None))
    return Factors(scores, eigenvalues, points, 1.0 / sampled_gamma(points, name=name))


def principal_components(
    features: Features, rank: int, *, n_sample: int, n_jobs: int | None
) -> tuple[NDArray[np.float32], Array]:
    """Scores of mean 0 and variance 1, and the variances before scaling, largest first.

    A sample of the items chooses the components; the scores of all items then decide their
    variances and turn them until they are uncorrelated.
    """
    n_items, basis = features.n_items, features.basis
    sample = draw(n_items, n_sample)
    step = max(1, BLOCK // (features.width if basis is None else basis.shape[0]))
    project = None if basis is None else basis.astype(np.float32)

    def moments_of(rows: Rows) -> tuple[Array, Array]:
        block = features.block(rows)
        return moments(block if project is None else block @ project)

    parts = [sample[start : start + step] for start in range(0, len(sample), step)]
    mean, covariance = collect(moments_of, parts, len(sample), n_jobs)
    variances, directions = leading(covariance, rank)
    turn = directions / np.sqrt(variances)
    offset = (mean @ turn).astype(np.float32)
    turn = (turn if basis is None else basis @ turn).astype(np.float32)
    scores = np.empty((n_items, variances.size), dtype=np.float32)

    def score(rows: slice) -> tuple[Array, Array]:
        part = scores[rows]
        np.matmul(features.block(rows), turn, out=part)
        part -= offset
        return moments(part)

    blocks = [slice(start, min(start + step, n_items)) for start in range(0, n_items, step)]
    mean, covariance = collect(score, blocks, n_items, n_jobs)
    roots = np.sqrt(variances)
    variances, directions = leading(roots[:, None] * covariance * roots, rank)
    last = roots[:, None] * directions / np.sqrt(variances)
    shift, rotation = (mean @ last).astype(np.float32), last.astype(np.float32)

    def rotate(rows: slice) -> None:
        scores[rows] = scores[rows] @ rotation - shift

    map_parallel(rotate, blocks, n_jobs=n_jobs)
    return scores, variances


def moments(part: NDArray[np.float32]) -> tuple[Array, Array]:
    """Sum of the rows, and sum of their outer products."""
    return part.sum(axis=0, dtype=np.float64), (part.T @ part).astype(np.float64)


def collect(
    function: Callable[[Any], tuple[Array, Array]],
    parts: list[Any],
    n_items: int,
    n_jobs: int | None,
) -> tuple[Array, Array]:
    """Mean and covariance of items from the moments of parts, added in order."""
    total: Any = 0.0
    squares: Any = 0.0
    for start in range(0, len(parts), BLOCKS_HELD):
        for added, products in map_parallel(
            function, parts[start : start + BLOCKS_HELD], n_jobs=n_jobs
        ):
            total, squares = total + added, squares + products
    mean = total / n_items
    return mean, squares / n_items - np.outer(mean, mean)


def leading(covariance: Array, rank: int) -> tuple[Array, Array]:
    """Largest variances and their directions."""
    values, vectors = eigh(covariance)
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    kept = values > NEGLIGIBLE * max(float(values[0]), 0.0)
    return values[kept], vectors[:, kept]
