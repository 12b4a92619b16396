import warnings

import numpy as np
import pytest

from unshuffle import KernelizedSorting
from unshuffle.matching import DoubtWarning, _fit
from unshuffle.matching._dense import search as _refined

pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")

METHODS = ["refined", "classic", "unbiased", "entropy"]


def is_matching(permutation, n_first, n_second):
    used = permutation[permutation >= 0]
    return (
        permutation.shape == (n_first,)
        and used.size == min(n_first, n_second)
        and np.unique(used).size == used.size
        and used.max() < n_second
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_callback_sees_every_step_in_order(paired_points, method, n_jobs):
    X, y, _ = paired_points(20, 0, noise=0.3)
    states = []
    sorting = KernelizedSorting(method=method, n_jobs=n_jobs, callback=states.append).fit(X, y)
    assert [state.iteration for state in states] == list(range(1, len(states) + 1))
    assert np.all(np.diff([state.fraction for state in states]) >= 0)
    assert 0.0 <= states[0].fraction <= states[-1].fraction <= 1.0
    assert all(state.stage for state in states)
    assert all(is_matching(state.permutation, 20, 20) for state in states)
    assert set(sorting.objective_path_) <= {state.objective for state in states}


@pytest.mark.parametrize(("n_first", "n_second"), [(20, 14), (14, 20)])
def test_the_callback_counts_items_as_the_user_does(paired_points, n_first, n_second):
    X, y, _ = paired_points(20, 1)
    states = []
    KernelizedSorting(callback=states.append).fit(X[:n_first], y[:n_second])
    assert all(is_matching(state.permutation, n_first, n_second) for state in states)


def test_the_callback_may_change_its_state(paired_points):
    X, y, truth = paired_points(20, 2)

    def spoil(state):
        state.permutation[:] = 0

    assert np.array_equal(KernelizedSorting(callback=spoil).fit(X, y).permutation_, truth)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("last", [1, 4])
def test_stopping_leaves_a_valid_result_without_a_warning(paired_points, method, n_jobs, last):
    X, y, _ = paired_points(20, 3, noise=0.3)
    seen = []

    def stop(state):
        seen.append(state)
        return state.iteration >= last

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sorting = KernelizedSorting(method=method, n_jobs=n_jobs, callback=stop).fit(X, y)
    assert len(seen) == last
    assert sorting.converged_ is False
    assert is_matching(sorting.permutation_, 20, 20)
    assert np.array_equal(sorting.reorder(y), y[sorting.permutation_])
    assert sorting.candidates(2).shape == (20, 2)
    assert sorting.confidence_.shape == (20,)
    if n_jobs == 1:  # else another thread may have got further meanwhile
        assert any(np.array_equal(sorting.permutation_, state.permutation) for state in seen)


def test_stopping_keeps_the_best_of_what_was_seen(paired_points):
    X, y, _ = paired_points(30, 4, noise=0.5)
    seen = []

    def stop(state):
        seen.append(state.objective)
        return state.stage != "climbing"

    KernelizedSorting(callback=stop).fit(X, y)
    climbed = len(seen) - 1
    assert climbed > 3
    kept = KernelizedSorting(callback=lambda state: state.iteration >= climbed).fit(X, y)
    assert kept.objective_ == pytest.approx(max(seen[:climbed]))


def test_stopping_keeps_frozen_pairs_and_lets_extra_items_go(paired_points):
    X, y, truth = paired_points(20, 5, extra_x=4, extra_y=4)
    frozen = [(3, truth[3]), (7, truth[7])]
    sorting = KernelizedSorting(unmatched_cost=0.3, callback=lambda state: state.iteration == 2)
    sorting.fit(X, y, frozen=frozen)
    assert all(sorting.permutation_[i] == j for i, j in frozen)
    assert np.all(sorting.confidence_[sorting.permutation_ == -1] == 0.0)


@pytest.mark.parametrize("last", [3, 10**6])
def test_pairs_of_the_best_matching_are_released(paired_points, last):
    X, y, _ = paired_points(20, 5, noise=0.3, extra_x=3, extra_y=3)
    stop = {"callback": lambda state: state.iteration == last}
    whole = KernelizedSorting(**stop).fit(X, y)
    parted = KernelizedSorting(unmatched_cost=0.2, **stop).fit(X, y)
    assert np.array_equal(parted.objective_path_, whole.objective_path_)
    assert np.array_equal(parted.soft_matches(), whole.soft_matches())
    assert parted.n_iter_ > whole.n_iter_
    assert len(parted.pairs_) < len(whole.pairs_)


def test_an_interrupt_during_release_keeps_all_pairs(paired_points, monkeypatch):
    X, y, _ = paired_points(20, 5, extra_x=3)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_refined, "release", interrupt)
    sorting = KernelizedSorting(unmatched_cost=0.3)
    with pytest.raises(KeyboardInterrupt):
        sorting.fit(X, y)
    assert is_matching(sorting.permutation_, 23, 20)
    assert sorting.confidence_.any()


@pytest.mark.parametrize("answer", [None, False, np.False_])
def test_only_true_stops(paired_points, answer):
    X, y, truth = paired_points(15, 6)
    sorting = KernelizedSorting(callback=lambda _: answer).fit(X, y)
    assert sorting.converged_
    assert np.array_equal(sorting.permutation_, truth)


def test_the_true_of_numpy_stops_too(paired_points):
    X, y, _ = paired_points(15, 6)
    sorting = KernelizedSorting(callback=lambda state: np.all(state.permutation >= 0)).fit(X, y)
    assert not sorting.converged_


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_keeps_the_best_result_and_goes_on_to_the_caller(
    paired_points, method, n_jobs
):
    X, y, _ = paired_points(20, 7, noise=0.3)

    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    sorting = KernelizedSorting(method=method, n_jobs=n_jobs, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        sorting.fit(X, y)
    assert is_matching(sorting.permutation_, 20, 20)
    assert sorting.converged_ is False
    assert np.array_equal(sorting.reorder(y), y[sorting.permutation_])
    assert len(sorting.matches_.pairs) == 20


@pytest.mark.parametrize(
    ("method", "first_work"),
    [("refined", "_dense.search.list_starts"), ("classic", "_dense.paper._spectral_starts")],
)
@pytest.mark.parametrize("extra_x", [0, 4])
def test_an_interrupt_before_the_first_step_stores_the_start(
    paired_points, monkeypatch, method, first_work, extra_x
):
    X, y, _ = paired_points(20, 7, extra_x=extra_x)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"unshuffle.matching.{first_work}", interrupt)
    sorting = KernelizedSorting(method=method)
    with pytest.raises(KeyboardInterrupt, match="only a rough start"):
        sorting.fit(X, y, frozen=[(0, 3)])
    assert is_matching(sorting.permutation_, 20 + extra_x, 20)
    assert sorting.permutation_[0] == 3
    assert sorting.converged_ is False
    assert len(sorting.matches_.pairs) == 20


@pytest.mark.parametrize("method", [*METHODS, "low_rank"])
def test_an_interrupt_while_kernels_are_computed_says_that_nothing_is_stored(
    paired_points, method
):
    X, y, _ = paired_points(20, 7)

    def interrupt(*_):
        raise KeyboardInterrupt

    sorting = KernelizedSorting(interrupt, method=method)
    with pytest.raises(KeyboardInterrupt, match="nothing of this fit is stored"):
        sorting.fit(X, y)
    assert not hasattr(sorting, "permutation_")


@pytest.mark.parametrize("n_init", [1, 8])
@pytest.mark.parametrize("method", METHODS)
def test_progress_moves_within_the_first_stage(paired_points, method, n_init):
    X, y, _ = paired_points(30, 7, noise=0.4)
    seen = []
    KernelizedSorting(
        method=method, n_init=n_init, max_iter=50, trust=False, callback=seen.append
    ).fit(X, y)
    first = [state.fraction for state in seen if state.stage == "climbing"]
    assert len(set(first)) == len(first) > 1
    assert first == sorted(first)
    assert first[0] < 0.2
    assert first[-1] <= (0.6 if method == "refined" else 1.0)


def test_progress_moves_while_large_collections_are_annealed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 4)), rng.normal(size=(150, 4))
    seen = []
    KernelizedSorting(
        "rbf", method="low_rank", n_init=1, trust=False, n_jobs=1, callback=seen.append
    ).fit(X, y)
    annealed = [state.fraction for state in seen if state.stage == "annealing"]
    assert len(set(annealed)) > 3
    assert annealed == sorted(annealed)


def test_an_interrupted_second_fit_does_not_mix_fits(paired_points):
    sorting = KernelizedSorting().fit(*paired_points(12, 8)[:2])
    X, y, _ = paired_points(20, 9)

    def interrupt(_):
        raise KeyboardInterrupt

    sorting.callback = interrupt
    with pytest.raises(KeyboardInterrupt):
        sorting.fit(X, y)
    assert len(sorting.permutation_) == len(sorting.matches_.names_x) == 20
    assert sorting.soft_matches().shape == (20, 20)


def test_an_error_in_the_callback_reaches_the_caller(paired_points):
    X, y, _ = paired_points(12, 10)

    def fail(_):
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full"):
        KernelizedSorting(callback=fail).fit(X, y)


def test_a_stopped_fit_gives_no_verdict_on_ambiguity():
    x = np.linspace(-1, 1, 20)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DoubtWarning)
        KernelizedSorting(callback=lambda state: state.iteration == 1).fit(x, x)
    with pytest.warns(DoubtWarning):
        KernelizedSorting().fit(x, x)


def test_the_callback_is_told_first_what_a_long_fit_takes(paired_points, monkeypatch):
    X, y, _ = paired_points(12, 0)
    states = []
    KernelizedSorting(callback=states.append).fit(X, y)
    assert states[0].iteration == 1, "not of a short one"
    monkeypatch.setattr(_fit, "NOTABLE", 0.0)
    told = []
    KernelizedSorting(callback=lambda state: told.append(state) or state.iteration == 0).fit(X, y)
    assert (told[0].iteration, told[0].fraction, told[0].permutation.size) == (0, 0.0, 0)
    assert told[0].stage == "expected: about 1 second, 0.0 GB"
    assert len(told) == len(states) + 1, "its answer does not stop the fit"
