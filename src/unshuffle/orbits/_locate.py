"""Coefficients of vectors on the orbit of a prototype, and checks of the arguments of methods."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import gamma

from unshuffle._core.arrays import as_numbers, kind_of
from unshuffle._core.matrix_exponentials import exponentials, matrices_of, moved_by
from unshuffle._run.types import Floats
from unshuffle.orbits._least_squares import fit_coefficients

_N_SAMPLES = 4000  # points of the orbit among which starts are chosen
_MOST_WORK = 2_000_000_000  # samples times d^3, above which fewer samples are taken
_N_STARTS = 8  # of each vector
_STEP = 0.25  # angle in radians, or logarithm of a factor, between samples along one generator
_SPACING = 0.5  # the same for several generators
_MOST_STRETCH = 23.0  # logarithm of the longest and shortest vectors compared
_MAX_NORM = 100.0  # largest 1-norm of a matrix


def locate(generators: Floats, prototype: Floats, X: Floats, *, slack: float, seed: int) -> Floats:
    """Coefficients that move the prototype closest to each row.

    The orbit is sampled far out. Each sample that is closer to the row than its neighbors starts
    a descent, the closest samples first. Among the ends whose squared distance exceeds the
    smallest by at most `slack`, the one with the smallest coefficients is returned.
    """
    scale, largest = float(np.linalg.norm(prototype)), float(np.abs(X).max(initial=0.0))
    if largest > 1e10 * scale:  # squared distances would be lost in rounding
        raise ValueError(
            f"X holds {largest:.3g}, and the prototype has length {scale:.3g}: too far apart to "
            "be compared. Pass vectors in the same units as the fitted ones."
        )
    X, prototype = X / scale, prototype / scale
    coefficients, samples = _sample_orbit(generators, prototype, seed=seed)
    neighbors = _neighbors(coefficients)
    spans = np.linalg.norm(samples[neighbors] - samples[:, None], axis=2).max(axis=1)
    # one row at a time, so that the result for a row does not depend on the others
    found = [_starts(np.linalg.norm(samples - row, axis=1), neighbors) for row in X]
    chosen, distances = (np.stack(each) for each in zip(*found, strict=True))
    slack = slack / scale**2 + 1e-20 * np.sum(X**2, axis=1)
    ends, squares = coefficients[chosen], np.full(chosen.shape, np.inf)

    def descend(rows: NDArray[np.intp], starts: NDArray[np.intp]) -> None:
        targets, start = X[rows], ends[rows, starts]
        sources = np.broadcast_to(prototype, targets.shape)
        ends[rows, starts], squares[rows, starts] = fit_coefficients(
            generators, targets, sources, start, max_norm=_MAX_NORM
        )

    everywhere = np.arange(len(X))
    descend(everywhere, np.zeros_like(everywhere))
    lengths, reached = np.linalg.norm(ends, axis=2), squares[:, 0] <= slack
    promising = np.maximum(distances - spans[chosen], 0.0) ** 2 <= (squares[:, 0] + slack)[:, None]
    # a vector that was reached already can only be reached by smaller coefficients
    promising &= ~reached[:, None] | (lengths < lengths[:, :1])
    descend(*np.nonzero(promising & np.isinf(squares)))
    tied = squares <= (squares.min(axis=1) + slack)[:, None]
    lengths = np.where(tied, np.linalg.norm(ends, axis=2), np.inf)
    return np.asarray(ends[everywhere, lengths.argmin(axis=1)])


def check_coefficients(c: Any, k: int) -> Floats:
    """Finite coefficients of shape (k,) or (n, k)."""
    values = _real_array(c, f"`c` must hold real numbers, {k} in every row")
    if values.ndim not in (1, 2) or values.shape[-1] != k:
        raise ValueError(
            f"`c` must have shape ({k},) or (n, {k}), one coefficient for each generator, got "
            f"shape {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("`c` contains NaN or infinity. Pass finite coefficients.")
    return values


def _real_array(values: Any, requirement: str) -> Floats:
    try:
        return as_numbers(values, "values")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{requirement}, got {kind_of(values)}.") from error


def check_orbit_vector(x: Any, n_features: int) -> Floats:
    """One finite vector with as many numbers as the fitted rows."""
    values = _real_array(x, f"`x` must hold {n_features} real numbers")
    if values.shape != (n_features,):
        raise ValueError(
            f"`x` must be one vector of {n_features} numbers, like the fitted rows, got shape "
            f"{values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("`x` contains NaN or infinity. Pass finite numbers.")
    return values


def _starts(distances: Floats, neighbors: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
    """Samples closer to a vector than all their neighbors, closest first, then any others."""
    valley = distances <= distances[neighbors].min(axis=1)
    order = np.argsort(distances, kind="stable")
    chosen = np.concatenate([order[valley[order]], order[~valley[order]]])[:_N_STARTS]
    return chosen, distances[chosen]


def _neighbors(coefficients: Floats) -> NDArray[np.intp]:
    """Nearest samples of each sample, in coefficients: two for one generator, more for several."""
    n, k = coefficients.shape
    count = min(2 * k + 2 * (k > 1), n - 1)
    return np.asarray(cKDTree(coefficients).query(coefficients, count + 1)[1][:, 1:])


def _sample_orbit(generators: Floats, prototype: Floats, *, seed: int) -> tuple[Floats, Floats]:
    """Coefficients spread over the orbit and the points there, which are finite."""
    if len(generators) == 1:
        coefficients, samples = _scan(generators[0], prototype)
    else:
        coefficients = _fill_ball(generators, seed=seed)
        samples = moved_by(generators, coefficients, prototype)
    finite = np.abs(samples).max(axis=1) < np.exp(_MOST_STRETCH)  # false for NaN
    return coefficients[finite], samples[finite]


def _scan(generator: Floats, prototype: Floats) -> tuple[Floats, Floats]:
    """Regular steps along one generator: a period, or as far as lengths can be compared."""
    values = np.linalg.eigvals(generator)
    fastest = max(float(np.abs(values).max()), 1e-2)  # eigenvalues of a shear are 0
    rates = np.concatenate([np.abs(values.real) / _MOST_STRETCH, np.abs(values.imag) / np.pi])
    slowest = rates[rates > 1e-6 * fastest].min(initial=fastest)
    count = min(int(np.ceil(fastest / (slowest * _STEP))), _N_SAMPLES // 4)
    step = _STEP / fastest
    onward, back = exponentials(np.stack([generator * step, generator * -step]))
    samples = np.empty((2 * count + 1, prototype.size))
    samples[count] = prototype
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(count, 2 * count):
            samples[i + 1] = onward @ samples[i]
        for i in range(count, 0, -1):
            samples[i - 1] = back @ samples[i]
    return np.arange(-count, count + 1.0)[:, None] * step, samples


def _fill_ball(generators: Floats, *, seed: int) -> Floats:
    """Random coefficients, half of them near and half as far out as their number allows."""
    random, (k, d, _) = np.random.RandomState(seed), generators.shape
    n = int(np.clip(_MOST_WORK // d**3, 300, _N_SAMPLES))
    directions = random.normal(size=(n, k))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    values = np.linalg.eigvals(matrices_of(generators, directions))
    turning, stretching = np.abs(values.imag).max(axis=1), np.abs(values.real).max(axis=1)
    ball = np.pi ** (k / 2) / gamma(k / 2 + 1)
    far = np.clip(_SPACING * (n / ball) ** (1 / k), np.pi, 12.0)
    # half a turn is enough where nothing grows
    near = (stretching < 1e-6 * turning) | (np.arange(n) % 2 == 0)
    reach = np.where(near, np.pi, far)
    reach = np.minimum(reach / np.maximum(np.maximum(turning, stretching), 0.1), 10.0 * far)
    shares = random.uniform(size=n) ** (1.0 / k)
    coefficients = directions * (reach * shares)[:, None]
    coefficients[0] = 0.0
    return np.asarray(coefficients)
