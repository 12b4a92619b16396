"""Known and likely pairs: what they teach, and how they are checked."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from unshuffle import KernelizedSorting
from unshuffle.matching import DoubtWarning
from unshuffle.matching._dense.pair import KernelPair
from unshuffle.matching._trust.known_pairs import learn_map, rank_errors


def views(n_items=80, seed=0, noise=0.3):
    """Two nonlinear views of common points that are too noisy to be matched alone."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_items, 3))
    X = np.tanh(Z @ rng.normal(size=(3, 6))) + noise * rng.normal(size=(n_items, 6))
    y = np.tanh(Z @ rng.normal(size=(3, 5))) + noise * rng.normal(size=(n_items, 5))
    order = rng.permutation(n_items)
    return X, y[order], np.argsort(order)


def quiet(X, y, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelizedSorting(random_state=0).fit(X, y, **given)


def rank_error(y, found, truth):
    apart = np.linalg.norm(y[found][:, None] - y[None], axis=2)
    return (apart < np.linalg.norm(y[found] - y[truth], axis=1)[:, None]).mean()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_map_from_thirty_pairs_brings_the_others_closer(seed):
    X, y, truth = views(seed=seed)
    known = np.arange(30)
    frozen = np.column_stack([known, truth[known]])
    rest = slice(30, None)
    taught, alone = quiet(X, y, frozen=frozen), quiet(X, y)
    assert np.array_equal(taught.permutation_[known], truth[known])
    error = rank_error(y, taught.permutation_[rest], truth[rest])
    assert error < 0.2 < rank_error(y, alone.permutation_[rest], truth[rest])


@pytest.mark.slow
def test_known_pairs_left_out_tell_how_many_are_right():
    X, y, truth = views(noise=0.02)
    known = np.arange(30)
    sorting = quiet(X, y, frozen=np.column_stack([known, truth[known]]))
    right = (sorting.permutation_ == truth)[30:].mean()
    low, high = sorting.expected_accuracy_interval_
    assert low <= right <= high
    assert abs(sorting.expected_accuracy_ - right) < 0.2
    assert sorting.confidence_[30:].mean() == pytest.approx(sorting.expected_accuracy_)
    assert np.all(sorting.confidence_[:30] == 1.0)


@pytest.mark.slow
def test_thirty_known_wines_come_with_a_warning():
    """They were wrong and silent: 7 to 14 of 148 right."""
    wine = StandardScaler().fit_transform(load_wine().data)
    rng = np.random.default_rng(0)
    order, known = rng.permutation(178), rng.permutation(178)[:30]
    truth = np.argsort(order)
    with pytest.warns(DoubtWarning, match=r"of 30 known pairs left out in turn, \d+ were found"):
        sorting = KernelizedSorting().fit(
            wine[:, ::2], wine[order, 1::2], frozen=np.column_stack([known, truth[known]])
        )
    right = np.delete(sorting.permutation_ == truth, known).mean()
    assert abs(sorting.expected_accuracy_ - right) < 0.15


def test_likely_pairs_decide_between_mirror_images_and_may_be_overruled():
    half = np.sort(np.random.default_rng(0).uniform(0.05, 1.0, size=12))
    x = np.concatenate([-half[::-1], half])[:, None]
    mirrored = np.arange(24)[::-1]
    hints = [(i, mirrored[i], 0.9) for i in (0, 3, 20)]
    assert np.array_equal(quiet(x, x, hints=hints).permutation_, mirrored)
    # One hint against three.
    assert np.array_equal(quiet(x, x, hints=[*hints, (5, 5, 0.6)]).permutation_, mirrored)


def test_wrong_hints_are_overruled_by_a_clear_answer():
    X = np.random.default_rng(0).exponential(size=(80, 4)) * [3, 2, 1, 0.5]
    hints = np.column_stack([np.arange(5), np.arange(5) + 1, np.full(5, 0.3)])
    assert np.array_equal(quiet(X, X, hints=hints).permutation_, np.arange(80))


def test_hints_work_with_collections_of_different_size_in_both_orders():
    X, y, truth = views(noise=0.02)
    hints = np.column_stack([np.arange(20), truth[:20], np.full(20, 0.95)])
    larger = quiet(X[:60], y, hints=hints)
    assert (larger.permutation_ == truth[:60]).mean() > 0.7
    smaller = quiet(y, X[:60], hints=hints[:, [1, 0, 2]])
    assert (smaller.permutation_[truth[:60]] == np.arange(60)).mean() > 0.7


@pytest.mark.slow
def test_hints_beside_frozen_pairs_are_ignored_where_they_contradict():
    X, y, truth = views(noise=0.02)
    frozen = np.column_stack([np.arange(8), truth[:8]])
    against = np.column_stack([np.arange(8), np.roll(truth[:8], 1), np.ones(8)])
    both = quiet(X, y, frozen=frozen, hints=against)
    assert np.array_equal(both.permutation_, quiet(X, y, frozen=frozen).permutation_)


BAD_HINTS = {
    "two columns": ([(0, 1)], r"shape \(n_hints, 3\), got \(1, 2\)"),
    "probability 0": ([(0, 1, 0.0)], r"probability 0 \(row 0\)"),
    "probability 2": ([(0, 1, 0.5), (2, 3, 2.0)], r"probability 2 \(row 1\)"),
    "nan": ([(0, 1, np.nan)], r"probability nan"),
    "fraction": ([(0.5, 1, 0.5)], "whole positions"),
    "outside X": ([(80, 1, 0.5)], r"item 80 of X \(row 0\), which has 80 items"),
    "outside y": ([(0, -1, 0.5)], r"item -1 of y \(row 0\)"),
    "twice": ([(0, 1, 0.5), (0, 1, 0.6)], "a pair twice"),
    "words": ([("a", "b", "c")], "cannot be read as numbers"),
}


@pytest.mark.parametrize("name", BAD_HINTS)
def test_bad_hints_are_refused(name):
    hints, message = BAD_HINTS[name]
    X, y, _ = views()
    with pytest.raises(ValueError, match=message):
        KernelizedSorting().fit(X, y, hints=hints)


@pytest.mark.parametrize("method", ["classic", "unbiased", "entropy"])
def test_methods_of_the_paper_refuse_hints(method):
    X, y, _ = views(20)
    with pytest.raises(ValueError, match=f"method='{method}' takes no `hints`"):
        KernelizedSorting(method=method).fit(X, y, hints=[(0, 1, 0.5)])


def test_no_hints_change_nothing():
    X, y, _ = views()
    assert np.array_equal(quiet(X, y, hints=[]).permutation_, quiet(X, y).permutation_)


def test_a_learned_map_recovers_a_rotation():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    y = X @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    K, L = X @ X.T, y @ y.T
    frozen = np.column_stack([np.arange(10), np.arange(10)])
    pair = KernelPair.of(K, L, None, frozen)
    _, matching = learn_map(pair, frozen, np.ones(10))
    assert np.array_equal(matching, np.arange(60))


def test_rank_errors_count_the_items_in_between():
    points = np.arange(5.0)[:, None]
    found, right = np.array([0, 0, 2]), np.array([0, 3, 4])
    # From 0 the items 0, 1 and 2 are nearer than 3; from 2 the items 1, 2 and 3 are nearer than 4.
    assert rank_errors(points @ points.T, found, right) == pytest.approx([0.0, 0.6, 0.6])
