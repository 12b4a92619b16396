"""The paper's bound on the covariance cost (section 4), for comparison."""

import numpy as np

from unshuffle._assign.linear import assign
from unshuffle._run.types import Floats
from unshuffle.alignment._sweeps import LEAST_GAIN, MAX_ASSIGNMENTS, BagOrders

# Weight of the points against the positions. The paper fits it, but at a permutation both agree
# and the bound is flat in it.
MIX = 0.5
# Directions per block: all at once would need n_directions n_points^2 numbers.
BLOCK = 64


def variational_sweep(bags: BagOrders, *, ridge: float) -> int:
    """Assign every bag in turn by the paper's bound, unless the true cost rises.

    The cost of a bag x is x'Mx / 2 - x'M mu, where M is the inverse of the covariance of all bags
    plus the ridge. The paper's form has negative weights, to which Jensen's inequality does not
    apply; here all directions enter, and all weights are positive. The bound is not tight at the
    current order, so lowering it may raise the cost. Returns the number of bags that moved.
    """
    shape = bags.points.shape[1:]
    n_moved, model = 0, _gaussian(bags, ridge)
    for t in range(len(bags.points)):
        mean, weights, directions = model
        pull = (directions.T @ (weights * (directions @ mean))).reshape(shape)  # M mu
        moved, value = False, _cost(bags.points[t], pull, weights, directions)
        for _ in range(MAX_ASSIGNMENTS):
            bound = bound_costs(bags.points[t], pull, weights, directions)
            columns = assign(-bound).columns
            trial = _cost(bags.points[t, columns], pull, weights, directions)
            if not trial < value - LEAST_GAIN * abs(value):
                break
            bags.move(t, columns)
            moved, value = True, trial
        if moved:
            n_moved += 1
            model = _gaussian(bags, ridge)
    return n_moved


def bound_costs(x: Floats, pull: Floats, weights: Floats, directions: Floats) -> Floats:
    """Cost of each point (columns) at each position (rows), for a bag x in its current order.

    Their sum over an assignment bounds the cost of the bag in that order from above. `pull` is
    M mu; `weights` and `directions` are eigenvalues and eigenvectors (rows) of M.
    """
    n_points = len(x)
    costs = -pull @ x.T
    for start in range(0, len(weights), BLOCK):
        V = directions[start : start + BLOCK].reshape(-1, *x.shape)
        f = V @ x.T  # direction, position, point
        shares = np.abs(f[:, np.arange(n_points), np.arange(n_points)]) + 1e-12 * np.abs(f).max()
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        mixed = MIX * shares[:, None, :] + (1 - MIX) * shares[:, :, None]
        f *= f
        f /= np.maximum(mixed, np.finfo(float).tiny)
        costs += np.tensordot(0.5 * weights[start : start + BLOCK], f, axes=1)
    return np.asarray(costs)


def _gaussian(bags: BagOrders, ridge: float) -> tuple[Floats, Floats, Floats]:
    """Mean of the bags, and eigenvalues and eigenvectors (as rows) of M."""
    mean = bags.vectors.mean(axis=0)
    centered = bags.vectors - mean
    values, vectors = np.linalg.eigh(centered.T @ centered / len(centered))
    return mean, 1.0 / (np.maximum(values, 0.0) + ridge), np.ascontiguousarray(vectors.T)


def _cost(x: Floats, pull: Floats, weights: Floats, directions: Floats) -> float:
    """Cost x'Mx / 2 - x'M mu of a bag in its current order."""
    along = directions @ x.ravel()
    return float(0.5 * np.sum(weights * along**2) - np.sum(pull * x))


def check_directions(n_directions: int) -> None:
    """Refuse the paper's bound if it would take hours."""
    if n_directions > 2000:
        raise ValueError(
            f'method="variational" decomposes a {n_directions:,} x {n_directions:,} matrix '
            "(points times features) for every bag. Use fewer points, fewer n_landmarks, or "
            'method="covariance", which does not grow so.'
        )
