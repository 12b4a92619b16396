"""Generators that keep points on the surface of the data: a null space, noise averaged out."""

import numpy as np
from numpy.typing import NDArray

from unshuffle.orbits._matrices import MatrixSpace

Array = NDArray[np.float64]

_MOST_POINTS = 400  # of which surfaces are fitted
_MOST_TANGENTS = 4
_MOST_DIMENSIONS = 200  # of the space of matrices
_FADING = 0.7  # of weights with squared distance; chosen on noisy pieces of twenty spheres


def tangent_starts(space: MatrixSpace, X: Array, n_generators: int, *, seed: int) -> list[Array]:
    """Generators whose flow V x stays within the surface on which the points lie.

    A quadratic surface is fitted around each point; with its normals n, the generators are the
    null space of all n'V x. Wide neighbourhoods average noise out and narrow ones follow curves,
    so several widths are tried, the widest first.

    Parameters
    ----------
    space : MatrixSpace
        Matrices to choose from.
    X : ndarray of shape (n, d)
        Points.
    n_generators : int
        Generators wanted.
    seed : int
        Which points are used where there are many.

    Returns
    -------
    starts : list of ndarray of shape (n_generators, p)
        Orthonormal coordinates of generators, one array for each width; empty where there are
        too few points, or too many dimensions for surfaces to be fitted.
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
    nearest = _nearest(points)
    fitted = (local_surfaces(points, nearest[:, :width], n_tangents) for width in widths)
    return [flows_within(space, *surfaces, n_generators) for surfaces in fitted]


def local_surfaces(
    points: Array, nearest: NDArray[np.intp], n_tangents: int
) -> tuple[Array, Array, Array]:
    """Points moved onto a quadratic surface through their neighbours, and its normals there.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        Points near a surface.
    nearest : ndarray of shape (n, width)
        Neighbours of each, nearest first, itself included.
    n_tangents : int
        Dimensions of the surface.

    Returns
    -------
    on : ndarray of shape (n, d)
        Points on the surfaces.
    normals : ndarray of shape (n, d, d - n_tangents)
        Orthonormal.
    trust : ndarray of shape (n,)
        One over the variance of the slopes per unit of noise: less at the rim than amid the data.
    """
    around = points[nearest] - points[:, None, :]
    squares = np.sum(around**2, axis=2)
    weights = 1.0 - _FADING * squares / squares.max(axis=1, keepdims=True)
    frame = _principal_frame(around, weights)
    for _ in range(2):  # again in the frame of the surface, no longer that of the cloud
        tangents, normals = frame[:, :, :n_tangents], frame[:, :, n_tangents:]
        coefficients, trust = _quadratic_fit(around @ tangents, around @ normals, weights)
        on = points + np.einsum("ndj,nj->nd", normals, coefficients[:, 0])
        slopes = np.swapaxes(coefficients[:, 1 : 1 + n_tangents], 1, 2)
        tilted = tangents + normals @ slopes
        frame = np.linalg.qr(np.concatenate([tilted, normals], axis=2))[0]
    return on, frame[:, :, n_tangents:], trust


def flows_within(
    space: MatrixSpace, on: Array, normals: Array, trust: Array, n_generators: int
) -> Array:
    """Matrices V, in coordinates, for which all n'V x are smallest, the smallest first."""
    d = on.shape[1]
    # n'V x is the product of V with n x', entry by entry
    leaving = np.einsum("n,nia,nj->naij", np.sqrt(trust), normals, on).reshape(-1, d, d)
    rows = space.coordinates(leaving)
    moving = space.coordinates(np.einsum("ai,nj->naij", np.eye(d), on).reshape(-1, d, d))
    # matrices that move nothing stay within any surface, and are left out
    values, axes = np.linalg.eigh(moving.T @ moving)
    axes = axes[:, values > 1e-9 * values[-1]]
    _, directions = np.linalg.eigh(axes.T @ (rows.T @ rows) @ axes)
    return np.asarray((axes @ directions[:, :n_generators]).T)


def _nearest(points: Array) -> NDArray[np.intp]:
    squares = np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=2)
    return np.argsort(squares, axis=1, kind="stable")


def _principal_frame(around: Array, weights: Array) -> Array:
    """Orthonormal axes of weighted neighbourhoods, widest first, as columns."""
    middle = np.einsum("nk,nkd->nd", weights, around) / weights.sum(axis=1)[:, None]
    centred = around - middle[:, None, :]
    scatter = np.swapaxes(centred * weights[:, :, None], 1, 2) @ centred
    return np.asarray(np.linalg.eigh(scatter)[1][:, :, ::-1])


def _quadratic_fit(along: Array, across: Array, weights: Array) -> tuple[Array, Array]:
    """Coefficients of `across` as a quadratic function of `along`, and trust in the slopes."""
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
    trust = scale[:, 0, 0] ** 2 / np.maximum(variances, np.finfo(float).tiny)
    return np.asarray(found), np.asarray(trust / trust.max())
