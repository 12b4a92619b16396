import numpy as np
import pytest
from scipy.linalg import expm, expm_frechet
from scipy.optimize import check_grad

from unshuffle.objectives import (
    exponential_action,
    exponential_jacobian,
    exponential_pullback,
    log_trace_errors,
    log_trace_errors_diagonal,
    matrix_exponentials,
    matrix_volume,
    squared_orbit_cost,
    squared_orbit_gradient,
)

JORDAN = np.eye(4, k=1)  # has one eigenvector


def matrices(size=1.5, n=6, d=4, seed=0):
    stack = size * np.random.default_rng(seed).normal(size=(n, d, d))
    stack[0], stack[1] = size * JORDAN, 0.0
    return stack


def vectors(n=6, d=4, seed=1):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("size", [1e-8, 0.1, 1.5, 6.0])
def test_exponentials_and_their_action_agree_with_scipy(size):
    A, z = matrices(size), vectors()
    expected = np.array([expm(each) for each in A])
    scale = np.abs(expected).max(axis=(1, 2))
    assert np.all(np.abs(matrix_exponentials(A) - expected).max(axis=(1, 2)) < 1e-11 * scale)
    missed = exponential_action(A, z) - np.einsum("nij,nj->ni", expected, z)
    assert np.all(np.abs(missed).max(axis=1) < 1e-11 * scale)


def test_exponentials_do_not_depend_on_what_stands_beside_them():
    small, large = matrices(0.1), 1e4 * (matrices() - matrices().transpose(0, 2, 1))
    both = matrix_exponentials(np.concatenate([small, large]))[: len(small)]
    np.testing.assert_array_equal(both, matrix_exponentials(small))


def test_an_exponential_that_does_not_fit_is_refused_and_a_long_turn_is_not():
    with pytest.raises(ValueError, match="matrix 1 of `A` does not fit into a float"):
        matrix_exponentials(np.array([[[1.0]], [[1e4]]]))
    with pytest.raises(ValueError, match=r"Matrix 0 of `A` has the 1-norm 1e\+305"):
        matrix_exponentials(np.array([[[1e305]]]))
    turn = 2 * np.pi * 1e5 * np.array([[[0.0, -1.0], [1.0, 0.0]]])
    np.testing.assert_allclose(matrix_exponentials(turn)[0], np.eye(2), atol=1e-6)


@pytest.mark.parametrize("angle", [300.0, 1e5, 1e8])
def test_long_turns_take_no_longer_than_short_ones(angle):
    # Step by step, a norm of 1e5 took 65,536 steps of 25 terms.
    plane = np.array([[0.0, -1.0], [1.0, 0.0]])
    A, z, w = angle * plane[None], np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])
    turned = np.array([[np.cos(angle), np.sin(angle)]])
    atol = 1e-14 * angle
    np.testing.assert_allclose(exponential_action(A, z), turned, atol=atol)
    moved, jacobian = exponential_jacobian(A, z, np.stack([plane, np.eye(2)]))
    np.testing.assert_allclose(moved, turned, atol=atol)
    np.testing.assert_allclose(
        jacobian[0], np.column_stack([plane @ turned[0], turned[0]]), atol=atol
    )
    moved, gradient = exponential_pullback(A, z, w)
    np.testing.assert_allclose(moved, turned, atol=atol)
    np.testing.assert_allclose(np.sum(gradient[0] * plane), w[0] @ plane @ turned[0], atol=atol)


@pytest.mark.parametrize("size", [800.0, 1e5, 1e12, 1e300, np.inf, np.nan])
def test_exponentials_beyond_the_floats_are_refused_by_name(size):
    A, z = np.diag([size, 1.0])[None], np.ones((1, 2))
    for refused in (
        lambda: matrix_exponentials(A),
        lambda: exponential_action(A, z),
        lambda: exponential_jacobian(A, z, np.eye(2)[None]),
        lambda: exponential_pullback(A, z, z),
        lambda: squared_orbit_cost(A, np.ones((1, 1)), z, z),
        lambda: squared_orbit_gradient(A, np.ones((1, 1)), z, z),
    ):
        with pytest.raises(ValueError, match=r"`A`|`generators`"):
            refused()


@pytest.mark.parametrize("size", [0.1, 1.5, 4.0])
def test_derivatives_agree_with_frechet_derivatives(size):
    A, z, w = matrices(size), vectors(), vectors(seed=2)
    directions = np.random.default_rng(3).normal(size=(5, 4, 4))
    expected = np.array(
        [
            [expm_frechet(each, D, compute_expm=False) @ x for D in directions]
            for each, x in zip(A, z, strict=True)
        ]
    )
    moved, jacobian = exponential_jacobian(A, z, directions)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(jacobian.transpose(0, 2, 1), expected, atol=1e-12 * scale)
    np.testing.assert_allclose(moved, exponential_action(A, z), rtol=1e-10, atol=1e-12)
    again, gradient = exponential_pullback(A, z, w)
    np.testing.assert_allclose(again, moved, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        np.einsum("nij,qij->nq", gradient, directions),
        np.einsum("ni,nqi->nq", w, expected),
        atol=1e-12 * scale,
    )


def test_a_pair_is_moved_the_same_way_alone_and_beside_others():
    A, z = matrices(), vectors()
    for n in range(len(A)):
        np.testing.assert_allclose(
            exponential_action(A[n : n + 1], z[n : n + 1])[0], exponential_action(A, z)[n]
        )


def test_the_squared_cost_is_zero_on_an_orbit_and_known_off_it():
    V = np.array([[[0.0, -1.0], [1.0, 0.0]]])
    z = np.array([[1.0, 0.0], [0.0, 2.0]])
    turned = np.array([[0.0, 1.0], [-2.0, 0.0]])
    quarter = np.full((2, 1), np.pi / 2)
    assert squared_orbit_cost(V, quarter, turned, z) == pytest.approx(0.0, abs=1e-28)
    assert squared_orbit_cost(V, 0 * quarter, turned, z) == pytest.approx(2.0 + 8.0)


def test_the_gradient_of_the_squared_cost_agrees_with_finite_differences():
    rng = np.random.default_rng(0)
    x, z, V, c = vectors(), vectors(seed=2), rng.normal(size=(2, 4, 4)), rng.normal(size=(6, 2))

    def cost(flat):
        return squared_orbit_cost(flat[:32].reshape(2, 4, 4), flat[32:].reshape(6, 2), x, z)

    def gradient(flat):
        found = squared_orbit_gradient(flat[:32].reshape(2, 4, 4), flat[32:].reshape(6, 2), x, z)
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


def test_wild_matrices_have_finite_errors():
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
