import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unshuffle.kernels import (
    SpectralPower,
    center,
    rbf_kernel,
    spectral_power,
    spectral_power_path,
    unit_norm,
    zero_diagonal,
)

factors = arrays(
    np.float64,
    st.tuples(st.integers(2, 10), st.integers(1, 4)),
    elements=st.floats(-10, 10, allow_subnormal=False).map(lambda v: round(v, 3)),
)


@pytest.fixture
def K():
    return rbf_kernel(np.random.default_rng(0).normal(size=(25, 3)))


def explicit_center(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def test_center_agrees_with_the_formula(K):
    np.testing.assert_allclose(center(K), explicit_center(K), atol=1e-14)


@given(factors)
def test_centering_twice_changes_nothing(F):
    once = center(F @ F.T)
    assert np.array_equal(once, once.T)
    scale = 1 + np.abs(F @ F.T).max()
    np.testing.assert_allclose(once.sum(axis=0) / scale, 0, atol=1e-12)
    np.testing.assert_allclose(center(once) / scale, once / scale, atol=1e-12)


@given(factors, st.floats(-50, 50))
def test_centering_ignores_a_shift_of_the_features(F, shift):
    moved = F + shift
    scale = 1 + np.abs(moved @ moved.T).max()
    np.testing.assert_allclose(
        center(moved @ moved.T) / scale, center(F @ F.T) / scale, atol=1e-12
    )


def test_order_of_centering_and_zeroing_matters(K):
    after, before = zero_diagonal(center(K)), center(zero_diagonal(K))
    assert np.abs(np.diag(before)).min() > 1e-3
    assert np.abs(after - before).max() > 1e-3


def test_zero_diagonal_keeps_the_rest_and_the_input(K):
    kept = K.copy()
    Z = zero_diagonal(K)
    assert (np.diag(Z) == 0).all()
    assert np.array_equal(Z + np.diag(np.diag(K)), K)
    center(K)
    unit_norm(K)
    assert np.array_equal(K, kept)


def test_unit_norm_has_unit_centered_norm(K):
    assert np.linalg.norm(center(unit_norm(K))) == pytest.approx(1)
    np.testing.assert_allclose(unit_norm(K), unit_norm(100 * K))


@pytest.mark.parametrize("constant", [0.0, 1.0, 1 / 3])
def test_unit_norm_refuses_a_constant_matrix(constant):
    with pytest.raises(ValueError, match="kernel matrix of L is zero after centering"):
        unit_norm(np.full((7, 7), constant), name="L")


def test_spectral_powers_agree_with_products(K):
    centered = explicit_center(K)
    np.testing.assert_allclose(spectral_power(K, 1), centered, atol=1e-12)
    np.testing.assert_allclose(spectral_power(K, 2), centered @ centered, atol=1e-12)
    root = spectral_power(K, 0.5)
    np.testing.assert_allclose(root @ root, centered, atol=1e-12)
    assert np.array_equal(root, root.T)


def test_one_decomposition_serves_all_exponents(K):
    power = SpectralPower(K)
    for exponent, matrix in zip(
        [1, 0.5, 0.25], spectral_power_path(K, [1, 0.5, 0.25]), strict=True
    ):
        np.testing.assert_allclose(matrix, power(exponent))
        np.testing.assert_allclose(matrix, spectral_power(K, exponent))


def test_spectral_power_drops_negative_eigenvalues():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(12, 12))
    K = K + K.T
    values, vectors = np.linalg.eigh(explicit_center(K))
    expected = (vectors * np.clip(values, 0, None)) @ vectors.T
    np.testing.assert_allclose(spectral_power(K, 1), expected, atol=1e-10)


def test_small_powers_do_not_blow_up_rounding_error():
    F = np.random.default_rng(0).normal(size=(40, 2)) + 10
    power = SpectralPower(F @ F.T)
    assert power.eigenvalues_.shape == (2,)
    assert np.linalg.matrix_rank(power(0.25)) == 2
    assert SpectralPower(np.ones((5, 5)) / 3)(0.25).max() == 0


@given(factors, st.integers(0, 99))
def test_reordering_commutes_with_powers(F, seed):
    K = F @ F.T
    order = np.random.default_rng(seed).permutation(len(K))
    shuffled = np.ix_(order, order)
    scale = 1 + np.abs(K).max()
    np.testing.assert_allclose(
        spectral_power(K[shuffled] / scale, 0.5),
        spectral_power(K / scale, 0.5)[shuffled],
        atol=1e-6,
    )


@pytest.mark.parametrize("exponent", [0, -1, np.nan, np.inf, "1"])
def test_bad_exponents_are_refused(K, exponent):
    with pytest.raises(ValueError, match="`exponent` must be a finite number above 0"):
        spectral_power(K, exponent)


@pytest.mark.parametrize("function", [center, zero_diagonal, unit_norm, SpectralPower])
@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((2, 3)), "square"),
        ([[1.0, 2.0], [3.0, 1.0]], "not symmetric"),
        ([[1.0, np.nan], [np.nan, 1.0]], "NaN"),
        ([[1.0, np.inf], [np.inf, 1.0]], "infinity"),
        ([[1.0]], "at least two items"),
        ([1.0, 2.0], "must be 2-D"),
        (np.eye(2) * 1j, "Complex"),
    ],
)
def test_bad_matrices_are_refused(function, K, message):
    with pytest.raises(ValueError, match=message):
        function(K)


@pytest.mark.parametrize("exponent", [1e300, 1e3, -1.0, 0.0, np.nan, np.inf])
def test_powers_beyond_the_floats_are_refused_by_name(exponent):
    with pytest.raises(ValueError, match="`exponent`"):
        spectral_power(np.diag([4.0, 3.0, 2.0]), exponent)


@pytest.mark.parametrize("exponent", [5e-324, 1e-300, 1e-9])
def test_tiny_powers_give_the_projection_onto_what_varies(exponent):
    expected = np.eye(3) - 1.0 / 3.0
    np.testing.assert_allclose(
        spectral_power(np.diag([4.0, 3.0, 2.0]), exponent), expected, atol=1e-8
    )


@pytest.mark.parametrize("constant", [1e6, 1e12])
def test_a_constant_far_above_the_similarities_leaves_them_their_digits(constant):
    X = np.random.default_rng(0).normal(size=(20, 3))
    K = X @ X.T + constant
    np.testing.assert_array_equal(center(K), center(K - constant))
    expected = np.linalg.norm(center(K - constant))
    assert K[0, 0] / unit_norm(K)[0, 0] == pytest.approx(expected, rel=1e-9)
