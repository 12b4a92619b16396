import numpy as np
import pytest
from scipy.optimize import minimize

from unshuffle._core.bags import Bags
from unshuffle.svm._templates import enclosing_ball, nearest_candidates


def vectors(n, width, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(size=(n, width)) + shift


def by_scipy(X, bound):
    X = X - X.mean(axis=0)
    K = X @ X.T
    squares = np.diag(K)
    found = minimize(
        lambda w: w @ K @ w - squares @ w,
        np.full(len(X), 1 / len(X)),
        jac=lambda w: 2 * K @ w - squares,
        bounds=[(0, bound)] * len(X),
        constraints=[{"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: w * 0 + 1}],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return -found.fun


def test_ball_around_two_points_is_centerd_between_them():
    X = np.array([[0.0, 0.0], [6.0, 8.0], [3.0, 4.0]])
    ball = enclosing_ball(X @ X.T)
    np.testing.assert_allclose(ball.weights @ X, [3.0, 4.0], atol=1e-6)
    assert ball.squared_radius == pytest.approx(25.0)
    assert ball.cost == pytest.approx(25.0)


@pytest.mark.parametrize("slack", [None, 0.1, 0.35, 0.8, 1.0])
@pytest.mark.parametrize("width", [2, 30])
def test_cost_agrees_with_a_general_solver(slack, width):
    X = vectors(14, width)
    bound = 1.0 if slack is None else min(1.0, 1 / (slack * 14))
    ball = enclosing_ball(X @ X.T, slack)
    assert ball.cost == pytest.approx(by_scipy(X, bound), rel=1e-8)


@pytest.mark.parametrize("slack", [None, 0.1, 0.4])
def test_optimality_conditions_hold_far_from_the_origin(slack):
    X = vectors(80, 5, shift=1e3)
    ball = enclosing_ball(X @ X.T, slack)
    bound = 1.0 if slack is None else 1 / (slack * 80)
    squared = ((X - ball.weights @ X) ** 2).sum(axis=1)
    close = 1e-6 * ball.squared_radius
    assert ball.weights.sum() == pytest.approx(1.0)
    assert (ball.weights >= 0).all()
    assert (ball.weights <= bound + 1e-15).all()
    assert (squared[ball.weights < bound] <= ball.squared_radius + close).all()
    assert (squared[ball.weights > 0] >= ball.squared_radius - close).all()


@pytest.mark.parametrize("slack", [0.1, 0.4])
def test_no_more_than_the_slack_lie_outside(slack):
    X = vectors(50, 4)
    ball = enclosing_ball(X @ X.T, slack)
    squared = ((X - ball.weights @ X) ** 2).sum(axis=1)
    assert 0 < (squared > ball.squared_radius * (1 + 1e-6)).mean() <= slack


def test_slack_of_one_is_centerd_on_the_mean():
    X = vectors(20, 3)
    np.testing.assert_allclose(enclosing_ball(X @ X.T, 1.0).weights, 1 / 20)


def test_ball_around_copies_of_one_point_has_no_radius():
    ball = enclosing_ball(np.full((5, 5), 2.0))
    assert ball.squared_radius == ball.cost == 0.0


def test_ball_around_a_single_point():
    ball = enclosing_ball(np.array([[4.0]]), 0.5)
    assert ball.weights.tolist() == [1.0]
    assert ball.squared_radius == 0.0


def test_sorting_is_the_best_assignment_of_single_numbers():
    rng = np.random.default_rng(1)
    target, values = rng.normal(size=(6, 1)), rng.normal(size=(4, 6, 1))
    quick = nearest_candidates(target, Bags.of(values))
    wide = np.concatenate([values, np.zeros_like(values)], axis=2)
    slow = nearest_candidates(np.c_[target, np.zeros(6)], Bags.of(wide))
    np.testing.assert_array_equal(quick, slow)
