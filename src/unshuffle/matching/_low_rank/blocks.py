"""Tables of any size, left where they are and read a block of rows at a time."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._core.arrays import (
    check_distances,
    check_magnitude,
    check_nonnegative,
    check_resolved,
    check_vectors,
    middle,
)
from unshuffle._run.device import take, to_host
from unshuffle._run.parallel import eigh, map_parallel
from unshuffle._run.types import Floats

Rows = slice | NDArray[np.intp]

# Single precision holds the squares of numbers up to this size.
LARGEST = 1e15
# Rows from which the middle of a table is taken.
N_TYPICAL = 2000
# Numbers in a block of similarities or vectors, 8 MB, and on a GPU 128 MB.
BLOCK, DEVICE_BLOCK = 2**21, 2**25
# Parts whose sums are held at a time.
PARTS_HELD = 8


@dataclass(frozen=True, eq=False)
class RowTable:
    """Rows of numbers, left where they are and read a few at a time."""

    rows: Any  # as the user passed them, dense or CSR
    origin: Floats | None  # (d,) median of a sample; None leaves sparse rows sparse
    exponent: int  # of the power of two that numbers are divided by, 0 unless they are extreme
    device: Any = None  # where dense rows are read to in single precision

    @classmethod
    def of(cls, rows: Any, *, most_columns: int = 0, device: Any = None) -> "RowTable":
        """Table of validated rows; sparse ones of at most `most_columns` are read as dense."""
        sample = rows[draw(rows.shape[0], N_TYPICAL)]
        if sparse.issparse(rows) and rows.shape[1] > most_columns:
            return cls(rows, None, _extreme_exponent(sample.data))
        sample = as_dense(sample)
        # The median of a sample keeps the digits of differences as well as that of all.
        origin = middle(sample)
        return cls(rows, origin, _extreme_exponent(np.abs(sample - origin).max(axis=1)), device)

    @property
    def is_sparse(self) -> bool:
        """Whether its blocks are sparse."""
        return self.origin is None

    def read(self, rows: Rows) -> Any:
        """Some rows about the origin."""
        if self.origin is None:
            part = self.rows[rows].astype(np.float64)
            part.data = np.ldexp(part.data, -self.exponent)
            return part
        near = as_dense(self.rows[rows]) - self.origin
        return np.ldexp(near, -self.exponent) if self.exponent else near

    def read_single(self, rows: Rows) -> Any:
        """Some rows about the origin, in single precision; a tensor if there is a device."""
        if self.device is not None:
            return self.tensor[rows] if isinstance(rows, slice) else take(self.tensor, rows)
        return self._read_single(rows)

    @cached_property
    def tensor(self) -> Any:
        """All rows about the origin, on the device."""
        return on_device(self.read_all(None), self.device)

    def _read_single(self, rows: Rows) -> Any:
        part = self.read(rows)
        values = part if self.origin is not None else part.data
        np.clip(values, -LARGEST, LARGEST, out=values)
        return part.astype(np.float32)

    def read_all(self, n_jobs: int | None) -> Any:
        """All rows about the origin, in single precision."""
        if self.origin is None:
            return self._read_single(slice(None))
        points = np.empty(self.rows.shape, dtype=np.float32)

        def copy(rows: slice) -> None:
            points[rows] = self._read_single(rows)

        map_parallel(copy, blocks(*points.shape), n_jobs=n_jobs)
        return points

    def check_outliers(self, name: str, n_jobs: int | None) -> None:
        """Refuse rows so far from the others that these are lost to rounding."""

        def sizes(rows: slice) -> Floats:
            return np.asarray(np.abs(self.read(rows)).max(axis=1))

        parts = blocks(*self.rows.shape)
        distances = np.concatenate(map_parallel(sizes, parts, n_jobs=n_jobs))
        check_distances(np.ldexp(distances, self.exponent), lambda row: f"Row {row} of {name}")


def _extreme_exponent(sizes: Floats) -> int:
    """Exponent of typical numbers if their squares may not fit into single precision, else 0."""
    positive = np.abs(sizes[sizes != 0])
    exponent = int(np.frexp(np.median(positive))[1]) if positive.size else 0
    return exponent if abs(exponent) > 40 else 0


def draw(n_items: int, size: int) -> NDArray[np.intp]:
    """Sorted sample of items that does not depend on the user's seed."""
    if size >= n_items:
        return np.arange(n_items)
    return np.sort(np.random.default_rng(0).choice(n_items, size, replace=False))


def draw_unequal(rows: Any, size: int) -> NDArray[np.intp]:
    """`draw`, but of rows that differ if those drawn are equal and the others are not."""
    chosen = draw(rows.shape[0], size)
    if size >= rows.shape[0]:
        return chosen
    low, high = column_ends(rows[chosen])
    if np.any(low != high):
        return chosen
    different = [
        part.start + np.flatnonzero((as_dense(rows[part]) != low).any(axis=1))
        for part in blocks(*rows.shape)
    ]
    others = np.concatenate(different)
    return np.sort(np.append(chosen[:1], others[draw(len(others), size - 1)]))


def column_ends(rows: Any) -> Floats:
    """Least and largest value of each column, (2, d)."""
    ends = [rows.min(axis=0), rows.max(axis=0)]
    return np.concatenate([np.atleast_2d(as_dense(end)) for end in ends])


def on_device(array: Any, device: Any, dtype: Any = np.float32) -> Any:
    """An array as a tensor on a device, or on the CPU if that is None."""
    if device is None:
        return np.asarray(array, dtype=dtype)
    if isinstance(array, np.ndarray):
        array = array.astype(dtype, copy=False)
    return sys.modules["torch"].as_tensor(array, device=device)


def eigh_on(device: Any, A: Floats) -> tuple[Floats, Floats]:
    """Ascending eigenvalues and eigenvectors of a symmetric matrix, computed on a device."""
    if device is None:
        return eigh(A)
    values, vectors = sys.modules["torch"].linalg.eigh(on_device(A, device, np.float64))
    return to_host(values), to_host(vectors)


def blocks(n_items: int, n_columns: int, device: Any = None) -> list[slice]:
    """Slices of items whose rows of `n_columns` numbers make up a block."""
    step = max(1, (BLOCK if device is None else DEVICE_BLOCK) // n_columns)
    return [slice(start, min(start + step, n_items)) for start in range(0, n_items, step)]


def as_dense(rows: Any) -> Floats:
    """Some rows in double precision, dense."""
    dense = rows.toarray() if sparse.issparse(rows) else rows
    return np.asarray(dense, dtype=np.float64)


def check_rows(X: Any, kernel: Any, name: str) -> Any:
    """Vectors left in place, with the checks of `gram_matrix`."""
    X = check_vectors(X, name, kernel=getattr(kernel, "__name__", kernel), in_place=True)
    ends = column_ends(X)  # all that the checks look at
    if not callable(kernel):
        check_magnitude(ends, name)
        check_resolved(ends, name)
    if kernel == "chi2":
        check_nonnegative(ends, name, kernel=kernel)
    return X


def add_parts(
    function: Callable[[slice], tuple[Floats, Floats]], parts: list[slice], n_jobs: int | None
) -> tuple[Floats, Floats]:
    """Sums of both results of a function over parts, added in order; it may write in place."""
    first: Any = 0.0
    second: Any = 0.0
    for start in range(0, len(parts), PARTS_HELD):
        some = parts[start : start + PARTS_HELD]
        for added, also in map_parallel(function, some, n_jobs=n_jobs):
            first, second = first + added, second + also
    return first, second
