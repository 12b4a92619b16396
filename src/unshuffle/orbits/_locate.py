"""Where on the orbit of a prototype vectors lie, and checks of what a fitted learner is asked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import as_numbers, kind_of
from unshuffle._matrix_exponentials import matrices_of, matrix_norms, moved_by
from unshuffle.orbits._low_rank import fit_coefficients

Array = NDArray[np.float64]

_N_PLACES = 300  # of the orbit, among which starts are chosen
_N_STARTS = 4  # for each vector, from the nearest of these
_FARTHER = (24.0, 48.0)  # reach for vectors found at the very end of it


def locate(generators: Array, prototype: Array, X: Array, *, seed: int) -> Array:
    """For each row the coefficients that carry the prototype closest to it.

    The nearest few of many places on the orbit are where the search for a row starts; the best of
    their ends is taken.
    """
    scale = float(np.linalg.norm(prototype))
    _check_comparable(X, scale)
    X, prototype = X / scale, prototype / scale
    coefficients, places = _orbit_places(generators, prototype, seed=seed)
    n = len(X)
    # one row at a time, so that what is found for it does not depend on the others
    nearest = np.stack(
        [np.argsort(np.sum((places - row) ** 2, axis=1), kind="stable")[:_N_STARTS] for row in X]
    )
    start = coefficients[nearest].reshape(n * _N_STARTS, -1)
    targets = np.repeat(X, _N_STARTS, axis=0)
    sources = np.broadcast_to(prototype, targets.shape)
    found, squares = fit_coefficients(generators, targets, sources, start)
    best = squares.reshape(n, _N_STARTS).argmin(axis=1)
    found = found.reshape(n, _N_STARTS, -1)[np.arange(n), best]
    for reach in _FARTHER:
        stuck = matrix_norms(generators, found) > 0.49 * reach  # at the end of the last reach
        if not stuck.any():
            break
        rest = X[stuck]
        sources = np.broadcast_to(prototype, rest.shape)
        found[stuck], _ = fit_coefficients(generators, rest, sources, found[stuck], reach=reach)
    return found


def check_coefficients(c: Any, k: int) -> Array:
    """Finite coefficients of shape (k,) or (n, k)."""
    try:
        values = as_numbers(c, "`c`")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`c` must hold real numbers, {k} in every row, got {kind_of(c)}."
        ) from error
    if values.ndim not in (1, 2) or values.shape[-1] != k:
        raise ValueError(
            f"`c` must have shape ({k},) or (n, {k}), one coefficient for each of the {k} "
            f"generators, got shape {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("`c` contains NaN or infinity. Pass finite coefficients.")
    return values


def check_orbit_vector(x: Any, n_features: int) -> Array:
    """One finite vector of the fitted width."""
    try:
        values = as_numbers(x, "`x`")
    except (TypeError, ValueError) as error:
        raise ValueError(f"`x` must hold {n_features} real numbers, got {kind_of(x)}.") from error
    if values.shape != (n_features,):
        raise ValueError(
            f"`x` must be one vector of {n_features} numbers, as the rows that were fitted, "
            f"got shape {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("`x` contains NaN or infinity. Pass finite numbers.")
    return values


def _check_comparable(X: Array, prototype_length: float) -> None:
    """Refuse rows so much longer than the prototype that nothing is seen to lead there."""
    largest = float(np.abs(X).max(initial=0.0))
    if largest > 1e10 * prototype_length:  # squared, the way there is lost in rounding
        raise ValueError(
            f"X holds {largest:.3g}, and the prototype has length {prototype_length:.3g}: too far "
            "apart to be compared. Pass vectors in the units of those that were fitted."
        )


def _orbit_places(generators: Array, prototype: Array, *, seed: int) -> tuple[Array, Array]:
    """Coefficients spread over the orbit, and the places they lead to, first the prototype itself.

    In each direction they go as far as half a turn, a factor of 20, or (for shears, which do
    neither) a matrix of norm 10.
    """
    random, k = np.random.RandomState(seed), len(generators)
    directions = random.normal(size=(_N_PLACES, k))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    values = np.linalg.eigvals(matrices_of(generators, directions))
    turning = np.abs(values.imag).max(axis=1)
    stretching = np.abs(values.real).max(axis=1)
    tiny = 1e-9
    reach = np.minimum(np.pi / np.maximum(turning, tiny), 3.0 / np.maximum(stretching, tiny))
    shares = random.uniform(size=_N_PLACES) ** (1.0 / k)
    coefficients = directions * (np.minimum(reach, 10.0) * shares)[:, None]
    coefficients[0] = 0.0
    return coefficients, moved_by(generators, coefficients, prototype)
