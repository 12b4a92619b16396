"""Principal components of ordered bags, and new bags brought into their order."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import svd_flip

from unshuffle._arrays import as_numbers, as_rows
from unshuffle._assign import nearest_orders

Array = NDArray[np.float64]

# Rounds of projecting a new bag and assigning it to its projection; three or four are usual.
MAX_ROUNDS = 10
# Variance below this share of the whole is rounding.
NO_VARIANCE = 1e-12


@dataclass(frozen=True)
class Components:
    """Mean and principal directions of bags in a common order.

    The directions are orthonormal, largest variance first, with signs so that the largest entry is
    positive; variances have n_bags - 1 in the denominator.
    """

    mean: Array  # of shape (n_points, n_features)
    directions: Array  # of shape (n_components, n_points * n_features)
    variances: Array
    total: float  # sum of all variances, those left out too

    @classmethod
    def of(cls, bags: Array, n_components: Any) -> "Components":
        """Components of bags of shape (n_bags, n_points, n_features)."""
        mean = bags.mean(axis=0)
        vectors = (bags - mean).reshape(len(bags), -1)
        most = min(len(bags) - 1, vectors.shape[1])
        check_n_components(n_components, most)
        U, S, V = np.linalg.svd(vectors, full_matrices=False)
        _, V = svd_flip(U, V, u_based_decision=False)
        variances = S[:most] ** 2 / (len(bags) - 1)
        total = float(variances.sum())
        n_kept = _n_kept(variances, total, n_components)
        return cls(mean, V[:n_kept], variances[:n_kept], total)

    @property
    def ratios(self) -> Array:
        """Share of each component in the variance; zeros where there is none."""
        return np.asarray(self.variances / self.total if self.total > 0 else 0 * self.variances)

    def scores(self, bags: Array) -> Array:
        """Coordinates of ordered bags, shape (n_bags, n_components)."""
        return np.asarray((bags - self.mean).reshape(len(bags), -1) @ self.directions.T)

    def bags(self, scores: Array) -> Array:
        """Bags at these coordinates, shape (n, n_points, n_features)."""
        flat = scores @ self.directions
        return np.asarray(self.mean + flat.reshape(len(scores), *self.mean.shape))

    def reordered(self, slots: NDArray[np.intp]) -> "Components":
        """The same with the slots in another order."""
        directions = self.directions.reshape(-1, *self.mean.shape)[:, slots]
        return Components(
            self.mean[slots],
            np.ascontiguousarray(directions.reshape(len(directions), -1)),
            self.variances,
            self.total,
        )

    def align(self, bags: Array, present: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Orders in which new bags lie close to the components: assign, project, assign again.

        `bags[i][orders[i]]` is bag i in the common order. Points that are not present may go
        anywhere.
        """
        orders = nearest_orders(self.mean, bags, present=present)
        going = np.arange(len(bags))
        for _ in range(MAX_ROUNDS):
            if going.size == 0 or self.mean.shape[0] == 1:
                break
            targets = self.bags(self.scores(self.ordered(bags, present, orders, going)))
            found = nearest_orders(targets, bags[going], present=present[going])
            changed = np.any(found != orders[going], axis=1)
            orders[going] = found
            going = going[changed]
        return orders

    def ordered(
        self,
        bags: Array,
        present: NDArray[np.bool_],
        orders: NDArray[np.intp],
        chosen: NDArray[np.intp] | slice = slice(None),
    ) -> Array:
        """Bags in these orders; the mean where a point is missing."""
        order = orders[chosen]
        points = np.take_along_axis(bags[chosen], order[:, :, None], axis=1)
        here = np.take_along_axis(present[chosen], order, axis=1)
        return np.where(here[:, :, None], points, self.mean)


def _n_kept(variances: Array, total: float, n_components: Any) -> int:
    """How many components to keep."""
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
            f"n_components={n_components} is more than the {most} that these bags can have: one "
            "less than their number, and at most n_points times the features of a point. Pass "
            "fewer, or None for all."
        )


def check_scores(scores: Any, n_components: int) -> NDArray[np.float64]:
    """Coordinates of bags, one row of `n_components` numbers for each."""
    try:
        values: NDArray[np.float64] = as_rows(as_numbers(scores, "Y"), "Y")
    except ValueError as error:
        if "holds text" not in str(error) and "different lengths" not in str(error):
            raise
        raise ValueError(
            f"Y must hold real numbers, {n_components} in every row. Pass what transform "
            "returned, or rows of that length."
        ) from error
    if values.shape[1] != n_components:
        raise ValueError(
            f"Y has {values.shape[1]} columns; the fitted estimator has {n_components} "
            "components. Pass what transform returned, or rows of that length."
        )
    return values


def check_fractions(t: Any) -> NDArray[np.float64]:
    """One moment of a morph, or several."""
    try:
        values = as_numbers(t, "`t`")
    except (TypeError, ValueError) as error:
        raise ValueError(f"`t` must be a number or a list of numbers, got {t!r}.") from error
    if values.ndim > 1 or not np.all(np.abs(values) <= 1e6):  # nor NaN
        raise ValueError(
            f"`t` must be a number from -1e6 to 1e6 or a 1-D array of these, got shape "
            f"{values.shape}{'' if values.ndim > 1 else ' with others'}. 0 is the first bag, 1 "
            "the second."
        )
    return values
