"""How far along each generator: the coefficients that carry one vector onto another."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._exponentials import action, jacobian
from unshuffle._motion import matrix_norms, moved_by
from unshuffle.objectives import combined

Array = NDArray[np.float64]

_N_PLACES = 300  # of the orbit, among which starts are chosen
_N_STARTS = 4  # for each vector, from the nearest of these
_REACH = 12.0  # most a solver moves along: the 1-norm of a matrix, whose time it sets
_FARTHER = (24.0, 48.0)  # for vectors found at the very end of it


def fit_coefficients(
    generators: Array,
    targets: Array,
    sources: Array,
    start: Array,
    *,
    max_iter: int = 50,
    tol: float = 1e-12,
    reach: float = _REACH,
) -> tuple[Array, Array]:
    """Coefficients c that lower |x - exp(sum c V) x'|^2 from where they start, for each pair.

    Levenberg and Marquardt's method for all pairs at once; a pair leaves when it has settled.

    Parameters
    ----------
    generators : ndarray of shape (k, d, d)
        The matrices V.
    targets, sources : ndarray of shape (n, d)
        The vectors x and x'.
    start : ndarray of shape (n, k)
        Coefficients to begin with.
    max_iter : int, default=50
        Most steps.
    tol : float, default=1e-12
        Relative fall of the squared distance below which a pair has settled.
    reach : float
        Largest 1-norm of a matrix; larger goes further and takes longer.

    Returns
    -------
    coefficients : ndarray of shape (n, k)
        A local optimum for each.
    squares : ndarray of shape (n,)
        Squared distances left.
    """
    k, unit = len(generators), np.eye(len(generators))
    found = start.copy()
    best = _squares(generators, found, targets, sources)
    scale = np.maximum(np.sum(targets**2, axis=1), np.finfo(float).tiny)
    damping = np.full(len(found), 1e-3)
    active = np.flatnonzero(best > 1e-30 * scale)
    for _ in range(max_iter):
        if not active.size:
            break
        c, x, z = found[active], targets[active], sources[active]
        moved, J = jacobian(combined(generators, c), z, generators)
        H = np.swapaxes(J, 1, 2) @ J
        size = np.trace(H, axis1=1, axis2=2) / k
        H += (damping[active] * size + np.finfo(float).tiny)[:, None, None] * unit
        push = np.einsum("ndk,nd->nk", J, x - moved)
        step = np.linalg.solve(H, push[:, :, None])[:, :, 0]
        trial = within_reach(generators, c + step, reach)
        squares = _squares(generators, trial, x, z)
        better = squares < best[active]  # false for NaN
        fall = best[active] - np.where(better, squares, best[active])
        settled = (better & (fall <= tol * best[active])) | (damping[active] > 1e6)
        taken = active[better]
        found[taken], best[taken] = trial[better], squares[better]
        damping[active] = np.clip(
            np.where(better, damping[active] / 5, damping[active] * 4), 1e-12, 1e8
        )
        active = active[~settled & (best[active] > 1e-30 * scale[active])]
    return found, best


def within_reach(generators: Array, coefficients: Array, reach: float = _REACH) -> Array:
    """Coefficients, shortened where their matrix is so large that a search has gone astray."""
    norms = np.maximum(matrix_norms(generators, coefficients), 1e-300)
    return np.asarray(coefficients * np.minimum(1.0, reach / norms)[:, None])


def linear_coefficients(generators: Array, targets: Array, sources: Array) -> Array:
    """Coefficients by the tangent at half way: x - x' = sum c V (x + x') / 2."""
    middle = 0.5 * (targets + sources)
    flows = np.einsum("kij,nj->nik", generators, middle)
    inverse = np.linalg.pinv(flows, rcond=0.05)  # steep ones would start far away
    return within_reach(generators, np.einsum("nki,ni->nk", inverse, targets - sources))


def orbit_places(
    generators: Array, prototype: Array, *, seed: int, n: int = _N_PLACES
) -> tuple[Array, Array]:
    """Coefficients spread over the orbit of one vector, and the places they lead to.

    In each direction they go as far as half a turn, a factor of 20, or (for shears, which do
    neither) a matrix of norm 10.

    Parameters
    ----------
    generators : ndarray of shape (k, d, d)
        The matrices V.
    prototype : ndarray of shape (d,)
        Where the orbit starts.
    seed : int
        Directions are drawn at random; the first place is the prototype itself.
    n : int
        Number of places; more leave fewer gaps.

    Returns
    -------
    coefficients : ndarray of shape (n, k)
        One row for each place.
    places : ndarray of shape (n, d)
        exp(sum c V) prototype.
    """
    random, k = np.random.RandomState(seed), len(generators)
    directions = random.normal(size=(n, k))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    values = np.linalg.eigvals(combined(generators, directions))
    turning = np.abs(values.imag).max(axis=1)
    stretching = np.abs(values.real).max(axis=1)
    tiny = 1e-9
    reach = np.minimum(np.pi / np.maximum(turning, tiny), 3.0 / np.maximum(stretching, tiny))
    shares = random.uniform(size=n) ** (1.0 / k)
    coefficients = directions * (np.minimum(reach, 10.0) * shares)[:, None]
    coefficients[0] = 0.0
    return coefficients, moved_by(generators, coefficients, prototype)


def locate(
    generators: Array, prototype: Array, X: Array, places: tuple[Array, Array]
) -> tuple[Array, Array]:
    """For each row the coefficients that carry the prototype closest to it.

    Parameters
    ----------
    generators : ndarray of shape (k, d, d)
        The matrices V.
    prototype : ndarray of shape (d,)
        Where the orbit starts.
    X : ndarray of shape (n, d)
        Vectors to find on the orbit.
    places : pair of ndarray
        What `orbit_places` returns: the nearest few to a row are where its search starts.

    Returns
    -------
    coefficients : ndarray of shape (n, k)
        The best end for each row.
    squares : ndarray of shape (n,)
        Squared distances left.
    """
    coefficients, vectors = places
    n, n_starts = len(X), min(_N_STARTS, len(coefficients))
    # one row at a time, so that what is found for it does not depend on the others
    nearest = np.stack(
        [np.argsort(np.sum((vectors - row) ** 2, axis=1), kind="stable")[:n_starts] for row in X]
    )
    start = coefficients[nearest].reshape(n * n_starts, -1)
    targets = np.repeat(X, n_starts, axis=0)
    sources = np.broadcast_to(prototype, targets.shape)
    found, squares = fit_coefficients(generators, targets, sources, start)
    squares = squares.reshape(n, n_starts)
    best = squares.argmin(axis=1)
    rows = np.arange(n)
    found, squares = found.reshape(n, n_starts, -1)[rows, best], squares[rows, best]
    for reach in _FARTHER:
        stuck = matrix_norms(generators, found) > 0.49 * reach  # at the end of the last reach
        if not stuck.any():
            break
        rest, start = X[stuck], found[stuck]
        sources = np.broadcast_to(prototype, rest.shape)
        found[stuck], squares[stuck] = fit_coefficients(
            generators, rest, sources, start, reach=reach
        )
    return found, squares


def _squares(generators: Array, coefficients: Array, targets: Array, sources: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # a trial step may be wild
        matrices = np.tensordot(coefficients, generators, axes=(1, 0))
        return np.asarray(np.sum((targets - action(matrices, sources)) ** 2, axis=1))
