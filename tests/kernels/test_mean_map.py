import numpy as np
import pytest

import unshuffle.kernels.sets._mean_map as module
import unshuffle.kernels.sets._models.set_vectors as set_vectors
from unshuffle.kernels import MeanMapKernel, median_gamma, rbf_kernel


def sets(n=12, width=2, seed=0, low=3, high=30):
    rng = np.random.default_rng(seed)
    return [rng.normal(rng.normal(), 1.0, size=(rng.integers(low, high), width)) for _ in range(n)]


def double_loop(bags, similarity):
    return np.array([[similarity(a, b).mean() for b in bags] for a in bags])


def of_unit_length(K):
    return K / np.sqrt(np.outer(np.diag(K), np.diag(K)))


def gaussian(gamma):
    return lambda a, b: rbf_kernel(a, b, gamma=gamma)


@pytest.mark.parametrize("width", [1, 2, 3, 6])
@pytest.mark.parametrize("gamma", [0.05, 1.0])
def test_it_is_the_mean_over_all_pairs_of_points(width, gamma):
    bags = sets(width=width)
    K = MeanMapKernel(gamma=gamma, normalize=False).fit_transform(bags)
    np.testing.assert_allclose(K, double_loop(bags, gaussian(gamma)), atol=1e-13)


@pytest.mark.parametrize("many_features", [True, False])
def test_waves_and_pairs_of_points_agree(monkeypatch, many_features):
    bags = sets(width=2)
    monkeypatch.setattr(module, "most_features", lambda _: 1e6 if many_features else 0.0)
    kernel = MeanMapKernel(gamma=0.7).fit(bags)
    assert (kernel._model.features is not None) == many_features
    expected = of_unit_length(double_loop(bags, gaussian(0.7)))
    np.testing.assert_allclose(kernel.transform(bags), expected, atol=1e-13)


def test_polynomials_compare_moments():
    bags = sets(width=3)
    for data in (bags, [bag[:1] for bag in bags]):  # few points: pairs, many: monomials
        K = MeanMapKernel("poly", gamma=0.5, degree=3, normalize=False).fit_transform(data)
        expected = double_loop(data, lambda a, b: (0.5 * a @ b.T + 1.0) ** 3)
        np.testing.assert_allclose(K, expected, atol=1e-13 * expected.max())


def test_the_linear_kernel_compares_means():
    bags = sets()
    means = np.array([bag.mean(axis=0) for bag in bags])
    K = MeanMapKernel("linear", normalize=False).fit_transform(bags)
    np.testing.assert_allclose(K, means @ means.T, atol=1e-13)


def test_kernels_of_ones_own_take_arrays_or_points():
    bags = sets(5, high=6)

    def of_arrays(X, Y):
        return np.exp(-np.abs(X[:, None] - Y[None]).sum(axis=2))

    def of_points(x, y):
        return float(np.exp(-np.abs(x - y).sum()))

    expected = of_unit_length(double_loop(bags, of_arrays))
    for kernel in (of_arrays, of_points):
        found = MeanMapKernel(kernel).fit_transform(bags)
        np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize("base", ["rbf", "linear", "poly"])
def test_an_outer_kernel_falls_off_with_the_discrepancy(base):
    bags = sets()
    K = MeanMapKernel(base, gamma=0.5, normalize=False).fit_transform(bags)
    D = np.diag(K)[:, None] + np.diag(K) - 2 * K
    kernel = MeanMapKernel(base, gamma=0.5, normalize=False, outer="rbf")
    found = kernel.fit_transform(bags)
    assert kernel.outer_gamma_ == pytest.approx(median_gamma(D))
    np.testing.assert_allclose(found, np.exp(-kernel.outer_gamma_ * D), atol=1e-12)
    np.testing.assert_array_equal(np.diag(found), 1.0)


def test_an_outer_kernel_works_on_pairs_too():
    bags = sets(width=8, high=8)
    kernel = MeanMapKernel(gamma=0.05, outer="rbf", outer_gamma=2.0).fit(bags)
    assert kernel._model.features is None
    K = of_unit_length(double_loop(bags, gaussian(0.05)))
    np.testing.assert_allclose(kernel.transform(bags), np.exp(-4.0 * (1 - K)), atol=1e-12)


def test_sets_of_one_point_are_compared_by_the_base_kernel():
    X = np.random.default_rng(0).normal(size=(30, 3))
    np.testing.assert_allclose(MeanMapKernel().fit_transform(X), rbf_kernel(X), atol=1e-14)


def test_random_features_come_closer_the_more_there_are():
    bags = sets(20, width=4)
    exact = MeanMapKernel(gamma=0.2).fit_transform(bags)
    errors = []
    for n_features in (50, 500, 5000):
        runs = [
            MeanMapKernel(gamma=0.2, n_features=n_features, random_state=seed).fit_transform(bags)
            for seed in range(5)
        ]
        errors.append(np.sqrt(np.mean([(run - exact) ** 2 for run in runs])))
    # Each ten times as many features: a root of ten, give or take the luck of the draw.
    assert 2 < errors[0] / errors[1] < 5
    assert 2 < errors[1] / errors[2] < 5
    assert errors[2] < 0.02


def test_new_sets_far_from_the_fitted_ones_are_compared_as_exactly():
    bags, new = sets(), sets(4, seed=1)
    new[1] = new[1] + 30.0
    kernel = MeanMapKernel(gamma=0.5).fit(bags)
    assert kernel._model.features is not None
    everything = of_unit_length(double_loop([*bags, *new], gaussian(0.5)))
    np.testing.assert_allclose(kernel.transform(new), everything[12:, :12], atol=1e-13)
    np.testing.assert_allclose(kernel.gram(new), everything[12:, 12:], atol=1e-13)


def test_new_sets_at_the_end_of_the_world_are_compared_as_exactly():
    new = [bag + 1e6 for bag in sets(4, seed=1)]
    K = MeanMapKernel(gamma=0.5, normalize=False).fit(sets()).gram(new)
    np.testing.assert_allclose(K, double_loop(new, gaussian(0.5)), atol=1e-12)


def test_a_far_origin_and_far_outliers_cost_no_digits():
    bags = sets(6, width=2)
    near = MeanMapKernel(gamma=0.5, normalize=False).fit_transform(bags)
    far = MeanMapKernel(gamma=0.5, normalize=False).fit_transform([bag + 1e6 for bag in bags])
    np.testing.assert_allclose(near, far, atol=1e-9)
    bags[0] = np.vstack([bags[0], [[1e5, 1e5]]])
    K = MeanMapKernel(gamma=0.5, normalize=False).fit_transform(bags)
    np.testing.assert_allclose(K, double_loop(bags, gaussian(0.5)), atol=1e-12)


def test_a_set_without_a_mean_is_similar_to_none():
    bags = [np.array([[1.0], [-1.0]]), np.array([[1.0]]), np.array([[2.0]])]
    K = MeanMapKernel("linear").fit_transform(bags)
    np.testing.assert_allclose(K, [[0, 0, 0], [0, 1, 1], [0, 1, 1]])


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"n_features": 10, "base_kernel": "poly"}, sets(3), "features for base_kernel='rbf'"),
        ({}, [[[1.0, 2.0]]], "bags hold 1 point"),
        ({}, [[[1.0, 2.0]]] * 3, "All items of the bags are equal"),
        ({"outer": "rbf"}, sets(1), "`outer_gamma` is set by the distances between sets"),
        ({"base_kernel": "poly", "degree": 80}, [[[1e3], [1.0]]] * 2, "too large for a float"),
    ],
)
def test_what_has_no_answer_is_refused(options, data, message):
    with pytest.raises(ValueError, match=message):
        MeanMapKernel(**options).fit(data)


@pytest.mark.parametrize("outer", ["linear", "rbf"])
def test_kernels_that_are_not_positive_definite_are_refused(outer):
    def negative_distance(X, Y):
        return 1.0 - ((X[:, None] - Y[None]) ** 2).sum(axis=2)

    bags = [np.random.default_rng(i).normal(size=(5, 2)) for i in range(6)]
    with pytest.raises(ValueError, match="negative_distance is not positive definite"):
        MeanMapKernel(negative_distance, outer=outer).fit(bags)


def test_features_too_many_for_memory_are_refused_before_they_are_drawn():
    bags = [np.random.default_rng(i).normal(size=(5, 2)) for i in range(3)]
    with pytest.raises(MemoryError, match="smaller n_features"):
        MeanMapKernel(n_features=10**12).fit(bags)


@pytest.mark.parametrize("kernel", [MeanMapKernel(gamma=0.5), MeanMapKernel("poly")])
def test_large_sets_are_averaged_in_pieces(kernel, monkeypatch):
    bags = [np.random.default_rng(i).normal(size=(101, 2)) for i in range(3)]
    whole = kernel.fit_transform(bags)
    monkeypatch.setattr(set_vectors, "MAX_FEATURES", 3000)
    np.testing.assert_allclose(kernel.fit_transform(bags), whole, rtol=1e-12)
