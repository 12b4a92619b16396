"""Where generators lead, to be drawn: curves and surfaces."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._motion import Motion

Array = NDArray[np.float64]

_CURVE = 200  # places along a curve
_SURFACE = 33  # and on each side of a surface


def curve(motion: Motion, x: Array, j: int, steps: Array) -> Array:
    """Where x goes along one generator, shape (n_steps, n_features)."""
    rows = np.zeros((len(steps), len(motion.generators)))
    rows[:, j] = steps
    return motion.moved(x, rows)


def surface(motion: Motion, x: Array, coefficients: Array, reach: float) -> Array:
    """Where x goes along the first two generators, shape (n, n, n_features)."""
    one, other = (curve_steps(coefficients[:, j], reach, _SURFACE)[0] for j in (0, 1))
    rows = np.zeros((_SURFACE**2, len(motion.generators)))
    rows[:, :2] = np.stack(np.meshgrid(one, other), axis=2).reshape(-1, 2)
    return motion.moved(x, rows).reshape(_SURFACE, _SURFACE, -1)


def data_range(along: Array) -> tuple[float, float]:
    """How far data go along a generator; the prototype is at 0."""
    return min(float(along.min()), 0.0), max(float(along.max()), 0.0)


def curve_steps(along: Array, reach: float, n: int = _CURVE) -> tuple[Array, NDArray[np.bool_]]:
    """Coefficients so many times as far as the data go, and which of them are within the data."""
    low, high = data_range(along)
    middle, half = (low + high) / 2, (high - low) / 2 or 1.0
    steps = np.linspace(middle - reach * half, middle + reach * half, n)
    return steps, (steps >= low) & (steps <= high)
