import numpy as np
import pytest
from scipy.linalg import expm, expm_frechet

from unshuffle._core.matrix_exponentials import exponentials
from unshuffle.orbits._exponential_derivatives import action, jacobian, pullback

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
    assert np.all(np.abs(exponentials(A) - expected).max(axis=(1, 2)) < 1e-11 * scale)
    missed = action(A, z) - np.einsum("nij,nj->ni", expected, z)
    assert np.all(np.abs(missed).max(axis=1) < 1e-11 * scale)


def test_exponentials_do_not_depend_on_what_stands_beside_them():
    small, large = matrices(0.1), 1e4 * (matrices() - matrices().transpose(0, 2, 1))
    both = exponentials(np.concatenate([small, large]))[: len(small)]
    np.testing.assert_array_equal(both, exponentials(small))


def test_an_exponential_that_overflows_leaves_others_finite():
    with np.errstate(all="ignore"):
        found = exponentials(np.array([[[1.0]], [[1e4]], [[1e305]]]))
    assert np.isfinite(found[0]).all()
    assert not np.isfinite(found[1:]).any()
    turn = 2 * np.pi * 1e5 * np.array([[[0.0, -1.0], [1.0, 0.0]]])
    np.testing.assert_allclose(exponentials(turn)[0], np.eye(2), atol=1e-6)


@pytest.mark.parametrize("angle", [300.0, 1e5, 1e8])
def test_long_turns_take_no_longer_than_short_ones(angle):
    # Step by step, a norm of 1e5 took 65,536 steps of 25 terms.
    plane = np.array([[0.0, -1.0], [1.0, 0.0]])
    A, z, w = angle * plane[None], np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])
    turned = np.array([[np.cos(angle), np.sin(angle)]])
    atol = 1e-14 * angle
    np.testing.assert_allclose(action(A, z), turned, atol=atol)
    moved, derivative = jacobian(A, z, np.stack([plane, np.eye(2)]))
    np.testing.assert_allclose(moved, turned, atol=atol)
    np.testing.assert_allclose(
        derivative[0], np.column_stack([plane @ turned[0], turned[0]]), atol=atol
    )
    moved, gradient = pullback(A, z, w)
    np.testing.assert_allclose(moved, turned, atol=atol)
    np.testing.assert_allclose(np.sum(gradient[0] * plane), w[0] @ plane @ turned[0], atol=atol)


@pytest.mark.parametrize("size", [800.0, 1e5, 1e12, 1e300, np.inf, np.nan])
def test_what_overflows_is_never_finite(size):
    A, z = np.diag([size, 1.0])[None], np.ones((1, 2))
    with np.errstate(all="ignore"):
        for found in (
            exponentials(A),
            action(A, z),
            jacobian(A, z, np.eye(2)[None])[1],
            pullback(A, z, z)[1],
        ):
            assert not np.isfinite(found).all()


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
    moved, derivative = jacobian(A, z, directions)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(derivative.transpose(0, 2, 1), expected, atol=1e-12 * scale)
    np.testing.assert_allclose(moved, action(A, z), rtol=1e-10, atol=1e-12)
    again, gradient = pullback(A, z, w)
    np.testing.assert_allclose(again, moved, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        np.einsum("nij,qij->nq", gradient, directions),
        np.einsum("ni,nqi->nq", w, expected),
        atol=1e-12 * scale,
    )


def test_a_pair_is_moved_the_same_way_alone_and_beside_others():
    A, z = matrices(), vectors()
    for n in range(len(A)):
        np.testing.assert_allclose(action(A[n : n + 1], z[n : n + 1])[0], action(A, z)[n])
