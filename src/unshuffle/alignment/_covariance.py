"""The covariance estimator: each bag is assigned to what the others predict of it."""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle._assign import nearest_order
from unshuffle.alignment._arrangement import Arrangement
from unshuffle.alignment._checks import raise_weak_regularization
from unshuffle.objectives import LeaveOneOut

Array = NDArray[np.float64]

# A step must lower the quadratic form by this share of it: less is rounding.
LEAST_GAIN = 1e-10
# Assignments of one bag before the next bag has its turn; two or three are usual.
MAX_ASSIGNMENTS = 10
# Directions taken at a time: all of them would take n_directions n_points^2 numbers.
BLOCK = 16


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
        try:
            left = LeaveOneOut.of(gram[np.ix_(others, others)], ridge=ridge)
        except linalg.LinAlgError as error:
            raise_weak_regularization(error)
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
    mean = bags.points[others].mean(axis=0)
    Y = (bags.points[others] - mean).reshape(len(others), -1)
    B = linalg.solve_triangular(left.factor, Y, lower=True, check_finite=False)
    columns = best_swaps(bags.points[t], mean, B.reshape(len(others), *mean.shape))
    if np.array_equal(columns, np.arange(columns.size)):
        return False
    bags.move(t, columns)
    return True


def best_swaps(x: Array, mean: Array, B: Array) -> NDArray[np.intp]:
    """Lower d'(I - B'B) d, d = x - mean, by exchanges of two points, the best one first.

    Parameters
    ----------
    x : ndarray of shape (n_points, n_features)
        A bag.
    mean : ndarray of shape (n_points, n_features)
        What it is compared with.
    B : ndarray of shape (n_directions, n_points, n_features)
        Directions along which differences cost less.

    Returns
    -------
    columns : ndarray of shape (n_points,)
        `x[columns]` is the bag after the exchanges, at most as many as it has points.
    """
    x, d, columns = x.copy(), x - mean, np.arange(len(x))
    along = np.tensordot(B, d, axes=2)
    curvature = swap_curvature(x, B)
    for _ in range(len(x)):
        changes = swap_slopes(x, d - np.tensordot(along, B, axes=1)) + curvature
        i, j = np.unravel_index(int(changes.argmin()), changes.shape)
        if not changes[i, j] < -LEAST_GAIN * float(np.sum(d**2) - along @ along):
            break
        shift = x[j] - x[i]
        d[i] += shift
        d[j] -= shift
        along += (B[:, i] - B[:, j]) @ shift
        x[[i, j]] = x[[j, i]]
        columns[[i, j]] = columns[[j, i]]
        # The curvature between two points depends on these and their slots alone.
        for k in (i, j):
            curvature[k] = curvature[:, k] = _curvature_of(int(k), x, B)
    return columns


def swap_slopes(x: Array, slope: Array) -> Array:
    """First-order change of a form when points i and j change places, for all i and j.

    Parameters
    ----------
    x : ndarray of shape (n_points, n_features)
        The bag.
    slope : ndarray of shape (n_points, n_features)
        Half the gradient of the form.

    Returns
    -------
    changes : ndarray of shape (n_points, n_points)
        Symmetric, zero on the diagonal.
    """
    cross = slope @ x.T  # slope in slot i, point j
    own = np.diag(cross)
    return np.asarray(2 * (cross + cross.T - own[:, None] - own[None, :]))


def swap_curvature(x: Array, B: Array) -> Array:
    """Second-order change of d'(I - B'B) d when points i and j change places.

    Parameters
    ----------
    x : ndarray of shape (n_points, n_features)
        The bag.
    B : ndarray of shape (n_directions, n_points, n_features)
        Directions along which differences cost less.

    Returns
    -------
    changes : ndarray of shape (n_points, n_points)
        Symmetric, zero on the diagonal.
    """
    squares = np.sum(x**2, axis=1)
    change = 2 * (squares[:, None] + squares[None, :] - 2 * x @ x.T)
    for start in range(0, len(B), BLOCK):
        along = B[start : start + BLOCK] @ x.T
        stay = np.diagonal(along, axis1=1, axis2=2)
        along = along + along.transpose(0, 2, 1)
        along -= stay[:, :, None]
        along -= stay[:, None, :]
        change -= np.einsum("kij,kij->ij", along, along)
    return np.asarray(change)


def _curvature_of(k: int, x: Array, B: Array) -> Array:
    """One row of `swap_curvature`."""
    apart = x - x[k]
    along = np.einsum("mnr,nr->mn", B[:, k, None] - B, apart)
    return np.asarray(2 * np.sum(apart**2, axis=1) - np.sum(along**2, axis=0))
