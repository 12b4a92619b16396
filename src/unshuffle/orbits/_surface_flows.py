"""Surface flows: generators whose flow is tangent to the surface of the points."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.types import Floats
from unshuffle.orbits._problem import MatrixSpace

_MOST_POINTS = 400  # points to fit surfaces to
_MOST_TANGENTS = 4
_MOST_DIMENSIONS = 200  # largest space of matrices
_FADING = 0.7  # decay of weights with squared distance; chosen on noisy pieces of twenty spheres


def fit_flows(space: MatrixSpace, X: Floats, n_generators: int, *, seed: int) -> list[Floats]:
    """Surface flows: generators V whose flow V x is tangent to the surface of the points.

    A quadratic surface is fitted around each point; with its normals n, the generators are the
    null space of all n'V x. Wide neighborhoods average out noise and narrow ones follow curvature,
    so several widths are tried, the widest first. Returns orthonormal coordinates for each width;
    an empty list if there are too few points or too many dimensions.
    """
    points = np.unique(X, axis=0)
    d = points.shape[1]
    n_tangents = min(n_generators, d - 1)
    n_terms = 1 + n_tangents + n_tangents * (n_tangents + 1) // 2
    if not (1 <= n_tangents <= _MOST_TANGENTS and space.n_dimensions <= _MOST_DIMENSIONS):
        return []
    if len(points) > _MOST_POINTS:
        chosen = np.random.RandomState(seed).permutation(len(points))[:_MOST_POINTS]
        points = points[np.sort(chosen)]
    widths, width = [], len(points)
    while width >= 3 * n_terms:
        widths.append(width)
        width //= 2
    squares = np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=2)
    nearest = np.argsort(squares, axis=1, kind="stable")
    fitted = (_fit_surfaces(points, nearest[:, :width], n_tangents) for width in widths)
    return [_solve_flows(space, *surfaces, n_generators) for surfaces in fitted]


def _fit_surfaces(
    points: Floats, nearest: NDArray[np.intp], n_tangents: int
) -> tuple[Floats, Floats, Floats]:
    """Points projected onto quadratic surfaces through their neighbors, normals, and weights.

    `nearest` holds the neighbors of each point, itself first. The weights are inverse variances
    of the slopes, which are smaller at the boundary of the data.
    """
    around = points[nearest] - points[:, None, :]
    squares = np.sum(around**2, axis=2)
    weights = 1.0 - _FADING * squares / squares.max(axis=1, keepdims=True)
    frame = _principal_frame(around, weights)
    for _ in range(2):  # the second time in the frame of the fitted surface
        tangents, normals = frame[:, :, :n_tangents], frame[:, :, n_tangents:]
        coefficients, precision = _quadratic_fit(around @ tangents, around @ normals, weights)
        projected = points + np.einsum("ndj,nj->nd", normals, coefficients[:, 0])
        slopes = np.swapaxes(coefficients[:, 1 : 1 + n_tangents], 1, 2)
        tilted = tangents + normals @ slopes
        frame = np.linalg.qr(np.concatenate([tilted, normals], axis=2))[0]
    return projected, frame[:, :, n_tangents:], precision


def _solve_flows(
    space: MatrixSpace, projected: Floats, normals: Floats, precision: Floats, n_generators: int
) -> Floats:
    """Coordinates of the matrices V with the smallest n'V x, the smallest first."""
    d = projected.shape[1]
    # n'V x is the inner product of V and n x'
    leaving = np.einsum("n,nia,nj->naij", np.sqrt(precision), normals, projected).reshape(-1, d, d)
    rows = space.coordinates(leaving)
    moving = space.coordinates(np.einsum("ai,nj->naij", np.eye(d), projected).reshape(-1, d, d))
    # leave out matrices that move no point: they are tangent to any surface
    values, axes = np.linalg.eigh(moving.T @ moving)
    axes = axes[:, values > 1e-9 * values[-1]]
    _, directions = np.linalg.eigh(axes.T @ (rows.T @ rows) @ axes)
    return np.asarray((axes @ directions[:, :n_generators]).T)


def _principal_frame(around: Floats, weights: Floats) -> Floats:
    """Principal axes of weighted neighborhoods, widest first, as columns."""
    middle = np.einsum("nk,nkd->nd", weights, around) / weights.sum(axis=1)[:, None]
    centered = around - middle[:, None, :]
    scatter = np.swapaxes(centered * weights[:, :, None], 1, 2) @ centered
    return np.asarray(np.linalg.eigh(scatter)[1][:, :, ::-1])


def _quadratic_fit(along: Floats, across: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Coefficients of `across` as a quadratic function of `along`, and precision of the slopes."""
    n_tangents = along.shape[2]
    first, second = np.triu_indices(along.shape[2])
    scale = np.sqrt(np.mean(along**2, axis=(1, 2), keepdims=True)) + np.finfo(float).tiny
    unit = along / scale
    terms = np.concatenate(
        [np.ones((*along.shape[:2], 1)), unit, unit[:, :, first] * unit[:, :, second]], axis=2
    )
    weighted = np.swapaxes(terms * weights[:, :, None], 1, 2)
    H = weighted @ terms
    H += 1e-12 * np.trace(H, axis1=1, axis2=2)[:, None, None] * np.eye(H.shape[1])
    inverse = np.linalg.inv(H)
    found = inverse @ (weighted @ across)
    spread = inverse @ (weighted * weights[:, None, :]) @ terms
    slopes = slice(1, 1 + n_tangents)
    variances = np.trace((spread @ inverse)[:, slopes, slopes], axis1=1, axis2=2)
    found[:, slopes] /= scale
    precision = scale[:, 0, 0] ** 2 / np.maximum(variances, np.finfo(float).tiny)
    return np.asarray(found), np.asarray(precision / precision.max())
