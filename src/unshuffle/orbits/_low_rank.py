"""Low-rank least squares: generators and coefficients that carry all pairs, from one start."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from unshuffle._exponentials import jacobian
from unshuffle.objectives import (
    combined,
    squared_orbit_cost,
    squared_orbit_gradient,
)
from unshuffle.orbits._coefficients import fit_coefficients, linear_coefficients, within_reach
from unshuffle.orbits._matrices import MatrixSpace
from unshuffle.orbits._pairs import Pairs

Array = NDArray[np.float64]

EXACT = 1e-26  # of the squared lengths: nothing is left to gain
_MOST_UNKNOWNS = 300  # numbers in all generators, for which a dense system is solved
_MOST_DERIVATIVES = 20_000_000  # numbers in their Jacobian


@dataclass
class Run:
    """One descent.

    Attributes
    ----------
    generators : ndarray of shape (k, p)
        Coordinates of the generators, orthonormal.
    coefficients : ndarray of shape (n, k)
        Of each pair.
    path : list of float
        Cost at the start and after each step; never rises.
    converged : bool
        Whether it ended by itself.
    """

    generators: Array
    coefficients: Array
    path: list[float] = field(default_factory=list)
    converged: bool = False

    @property
    def cost(self) -> float:
        """What is left."""
        return self.path[-1]


Report = Callable[[Run], None]


def started(space: MatrixSpace, pairs: Pairs, generators: Array) -> Run:
    """The best coefficients of given generators, nothing else moved."""
    V = space.matrices(generators)
    start = linear_coefficients(V, pairs.targets, pairs.sources)
    first = _cost(V, start, pairs)
    found, squares = fit_coefficients(
        V, pairs.targets, pairs.sources, start, max_iter=10, tol=1e-6
    )
    return Run(generators, found, [first, min(float(squares.sum()), first)])


def descend(
    space: MatrixSpace, pairs: Pairs, run: Run, *, max_iter: int, tol: float, report: Report
) -> Run:
    """Lower the cost over generators and coefficients together.

    Levenberg and Marquardt's method, coefficients eliminated; for large matrices, where its
    system is too large, L-BFGS.

    Parameters
    ----------
    space : MatrixSpace
        Matrices to choose from.
    pairs : Pairs
        What is to be carried where.
    run : Run
        Start, which is changed.
    max_iter : int
        Most steps.
    tol : float
        Relative fall of the cost, twice in a row, below which to stop.
    report : callable
        Told of every step; may raise to stop.

    Returns
    -------
    run : Run
        A local optimum.
    """
    n_unknowns = run.generators.size
    n_derivatives = pairs.targets.size * space.n_dimensions
    if n_unknowns <= _MOST_UNKNOWNS and n_derivatives <= _MOST_DERIVATIVES:
        return _by_least_squares(space, pairs, run, max_iter=max_iter, tol=tol, report=report)
    return _by_gradients(space, pairs, run, max_iter=max_iter, tol=tol, report=report)


def ordered(run: Run) -> Run:
    """The same span, its generators ordered by the mean squares of their coefficients.

    Signs are chosen so that the largest coordinate of a generator is positive.
    """
    generators, coefficients = _orthonormal(run.generators, run.coefficients)
    turn = np.linalg.svd(coefficients, full_matrices=False)[2]
    if len(turn) < len(generators):  # fewer pairs than generators: complete the basis
        turn = np.linalg.svd(coefficients, full_matrices=True)[2]
    generators, coefficients = turn @ generators, coefficients @ turn.T
    largest = np.abs(generators).argmax(axis=1)
    signs = np.where(generators[np.arange(len(generators)), largest] < 0, -1.0, 1.0)
    return Run(generators * signs[:, None], coefficients * signs, run.path, run.converged)


def _by_least_squares(
    space: MatrixSpace, pairs: Pairs, run: Run, *, max_iter: int, tol: float, report: Report
) -> Run:
    basis, damping, n_small = space.basis(), 1e-3, 0
    for _ in range(max_iter):
        if run.cost <= EXACT * len(pairs.targets):
            run.converged = True
            break
        system = _System.of(space, pairs, run, basis)
        while damping < 1e8:
            by_generators, by_coefficients = system.step(damping)
            generators = run.generators + by_generators
            V = space.matrices(generators)
            coefficients = within_reach(V, run.coefficients + by_coefficients)
            cost = _cost(V, coefficients, pairs)
            if cost < run.cost:
                break
            damping *= 4.0
        else:
            run.converged = True  # no step, however short, gains anything
            break
        n_small = n_small + 1 if run.cost - cost <= tol * run.cost else 0
        run.generators, run.coefficients = _orthonormal(generators, coefficients)
        run.path.append(cost)
        damping = max(damping / 5.0, 1e-12)
        report(run)
        if n_small >= 2:
            run.converged = True
            break
    return run


@dataclass(frozen=True)
class _System:
    """Normal equations of one step, in blocks: one for all generators, one for each pair."""

    generators: Array  # (kp, kp)
    mixed: Array  # (n, k, kp)
    coefficients: Array  # (n, k, k)
    push_generators: Array  # (kp,)
    push_coefficients: Array  # (n, k)

    @classmethod
    def of(cls, space: MatrixSpace, pairs: Pairs, run: Run, basis: Array) -> "_System":
        """Linearise all residuals at a run."""
        V, c = space.matrices(run.generators), run.coefficients
        n, k = c.shape
        moved, J = jacobian(combined(V, c), pairs.sources, basis)
        missed = pairs.targets - moved
        p = J.shape[2]
        by_c = J @ run.generators.T
        squares = np.swapaxes(J, 1, 2) @ J
        # entry (j p, l q) is the sum over pairs of c_j c_l J_p'J_q
        weights = (c[:, :, None] * c[:, None, :]).reshape(n, k * k)
        blocks = (weights.T @ squares.reshape(n, p * p)).reshape(k, k, p, p)
        own = np.einsum("ndi,ndp->nip", by_c, J)
        pulls = np.einsum("ndp,nd->np", J, missed)
        return cls(
            generators=blocks.transpose(0, 2, 1, 3).reshape(k * p, k * p),
            mixed=(own[:, :, None, :] * c[:, None, :, None]).reshape(n, k, k * p),
            coefficients=np.swapaxes(by_c, 1, 2) @ by_c,
            push_generators=(c.T @ pulls).ravel(),
            push_coefficients=np.einsum("ndi,nd->ni", by_c, missed),
        )

    def step(self, damping: float) -> tuple[Array, Array]:
        """Change of the generators (k, p) and of the coefficients (n, k)."""
        n, k, n_unknowns = self.mixed.shape
        tiny = np.finfo(float).tiny
        size = np.trace(self.coefficients, axis1=1, axis2=2).mean() / k + tiny
        own = self.coefficients + damping * size * np.eye(k)
        right = np.concatenate([self.mixed, self.push_coefficients[:, :, None]], axis=2)
        solved = np.linalg.solve(own, right)
        mixed = self.mixed.reshape(n * k, n_unknowns)
        reduced = self.generators - mixed.T @ solved[:, :, :-1].reshape(n * k, n_unknowns)
        push = self.push_generators - mixed.T @ solved[:, :, -1].ravel()
        size = np.trace(self.generators) / n_unknowns + tiny
        # the rest keeps what no residual sees, such as a turn of the basis, where it is
        reduced[np.diag_indices(n_unknowns)] += (damping + 1e-13) * size
        change = np.linalg.solve(reduced, push)
        by_coefficients = solved[:, :, -1] - solved[:, :, :-1] @ change
        return np.asarray(change.reshape(k, -1)), np.asarray(by_coefficients)


def _by_gradients(
    space: MatrixSpace, pairs: Pairs, run: Run, *, max_iter: int, tol: float, report: Report
) -> Run:
    shape, (n, k) = run.generators.shape, run.coefficients.shape
    # Coefficients count for one pair and generators for all: alike in scale, they turn alike.
    weight = max(float(np.sqrt(np.mean(run.coefficients**2))), 1e-6)

    def unpacked(vector: Array) -> tuple[Array, Array]:
        inner, outer = vector[: shape[0] * shape[1]], vector[shape[0] * shape[1] :]
        return inner.reshape(shape) / weight, outer.reshape(n, k)

    def cost(vector: Array) -> tuple[float, Array]:
        generators, coefficients = unpacked(vector)
        try:
            value, by_V, by_c = squared_orbit_gradient(
                space.matrices(generators), coefficients, pairs.targets, pairs.sources
            )
        except ValueError:  # beyond the floats
            return np.inf, np.zeros_like(vector)
        by_generators = space.coordinates(by_V) / weight
        return value, np.concatenate([by_generators.ravel(), by_c.ravel()])

    def step(intermediate_result: object) -> None:
        value = float(intermediate_result.fun)  # type: ignore[attr-defined]
        generators, coefficients = unpacked(intermediate_result.x)  # type: ignore[attr-defined]
        run.generators, run.coefficients = _orthonormal(generators, coefficients)
        run.path.append(min(value, run.cost))
        report(run)

    start = np.concatenate([weight * run.generators.ravel(), run.coefficients.ravel()])
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": tol, "gtol": 1e-12}
    found = minimize(cost, start, jac=True, method="L-BFGS-B", callback=step, options=options)
    run.converged = bool(found.success) or run.cost <= EXACT * n
    return run


def _cost(V: Array, coefficients: Array, pairs: Pairs) -> float:
    """Squared distances left; infinite where a trial step leads beyond the floats."""
    try:
        return squared_orbit_cost(V, coefficients, pairs.targets, pairs.sources)
    except ValueError:
        return np.inf


def _orthonormal(generators: Array, coefficients: Array) -> tuple[Array, Array]:
    """Orthonormal basis of the same span, and the coefficients in it."""
    Q, R = np.linalg.qr(generators.T)
    return np.ascontiguousarray(Q.T), coefficients @ R.T
