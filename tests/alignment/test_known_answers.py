import numpy as np
import pytest
from sklearn.decomposition import PCA, KernelPCA
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.pipeline import make_pipeline

from unshuffle import MinimumVolumePCA
from unshuffle.alignment import MinimumVolumePCA as FromRoom

METHODS = ["mean", "covariance", "variational"]


def same_up_to_sign(found, expected, atol=1e-8):
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=atol)


def right(permutations, orders):
    """Fraction of points that agree on which point of the shape their position stands for."""
    origin = np.stack([order[p] for order, p in zip(orders, permutations, strict=True)])
    return np.mean([np.bincount(each).max() for each in origin.T]) / len(orders)


def test_the_package_exports_it():
    assert MinimumVolumePCA is FromRoom


@pytest.mark.parametrize("method", METHODS)
def test_shuffled_copies_are_matched_exactly(copies, method):
    bags, orders = copies(noise=0.0)
    found = MinimumVolumePCA(method=method).fit(bags)
    assert right(found.permutations_, orders) == 1.0
    np.testing.assert_array_equal(found.permutations_[0], np.arange(30))
    np.testing.assert_allclose(found.mean_, bags[0], atol=1e-12)
    assert found.objective_path_[-1] == pytest.approx(0, abs=1e-20)
    assert found.converged_


@pytest.mark.parametrize("method", ["mean", "covariance"])
def test_most_points_of_noisy_copies_find_their_partners(copies, method):
    shares = []
    for seed in range(8):
        bags, orders = copies(seed, noise=0.08)
        found = MinimumVolumePCA(method=method).fit(bags)
        shares.append(right(found.permutations_, orders))
    assert np.mean(shares) >= 0.92


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_bags", [40, 5])
def test_bags_of_one_are_plain_pca(method, n_bags):
    X = np.random.default_rng(0).normal(size=(n_bags, 8)) * np.arange(1, 9) + 3
    n_components = min(n_bags - 1, 8)
    pca = PCA(n_components).fit(X)
    found = MinimumVolumePCA(n_components, method=method).fit(X)
    np.testing.assert_allclose(found.mean_[0], pca.mean_)
    np.testing.assert_allclose(found.explained_variance_, pca.explained_variance_)
    np.testing.assert_allclose(found.explained_variance_ratio_, pca.explained_variance_ratio_)
    same_up_to_sign(found.components_.T, pca.components_.T)
    new = np.random.default_rng(1).normal(size=(3, 8))
    same_up_to_sign(found.transform(X), pca.transform(X))
    signs = np.sign(np.sum(found.components_ * pca.components_, axis=1))
    np.testing.assert_allclose(found.transform(new) * signs, pca.transform(new))
    scores = pca.transform(new)
    np.testing.assert_allclose(
        found.inverse_transform(scores * signs)[:, 0], pca.inverse_transform(scores)
    )


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        ("rbf", {"gamma": 0.2}),
        ("poly", {"gamma": 0.5, "degree": 3}),
        (lambda X, Y: laplacian_kernel(X, Y, gamma=0.3), {}),
    ],
)
@pytest.mark.parametrize("method", ["mean", "covariance"])
def test_bags_of_one_are_kernel_pca(kernel, options, method):
    X = np.random.default_rng(0).normal(size=(25, 3))
    new = np.random.default_rng(1).normal(size=(4, 3))
    if callable(kernel):
        reference = KernelPCA(5, kernel="precomputed")
        train, test = kernel(X, X), kernel(new, X)
    else:
        reference = KernelPCA(5, kernel=kernel, coef0=1, **options)
        train, test = X, new
    expected = reference.fit_transform(train)
    found = MinimumVolumePCA(5, method, kernel, **options).fit(X)
    scores = found.transform(X)
    same_up_to_sign(scores, expected, atol=1e-6)
    signs = np.sign(np.sum(scores * expected, axis=0))
    np.testing.assert_allclose(found.transform(new) * signs, reference.transform(test), atol=1e-6)


def test_the_median_sets_the_width():
    X = np.random.default_rng(0).normal(size=(20, 3))
    distances = np.sum((X[:, None] - X[None]) ** 2, axis=2)[np.triu_indices(20, 1)]
    named = MinimumVolumePCA(3, kernel="rbf", gamma=1 / np.median(distances)).fit(X)
    np.testing.assert_allclose(
        MinimumVolumePCA(3, kernel="rbf").fit(X).explained_variance_, named.explained_variance_
    )


def test_a_kernel_of_two_points_is_as_good_as_one_of_two_arrays(rings):
    by_rows = MinimumVolumePCA(3, kernel=lambda x, y: np.exp(-np.sum((x - y) ** 2))).fit(rings)
    named = MinimumVolumePCA(3, kernel="rbf", gamma=1.0).fit(rings)
    np.testing.assert_array_equal(by_rows.permutations_, named.permutations_)
    np.testing.assert_allclose(by_rows.explained_variance_, named.explained_variance_)


def test_few_directions_hold_the_variance_of_bags_that_have_few(rings):
    raw = PCA().fit(rings.reshape(len(rings), -1)).explained_variance_ratio_
    found = MinimumVolumePCA().fit(rings)
    assert raw[:2].sum() < 0.5
    assert found.explained_variance_ratio_[:2].sum() > 0.9
    assert MinimumVolumePCA(0.9).fit(rings).components_.shape == (2, 48)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_all_components_give_the_bags_back(rings, kernel):
    found = MinimumVolumePCA(kernel=kernel, n_landmarks=400).fit(rings)
    back = found.inverse_transform(found.transform(rings))
    bags = np.stack([rings[i][p] for i, p in enumerate(found.align(rings))])
    atol = 1e-10 if kernel == "linear" else 0.02
    np.testing.assert_allclose(back, bags, atol=atol)


def test_few_components_come_close_to_new_bags(rings):
    found = MinimumVolumePCA(2).fit(rings[:10])
    new = rings[10:]
    back = found.inverse_transform(found.transform(new))
    bags = np.stack([bag[p] for bag, p in zip(new, found.align(new), strict=True)])
    spread = np.sum((new - new.mean(axis=1, keepdims=True)) ** 2)
    assert np.sum((back - bags) ** 2) < 0.01 * spread


def test_the_covariance_takes_less_room_than_the_mean(rings):
    mean = MinimumVolumePCA().fit(rings)
    covariance = MinimumVolumePCA(method="covariance").fit(rings)
    swapped = MinimumVolumePCA(method="covariance", swaps=True).fit(rings)
    assert covariance.log_volume_path_[0] == pytest.approx(mean.log_volume_path_[-1])
    assert covariance.log_volume_path_[-1] <= mean.log_volume_path_[-1]
    assert swapped.log_volume_path_[-1] <= mean.log_volume_path_[-1]
    assert covariance.objective_path_[-1] >= mean.objective_path_[-1]


def test_a_morph_begins_and_ends_with_the_bags(rings):
    found = MinimumVolumePCA(2).fit(rings)
    first, second = rings[3][found.permutations_[3]], rings[5][found.permutations_[5]]
    np.testing.assert_allclose(found.morph(3, 5, 0), first)
    np.testing.assert_allclose(found.morph(3, 5, 1), second)
    strip = found.morph(3, 5, [0.0, 0.25, 1.0])
    assert strip.shape == (3, 24, 2)
    np.testing.assert_allclose(strip[1], 0.75 * first + 0.25 * second)
    np.testing.assert_allclose(found.morph(5, 3, 0.75), strip[1])


def test_half_way_between_two_rings_is_a_ring(rings):
    found = MinimumVolumePCA(2).fit(rings)
    half = found.morph(0, 1, 0.5)
    raw = (rings[0] + rings[1]) / 2
    scale = (np.abs(rings[0]).max(axis=0) + np.abs(rings[1]).max(axis=0)) / 2
    radius = np.linalg.norm(half / scale, axis=1)
    assert radius.min() > 0.85
    assert np.linalg.norm(raw / scale, axis=1).min() < 0.5


def test_smaller_bags_are_filled_with_copies(copies):
    bags, orders = copies(n_bags=8, noise=0.02)
    bags[2], orders[2] = bags[2][:20], orders[2][:20]
    bags[0], orders[0] = bags[0][:25], orders[0][:25]
    found = MinimumVolumePCA(2, random_state=0).fit(bags)
    assert found.n_points_ == 30
    assert set(found.permutations_[2]) == set(range(20))
    assert np.bincount(found.permutations_[2]).max() == 2
    assert np.all(np.diff(found.permutations_[0]) >= 0)
    assert np.array_equal(np.sort(found.permutations_[5]), np.arange(30))


def test_larger_bags_lose_points(copies):
    bags, _ = copies(n_bags=5, n_points=30)
    found = MinimumVolumePCA(2, n_points=12, random_state=0).fit(bags)
    assert found.permutations_.shape == (5, 12)
    assert all(np.unique(p).size == 12 for p in found.permutations_)
    assert found.morph(0, 1, 0.5).shape == (12, 2)


def test_missing_points_leave_positions_empty_where_they_belong(copies):
    bags, orders = copies(n_bags=8, noise=0.01)
    for i in (0, 3, 6):
        bags[i], orders[i] = bags[i][: 20 + i], orders[i][: 20 + i]
    found = MinimumVolumePCA(2, unequal="missing").fit(bags)
    assert np.sum(found.permutations_ == -1, axis=1).tolist() == [10, 0, 0, 7, 0, 0, 4, 0]
    assert np.array_equal(found.permutations_[0][:20], np.arange(20))
    origin = [
        np.where(p >= 0, order[p], -1)
        for order, p in zip(orders, found.permutations_, strict=True)
    ]
    whole = origin[1]
    for each in origin:
        known = each >= 0
        assert np.mean(each[known] == whole[known]) > 0.9
    np.testing.assert_array_equal(found.morph(0, 1, 0.0)[20:], found.mean_[20:])
    assert found.transform(bags).shape == (8, 2)
    assert np.sum(found.align([bags[3]]) == -1) == 7


def test_it_stands_in_a_pipeline(rings):
    scores = make_pipeline(MinimumVolumePCA(4), PCA(2)).fit_transform(rings)
    assert scores.shape == (len(rings), 2)


def test_more_starts_are_never_worse(copies):
    bags, _ = copies(n_bags=12, noise=0.3)
    ends = [
        MinimumVolumePCA(n_init=n_init, random_state=0).fit(bags).objective_path_[-1]
        for n_init in (1, 4, 12, 50)
    ]
    assert np.all(np.diff(ends) <= 0)
    assert ends[-1] < ends[0]
