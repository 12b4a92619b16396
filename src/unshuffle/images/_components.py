"""Vectors of many pictures in little memory: the leading components of a sample of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle._run.cluster import runs_elsewhere
from unshuffle._run.parallel import map_parallel, one_blas_thread, stream_elsewhere

# Fewer pictures are described by all their numbers.
MANY = 10_000
# The layout itself uses at most 48. With 256 it is as good as with all numbers, and 86 to 96 % of
# the ten nearest pictures are the same (crops of photos, 4,800 numbers each).
N_COMPONENTS = 256
_SAMPLE = 2000
_BLOCK = 256  # pictures at a time
Rows = Callable[[NDArray[np.intp]], NDArray[Any]]
Describe = Callable[[Any], NDArray[Any]]


def leading_components(
    rows: Rows, n_items: int, *, describe: Describe | None = None, n_jobs: int | None = None
) -> NDArray[np.float32]:
    """Items on the leading principal components of a sample of them, which is always the same.

    `rows` gives the vectors of some items, or the items themselves for `describe`, which then
    makes their vectors, here or where the user's joblib backend runs. Those of all are never in
    memory at once.
    """
    sample = np.sort(np.random.RandomState(0).permutation(n_items)[:_SAMPLE])
    with one_blas_thread():
        some = rows(sample) if describe is None else describe(rows(sample))
        mean, basis = _find_components(np.asarray(some, dtype=np.float64))
    found = np.empty((n_items, basis.shape[1]), dtype=np.float32)
    blocks = [np.arange(i, min(i + _BLOCK, n_items)) for i in range(0, n_items, _BLOCK)]
    project = partial(_project, describe, mean, basis)
    if describe is not None and runs_elsewhere(n_jobs):
        parts = stream_elsewhere(project, map(rows, blocks))
        for block, part in zip(blocks, parts, strict=True):
            found[block] = part
        return found

    def fill(block: NDArray[np.intp]) -> None:
        found[block] = project(rows(block))

    map_parallel(fill, blocks, n_jobs=n_jobs)
    return found


def _project(
    describe: Describe | None, mean: NDArray[Any], basis: NDArray[Any], items: NDArray[Any]
) -> NDArray[Any]:
    vectors = items if describe is None else describe(items)
    return np.asarray((vectors - mean) @ basis)


def _find_components(
    sample: NDArray[np.float64],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean of the sample and its leading components, (n_features, n_components)."""
    mean = sample.mean(axis=0)
    sample = sample - mean
    n_items, n_features = sample.shape
    if n_features <= N_COMPONENTS:
        return mean.astype(np.float32), np.eye(n_features, dtype=np.float32)
    # Few items have few components, and a smaller matrix.
    least = max(0, n_items - N_COMPONENTS)
    values, vectors = linalg.eigh(sample @ sample.T, subset_by_index=(least, n_items - 1))
    lengths = np.sqrt(np.maximum(values, 0.0))
    kept = lengths > 1e-6 * lengths[-1]  # the others are rounding
    if not kept.any():
        return mean.astype(np.float32), np.zeros((n_features, 1), dtype=np.float32)
    basis = sample.T @ (vectors[:, kept] / lengths[kept])
    return mean.astype(np.float32), basis[:, ::-1].astype(np.float32)
