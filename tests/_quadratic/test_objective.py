import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle._quadratic.problem import QuadraticProblem, as_hermitian, climb, matched_sums


def kernel(n_items, seed, n_features=3):
    points = np.random.default_rng(seed).normal(size=(n_items, n_features))
    return points @ points.T + 1.5


def without_diagonal(S):
    return S - np.diag(np.diag(S))


def matrix_of(permutation, n_columns):
    P = np.zeros((len(permutation), n_columns))
    P[np.arange(len(permutation)), permutation] = 1.0
    return P


def trace_value(K, L, permutation):
    return matched_sums(K, L, permutation)[0]


def squared_value(K, L, permutation):
    trace, square = matched_sums(K, L, permutation)
    return trace - square / 2


seeds = st.integers(0, 2**32 - 1)


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


def test_trace_gradient_is_the_slope_in_every_entry_of_the_matrix():
    K, L = kernel(5, 13), kernel(5, 14)
    permutation = np.random.default_rng(0).permutation(5)
    P = matrix_of(permutation, 5)
    problem = QuadraticProblem(K, L)
    assert problem.value(permutation) == pytest.approx(trace_value(K, L, permutation))
    gradient = problem.gradient(permutation)
    assert gradient.shape == P.shape
    step = 1e-6
    for i, a in itertools.product(range(5), range(5)):
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
        + np.sum(QuadraticProblem(K, L).gradient(here) * D)
        + np.trace(K @ D @ L @ D.T)
    )
    assert trace_value(K, L, there) == pytest.approx(expanded)


def test_full_steps_may_return_to_a_matching_of_equal_value():
    # Two pairs of equal items: every assignment of the gradient ties.
    points = np.array([[-0.5], [-0.5], [0.5], [0.5]])
    K = points @ points.T
    first, second = np.array([0, 1, 2, 3]), np.array([1, 0, 3, 2])
    gradient = {tuple(p): QuadraticProblem(K, K).gradient(p) for p in (first, second)}
    values = [QuadraticProblem(K, K).value(p) for p in (first, second)]
    assert values[0] == pytest.approx(values[1])
    items = np.arange(4)
    for here, there in ((first, second), (second, first)):
        slope = gradient[tuple(here)]
        best = max(slope[items, list(p)].sum() for p in itertools.permutations(range(4)))
        assert slope[items, there].sum() == pytest.approx(best)  # a step may go either way
    climbed = climb(QuadraticProblem(K, K), first, max_iter=10)
    assert climbed.converged
    assert climbed.n_assignments <= 2


def test_squared_value_is_the_double_sum_and_half_the_squared_distance():
    K, L = kernel(4, 17), kernel(7, 18)
    permutation = np.array([6, 0, 3, 2])
    total = apart = 0.0
    for i, j in itertools.product(range(4), repeat=2):
        matched = L[permutation[i], permutation[j]]
        total += K[i, j] * matched - matched**2 / 2
        apart += (K[i, j] - matched) ** 2
    value = QuadraticProblem(K, L).value(permutation)
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
    by_square = max(injections, key=QuadraticProblem(K, L).value)
    assert set(by_trace[1:]) == {3, 4}
    assert by_square.tolist() == [0, 1, 2]


def test_squared_gradient_is_the_slope_in_every_entry_of_the_matrix():
    K, L = kernel(4, 21), kernel(6, 22)
    permutation = np.array([5, 1, 0, 3])
    P = matrix_of(permutation, 6)
    gradient = QuadraticProblem(K, L).gradient(permutation)

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


@given(st.integers(0, 2**32 - 1), st.sampled_from(["both", "first", "second", "neither"]))
def test_hermitian_matrices_have_the_same_sum(seed, symmetric):
    random = np.random.default_rng(seed)
    A, B = random.normal(size=(2, 6, 6))
    A = A + A.T if symmetric in ("both", "first") else A
    B = B + B.T if symmetric in ("both", "second") else B
    K, L = as_hermitian(A, B)
    assert np.array_equal(K, K.conj().T)
    assert np.array_equal(L, L.conj().T)
    assert np.iscomplexobj(K) == (symmetric == "neither")
    p = random.permutation(6)
    expected = (A * B[np.ix_(p, p)]).sum()
    assert QuadraticProblem(K, L).value(p) == pytest.approx(expected, abs=1e-9)
    assert QuadraticProblem.with_linear_diagonals(K, L).value(p) == pytest.approx(
        expected, abs=1e-9
    )


@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.booleans(), st.booleans())
def test_frozen_pairs_become_a_cost_of_the_others(seed, n_frozen, hermitian, squares):
    random = np.random.default_rng(seed)
    K, L = as_hermitian(random.normal(size=(6, 6)), random.normal(size=(8, 8)))
    if not hermitian:
        K, L = K.real, L.real
    cost = random.normal(size=(6, 8))
    frozen = np.column_stack([random.permutation(6)[:n_frozen], random.permutation(8)[:n_frozen]])
    problem = QuadraticProblem.with_linear_diagonals(K, L, cost, frozen, subtract_squares=squares)
    free = problem.without_frozen()
    assert free.shape == (6 - n_frozen, 8 - n_frozen)
    assert free.frozen.size == 0
    differences = []
    for _ in range(3):
        p = random.permutation(8 - n_frozen)[: 6 - n_frozen]
        whole = problem.add_frozen(p)
        assert np.unique(whole).size == 6
        assert np.array_equal(whole[frozen[:, 0]], frozen[:, 1])
        differences.append(problem.value(whole) - free.value(p))
    assert np.ptp(differences) < 1e-9


@pytest.mark.parametrize("subtract_squares", [False, True])
def test_diagonals_are_linear_in_the_matching(subtract_squares):
    random = np.random.default_rng(0)
    K, L = random.normal(size=(5, 5)), random.normal(size=(7, 7))
    K, L = K + K.T, L + L.T
    plain, moved = (
        make(K, L, subtract_squares=subtract_squares)
        for make in (QuadraticProblem, QuadraticProblem.with_linear_diagonals)
    )
    assert not np.diag(moved.K).any()
    assert not np.diag(moved.L).any()
    for seed in range(3):
        p = np.random.default_rng(seed).permutation(7)[:5]
        assert moved.value(p) == pytest.approx(plain.value(p))
