"""`soft_assignment`: shares instead of pairs, by Sinkhorn iterations in the log domain."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from unshuffle._core.arrays import find_inliers, middle, table_shape
from unshuffle._core.grams import check_frozen
from unshuffle._core.parameters import check_count, check_flag, check_kernel_memory, check_positive
from unshuffle.assignment._solve import check_assignment_cost, check_feasible, check_forbidden

DEFAULT_EPSILON = 0.1  # in standard deviations of the cost
COOLING = 4.0
ITERATIONS_PER_STAGE = 10
ITERATIONS_PER_NEWTON = 10
LARGEST_NEWTON = 2000  # columns; the time of a step grows as their cube
SMALLEST_EPSILON = 1e-14  # share of the spread; smaller values are zero in float64
LARGEST = 1e200  # limit of costs and epsilons, in units of the largest ordinary cost


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
    """Share of each row in each column: near 1 for a clear match, spread out otherwise.

    Parameters
    ----------
    cost : array-like of shape (n_rows, n_cols)
        Finite cost of each pair.
    epsilon : float or None, default=None
        Softness, in units of the cost. Larger values spread the shares more evenly; towards zero
        they become an optimal assignment. None uses 0.1 standard deviations of the cost, without
        extreme outliers.
    maximize : bool, default=False
        Whether to prefer large costs instead.
    frozen : array-like of shape (n_frozen, 2) or None, default=None
        (row, column) pairs whose share is 1, in any order.
    forbidden : array-like of shape (n_rows, n_cols), bool, or None, default=None
        True where the share must be 0.
    max_iter : int, default=1000
        Largest number of iterations. Larger values allow a smaller `epsilon`. Reaching it
        issues a `ConvergenceWarning`.
    tol : float, default=1e-6
        Largest relative error of a sum of shares. Larger values stop sooner.

    Returns
    -------
    shares : ndarray of shape (n_rows, n_cols)
        Nonnegative. Rows and columns sum to 1 if the cost is square. Otherwise those of the
        smaller side sum to 1 and those of the larger side to at most 1. Rows (the smaller side,
        if not square) are exact to rounding, the others to `tol`.

    Notes
    -----
    The shares P minimize ``sum(cost * P) + epsilon * sum(P * (log(P) - 1))`` under these sums.
    The iterations climb the dual problem one side at a time while `epsilon` is lowered in steps;
    Newton steps help up to 2,000 columns. Time of an iteration and memory grow as
    n_rows * n_cols.

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

    benefit, spread, deviation, unit = _scale_benefit(benefit, allowed)
    if epsilon is None:
        epsilon = DEFAULT_EPSILON * deviation
    else:
        with np.errstate(over="ignore", under="ignore"):
            epsilon = min(float(np.ldexp(epsilon, -unit)), LARGEST)
    epsilon = max(epsilon, SMALLEST_EPSILON * spread) if spread > 0 else 1.0
    wide = benefit if benefit.shape[0] <= benefit.shape[1] else benefit.T
    # Rows sum to 1, so a constant for a whole row changes nothing.
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


def _scale_benefit(
    benefit: NDArray[np.float64], allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float, float, int]:
    """Centered benefits of order one (-inf if not allowed), their range, deviation and exponent.

    They are divided by two to the exponent. Extreme outliers are clipped, and do not count.
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
    """Shares whose rows sum to 1, and whether the sums of the columns converged."""
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
    # max_iter may be reached before the last stage; the shares always use `epsilon`
    return _shares(benefit, column_dual, epsilon), warmth <= epsilon and error <= tol


def _shares(
    benefit: NDArray[np.float64], column_dual: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Shares for given dual variables of the columns; rows sum to 1."""
    values = benefit + column_dual
    with np.errstate(over="ignore"):  # exp(-inf) = 0
        scaled = (values - _soft_max(values, epsilon, axis=1)[:, None]) / epsilon
    return np.exp(scaled)


def _newton(
    benefit: NDArray[np.float64], column_dual: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Damped Newton step of the dual variables, for near-ties that slow down Sinkhorn."""
    rectangular = benefit.shape[1] > benefit.shape[0]
    shares = _shares(benefit, column_dual, epsilon)
    sums = shares.sum(axis=0)
    bound = (column_dual < 0) | (sums > 1) if rectangular else np.ones(sums.size, dtype=bool)
    if not bound.any():
        return column_dual
    error = np.abs(sums[bound] - 1).max()
    curvature = np.diag(sums[bound]) - shares[:, bound].T @ shares[:, bound]
    # a common shift of all columns is a null direction of the curvature
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
    """Smooth maximum at scale `epsilon`; -inf if all values are."""
    largest = values.max(axis=axis, keepdims=True)
    anchor = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", over="ignore"):  # log(0) = -inf
        total = np.log(np.exp((values - anchor) / epsilon).sum(axis=axis))
    soft: NDArray[np.float64] = epsilon * total + anchor.squeeze(axis)
    return soft
