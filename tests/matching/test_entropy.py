import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgError

from unshuffle._quadratic.problem import matched_sums
from unshuffle.matching._dense.entropy import entropy_value, entropy_weights

RIDGE = 0.05


def trace_value(K, L, permutation):
    return matched_sums(K, L, permutation)[0]


def kernel(n_items, seed):
    points = np.random.default_rng(seed).normal(size=(n_items, 2))
    return np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=-1))


def log_volume(J, ridge=RIDGE):
    """log det(H J H + ridge I) from the eigenvalues, with an explicit centring matrix."""
    H = np.eye(len(J)) - 1.0 / len(J)
    return float(np.sum(np.log(np.linalg.eigvalsh(H @ J @ H + ridge * np.eye(len(J))))))


def joint(K, L, permutation):
    return K * L[np.ix_(permutation, permutation)]


def test_entropy_is_the_log_determinant_of_the_explicit_matrix():
    K, L = kernel(6, 0), kernel(6, 1)
    permutation = np.array([2, 0, 5, 1, 4, 3])
    J = np.empty((6, 6))
    for i, j in itertools.product(range(6), repeat=2):
        J[i, j] = K[i, j] * L[permutation[i], permutation[j]]
    assert entropy_value(K, L, permutation, ridge=RIDGE) == pytest.approx(log_volume(J))


def test_entropy_of_identical_items_is_that_of_the_ridge_alone():
    ones = np.ones((4, 4))
    value = entropy_value(ones, ones, np.arange(4), ridge=0.5)
    assert value == pytest.approx(4 * np.log(0.5))


def test_the_right_matching_has_less_entropy_than_any_other():
    order = np.array([3, 0, 4, 1, 2])
    K = kernel(5, 2)
    L = K[np.ix_(order, order)]
    permutations = [np.array(p) for p in itertools.permutations(range(5))]
    best = min(permutations, key=lambda p: entropy_value(K, L, p, ridge=1e-3))
    assert best.tolist() == np.argsort(order).tolist()


def test_weights_are_the_slope_in_every_entry_of_the_joint_kernel():
    K, L = kernel(5, 3), kernel(5, 4)
    permutation = np.array([1, 4, 0, 2, 3])
    J = joint(K, L, permutation)
    A = entropy_weights(K, L, permutation, ridge=RIDGE) / K
    step = 1e-6
    for i, j in itertools.product(range(5), repeat=2):
        change = np.zeros_like(J)
        change[i, j] += step / 2
        change[j, i] += step / 2  # the log-determinant is of a symmetric matrix
        slope = (log_volume(J + change) - log_volume(J - change)) / (2 * step)
        assert A[i, j] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_gradient_is_the_chain_of_slope_and_joint_kernel():
    K, L = kernel(5, 5), kernel(5, 6)
    permutation = np.array([4, 1, 3, 0, 2])
    P = np.eye(5)[permutation]
    gradient = 2 * entropy_weights(K, L, permutation, ridge=RIDGE) @ L[permutation]
    assert gradient.shape == (5, 5)
    step = 1e-6
    for i, a in itertools.product(range(5), repeat=2):
        change = np.zeros_like(P)
        change[i, a] = step
        up, down = (log_volume(K * (M @ L @ M.T)) for M in (P + change, P - change))
        assert gradient[i, a] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-7)


@given(data=st.data(), n_items=st.integers(3, 7), seed=st.integers(0, 2**32 - 1))
def test_the_tangent_bounds_the_entropy_of_every_other_matching(data, n_items, seed):
    K, L = kernel(n_items, seed), kernel(n_items, seed + 1)
    here, there = (np.array(data.draw(st.permutations(range(n_items)))) for _ in range(2))
    weights = entropy_weights(K, L, here, ridge=RIDGE)
    change = trace_value(weights, L, there) - trace_value(weights, L, here)
    gap = entropy_value(K, L, there, ridge=RIDGE) - entropy_value(K, L, here, ridge=RIDGE)
    assert gap <= change + 1e-9


def test_a_matching_that_lowers_the_tangent_lowers_the_entropy():
    K, L = kernel(6, 7), kernel(6, 8)
    here = np.arange(6)
    weights = entropy_weights(K, L, here, ridge=RIDGE)
    now = entropy_value(K, L, here, ridge=RIDGE)
    lower = [
        p
        for p in map(np.array, itertools.permutations(range(6)))
        if trace_value(weights, L, p) < trace_value(weights, L, here) - 1e-9
    ]
    assert lower
    assert all(entropy_value(K, L, p, ridge=RIDGE) < now for p in lower)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_relabelling_both_sides_changes_no_entropy(data, seed):
    K, L = kernel(6, seed), kernel(6, seed + 1)
    permutation, first, second = (np.array(data.draw(st.permutations(range(6)))) for _ in range(3))
    relabeled = np.argsort(second)[permutation[first]]
    value = entropy_value(
        K[np.ix_(first, first)], L[np.ix_(second, second)], relabeled, ridge=RIDGE
    )
    assert value == pytest.approx(entropy_value(K, L, permutation, ridge=RIDGE))


def test_an_indefinite_kernel_has_no_volume():
    K = np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.raises(LinAlgError):
        entropy_value(K, np.ones((3, 3)), np.arange(3), ridge=0.1)
