import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle._assign.linear import assign
from unshuffle._quadratic.mean_field import (
    anneal_shares,
    frank_wolfe,
    interaction_spread,
    mean_field,
    one_hot,
    soften,
)
from unshuffle._quadratic.problem import QuadraticProblem, as_hermitian, assign_free


def kernel(points):
    K = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=-1))
    np.fill_diagonal(K, 0.0)
    return K


def paired_points(n_items, seed, *, extra=0, noise=0.0, frozen=()):
    """Points, their noisy copy in another order (with extra items), and the truth."""
    random = np.random.default_rng(seed)
    points = random.normal(size=(n_items + extra, 3))
    order = random.permutation(n_items + extra)
    copy = (points + noise * random.normal(size=points.shape))[order]
    truth = np.argsort(order)[:n_items]
    pairs = np.array([(i, truth[i]) for i in frozen], dtype=np.intp).reshape(-1, 2)
    return QuadraticProblem(kernel(points[:n_items]), kernel(copy), None, pairs), truth


def soft_match(problem, permutation, **options):
    """Mean field from a matching, given as the matrix of its shares."""
    return mean_field(problem, one_hot(permutation, problem.L.shape[0]), **options)


@given(
    n_items=st.integers(2, 25),
    extra=st.sampled_from([0, 0, 3, 10]),
    noise=st.sampled_from([0.0, 0.3, 2.0]),
    temperature=st.sampled_from([0.01, 0.2, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_shares_of_every_item_sum_to_one(n_items, extra, noise, temperature, seed):
    problem, _ = paired_points(n_items, seed, extra=extra, noise=noise)
    start = np.random.default_rng(seed).permutation(n_items + extra)[:n_items]
    shares = soft_match(problem, start, temperature=temperature)
    assert shares.shape == (n_items, n_items + extra)
    assert shares.min() >= 0.0
    assert shares.sum(axis=1) == pytest.approx(np.ones(n_items), abs=1e-9)


@pytest.mark.parametrize("extra", [0, 10])
@pytest.mark.parametrize("temperature", [0.2, 0.5])
def test_no_partner_is_shared_out_more_than_once(extra, temperature):
    problem, truth = paired_points(40, 0, extra=extra, noise=0.2)
    taken = soft_match(problem, truth, temperature=temperature).sum(axis=0)
    assert taken.max() < 1.05
    if extra == 0:
        assert taken.min() > 0.95
    else:
        assert taken.sum() == pytest.approx(40.0)


@pytest.mark.parametrize("extra", [0, 5])
def test_frozen_rows_are_one_hot_and_other_rows_have_no_share_of_their_partners(extra):
    frozen = [4, 0, 11]
    problem, truth = paired_points(15, 0, extra=extra, noise=0.5, frozen=frozen)
    shares = soft_match(problem, truth)
    expected = np.zeros((3, 15 + extra))
    expected[np.arange(3), truth[frozen]] = 1.0
    assert np.array_equal(shares[frozen], expected)
    others = np.delete(np.arange(15), frozen)
    assert np.all(shares[np.ix_(others, truth[frozen])] == 0.0)
    assert shares.sum(axis=1) == pytest.approx(np.ones(15))
    assert np.max(shares[others]) < 1.0


def test_everything_frozen_leaves_the_matching_as_it_is():
    problem, truth = paired_points(6, 1, frozen=range(6))
    assert np.array_equal(soft_match(problem, truth), np.eye(6)[truth])


@pytest.mark.parametrize("extra", [0, 6])
def test_low_temperature_approaches_the_permutation(extra):
    problem, truth = paired_points(20, 2, extra=extra)
    sharpness = [
        soft_match(problem, truth, temperature=t, max_iter=50)[np.arange(20), truth].mean()
        for t in (0.5, 0.1, 0.02)
    ]
    assert np.all(np.diff(sharpness) > 0)
    assert sharpness[-1] > 0.99


def test_high_temperature_spreads_the_shares_evenly():
    problem, truth = paired_points(10, 3)
    shares = soft_match(problem, truth, temperature=1e4)
    assert shares == pytest.approx(np.full((10, 10), 0.1), abs=1e-2)


def test_an_exact_copy_is_assigned_back_by_its_shares():
    problem, truth = paired_points(30, 4)
    start = truth.copy()
    start[[0, 1, 2]] = truth[[1, 2, 0]]
    shares = soft_match(problem, start)
    assert np.array_equal(assign_free(problem, shares)[0], truth)


def test_each_round_forms_one_gradient(monkeypatch):
    problem, truth = paired_points(25, 5, noise=0.5)
    products, rounds = [], []
    gradient_at = QuadraticProblem.gradient_at

    def counted(self, shares):
        products.append(1)
        return gradient_at(self, shares)

    monkeypatch.setattr(QuadraticProblem, "gradient_at", counted)
    soft_match(problem, truth, max_iter=5, tol=0.0, report=lambda _: rounds.append(1))
    assert len(rounds) == 5
    assert len(products) == 5


def test_it_stops_where_shares_stand_still():
    problem, truth = paired_points(25, 6, noise=0.1)
    rounds = []
    soft_match(problem, truth, max_iter=500, tol=1e-2, report=lambda _: rounds.append(1))
    assert 1 < len(rounds) < 100


def test_relabelling_both_sides_relabels_the_shares():
    problem, truth = paired_points(12, 7, noise=0.4)
    random = np.random.default_rng(8)
    first, second = random.permutation(12), random.permutation(12)
    relabeled = QuadraticProblem(
        problem.K[np.ix_(first, first)], problem.L[np.ix_(second, second)]
    )
    shares = soft_match(problem, truth)
    again = soft_match(relabeled, np.argsort(second)[truth[first]])
    assert again == pytest.approx(shares[np.ix_(first, second)], abs=1e-6)


def test_equal_similarities_give_equal_shares():
    K = np.ones((4, 4)) - np.eye(4)
    flat = QuadraticProblem(np.zeros((4, 4)), K)
    assert soft_match(flat, np.array([2, 0, 3, 1])) == pytest.approx(np.full((4, 4), 0.25))


def test_spread_leaves_out_what_rows_and_columns_have_alone():
    random = np.random.default_rng(9)
    core = random.normal(size=(6, 9))
    core -= core.mean(axis=0)
    core -= core.mean(axis=1)[:, None]
    shifted = core + random.normal(size=6)[:, None] * 50 + random.normal(size=9) * 80
    assert interaction_spread(shifted) == pytest.approx(core.std())
    assert interaction_spread(np.full((3, 4), 2.5)) == 1.0


def test_a_matching_becomes_a_matrix_of_shares():
    assert one_hot(np.array([2, 0]), 3).tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]


def test_mean_field_leaves_its_start_as_it_was():
    problem, truth = paired_points(10, 10, noise=0.5, frozen=[2])
    start = one_hot(truth, 10)
    before = start.copy()
    mean_field(problem, start)
    assert np.array_equal(start, before)


@pytest.mark.parametrize("extra", [0, 6])
def test_shares_by_a_benefit_keep_frozen_pairs_and_prefer_what_benefits(extra):
    problem, truth = paired_points(12, 11, extra=extra, frozen=[3, 7])
    benefit = one_hot(truth, 12 + extra)
    shares = soften(problem, benefit, temperature=0.2)
    assert shares.sum(axis=1) == pytest.approx(np.ones(12), abs=1e-6)
    assert np.array_equal(shares.argmax(axis=1), truth)
    assert np.array_equal(shares[[3, 7]], benefit[[3, 7]])
    softer = soften(problem, benefit, temperature=2.0)
    free = np.delete(np.arange(12), [3, 7])
    assert np.all(softer[free, truth[free]] < shares[free, truth[free]])


@pytest.mark.parametrize("extra", [0, 5])
def test_cooling_finds_an_exact_copy_from_even_shares_and_a_few_known_pairs(extra):
    problem, truth = paired_points(20, 12, extra=extra, frozen=[0, 5, 9, 13])
    even = soften(problem, np.zeros((20, 20 + extra)), temperature=1.0)
    found = anneal_shares(problem, even)
    assert np.array_equal(found[[0, 5, 9, 13]], truth[[0, 5, 9, 13]])
    assert np.unique(found).size == 20
    assert (found == truth).mean() > 0.8


@pytest.mark.parametrize("hermitian", [False, True])
def test_frank_wolfe_climbs_the_objective_of_soft_matchings(hermitian):
    random = np.random.default_rng(0)
    K, L = as_hermitian(*random.normal(size=(2, 8, 8)))
    if not hermitian:
        K, L = K.real, L.real
    problem = QuadraticProblem.with_linear_diagonals(K, L, random.normal(size=(8, 8)))
    values = []
    shares, converged = frank_wolfe(
        problem,
        np.full((8, 8), 1 / 8),
        max_iter=50,
        tol=0.0,
        report=lambda value, _: values.append(value),
    )
    assert converged
    assert np.all(np.diff(values) > 0)
    assert np.allclose([shares.sum(axis=0), shares.sum(axis=1)], 1.0)
    gradient = problem.gradient_at(shares)
    explicit = 0.5 * np.vdot(gradient - problem.cost, shares)
    assert values[-1] == pytest.approx(explicit)
    # no matching lies uphill
    assert np.vdot(gradient, shares) >= assign(gradient).value - 1e-6
