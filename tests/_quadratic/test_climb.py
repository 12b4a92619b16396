import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle._quadratic.mean_field import (
    anneal_shares,
    interaction_spread,
    mean_field,
    one_hot,
    soften,
)
from unshuffle._quadratic.problem import QuadraticProblem, assign_free, climb, swap_ascent


def zero_diagonal(S):
    return S - np.diag(np.diag(S))


def gaussian(points):
    return np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=-1))


@st.composite
def problems(draw, *, integer=None):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_items = draw(st.integers(2, 9))
    n_partners = n_items + draw(st.sampled_from([0, 0, 1, 4]))
    whole = draw(st.booleans()) if integer is None else integer
    kernels = []
    for size in (n_items, n_partners):
        S = (
            random.integers(-1, 2, size=(size, size))
            if whole
            else random.normal(size=(size, size))
        )
        S = np.triu(S, 1).astype(float)
        kernels.append(S + S.T)
    cost = random.normal(size=(n_items, n_partners)) if draw(st.booleans()) else None
    start = random.permutation(n_partners)[:n_items]
    rows = random.permutation(n_items)[: draw(st.integers(0, n_items))]
    frozen = np.column_stack([rows, start[rows]]).astype(np.intp)
    return QuadraticProblem(*kernels, cost, frozen), start


@given(problems(), st.booleans())
def test_climb_never_lowers_the_objective_and_keeps_what_is_frozen(drawn, swaps):
    problem, start = drawn
    values = [problem.value(start)]
    climbed = climb(problem, start, swaps=swaps, report=lambda value, _: values.append(value))
    assert np.all(np.diff(values) > 0)
    assert climbed.value == pytest.approx(problem.value(climbed.permutation))
    assert climbed.value >= values[0]
    assert climbed.value == pytest.approx(values[-1])
    assert climbed.converged
    assert np.unique(climbed.permutation).size == start.size
    assert np.array_equal(climbed.permutation[problem.frozen[:, 0]], problem.frozen[:, 1])


@given(problems())
def test_climb_ends_where_no_swap_gains(drawn):
    problem, start = drawn
    found = climb(problem, start).permutation
    for i, j in itertools.combinations(problem.free_rows, 2):
        other = found.copy()
        other[[i, j]] = other[[j, i]]
        assert problem.value(other) <= problem.value(found) + 1e-8


@given(problems(integer=True))
def test_ties_do_not_make_the_ascent_cycle(drawn):
    problem, start = drawn
    seen = []
    climbed = climb(problem, start, report=lambda _, permutation: seen.append(tuple(permutation)))
    assert climbed.converged
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("value", [0.0, 1.0, -2.0])
def test_constant_kernels_end_at_once_where_they_started(value):
    K = np.full((7, 7), value)
    start = np.array([6, 4, 2, 0, 1, 3, 5])
    climbed = climb(QuadraticProblem(K, K.copy()), start)
    assert climbed.permutation.tolist() == start.tolist()
    assert climbed.converged
    assert climbed.n_assignments == 1


def test_a_point_set_is_recovered_from_a_start_that_is_half_right():
    random = np.random.default_rng(0)
    points = random.normal(size=(30, 3))
    order = random.permutation(30)
    K = zero_diagonal(gaussian(points))
    L = zero_diagonal(gaussian(points[order]))
    truth = np.argsort(order)
    start = truth.copy()
    start[:15] = np.roll(truth[:15], 1)
    climbed = climb(QuadraticProblem(K, L), start)
    assert np.array_equal(climbed.permutation, truth)
    assert climbed.value == pytest.approx(np.sum(K**2))


def test_the_convex_objective_never_needs_a_partial_step():
    random = np.random.default_rng(1)
    H = np.eye(25) - 1 / 25
    K, L = (H @ gaussian(random.normal(size=(25, 2))) @ H for _ in range(2))
    problem = QuadraticProblem(K, L)
    start = random.permutation(25)
    proposal, _ = assign_free(problem, problem.gradient(start))
    assert problem.value(proposal) >= problem.value(start)


def test_stopping_at_max_iter_is_not_convergence():
    random = np.random.default_rng(2)
    H = np.eye(60) - 1 / 60
    K, L = (H @ gaussian(random.normal(size=(60, 2))) @ H for _ in range(2))
    problem, start = QuadraticProblem(K, L), random.permutation(60)
    short = climb(problem, start, max_iter=1)
    full = climb(problem, start)
    assert not short.converged
    assert short.n_assignments == 1
    assert problem.value(start) < short.value < full.value
    assert full.converged
    assert 1 < full.n_assignments <= 100


def test_swaps_climb_beyond_where_assignments_stand_still():
    random = np.random.default_rng(3)
    points = random.normal(size=(40, 3))
    order = random.permutation(40)
    noise = 0.3 * random.normal(size=points.shape)
    K = zero_diagonal(gaussian(points))
    L = zero_diagonal(gaussian((points + noise)[order]))
    problem, start = QuadraticProblem(K, L), random.permutation(40)
    assert climb(problem, start).value > climb(problem, start, swaps=False).value


def test_a_larger_tol_stops_sooner():
    random = np.random.default_rng(4)
    H = np.eye(60) - 1 / 60
    K, L = (H @ gaussian(random.normal(size=(60, 2))) @ H for _ in range(2))
    problem, start = QuadraticProblem(K, L), random.permutation(60)
    coarse = climb(problem, start, tol=10.0, swaps=False)
    fine = climb(problem, start, swaps=False)
    assert coarse.converged
    assert coarse.n_assignments < fine.n_assignments


def test_an_assignment_forms_no_more_than_one_product(monkeypatch):
    random = np.random.default_rng(5)
    points = random.normal(size=(50, 2))
    K = zero_diagonal(gaussian(points))
    L = zero_diagonal(gaussian(points + 0.2 * random.normal(size=points.shape)))
    products = []
    gradient = QuadraticProblem.gradient

    def counted(self, permutation):
        products.append(1)
        return gradient(self, permutation)

    monkeypatch.setattr(QuadraticProblem, "gradient", counted)
    climbed = climb(QuadraticProblem(K, L), random.permutation(50), swaps=False)
    assert climbed.n_assignments > 1
    assert len(products) <= climbed.n_assignments


@given(problems())
def test_best_free_assignment_equals_brute_force(drawn):
    problem, _ = drawn
    rows, columns = problem.free_rows[:5], problem.free_columns[:6]
    n_items, n_partners = problem.K.shape[0], problem.L.shape[0]
    benefit = np.random.default_rng(0).normal(size=(n_items, n_partners))
    found, _ = assign_free(problem, benefit)
    assert np.array_equal(found[problem.frozen[:, 0]], problem.frozen[:, 1])
    if rows.size == problem.free_rows.size and columns.size == problem.free_columns.size:
        best = max(
            benefit[rows, list(choice)].sum()
            for choice in itertools.permutations(columns, rows.size)
        )
        assert benefit[rows, found[rows]].sum() == pytest.approx(best)


@given(problems())
def test_frozen_pairs_can_be_put_into_any_matching(drawn):
    problem, _ = drawn
    n_items, n_partners = problem.K.shape[0], problem.L.shape[0]
    start = np.random.default_rng(1).permutation(n_partners)[:n_items]
    kept = problem.keep_frozen(start)
    assert np.array_equal(kept[problem.frozen[:, 0]], problem.frozen[:, 1])
    assert np.unique(kept).size == n_items
    assert kept.min() >= 0
    assert kept.max() < n_partners


@pytest.mark.parametrize("extra", [0, 3])
def test_soft_gradient_and_curvature_extend_the_objective_to_shares(extra):
    random = np.random.default_rng(6)
    K, L = (random.normal(size=(n, n)) for n in (5, 5 + extra))
    cost = random.normal(size=(5, 5 + extra))
    problem = QuadraticProblem(K + K.T, L + L.T, cost)
    here, there = (random.permutation(5 + extra)[:5] for _ in range(2))
    P, Q = (np.eye(5 + extra)[p] for p in (here, there))
    assert problem.gradient_at(P) == pytest.approx(problem.gradient(here))
    for step in (0.3, 1.0):
        moved = P + step * (Q - P)
        slope = np.sum(problem.gradient_at(P) * (Q - P))
        expanded = problem.value(here) + step * slope + step**2 * problem.curvature(Q - P)
        masses = moved.sum(axis=0)
        explicit = np.trace(problem.K @ moved @ problem.L @ moved.T) - np.sum(cost * moved)
        if extra:
            explicit -= 0.5 * masses @ problem.L**2 @ masses
        assert expanded == pytest.approx(explicit)


@given(problems(), st.data())
def test_an_updated_gradient_is_the_gradient_of_the_new_matching(drawn, data):
    problem, before = drawn
    after = before.copy()
    n_moved = data.draw(st.integers(0, before.size))
    places = np.random.default_rng(n_moved).permutation(before.size)[:n_moved]
    after[places] = np.roll(before[places], 1)
    unused = np.setdiff1d(np.arange(problem.L.shape[0]), before)
    if unused.size:
        after[0] = unused[0]
    slopes = problem.gradient(before)
    problem.update_gradient(slopes, before, after)
    assert slopes == pytest.approx(problem.gradient(after), abs=1e-9)


@pytest.mark.parametrize("shift", [1e3, 1e8, 1e12])
def test_constants_that_no_matching_changes_do_not_hide_gains(shift):
    random = np.random.default_rng(0)
    X = random.exponential(size=(30, 3))
    K = X @ X.T
    np.fill_diagonal(K, 0.0)
    order, start = random.permutation(30), random.permutation(30)
    L, cost, off = K[np.ix_(order, order)], 0.1 * random.random((30, 30)), 1.0 - np.eye(30)
    far = QuadraticProblem(K + shift * off, L + shift * off, cost + shift)
    held = QuadraticProblem(far.K - shift * off, far.L - shift * off, far.cost - shift)
    for ended in (climb(far, start).permutation, swap_ascent(far, start)[0]):
        better = held.value(climb(held, ended).permutation)
        assert better <= held.value(ended) + 1e-3 * abs(better)
        assert held.value(ended) > held.value(start)
    seen = []
    climbed = climb(far, start, report=lambda value, _: seen.append(value))
    assert climbed.value == pytest.approx(far.value(climbed.permutation), rel=1e-12)
    assert seen[-1] == pytest.approx(climbed.value, rel=1e-12)
    shares = mean_field(far, one_hot(order.argsort(), 30))
    assert (shares.argmax(axis=1) == order.argsort()).mean() > 0.8


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e100, 1e200])
def test_the_unit_of_similarities_changes_no_step(scale):
    random = np.random.default_rng(0)
    X = random.exponential(size=(20, 3))
    K = X @ X.T
    np.fill_diagonal(K, 0.0)
    start = random.permutation(20)
    plain, scaled = QuadraticProblem(K, K), QuadraticProblem(K * scale, K)
    for search in (
        lambda problem: climb(problem, start).permutation,
        lambda problem: swap_ascent(problem, start)[0],
        lambda problem: anneal_shares(problem, one_hot(start, 20)),
    ):
        np.testing.assert_array_equal(search(scaled), search(plain))
    assert interaction_spread(K * scale) == pytest.approx(interaction_spread(K) * scale)
    np.testing.assert_allclose(
        soften(scaled, K * scale, temperature=0.2), soften(plain, K, temperature=0.2), atol=1e-12
    )


@pytest.mark.parametrize("name", ["K", "L", "cost"])
def test_similarities_whose_products_overflow_are_refused_by_name(name):
    parts = {"K": np.ones((3, 3)), "L": np.ones((4, 4)), "cost": np.zeros((3, 4))}
    parts[name] = np.full(parts[name].shape, 1e300)
    with pytest.raises(ValueError, match=rf"`{name}`( holds)? 1e\+300"):
        QuadraticProblem(**parts)
