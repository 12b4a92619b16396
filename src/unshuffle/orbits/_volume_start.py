"""How many directions the matrices need: a relaxed fit of one matrix for each pair."""

import numpy as np
from numpy.typing import NDArray

from unshuffle.orbits._matrices import MatrixSpace
from unshuffle.orbits._pairs import Pairs

Array = NDArray[np.float64]

_SMALLEST = 1e-8  # ridge at the end, as a share of the first
_N_STEPS = 100  # slower steps span fewer directions
_N_STEPS_LARGE = 24
_LARGE = 2_000_000  # numbers in the stack of linear maps from which on time matters
_LARGEST = 30_000_000
_RELATIVE_ERROR = 1e-2  # of squared displacements, left to noise
_GAP = 10.0  # from one value of the spectrum to the next


def small_matrices(space: MatrixSpace, pairs: Pairs) -> Array:
    """One matrix for each pair, in coordinates, that together span few directions.

    Each carries its pair to first order, (x - x') = A (x + x') / 2, which errs by the third power
    of A only. Among the many that do, those of small volume log|M + eps| are sought, where M is
    the mean of a a': each step is a ridge regression with the last M, while eps shrinks from the
    size of the matrices to a trifle of it.

    Parameters
    ----------
    space : MatrixSpace
        Matrices to choose from.
    pairs : Pairs
        What they should carry where.

    Returns
    -------
    coordinates : ndarray of shape (n, p)
        One row for each pair, or for a regular part of many pairs where n * d * p numbers would
        be too much.
    """
    n, d = pairs.targets.shape
    p = space.n_dimensions
    every = int(np.ceil(n * d * p / _LARGEST))
    x, z = pairs.targets[::every], pairs.sources[::every]
    shift, middle = x - z, 0.5 * (x + z)
    maps = _linear_maps(space, middle)
    squares = np.sum(shift**2, axis=1)
    ridge = float(np.mean(squares / np.maximum(np.sum(middle**2, axis=1), 1e-12))) / p
    noise = max(_RELATIVE_ERROR * float(squares.mean()) / d, np.finfo(float).tiny)
    factor = np.zeros((p, 0))
    coordinates = np.zeros((len(x), p))
    n_steps = _N_STEPS if maps.size < _LARGE else _N_STEPS_LARGE
    shrink = _SMALLEST ** (1.0 / n_steps)
    for _ in range(n_steps):
        coordinates = _regressed(maps, shift, factor, ridge=ridge, noise=noise)
        factor = _factor(coordinates)
        ridge *= shrink
    return coordinates


def spectrum(coordinates: Array) -> tuple[Array, Array]:
    """Mean squares along the principal directions of matrices, largest first, and these.

    Not centred, as the span of the matrices is not.
    """
    _, singular, directions = np.linalg.svd(coordinates, full_matrices=False)
    return singular**2 / len(coordinates), directions


def suggested_number(values: Array, most: int) -> int:
    """Directions before a spectrum first falls tenfold; as many as hold 95% where it does not."""
    most = min(most, values.size)
    padded = np.append(values, 0.0)
    falls = np.flatnonzero(padded[:most] >= _GAP * padded[1 : most + 1])
    if falls.size:
        return int(falls[0]) + 1
    held = np.cumsum(values) / values.sum()
    return min(int(np.searchsorted(held, 0.95)) + 1, most)


def _linear_maps(space: MatrixSpace, vectors: Array) -> Array:
    """Maps from the coordinates of A to A x, shape (n, d, p)."""
    n, d = vectors.shape
    index = np.arange(space.n_dimensions)
    maps = np.zeros((n, d, index.size))
    scale = np.where((space.rows != space.columns) & (space.mirror != 0), np.sqrt(0.5), 1.0)
    if space.mirror:
        maps[:, space.columns, index] = space.mirror * scale * vectors[:, space.rows]
    maps[:, space.rows, index] = scale * vectors[:, space.columns]
    return maps


def _regressed(maps: Array, shift: Array, factor: Array, *, ridge: float, noise: float) -> Array:
    """Ridge regression with prior covariance factor factor' + ridge, one for each pair."""
    d = shift.shape[1]
    low = maps @ factor
    S = low @ np.swapaxes(low, 1, 2) + ridge * (maps @ np.swapaxes(maps, 1, 2))
    S += noise * np.eye(d)
    weights = np.linalg.solve(S, shift[:, :, None])[:, :, 0]
    kept = np.einsum("ndr,nd->nr", low, weights) @ factor.T
    return np.asarray(kept + ridge * np.einsum("ndp,nd->np", maps, weights))


def _factor(coordinates: Array) -> Array:
    """Thin factor of the mean of a a'."""
    values, directions = spectrum(coordinates)
    return np.asarray(directions.T * np.sqrt(values))
