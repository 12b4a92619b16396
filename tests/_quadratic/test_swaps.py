import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import many

from unshuffle._quadratic import problem as _quadratic
from unshuffle._quadratic.problem import QuadraticProblem, swap_ascent


def similarities(n_items, random, *, integer=False, hermitian=False, diagonal=False):
    """Symmetric or Hermitian, not of any special structure."""

    def numbers():
        if integer:
            return random.integers(-2, 3, size=(n_items, n_items)).astype(float)
        return random.normal(size=(n_items, n_items))

    S = numbers() + 1j * numbers() if hermitian else numbers()
    S = np.triu(S, 1)
    S = S + S.conj().T
    if diagonal:
        np.fill_diagonal(S, np.diag(numbers()))
    return S


@st.composite
def problems(draw):
    """A problem and a start that keeps its frozen pairs."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_items = draw(st.integers(2, 8))
    n_partners = n_items + draw(st.sampled_from([0, 0, 1, 3]))
    kind = {name: draw(st.booleans()) for name in ("integer", "hermitian", "diagonal")}
    K = similarities(n_items, random, **kind)
    L = similarities(n_partners, random, **kind)
    cost = random.normal(size=(n_items, n_partners)) if draw(st.booleans()) else None
    permutation = random.permutation(n_partners)[:n_items]
    n_frozen = draw(st.integers(0, n_items))
    rows = random.permutation(n_items)[:n_frozen]
    frozen = np.column_stack([rows, permutation[rows]]).astype(np.intp)
    squares = draw(st.booleans())
    return QuadraticProblem(K, L, cost, frozen, subtract_squares=squares), permutation


def swapped(permutation, i, j):
    permutation = permutation.copy()
    permutation[[i, j]] = permutation[[j, i]]
    return permutation


def gains_by_brute_force(problem, permutation):
    """Gain of every exchange that the frozen pairs allow, from the objective itself."""
    now = problem.value(permutation)
    gains = [
        problem.value(swapped(permutation, i, j)) - now
        for i, j in itertools.combinations(problem.free_rows, 2)
    ]
    unused = np.setdiff1d(problem.free_columns, permutation)
    for i, a in itertools.product(problem.free_rows, unused):
        replaced = permutation.copy()
        replaced[i] = a
        gains.append(problem.value(replaced) - now)
    return gains


@given(problems())
def test_swap_gains_equal_brute_force(problem_and_start):
    problem, permutation = problem_and_start
    rows = problem.free_rows
    gains = _quadratic._swap_gains(problem, permutation, problem.gradient(permutation), rows)
    now = problem.value(permutation)
    for i, j in itertools.combinations(range(rows.size), 2):
        explicit = problem.value(swapped(permutation, rows[i], rows[j])) - now
        assert gains[i, j] == pytest.approx(explicit, abs=1e-9)


@given(problems().filter(lambda drawn: drawn[0].shape[0] < drawn[0].shape[1]))
def test_replacement_gains_equal_brute_force(problem_and_start):
    problem, permutation = problem_and_start
    rows = problem.free_rows
    unused = np.setdiff1d(problem.free_columns, permutation)
    slopes = problem.gradient(permutation)
    gains = _quadratic._replacement_gains(problem, permutation, slopes, rows, unused)
    for (i, row), (a, column) in itertools.product(enumerate(rows), enumerate(unused)):
        replaced = permutation.copy()
        replaced[row] = column
        explicit = problem.value(replaced) - problem.value(permutation)
        assert gains[i, a] == pytest.approx(explicit, abs=1e-9)


@many
@given(problems())
def test_ascent_ends_where_no_exchange_gains_and_keeps_what_is_frozen(problem_and_start):
    problem, start = problem_and_start
    before = start.copy()
    found, n_moves = swap_ascent(problem, start)
    assert np.array_equal(start, before)
    assert np.unique(found).size == found.size
    assert found.min() >= 0
    assert found.max() < problem.L.shape[0]
    assert np.array_equal(found[problem.frozen[:, 0]], problem.frozen[:, 1])
    assert max(gains_by_brute_force(problem, found), default=0.0) <= 1e-8
    if n_moves:
        assert problem.value(found) > problem.value(start)
    else:
        assert np.array_equal(found, start)


def test_one_exchange_mends_one_exchange():
    random = np.random.default_rng(0)
    points = random.normal(size=(12, 2))
    K = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(K, 0.0)
    problem = QuadraticProblem(K, K.copy())
    found, n_moves = swap_ascent(problem, swapped(np.arange(12), 3, 7))
    assert found.tolist() == list(range(12))
    assert n_moves == 1


def test_an_unused_partner_replaces_a_wrong_one():
    points = np.array([[0.0], [1.0], [2.5], [4.5], [30.0]])
    L = np.abs(points - points.T)
    problem = QuadraticProblem(L[:4, :4], L)
    found, n_moves = swap_ascent(problem, np.array([0, 1, 2, 4]))
    assert found.tolist() == [0, 1, 2, 3]
    assert n_moves == 1


def test_a_linear_cost_alone_is_climbed_too():
    cost = np.array([[5.0, 0.0, 5.0], [5.0, 5.0, 0.0], [0.0, 5.0, 5.0]])
    problem = QuadraticProblem(np.zeros((3, 3)), np.zeros((3, 3)), cost)
    found, _ = swap_ascent(problem, np.array([1, 0, 2]))
    assert problem.value(found) > problem.value(np.array([1, 0, 2]))
    assert max(gains_by_brute_force(problem, found)) <= 0.0


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0])
def test_equal_similarities_move_nothing(value):
    K = np.full((6, 6), value)
    np.fill_diagonal(K, 0.0)
    start = np.array([5, 3, 1, 0, 2, 4])
    found, n_moves = swap_ascent(QuadraticProblem(K, K.copy()), start)
    assert n_moves == 0
    assert np.array_equal(found, start)


def test_frozen_pairs_leave_nothing_to_move():
    random = np.random.default_rng(1)
    K = similarities(4, random)
    everything = np.column_stack([np.arange(4), [2, 3, 0, 1]])
    found, n_moves = swap_ascent(QuadraticProblem(K, K, None, everything), np.array([2, 3, 0, 1]))
    assert found.tolist() == [2, 3, 0, 1]
    assert n_moves == 0


@pytest.mark.parametrize("extra", [0, 10])
@pytest.mark.parametrize("given_first", [False, True])
def test_a_sweep_forms_one_product(monkeypatch, extra, given_first):
    random = np.random.default_rng(2)
    problem = QuadraticProblem(similarities(40, random), similarities(40 + extra, random))
    start = random.permutation(40 + extra)[:40]
    slopes = problem.gradient(start) if given_first else None
    products, sweeps = [], []
    gradient, swap_gains = QuadraticProblem.gradient, _quadratic._swap_gains

    def counted_product(self, permutation):
        products.append(1)
        return gradient(self, permutation)

    def counted_sweep(*arguments):
        sweeps.append(1)
        return swap_gains(*arguments)

    monkeypatch.setattr(QuadraticProblem, "gradient", counted_product)
    monkeypatch.setattr(_quadratic, "_swap_gains", counted_sweep)
    swap_ascent(problem, start, slopes=slopes)
    assert len(sweeps) > 1
    assert len(products) <= len(sweeps) - given_first


def test_a_known_gradient_changes_no_answer():
    random = np.random.default_rng(5)
    problem = QuadraticProblem(similarities(25, random), similarities(30, random))
    start = random.permutation(30)[:25]
    afresh, _ = swap_ascent(problem, start)
    reused, _ = swap_ascent(problem, start, slopes=problem.gradient(start))
    assert np.array_equal(afresh, reused)


def test_max_sweeps_ends_early_and_never_below_the_start():
    random = np.random.default_rng(3)
    problem = QuadraticProblem(similarities(30, random), similarities(30, random))
    start = random.permutation(30)
    once, few = swap_ascent(problem, start, max_sweeps=1)
    fully, many = swap_ascent(problem, start)
    assert problem.value(start) < problem.value(once) < problem.value(fully)
    assert few < many
