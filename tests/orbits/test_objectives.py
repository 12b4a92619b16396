import numpy as np
import pytest
from scipy.optimize import check_grad

from unshuffle.orbits._least_squares import squared_error
from unshuffle.orbits._paper import log_trace_errors, log_trace_errors_diagonal, matrix_volume
from unshuffle.orbits._problem import VectorPairs


def pairs(targets, sources):
    return VectorPairs(np.zeros((len(targets), 2), dtype=int), targets, sources)


def vectors(n=6, d=4, seed=1):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_the_squared_cost_is_zero_on_an_orbit_and_known_off_it():
    V = np.array([[[0.0, -1.0], [1.0, 0.0]]])
    z = np.array([[1.0, 0.0], [0.0, 2.0]])
    turned = np.array([[0.0, 1.0], [-2.0, 0.0]])
    quarter = np.full((2, 1), np.pi / 2)
    assert squared_error(V, quarter, pairs(turned, z))[0] == pytest.approx(0.0, abs=1e-28)
    assert squared_error(V, 0 * quarter, pairs(turned, z))[0] == pytest.approx(2.0 + 8.0)


def test_the_gradient_of_the_squared_cost_agrees_with_finite_differences():
    rng = np.random.default_rng(0)
    x, z, V, c = vectors(), vectors(seed=2), rng.normal(size=(2, 4, 4)), rng.normal(size=(6, 2))

    def both(flat):
        return squared_error(flat[:32].reshape(2, 4, 4), flat[32:].reshape(6, 2), pairs(x, z))

    def cost(flat):
        return both(flat)[0]

    def gradient(flat):
        found = both(flat)
        assert found[0] == pytest.approx(cost(flat))
        return np.concatenate([found[1].ravel(), found[2].ravel()])

    start = 0.3 * np.concatenate([V.ravel(), c.ravel()])
    assert check_grad(cost, gradient, start) < 1e-5 * np.linalg.norm(gradient(start))


@pytest.mark.parametrize("gap", [0.0, 1e-9, 0.05, 1.0, 8.0])
def test_the_gradient_of_the_log_trace_error_agrees_with_finite_differences(gap):
    rng = np.random.default_rng(0)
    x, z = vectors(n=1, d=3), vectors(n=1, d=3, seed=2)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    A = (Q * np.array([0.4, 0.4 + gap, -1.0])) @ Q.T
    _, slopes = log_trace_errors(A[None], x, z)
    for seed in range(4):
        D = np.random.default_rng(seed).normal(size=(3, 3))
        D = D + D.T
        ends = [log_trace_errors((A + t * D)[None], x, z)[0][0] for t in (1e-5, -1e-5)]
        slope = np.sum(slopes[0] * D)
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)
    np.testing.assert_allclose(slopes[0], slopes[0].T, atol=1e-14)


def test_the_log_trace_error_is_least_where_the_pair_is_carried():
    x, z = np.array([[2.0, 3.0]]), np.array([[1.0, 6.0]])
    diagonal = np.log(x / z)
    errors, slopes = log_trace_errors_diagonal(diagonal, x, z)
    assert errors[0] == pytest.approx(np.log(2 * np.sum(x * z)))
    np.testing.assert_allclose(slopes, 0.0, atol=1e-14)
    both, full = log_trace_errors(np.diag(diagonal[0])[None], x, z)
    assert both[0] == pytest.approx(errors[0])
    np.testing.assert_allclose(full, 0.0, atol=1e-14)


def test_diagonal_errors_agree_with_those_of_full_matrices():
    rng = np.random.default_rng(0)
    a, x, z = rng.normal(size=(5, 3)), vectors(5, 3), vectors(5, 3, seed=2)
    errors, slopes = log_trace_errors_diagonal(a, x, z)
    expected, full = log_trace_errors(a[:, :, None] * np.eye(3), x, z)
    np.testing.assert_allclose(errors, expected)
    np.testing.assert_allclose(slopes, np.diagonal(full, axis1=1, axis2=2))


def test_huge_matrices_have_finite_errors():
    A = np.diag([2000.0, -1500.0, 0.0])[None]
    errors, slopes = log_trace_errors(A, np.ones((1, 3)), np.ones((1, 3)))
    assert errors[0] == pytest.approx(2000.0)
    assert np.isfinite(slopes).all()


def test_the_gradient_of_the_volume_agrees_with_finite_differences():
    a = np.random.default_rng(0).normal(size=(7, 4))
    a[:, 3] = a[:, 0]  # one direction is empty

    def volume(flat):
        return matrix_volume(flat.reshape(7, 4), eps1=0.01, eps2=0.1)[0]

    def gradient(flat):
        return matrix_volume(flat.reshape(7, 4), eps1=0.01, eps2=0.1)[1].ravel()

    assert check_grad(volume, gradient, a.ravel()) < 1e-4
    values = np.linalg.eigvalsh(a.T @ a / 7)
    expected = np.sum(np.log(values + 0.01)) + 0.1 * np.sum(values)
    assert volume(a.ravel()) == pytest.approx(expected)
