"""Trace and log-volume of ordered bags, and the contribution of one bag to the volume."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from unshuffle._run.types import Floats


def expected_trace(points: Floats) -> float:
    """Trace of the covariance of bags (bags, points, features), averaged over all orders."""
    n_bags, n_points, _ = points.shape
    centered = points - points[0, 0]  # means far from zero lose digits
    centered -= centered.mean(axis=(0, 1))
    squares = float(np.sum(centered**2))
    means = centered.mean(axis=1)
    # In random order, the inner product of two bags averages to that of their means.
    across = n_points * (float(np.sum(means.sum(axis=0) ** 2)) - float(np.sum(means**2)))
    return squares / n_bags - (squares + across) / n_bags**2


def log_volume(points: Floats, *, ridge: float) -> float:
    """Sum of log(eigenvalue + ridge) over the n_bags - 1 leading directions of the covariance."""
    vectors = points.reshape(len(points), -1)
    vectors = vectors - vectors[0]  # means far from zero lose digits
    vectors -= vectors.mean(axis=0)
    n_bags, n_numbers = vectors.shape
    small = vectors @ vectors.T if n_bags <= n_numbers else vectors.T @ vectors
    values = np.linalg.eigvalsh(small)[::-1][: min(n_bags - 1, n_numbers)]
    values = np.maximum(values / n_bags, 0.0)
    return float(np.sum(np.log(values + ridge)) + (n_bags - 1 - values.size) * np.log(ridge))


@dataclass(frozen=True)
class LeaveOneOut:
    """Mean mu and covariance S = Y'Y / n_bags of all bags but one.

    With d = x - mu, the log-volume of all bags with x in place of the left-out one is exactly
    log|S + ridge| + log(1 + (n_bags - 1) / n_bags^2 * d'(S + ridge)^-1 d): lowering the quadratic
    form lowers the log-volume. Inner products suffice, so time is linear in the size of a bag.
    """

    ridge: float
    row_means: Floats  # mean inner product of each other bag with the others
    factor: Floats  # lower Cholesky factor of Y Y' + n_bags * ridge

    @classmethod
    def of(cls, gram: Floats, *, ridge: float) -> "LeaveOneOut":
        """Factor the inner products of the other bags; LinAlgError if the ridge is too small."""
        n_others = len(gram)
        row_means = gram.mean(axis=0)
        A = gram - row_means[:, None] - row_means[None, :] + row_means.mean()
        A[np.diag_indices(n_others)] += (n_others + 1) * ridge
        factor = linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        return cls(ridge, row_means, np.asarray(factor))

    def products(self, inner: Floats) -> Floats:
        """Y d, from the inner products of a bag with the others."""
        return np.asarray(inner - self.row_means - inner.mean() + self.row_means.mean())

    def quadratic(self, inner: Floats, squared_norm: float) -> float:
        """Mahalanobis form d'(S + ridge)^-1 d of a bag, from its inner products."""
        distance = squared_norm - 2 * inner.mean() + self.row_means.mean()
        explained = linalg.solve_triangular(
            self.factor, self.products(inner), lower=True, check_finite=False
        )
        return float(distance - explained @ explained) / self.ridge

    def prediction_weights(self, inner: Floats) -> Floats:
        """Weights of the other bags in their prediction mu + S (S + ridge)^-1 d.

        On orders of a bag the quadratic form is concave up to a constant, and its tangent is least
        for the order closest to this prediction. Assigning the bag to it never raises the form.
        """
        weights = linalg.cho_solve((self.factor, True), self.products(inner), check_finite=False)
        return np.asarray(weights + (1.0 - weights.sum()) / weights.size)
