import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import few

from unshuffle import MinimumVolumePCA

SOME = [
    {},
    {"method": "covariance", "swaps": True},
    {"method": "variational"},
    {"kernel": "rbf", "n_landmarks": 12},
    {"method": "covariance", "kernel": "poly"},
    {"n_init": 3, "random_state": 0},
]


def shuffled(bags, seed):
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(bag)) for bag in bags]
    return [bag[order] for bag, order in zip(bags, orders, strict=True)], orders


@pytest.mark.parametrize("options", SOME)
@pytest.mark.parametrize("seed", [0, 1])
def test_shuffling_inside_bags_changes_nothing_but_the_index(rings, options, seed):
    bags = list(rings[:8])
    mixed, orders = shuffled(bags, seed)
    plain = MinimumVolumePCA(3, **options).fit(bags)
    found = MinimumVolumePCA(3, **options).fit(mixed)
    np.testing.assert_array_equal(found.objective_path_, plain.objective_path_)
    np.testing.assert_array_equal(found.log_volume_path_, plain.log_volume_path_)
    np.testing.assert_array_equal(found.explained_variance_, plain.explained_variance_)
    np.testing.assert_array_equal(found.permutations_[0], np.arange(24))
    # both follow the order of their own bag 0
    own = np.argsort(orders[0])
    for i, order in enumerate(orders):
        np.testing.assert_array_equal(order[found.permutations_[i]][own], plain.permutations_[i])
    np.testing.assert_allclose(found.mean_[own], plain.mean_, atol=1e-12)
    np.testing.assert_allclose(found.transform(mixed), plain.transform(bags), atol=1e-9)
    np.testing.assert_allclose(found.morph(2, 4, 0.3)[own], plain.morph(2, 4, 0.3), atol=1e-12)


@pytest.mark.parametrize("unequal", ["resample", "missing"])
def test_shuffling_bags_of_different_sizes_changes_nothing_but_the_index(rings, unequal):
    bags = [bag[: 24 - i] for i, bag in enumerate(rings[:8])]
    mixed, _ = shuffled(bags, 0)
    options = {"unequal": unequal, "random_state": 0}
    plain = MinimumVolumePCA(2, **options).fit(bags)
    found = MinimumVolumePCA(2, **options).fit(mixed)
    np.testing.assert_array_equal(found.objective_path_, plain.objective_path_)
    np.testing.assert_allclose(found.transform(mixed), plain.transform(bags), atol=1e-9)


@pytest.mark.parametrize("method", ["mean", "covariance", "variational"])
@given(seed=st.integers(0, 2**32 - 1))
@few
def test_the_objective_never_rises(method, seed):
    bags = np.random.default_rng(seed).normal(size=(7, 9, 2))
    found = MinimumVolumePCA(method=method).fit(bags)
    path = found.objective_path_ if method == "mean" else found.log_volume_path_
    assert np.all(np.diff(path) <= 1e-9)
    assert len(found.objective_path_) == found.n_iter_ + 1
    for permutation in found.permutations_:
        np.testing.assert_array_equal(np.sort(permutation), np.arange(9))


@pytest.mark.parametrize("method", ["mean", "covariance"])
def test_scale_place_and_turn_of_the_points_do_not_matter(rings, method):
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    plain = MinimumVolumePCA(3, method).fit(rings)
    moved = MinimumVolumePCA(3, method).fit(1000 * rings - [3e5, 7e4])
    np.testing.assert_array_equal(moved.permutations_, plain.permutations_)
    np.testing.assert_allclose(moved.explained_variance_, 1e6 * plain.explained_variance_)
    # Turned, the points stand in another canonical order, but the volume is what it was.
    turned = MinimumVolumePCA(3, method).fit(rings @ turn)
    np.testing.assert_allclose(turned.explained_variance_, plain.explained_variance_, rtol=1e-6)


def test_the_same_seed_gives_the_same_whatever_the_threads(rings):
    bags = [bag[: 24 - i % 5] for i, bag in enumerate(rings)]
    options = {"n_init": 4, "random_state": 3, "method": "covariance"}
    one = MinimumVolumePCA(2, n_jobs=1, **options).fit(bags)
    two = MinimumVolumePCA(2, n_jobs=2, **options).fit(bags)
    np.testing.assert_array_equal(one.permutations_, two.permutations_)
    np.testing.assert_array_equal(one.log_volume_path_, two.log_volume_path_)


def test_a_bag_is_transformed_alike_alone_and_among_others(rings):
    found = MinimumVolumePCA(2, random_state=0).fit(rings[:8])
    new = [rings[8][:20], rings[9], np.repeat(rings[10], 2, axis=0)]
    together = found.transform(new)
    for i, bag in enumerate(new):
        np.testing.assert_allclose(found.transform([bag])[0], together[i])
        assert found.align([bag]).shape == (1, 24)
    np.testing.assert_array_equal(found.transform(new), found.transform(new))


def test_lists_and_arrays_of_bags_are_alike(rings):
    by_array = MinimumVolumePCA(2).fit(rings)
    by_list = MinimumVolumePCA(2).fit([bag.tolist() for bag in rings])
    np.testing.assert_array_equal(by_array.permutations_, by_list.permutations_)


def test_a_fit_changes_neither_its_input_nor_its_parameters(rings):
    before = rings.copy()
    estimator = MinimumVolumePCA(2, "covariance", swaps=True)
    options = estimator.get_params()
    estimator.fit(rings).transform(rings)
    np.testing.assert_array_equal(rings, before)
    assert estimator.get_params() == options


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_a_fitted_estimator_survives_a_pickle(rings, kernel):
    found = MinimumVolumePCA(2, kernel=kernel).fit(rings)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.transform(rings), found.transform(rings))


def test_points_that_stand_in_one_place_are_no_trouble():
    bag = np.repeat([[0.0, 0.0], [1.0, 2.0]], 5, axis=0)
    found = MinimumVolumePCA(method="covariance").fit([bag, bag[::-1], bag])
    assert found.objective_path_[-1] == pytest.approx(0, abs=1e-20)
    assert found.explained_variance_ratio_.tolist() == [0.0]


def test_new_bags_are_described_alike_where_points_lie_equally_far_from_two_positions():
    rng = np.random.default_rng(0)
    given = [rng.integers(0, 4, (10 + i % 5, 2)) for i in range(12)]
    found, again = (
        MinimumVolumePCA(None, "covariance", random_state=0).fit(each)
        for each in (given, [bag[::-1] for bag in given])
    )
    np.testing.assert_allclose(again.transform(given), found.transform(given), atol=1e-9)
