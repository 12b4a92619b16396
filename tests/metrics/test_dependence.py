import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from unshuffle.kernels import center, combined_gram, linear_kernel, rbf_kernel, zero_diagonal
from unshuffle.metrics import cka, hsic


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    return X, np.c_[X[:, :1] ** 2, rng.normal(size=(30, 1))]


def unbiased_by_sums(K, L):
    # The U-statistic over quadruples of different items, term by term.
    n = len(K)
    K, L = zero_diagonal(K), zero_diagonal(L)
    ones = np.ones(n)
    total = np.trace(K @ L)
    total += (ones @ K @ ones) * (ones @ L @ ones) / (n - 1) / (n - 2)
    total -= 2 / (n - 2) * (ones @ K @ L @ ones)
    return total / n / (n - 3)


def test_hsic_agrees_with_the_formulas(pair):
    K, L = rbf_kernel(pair[0]), rbf_kernel(pair[1])
    H = np.eye(30) - 1 / 30
    assert hsic(*pair) == pytest.approx(np.trace(H @ K @ H @ L) / 29**2)
    assert hsic(*pair, estimator="unbiased") == pytest.approx(unbiased_by_sums(K, L))
    zeroed = np.sum(zero_diagonal(center(K)) * zero_diagonal(center(L))) / 29**2
    assert hsic(*pair, estimator="zeroed") == pytest.approx(zeroed)


def test_kernels_and_widths_reach_both_sides(pair):
    X, y = pair
    K, L = rbf_kernel(X, gamma=0.2), linear_kernel(y)
    expected = hsic(K, L, kernel="precomputed")
    assert hsic(X, y, kernel="rbf", kernel_y="linear", gamma=0.2) == pytest.approx(expected)
    grams = [combined_gram(side, ["rbf", "linear"]) for side in pair]
    expected = hsic(*grams, kernel="precomputed")
    assert hsic(X, y, kernel=["rbf", "linear"]) == pytest.approx(expected)


def test_unbiased_hsic_is_zero_on_average():
    rng = np.random.default_rng(0)
    draws = [
        hsic(rng.normal(size=(8, 1)), rng.normal(size=(8, 1)), gamma=1.0, estimator="unbiased")
        for _ in range(400)
    ]
    assert abs(np.mean(draws)) < 3 * np.std(draws) / 20


@given(st.integers(0, 999), st.sampled_from(["biased", "zeroed", "unbiased"]))
def test_relabelling_both_sides_changes_nothing(seed, estimator):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    order = rng.permutation(12)
    value = hsic(X, y, estimator=estimator)
    assert hsic(X[order], y[order], estimator=estimator) == pytest.approx(value, abs=1e-12)
    assert hsic(y, X, estimator=estimator) == pytest.approx(value, abs=1e-12)


@given(st.integers(0, 999), st.floats(0.01, 100), st.floats(-100, 100), st.booleans())
def test_alignment_ignores_rotation_scale_and_shift(seed, scale, shift, debiased):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(10, 3)), rng.normal(size=(10, 2))
    moved = scale * X @ ortho_group.rvs(3, random_state=rng) + shift
    assert cka(X, moved, debiased=debiased) == pytest.approx(1)
    expected = cka(X, y, debiased=debiased)
    assert cka(moved, y, debiased=debiased) == pytest.approx(expected, abs=1e-6)


def test_alignment_agrees_with_the_feature_formula(pair):
    X, y = (side - side.mean(axis=0) for side in pair)
    expected = np.linalg.norm(y.T @ X) ** 2 / np.linalg.norm(X.T @ X) / np.linalg.norm(y.T @ y)
    assert cka(*pair) == pytest.approx(expected)


def test_debiasing_removes_chance_alignment():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 500)), rng.normal(size=(20, 500))
    assert cka(X, y) > 0.9
    assert abs(cka(X, y, debiased=True)) < 0.1


@pytest.mark.parametrize("metric", [hsic, cka])
def test_bad_pairs_are_refused(metric, pair):
    X, y = pair
    with pytest.raises(ValueError, match="X has 30 items and y has 29"):
        metric(X, y[1:])
    with pytest.raises(ValueError, match="Input y contains NaN"):
        metric(X, y * np.nan)
    with pytest.raises(ValueError, match="y holds strings"):
        metric(X, ["word"] * 30)
    with pytest.raises(ValueError, match="`kernel` must be one of"):
        metric(X, y, kernel="best")


def test_bad_estimators_and_sizes_are_refused(pair):
    with pytest.raises(ValueError, match="`estimator` must be one of"):
        hsic(*pair, estimator="best")
    X = np.arange(3.0)[:, None]
    with pytest.raises(ValueError, match="at least 4 items, got 3"):
        hsic(X, X, estimator="unbiased")
    with pytest.raises(ValueError, match="at least 4 items, got 3"):
        cka(X, X, debiased=True)


@pytest.mark.parametrize("debiased", [False, True])
def test_alignment_with_a_constant_is_refused(pair, debiased):
    with pytest.raises(ValueError, match="kernel matrix of y is zero after centering"):
        cka(pair[0], np.full((30, 2), 1 / 3), debiased=debiased)


def test_debiased_alignment_needs_more_than_a_diagonal(pair):
    with pytest.raises(ValueError, match="equally similar"):
        cka(pair[0], np.eye(30), debiased=True)
