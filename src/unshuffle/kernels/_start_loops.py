"""Compiled starting points of mixtures: a few rounds of k-means; imported when needed."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._compile import compiled

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

# Rounds of k-means before the mixture takes over; a start need not be settled.
LLOYD_ROUNDS = 10


@compiled(error_model="numpy")
def squares_from(X: Array, center: Array, out: Array) -> None:
    """Squared distances of the columns of X from a centre."""
    out[:] = 0.0
    for k in range(X.shape[0]):
        row, own = X[k], center[k]
        for t in range(X.shape[1]):
            gap = row[t] - own
            out[t] += gap * gap


@compiled(error_model="numpy")
def spread_centers(X: Array, draws: Array, squares: Array, nearest: Array) -> Array:
    """Points far from each other: each drawn by its squared distance from those before."""
    d, n = X.shape
    n_components = len(draws)
    centers = np.empty((n_components, d))
    chosen = min(int(draws[0] * n), n - 1)
    nearest[:] = np.inf
    for m in range(n_components):
        if m > 0:
            total = nearest.sum()
            left = draws[m] * total
            chosen = n - 1
            for t in range(n):
                left -= nearest[t]
                if left < 0.0 and nearest[t] > 0.0:
                    chosen = t
                    break
            if nearest[chosen] == 0.0:
                chosen = int(nearest.argmax())
        for k in range(d):
            centers[m, k] = X[k, chosen]
        squares_from(X, centers[m], squares)
        for t in range(n):
            nearest[t] = min(nearest[t], squares[t])
    return centers


@compiled(error_model="numpy")
def assign_nearest(
    X: Array, centers: Array, labels: Labels, squares: Array, least: Array
) -> float:
    """Label each point by its nearest centre, the first of several; return the sum of squares."""
    for t in range(len(labels)):
        least[t] = np.inf
    for m in range(len(centers)):
        squares_from(X, centers[m], squares)
        for t in range(len(labels)):
            if squares[t] < least[t]:
                least[t] = squares[t]
                labels[t] = m
    total = 0.0
    for t in range(len(labels)):
        total += least[t]
    return total


@compiled(error_model="numpy")
def move_centers(X: Array, labels: Labels, centers: Array, counts: Array) -> None:
    """Move centres to the means of their points; one without points stays."""
    for m in range(len(centers)):
        counts[m] = 0.0
    for t in range(len(labels)):
        counts[labels[t]] += 1.0
    for k in range(X.shape[0]):
        for m in range(len(centers)):
            if counts[m] > 0.0:
                centers[m, k] = 0.0
        for t in range(len(labels)):
            centers[labels[t], k] += X[k, t] / counts[labels[t]]


@compiled(error_model="numpy")
def clustered(X: Array, n_components: int, draws: Array, labels: Labels) -> None:
    """Labels by a few rounds of k-means: the tightest of the starts that `draws` gives."""
    n = X.shape[1]
    squares, least, counts = np.empty(n), np.empty(n), np.empty(n_components)
    trial = np.zeros(n, dtype=np.intp)
    best = np.inf
    for start in range(len(draws)):
        centers = spread_centers(X, draws[start, :n_components], squares, least)
        total = np.inf
        for _ in range(LLOYD_ROUNDS):
            before = total
            total = assign_nearest(X, centers, trial, squares, least)
            if total >= before:
                break
            move_centers(X, trial, centers, counts)
        if total < best:
            best = total
            for t in range(n):
                labels[t] = trial[t]
