"""Points as vectors of a kernel's feature space, and back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from unshuffle._arrays import as_array, middle
from unshuffle._distances import exponential, sampled_gamma
from unshuffle._parameters import check_memory

Array = NDArray[np.float64]
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
            width = 1.0 / points.shape[1]
            gamma = sampled_gamma(points, name="the bags") if kernel == "rbf" else width
        return cls(kernel, float(gamma), degree)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Similarities, shape (len(X), len(Y))."""
        if self.kind == "rbf":
            return exponential("rbf", X, Y, self.gamma)
        if self.kind == "poly":
            with np.errstate(over="ignore", invalid="ignore"):
                powers = (self.gamma * (X @ Y.T) + 1.0) ** self.degree
            return check_kernel_overflow(np.asarray(powers), self.gamma, self.degree)
        return _check_kernel_block(call_kernel(self.kind, X, Y, name="the points"), self.kind)


def call_kernel(kernel: Callable[..., Any], X: Any, Y: Any = None, *, name: str) -> Any:
    """Similarities by a user's function: of two arrays of rows at once, or else of each two rows.

    Y None compares X with itself, half of the pairs of rows being asked for. The matrix has one
    row for each of X and one column for each of Y; what is in it is not checked.
    """
    other = X if Y is None else Y
    error: Exception | None = None
    try:
        K = kernel(X, other)
    except (TypeError, ValueError, IndexError) as caught:
        K, error = None, caught
    if sparse.issparse(K):
        K = K.toarray()
    whole = np.shape(K) == (X.shape[0], other.shape[0])
    if whole and (Y is not None or not _maybe_of_rows(K, X)):
        return K
    try:
        return _by_pairs(kernel, X, Y)
    except (TypeError, ValueError, IndexError) as caught:
        if whole:
            return K
        error = error or caught
        raise ValueError(
            f"The kernel {kernel_name(kernel)} failed on {name}: {type(error).__name__}: {error}. "
            f"It is called as kernel({name}, {name}) first and, where that does not give a square "
            "matrix, as kernel(x, y) on pairs of rows."
        ) from error


def _maybe_of_rows(K: Any, X: Any) -> bool:
    # x @ y, meant for two rows, gives an (n, n) matrix on a square X: but not a symmetric one.
    return (
        X.shape[0] == X.shape[1]
        and np.asarray(K).dtype.kind in "biufc"
        and not np.allclose(K, np.transpose(K))
    )


def _by_pairs(kernel: Callable[..., Any], X: Any, Y: Any) -> list[list[Any]]:
    rows, columns = (each.toarray() if sparse.issparse(each) else each for each in (X, Y))
    if columns is not None:
        return [[np.asarray(kernel(x, y)).item() for y in columns] for x in rows]
    K: list[list[Any]] = [[None] * len(rows) for _ in rows]
    for i, x in enumerate(rows):
        for j in range(i, len(rows)):
            K[i][j] = K[j][i] = np.asarray(kernel(x, rows[j])).item()
    return K


def kernel_name(kernel: Any) -> str:
    """What to call a kernel in a message."""
    return (
        kernel if isinstance(kernel, str) else getattr(kernel, "__name__", type(kernel).__name__)
    )


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
    """At most `rank` points, each worst explained by those before, and their Cholesky factor.

    Fewer where these explain all points already. Refuses a kernel that is not positive definite.
    """
    diagonal = _diagonal(points, kernel)
    largest = float(diagonal.max())

    def refuse(smallest: float) -> None:
        _check_kernel_positive(largest, smallest, kernel.kind)

    refuse(float(diagonal.min()))
    rank = min(rank, len(points))
    check_factor_memory(len(points), rank)
    pivots, F = greedy_cholesky(
        lambda pivot: kernel(points, points[[pivot]])[:, 0],
        diagonal,
        rank,
        negligible=NEGLIGIBLE * largest,
        refuse=refuse,
    )
    return pivots, np.tril(F[:, pivots].T)


def greedy_cholesky(
    column: Callable[[int], Array],
    diagonal: Array,
    rank: int,
    *,
    negligible: float,
    enough: float = 0.0,
    refuse: Callable[[float], None] | None = None,
    exact: bool = False,
) -> tuple[NDArray[np.intp], Array]:
    """Items that are each worst explained by those before, and F with K ~ F'F, a row for each.

    Ends where no item has more than `negligible` left, or all together have at most `enough`;
    `refuse` is shown the least that an item has left. `exact` writes the root of what a chosen
    item has left, where its own column would give it but for rounding.
    """
    residual = diagonal.copy()
    F = np.zeros((rank, residual.size))
    pivots: list[int] = []
    for k in range(rank):
        pivot = int(residual.argmax())
        if residual[pivot] <= negligible or residual.sum() <= enough:
            break
        root = np.sqrt(residual[pivot])
        F[k] = (column(pivot) - F[:k].T @ F[:k, pivot]) / root
        if exact:
            F[k, pivot] = root
        residual -= F[k] ** 2
        if refuse is not None:
            refuse(float(residual.min()))
        residual[pivot] = 0.0
        np.maximum(residual, 0.0, out=residual)
        pivots.append(pivot)
    return np.array(pivots, dtype=np.intp), F[: len(pivots)]


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


def _check_kernel_block(block: Any, kernel: Any) -> Array:
    """Similarities that a user's kernel gave for two sets of points."""
    label = kernel_name(kernel)
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


def _check_kernel_positive(largest: float, smallest: float, kernel: Any) -> None:
    """Refuse a kernel by which points have no length: it has no feature space."""
    if not (largest > 0 and smallest >= -1e-8 * largest):
        raise ValueError(
            f"The kernel {kernel_name(kernel)} is not positive definite: of the similarity of a "
            f"point with itself (at most {largest:.3g}), {smallest:.3g} is left once other points "
            "are accounted for, and it may not be below 0. Pass a kernel such as rbf, or "
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
