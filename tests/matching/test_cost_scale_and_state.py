"""What a linear cost, the scale of the kernels and an interrupt must not spoil."""

import numpy as np
import pytest

from unshuffle import KernelizedSorting
from unshuffle.datasets import make_paired_views
from unshuffle.kernels import rbf_kernel
from unshuffle.matching import _fit


@pytest.fixture(scope="module")
def views():
    return make_paired_views(60, noise=0.1, random_state=3)


def right(sorting, truth):
    return int((sorting.permutation_ == truth).sum())


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0, 1e100, 1e300])
def test_a_cost_that_bars_only_wrong_pairs_does_not_harm(views, size):
    X, y, truth = views
    wrong = np.random.default_rng(0).random((60, 60)) < 0.5
    wrong[np.arange(60), truth] = False
    plain = KernelizedSorting().fit(X, y)
    told = KernelizedSorting().fit(X, y, cost=size * wrong)
    assert right(told, truth) >= right(plain, truth)
    assert told.soft_matches()[np.arange(60), truth].mean() > 0.9 * (
        plain.soft_matches()[np.arange(60), truth].mean()
    )
    if size >= 1:
        assert not wrong[np.arange(60), told.permutation_].any()


@pytest.mark.parametrize("constant", [-100.0, 1.0, 1e8])
def test_a_constant_cost_changes_nothing(views, constant):
    X, y, _ = views
    plain = KernelizedSorting().fit(X, y)
    shifted = KernelizedSorting().fit(X, y, cost=np.full((60, 60), constant))
    assert np.array_equal(plain.permutation_, shifted.permutation_)
    assert shifted.ambiguity_ == pytest.approx(plain.ambiguity_, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e30, 1e140])
def test_the_scale_of_the_kernels_changes_nothing_but_the_objective(views, scale):
    X, y, _ = views
    K, L = rbf_kernel(X), rbf_kernel(y)
    plain = KernelizedSorting(kernel="precomputed").fit(K, L)
    scaled = KernelizedSorting(kernel="precomputed").fit(K * scale, L * scale)
    assert np.array_equal(plain.permutation_, scaled.permutation_)
    assert scaled.objective_ == pytest.approx(plain.objective_ * scale**2, rel=1e-9)
    assert scaled.objective_path_ == pytest.approx(plain.objective_path_ * scale**2, rel=1e-9)


def test_an_interrupt_while_judging_keeps_the_matching(views, monkeypatch):
    X, y, truth = views

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(_fit, "confidence", interrupted)
    sorting = KernelizedSorting()
    with pytest.raises(KeyboardInterrupt):
        sorting.fit(X, y)
    assert right(sorting, truth) > 30
    assert not sorting.confidence_.any()
    assert len(sorting.matches_.rows()) == 60


def test_a_failed_refit_leaves_the_earlier_result_whole(views):
    X, y, _ = views
    sorting = KernelizedSorting().fit(X, y)
    before = sorting.matches_

    def fails(state):
        raise RuntimeError("out of order")

    sorting.set_params(callback=fails)
    with pytest.raises(RuntimeError, match="out of order"):
        sorting.fit(X[:10], y[:12])
    after = sorting.matches_
    assert after.names_x == before.names_x
    assert np.array_equal(after.permutation, before.permutation)
