import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import unshuffle.kernels.sets._models.set_vectors as set_vectors
from unshuffle.kernels import MaxMapKernel, MeanMapKernel, SetKernelSum, rbf_kernel

KERNELS = [
    MaxMapKernel(),
    MaxMapKernel(gamma=0.5, n_landmarks=7, outer="rbf"),
    MaxMapKernel("linear"),
    SetKernelSum([MaxMapKernel(), MeanMapKernel()]),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "few", "linear", "sum"])


def sets(n=12, width=2, seed=0, low=3, high=30):
    rng = np.random.default_rng(seed)
    return [rng.normal(rng.normal(), 1.0, size=(rng.integers(low, high), width)) for _ in range(n)]


def double_loop(bags, landmarks, similarity):
    return np.array([[max(similarity(x, z) for x in bag) for z in landmarks] for bag in bags])


def test_a_set_is_described_by_its_largest_similarity_to_each_landmark():
    bags = sets(6)
    kernel = MaxMapKernel(gamma=0.7, outer_gamma=2.0).fit(bags)
    assert {tuple(z) for z in kernel.landmarks_} == {tuple(x) for bag in bags for x in bag}
    vectors = double_loop(
        bags, kernel.landmarks_, lambda x, z: np.exp(-0.7 * np.sum((x - z) ** 2))
    )
    np.testing.assert_allclose(kernel.transform(bags), 2.0 * vectors @ vectors.T, rtol=1e-12)


def test_the_outer_kernel_falls_off_with_the_distance_of_descriptions():
    bags = sets()
    kernel = MaxMapKernel(gamma=0.7, outer_gamma=1.0)
    K = kernel.fit_transform(bags)
    D = np.diag(K)[:, None] + np.diag(K) - 2 * K
    above = np.triu_indices(len(bags), 1)
    scaled = MaxMapKernel(gamma=0.7).fit(bags)
    assert scaled.outer_gamma_ == pytest.approx(1 / np.median(D[above]))
    np.testing.assert_allclose(scaled.transform(bags), scaled.outer_gamma_ * K, rtol=1e-12)
    kernel = MaxMapKernel(gamma=0.7, outer="rbf")
    found = kernel.fit_transform(bags)
    assert kernel.outer_gamma_ == scaled.outer_gamma_
    np.testing.assert_allclose(found, np.exp(-kernel.outer_gamma_ * D), atol=1e-10)
    np.testing.assert_array_equal(np.diag(found), 1.0)


def test_the_linear_kernel_compares_the_extremes_of_columns():
    bags = sets(width=3)
    kernel = MaxMapKernel("linear", outer="rbf", outer_gamma=0.3)
    extremes = np.array([np.append(bag.max(axis=0), bag.min(axis=0)) for bag in bags])
    np.testing.assert_allclose(kernel.fit_transform(bags), rbf_kernel(extremes, gamma=0.3))
    assert kernel.landmarks_.shape == (0, 3)
    kernel = MaxMapKernel("linear", outer_gamma=1.0)
    K = kernel.fit_transform([[[-1.0], [2.0]], [[0.0]], [[1.0]]])
    # The median of all points, 0, is subtracted first.
    np.testing.assert_allclose(K, [[5, 0, 1], [0, 0, 0], [1, 0, 2]])


def test_the_default_width_is_the_upper_quartile_of_distances_to_the_nearest_point():
    bags = [np.array([[0.0], [1.0]]), np.array([[3.0]])]
    # 3 is 2 away from the first set, 0 and 1 are 3 and 2 away from the second: squares 4, 4, 9.
    assert MaxMapKernel().fit(bags).gamma_ == pytest.approx(1 / 6.5)


def test_kernels_of_ones_own_take_arrays_or_points_and_need_not_be_positive_definite():
    bags = sets(5, high=6)

    def of_points(x, y):
        return -float(np.abs(x - y).sum())

    def of_arrays(X, Y):
        return -np.abs(X[:, None] - Y[None]).sum(axis=2)

    for kernel in (of_points, of_arrays):
        fitted = MaxMapKernel(kernel, outer_gamma=1.0).fit(bags)
        vectors = double_loop(bags, fitted.landmarks_, of_points)
        np.testing.assert_allclose(fitted.transform(bags), vectors @ vectors.T, rtol=1e-12)
        assert fitted.gamma_ == 1.0


@each_kernel
@given(seed=st.integers(0, 2**32 - 1), copies=st.integers(2, 4))
def test_a_repeated_point_counts_once_in_new_sets(kernel, seed, copies):
    if isinstance(kernel, SetKernelSum):
        kernel = kernel.kernels[0]
    rng = np.random.default_rng(seed)
    fitted = kernel.fit(sets())
    new = sets(3, seed=seed % 1000)
    repeated = [np.repeat(bag, rng.integers(1, copies + 1, len(bag)), axis=0) for bag in new]
    np.testing.assert_allclose(fitted.transform(repeated), fitted.transform(new), rtol=1e-10)


def test_a_repeated_point_counts_once_in_fitted_sets():
    bags = sets()
    repeated = [np.concatenate([bag, bag[: i % 3]]) for i, bag in enumerate(bags)]
    K = MaxMapKernel().fit_transform(bags)
    np.testing.assert_allclose(MaxMapKernel().fit_transform(repeated), K, rtol=1e-12)


@each_kernel
@given(seed=st.integers(0, 2**32 - 1))
def test_neither_the_order_of_points_nor_of_sets_matters(kernel, seed):
    rng, bags = np.random.default_rng(seed), sets()
    order = rng.permutation(len(bags))
    K = kernel.fit_transform(bags)
    other = kernel.fit_transform([rng.permutation(bags[i]) for i in order])
    np.testing.assert_allclose(other, K[np.ix_(order, order)], rtol=1e-10)


@given(seed=st.integers(0, 2**32 - 1))
def test_more_points_never_lower_a_similarity(seed):
    bags = sets(4, seed=seed % 1000)
    fitted = MaxMapKernel(n_landmarks=9).fit(bags)
    larger = [np.concatenate([bag, bags[0]]) for bag in bags]
    before, after = (
        fitted._describe(fitted._sets_like_fitted(each, None)) for each in (bags, larger)
    )
    assert (after >= before - 1e-12).all()


def test_landmarks_are_spread_like_the_points():
    points = np.concatenate([np.zeros(90), np.ones(10)]) + np.linspace(0.0, 0.1, 100)
    kernel = MaxMapKernel(n_landmarks=20).fit(points.reshape(10, 10, 1))
    assert kernel.landmarks_.shape == (20, 1)
    assert (kernel.landmarks_ > 0.5).sum() == 2
    assert len(MaxMapKernel(n_landmarks=None).fit(points.reshape(10, 10, 1)).landmarks_) == 100


@pytest.mark.slow
def test_it_finds_one_telling_point_among_fifty():
    rng = np.random.default_rng(0)
    bags, labels = rng.normal(size=(100, 50, 3)), np.arange(100) % 2
    bags[1::2, 0] = 2.0 + 0.1 * rng.normal(size=(50, 3))

    def accuracy(kernel):
        model = make_pipeline(kernel, SVC(C=10, kernel="precomputed"))
        return cross_val_score(model, bags, labels).mean()

    assert accuracy(MaxMapKernel()) > 0.9
    assert accuracy(MaxMapKernel()) > accuracy(MeanMapKernel(outer="rbf")) + 0.1


@pytest.mark.parametrize("kernel", [MaxMapKernel(gamma=0.5), MaxMapKernel(lambda x, z: x @ z.T)])
def test_large_sets_are_described_in_pieces(kernel, monkeypatch):
    bags = [np.random.default_rng(i).normal(size=(101, 2)) for i in range(3)]
    whole = kernel.fit_transform(bags)
    monkeypatch.setattr(set_vectors, "MAX_FEATURES", 3000)
    np.testing.assert_allclose(kernel.fit_transform(bags), whole, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({}, [[[1.0, 2.0]]], "bags hold 1 point"),
        ({}, [[[1.0, 2.0]]] * 3, "3 set\\(s\\) with the same points"),
        ({}, sets(1), "1 set\\(s\\) with the same points"),
        ({"gamma": 1.0}, sets(1), "`outer_gamma` is set by the distances between sets"),
        ({"base_kernel": "linear"}, [sets(1)[0]] * 2, "all 2 sets are the same"),
        ({"base_kernel": "poly"}, sets(3), "`base_kernel` must be"),
        ({"n_landmarks": 0}, sets(3), "`n_landmarks` must be"),
        ({"gamma": 0.0}, sets(3), "`gamma` must be"),
        ({"base_kernel": lambda x, z: 1e300}, sets(3), "too large to square: up to 1e"),
        ({"base_kernel": lambda x, z: np.nan}, sets(3), "returned NaN or infinity"),
    ],
)
def test_what_has_no_answer_is_refused(options, data, message):
    with pytest.raises(ValueError, match=message):
        MaxMapKernel(**options).fit(data)


def test_descriptions_too_long_for_memory_are_refused(monkeypatch):
    bags = sets()
    monkeypatch.setattr("unshuffle._core.parameters.available_memory", lambda: 2000)
    with pytest.raises(MemoryError, match="Describing 12 sets"):
        MaxMapKernel().fit(bags)
