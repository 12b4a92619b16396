"""How much room ordered bags take: their trace, their log-volume, and one bag's share of it.

Throughout, `points` (n_bags, n_points, n_features) holds bags in a common order, and a bag is
also the vector of all its numbers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle._contracts import raise_not_float, shaped, takes
from unshuffle._printing import short_repr

Array = NDArray[np.float64]


@takes(points="bags points features")
def trace_of_bags(points: Array) -> float:
    """Trace of the covariance of the bags: mean squared distance from their mean.

    Parameters
    ----------
    points : ndarray of shape (n_bags, n_points, n_features)
        Bags in a common order.

    Returns
    -------
    trace : float
        Smaller is better aligned. What the mean estimator lowers.
    """
    points = points - points[0]  # means of numbers far from zero lose digits
    return float(np.sum((points - points.mean(axis=0)) ** 2)) / len(points)


@takes(points="bags points features")
def expected_trace(points: Array) -> float:
    """Mean of `trace_of_bags` over all orders inside the bags, in closed form.

    The scale of the bags, and unlike the trace of the order given the same for every order.

    Parameters
    ----------
    points : ndarray of shape (n_bags, n_points, n_features)
        Bags in any order.

    Returns
    -------
    trace : float
        Of independent random orders, on average.
    """
    n_bags, n_points, _ = points.shape
    centered = points - points[0, 0]  # means of numbers far from zero lose digits
    centered -= centered.mean(axis=(0, 1))  # no order moves the middle of all
    squares = float(np.sum(centered**2))
    means = centered.mean(axis=1)
    # Two bags in random order meet at their means; a bag meets itself at every point.
    across = n_points * (float(np.sum(means.sum(axis=0) ** 2)) - float(np.sum(means**2)))
    return squares / n_bags - (squares + across) / n_bags**2


@takes(points="bags ...", ridge="above 0")
def log_volume(points: Array, *, ridge: float) -> float:
    """Log-volume of the bags: sum of log(eigenvalue + ridge) over the covariance's directions.

    Parameters
    ----------
    points : ndarray of shape (n_bags, ...)
        Bags in a common order.
    ridge : float
        Added to each eigenvalue; larger counts only larger directions.

    Returns
    -------
    volume : float
        Over the n_bags - 1 leading eigenvalues (zeros included) of the covariance
        sum (x - mean)(x - mean)' / n_bags. Smaller is more compact.
    """
    n_bags = len(points)
    values = covariance_spectrum(points)
    return float(np.sum(np.log(values + ridge)) + (n_bags - 1 - values.size) * np.log(ridge))


@takes(points="bags ...")
def covariance_spectrum(points: Array) -> Array:
    """Eigenvalues of the covariance of the bags, largest first, without the one that is zero.

    Parameters
    ----------
    points : ndarray of shape (n_bags, ...)
        Bags in a common order.

    Returns
    -------
    eigenvalues : ndarray of shape (min(n_bags - 1, n_numbers in a bag),)
        None below zero.
    """
    vectors = points.reshape(len(points), -1)
    vectors = vectors - vectors[0]  # means of numbers far from zero lose digits
    vectors -= vectors.mean(axis=0)
    n_bags, n_numbers = vectors.shape
    small = vectors @ vectors.T if n_bags <= n_numbers else vectors.T @ vectors
    values = np.linalg.eigvalsh(small)[::-1][: min(n_bags - 1, n_numbers)]
    return np.asarray(np.maximum(values / n_bags, 0.0))


@dataclass(frozen=True)
class LeaveOneOut:
    """What the other bags say about one: their mean mu and covariance S = Y'Y / n_bags.

    With d = x - mu, the log-volume of all bags with x in place of the left-out one is
    log|S + ridge| + log(1 + (n_bags - 1) / n_bags^2 * d'(S + ridge)^-1 d), exactly: lowering the
    quadratic form lowers the log-volume. Everything is in terms of inner products, so that time
    does not grow with the square of the numbers in a bag.

    Attributes
    ----------
    ridge : float
        Added to the eigenvalues of S.
    row_means : ndarray of shape (n_bags - 1,)
        Mean inner product of each other bag with the others.
    factor : ndarray of shape (n_bags - 1, n_bags - 1)
        Lower Cholesky factor of Y Y' + n_bags * ridge.
    """

    ridge: float
    row_means: Array
    factor: Array

    def __repr__(self) -> str:
        return short_repr(self)

    @classmethod
    def of(cls, gram: Array, *, ridge: float) -> "LeaveOneOut":
        """Prepare from the inner products of the other bags.

        Parameters
        ----------
        gram : ndarray of shape (n_bags - 1, n_bags - 1)
            Inner products, not centred.
        ridge : float
            Added to the eigenvalues of S; larger trusts the mean more than the directions.

        Returns
        -------
        left : LeaveOneOut
            What the other bags say.
        """
        given = shaped({"gram": gram, "ridge": ridge}, {"gram": "n n", "ridge": "above 0"})
        gram, ridge = given["gram"], given["ridge"]
        n_others = len(gram)
        if n_others == 0:
            raise ValueError("`gram` is empty. Leaving one bag out must leave others.")
        with np.errstate(over="ignore", invalid="ignore"):
            row_means = gram.mean(axis=0)
            A = gram - row_means[:, None] - row_means[None, :] + row_means.mean()
        if not np.isfinite(A).all():
            raise_not_float("A mean of inner products", {"gram": gram})
        A[np.diag_indices(n_others)] += (n_others + 1) * ridge
        try:
            factor = linalg.cholesky(A, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError as error:
            raise linalg.LinAlgError(
                f"`ridge` is {ridge:.3g}, too small beside `gram` of up to "
                f"{float(np.abs(gram).max()):.3g}: the covariance has no inverse. Pass a larger "
                "ridge."
            ) from error
        if not np.isfinite(factor).all():
            raise_not_float("A factor of the covariance", given)
        return cls(ridge, row_means, np.asarray(factor))

    def products(self, inner: Array) -> Array:
        """Y d, from the inner products of a bag with the others."""
        return np.asarray(inner - self.row_means - inner.mean() + self.row_means.mean())

    def quadratic(self, inner: Array, squared_norm: float) -> float:
        """Mahalanobis form d'(S + ridge)^-1 d of a bag.

        Parameters
        ----------
        inner : ndarray of shape (n_bags - 1,)
            Inner products of the bag with the others.
        squared_norm : float
            Its inner product with itself.

        Returns
        -------
        value : float
            Smaller fits the other bags better.
        """
        distance = squared_norm - 2 * inner.mean() + self.row_means.mean()
        explained = linalg.solve_triangular(
            self.factor, self.products(inner), lower=True, check_finite=False
        )
        return float(distance - explained @ explained) / self.ridge

    def prediction_weights(self, inner: Array) -> Array:
        """Weights of the other bags in mu + S (S + ridge)^-1 d, the bag as they see it.

        The tangent of the quadratic form, which is concave up to a constant on orders of a bag,
        is least for the order that lies closest to this prediction, so assigning the bag to it
        never raises the form.
        """
        weights = linalg.cho_solve((self.factor, True), self.products(inner), check_finite=False)
        return np.asarray(weights + (1.0 - weights.sum()) / weights.size)
