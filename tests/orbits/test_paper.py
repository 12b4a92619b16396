"""Formulas of the paper that are wrong as printed, each beside the right one."""

import numpy as np
import pytest
from scipy.linalg import expm

from unshuffle.orbits._paper import log_trace_errors, log_trace_errors_diagonal, matrix_volume


def test_the_minimum_of_the_bound_has_twice_the_printed_last_term():
    rng = np.random.default_rng(0)
    n, p, weight = 5, 3, 0.7
    a, d = rng.normal(size=(2, n, p))
    root = rng.normal(size=(p, p))
    M = root @ root.T

    def bound(x):  # of the first vector, the others fixed
        moved = np.vstack([x, a[1:]])
        total = moved.sum(axis=0)
        volume = np.einsum("ni,ij,nj", moved, M, moved) / n - total @ M @ total / n**2
        return volume + weight * (0.5 * np.sum((x - a[0]) ** 2) + (x - a[0]) @ d[0])

    system = (2 / n - 2 / n**2) * M + weight * np.eye(p)
    pulled = weight * (a[0] - d[0])
    right = np.linalg.solve(system, pulled + 2 / n**2 * M @ a[1:].sum(axis=0))
    printed = np.linalg.solve(system, pulled + 1 / n**2 * M @ a[1:].sum(axis=0))
    for direction in np.eye(p):
        assert bound(right + 1e-4 * direction) > bound(right)
        assert bound(right - 1e-4 * direction) > bound(right)
    assert bound(printed) > bound(right) + 1e-4


def test_a_common_matrix_is_free_in_the_centered_volume():
    a = np.random.default_rng(1).normal(size=(7, 4))
    moved = a + 100.0
    np.testing.assert_allclose(np.cov(a.T), np.cov(moved.T))
    assert (
        matrix_volume(moved, eps1=0.1, eps2=0.1)[0] > matrix_volume(a, eps1=0.1, eps2=0.1)[0] + 1
    )


@pytest.mark.parametrize(("product", "convex"), [(0.12, False), (0.125, True), (0.2, True)])
def test_the_volume_is_convex_from_an_eighth_on(product, convex):
    eps1 = 0.3
    at = np.linspace(-3, 3, 6001)[:, None, None]
    values = np.array([matrix_volume(a, eps1=eps1, eps2=product / eps1)[0] for a in at])
    second = np.diff(values, 2)
    assert (second.min() > -1e-12) == convex


def test_the_error_of_symmetric_matrices_is_not_convex():
    A, B = np.diag([7.7, -2.99]), np.array([[8.28, -3.89], [-3.89, 2.65]])
    x, z = np.array([[1.132, 0.113]]), np.array([[1.123, 2.203]])
    ends = [log_trace_errors(each[None], x, z)[0][0] for each in (A, B)]
    middle = log_trace_errors((A + B)[None] / 2, x, z)[0][0]
    assert middle > np.mean(ends) + 2
    diagonals = np.random.default_rng(0).normal(size=(2, 50, 2))
    ends = [log_trace_errors_diagonal(3 * each, x, z)[0] for each in diagonals]
    middle = log_trace_errors_diagonal(1.5 * diagonals.sum(axis=0), x, z)[0]
    assert (middle <= np.mean(ends, axis=0) + 1e-12).all()


def test_the_printed_slope_is_the_middle_of_the_integral():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(3, 3))
    A = A + A.T
    x, z = rng.random((2, 1, 3))

    def integrand(s):
        on = expm(s * A) @ np.outer(z, z) @ expm((1 - s) * A)
        back = expm(-s * A) @ np.outer(x, x) @ expm(-(1 - s) * A)
        return (on - back) / (x @ expm(-A) @ x.T + z @ expm(A) @ z.T).item()

    nodes, weights = np.polynomial.legendre.leggauss(20)
    whole = sum(w / 2 * integrand((1 + s) / 2) for s, w in zip(nodes, weights, strict=True))
    exact = log_trace_errors(A[None], x, z)[1][0]
    np.testing.assert_allclose(exact, whole, atol=1e-10)
    assert np.linalg.norm(integrand(0.5) - exact) > 0.05 * np.linalg.norm(exact)


def test_the_curvature_exceeds_one_for_symmetric_matrices():
    A = np.diag([8.0, 0.0])[None]
    x, z = np.array([[1.0, 1.0]]), np.array([[0.001, 1.0]])
    D = np.array([[[0.0, 1.0], [1.0, 0.0]]]) / np.sqrt(2)
    down, here, up = (log_trace_errors(A + t * D, x, z)[0][0] for t in (-1e-3, 0.0, 1e-3))
    assert (down - 2 * here + up) / 1e-6 > 5
