"""Compiled loop of the enclosing ball, imported on demand because numba loads slowly."""

from unshuffle._run.compile import compiled
from unshuffle._run.types import Floats


@compiled()
def exchange_weights(
    K: Floats, weights: Floats, slope: Floats, bounds: Floats, tol: float, max_steps: int
) -> int:
    """Move weight between two items at a time until no exchange lowers w'Kw - diag(K)'w.

    `weights` and `slope`, the gradient 2 K w - diag(K), change in place. Stops once slopes of
    weights that may fall exceed those that may rise by at most `tol`. Returns the number of steps.
    """
    n = weights.shape[0]
    for step in range(max_steps):
        gains = -1
        for i in range(n):
            if weights[i] < bounds[i] and (gains < 0 or slope[i] < slope[gains]):
                gains = i
        steepest, best, loses = 0.0, 0.0, -1
        for j in range(n):
            if weights[j] <= 0.0:
                continue
            rise = slope[j] - slope[gains]
            steepest = max(steepest, rise)
            if rise > 0.0:
                curvature = max(K[gains, gains] + K[j, j] - 2.0 * K[gains, j], 1e-300)
                if loses < 0 or rise * rise / curvature > best:
                    best, loses = rise * rise / curvature, j
        if steepest <= tol or loses < 0:
            return step
        curvature = max(K[gains, gains] + K[loses, loses] - 2.0 * K[gains, loses], 1e-300)
        moved = (slope[loses] - slope[gains]) / (2.0 * curvature)
        moved = min(moved, bounds[gains] - weights[gains], weights[loses])
        # A weight that reaches its bound must equal it exactly, or it is chosen forever.
        full = moved == bounds[gains] - weights[gains]
        empty = moved == weights[loses]
        weights[gains] = bounds[gains] if full else weights[gains] + moved
        weights[loses] = 0.0 if empty else weights[loses] - moved
        for i in range(n):
            slope[i] += 2.0 * moved * (K[i, gains] - K[i, loses])
    return max_steps
