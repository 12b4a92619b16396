"""Several kernels compared one by one, and fine differences that are noise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import few

from unshuffle import KernelizedSorting
from unshuffle._quadratic.problem import assign_free
from unshuffle.datasets import photo_halves
from unshuffle.images import color_histogram, lab_pixels
from unshuffle.kernels import gram_matrix
from unshuffle.matching._dense import views as _views
from unshuffle.matching._dense.pair import KernelPair
from unshuffle.matching._dense.views import Views, choose_partners

NOTHING = np.empty((0, 2), dtype=np.intp)
EVEN = np.ones(2), np.ones(2)
pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")


def features(n, seed, noise):
    """Two tables of the same items on each side; the rows of y are shuffled."""
    random = np.random.default_rng(seed)
    hidden = random.exponential(size=(n, 6)) * [3, 2, 2, 1, 1, 1]
    order = random.permutation(n)
    X, y = [], []
    for columns, level in zip((slice(0, 3), slice(3, 6)), noise, strict=True):
        part = hidden[:, columns]
        X.append(part + level * random.normal(size=part.shape))
        turned = part @ np.linalg.qr(random.normal(size=(3, 3)))[0]
        y.append((turned + level * random.normal(size=part.shape))[order])
    return X, y, np.argsort(order)


def right(sorting, truth):
    return float((sorting.permutation_ == truth).mean())


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_a_noisy_kernel_gets_little_weight_and_does_little_harm(seed):
    X, y, truth = features(80, seed, noise=(0.2, 1.0))
    alone = KernelizedSorting("rbf").fit(X[0], y[0])
    both = KernelizedSorting(["rbf", "rbf"]).fit(X, y)
    assert both.kernel_weights_[1] < 0.3
    assert right(both, truth) >= right(alone, truth) - 0.1


def test_two_kernels_find_more_than_either():
    X, y, truth = features(80, 3, noise=(0.3, 0.2))
    shares = [right(KernelizedSorting("rbf").fit(X[k], y[k]), truth) for k in range(2)]
    assert right(KernelizedSorting(["rbf", "rbf"]).fit(X, y), truth) > max(shares) + 0.05


def test_true_pairs_of_odd_items_do_not_mislead_the_search():
    photos = photo_halves(40, random_state=7)
    X, y = ([lab_pixels(side), color_histogram(side)] for side in (photos.X, photos.y))
    before = KernelizedSorting(["rbf", "rbf"], trust=False).fit(X, y).permutation_ == photos.truth
    odd = np.flatnonzero(~before)[:2]
    frozen = np.column_stack([odd, photos.truth[odd]])
    after = KernelizedSorting(["rbf", "rbf"], trust=False).fit(X, y, frozen=frozen)
    assert odd.size == 2
    assert (after.permutation_ == photos.truth).sum() >= before.sum() + 2


def test_given_weights_are_kept_and_kernels_without_weight_left_out():
    X, y, _ = features(30, 0, noise=(0.2, 0.2))
    sorting = KernelizedSorting(["rbf", "rbf"], kernel_weights=[3, 1]).fit(X, y)
    assert sorting.kernel_weights_.tolist() == [0.75, 0.25]
    three = KernelizedSorting(["rbf"] * 3, kernel_weights=[3, 0, 1]).fit([X[0], *X], [y[0], *y])
    assert three.kernel_weights_.tolist() == [0.75, 0.0, 0.25]


def test_lists_of_different_lengths_are_compared_as_sums():
    X, y, truth = features(40, 0, noise=(0.0, 0.0))
    sorting = KernelizedSorting(["rbf", "rbf"], kernel_y="linear").fit(X, np.hstack([y[0], y[1]]))
    assert not hasattr(sorting, "kernel_weights_")
    assert right(sorting, truth) > 0.5


def test_one_kernel_after_a_list_leaves_no_weights():
    X, y, _ = features(20, 0, noise=(0.1, 0.1))
    sorting = KernelizedSorting(["rbf", "rbf"]).fit(X, y)
    assert sorting.kernel_weights_.sum() == pytest.approx(1)
    sorting.set_params(kernel="rbf").fit(X[0], y[0])
    assert not hasattr(sorting, "kernel_weights_")


@few
@given(st.integers(0, 1000))
def test_the_order_of_kernels_does_not_matter(seed):
    X, y, _ = features(30, seed, noise=(0.3, 0.6))
    sorting = KernelizedSorting(["rbf", "rbf"], trust=False)
    once = sorting.fit(X, y)
    weights, permutation = once.kernel_weights_, once.permutation_
    again = sorting.fit(X[::-1], y[::-1])
    assert np.array_equal(again.permutation_, permutation)
    assert again.kernel_weights_ == pytest.approx(weights[::-1], abs=1e-6)


@pytest.mark.parametrize("n_second", [30, 36])
def test_slopes_of_shares_are_those_of_the_matching_they_hold(n_second):
    X, y, _ = features(36, 0, noise=(0.3, 0.3))
    grams = [[gram_matrix(table[:size]) for table in side] for side, size in ((X, 30), (y, 36))]
    if n_second == 30:
        grams[1] = [K[:30, :30] for K in grams[1]]
    pair = KernelPair.of_views(*grams, EVEN)
    permutation = np.random.default_rng(0).permutation(n_second)[:30]
    views = Views(pair, 0.5, permutation)
    shares = np.zeros((30, n_second))
    shares[np.arange(30), permutation] = 1.0
    soft = views.slopes(shares.astype(np.float32))
    assert soft == pytest.approx(views.gradient(permutation, np.arange(30)), abs=1e-3)


def test_the_scale_of_a_larger_collection_is_fitted():
    X, y, _ = features(40, 0, noise=(0.1, 0.1))
    K, L = gram_matrix(X[0][:30]), gram_matrix(y[0])
    plain, scaled = (KernelPair.of(K, factor * L, None, NOTHING) for factor in (1.0, 7.0))
    permutation = np.arange(30)
    first, second = (
        Views(pair, 0.35, permutation).gradient(permutation, np.arange(30))
        for pair in (plain, scaled)
    )
    assert np.corrcoef(first.ravel(), second.ravel())[0, 1] > 1 - 1e-6


def test_fine_differences_that_halves_do_not_confirm_are_ignored(monkeypatch):
    X, y, truth = features(60, 5, noise=(1.0, 1.0))
    pair = KernelPair.of_views([gram_matrix(X[0])], [gram_matrix(y[0])], (np.ones(1), np.ones(1)))
    monkeypatch.setattr(_views, "_confirmed", lambda *_: 0.0)
    broad, whole = choose_partners(pair, [truth], lambda _: None)
    monkeypatch.setattr(_views, "_confirmed", lambda *_: 1.0)
    fine, _ = choose_partners(pair, [truth], lambda _: None)
    power = _views.DOUBTFUL_POWER
    np.testing.assert_allclose(whole.problems[0].K, pair.problem(power).K, atol=1e-6)
    shares, _, _ = _views._follow(pair, [np.eye(60)[fine]], (power,), fine, lambda _: None)
    assert (broad != fine).any()
    assert (broad == assign_free(pair.full_problem, shares[0])[0]).all()


def test_halves_confirm_what_is_real_and_not_what_is_noise():
    shares = {}
    for noise in (0.05, 3.0):
        X, y, truth = features(100, 1, noise=(noise, noise))
        pair = KernelPair.of_views(
            [gram_matrix(each) for each in X], [gram_matrix(each) for each in y], EVEN
        )
        (broad,), _, _ = _views._follow(pair, [np.eye(100)[truth]], (1.0,), truth, lambda _: None)
        shares[noise] = _views._confirmed(pair, truth, broad, lambda _: None)
    assert shares[0.05] > 0.9
    assert shares[3.0] < 1 / 3
