"""Points as vectors of a kernel's feature space, and back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle import _validation as check
from unshuffle.kernels import median_gamma
from unshuffle.kernels._distances import squared_distances
from unshuffle.kernels._vectors import exponential

Array = NDArray[np.float64]
Block = Callable[[Array, Array], Array]

# The median of this many points' distances is within a few per cent of that of all.
WIDTH_SAMPLE = 2000
# Pivots that add less than this share of the largest are rounding.
NEGLIGIBLE = 1e-12
# Weight of the ridge of pre-images, relative to the mean square of a feature.
PREIMAGE_RIDGE = 1e-6


@dataclass(frozen=True)
class PointFeatures:
    """Map from points to features whose inner products are the kernel's.

    Attributes
    ----------
    center : ndarray of shape (n_dims,)
        Middle of all points, from which distances lose no digits.
    block : callable or None
        Kernel between two sets of points; None is the linear one, whose features are the points.
    landmarks : ndarray of shape (rank, n_dims)
        Points by which all are described.
    factor : ndarray of shape (rank, rank)
        Lower Cholesky factor of the kernel between the landmarks.
    preimage : ndarray of shape (rank + 1, n_dims)
        Ridge regression of points on features, the constant last.
    """

    center: Array
    block: Block | None
    landmarks: Array
    factor: Array
    preimage: Array

    @classmethod
    def of(
        cls, points: Array, kernel: Any, *, gamma: float | None, degree: int, rank: int
    ) -> "PointFeatures":
        """Features for points like these: exact for "linear", else of at most `rank` numbers."""
        center = points.mean(axis=0)
        if kernel == "linear":
            none = np.empty((0, 0))
            return cls(center, None, none, none, none)
        block = _kernel_block(points, kernel, gamma=gamma, degree=degree)
        pivots = greedy_pivots(points, block, rank, kernel=kernel)
        landmarks = points[pivots]
        K = block(landmarks, landmarks)
        factor = np.asarray(linalg.cholesky((K + K.T) / 2, lower=True, check_finite=False))
        found = cls(center, block, landmarks, factor, np.empty((0, 0)))
        preimage = _regress(found.map(points), points)
        return cls(center, block, landmarks, factor, preimage)

    def map(self, points: Array) -> Array:
        """Features of points, shape (n, rank)."""
        if self.block is None:
            return np.asarray(points - self.center)
        # phi(x) = L^-1 k(x), so that phi(x)'phi(y) = k(x)' K^-1 k(y).
        K = self.block(points, self.landmarks)
        return np.asarray(
            linalg.solve_triangular(self.factor, K.T, lower=True, check_finite=False).T
        )

    def points(self, features: Array) -> Array:
        """Points whose features are about these; exactly these for the linear kernel."""
        if self.block is None:
            return np.asarray(features + self.center)
        return np.asarray(features @ self.preimage[:-1] + self.preimage[-1])


def greedy_pivots(points: Array, block: Block, rank: int, *, kernel: Any) -> NDArray[np.intp]:
    """Points that together say most about all: each is the one worst explained by those before.

    Parameters
    ----------
    points : ndarray of shape (n, n_dims)
        Points to choose from.
    block : callable
        Kernel between two sets of points.
    rank : int
        Most points to choose; more describe the others more closely.
    kernel : str or callable
        What to call it in an error message.

    Returns
    -------
    pivots : ndarray of shape (n_pivots,)
        Fewer than `rank` where these explain all points already.
    """
    residual = _diagonal(points, block)
    largest = float(residual.max())
    check.check_kernel_positive(largest, float(residual.min()), kernel)
    rank = min(rank, len(points))
    check.check_factor_memory(len(points), rank)
    columns = np.zeros((rank, len(points)))
    pivots: list[int] = []
    for k in range(rank):
        pivot = int(residual.argmax())
        if residual[pivot] <= NEGLIGIBLE * largest:
            break
        column = block(points, points[[pivot]])[:, 0] - columns[:k].T @ columns[:k, pivot]
        columns[k] = column / np.sqrt(residual[pivot])
        residual -= columns[k] ** 2
        check.check_kernel_positive(largest, float(residual.min()), kernel)
        residual[pivot] = 0.0
        np.maximum(residual, 0.0, out=residual)
        pivots.append(pivot)
    return np.array(pivots, dtype=np.intp)


def _kernel_block(points: Array, kernel: Any, *, gamma: float | None, degree: int) -> Block:
    if callable(kernel):
        return lambda X, Y: _call(kernel, X, Y)
    if kernel == "poly":
        scale = 1.0 / points.shape[1] if gamma is None else gamma
        return lambda X, Y: (scale * (X @ Y.T) + 1.0) ** degree
    width = _median_width(points) if gamma is None else gamma
    return lambda X, Y: exponential("rbf", X, Y, width)


def _median_width(points: Array) -> float:
    if len(points) > WIDTH_SAMPLE:
        drawn = np.random.default_rng(0).choice(len(points), WIDTH_SAMPLE, replace=False)
        points = points[np.sort(drawn)]
    return median_gamma(squared_distances(points), name="the bags")


def _diagonal(points: Array, block: Block) -> Array:
    parts = [points[start : start + 64] for start in range(0, len(points), 64)]
    return np.concatenate([np.diag(block(part, part)) for part in parts])


def _call(kernel: Callable[..., Any], X: Array, Y: Array) -> Array:
    """Kernel by a user's function, on whole arrays or on pairs of points."""
    shape = len(X), len(Y)
    try:
        found = kernel(X, Y)
    except (TypeError, ValueError, IndexError):
        found = None
    if np.shape(found) != shape:
        try:
            found = [[np.asarray(kernel(x, y)).item() for y in Y] for x in X]
        except (TypeError, ValueError, IndexError) as error:
            check.raise_kernel_failed(kernel, "the points", error)
    return check.check_kernel_block(found, shape, kernel)


def _regress(features: Array, points: Array) -> Array:
    means, middle = features.mean(axis=0), points.mean(axis=0)
    centered = features - means
    covariance = centered.T @ centered
    covariance[np.diag_indices_from(covariance)] += PREIMAGE_RIDGE * max(
        float(np.trace(covariance)) / len(covariance), np.finfo(float).tiny
    )
    slopes = linalg.solve(covariance, centered.T @ (points - middle), assume_a="pos")
    return np.vstack([slopes, middle - means @ slopes])
