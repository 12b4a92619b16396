import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from unshuffle.assignment import soft_assignment


def test_two_by_two_has_its_closed_form():
    cost = np.array([[0.0, 1.0], [3.0, 2.0]])
    shares = soft_assignment(cost, epsilon=0.5, tol=1e-12)
    # the cross ratio of the shares is that of exp(-cost / epsilon): exp(2 / .5)
    share = np.exp(2.0) / (1 + np.exp(2.0))
    np.testing.assert_allclose(shares, [[share, 1 - share], [1 - share, share]])


@given(
    cost=st.tuples(st.integers(1, 8), st.integers(1, 8)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.floats(-10, 10))
    )
)
def test_sums_hold_for_every_shape(cost):
    shares = soft_assignment(cost, epsilon=2.0)
    n_rows, n_cols = cost.shape
    sums = [shares.sum(axis=1), shares.sum(axis=0)]
    smaller, larger = sums if n_rows <= n_cols else sums[::-1]
    assert (shares >= 0).all()
    np.testing.assert_allclose(smaller, 1, rtol=1e-9)
    assert (larger <= 1 + 1e-5).all()
    if n_rows == n_cols:
        np.testing.assert_allclose(larger, 1, rtol=1e-5)


def test_rectangular_shares_are_optimal():
    cost = np.random.default_rng(0).random((4, 6))
    epsilon = 0.2
    shares = soft_assignment(cost, epsilon=epsilon, tol=1e-12)

    def objective(P):
        return (cost * P).sum() + epsilon * (P * (np.log(P) - 1)).sum()

    random = np.random.default_rng(1)
    for _ in range(200):  # any feasible point nearby is worse
        other = soft_assignment(cost + 0.1 * random.standard_normal(cost.shape), epsilon=epsilon)
        assert objective(shares) <= objective(other) + 1e-6


@pytest.mark.parametrize("shape", [(20, 20), (15, 20), (20, 15)])
def test_small_epsilon_is_the_optimal_assignment(shape):
    cost = np.random.default_rng(0).random(shape)
    shares = soft_assignment(cost, epsilon=1e-3)
    rows, cols = linear_sum_assignment(cost)
    assert (shares * cost).sum() == pytest.approx(cost[rows, cols].sum(), abs=0.01)


def test_larger_epsilon_is_softer():
    cost = np.random.default_rng(0).random((10, 10))
    entropies = []
    for epsilon in (0.05, 0.2, 1.0, 1e6):
        shares = soft_assignment(cost, epsilon=epsilon)
        entropies.append(-(shares * np.log(shares)).sum())
    assert entropies == sorted(entropies)
    np.testing.assert_allclose(shares, 0.1, rtol=1e-4)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-300, None])
@pytest.mark.parametrize("factor", [1.0, 1e150, 1e-150])
def test_extreme_scales_stay_finite(epsilon, factor):
    cost = factor * np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    shares = soft_assignment(cost, epsilon=None if epsilon is None else factor * epsilon + 1e-300)
    np.testing.assert_allclose(shares, np.eye(3), atol=0.01)


def test_constant_costs_share_evenly():
    np.testing.assert_allclose(soft_assignment(np.full((3, 3), 7.0)), 1 / 3)


def test_maximize_mirrors_the_cost():
    cost = np.random.default_rng(0).random((6, 6))
    np.testing.assert_allclose(soft_assignment(cost), soft_assignment(-cost, maximize=True))


def test_frozen_pairs_and_forbidden_pairs_are_kept():
    random = np.random.default_rng(0)
    cost = random.random((6, 7))
    forbidden = np.zeros((6, 7), dtype=bool)
    forbidden[0, :4] = True
    forbidden[:, 2] = True
    forbidden[3, 2] = False
    shares = soft_assignment(cost, epsilon=0.1, frozen=[(5, 0), (3, 2)], forbidden=forbidden)
    assert shares[5, 0] == shares[3, 2] == 1
    assert (shares[forbidden] == 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares[:, 0].sum(), 1)
    everything = soft_assignment(cost[:2, :2], frozen=[(0, 1), (1, 0)])
    np.testing.assert_array_equal(everything, [[0, 1], [1, 0]])


def test_stopping_early_warns_and_rows_still_sum_to_one():
    cost = np.random.default_rng(0).random((30, 30))
    with pytest.warns(ConvergenceWarning, match="max_iter=5"):
        shares = soft_assignment(cost, epsilon=1e-3, max_iter=5)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "`epsilon` must be a finite number above 0"),
        ({"max_iter": 0}, "`max_iter` must be at least 1"),
        ({"forbidden": np.ones((2, 2), dtype=bool)}, "at most 0 of 2 pairs"),
    ],
)
def test_unusable_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        soft_assignment(np.eye(2), **options)


SHAPES = [(12, 12), (8, 12), (12, 8)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shift", [1e3, 1e8, 1e12])
def test_a_constant_added_to_all_costs_changes_no_share(shape, shift):
    cost = np.random.default_rng(0).random(shape) + shift
    np.testing.assert_allclose(
        soft_assignment(cost), soft_assignment(cost - shift), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e154, 1e156, 1e300, 1.7e308])
def test_shares_do_not_depend_on_the_unit_of_costs(shape, scale):
    cost = np.random.default_rng(0).random(shape) - 0.5
    np.testing.assert_allclose(
        soft_assignment(cost * scale), soft_assignment(cost), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("huge", [1e20, 1e150, 1.7e308])
def test_a_huge_cost_rules_its_pair_out_or_in_and_leaves_the_others_alone(shape, huge):
    cost = np.random.default_rng(0).random(shape)
    barred = np.zeros(shape, dtype=bool)
    barred[2, 3] = True
    epsilon = 0.05
    changed = np.where(barred, huge, cost)
    np.testing.assert_allclose(
        soft_assignment(changed, epsilon=epsilon),
        soft_assignment(cost, forbidden=barred, epsilon=epsilon),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        soft_assignment(-changed, epsilon=epsilon, maximize=True),
        soft_assignment(cost, forbidden=barred, epsilon=epsilon),
        atol=1e-6,
    )
    changed = np.where(barred, -huge, cost)
    np.testing.assert_allclose(
        soft_assignment(changed, epsilon=epsilon),
        soft_assignment(cost, frozen=[(2, 3)], epsilon=epsilon),
        atol=1e-4,
    )
    others = soft_assignment(changed)  # the default epsilon is not that of the huge cost
    assert others[np.arange(shape[0]) != 2].max() > 0.5


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e300, 1.7e308])
@pytest.mark.parametrize("scale", [0.0, 1e-300, 1.0, 1e308])
def test_any_positive_epsilon_gives_shares(epsilon, scale):
    cost = scale * np.random.default_rng(0).random((7, 7))
    shares = soft_assignment(cost, epsilon=epsilon)
    np.testing.assert_allclose(shares.sum(axis=0), 1.0, atol=1e-5)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
