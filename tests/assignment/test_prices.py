"""Prices that are given, and prices and gaps that are returned."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment
from tests.counts import many

from unshuffle._assign.linear import assign
from unshuffle.assignment import solve_assignment

SHAPES = [(12, 12), (150, 150), (200, 200), (180, 220), (220, 180)]
EPS = float(np.finfo(float).eps)


def best_value(cost):
    rows, cols = linear_sum_assignment(cost)
    return cost[rows, cols].sum()


def assert_certified(cost, found):
    """The prices prove the value to within the gap, in exact arithmetic."""
    n_rows, n_cols = cost.shape
    prices = [Fraction(float(price)) for price in found.prices]
    exact = [[Fraction(float(entry)) for entry in row] for row in cost]
    reduced = [[entry + price for entry, price in zip(row, prices, strict=True)] for row in exact]
    least = [min(row) for row in reduced]
    if n_rows <= n_cols:  # rows that cost nothing hold the unmatched columns
        dual = sum(least) - sum(prices) + (n_cols - n_rows) * min(prices)
    else:  # columns that cost nothing, of any one price, hold the unmatched rows
        held = [sum(min(row, price) for row in least) for price in least]
        spare = n_rows - n_cols
        dual = max(total - spare * price for total, price in zip(held, least, strict=True)) - sum(
            prices
        )
    matched = np.flatnonzero(found.columns >= 0)
    primal = sum(exact[row][found.columns[row]] for row in matched)
    size = max(abs(primal), Fraction(float(np.ptp(cost) or 1.0)))
    assert primal - dual <= (Fraction(found.gap) + Fraction(1, 10**11)) * size


@pytest.mark.parametrize("size", [1e3, 1e10, 1e14, 1e20, 1e150, 1.7e308])
@pytest.mark.parametrize("shape", SHAPES)
def test_prices_far_larger_than_the_costs_are_ignored(shape, size):
    random = np.random.default_rng(0)
    cost = random.normal(size=shape)
    prices = size * random.uniform(-1, 1, size=shape[1])
    for solver in ("auto", "auction", "exact"):
        found = solve_assignment(cost, prices=prices, solver=solver)
        assert found.value == pytest.approx(best_value(cost), rel=1e-6)
        assert 0.0 <= found.gap <= 1e-6


def test_prices_between_the_costs_and_a_barrier_do_not_hide_the_costs():
    random = np.random.default_rng(0)
    cost = random.normal(size=(100, 100))
    cost[random.random(cost.shape) < 0.1] = 1e20
    found = solve_assignment(cost, prices=1e17 * random.random(100))
    assert found.value == pytest.approx(best_value(cost), rel=1e-6)


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-200, 1.0, 1e200, 1e290])
@pytest.mark.parametrize("size", [5e-324, 1e-308, 1.0, 1e300])
def test_prices_of_any_size_suit_costs_of_any_size(unit, size):
    cost = np.random.default_rng(0).integers(1, 50, size=(40, 40)) * unit
    prices = np.random.default_rng(1).integers(1, 50, size=40) * size
    found = solve_assignment(cost, prices=prices)
    assert found.value == pytest.approx(best_value(cost / unit) * unit, rel=1e-6)
    assert found.gap <= 1e-6


@many
@given(data=st.data(), solver=st.sampled_from(["auto", "auction", "exact"]))
def test_the_value_is_within_its_gap_of_scipys_whatever_the_prices(data, solver):
    shape = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    numbers = st.one_of(
        st.integers(-9, 9),
        st.floats(-1.0, 1.0),
        st.sampled_from([0.0, 5e-324, 1e-310, 1e8, -1e14, 1e20]),
    )
    cost = data.draw(arrays(np.float64, shape, elements=numbers))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    prices = data.draw(arrays(np.float64, shape[1], elements=st.one_of(numbers, finite)))
    found = solve_assignment(cost, prices=prices, solver=solver)
    matched = np.flatnonzero(found.columns >= 0)
    assert matched.size == np.unique(found.columns[matched]).size == min(shape)
    best, spread = best_value(cost), np.ptp(cost) or np.abs(cost).max()
    assert found.gap <= 1e-6
    assert found.value - best <= (found.gap + 100 * EPS) * max(abs(best), spread) + 1e-320


@many
@given(data=st.data(), solver=st.sampled_from(["auction", "exact"]))
def test_returned_prices_prove_the_gap(data, solver):
    shape = data.draw(st.tuples(st.integers(1, 8), st.integers(1, 8)))
    cost = data.draw(arrays(np.float64, shape, elements=st.floats(-9, 9, allow_subnormal=False)))
    assert_certified(cost, solve_assignment(cost, solver=solver))


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_results_come_with_prices_that_prove_them(shape):
    cost = np.random.default_rng(0).normal(size=shape)
    found = solve_assignment(cost, solver="exact")
    assert found.gap == 0.0
    assert_certified(cost, found)
    again = solve_assignment(cost, prices=found.prices, solver="auction")
    assert again.value == pytest.approx(found.value, rel=1e-6)


@pytest.mark.parametrize("shape", [(30, 30), (30, 40), (40, 30)])
def test_a_gap_is_computed_with_frozen_forbidden_and_unmatched_items(shape):
    random = np.random.default_rng(0)
    cost = random.random(shape)
    for options in (
        {"frozen": [(3, 4)]},
        {"forbidden": random.random(shape) < 0.3},
        {"unmatched_cost": 0.05},
    ):
        found = solve_assignment(cost, prices=1e14 * random.random(shape[1]), **options)
        plain = solve_assignment(cost, solver="exact", **options)
        assert found.value == pytest.approx(plain.value, rel=1e-6)
        assert found.gap == plain.gap == 0.0
        assert np.isfinite(plain.prices).all()


def test_a_matching_that_is_not_the_best_shows_its_loss(monkeypatch):
    cost = np.random.default_rng(0).random((40, 40))

    def diagonal(benefit, maximize):
        return np.arange(40), np.arange(40)

    monkeypatch.setattr("unshuffle._assign.linear.linear_sum_assignment", diagonal)
    found = solve_assignment(cost, solver="exact")
    loss = np.trace(cost) - best_value(cost)
    assert found.gap * max(abs(found.value), np.ptp(cost)) >= loss > 1.0


def test_whole_numbers_are_prices():
    cost = np.random.default_rng(0).random((140, 140))
    for prices in (list(range(140)), np.arange(140, dtype=np.int8), [10**30] * 140):
        found = solve_assignment(cost, prices=prices)
        assert found.value == pytest.approx(best_value(cost), rel=1e-6)


@pytest.mark.parametrize("price", [np.nan, np.inf, -np.inf])
def test_prices_that_are_no_numbers_are_refused(price):
    with pytest.raises(ValueError, match="`prices` holds NaN or infinity"):
        solve_assignment(np.eye(3), prices=[0.0, price, 1.0])


def test_the_solver_within_loops_ignores_useless_prices_too():
    benefit = np.random.default_rng(0).normal(size=(50, 50))
    steps = np.linspace(0, 1, 50)
    for prices in (np.full(50, np.nan), 1e14 * steps, np.where(steps < 0.5, -8e307, 8e307)):
        found = assign(benefit, prices)
        assert found.value == pytest.approx(-best_value(-benefit), rel=1e-9)
