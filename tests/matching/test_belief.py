"""Where many matchings are equally good, belief counts them."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from unshuffle import KernelizedSorting
from unshuffle.matching import DoubtWarning


def seen_twice(Z, noise, seed=0):
    """Points and the same points turned and shuffled, both with noise; and the true partners."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(Z.shape[1], Z.shape[1])))[0]
    X, y = (side + noise * rng.normal(size=side.shape) for side in (Z, Z @ turn))
    order = rng.permutation(len(Z))
    return X, y[order], np.argsort(order)


def cloud(n_items, n_columns=4, seed=0):
    """Points without any symmetry."""
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n_items, n_columns)) * np.geomspace(2, 0.7, n_columns)


def square_grid(side=7):
    return np.array(list(product(range(side), repeat=2)), dtype=float)


def polygon(n_corners=36):
    angles = np.linspace(0, 2 * np.pi, n_corners, endpoint=False)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def quiet_fit(X, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        return KernelizedSorting(random_state=0).fit(X, y, **given)


@pytest.mark.parametrize("seed", range(3))
def test_near_copies_are_believed_as_often_as_they_are_right_and_groups_are_named(seed):
    rng = np.random.default_rng(seed)
    Z = np.repeat(cloud(30, seed=seed), 2, axis=0)
    X, y, truth = seen_twice(Z + 0.001 * rng.normal(size=Z.shape), 0.01, seed)
    with pytest.warns(DoubtWarning, match=r"groups of about 2: .* groups, not pairs"):
        sorting = KernelizedSorting(random_state=0).fit(X, y)
    right = (sorting.permutation_ == truth).mean()
    low, high = sorting.expected_accuracy_interval_
    assert low <= right <= high
    assert abs(sorting.expected_accuracy_ - right) < 0.25


def test_copies_on_the_larger_side_halve_the_belief():
    Z = cloud(30)
    sorting = quiet_fit(Z, np.repeat(Z, 2, axis=0))
    assert sorting.expected_accuracy_ == pytest.approx(0.5, abs=0.1)


def test_only_items_that_have_copies_lose_confidence():
    Z = cloud(40)
    Z[30:] = Z[:10]
    sorting = quiet_fit(*seen_twice(Z, 0.0)[:2])
    alike = np.r_[0:10, 30:40]
    assert sorting.confidence_[alike].max() < 0.6
    assert sorting.confidence_[10:30].min() > 0.9


@pytest.mark.parametrize("noise", [1e-6, 0.05])
def test_a_square_grid_has_seven_rivals(noise):
    sorting = quiet_fit(*seen_twice(square_grid(), noise)[:2])
    # Eight symmetries: an item keeps its partner in one or two of them, that in the middle in all.
    assert sorting.expected_accuracy_ < 0.25
    low, high = sorting.expected_accuracy_interval_
    assert low == 0.0
    assert high > 0.9
    assert any(
        "other matchings with clearly different partners" in each for each in sorting.doubts_
    )


def test_a_regular_polygon_can_be_turned_to_every_corner():
    sorting = quiet_fit(*seen_twice(polygon(), 1e-6)[:2])
    assert sorting.expected_accuracy_ < 0.08
    assert any("64 or more other matchings" in each for each in sorting.doubts_)


def test_a_mirror_image_is_right_or_wrong_as_a_whole():
    half = cloud(20, 2) + 0.2
    sorting = quiet_fit(*seen_twice(np.vstack([half, half * [-1, 1]]), 0.01)[:2])
    assert 0.4 < sorting.expected_accuracy_ <= 0.5
    assert np.array_equal(sorting.expected_accuracy_interval_, [0.0, 1.0])


@pytest.mark.parametrize("seed", range(2))
def test_independent_clusters_are_a_question_about_groups(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(5), 12)
    X, y = (3 * rng.normal(size=(5, 5))[groups] + 0.3 * rng.normal(size=(60, 5)) for _ in "Xy")
    with pytest.warns(DoubtWarning, match="groups, not pairs"):
        sorting = KernelizedSorting(random_state=0).fit(X, y)
    assert sorting.expected_accuracy_ < 0.2


@pytest.mark.parametrize("noise", [0.0, 0.15])
def test_ordinary_data_stay_believed(noise):
    X, y, truth = seen_twice(cloud(80, 6), noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sorting = KernelizedSorting(random_state=0).fit(X, y)
    assert (sorting.permutation_ == truth).mean() > 0.9
    assert sorting.expected_accuracy_ > 0.9


def test_a_few_known_pairs_break_the_symmetry_of_a_grid():
    X, y, truth = seen_twice(square_grid(6), 1e-6)
    corners = np.array([0, 1, 8, 17])
    sorting = quiet_fit(X, y, frozen=np.column_stack([corners, truth[corners]]))
    assert np.array_equal(sorting.permutation_, truth)
    assert sorting.expected_accuracy_ > 0.9
    assert sorting.doubts_ == []


def test_the_interval_of_ten_known_pairs_is_no_narrower_than_that_of_ten_throws():
    X, y, truth = seen_twice(cloud(40, 6), 0.0)
    known = np.arange(10)
    sorting = quiet_fit(X, y, frozen=np.column_stack([known, truth[known]]))
    low, high = sorting.expected_accuracy_interval_
    assert low <= binomtest(10, 10).proportion_ci(0.9, "exact").low
    assert high == 1.0
    assert sorting.doubts_ == []


def test_known_pairs_that_rivals_keep_do_not_hide_them():
    rng = np.random.default_rng(0)
    axis = np.column_stack([np.zeros(10), rng.uniform(-3, 3, size=10)])
    half = cloud(15, 2) + 0.2
    X, y, truth = seen_twice(np.vstack([axis, half, half * [-1, 1]]), 0.01)
    known = np.arange(10)
    with pytest.warns(DoubtWarning, match="another matching with clearly different partners"):
        sorting = KernelizedSorting().fit(X, y, frozen=np.column_stack([known, truth[known]]))
    assert sorting.expected_accuracy_ <= 0.55
    assert np.array_equal(sorting.expected_accuracy_interval_, [0.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_ten_known_pairs_beside_copies_leave_the_truth_in_the_interval(seed):
    rng = np.random.default_rng(seed)
    Z = np.repeat(cloud(20, seed=seed), 2, axis=0)
    X, y, truth = seen_twice(Z + 0.001 * rng.normal(size=Z.shape), 0.01, seed)
    known = rng.permutation(40)[:10]
    sorting = quiet_fit(X, y, frozen=np.column_stack([known, truth[known]]))
    right = np.delete(sorting.permutation_ == truth, known).mean()
    low, high = sorting.expected_accuracy_interval_
    assert low <= right <= high
