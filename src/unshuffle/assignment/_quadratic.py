"""The quadratic matching problem that every ascent in the library climbs."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._validation import check_kernel_memory
from unshuffle._validation._collections import as_numbers
from unshuffle.objectives import squared_gradient, trace_gradient

Array = NDArray[np.float64]
Permutation = NDArray[np.intp]


@dataclass(frozen=True)
class QuadraticProblem:
    """Maximise sum K[i, j] L[p(i), p(j)] - sum cost[i, p(i)] over injections p that keep `frozen`.

    With fewer items in K than in L, half the sum of L[p(i), p(j)]^2 is taken off, so that
    p does not simply pick the items of L with the largest similarities.

    Attributes
    ----------
    K : ndarray of shape (n, n)
        Similarities inside the first collection.
    L : ndarray of shape (m, m)
        Similarities inside the second, m >= n.
    cost : ndarray of shape (n, m) or None
        Linear term.
    frozen : ndarray of shape (n_frozen, 2)
        Pairs (i, p(i)) that stay.
    """

    K: Array
    L: Array
    cost: Array | None = None
    frozen: NDArray[np.intp] = field(default_factory=lambda: np.empty((0, 2), dtype=np.intp))
    squared_L: Array | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        for name in ("K", "L", "cost"):
            given = getattr(self, name)
            if given is not None and getattr(given, "dtype", None) != np.float32:
                object.__setattr__(self, name, as_numbers(given, name))
        frozen = np.asarray(self.frozen, dtype=np.intp).reshape(-1, 2)
        object.__setattr__(self, "frozen", frozen)
        if self.K.shape[0] < self.L.shape[0]:
            check_kernel_memory(*self.L.shape)
            object.__setattr__(self, "squared_L", self.L * self.L)

    @property
    def shape(self) -> tuple[int, int]:
        """Items of both collections."""
        return self.K.shape[0], self.L.shape[0]

    @property
    def free_rows(self) -> NDArray[np.intp]:
        """Items of the first collection that may move."""
        return np.delete(np.arange(self.K.shape[0]), self.frozen[:, 0])

    @property
    def free_columns(self) -> NDArray[np.intp]:
        """Items of the second collection that may be taken by those."""
        return np.delete(np.arange(self.L.shape[0]), self.frozen[:, 1])

    def without_cost(self) -> "QuadraticProblem":
        """Same problem by the similarities alone."""
        return replace(self, cost=None)

    def in_single_precision(self) -> "QuadraticProblem":
        """Similarities alone in float32, for products whose last digits do not matter."""
        K: Any = self.K.astype(np.float32)
        L: Any = self.L.astype(np.float32)
        return replace(self, K=K, L=L, cost=None)

    def value(self, permutation: Permutation) -> float:
        """Objective of a matching; larger is better."""
        permutation = np.asarray(permutation)
        product, square = matched_sums(self.K, self.L, permutation)
        value = product if self.squared_L is None else product - 0.5 * square
        if self.cost is not None:
            value -= float(self.cost[np.arange(permutation.size), permutation].sum())
        return value

    def gradient(self, permutation: Permutation) -> Array:
        """Slope of the objective in each entry of the permutation matrix, shape (n, m)."""
        if self.squared_L is None:
            gradient = trace_gradient(self.K, self.L, permutation)
        else:
            gradient = squared_gradient(self.K, self.L, self.squared_L, permutation)
        if self.cost is not None:
            gradient -= self.cost
        return gradient

    def update_gradient(self, slopes: Array, before: Permutation, after: Permutation) -> None:
        """Turn the gradient at one matching into that at another, in place.

        The product shrinks with the number of items that moved, so near an optimum, where few
        do, a step costs a small part of a whole gradient.
        """
        moved = np.flatnonzero(before != after)
        if moved.size > self.K.shape[0] // 2:
            slopes[...] = self.gradient(after)
            return
        slopes += (2.0 * self.K[:, moved]) @ (self.L[after[moved]] - self.L[before[moved]])
        if self.squared_L is not None:
            slopes += (self.squared_L[before[moved]] - self.squared_L[after[moved]]).sum(axis=0)

    def gradient_at(self, shares: Array) -> Array:
        """`gradient` at a soft matching: row i of `shares` (n, m) divides item i."""
        gradient: Array = 2.0 * (self.K @ shares @ self.L)
        if self.squared_L is not None:
            gradient -= shares.sum(axis=0) @ self.squared_L
        if self.cost is not None:
            gradient -= self.cost
        return gradient

    def curvature(self, direction: Array) -> float:
        """Second-order term of the objective along a change of `shares`, shape (n, m)."""
        curvature = float(np.vdot(self.K @ direction @ self.L, direction))
        if self.squared_L is not None:
            masses = direction.sum(axis=0)
            curvature -= 0.5 * float(masses @ self.squared_L @ masses)
        return curvature

    def keep_frozen(self, permutation: Permutation) -> Permutation:
        """Put the frozen pairs in; whoever loses a partner gets the old one of the frozen item."""
        permutation = permutation.copy()
        for row, column in self.frozen:
            holder = np.flatnonzero(permutation == column)
            if holder.size:
                permutation[holder[0]] = permutation[row]
            permutation[row] = column
        return permutation


def matched_sums(K: Array, L: Array, permutation: Permutation) -> tuple[float, float]:
    """Sums of K[i, j] L[p(i), p(j)] and of L[p(i), p(j)]^2, in one pass that copies nothing."""
    from unshuffle.assignment import _loops  # numba is slow to load

    K, L = as_numbers(K, "K"), as_numbers(L, "L")
    permutation = np.ascontiguousarray(permutation, dtype=np.intp)
    product, square = _loops.matched_sums(K, L, permutation)
    return float(product), float(square)
