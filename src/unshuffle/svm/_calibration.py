"""Probabilities from decision values, by sigmoids fitted to held-out ones."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sigmoids:
    """Map from decision values to probabilities, one sigmoid for each column.

    Attributes
    ----------
    slopes, shifts : ndarray of shape (n_columns,)
        The sigmoid of a column is 1 / (1 + exp(-(slope * value + shift))).
    """

    slopes: Array
    shifts: Array

    @classmethod
    def of(cls, decisions: Array, positive: NDArray[np.bool_]) -> "Sigmoids":
        """Sigmoids for decision values that were made without knowledge of the truth.

        Parameters
        ----------
        decisions : ndarray of shape (n, n_columns)
            Decision values.
        positive : ndarray of shape (n, n_columns), bool
            Where the class of the column is the true one.
        """
        fitted = [_fitted(*column) for column in zip(decisions.T, positive.T, strict=True)]
        return cls(*np.array(fitted).T)

    def probabilities(self, decisions: Array) -> Array:
        """Probabilities of the classes, shape (n, n_classes); rows add up to 1."""
        shares = expit(decisions * self.slopes + self.shifts)
        if shares.shape[1] == 1:
            return np.hstack([1.0 - shares, shares])
        total = shares.sum(axis=1, keepdims=True)
        # Where no class is likely at all, none is likelier than another.
        even = np.full_like(shares, 1.0 / shares.shape[1])
        return np.divide(shares, total, out=even, where=total > 0.0)


def _fitted(values: Array, positive: NDArray[np.bool_]) -> tuple[float, float]:
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    # Platt's targets: a little short of certain, so that classes that part cleanly have a fit.
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    scale = max(float(np.abs(values).max()), np.finfo(float).tiny)
    values = values / scale

    def loss(parameters: Array) -> tuple[float, Array]:
        slope, shift = parameters
        logits = slope * values + shift
        excess = expit(logits) - target
        cost = np.logaddexp(0.0, logits) - target * logits
        return float(cost.sum()), np.array([excess @ values, excess.sum()])

    start = np.array([0.0, np.log((n_positive + 1) / (n_negative + 1))])
    found = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return float(found[0]) / scale, float(found[1])
