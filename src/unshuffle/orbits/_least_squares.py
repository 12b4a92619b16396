"""Least squares for generators and coefficients: one descent from one start."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from unshuffle._core.matrix_exponentials import matrices_of, matrix_norms
from unshuffle._run.types import Floats
from unshuffle.orbits._exponential_derivatives import action, jacobian, pullback
from unshuffle.orbits._problem import MatrixSpace, VectorPairs

EXACT = 1e-26  # cost per pair, relative to squared lengths, that counts as zero
_MOST_UNKNOWNS = 300  # largest dense system, in numbers over all generators
_MOST_DERIVATIVES = 20_000_000  # largest Jacobian
_BLOCK = 2_000_000  # numbers in a stack of matrices
_MAX_NORM = 12.0  # largest 1-norm of a matrix; the time of its exponential grows with it


@dataclass
class Descent:
    """State of one descent."""

    generators: Floats  # orthonormal coordinates, (k, p)
    coefficients: Floats  # of each pair, (n, k)
    path: list[float]  # cost at the start and after each step; never rises
    converged: bool = False

    @property
    def cost(self) -> float:
        """Current cost."""
        return self.path[-1]


Report = Callable[[Descent], None]


def start_descent(space: MatrixSpace, pairs: VectorPairs, generators: Floats) -> Descent:
    """Fit the coefficients of given generators, which stay fixed."""
    V = space.matrices(generators)
    start = _linear_coefficients(V, pairs.targets, pairs.sources)
    first = _cost(V, start, pairs)
    found, squares = fit_coefficients(
        V, pairs.targets, pairs.sources, start, max_iter=10, tol=1e-6
    )
    return Descent(generators, found, [first, min(float(squares.sum()), first)])


def descend(
    space: MatrixSpace,
    pairs: VectorPairs,
    run: Descent,
    *,
    max_iter: int,
    tol: float,
    report: Report,
) -> Descent:
    """Continue a descent, in place, over generators and coefficients together.

    Uses Levenberg-Marquardt with the coefficients eliminated, or L-BFGS where that system would be
    too large. Stops when the cost falls by less than the fraction `tol` twice in a row. `report`
    is called after every step and may raise to stop.
    """
    small = run.generators.size <= _MOST_UNKNOWNS
    few = pairs.targets.size * space.n_dimensions <= _MOST_DERIVATIVES
    method = _levenberg_marquardt if small and few else _lbfgs
    return method(space, pairs, run, max_iter=max_iter, tol=tol, report=report)


def order_generators(run: Descent) -> Descent:
    """Order the generators by mean squared coefficients; the largest coordinate is positive."""
    generators, coefficients = _orthonormalize(run.generators, run.coefficients)
    few_pairs = len(coefficients) < len(generators)  # then complete the basis
    turn = np.linalg.svd(coefficients, full_matrices=few_pairs)[2]
    generators, coefficients = turn @ generators, coefficients @ turn.T
    largest = np.abs(generators).argmax(axis=1)
    signs = np.where(generators[np.arange(len(generators)), largest] < 0, -1.0, 1.0)
    return Descent(generators * signs[:, None], coefficients * signs, run.path, run.converged)


def _levenberg_marquardt(
    space: MatrixSpace,
    pairs: VectorPairs,
    run: Descent,
    *,
    max_iter: int,
    tol: float,
    report: Report,
) -> Descent:
    basis, damping, n_small = space.basis(), 1e-3, 0
    for _ in range(max_iter):
        if run.cost <= EXACT * len(pairs.targets):
            run.converged = True
            break
        system = _NormalEquations.at(space, pairs, run, basis)
        while damping < 1e8:
            by_generators, by_coefficients = system.step(damping)
            generators = run.generators + by_generators
            V = space.matrices(generators)
            coefficients = _limit_norms(V, run.coefficients + by_coefficients)
            cost = _cost(V, coefficients, pairs)
            if cost < run.cost:
                break
            damping *= 4.0
        else:
            run.converged = True  # not even a tiny step lowers the cost
            break
        n_small = n_small + 1 if run.cost - cost <= tol * run.cost else 0
        run.generators, run.coefficients = _orthonormalize(generators, coefficients)
        run.path.append(cost)
        damping = max(damping / 5.0, 1e-12)
        report(run)
        if n_small >= 2:
            run.converged = True
            break
    return run


@dataclass(frozen=True)
class _NormalEquations:
    """Normal equations of one step: a block for all generators and a block for each pair."""

    generators: Floats  # (kp, kp)
    mixed: Floats  # (n, k, kp)
    coefficients: Floats  # (n, k, k)
    gradient_generators: Floats  # (kp,)
    gradient_coefficients: Floats  # (n, k)

    @classmethod
    def at(
        cls, space: MatrixSpace, pairs: VectorPairs, run: Descent, basis: Floats
    ) -> "_NormalEquations":
        """Linearize the residuals at the current state."""
        V, c = space.matrices(run.generators), run.coefficients
        n, k = c.shape
        moved, J = jacobian(matrices_of(V, c), pairs.sources, basis)
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
            gradient_generators=(c.T @ pulls).ravel(),
            gradient_coefficients=np.einsum("ndi,nd->ni", by_c, missed),
        )

    def step(self, damping: float) -> tuple[Floats, Floats]:
        """Changes of the generators (k, p) and of the coefficients (n, k)."""
        n, k, n_unknowns = self.mixed.shape
        tiny = np.finfo(float).tiny
        size = np.trace(self.coefficients, axis1=1, axis2=2).mean() / k + tiny
        own = self.coefficients + damping * size * np.eye(k)
        right = np.concatenate([self.mixed, self.gradient_coefficients[:, :, None]], axis=2)
        solved = np.linalg.solve(own, right)
        mixed = self.mixed.reshape(n * k, n_unknowns)
        reduced = self.generators - mixed.T @ solved[:, :, :-1].reshape(n * k, n_unknowns)
        push = self.gradient_generators - mixed.T @ solved[:, :, -1].ravel()
        size = np.trace(self.generators) / n_unknowns + tiny
        # 1e-13 fixes directions that change no residual, such as a rotation of the basis
        reduced[np.diag_indices(n_unknowns)] += (damping + 1e-13) * size
        change = np.linalg.solve(reduced, push)
        by_coefficients = solved[:, :, -1] - solved[:, :, :-1] @ change
        return np.asarray(change.reshape(k, -1)), np.asarray(by_coefficients)


def _lbfgs(
    space: MatrixSpace,
    pairs: VectorPairs,
    run: Descent,
    *,
    max_iter: int,
    tol: float,
    report: Report,
) -> Descent:
    shape, (n, k) = run.generators.shape, run.coefficients.shape
    # A coefficient affects one pair, a generator all pairs: bring both to one scale.
    weight = max(float(np.sqrt(np.mean(run.coefficients**2))), 1e-6)

    def unpack(vector: Floats) -> tuple[Floats, Floats]:
        inner, outer = vector[: shape[0] * shape[1]], vector[shape[0] * shape[1] :]
        return inner.reshape(shape) / weight, outer.reshape(n, k)

    def cost(vector: Floats) -> tuple[float, Floats]:
        generators, coefficients = unpack(vector)
        with np.errstate(all="ignore"):
            value, by_V, by_c = squared_error(space.matrices(generators), coefficients, pairs)
        if not (np.isfinite(value) and np.isfinite(by_V).all() and np.isfinite(by_c).all()):
            return np.inf, np.zeros_like(vector)  # the trial step overflowed
        by_generators = space.coordinates(by_V) / weight
        return value, np.concatenate([by_generators.ravel(), by_c.ravel()])

    def step(intermediate_result: object) -> None:
        value = float(intermediate_result.fun)  # type: ignore[attr-defined]
        generators, coefficients = unpack(intermediate_result.x)  # type: ignore[attr-defined]
        run.generators, run.coefficients = _orthonormalize(generators, coefficients)
        run.path.append(min(value, run.cost))
        report(run)

    start = np.concatenate([weight * run.generators.ravel(), run.coefficients.ravel()])
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": tol, "gtol": 1e-12}
    found = minimize(cost, start, jac=True, method="L-BFGS-B", callback=step, options=options)
    run.converged = bool(found.success) or run.cost <= EXACT * n
    return run


def connect(generators: Floats, targets: Floats, sources: Floats) -> Floats:
    """Coefficients that move the source of each pair closest to its target, a local optimum."""
    block = max(1, _BLOCK // targets.shape[1] ** 2)
    parts = []
    for first in range(0, len(targets), block):
        x, z = targets[first : first + block], sources[first : first + block]
        start = _linear_coefficients(generators, x, z)
        parts.append(fit_coefficients(generators, x, z, start)[0])
    return np.concatenate(parts)


def fit_coefficients(
    generators: Floats,
    targets: Floats,
    sources: Floats,
    start: Floats,
    *,
    max_iter: int = 50,
    tol: float = 1e-12,
    max_norm: float = _MAX_NORM,
) -> tuple[Floats, Floats]:
    """Minimize |x - exp(sum c V) x'|^2 over the coefficients c of each pair, from `start`.

    Levenberg-Marquardt for all pairs at once; a pair is done when its squared distance falls by
    less than the fraction `tol`. Also returns the squared distances.
    """
    k, unit = len(generators), np.eye(len(generators))
    found = start.copy()
    best = _squares(generators, found, targets, sources, axis=1)
    scale = np.maximum(np.sum(targets**2, axis=1), np.finfo(float).tiny)
    damping = np.full(len(found), 1e-3)
    active = np.flatnonzero(best > 1e-30 * scale)
    for _ in range(max_iter):
        if not active.size:
            break
        c, x, z = found[active], targets[active], sources[active]
        moved, J = jacobian(matrices_of(generators, c), z, generators)
        H = np.swapaxes(J, 1, 2) @ J
        size = np.trace(H, axis1=1, axis2=2) / k
        H += (damping[active] * size + np.finfo(float).tiny)[:, None, None] * unit
        push = np.einsum("ndk,nd->nk", J, x - moved)
        step = np.linalg.solve(H, push[:, :, None])[:, :, 0]
        trial = _limit_norms(generators, c + step, max_norm)
        squares = _squares(generators, trial, x, z, axis=1)
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


def _limit_norms(generators: Floats, coefficients: Floats, max_norm: float = _MAX_NORM) -> Floats:
    """Shorten coefficients whose matrix has a 1-norm above `max_norm`."""
    norms = np.maximum(matrix_norms(generators, coefficients), 1e-300)
    return np.asarray(coefficients * np.minimum(1.0, max_norm / norms)[:, None])


def _linear_coefficients(generators: Floats, targets: Floats, sources: Floats) -> Floats:
    """Coefficients from the linearization x - x' = sum c V (x + x') / 2."""
    middle = 0.5 * (targets + sources)
    flows = np.einsum("kij,nj->nik", generators, middle)
    inverse = np.linalg.pinv(
        flows, rcond=0.05
    )  # small singular values would give huge coefficients
    return _limit_norms(generators, np.einsum("nki,ni->nk", inverse, targets - sources))


def _cost(V: Floats, coefficients: Floats, pairs: VectorPairs) -> float:
    """Sum of squared distances; infinite if a trial step overflows."""
    total = float(_squares(V, coefficients, pairs.targets, pairs.sources, axis=None))
    return total if np.isfinite(total) else np.inf


def _squares(
    V: Floats, coefficients: Floats, targets: Floats, sources: Floats, *, axis: int | None
) -> Floats:
    """Squared distances, summed over `axis`; not finite if a trial step overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        missed = targets - action(matrices_of(V, coefficients), sources)
        return np.asarray(np.sum(missed**2, axis=axis))


def _orthonormalize(generators: Floats, coefficients: Floats) -> tuple[Floats, Floats]:
    """Orthonormal basis of the span of the generators, and the coefficients in it."""
    Q, R = np.linalg.qr(generators.T)
    return np.ascontiguousarray(Q.T), coefficients @ R.T


def squared_error(
    V: Floats, coefficients: Floats, pairs: VectorPairs
) -> tuple[float, Floats, Floats]:
    """Sum of |x - exp(sum c V) x'|^2 over pairs, and its gradients by V and by c."""
    A = matrices_of(V, coefficients)
    missed = action(A, pairs.sources) - pairs.targets
    _, by_matrix = pullback(A, pairs.sources, 2.0 * missed)
    by_generators = np.tensordot(coefficients, by_matrix, axes=(0, 0))
    by_coefficients = np.tensordot(by_matrix, V, axes=((1, 2), (1, 2)))
    return float(np.sum(missed**2)), np.asarray(by_generators), np.asarray(by_coefficients)
