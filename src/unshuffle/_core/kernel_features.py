"""Maps from points to the feature space of a kernel, and back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from unshuffle._core.arrays import as_array, middle
from unshuffle._core.distances import exponential, sampled_gamma
from unshuffle._core.parameters import check_memory
from unshuffle._run.types import Floats

# Pivots that add less than this share of the largest are rounding errors.
NEGLIGIBLE = 1e-12
# Ridge penalty of pre-images, relative to the mean square of a feature.
PREIMAGE_RIDGE = 1e-6


@dataclass(frozen=True)
class PointKernel:
    """Kernel between points with fixed parameters.

    `kind` is "poly", "rbf", or a callable on two arrays of points or on pairs of points.
    """

    kind: Any
    gamma: float
    degree: int  # of "poly"

    @classmethod
    def of(cls, kernel: Any, points: Floats, *, gamma: float | None, degree: int) -> "PointKernel":
        """Kernel for these points; `gamma` None is 1 / n_features, or the median for "rbf"."""
        if gamma is None:
            width = 1.0 / points.shape[1]
            gamma = sampled_gamma(points, name="the bags") if kernel == "rbf" else width
        return cls(kernel, float(gamma), degree)

    def __call__(self, X: Floats, Y: Floats) -> Floats:
        """Similarities, shape (len(X), len(Y))."""
        if self.kind == "rbf":
            return exponential("rbf", X, Y, self.gamma)
        if self.kind == "poly":
            with np.errstate(over="ignore", invalid="ignore"):
                return polynomial(X @ Y.T, self.gamma, self.degree)
        return check_kernel_block(call_kernel(self.kind, X, Y, name="the points"), self.kind)


def call_kernel(kernel: Callable[..., Any], X: Any, Y: Any = None, *, name: str) -> Any:
    """Call a user's kernel on two arrays of rows or, if that fails, on each pair of rows.

    Y None compares X with itself, calling it for half of the pairs. The values are not checked.
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
            f"It is called as kernel({name}, {name}) first and, if that does not return a square "
            "matrix, as kernel(x, y) on pairs of rows."
        ) from error


def _maybe_of_rows(K: Any, X: Any) -> bool:
    # x @ y, meant for two rows, gives an (n, n) matrix for a square X, but not a symmetric one.
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
    """Name of a kernel for messages."""
    return (
        kernel if isinstance(kernel, str) else getattr(kernel, "__name__", type(kernel).__name__)
    )


@dataclass(frozen=True)
class PointFeatures:
    """Map from points to features whose inner products approximate a kernel.

    Attributes
    ----------
    center : ndarray of shape (n_dims,)
        Median of all points; subtracting it loses no digits.
    kernel : PointKernel or None
        Kernel between points; None is linear, with the points as features.
    landmarks : ndarray of shape (rank, n_dims)
        Points that the others are compared with.
    factor : ndarray of shape (rank, rank)
        Lower Cholesky factor of the kernel between the landmarks.
    preimage : ndarray of shape (rank + 1, n_dims)
        Ridge regression of points on features, with the constant last.
    """

    center: Floats
    kernel: PointKernel | None
    landmarks: Floats
    factor: Floats
    preimage: Floats

    @classmethod
    def of(
        cls, points: Floats, kernel: Any, *, gamma: float | None, degree: int, rank: int
    ) -> "PointFeatures":
        """Features fitted to points: exact for "linear", else at most `rank` numbers each."""
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

    def map(self, points: Floats) -> Floats:
        """Features of points, shape (n, rank)."""
        if self.kernel is None:
            return np.asarray(points - self.center)
        # phi(x) = L^-1 k(x), so that phi(x)'phi(y) = k(x)' K^-1 k(y).
        K = self.kernel(points, self.landmarks)
        return np.asarray(
            linalg.solve_triangular(self.factor, K.T, lower=True, check_finite=False).T
        )

    def points(self, features: Floats) -> Floats:
        """Approximate pre-images of features; exact for the linear kernel."""
        if self.kernel is None:
            return np.asarray(features + self.center)
        return np.asarray(features @ self.preimage[:-1] + self.preimage[-1])


def greedy_pivots(
    points: Floats, kernel: PointKernel, rank: int
) -> tuple[NDArray[np.intp], Floats]:
    """Indices of at most `rank` landmarks by pivoted Cholesky, and their Cholesky factor.

    Fewer if these explain all points. Refuses a kernel that is not positive definite.
    """
    diagonal = _diagonal(points, kernel)
    largest = float(diagonal.max())

    def refuse(smallest: float) -> None:
        _check_kernel_positive(largest, smallest, kernel.kind)

    refuse(float(diagonal.min()))
    rank = min(rank, len(points))
    pivots, F = greedy_cholesky(
        lambda pivot: kernel(points, points[[pivot]])[:, 0],
        diagonal,
        rank,
        negligible=NEGLIGIBLE * largest,
        refuse=refuse,
    )
    return pivots, np.tril(F[:, pivots].T)


def greedy_cholesky(
    column: Callable[[int], Floats],
    diagonal: Floats,
    rank: int,
    *,
    negligible: float,
    enough: float = 0.0,
    refuse: Callable[[float], None] | None = None,
    exact: bool = False,
) -> tuple[NDArray[np.intp], Floats]:
    """Pivoted Cholesky: chosen items, each the one with the largest residual, and F with K ~ F'F.

    Stops when no residual exceeds `negligible`, or their sum is at most `enough`; `refuse` is
    called with the smallest residual. `exact` sets the diagonal entry of a pivot to the root of
    its residual, without the rounding of its column.
    """
    residual = diagonal.copy()
    check_memory(
        16 * rank * residual.size,
        what=f"Rank {rank:,} factors of {residual.size:,} items",
        instead="Choose a smaller rank.",
    )
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


def _diagonal(points: Floats, kernel: PointKernel) -> Floats:
    parts = [points[start : start + 64] for start in range(0, len(points), 64)]
    return np.concatenate([np.diag(kernel(part, part)) for part in parts])


def _regress(features: Floats, points: Floats) -> Floats:
    means, start = features.mean(axis=0), middle(points)
    near = points - start
    mean = near.mean(axis=0)
    centered = features - means
    covariance = centered.T @ centered
    # Constant features have no scale; any ridge then gives slopes of zero.
    scale = float(np.trace(covariance)) / len(covariance) or 1.0
    covariance[np.diag_indices_from(covariance)] += PREIMAGE_RIDGE * scale
    slopes = linalg.solve(covariance, centered.T @ (near - mean), assume_a="pos")
    return np.vstack([slopes, start + (mean - means @ slopes)])


def check_kernel_block(block: Any, kernel: Any) -> Floats:
    """Validate the similarities that a user's kernel returned."""
    label = kernel_name(kernel)
    given = as_array(block, f"The result of the kernel {label}")
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


def polynomial(products: Floats, gamma: float, degree: int) -> Floats:
    """Polynomial kernel of inner products; refuses values whose squares overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        block = np.asarray((gamma * products + 1.0) ** degree)
    if not np.all(np.abs(block) < 1e150):
        raise ValueError(
            f"The kernel poly with degree={degree} and gamma={gamma:.3g} gives similarities too "
            "large for a float. Pass a smaller degree or gamma, or divide the points by a common "
            "number."
        )
    return block


def _check_kernel_positive(largest: float, smallest: float, kernel: Any) -> None:
    """Refuse a kernel that is not positive definite: it has no feature space."""
    if not (largest > 0 and smallest >= -1e-8 * largest):
        raise ValueError(
            f"The kernel {kernel_name(kernel)} is not positive definite: the residual of a point "
            f"given the others is {smallest:.3g}, where the largest similarity of a point with "
            f"itself is {largest:.3g}, and must not be negative. Pass a kernel such as rbf, or "
            "exp(-distance) in place of a distance."
        )
