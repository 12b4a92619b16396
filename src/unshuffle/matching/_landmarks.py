"""Features of the items of a collection, from their similarities to a sample of landmarks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import (
    check_magnitude,
    check_nonnegative,
    check_resolved,
    check_vectors,
    middle,
)
from unshuffle._distances import exponential
from unshuffle._parallel import eigh
from unshuffle.kernels import center

Array = NDArray[np.float64]
Rows = slice | NDArray[np.intp]

# Eigenvalues of the landmarks' kernel below this share of the largest are noise in single
# precision.
NEGLIGIBLE = 1e-6
# Beyond this squared distance from the median, in units of the kernel's width, single precision
# loses more than five digits of the similarity of two close items.
FAR = 16.0
# Single precision holds the squares of numbers up to this size.
LARGEST = 1e15
SAMPLE = 2000  # rows from which the middle of a table is taken


@dataclass(frozen=True, eq=False)
class Features:
    """Features of items, computed for some of them at a time: block(rows) @ basis."""

    n_items: int
    block: Callable[[Rows], Any]  # (b, l) similarities to landmarks, or vectors
    basis: Array | None  # (l, q); None is the identity
    width: int  # number q of features


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers, left where they are, and read a few at a time in single precision."""

    rows: Any  # as the user passed them
    origin: Array  # (d,) median of a sample, which keeps the digits of differences
    exponent: int  # of the power of two that numbers are divided by, 0 unless they are extreme

    @classmethod
    def of(cls, rows: Any) -> "Table":
        """Table of validated rows."""
        sample = np.asarray(rows[draw(len(rows), SAMPLE)], dtype=np.float64)
        origin = middle(sample)
        sizes = np.abs(sample - origin).max(axis=1)
        typical = float(np.median(sizes[sizes > 0])) if sizes.any() else 1.0
        exponent = int(np.frexp(typical)[1])
        return cls(rows, origin, exponent if abs(exponent) > 40 else 0)

    def read(self, rows: Rows) -> Array:
        """Some rows about the origin, in double precision."""
        near = np.asarray(self.rows[rows], dtype=np.float64) - self.origin
        return np.ldexp(near, -self.exponent) if self.exponent else near

    def read_single(self, rows: Rows) -> NDArray[np.float32]:
        """Some rows about the origin, in single precision."""
        return np.clip(self.read(rows), -LARGEST, LARGEST).astype(np.float32)


def draw(n_items: int, size: int) -> NDArray[np.intp]:
    """Sorted sample of items that does not depend on the user's seed."""
    if size >= n_items:
        return np.arange(n_items)
    return np.sort(np.random.default_rng(0).choice(n_items, size, replace=False))


def check_rows(X: Any, kernel: str, name: str) -> Any:
    """Vectors left in place, with the checks of `gram_matrix`."""
    X = check_vectors(X, name, kernel=kernel, in_place=True)
    # All that the checks look at are the ends of each column.
    ends = np.stack([X.min(axis=0), X.max(axis=0)]).astype(np.float64)
    check_magnitude(ends, name)
    if kernel == "chi2":
        check_nonnegative(ends, name, kernel=kernel)
    check_resolved(ends, name)
    return X


def linear_features(table: Table) -> Features:
    """The vectors themselves."""
    n_items, n_columns = table.rows.shape
    return Features(n_items, table.read_single, None, n_columns)


def rbf_features(table: Table, gamma: float, n_landmarks: int) -> Features:
    """Similarities exp(-gamma d^2) to landmarks."""
    n_items = len(table.rows)
    gamma = float(np.ldexp(gamma, 2 * table.exponent))
    exact = table.read(draw(n_items, n_landmarks))
    landmarks = table.read_single(draw(n_items, n_landmarks))
    norms = np.einsum("ij,ij->i", landmarks, landmarks)
    # One product gives -gamma d^2, with |x|^2 and |y|^2 in its last two columns.
    ones = np.ones((len(landmarks), 1), dtype=np.float32)
    scaled = np.hstack([2 * gamma * landmarks, -gamma * norms[:, None], -gamma * ones]).T
    scaled = np.ascontiguousarray(scaled, dtype=np.float32)

    def block(rows: Rows) -> NDArray[np.float32]:
        near = table.read_single(rows)
        norms = np.einsum("ij,ij->i", near, near)
        ones = np.ones(len(near), dtype=np.float32)
        K = np.column_stack([near, ones, norms]) @ scaled
        np.minimum(K, 0.0, out=K)
        np.exp(K, out=K)
        far = np.flatnonzero(gamma * norms > FAR)
        if far.size:
            K[far] = exponential("rbf", table.read(rows)[far], exact, gamma)
        return K

    return Features(n_items, block, *landmark_basis(exponential("rbf", exact, gamma=gamma)))


def landmark_basis(K: Array) -> tuple[Array, int]:
    """H, so that K_nl H are features of all items, from the kernel K of the landmarks.

    Columns of H sum to zero, so that a constant added to the kernel changes nothing.
    """
    values, vectors = eigh(center(K))
    kept = values > NEGLIGIBLE * max(float(values[-1]), 0.0)
    return vectors[:, kept] / np.sqrt(values[kept]), int(kept.sum())
