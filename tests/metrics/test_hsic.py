import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle.metrics._dependence import hsic_biased, hsic_unbiased, hsic_zeroed


def kernel(n_items, seed, n_features=3):
    points = np.random.default_rng(seed).normal(size=(n_items, n_features))
    return points @ points.T + 1.5


def centering(n_items):
    return np.eye(n_items) - 1.0 / n_items


def without_diagonal(S):
    return S - np.diag(np.diag(S))


seeds = st.integers(0, 2**32 - 1)


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
    # Two items at -1 and 1: the centered linear kernel is [[1, -1], [-1, 1]].
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


@given(data=st.data(), n_items=st.integers(4, 8), seed=seeds)
def test_relabelling_both_sides_changes_no_dependence(data, n_items, seed):
    K, L = kernel(n_items, seed), kernel(n_items, seed + 1)
    order = list(data.draw(st.permutations(range(n_items))))
    both = np.ix_(order, order)
    for hsic in (hsic_biased, hsic_zeroed, hsic_unbiased):
        assert hsic(K[both], L[both]) == pytest.approx(hsic(K, L), rel=1e-9, abs=1e-10)
        assert hsic(L, K) == pytest.approx(hsic(K, L), rel=1e-9, abs=1e-10)
