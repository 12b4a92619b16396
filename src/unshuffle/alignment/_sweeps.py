"""Sweeps that reorder each bag to agree with the mean, or mean and covariance, of the others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from unshuffle._assign.linear import assign, nearest_order, nearest_orders, slot_distances
from unshuffle._run.types import Floats, Order
from unshuffle.alignment._volume import LeaveOneOut

# Relative decrease of the squared distance, or of the quadratic form, below which it is rounding.
LEAST_FALL = 1e-12
LEAST_GAIN = 1e-10
# Assignments of one bag in a sweep; two or three are typical.
MAX_ASSIGNMENTS = 10
# Directions per block: all at once would need n_directions n_points^2 numbers.
BLOCK = 16


@dataclass
class BagOrders:
    """Bags of features in the order found so far."""

    points: Floats  # shape (n_bags, n_points, n_features); zeros if missing
    order: Order  # index of the point at each position, in the bag as given to the solver
    present: NDArray[np.bool_]  # whether the point is there

    @classmethod
    def assigned_to(
        cls, points: Floats, present: NDArray[np.bool_], reference: int
    ) -> "BagOrders":
        """Assign all bags to one of them."""
        weights = present[reference].astype(np.float64)
        order = nearest_orders(points[reference], points, weights=weights, present=present)
        order[reference] = np.arange(points.shape[1])
        return cls.ordered(points, present, order)

    @classmethod
    def ordered(cls, points: Floats, present: NDArray[np.bool_], order: Order) -> "BagOrders":
        """Put bags into these orders."""
        return cls(
            np.take_along_axis(points, order[:, :, None], axis=1),
            order.copy(),
            np.take_along_axis(present, order, axis=1),
        )

    def move(self, bag: int, columns: Order) -> None:
        """Reorder the points of one bag."""
        self.points[bag] = self.points[bag, columns]
        self.order[bag] = self.order[bag, columns]
        self.present[bag] = self.present[bag, columns]

    @property
    def vectors(self) -> Floats:
        """View of each bag as one vector."""
        return self.points.reshape(len(self.points), -1)


def mean_sweep(bags: BagOrders) -> int:
    """Assign every bag in turn to the mean of the others; never raises the trace.

    A point at distance r from the mean of the c other points at its position adds
    c / (c + 1) r^2 to the sum of squares, which is its cost. Without missing points the factor is
    constant. Returns the number of bags that moved.
    """
    complete = bool(bags.present.all())
    total = bags.points.sum(axis=0)
    counts = bags.present.sum(axis=0).astype(np.float64)
    positions = np.arange(bags.order.shape[1])
    n_moved = 0
    for t in range(len(bags.points)):
        here = bags.present[t].astype(np.float64)
        total -= bags.points[t]
        counts -= here
        mean = total / np.maximum(counts, 1.0)[:, None]
        cost = slot_distances(mean, bags.points[t])
        if not complete:
            cost *= (counts / (counts + 1.0))[:, None]
            cost *= here[None, :]
        columns = assign(-cost).columns
        before, after = np.trace(cost), cost[positions, columns].sum()
        if after < before - LEAST_FALL * abs(before):
            bags.move(t, columns)
            n_moved += 1
        total += bags.points[t]
        counts += bags.present[t]
    return n_moved


def position_means(bags: BagOrders) -> Floats:
    """Mean of the points present at each position, shape (n_points, n_features)."""
    counts = bags.present.sum(axis=0)
    return np.asarray(bags.points.sum(axis=0) / np.maximum(counts, 1)[:, None])


def trace(bags: BagOrders) -> float:
    """Mean over bags of the squared distances of their points from the position means."""
    deviations = (bags.points - position_means(bags)) * bags.present[:, :, None]
    return float(np.sum(deviations**2)) / len(bags.points)


def filled(bags: BagOrders) -> Floats:
    """Points of all bags, with position means in place of missing points."""
    if bags.present.all():
        return bags.points
    return np.where(bags.present[:, :, None], bags.points, position_means(bags))


def covariance_sweep(bags: BagOrders, *, ridge: float, swaps: bool = False) -> int:
    """Assign every bag in turn to its prediction by the others; never raises the log-volume.

    No point may be missing. `swaps` also exchanges pairs of points. Returns the number of bags
    that moved.
    """
    gram = bags.vectors @ bags.vectors.T
    n_moved = 0
    for t in range(len(gram)):
        others = np.delete(np.arange(len(gram)), t)
        try:
            left = LeaveOneOut.of(gram[np.ix_(others, others)], ridge=ridge)
        except linalg.LinAlgError as error:
            raise ValueError(
                "`regularization` is too small for these bags: their covariance is singular in "
                "floating point. Pass 1e-6 or more; the default is 0.1."
            ) from error
        moved = _assign_to_prediction(bags, t, others, left, gram[t, others], gram[t, t])
        if swaps:
            moved |= _swap_points(bags, t, others, left)
        if moved:
            gram[t] = gram[:, t] = bags.vectors @ bags.vectors[t]
            n_moved += 1
    return n_moved


def _assign_to_prediction(
    bags: BagOrders, t: int, others: Order, left: LeaveOneOut, inner: Floats, squared_norm: float
) -> bool:
    """Assign a bag to its prediction while the quadratic form falls; return whether it moved."""
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


def _swap_points(bags: BagOrders, t: int, others: Order, left: LeaveOneOut) -> bool:
    """Exchange pairs of points of a bag, the best first; return whether it moved."""
    mean = bags.points[others].mean(axis=0)
    Y = (bags.points[others] - mean).reshape(len(others), -1)
    B = linalg.solve_triangular(left.factor, Y, lower=True, check_finite=False)
    columns = best_swaps(bags.points[t], mean, B.reshape(len(others), *mean.shape))
    if np.array_equal(columns, np.arange(columns.size)):
        return False
    bags.move(t, columns)
    return True


def best_swaps(x: Floats, mean: Floats, B: Floats) -> Order:
    """Lower d'(I - B'B) d, where d = x - mean, by exchanges of two points, the best first.

    B has shape (n_directions, n_points, n_features). `x[columns]` is the bag after at most
    n_points exchanges.
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
        # Only the curvature of pairs with i or j has changed.
        for k in (i, j):
            curvature[k] = curvature[:, k] = _curvature_of(int(k), x, B)
    return columns


def swap_slopes(x: Floats, slope: Floats) -> Floats:
    """First-order change of a form, whose gradient is 2 `slope`, if points i and j swap."""
    cross = slope @ x.T  # slope at position i, point j
    own = np.diag(cross)
    return np.asarray(2 * (cross + cross.T - own[:, None] - own[None, :]))


def swap_curvature(x: Floats, B: Floats) -> Floats:
    """Second-order change of d'(I - B'B) d if points i and j swap, for all i and j."""
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


def _curvature_of(k: int, x: Floats, B: Floats) -> Floats:
    """One row of `swap_curvature`."""
    apart = x - x[k]
    along = np.einsum("mnr,nr->mn", B[:, k, None] - B, apart)
    return np.asarray(2 * np.sum(apart**2, axis=1) - np.sum(along**2, axis=0))
