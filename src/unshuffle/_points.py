"""Points as vectors of a kernel's feature space, and back."""

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle._arrays import as_array
from unshuffle._distances import exponential, median_gamma, squared_distances
from unshuffle._middle import middle
from unshuffle._parameters import check_memory

Array = NDArray[np.float64]
# The median of this many points' distances is within a few per cent of that of all.
WIDTH_SAMPLE = 2000
# Pivots that add less than this share of the largest are rounding.
NEGLIGIBLE = 1e-12
# Weight of the ridge of pre-images, relative to the mean square of a feature.
PREIMAGE_RIDGE = 1e-6


@dataclass(frozen=True)
class PointKernel:
    """Similarity between two sets of points, its parameters settled.

    Attributes
    ----------
    kind : "poly", "rbf" or callable
        A callable is called on two arrays of points, or else on pairs of points.
    gamma : float
        Scale of "poly", width of "rbf".
    degree : int
        Of "poly".
    """

    kind: Any
    gamma: float
    degree: int

    @classmethod
    def of(cls, kernel: Any, points: Array, *, gamma: float | None, degree: int) -> "PointKernel":
        """Kernel for points like these."""
        if gamma is None:
            gamma = _median_width(points) if kernel == "rbf" else 1.0 / points.shape[1]
        return cls(kernel, float(gamma), degree)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Similarities, shape (len(X), len(Y))."""
        if self.kind == "rbf":
            return exponential("rbf", X, Y, self.gamma)
        shape = len(X), len(Y)
        if self.kind == "poly":
            with np.errstate(over="ignore", invalid="ignore"):
                powers = (self.gamma * (X @ Y.T) + 1.0) ** self.degree
            return check_kernel_overflow(np.asarray(powers), self.gamma, self.degree)
        try:
            found = self.kind(X, Y)
        except (TypeError, ValueError, IndexError):
            found = None
        if np.shape(found) != shape:
            found = self._pairwise(X, Y)
        return check_kernel_block(found, shape, self.kind)

    def _pairwise(self, X: Array, Y: Array) -> list[list[float]]:
        try:
            return [[np.asarray(self.kind(x, y)).item() for y in Y] for x in X]
        except (TypeError, ValueError, IndexError) as error:
            raise_kernel_failed(self.kind, "the points", error)


@dataclass(frozen=True)
class PointFeatures:
    """Map from points to features whose inner products are the kernel's.

    Attributes
    ----------
    center : ndarray of shape (n_dims,)
        Middle of all points, from which distances lose no digits.
    kernel : PointKernel or None
        Similarity of points; None is the linear one, whose features are the points.
    landmarks : ndarray of shape (rank, n_dims)
        Points by which all are described.
    factor : ndarray of shape (rank, rank)
        Lower Cholesky factor of the kernel between the landmarks.
    preimage : ndarray of shape (rank + 1, n_dims)
        Ridge regression of points on features, the constant last.
    """

    center: Array
    kernel: PointKernel | None
    landmarks: Array
    factor: Array
    preimage: Array

    @classmethod
    def of(
        cls, points: Array, kernel: Any, *, gamma: float | None, degree: int, rank: int
    ) -> "PointFeatures":
        """Features for points like these: exact for "linear", else of at most `rank` numbers."""
        center = middle(points)
        if kernel == "linear":
            none = np.empty((0, 0))
            return cls(center, None, none, none, none)
        similarity = PointKernel.of(kernel, points, gamma=gamma, degree=degree)
        pivots, factor = greedy_pivots(points, similarity, rank)
        landmarks = points[pivots]
        found = cls(center, similarity, landmarks, factor, np.empty((0, 0)))
        preimage = _regress(found.map(points), points)
        return cls(center, similarity, landmarks, factor, preimage)

    def map(self, points: Array) -> Array:
        """Features of points, shape (n, rank)."""
        if self.kernel is None:
            return np.asarray(points - self.center)
        # phi(x) = L^-1 k(x), so that phi(x)'phi(y) = k(x)' K^-1 k(y).
        K = self.kernel(points, self.landmarks)
        return np.asarray(
            linalg.solve_triangular(self.factor, K.T, lower=True, check_finite=False).T
        )

    def points(self, features: Array) -> Array:
        """Points whose features are about these; exactly these for the linear kernel."""
        if self.kernel is None:
            return np.asarray(features + self.center)
        return np.asarray(features @ self.preimage[:-1] + self.preimage[-1])


def greedy_pivots(points: Array, kernel: PointKernel, rank: int) -> tuple[NDArray[np.intp], Array]:
    """Points that together say most about all: each is the one worst explained by those before.

    Parameters
    ----------
    points : ndarray of shape (n, n_dims)
        Points to choose from.
    kernel : PointKernel
        Similarity of points.
    rank : int
        Most points to choose; more describe the others more closely.

    Returns
    -------
    pivots : ndarray of shape (n_pivots,)
        Fewer than `rank` where these explain all points already.
    factor : ndarray of shape (n_pivots, n_pivots)
        Lower Cholesky factor of the kernel between them.
    """
    residual = _diagonal(points, kernel)
    largest = float(residual.max())
    check_kernel_positive(largest, float(residual.min()), kernel.kind)
    rank = min(rank, len(points))
    check_factor_memory(len(points), rank)
    columns = np.zeros((rank, len(points)))
    pivots: list[int] = []
    for k in range(rank):
        pivot = int(residual.argmax())
        if residual[pivot] <= NEGLIGIBLE * largest:
            break
        column = kernel(points, points[[pivot]])[:, 0] - columns[:k].T @ columns[:k, pivot]
        columns[k] = column / np.sqrt(residual[pivot])
        residual -= columns[k] ** 2
        check_kernel_positive(largest, float(residual.min()), kernel.kind)
        residual[pivot] = 0.0
        np.maximum(residual, 0.0, out=residual)
        pivots.append(pivot)
    return np.array(pivots, dtype=np.intp), np.tril(columns[: len(pivots), pivots].T)


def _median_width(points: Array) -> float:
    if len(points) > WIDTH_SAMPLE:
        drawn = np.random.default_rng(0).choice(len(points), WIDTH_SAMPLE, replace=False)
        points = points[np.sort(drawn)]
    return median_gamma(squared_distances(points), name="the bags")


def _diagonal(points: Array, kernel: PointKernel) -> Array:
    parts = [points[start : start + 64] for start in range(0, len(points), 64)]
    return np.concatenate([np.diag(kernel(part, part)) for part in parts])


def _regress(features: Array, points: Array) -> Array:
    means, start = features.mean(axis=0), middle(points)
    near = points - start
    mean = near.mean(axis=0)
    centered = features - means
    covariance = centered.T @ centered
    # Features that are all equal have no scale; any ridge then gives slopes of zero.
    scale = float(np.trace(covariance)) / len(covariance) or 1.0
    covariance[np.diag_indices_from(covariance)] += PREIMAGE_RIDGE * scale
    slopes = linalg.solve(covariance, centered.T @ (near - mean), assume_a="pos")
    return np.vstack([slopes, start + (mean - means @ slopes)])


def raise_kernel_failed(kernel: Any, name: str, error: Exception) -> NoReturn:
    """Say that a user's kernel function works neither on matrices nor on rows."""
    label = getattr(kernel, "__name__", type(kernel).__name__)
    raise ValueError(
        f"The kernel {label} failed on {name}: {type(error).__name__}: {error}. "
        f"It is called as kernel({name}, {name}) first and, where that does not give a square "
        "matrix, as kernel(x, y) on pairs of rows."
    ) from error


def check_kernel_block(block: Any, shape: tuple[int, int], kernel: Any) -> NDArray[np.float64]:
    """Similarities that a user's kernel gave for two sets of points."""
    label = getattr(kernel, "__name__", type(kernel).__name__)
    given = as_array(block, f"What the kernel {label} returned")
    try:
        if given.dtype.kind not in "buifO":
            raise TypeError("text or complex numbers")
        values = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The kernel {label} returned values of dtype {given.dtype}. Return similarities as "
            "real numbers."
        ) from error
    if values.shape != shape:
        raise ValueError(
            f"The kernel {label} returned shape {values.shape} for {shape[0]} and {shape[1]} "
            "points. Return one row for each point of the first and one column for each of the "
            "second, or one number for two single points."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"The kernel {label} returned NaN or infinity. Return finite similarities, or check "
            "the points passed to it."
        )
    return values


def check_kernel_overflow(
    block: NDArray[np.float64], gamma: float, degree: int
) -> NDArray[np.float64]:
    """Similarities by the polynomial kernel, refused where their squares leave the floats."""
    if not np.all(np.abs(block) < 1e150):
        raise ValueError(
            f"The kernel poly with degree={degree} and gamma={gamma:.3g} gives similarities too "
            "large for a float. Pass a smaller degree or gamma, or divide the points by a common "
            "number."
        )
    return block


def check_kernel_positive(largest: float, smallest: float, kernel: Any) -> None:
    """Refuse a kernel by which points have no length: it has no feature space."""
    if not (largest > 0 and smallest >= -1e-8 * largest):
        label = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "callable")
        raise ValueError(
            f"The kernel {label} is not positive definite: of the similarity of a point with "
            f"itself (at most {largest:.3g}), {smallest:.3g} is left once other points are "
            "accounted for, and it may not be below 0. Pass a kernel such as rbf, or "
            "exp(-distance) in place of a distance."
        )


def check_factor_memory(n_items: int, rank: int) -> None:
    """Refuse factors that would not fit into the memory that is free now."""
    check_memory(
        # the factors twice, and what the eigenvectors of a sample take
        16 * n_items * rank + 40 * rank**2,
        what=f"Rank {rank:,} factors of {n_items:,} items",
        instead="Choose a smaller rank.",
    )
