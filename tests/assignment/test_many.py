import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from unshuffle._assign import linear as _assign
from unshuffle._assign.linear import assign_many


def least(costs):
    return np.array([cost[linear_sum_assignment(cost)].sum() for cost in costs])


def totals(costs, columns):
    return np.take_along_axis(costs, columns[:, :, None], axis=2).sum(axis=(1, 2))


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), whole=st.booleans())
def test_totals_are_least_from_any_prices(seed, n, whole):
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 4, size=(3, n, n)) if whole else rng.normal(size=(3, n, n))
    costs = costs.astype(float)
    for prices in (np.zeros((3, n)), rng.normal(size=(3, n))):
        columns = assign_many(costs, prices)
        np.testing.assert_array_equal(np.sort(columns, axis=1), np.tile(np.arange(n), (3, 1)))
        np.testing.assert_allclose(totals(costs, columns), least(costs), atol=1e-9)


def test_prices_certify_the_optimum():
    costs = np.random.default_rng(0).normal(size=(2, 9, 9))
    prices = np.zeros((2, 9))
    columns = assign_many(costs, prices)
    paid = costs + prices[:, None, :]
    chosen = np.take_along_axis(paid, columns[:, :, None], axis=2)
    assert (chosen <= paid.min(axis=2, keepdims=True) + 1e-12).all()


def test_problems_do_not_depend_on_each_other():
    costs = np.random.default_rng(0).normal(size=(5, 8, 8))
    together = assign_many(costs, np.zeros((5, 8)))
    alone = [assign_many(cost[None], np.zeros((1, 8)))[0] for cost in costs]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("large", [1, 10**6])
@pytest.mark.parametrize("value", [np.inf, np.nan, 1e308])
def test_costs_that_no_path_can_add_up_are_refused(monkeypatch, large, value):
    monkeypatch.setattr(_assign, "LARGE", large)
    costs = np.random.default_rng(0).random((2, 6, 6))
    costs[1] = value
    with pytest.raises(ValueError, match="Some costs of an assignment are infinite or NaN"):
        assign_many(costs, np.full((2, 6), value))


@pytest.mark.parametrize("large", [1, 10**6])
def test_large_problems_start_from_an_auction(monkeypatch, large):
    monkeypatch.setattr(_assign, "LARGE", large)
    points = np.random.default_rng(0).normal(size=(2, 200, 2))
    costs = ((points[0][:, None] - points[1]) ** 2).sum(axis=2)[None]
    columns = assign_many(costs, np.zeros((1, 200)))
    np.testing.assert_allclose(totals(costs, columns), least(costs))
