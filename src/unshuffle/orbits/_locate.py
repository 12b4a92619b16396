"""Coefficients of vectors on the orbit of a prototype, and checks of the arguments of methods."""

from typing import Any

import numpy as np

from unshuffle._arrays import as_numbers, kind_of
from unshuffle._matrix_exponentials import Array, matrices_of, matrix_norms, moved_by
from unshuffle.orbits._least_squares import fit_coefficients

_N_SAMPLES = 300  # points of the orbit among which starts are chosen
_N_STARTS = 4  # nearest samples to start from, for each vector
_LARGER_NORMS = (24.0, 48.0)  # limits for vectors whose matrix reached the last limit


def locate(generators: Array, prototype: Array, X: Array, *, seed: int) -> Array:
    """Coefficients that move the prototype closest to each row, the best of several starts."""
    scale, largest = float(np.linalg.norm(prototype)), float(np.abs(X).max(initial=0.0))
    if largest > 1e10 * scale:  # squared distances would be lost in rounding
        raise ValueError(
            f"X holds {largest:.3g}, and the prototype has length {scale:.3g}: too far apart to "
            "be compared. Pass vectors in the same units as the fitted ones."
        )
    X, prototype = X / scale, prototype / scale
    coefficients, samples = _sample_orbit(generators, prototype, seed=seed)
    n = len(X)
    # one row at a time, so that the result for a row does not depend on the others
    nearest = np.stack(
        [np.argsort(np.sum((samples - row) ** 2, axis=1), kind="stable")[:_N_STARTS] for row in X]
    )
    start = coefficients[nearest].reshape(n * _N_STARTS, -1)
    targets = np.repeat(X, _N_STARTS, axis=0)
    sources = np.broadcast_to(prototype, targets.shape)
    found, squares = fit_coefficients(generators, targets, sources, start)
    best = squares.reshape(n, _N_STARTS).argmin(axis=1)
    found = found.reshape(n, _N_STARTS, -1)[np.arange(n), best]
    for max_norm in _LARGER_NORMS:
        stuck = matrix_norms(generators, found) > 0.49 * max_norm  # at the last limit
        if not stuck.any():
            break
        rest = X[stuck]
        sources = np.broadcast_to(prototype, rest.shape)
        found[stuck], _ = fit_coefficients(
            generators, rest, sources, found[stuck], max_norm=max_norm
        )
    return found


def check_coefficients(c: Any, k: int) -> Array:
    """Finite coefficients of shape (k,) or (n, k)."""
    values = _real_array(c, f"`c` must hold real numbers, {k} in every row")
    if values.ndim not in (1, 2) or values.shape[-1] != k:
        raise ValueError(
            f"`c` must have shape ({k},) or (n, {k}), one coefficient for each of the {k} "
            f"generators, got shape {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("`c` contains NaN or infinity. Pass finite coefficients.")
    return values


def _real_array(values: Any, requirement: str) -> Array:
    try:
        return as_numbers(values, "values")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{requirement}, got {kind_of(values)}.") from error


def check_orbit_vector(x: Any, n_features: int) -> Array:
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


def _sample_orbit(generators: Array, prototype: Array, *, seed: int) -> tuple[Array, Array]:
    """Coefficients spread over the orbit and the points there, the prototype first."""
    random, k = np.random.RandomState(seed), len(generators)
    directions = random.normal(size=(_N_SAMPLES, k))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    values = np.linalg.eigvals(matrices_of(generators, directions))
    turning = np.abs(values.imag).max(axis=1)
    stretching = np.abs(values.real).max(axis=1)
    tiny = 1e-9
    # to half a turn, a factor of 20, or (for shears) a matrix of norm 10
    reach = np.minimum(np.pi / np.maximum(turning, tiny), 3.0 / np.maximum(stretching, tiny))
    shares = random.uniform(size=_N_SAMPLES) ** (1.0 / k)
    coefficients = directions * (np.minimum(reach, 10.0) * shares)[:, None]
    coefficients[0] = 0.0
    return coefficients, moved_by(generators, coefficients, prototype)
