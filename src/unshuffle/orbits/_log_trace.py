"""The paper's cost: matrices of small volume that carry each pair by the log-trace error.

Lowered by L-BFGS, or by the paper's majorise-minimise steps with the gradient and the factor put
right, which also take linear constraints.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls

from unshuffle.objectives import log_trace_errors, log_trace_errors_diagonal, matrix_volume
from unshuffle.orbits._checks import raise_infeasible_constraints
from unshuffle.orbits._matrices import MatrixSpace
from unshuffle.orbits._pairs import Pairs

Array = NDArray[np.float64]
Constraints = tuple[Array, Array]


@dataclass
class VolumeRun:
    """One descent.

    Attributes
    ----------
    matrices : ndarray of shape (n, p)
        Coordinates of the matrix of each pair.
    path : list of float
        Cost at the start and after each step; never rises.
    converged : bool
        Whether it ended by itself.
    """

    matrices: Array
    path: list[float]
    converged: bool = False


Report = Callable[[VolumeRun], None]


@dataclass(frozen=True)
class LogTraceCost:
    """log|M + eps1| + eps2 tr M + lam sum of errors, over one matrix for each pair.

    Attributes
    ----------
    space : MatrixSpace
        Symmetric matrices, or diagonal ones.
    pairs : Pairs
        What is to be carried where.
    lam, eps1, eps2 : float
        Weights, as the estimator has them.
    """

    space: MatrixSpace
    pairs: Pairs
    lam: float
    eps1: float
    eps2: float

    def errors(self, a: Array) -> tuple[float, Array]:
        """Sum of the log-trace errors, and its gradient."""
        x, z = self.pairs.targets, self.pairs.sources
        if self.space.is_diagonal:
            own = self.space.rows
            full = np.zeros_like(x)
            full[:, own] = a
            errors, slopes = log_trace_errors_diagonal(full, x, z)
            return float(errors.sum()), slopes[:, own]
        errors, slopes = log_trace_errors(self.space.matrices(a), x, z)
        return float(errors.sum()), self.space.coordinates(slopes)

    def __call__(self, a: Array) -> tuple[float, Array]:
        """The cost and its gradient; infinite where a trial step leads beyond the floats."""
        try:
            volume, by_volume = matrix_volume(a, eps1=self.eps1, eps2=self.eps2)
            errors, by_errors = self.errors(a)
        except ValueError:
            return np.inf, np.zeros_like(a)
        return volume + self.lam * errors, by_volume + self.lam * by_errors


def descend_by_gradients(
    cost: LogTraceCost, start: Array, *, max_iter: int, tol: float, report: Report
) -> VolumeRun:
    """Lower the cost by L-BFGS.

    Parameters
    ----------
    cost : LogTraceCost
        What is lowered.
    start : ndarray of shape (n, p)
        Matrices to begin with.
    max_iter : int
        Most steps.
    tol : float
        Relative fall of the cost below which to stop.
    report : callable
        Told of every step; may raise to stop.

    Returns
    -------
    run : VolumeRun
        A local optimum; the global one for diagonal matrices and eps1 * eps2 >= 1/8.
    """
    run = VolumeRun(start, [cost(start)[0]])

    def flat(vector: Array) -> tuple[float, Array]:
        value, gradient = cost(vector.reshape(start.shape))
        return value, gradient.ravel()

    def step(intermediate_result: object) -> None:
        run.matrices = intermediate_result.x.reshape(start.shape).copy()  # type: ignore[attr-defined]
        run.path.append(float(intermediate_result.fun))  # type: ignore[attr-defined]
        report(run)

    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": tol, "gtol": 1e-10}
    found = minimize(
        flat, start.ravel(), jac=True, method="L-BFGS-B", callback=step, options=options
    )
    run.converged = bool(found.success)
    return run


def descend_by_majorizing(
    cost: LogTraceCost,
    start: Array,
    constraints: Constraints | None,
    *,
    max_iter: int,
    tol: float,
    report: Report,
) -> VolumeRun:
    """Lower the cost by minimising quadratic bounds of it, one after another.

    The log-determinant lies below its tangent. The error of a pair lies below a quadratic of
    curvature L at the last matrices: of curvature 1 for diagonal matrices, while for symmetric
    ones no L holds everywhere, so L is doubled until the cost falls.

    Parameters
    ----------
    cost : LogTraceCost
        What is lowered.
    start : ndarray of shape (n, p)
        Matrices to begin with, which must meet the constraints.
    constraints : pair (G, h) or None
        Each row of matrices a keeps G a <= h; a step is then a quadratic program.
    max_iter : int
        Most steps.
    tol : float
        Relative fall of the cost below which to stop.
    report : callable
        Told of every step; may raise to stop.

    Returns
    -------
    run : VolumeRun
        A local optimum.
    """
    run = VolumeRun(start, [cost(start)[0]])
    curvature = 1.0
    for _ in range(max_iter):
        _, slopes = cost.errors(run.matrices)
        weights = _volume_weights(cost, run.matrices)
        while True:
            trial = _bound_minimum(cost, run.matrices, slopes, weights, curvature, constraints)
            value = cost(trial)[0]
            if value <= run.path[-1] or curvature > 1e12:
                break
            curvature *= 2.0
        fall = run.path[-1] - value
        if fall <= 0.0:  # no step, however short, gains anything
            run.converged = True
            break
        run.matrices = trial
        run.path.append(value)
        report(run)
        if fall <= tol * max(abs(value), 1.0):
            run.converged = True
            break
        curvature = max(curvature / 2.0, 1e-3)
    return run


def within(space: MatrixSpace, constraints: Constraints) -> Constraints:
    """Constraints on whole matrices as constraints on their coordinates in the space."""
    G, h = constraints
    return space.coordinates(G.reshape(-1, space.n_rows, space.n_rows)), h


def feasible_start(n_pairs: int, n_dimensions: int, constraints: Constraints | None) -> Array:
    """The matrices closest to zero that meet the constraints; refused where there are none."""
    start = np.zeros((n_pairs, n_dimensions))
    if constraints is not None:
        start = project_rows(start, constraints)
        if np.isnan(start).any():
            raise_infeasible_constraints()
    return start


def project_rows(wanted: Array, constraints: Constraints, metric: Array | None = None) -> Array:
    """Rows closest to those wanted among all that meet linear constraints, by `metric`.

    The least-distance program of each row, min |u| subject to G u <= h, is solved by its dual, a
    least-squares problem over numbers that are not negative (Lawson and Hanson).

    Parameters
    ----------
    wanted : ndarray of shape (n, p)
        Rows to move as little as possible.
    constraints : pair (G, h)
        Arrays of shape (m, p) and (m,): rows a with G a <= h.
    metric : ndarray of shape (p, p) or None, default=None
        Distance is d'W d; None is the plain one.

    Returns
    -------
    rows : ndarray of shape (n, p)
        NaN where no row meets the constraints.
    """
    G, h = constraints
    factor = np.eye(wanted.shape[1]) if metric is None else np.linalg.cholesky(metric)
    turned = np.linalg.solve(factor, G.T).T  # G L^-T: constraints of u = L'(a - wanted)
    lengths = np.linalg.norm(turned, axis=1)
    lengths[lengths == 0.0] = 1.0
    turned = turned / lengths[:, None]
    result = wanted.copy()
    room = (h - wanted @ G.T) / lengths
    for i in np.flatnonzero((room < 0).any(axis=1)):
        size = -room[i].min()  # units in which the least distance is about 1
        system = np.vstack([-turned.T, -room[i] / size])
        right = np.zeros(len(system))
        right[-1] = 1.0
        dual = nnls(system, right)[0]
        rest = system @ dual - right
        if rest[-1] > -1e-12:
            result[i] = np.nan
        else:
            result[i] += np.linalg.solve(factor.T, -size * rest[:-1] / rest[-1])
    return result


def _volume_weights(cost: LogTraceCost, a: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of (M + eps1)^-1 + eps2, M the mean of a a'."""
    values, vectors = np.linalg.eigh(a.T @ a / len(a))
    return 1.0 / (np.maximum(values, 0.0) + cost.eps1) + cost.eps2, vectors


def _bound_minimum(
    cost: LogTraceCost,
    a: Array,
    slopes: Array,
    weights: tuple[Array, Array],
    curvature: float,
    constraints: Constraints | None,
) -> Array:
    """Minimum of the bound: a~ = (1 + 2 W / (lam L n))^-1 (a - slope / L), eq. of the update."""
    values, vectors = weights
    pull = 2.0 * values / (cost.lam * curvature * len(a))
    wanted = a - slopes / curvature
    result = (wanted @ vectors / (1.0 + pull)) @ vectors.T
    if constraints is None:
        return np.asarray(result)
    metric = (vectors * (1.0 + pull)) @ vectors.T
    return project_rows(result, constraints, metric)
