"""Principal components of ordered bags, and the alignment of new bags with them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import svd_flip

from unshuffle._assign.linear import nearest_orders
from unshuffle._core.arrays import as_numbers, as_rows
from unshuffle._run.types import Floats

# Rounds of projecting a new bag and assigning it to its projection; three or four are typical.
MAX_ROUNDS = 10
# Variance below this fraction of the total is rounding error.
NO_VARIANCE = 1e-12


@dataclass(frozen=True)
class BagComponents:
    """Mean and principal directions of bags in a common order.

    Directions are orthonormal, sorted by variance, and signed so that the largest entry is
    positive. Variances have n_bags - 1 in the denominator.
    """

    mean: Floats  # shape (n_points, n_features)
    directions: Floats  # shape (n_components, n_points * n_features)
    variances: Floats
    total: float  # sum of all variances, including those of components left out

    @classmethod
    def of(cls, bags: Floats, n_components: Any) -> "BagComponents":
        """Components of bags of shape (n_bags, n_points, n_features)."""
        mean = bags.mean(axis=0)
        vectors = (bags - mean).reshape(len(bags), -1)
        most = min(len(bags) - 1, vectors.shape[1])
        U, S, V = np.linalg.svd(vectors, full_matrices=False)
        _, V = svd_flip(U, V, u_based_decision=False)
        variances = S[:most] ** 2 / (len(bags) - 1)
        total = float(variances.sum())
        n_kept = _n_kept(variances, total, n_components)
        return cls(mean, V[:n_kept], variances[:n_kept], total)

    @property
    def ratios(self) -> Floats:
        """Fraction of the total variance along each component; zeros if there is none."""
        return np.asarray(self.variances / self.total if self.total > 0 else 0 * self.variances)

    def scores(self, bags: Floats) -> Floats:
        """Coordinates of ordered bags, shape (n_bags, n_components)."""
        return np.asarray((bags - self.mean).reshape(len(bags), -1) @ self.directions.T)

    def bags(self, scores: Floats) -> Floats:
        """Bags at these coordinates, shape (n, n_points, n_features)."""
        flat = scores @ self.directions
        return np.asarray(self.mean + flat.reshape(len(scores), *self.mean.shape))

    def align(self, bags: Floats, present: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Orders of new bags: assign to the mean, then to projections until nothing changes."""
        orders = nearest_orders(self.mean, bags, present=present)
        active = np.arange(len(bags))
        for _ in range(MAX_ROUNDS):
            if active.size == 0 or self.mean.shape[0] == 1:
                break
            own, here = bags[active], present[active]
            targets = self.bags(self.scores(self.ordered(own, here, orders[active])))
            found = nearest_orders(targets, own, present=here)
            changed = np.any(found != orders[active], axis=1)
            orders[active] = found
            active = active[changed]
        return orders

    def ordered(
        self, bags: Floats, present: NDArray[np.bool_], orders: NDArray[np.intp]
    ) -> Floats:
        """Bags in these orders, with the mean in place of missing points."""
        points = np.take_along_axis(bags, orders[:, :, None], axis=1)
        present = np.take_along_axis(present, orders, axis=1)
        return np.where(present[:, :, None], points, self.mean)


def _n_kept(variances: Floats, total: float, n_components: Any) -> int:
    """Number of components to keep."""
    if isinstance(n_components, int | np.integer):
        return int(n_components)
    if n_components is None:
        return max(1, int(np.sum(variances > NO_VARIANCE * total)))
    shares = np.cumsum(variances) / max(total, np.finfo(float).tiny)
    return min(int(np.searchsorted(shares, n_components)) + 1, variances.size)


def check_n_components(n_components: Any, most: int) -> None:
    """Refuse more components than the bags span."""
    if isinstance(n_components, int | np.integer) and n_components > most:
        raise ValueError(
            f"n_components={n_components} is more than the {most} of these bags: at most n_bags - "
            "1, and at most n_points times the features of a point. Pass fewer, or None for all."
        )


def check_scores(scores: Any, n_components: int) -> Floats:
    """Coordinates of bags, one row of `n_components` numbers for each."""
    try:
        numbers = as_numbers(scores, "Y")
    except ValueError as error:
        raise ValueError(
            f"Y must hold real numbers, {n_components} in every row, as transform returns them."
        ) from error
    values: Floats = as_rows(numbers, "Y")
    if values.shape[1] != n_components:
        raise ValueError(
            f"Y has {values.shape[1]} columns, but the fitted estimator has {n_components} "
            "components. Pass one column for each, as transform returns them."
        )
    return values


def check_fractions(t: Any) -> Floats:
    """One or several positions between two bags."""
    try:
        values = as_numbers(t, "`t`")
    except (TypeError, ValueError) as error:
        raise ValueError(f"`t` must be a number or a list of numbers, got {t!r}.") from error
    if values.ndim > 1 or not np.all(np.abs(values) <= 1e6):  # false for NaN
        what = f"shape {values.shape}" if values.ndim > 1 else "other values"
        raise ValueError(
            f"`t` must be a number from -1e6 to 1e6 or a 1-D array of these, got {what}. 0 is the "
            "first bag, 1 the second."
        )
    return values
