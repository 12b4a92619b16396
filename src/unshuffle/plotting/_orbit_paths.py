"""Where generators lead, to be drawn: curves, surfaces and the change of a vector."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from unshuffle._validation import check_moved, check_reach

Array = NDArray[np.float64]

_CURVE = 200  # places along a curve
_SURFACE = 33  # and on each side of a surface


@dataclass(frozen=True)
class Motion:
    """What generators do to vectors, or to their coordinates along components.

    Attributes
    ----------
    generators : ndarray of shape (k, d, d)
        The matrices.
    mean, components : ndarray or None
        Centre, shape (n_features,), and directions, (d, n_features), of coordinates; None where
        the matrices move whole vectors.
    """

    generators: Array
    mean: Array | None
    components: Array | None

    def moved(self, x: Array, coefficients: Array) -> Array:
        """exp(sum c V) x for each row c, shape (n, n_features)."""
        inner = self._inside(x)
        with np.errstate(over="ignore", invalid="ignore"):
            matrices = np.einsum("nk,kij->nij", coefficients, self.generators)
            places = x + self._back(expm(matrices) @ inner - inner)
        check_moved(places)
        check_reach(np.abs(matrices).sum(axis=1).max(axis=1))
        return places

    def change(self, x: Array, j: int) -> Array:
        """V_j x, the change of x per unit of coefficient j."""
        return self._back(self.generators[j] @ self._inside(x))

    def along(self, x: Array, j: int, steps: Array) -> Array:
        """Where x goes along one generator, shape (n_steps, n_features)."""
        rows = np.zeros((len(steps), len(self.generators)))
        rows[:, j] = steps
        return self.moved(x, rows)

    def surface(self, x: Array, coefficients: Array, reach: float) -> Array:
        """Where x goes along the first two generators, shape (n, n, n_features)."""
        one, other = (curve_steps(coefficients[:, j], reach, _SURFACE)[0] for j in (0, 1))
        rows = np.zeros((_SURFACE**2, len(self.generators)))
        rows[:, :2] = np.stack(np.meshgrid(one, other), axis=2).reshape(-1, 2)
        return self.moved(x, rows).reshape(_SURFACE, _SURFACE, -1)

    def _inside(self, x: Array) -> Array:
        if self.components is None or self.mean is None:
            return x
        return np.asarray(self.components @ (x - self.mean))

    def _back(self, inner: Array) -> Array:
        return inner if self.components is None else np.asarray(inner @ self.components)


def data_range(along: Array) -> tuple[float, float]:
    """How far data go along a generator; the prototype is at 0."""
    return min(float(along.min()), 0.0), max(float(along.max()), 0.0)


def curve_steps(along: Array, reach: float, n: int = _CURVE) -> tuple[Array, NDArray[np.bool_]]:
    """Coefficients so many times as far as the data go, and which of them are within the data."""
    low, high = data_range(along)
    middle, half = (low + high) / 2, (high - low) / 2 or 1.0
    steps = np.linspace(middle - reach * half, middle + reach * half, n)
    return steps, (steps >= low) & (steps <= high)
