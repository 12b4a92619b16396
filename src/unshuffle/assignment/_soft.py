"""Soft assignment: shares instead of pairs, by Sinkhorn iterations in the log domain."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from unshuffle._arrays import find_inliers, middle, table_shape
from unshuffle._grams import check_frozen
from unshuffle._parameters import check_count, check_flag, check_kernel_memory, check_positive
from unshuffle.assignment._solve import (
    check_assignment_cost,
    check_feasible,
    check_forbidden,
)

DEFAULT_EPSILON = 0.1  # of the standard deviation of the cost
COOLING = 4.0
ITERATIONS_PER_STAGE = 10
ITERATIONS_PER_NEWTON = 10
LARGEST_NEWTON = 2000  # columns; its time grows as their cube
# Below this share of the spread float64 cannot tell a smaller epsilon from zero.
SMALLEST_EPSILON = 1e-14
# Costs and epsilons are cut off there, in units of the largest ordinary cost: an epsilon so
# large makes all shares alike, a cost so large makes none.
LARGEST = 1e200


def soft_assignment(
    cost: ArrayLike,
    *,
    epsilon: float | None = None,
    maximize: bool = False,
    frozen: ArrayLike | None = None,
    forbidden: ArrayLike | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> NDArray[np.float64]:
    """Give each row its shares in the columns: near 1 where the match is clear, spread where not.

    Parameters
    ----------
    cost : array-like of shape (n_rows, n_cols)
        Cost of each pair; finite.
    epsilon : float or None, default=None
        Softness, in units of the cost: larger spreads the shares more evenly, towards
        zero they become an optimal assignment. None is 0.1 standard deviations of
        the cost, wild entries (1e8 times as far from the middle as most) left out.
    maximize : bool, default=False
        Whether large costs are wanted instead of small ones.
    frozen : array-like of shape (n_frozen, 2) or None, default=None
        (row, column) pairs whose share is 1, in any order.
    forbidden : array-like of shape (n_rows, n_cols), bool, or None, default=None
        True where the share must be 0.
    max_iter : int, default=1000
        Most iterations; more allow a smaller `epsilon`. Reaching it raises
        `ConvergenceWarning`.
    tol : float, default=1e-6
        Largest relative error of a sum of shares; larger stops sooner.

    Returns
    -------
    shares : ndarray of shape (n_rows, n_cols)
        Non-negative. Rows and columns sum to 1 if there are as many of one as of the
        other. Otherwise the smaller side sums to 1 and each of the larger side to at
        most 1. Rows (the smaller side, if not square) are exact to rounding, the others
        to `tol`.

    Notes
    -----
    The shares P minimise ``sum(cost * P) + epsilon * sum(P * (log(P) - 1))`` under these
    sums. The iterations climb the dual of that problem one side at a time; the dual
    variables of sums that may stay below 1 are kept from turning positive. `epsilon` is
    lowered in steps, each starting where the last ended, and Newton
    steps help where there are at most 2,000 columns. Time for an iteration and memory
    grow as n_rows * n_cols.

    References
    ----------
    Cuturi, M. (2013). Sinkhorn distances: lightspeed computation of optimal transport.
    Advances in Neural Information Processing Systems 26.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.assignment import soft_assignment
    >>> cost = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> soft_assignment(cost, epsilon=0.5).round(2)
    array([[0.88, 0.12],
           [0.12, 0.88]])
    >>> soft_assignment(cost, epsilon=0.01).round(2)
    array([[1., 0.],
           [0., 1.]])
    """
    check_kernel_memory(*table_shape(cost), n_copies=8.5)
    cost = check_assignment_cost(cost).astype(np.float64)
    if epsilon is not None:
        epsilon = check_positive(epsilon, "epsilon")
    max_iter = check_count(max_iter, "max_iter")
    tol = check_positive(tol, "tol")
    maximize = check_flag(maximize, "maximize")
    n_rows, n_cols = cost.shape
    kept = check_frozen(frozen, n_rows, n_cols, first="rows", second="columns")
    allowed = np.ones(cost.shape, dtype=bool)
    if forbidden is not None:
        allowed = ~check_forbidden(forbidden, cost.shape, kept)
    shares = np.zeros(cost.shape)
    shares[kept[:, 0], kept[:, 1]] = 1.0
    free = np.ix_(
        np.delete(np.arange(n_rows), kept[:, 0]), np.delete(np.arange(n_cols), kept[:, 1])
    )
    benefit, allowed = cost[free] if maximize else -cost[free], allowed[free]
    if benefit.size == 0:
        return shares
    if not allowed.all():
        check_feasible(allowed, n_required=min(benefit.shape))

    benefit, spread, deviation, unit = _scaled(benefit, allowed)
    if epsilon is None:
        epsilon = DEFAULT_EPSILON * deviation
    else:
        with np.errstate(over="ignore", under="ignore"):
            epsilon = min(float(np.ldexp(epsilon, -unit)), LARGEST)
    epsilon = max(epsilon, SMALLEST_EPSILON * spread) if spread > 0 else 1.0
    wide = benefit if benefit.shape[0] <= benefit.shape[1] else benefit.T
    # Rows are sure to sum to 1, so what all entries of one have in common changes nothing.
    found, converged = _sinkhorn(
        wide - wide.max(axis=1, keepdims=True), epsilon, spread, max_iter, tol
    )
    if not converged:
        excess = float(found.sum(axis=0).max()) - 1
        warnings.warn(
            f"soft_assignment stopped at max_iter={max_iter}: a sum of shares exceeds 1 by "
            f"{excess:.2g}. Raise `max_iter`, `epsilon` or `tol`.",
            ConvergenceWarning,
            stacklevel=2,
        )
    shares[free] = found if wide is benefit else found.T
    return shares


def _scaled(
    benefit: NDArray[np.float64], allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float, float, int]:
    """Benefits of order one about their middle, -inf where not allowed; two measures of spread.

    The last is the exponent of the power of two that they were divided by, which rounds nothing.
    Neither a constant nor a wild entry may take the digits of the others, so a wild one is cut
    off far beyond all of these.
    """
    largest = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        benefit = np.clip(benefit - middle(benefit[allowed][:, None])[0], -largest, largest)
    values = benefit[allowed]
    values = values[find_inliers(np.abs(values))]
    unit = int(np.frexp(np.abs(values).max())[1])
    values = np.ldexp(values, -unit)
    with np.errstate(over="ignore"):
        benefit = np.clip(np.ldexp(benefit, -unit), -LARGEST, LARGEST)
    benefit[~allowed] = -np.inf
    return benefit, float(np.ptp(values)), float(values.std()), unit


def _sinkhorn(
    benefit: NDArray[np.float64], epsilon: float, spread: float, max_iter: int, tol: float
) -> tuple[NDArray[np.float64], bool]:
    """Shares whose rows sum to 1, and whether columns sum to 1 (at most, if there are more)."""
    n_rows, n_cols = benefit.shape
    row_dual = np.zeros(n_rows)
    column_dual = np.zeros(n_cols)
    warmth = max(epsilon, spread)
    n_iter = 0
    while True:
        last = warmth <= epsilon
        stage_end = max_iter if last else min(max_iter, n_iter + ITERATIONS_PER_STAGE)
        error = np.inf
        while n_iter < stage_end and error > tol:
            row_dual = -_soft_max(benefit + column_dual, warmth, axis=1)
            update = -_soft_max(benefit + row_dual[:, None], warmth, axis=0)
            if n_cols > n_rows:
                np.minimum(update, 0.0, out=update)
            # the logarithm of a column's sum before this update
            error = float(np.abs(update - column_dual).max()) / warmth
            column_dual = update
            n_iter += 1
            if last and n_iter % ITERATIONS_PER_NEWTON == 0 and n_cols <= LARGEST_NEWTON:
                column_dual = _newton(benefit, column_dual, epsilon)
        if last or n_iter == max_iter:
            break
        warmth = max(warmth / COOLING, epsilon)
    # max_iter may have come before the last stage: shares are always at the epsilon asked for
    return _shares(benefit, column_dual, epsilon), warmth <= epsilon and error <= tol


def _shares(
    benefit: NDArray[np.float64], column_dual: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Shares for given dual variables of the columns; their rows sum to 1."""
    values = benefit + column_dual
    with np.errstate(over="ignore"):  # exp(-inf) = 0 is meant
        scaled = (values - _soft_max(values, epsilon, axis=1)[:, None]) / epsilon
    return np.exp(scaled)


def _newton(
    benefit: NDArray[np.float64], column_dual: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Dual variables after a damped Newton step, or as they were if none lowers the error.

    Near-ties between assignments make Sinkhorn's iterations crawl; this does not mind them.
    """
    rectangular = benefit.shape[1] > benefit.shape[0]
    shares = _shares(benefit, column_dual, epsilon)
    sums = shares.sum(axis=0)
    bound = (column_dual < 0) | (sums > 1) if rectangular else np.ones(sums.size, dtype=bool)
    if not bound.any():
        return column_dual
    error = np.abs(sums[bound] - 1).max()
    curvature = np.diag(sums[bound]) - shares[:, bound].T @ shares[:, bound]
    # shifting all columns changes nothing, so the curvature has a null direction
    curvature[np.diag_indices_from(curvature)] += 1e-12
    step = np.zeros_like(column_dual)
    try:
        step[bound] = epsilon * np.linalg.solve(curvature, 1 - sums[bound])
    except np.linalg.LinAlgError:
        return column_dual
    for damping in (1.0, 0.5, 0.25, 0.125):
        moved = column_dual + damping * step
        if rectangular:
            moved = np.minimum(moved, 0.0)
        if np.abs(_shares(benefit, moved, epsilon).sum(axis=0)[bound] - 1).max() < error:
            return moved
    return column_dual


def _soft_max(values: NDArray[np.float64], epsilon: float, *, axis: int) -> NDArray[np.float64]:
    """Largest value, rounded upwards by ties within `epsilon`; -inf where all are."""
    largest = values.max(axis=axis, keepdims=True)
    anchor = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", over="ignore"):  # log(0) = -inf is meant
        total = np.log(np.exp((values - anchor) / epsilon).sum(axis=axis))
    soft: NDArray[np.float64] = epsilon * total + anchor.squeeze(axis)
    return soft
