"""The covariance estimator: each bag is assigned to what the others predict of it."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle.alignment._arrangement import Arrangement, nearest_order
from unshuffle.objectives import LeaveOneOut

Array = NDArray[np.float64]

# A step must lower the quadratic form by this share of it: less is rounding.
LEAST_GAIN = 1e-10
# Assignments of one bag before the next bag has its turn; two or three are usual.
MAX_ASSIGNMENTS = 10


def covariance_sweep(bags: Arrangement, *, ridge: float, swaps: bool = False) -> int:
    """Assign every bag in turn to its prediction by the others; never raises the log-volume.

    Parameters
    ----------
    bags : Arrangement
        Changed in place; no point may be missing.
    ridge : float
        Added to the eigenvalues of the covariance; larger comes closer to the mean estimator.
    swaps : bool, default=False
        Whether to exchange pairs of points too, where that lowers the volume.

    Returns
    -------
    n_moved : int
        Bags whose order changed.
    """
    gram = bags.vectors @ bags.vectors.T
    n_moved = 0
    for t in range(len(gram)):
        others = np.delete(np.arange(len(gram)), t)
        left = LeaveOneOut.of(gram[np.ix_(others, others)], ridge=ridge)
        moved = _assign_to_prediction(bags, t, others, left, gram[t, others], gram[t, t])
        if swaps:
            moved |= _swap_points(bags, t, others, left)
        if moved:
            gram[t] = gram[:, t] = bags.vectors @ bags.vectors[t]
            n_moved += 1
    return n_moved


def _assign_to_prediction(
    bags: Arrangement,
    t: int,
    others: NDArray[np.intp],
    left: LeaveOneOut,
    inner: Array,
    squared_norm: float,
) -> bool:
    vectors, shape = bags.vectors, bags.points.shape[1:]
    value, moved = left.quadratic(inner, squared_norm), False
    for _ in range(MAX_ASSIGNMENTS):
        weights = np.zeros(len(vectors))
        weights[others] = left.prediction_weights(inner)
        columns = nearest_order((weights @ vectors).reshape(shape), bags.points[t])
        inner = (vectors @ bags.points[t, columns].ravel())[others]
        trial = left.quadratic(inner, squared_norm)
        if not trial < value * (1.0 - LEAST_GAIN):
            return moved
        bags.move(t, columns)
        value, moved = trial, True
    return moved


def _swap_points(bags: Arrangement, t: int, others: NDArray[np.intp], left: LeaveOneOut) -> bool:
    """Exchange the two points whose exchange lowers the form most, until none does."""
    Y = bags.vectors[others] - bags.vectors[others].mean(axis=0)
    d = (bags.points[t] - bags.points[others].mean(axis=0)).ravel()
    B = linalg.solve_triangular(left.factor, Y, lower=True, check_finite=False)
    B = B.reshape(len(others), *bags.points.shape[1:])
    n_points = bags.points.shape[1]
    moved = False
    for _ in range(n_points):
        x = bags.points[t]
        value = float(d @ d - np.sum((B.reshape(len(B), -1) @ d) ** 2))
        gain = swap_gains(x, d.reshape(x.shape), B)
        i, j = np.unravel_index(int(gain.argmin()), gain.shape)
        if not gain[i, j] < -LEAST_GAIN * value:
            return moved
        columns = np.arange(n_points)
        columns[[i, j]] = j, i
        change = x[columns] - x
        bags.move(t, columns)
        d = d + change.ravel()
        moved = True
    return moved


def swap_gains(x: Array, d: Array, B: Array) -> Array:
    """Change of d'(I - B'B) d when points i and j of a bag change places, for all i and j.

    Parameters
    ----------
    x : ndarray of shape (n_points, n_features)
        The bag.
    d : ndarray of shape (n_points, n_features)
        Its difference from a mean.
    B : ndarray of shape (n_directions, n_points, n_features)
        Directions along which differences cost less.

    Returns
    -------
    changes : ndarray of shape (n_points, n_points)
        Symmetric; negative where the exchange lowers the form.
    """
    slope = d - np.tensordot(np.tensordot(B, d, axes=2), B, axes=1)
    cross = slope @ x.T  # slope in slot i, point j
    own = np.diag(cross)
    squares = np.sum(x**2, axis=1)
    apart = squares[:, None] + squares[None, :] - 2 * x @ x.T
    change = 2 * (cross + cross.T - own[:, None] - own[None, :]) + 2 * apart
    for direction in B:  # one at a time: all of them would take n_directions n_points^2 numbers
        along = direction @ x.T
        stay = np.diag(along)
        change -= (along + along.T - stay[:, None] - stay[None, :]) ** 2
    return np.asarray(change)
