import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle.alignment._volume import LeaveOneOut, expected_trace, log_volume


def trace_of_bags(points):
    return float(np.trace(covariance(points)))


def covariance(points):
    vectors = points.reshape(len(points), -1)
    return np.cov(vectors.T, bias=True).reshape(vectors.shape[1], -1)


def bags(seed, n_bags=6, n_points=4, width=2):
    return np.random.default_rng(seed).normal(size=(n_bags, n_points, width))


@pytest.mark.parametrize("n_bags", [3, 6, 30])
def test_log_volume_counts_one_direction_less_than_bags(n_bags):
    points = bags(1, n_bags=n_bags)
    values = np.zeros(n_bags - 1)
    kept = min(n_bags - 1, 8)
    values[:kept] = np.linalg.eigvalsh(covariance(points))[::-1][:kept]
    assert log_volume(points, ridge=0.1) == pytest.approx(np.log(values + 0.1).sum())


def test_equal_bags_have_no_trace_and_the_volume_of_the_ridge():
    points = np.repeat(bags(2)[:1], 5, axis=0)
    assert trace_of_bags(points) == pytest.approx(0, abs=1e-25)
    assert log_volume(points, ridge=0.5) == pytest.approx(4 * np.log(0.5))


def test_expected_trace_is_the_mean_over_random_orders():
    points, rng = bags(3, n_bags=3, n_points=3) + 5.0, np.random.default_rng(0)
    drawn = [trace_of_bags(rng.permuted(points, axis=1)) for _ in range(3)]
    orders = np.array([trace_of_bags(shuffled(points, rng)) for _ in range(4000)])
    assert len(set(drawn)) == 3
    error = orders.std() / np.sqrt(orders.size)
    assert abs(orders.mean() - expected_trace(points)) < 4 * error
    assert error < 0.02 * expected_trace(points)


def shuffled(points, rng):
    return np.stack([rng.permutation(bag) for bag in points])


@given(st.integers(0, 2**32 - 1))
def test_expected_trace_ignores_the_order_inside_bags(seed):
    points = bags(seed)
    mixed = shuffled(points, np.random.default_rng(seed))
    assert expected_trace(mixed) == pytest.approx(expected_trace(points), rel=1e-12)


def test_expected_trace_of_bags_of_one_is_the_trace():
    points = bags(4, n_points=1)
    assert expected_trace(points) == pytest.approx(trace_of_bags(points))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.3, 10.0]))
def test_leave_one_out_identity(seed, ridge):
    points = bags(seed, n_bags=7)
    vectors = points.reshape(7, -1)
    gram = vectors @ vectors.T
    left = LeaveOneOut.of(gram[1:, 1:], ridge=ridge)
    form = left.quadratic(gram[0, 1:], gram[0, 0])

    others = vectors[1:] - vectors[1:].mean(axis=0)
    S = others.T @ others / 7 + ridge * np.eye(8)
    d = vectors[0] - vectors[1:].mean(axis=0)
    assert form == pytest.approx(d @ np.linalg.solve(S, d), rel=1e-10)
    whole = np.linalg.slogdet(covariance(points) + ridge * np.eye(8))[1]
    parts = np.linalg.slogdet(S)[1] + np.log1p(6 / 49 * form)
    assert abs(whole - parts) < 1e-10
    # as many directions are left out of the log-volume as the ridge fills alone
    assert log_volume(points, ridge=ridge) + 2 * np.log(ridge) == pytest.approx(whole, abs=1e-10)


def test_the_prediction_is_the_mean_and_what_the_covariance_explains():
    vectors = bags(5).reshape(6, -1)
    gram, ridge = vectors @ vectors.T, 0.2
    left = LeaveOneOut.of(gram[1:, 1:], ridge=ridge)
    mean = vectors[1:].mean(axis=0)
    others = vectors[1:] - mean
    S = others.T @ others / 6
    expected = mean + S @ np.linalg.solve(S + ridge * np.eye(8), vectors[0] - mean)
    weights = left.prediction_weights(gram[0, 1:])
    assert weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(weights @ vectors[1:], expected, atol=1e-12)


def test_a_large_ridge_predicts_the_mean():
    vectors = bags(6).reshape(6, -1)
    gram = vectors @ vectors.T
    weights = LeaveOneOut.of(gram[1:, 1:], ridge=1e12).prediction_weights(gram[0, 1:])
    np.testing.assert_allclose(weights, 1 / 5, atol=1e-10)


def test_a_ridge_below_zero_has_no_volume():
    with pytest.raises(np.linalg.LinAlgError):
        LeaveOneOut.of(np.eye(4), ridge=-1.0)
