import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unshuffle.objectives import (
    hsic_biased,
    hsic_unbiased,
    hsic_zeroed,
    squared_gradient,
    squared_value,
    trace_gradient,
    trace_value,
)


def kernel(n_items, seed, n_features=3):
    points = np.random.default_rng(seed).normal(size=(n_items, n_features))
    return points @ points.T + 1.5


def centering(n_items):
    return np.eye(n_items) - 1.0 / n_items


def without_diagonal(S):
    return S - np.diag(np.diag(S))


def matrix_of(permutation, n_columns):
    P = np.zeros((len(permutation), n_columns))
    P[np.arange(len(permutation)), permutation] = 1.0
    return P


seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=25)
@given(n_items=st.integers(2, 7), seed=seeds)
def test_biased_hsic_is_the_trace_with_explicit_centring_matrices(n_items, seed):
    K, L = kernel(n_items, seed), kernel(n_items, seed + 1)
    H = centering(n_items)
    explicit = np.trace(K @ H @ L @ H) / (n_items - 1) ** 2
    assert hsic_biased(K, L) == pytest.approx(explicit, rel=1e-9, abs=1e-12)


def test_biased_hsic_is_the_sum_over_all_index_pairs():
    K, L = kernel(5, 0), kernel(5, 1)
    total = 0.0
    for i, j in itertools.product(range(5), repeat=2):
        k = K[i, j] - K[i].mean() - K[:, j].mean() + K.mean()
        l = L[i, j] - L[i].mean() - L[:, j].mean() + L.mean()  # noqa: E741
        total += k * l
    assert hsic_biased(K, L) == pytest.approx(total / 16)


def test_biased_hsic_of_a_known_pair():
    # Two items at -1 and 1: the centred linear kernel is [[1, -1], [-1, 1]].
    K = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert hsic_biased(K, K) == 4.0
    assert hsic_biased(K, -K) == -4.0
    assert hsic_biased(K, np.full((2, 2), 7.0)) == 0.0


def test_zeroed_hsic_centres_first_and_then_drops_the_diagonal():
    K, L = kernel(6, 2), kernel(6, 3)
    H = centering(6)
    K_centered, L_centered = H @ K @ H, H @ L @ H
    total = 0.0
    for i, j in itertools.product(range(6), repeat=2):
        if i != j:
            total += K_centered[i, j] * L_centered[i, j]
    assert hsic_zeroed(K, L) == pytest.approx(total / 25)


def test_zeroing_before_centring_is_another_number_with_a_diagonal_again():
    K, L = kernel(6, 2), kernel(6, 3)
    H = centering(6)
    printed = [H @ without_diagonal(S) @ H for S in (K, L)]
    assert np.abs(np.diag(printed[0])).min() > 1e-3
    assert abs(hsic_zeroed(K, L) - np.sum(printed[0] * printed[1]) / 25) > 1e-2


def test_zeroed_hsic_ignores_what_items_are_to_themselves_beyond_centring():
    # A constant diagonal is what TF-IDF adds: 1 for each document with itself.
    K, L = kernel(8, 4), kernel(8, 5)
    ridge = 50.0 * np.eye(8)
    biased = abs(hsic_biased(K + ridge, L + ridge) - hsic_biased(K, L))
    zeroed = abs(hsic_zeroed(K + ridge, L + ridge) - hsic_zeroed(K, L))
    assert zeroed < biased / 5


def test_unbiased_hsic_is_the_u_statistic_over_distinct_quadruples():
    n_items = 6
    K, L = kernel(n_items, 6), kernel(n_items, 7)
    terms = [
        K[i, j] * (L[i, j] + L[q, r] - 2.0 * L[i, q])
        for i, j, q, r in itertools.permutations(range(n_items), 4)
    ]
    assert hsic_unbiased(K, L) == pytest.approx(np.mean(terms))


def test_unbiased_hsic_averages_to_zero_over_all_permutations():
    K, L = kernel(5, 8), kernel(5, 9)
    orders = [list(order) for order in itertools.permutations(range(5))]
    unbiased = [hsic_unbiased(K, L[np.ix_(order, order)]) for order in orders]
    biased = [hsic_biased(K, L[np.ix_(order, order)]) for order in orders]
    assert np.ptp(unbiased) > 0.1
    assert np.mean(unbiased) == pytest.approx(0.0, abs=1e-10)
    assert np.mean(biased) > 0.1


@pytest.mark.parametrize("n_items", [2, 3])
def test_unbiased_hsic_of_fewer_than_four_items_is_refused(n_items):
    with pytest.raises(ValueError, match=f"needs at least 4 items, got {n_items}"):
        hsic_unbiased(np.eye(n_items), np.eye(n_items))


@settings(deadline=None, max_examples=25)
@given(data=st.data(), n_items=st.integers(4, 8), seed=seeds)
def test_relabelling_both_sides_changes_no_dependence(data, n_items, seed):
    K, L = kernel(n_items, seed), kernel(n_items, seed + 1)
    order = list(data.draw(st.permutations(range(n_items))))
    both = np.ix_(order, order)
    for hsic in (hsic_biased, hsic_zeroed, hsic_unbiased):
        assert hsic(K[both], L[both]) == pytest.approx(hsic(K, L), rel=1e-9, abs=1e-10)
        assert hsic(L, K) == pytest.approx(hsic(K, L), rel=1e-9, abs=1e-10)


@settings(deadline=None, max_examples=25)
@given(data=st.data(), n_items=st.integers(2, 6), extra=st.integers(0, 3), seed=seeds)
def test_trace_value_is_the_double_sum_and_the_matrix_trace(data, n_items, extra, seed):
    K, L = kernel(n_items, seed), kernel(n_items + extra, seed + 1)
    permutation = np.array(data.draw(st.permutations(range(n_items + extra)))[:n_items])
    total = 0.0
    for i, j in itertools.product(range(n_items), repeat=2):
        total += K[i, j] * L[permutation[i], permutation[j]]
    P = matrix_of(permutation, n_items + extra)
    assert trace_value(K, L, permutation) == pytest.approx(total, rel=1e-9, abs=1e-10)
    assert np.trace(K @ P @ L @ P.T) == pytest.approx(total, rel=1e-9, abs=1e-10)


def test_the_printed_trace_evaluates_the_inverse_permutation():
    K, L = kernel(5, 10), kernel(5, 11)
    permutation = np.array([1, 2, 3, 4, 0])  # not its own inverse
    P = matrix_of(permutation, 5)
    printed = np.trace(K @ P.T @ L @ P)
    assert printed == pytest.approx(trace_value(K, L, np.argsort(permutation)))
    assert abs(printed - trace_value(K, L, permutation)) > 1e-3


def test_trace_value_is_largest_where_the_items_come_back_to_their_own():
    points = np.random.default_rng(12).normal(size=(5, 2))
    order = np.array([3, 0, 4, 1, 2])
    K = without_diagonal(np.exp(-((points[:, None] - points[None]) ** 2).sum(-1)))
    L = K[np.ix_(order, order)]
    best = max(itertools.permutations(range(5)), key=lambda p: trace_value(K, L, np.array(p)))
    assert list(best) == np.argsort(order).tolist()


@pytest.mark.parametrize("n_partners", [5, 8])
def test_trace_gradient_is_the_slope_in_every_entry_of_the_matrix(n_partners):
    K, L = kernel(5, 13), kernel(n_partners, 14)
    permutation = np.random.default_rng(0).permutation(n_partners)[:5]
    P = matrix_of(permutation, n_partners)
    gradient = trace_gradient(K, L, permutation)
    assert gradient.shape == P.shape
    step = 1e-6
    for i, a in itertools.product(range(5), range(n_partners)):
        change = np.zeros_like(P)
        change[i, a] = step
        up, down = P + change, P - change
        slope = (np.trace(K @ up @ L @ up.T) - np.trace(K @ down @ L @ down.T)) / (2 * step)
        assert gradient[i, a] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_the_gradient_and_the_curvature_give_the_value_at_any_other_permutation():
    K, L = kernel(6, 15), kernel(6, 16)
    random = np.random.default_rng(1)
    here, there = random.permutation(6), random.permutation(6)
    D = matrix_of(there, 6) - matrix_of(here, 6)
    expanded = (
        trace_value(K, L, here)
        + np.sum(trace_gradient(K, L, here) * D)
        + np.trace(K @ D @ L @ D.T)
    )
    assert trace_value(K, L, there) == pytest.approx(expanded)


def test_squared_value_is_the_double_sum_and_half_the_squared_distance():
    K, L = kernel(4, 17), kernel(7, 18)
    permutation = np.array([6, 0, 3, 2])
    total = apart = 0.0
    for i, j in itertools.product(range(4), repeat=2):
        matched = L[permutation[i], permutation[j]]
        total += K[i, j] * matched - matched**2 / 2
        apart += (K[i, j] - matched) ** 2
    value = squared_value(K, L, permutation)
    assert value == pytest.approx(total)
    assert value == pytest.approx((np.sum(K**2) - apart) / 2)


def test_the_squared_term_is_constant_where_sizes_are_equal():
    K, L = kernel(5, 19), kernel(5, 20)
    gaps = [
        trace_value(K, L, np.array(p)) - squared_value(K, L, np.array(p))
        for p in itertools.permutations(range(5))
    ]
    assert np.ptp(gaps) == pytest.approx(0.0, abs=1e-9)


def test_the_squared_value_prefers_the_true_subset_where_the_trace_prefers_large_entries():
    points = np.array([[0.0], [1.0], [2.5], [10.0], [20.0]])
    L = points @ points.T
    K = L[:3, :3]
    injections = [np.array(p) for p in itertools.permutations(range(5), 3)]
    by_trace = max(injections, key=lambda p: trace_value(K, L, p))
    by_square = max(injections, key=lambda p: squared_value(K, L, p))
    assert set(by_trace[1:]) == {3, 4}
    assert by_square.tolist() == [0, 1, 2]


def test_squared_gradient_is_the_slope_in_every_entry_of_the_matrix():
    K, L = kernel(4, 21), kernel(6, 22)
    permutation = np.array([5, 1, 0, 3])
    P = matrix_of(permutation, 6)
    gradient = squared_gradient(K, L, L * L, permutation)

    def relaxed(P):
        masses = P.sum(axis=0)
        return np.trace(K @ P @ L @ P.T) - 0.5 * masses @ (L * L) @ masses

    assert relaxed(P) == pytest.approx(squared_value(K, L, permutation))
    step = 1e-6
    for i, a in itertools.product(range(4), range(6)):
        change = np.zeros_like(P)
        change[i, a] = step
        slope = (relaxed(P + change) - relaxed(P - change)) / (2 * step)
        assert gradient[i, a] == pytest.approx(slope, rel=1e-6, abs=1e-6)
