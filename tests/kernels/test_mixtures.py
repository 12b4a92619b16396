import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from unshuffle._core.bags import Bags
from unshuffle.datasets import mixture_sets
from unshuffle.kernels.sets._models.mixtures import (
    FitSettings,
    InputSpace,
    choose_n_components,
    count_distinct,
    unpack,
)

DRAWS = np.random.default_rng(0).random((4, 2, 8))


def settings(n_components=3, kind="full", floor=1e-3, max_iter=200, tol=1e-8):
    return FitSettings(n_components, 8, kind, floor, max_iter, tol, DRAWS)


def three_clusters(n=240, seed=0):
    """Sets of two columns: clusters at (-6, 0), (0, 6) and (6, 0), half of all in the last."""
    rng = np.random.default_rng(seed)
    held = rng.choice(3, size=n, p=[0.2, 0.3, 0.5])
    return np.array([[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]])[held] + rng.normal(size=(n, 2))


def fitted(bags, how):
    sets = Bags.of(bags).sorted()
    space = InputSpace(np.zeros(sets.width), np.ones(sets.width))
    return space.fit_mixtures(sets, how, n_jobs=None)


def chosen_numbers(bags, how):
    sets = Bags.of(bags).sorted()
    return choose_n_components(sets, count_distinct(sets), how).tolist()


def test_separate_clusters_are_found():
    found = fitted([three_clusters()], settings())
    order = found.means[:, 0].argsort()
    np.testing.assert_allclose(found.weights[order], [0.2, 0.3, 0.5], atol=0.06)
    np.testing.assert_allclose(found.means[order], [[-6, 0], [0, 6], [6, 0]], atol=0.4)
    np.testing.assert_allclose(
        unpack(found.spreads, 2),
        np.broadcast_to(np.eye(2), (3, 2, 2)),
        atol=0.45,
    )


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_mixture_that_scikit_learn_settled_on_stays_where_it_is(kind):
    points = three_clusters(seed=1)
    peer = GaussianMixture(3, covariance_type=kind, reg_covar=1e-3, tol=1e-12, random_state=0)
    peer.fit(points)
    found = fitted([points], settings(kind=kind))
    assert found.scores[0] / len(points) == pytest.approx(peer.score(points), abs=1e-6)
    order, peers = found.means[:, 0].argsort(), peer.means_[:, 0].argsort()
    np.testing.assert_allclose(found.means[order], peer.means_[peers], atol=1e-3)
    expected = {
        "full": lambda C: C,
        "tied": lambda C: np.broadcast_to(C, (3, 2, 2)),
        "diag": lambda C: C[:, :, np.newaxis] * np.eye(2),
        "spherical": lambda C: C[:, np.newaxis, np.newaxis] * np.eye(2),
    }[kind](peer.covariances_)
    ours = unpack(found.spreads, 2)
    np.testing.assert_allclose(
        ours[order], expected[peers] if kind != "tied" else expected, atol=1e-2
    )


@pytest.mark.slow
def test_mixtures_are_about_as_likely_as_those_of_scikit_learn():
    bags = mixture_sets(20, random_state=3).sets
    found = fitted(bags, settings(5, floor=1e-3, tol=1e-3))
    ours = [score / len(bag) for score, bag in zip(found.scores, bags, strict=True)]
    peer = GaussianMixture(5, reg_covar=1e-3, random_state=0)
    assert np.mean(ours) > np.mean([peer.fit(bag).score(bag) for bag in bags]) - 0.02


def test_a_fit_without_tolerance_ends_where_nothing_is_gained():
    found = fitted([three_clusters()], settings(tol=0.0, max_iter=10**9))
    assert found.converged.all()
    assert found.rounds.max() < 10_000


def test_one_gaussian_has_the_mean_and_covariance_of_the_set():
    points = three_clusters()
    found = fitted([points], settings(1, floor=0.5))
    np.testing.assert_allclose(found.means[0], points.mean(axis=0))
    expected = np.cov(points.T, bias=True) + 0.5 * np.eye(2)
    np.testing.assert_allclose(unpack(found.spreads[0], 2), expected)


def test_components_never_shrink_below_the_floor():
    points = np.repeat(np.arange(8.0).reshape(4, 2), 5, axis=0)
    found = fitted([points], settings(4, floor=0.01))
    assert np.linalg.eigvalsh(unpack(found.spreads, 2)).min() >= 0.01 * (1 - 1e-12)
    assert np.isfinite(found.scores).all()
    np.testing.assert_allclose(found.weights.sum(), 1.0)


def test_a_mixture_depends_on_its_own_points_alone():
    bags = [three_clusters(n, seed=n) for n in range(20, 90)]
    whole, alone = fitted(bags, settings()), fitted(bags[50:51], settings())
    assert whole.scores[50] == alone.scores[0]
    for name in ("weights", "means", "spreads"):
        np.testing.assert_array_equal(getattr(whole, name)[150:153], getattr(alone, name))


def test_the_order_of_points_changes_no_mixture():
    points = three_clusters()
    other = np.random.default_rng(1).permutation(points)
    for one, two in zip(fitted([points], settings()), fitted([other], settings()), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("way", "kind"), [("bic", "full"), ("bic", "spherical"), ("cv", "full")])
def test_as_many_components_are_chosen_as_there_are_clusters(way, kind):
    rng = np.random.default_rng(0)
    bags = [three_clusters(seed=2), rng.normal(size=(150, 2)), np.zeros((1, 2))]
    how = settings(way, kind, tol=1e-3)
    assert chosen_numbers(bags, how) == [3, 1, 1]


@pytest.mark.parametrize("way", ["bic", "cv"])
def test_no_more_components_are_chosen_than_there_are_different_points(way):
    rng = np.random.default_rng(0)
    bags = [np.repeat(rng.normal(size=(n, 2)), 30, axis=0) for n in (1, 2, 3)]
    assert (np.array(chosen_numbers(bags, settings(way))) <= [1, 2, 3]).all()


def test_different_points_are_counted_in_each_set():
    bags = Bags.of([[[0, 0], [0, 1], [0, 0]], [[0, 1]], [[2, 2], [2, 2]]]).sorted()
    assert count_distinct(bags).tolist() == [2, 1, 1]


def test_columns_are_standardized_and_constant_ones_take_the_scale_of_the_others():
    points = np.stack([np.arange(5.0), 10 * np.arange(5.0), np.full(5, 7.0)], axis=1)
    space = InputSpace.of(points)
    np.testing.assert_allclose(space.center, [2, 20, 7])
    np.testing.assert_allclose(space.scale, np.sqrt([2, 200, 101]))
    np.testing.assert_array_equal(InputSpace.of(np.ones((3, 2))).scale, 1.0)
