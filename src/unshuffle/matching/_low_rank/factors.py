"""Low-rank factors of the kernel of a collection of any size: its kernel principal components."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from unshuffle._core.arrays import check_same_items
from unshuffle._core.distances import WIDTH_SAMPLE
from unshuffle._core.grams import (
    check_centered_norm,
    check_kernel_list,
    check_kernel_weights,
    check_no_weights,
    check_per_kernel,
    collection_for_each,
    count_items,
)
from unshuffle._core.kernel_features import kernel_name
from unshuffle._core.parameters import check_memory
from unshuffle._run.device import in_double, is_tensor, namespace, take, to_host
from unshuffle._run.parallel import count_threads, map_parallel, one_blas_thread
from unshuffle._run.types import Floats
from unshuffle.matching._dense.pair import check_unequal
from unshuffle.matching._low_rank.blocks import (
    BLOCK,
    Rows,
    RowTable,
    add_parts,
    blocks,
    draw,
    draw_unequal,
    eigh_on,
    on_device,
)
from unshuffle.matching._low_rank.landmarks import (
    PER_LANDMARK,
    Effort,
    Features,
    features_of,
    linear_features,
    median_gamma_on,
)

# Most coordinates of the points.
MOST_COORDINATES = 64
ROWS = 2**16  # of a tensor that are squared at a time
# Components whose variance is below this share of the largest are noise in single precision.
NEGLIGIBLE = 1e-7


@dataclass(frozen=True, eq=False)
class Factors:
    """Kernel principal components of a collection, and coordinates of its items."""

    scores: Any  # (n, r), each of mean 0 and variance 1, uncorrelated, the leading first
    eigenvalues: Floats  # (r,) variances before scaling, decreasing, above 0
    points: Any  # (n, d) coordinates, whose distances stand for those of the items
    spread: float  # median squared distance between points

    @cached_property
    def lengths(self) -> Any:
        """Squared lengths of the items in the space of the kernel, the diagonal of the kernel."""
        if not is_tensor(self.scores):
            return np.einsum("ij,ij,j->i", self.scores, self.scores, self.eigenvalues)
        xp = namespace(self.scores)
        weights = xp.as_tensor(self.eigenvalues, device=self.scores.device)
        return xp.cat([part.double() ** 2 @ weights for part in self.scores.split(ROWS)])


@dataclass(frozen=True, eq=False)
class KernelComponents:
    """Principal components of features, in the unit of the features."""

    scores: Any  # as in `Factors`
    eigenvalues: Floats
    norm: float  # of the centered kernel, including components that were dropped

    def vectors(self, n_components: int | None = None) -> Any:
        """Components before scaling, whose inner products are the kernel."""
        roots = np.sqrt(self.eigenvalues[:n_components])
        some = self.scores[:, :n_components]
        return some * on_device(roots, some.device if is_tensor(some) else None)


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
    device: Any = None,
) -> Factors:
    """Factors of the centered kernel, which is about (scores * eigenvalues) @ scores.T.

    Up to `n_landmarks` items the approximation is exact up to the rank. Memory for the factors is
    linear in the number of items and is checked first. Neither the random numbers nor `n_jobs`
    change the result. On a device, the similarities of dense tables by "rbf" and "linear" are
    computed there, others on the CPU.
    """
    effort = Effort(rank, n_landmarks, n_jobs, device)
    check_factor_memory(collection, kernel, effort)
    with one_blas_thread():
        if isinstance(kernel, list | tuple):
            features = _sum_features(collection, kernel, gamma, weights, name, effort)
        else:
            check_no_weights(weights)
            features = features_of(collection, kernel, gamma, name=name, effort=effort)
        found = principal_components(features, effort)
        if found.eigenvalues.size == 0:
            check_unequal(np.zeros((2, 2)), name)  # raises the error
        if features.table is None:
            points = found.vectors(MOST_COORDINATES)
        else:
            points = _points_of_table(features.table, name, effort)
        spread = features.spread
        if spread is None:
            spread = 1.0 / _median_gamma(points, name, device)
    return Factors(found.scores, found.eigenvalues * features.unit, points, spread)


def _median_gamma(points: Any, name: str, device: Any) -> float:
    """One over the median squared distance of a sample of the points."""
    sample = to_host(take(points, draw(len(points), WIDTH_SAMPLE)))
    if np.all(sample == sample[0]):
        sample = to_host(points)
        sample = sample[draw_unequal(sample, WIDTH_SAMPLE)]
    return median_gamma_on(device, sample, name=name)


def check_factor_memory(collection: Any, kernel: Any, effort: Effort) -> None:
    """Refuse factors that would not fit into free memory."""
    n_items = count_items(collection, kernel)
    n_parts = 2 + len(kernel) if isinstance(kernel, list | tuple) else 1
    n_side, n_threads = min(effort.n_landmarks, n_items), count_threads(effort.n_jobs)
    n_bytes = 4 * n_items * (min(effort.rank, n_side) * n_parts + MOST_COORDINATES)
    # 250 MB for 1,024 landmarks on two threads, whatever the number of items
    n_bytes += 150 * n_side**2 + 24 * min(BLOCK, n_items * n_side) * n_threads
    if kernel == "geodesic":
        n_bytes += 4 * n_items * n_side
    check_memory(
        n_bytes,
        what=f"Rank {effort.rank:,} factors of {n_items:,} items",
        instead="Use a sample of the items.",
    )


def _points_of_table(table: RowTable, name: str, effort: Effort) -> Any:
    """The rows about their median, or their main coordinates if there are many columns."""
    if not table.is_sparse and table.rows.shape[1] <= MOST_COORDINATES:
        return table.tensor if effort.device is not None else table.read_all(effort.n_jobs)
    features = linear_features(table, name, effort._replace(rank=MOST_COORDINATES))
    if features.basis is None:
        features = replace(features, n_chosen=PER_LANDMARK * effort.n_landmarks)
    return principal_components(features, effort._replace(rank=MOST_COORDINATES)).vectors()


def _sum_features(
    collection: Any, kernel: Any, gamma: Any, weights: Any, name: str, effort: Effort
) -> Features:
    """Components of several kernels, each scaled to unit centered norm as in `combined_gram`."""
    kernels = check_kernel_list(kernel)
    collections = collection_for_each(collection, len(kernels), name)
    gammas = check_per_kernel(gamma, len(kernels))
    shares = check_kernel_weights(weights, len(kernels))
    apart = len({id(each) for each in collections}) > 1
    parts: list[Any] = []
    for k, (each, spec) in enumerate(zip(collections, kernels, strict=True)):
        label = f"{name}[{k}]" if apart else name
        features = features_of(each, spec, gammas[k], name=label, effort=effort)
        n_items = features.n_items
        if parts:
            check_same_items(len(parts[0]), n_items, f"{name}[0]", label)
        found = principal_components(features, effort)
        named = repr(spec) if isinstance(spec, str) else kernel_name(spec)
        check_centered_norm(found.norm, 0.0, f"{label} (kernel {k}, {named})")
        part = found.vectors()
        part *= float(np.sqrt(shares[k] * n_items / found.norm))
        parts.append(part)

    def block(rows: Rows) -> Any:
        some = [part[rows] if isinstance(rows, slice) else take(part, rows) for part in parts]
        return namespace(parts[0]).hstack(some)

    width = sum(part.shape[1] for part in parts)
    # Sums of products over n items are of order one in these units.
    return Features(len(parts[0]), block, width, unit=1.0 / len(parts[0]))


def principal_components(features: Features, effort: Effort) -> KernelComponents:
    """Principal components of the features of all items.

    A sample of the items chooses the components; the scores of all items then decide their
    variances and turn them until they are uncorrelated.
    """
    n_items, basis, device = features.n_items, features.basis, effort.device
    n_jobs = effort.n_jobs if features.threads and device is None else None
    sample = draw(n_items, features.n_chosen or n_items)

    def multiply(rows: Rows, matrix: Floats | None) -> Any:
        block, dtype = features.block(rows), np.float32 if features.single else np.float64
        if sparse.issparse(block):
            block = block.toarray() if matrix is None else block @ matrix.astype(dtype)
            return on_device(block, device, dtype)
        block = on_device(block, device, dtype)
        return block if matrix is None else block @ on_device(matrix, device, dtype)

    def choose(rows: slice) -> tuple[Floats, Floats]:
        return moments(multiply(rows if len(sample) == n_items else sample[rows], basis))

    width = features.width
    sums = add_parts(choose, blocks(len(sample), width, device), n_jobs)
    mean, covariance = mean_and_covariance(*sums, len(sample))
    variances, directions = leading(covariance, device)
    norm = n_items * float(np.linalg.norm(variances))
    variances, directions = variances[: effort.rank], directions[:, : effort.rank]
    turn = directions / np.sqrt(variances)
    offset = on_device(mean @ turn, device)
    turn = turn if basis is None else basis @ turn
    scores = on_device(np.empty((n_items, variances.size), dtype=np.float32), device)

    def score(rows: slice) -> tuple[Floats, Floats]:
        scores[rows] = multiply(rows, turn) - offset
        return moments(scores[rows])

    parts = blocks(n_items, width, device)
    mean, covariance = mean_and_covariance(*add_parts(score, parts, n_jobs), n_items)
    roots = np.sqrt(variances)
    variances, directions = leading(roots[:, None] * covariance * roots)
    last = roots[:, None] * directions / np.sqrt(variances)
    shift, rotation = on_device(mean @ last, device), on_device(last, device)

    def rotate(rows: slice) -> None:
        scores[rows, : len(shift)] = scores[rows] @ rotation - shift

    map_parallel(rotate, parts, n_jobs=n_jobs)
    if len(shift) < scores.shape[1]:
        scores = scores[:, : len(shift)] + 0.0  # contiguous
    return KernelComponents(scores, variances, norm)


def moments(part: Any) -> tuple[Floats, Floats]:
    """Sum of the rows, and sum of their outer products."""
    total = part.sum(axis=0, dtype=namespace(part).float64)
    return in_double(total), in_double(part.T @ part)


def mean_and_covariance(total: Floats, squares: Floats, n_items: int) -> tuple[Floats, Floats]:
    """Mean and covariance from sums of items and of their outer products."""
    mean = total / n_items
    return mean, squares / n_items - np.outer(mean, mean)


def leading(covariance: Floats, device: Any = None) -> tuple[Floats, Floats]:
    """Variances that are not noise and their directions, the largest first."""
    values, vectors = eigh_on(device, covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > NEGLIGIBLE * float(values.max(initial=0.0))
    return values[kept], vectors[:, kept]
