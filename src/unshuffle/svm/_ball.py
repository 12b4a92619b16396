"""The smallest ball around vectors, from their inner products."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import spans

Array = NDArray[np.float64]

# Largest violation of the optimality conditions, as a share of the mean squared length.
PRECISION = 1e-9
MAX_STEPS_PER_ITEM = 1000


class Ball(NamedTuple):
    """Smallest ball around vectors, of which a share may lie outside.

    Attributes
    ----------
    weights : ndarray of shape (n,)
        The centre is the sum of the vectors with these weights, which are not below 0 and add up
        to 1. Those of vectors inside the ball are 0.
    squared_radius : float
        Squared distance from the centre to the surface.
    cost : float
        Squared radius, and what the vectors outside pay.
    """

    weights: Array
    squared_radius: float
    cost: float


def enclosing_ball(K: Array, slack: float | None = None) -> Ball:
    """Smallest ball around vectors with the inner products K.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Inner products.
    slack : float or None, default=None
        Share of the vectors that may lie outside. Larger gives a smaller ball that minds outliers
        less; with 1 the centre is the mean. None encloses all.

    Returns
    -------
    ball : Ball
        Precise to 1e-9 of the mean squared length of the vectors about their mean.

    Notes
    -----
    The dual of eq. (3) of the paper, min w'Kw - diag(K)'w with sum(w) = 1 and 0 <= w <= bound. The
    paper's bound C has no solution below 1/n; 1 / (slack n) always has one.
    """
    n = len(K)
    # Centred: the ball is where the vectors are, however far that is from the origin.
    means = K.mean(axis=0)
    K = np.ascontiguousarray(K - means - means[:, None] + means.mean())
    squares = np.diag(K).copy()
    # In units of about the largest: products of two would leave the floats sooner. A power of two
    # rounds nothing.
    unit = float(np.ldexp(1.0, int(np.frexp(squares.max(initial=0.0))[1])))
    K, squares = K / unit, squares / unit
    scale = float(squares.mean())
    weights = np.full(n, 1.0 / n)
    bound = 1.0 if slack is None else min(1.0, 1.0 / (slack * n))
    if n > 1 and scale > 0.0 and bound * n > 1.0 + 1e-12:
        weights = _exchanged(K, squares, weights, bound, scale)
    products = K @ weights
    inner = float(weights @ products)
    slope = 2.0 * products - squares
    # Between the slopes of what may still gain and what may still lose lies the multiplier.
    level = 0.5 * (slope[weights > 0.0].max() + slope[weights < bound].min(initial=slope.max()))
    cost = float(squares @ weights) - inner
    return Ball(weights, unit * max(inner - float(level), 0.0), unit * cost)


def _exchanged(K: Array, squares: Array, weights: Array, bound: float, scale: float) -> Array:
    from unshuffle.svm._ball_loops import exchange_weights

    slope = 2.0 * (K @ weights) - squares
    n = len(weights)
    for start, stop in spans(MAX_STEPS_PER_ITEM * n, 4.0 * n):
        n_steps = exchange_weights(K, weights, slope, bound, PRECISION * scale, stop - start)
        if n_steps < stop - start:
            break
    return weights
