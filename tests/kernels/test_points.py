import numpy as np
import pytest

from unshuffle._core.distances import WIDTH_SAMPLE, median_gamma, sampled_gamma, squared_distances
from unshuffle._core.kernel_features import (
    PointFeatures,
    PointKernel,
    call_kernel,
    greedy_cholesky,
    greedy_pivots,
)
from unshuffle.kernels import rbf_kernel


def points(n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def features(X, kernel, **options):
    return PointFeatures.of(X, kernel, **{"gamma": None, "degree": 2, "rank": 60, **options})


def test_linear_features_are_the_points_about_their_middle():
    X = points() + 100
    found = features(X, "linear")
    np.testing.assert_array_equal(found.map(X), X - np.sort(X, axis=0)[(len(X) - 1) // 2])
    np.testing.assert_allclose(found.points(found.map(points(5))), points(5))


@pytest.mark.parametrize(
    ("kernel", "options"), [("rbf", {"gamma": 2.0}), ("poly", {"gamma": 0.3, "degree": 3})]
)
def test_inner_products_of_features_are_the_kernel(kernel, options):
    X, new = points(), points(7, seed=1)
    found = features(X, kernel, **options)
    if kernel == "rbf":
        whole, cross = rbf_kernel(X, gamma=2.0), rbf_kernel(new, X, gamma=2.0)
    else:
        whole, cross = (1 + 0.3 * X @ X.T) ** 3, (1 + 0.3 * new @ X.T) ** 3
    np.testing.assert_allclose(found.map(X) @ found.map(X).T, whole, atol=1e-7)
    np.testing.assert_allclose(found.map(new) @ found.map(X).T, cross, atol=1e-5)


def test_a_polynomial_needs_no_more_features_than_it_has_monomials():
    assert features(points(), "poly", degree=2).map(points()).shape == (40, 6)
    assert features(points(), "poly", degree=3).map(points()).shape == (40, 10)


def test_a_larger_rank_comes_closer():
    X = points(200)
    errors = []
    for rank in (5, 20, 60):
        mapped = features(X, "rbf", rank=rank).map(X)
        assert mapped.shape == (200, rank)
        errors.append(np.trace(rbf_kernel(X) - mapped @ mapped.T))
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert errors[2] > -1e-8


def test_pivots_are_the_points_worst_explained():
    X = np.array([[0.0], [0.01], [5.0], [5.01], [10.0]])
    pivots, factor = greedy_pivots(X, PointKernel("rbf", 1.0, 2), 3)
    assert {round(float(each)) for each in X[pivots, 0]} == {0, 5, 10}
    np.testing.assert_allclose(factor @ factor.T, rbf_kernel(X[pivots], gamma=1.0))


def test_copies_of_points_add_no_features():
    X = np.repeat(points(6), 4, axis=0)
    assert features(X, "rbf").map(X).shape == (24, 6)


@pytest.mark.parametrize(("kernel", "within"), [("poly", 1e-5), ("rbf", 0.01)])
def test_features_of_points_lead_back_to_them(kernel, within):
    X, new = points(300), 0.5 * points(50, seed=1)
    found = features(X, kernel)
    error = np.linalg.norm(found.points(found.map(new)) - new) / np.linalg.norm(new)
    assert error < within


def test_a_kernel_without_a_feature_space_is_refused():
    def distance(X, Y):
        return np.linalg.norm(X[:, None] - Y[None], axis=2)

    with pytest.raises(ValueError, match="kernel distance is not positive definite"):
        features(points(), distance)


def test_greedy_factors_explain_a_kernel_matrix():
    K = rbf_kernel(points(30))
    pivots, F = greedy_cholesky(lambda i: K[:, i], np.diag(K), 30, negligible=1e-12)
    assert len(set(pivots)) == len(pivots) == len(F)
    np.testing.assert_allclose(F.T @ F, K, atol=1e-10)
    few, thin = greedy_cholesky(lambda i: K[:, i], np.diag(K), 30, negligible=0.0, enough=3.0)
    assert few.tolist() == pivots[: len(few)].tolist()
    assert np.trace(K - thin.T @ thin) <= 3.0 < np.trace(K - thin[:-1].T @ thin[:-1])


def test_a_kernel_of_two_points_gives_what_one_of_two_arrays_gives():
    X, Y = points(5), points(4, seed=1)

    def whole(A, B):
        return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))

    def single(a, b):
        return float(np.exp(-np.abs(a - b).sum()))

    for other in (Y, None):
        found = call_kernel(single, X, other, name="X")
        np.testing.assert_allclose(found, call_kernel(whole, X, other, name="X"))


def test_the_width_of_many_points_is_that_of_a_fixed_sample():
    X = points(WIDTH_SAMPLE + 500)
    width = sampled_gamma(X, name="X")
    assert width == sampled_gamma(X, name="X")
    assert width == pytest.approx(median_gamma(squared_distances(X)), rel=0.05)
    few = X[:50]
    assert sampled_gamma(few, name="X") == median_gamma(squared_distances(few))
