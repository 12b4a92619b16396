"""How many tuples of MultiwaySorting are believed right, and warnings of wrong ones."""

import warnings

import numpy as np
import pytest

from unshuffle import MultiwaySorting
from unshuffle.matching import DoubtWarning


def views(n_collections, n_items, *, noise=0.02, seed=0):
    """Turned, noisy, shuffled copies of one shape, and the number of each point in it."""
    random = np.random.default_rng(seed)
    shape = random.exponential(size=(n_items, 4)) * [2.0, 1.5, 1.0, 0.7]
    copies, orders = [], []
    for _ in range(n_collections):
        turn, _ = np.linalg.qr(random.normal(size=(4, 4)))
        order = random.permutation(n_items)
        copies.append((shape @ turn + noise * random.normal(size=shape.shape))[order])
        orders.append(order)
    return copies, orders


def unrelated(n_collections, n_items, seed=0):
    random = np.random.default_rng(seed)
    return [random.normal(size=(n_items, 5)) for _ in range(n_collections)]


def share_whole(sorting, orders):
    """Share of the items whose partners are right in all collections."""
    points = np.array([order[p] for order, p in zip(orders, sorting.permutations_, strict=True)])
    return float((points == points[0]).all(axis=0).mean())


def quiet_fit(X, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        return MultiwaySorting(**params).fit(X)


def not_estimated(sorting):
    return (
        np.isnan(sorting.expected_accuracy_)
        and sorting.expected_accuracy_interval_.shape == (2,)
        and np.all(np.isnan(sorting.expected_accuracy_interval_))
        and sorting.doubts_ == []
    )


@pytest.mark.parametrize("n_collections", [2, 3, 5])
@pytest.mark.parametrize("objective", ["hsic", "entropy"])
def test_a_right_answer_is_trusted(n_collections, objective):
    X, orders = views(n_collections, 30)
    sorting = MultiwaySorting(objective=objective).fit(X)  # warnings are errors
    assert share_whole(sorting, orders) > 0.9
    assert sorting.expected_accuracy_ > 0.8
    assert sorting.doubts_ == []


@pytest.mark.parametrize("n_collections", [2, 3, 5])
def test_noise_is_doubted(n_collections):
    believed = []
    for seed in range(3):
        with pytest.warns(
            DoubtWarning, match=r"of the 40 items are believed .*Use other features"
        ):
            sorting = MultiwaySorting().fit(unrelated(n_collections, 40, seed))
        assert len(sorting.doubts_) >= 1
        believed.append(sorting.expected_accuracy_)
    assert np.mean(believed) < 0.1


def test_the_estimate_falls_with_the_share_right():
    believed, right = [], []
    for noise in (0.02, 0.3, 2.0):
        X, orders = views(4, 60, noise=noise, seed=1)
        sorting = quiet_fit(X)
        believed.append(sorting.expected_accuracy_)
        right.append(share_whole(sorting, orders))
    assert right[0] > right[1] > right[2]
    assert believed[0] > believed[1] > believed[2]
    assert np.abs(np.subtract(believed, right)).max() < 0.2


@pytest.mark.parametrize("odd", [0, 2])
def test_a_collection_that_agrees_with_none_is_named(odd):
    X, _ = views(4, 50)
    X[odd] = unrelated(1, 50)[0]
    with pytest.warns(DoubtWarning, match=rf"X\[{odd}\] agrees with the others hardly more"):
        MultiwaySorting().fit(X)


@pytest.mark.parametrize("noise", [0.02, 0.4, 3.0])
def test_the_interval_holds_the_estimate(noise):
    sorting = quiet_fit(views(3, 30, noise=noise)[0])
    low, high = sorting.expected_accuracy_interval_
    assert isinstance(sorting.expected_accuracy_, float)
    assert 0.0 <= low < sorting.expected_accuracy_ < high <= 1.0


def test_without_trust_nothing_is_estimated_and_the_alignment_is_the_same():
    X = unrelated(3, 30)
    plain = MultiwaySorting(trust=False).fit(X)  # warnings are errors
    checked = quiet_fit(X)
    assert not_estimated(plain)
    assert np.array_equal(plain.permutations_, checked.permutations_)
    assert np.array_equal(plain.objective_path_, checked.objective_path_)
    assert plain.n_iter_ == checked.n_iter_


@pytest.mark.parametrize(("n_items", "estimated"), [(15, False), (16, True)])
def test_fewer_than_16_items_are_too_few(n_items, estimated):
    sorting = quiet_fit(unrelated(3, n_items))
    assert np.isfinite(sorting.expected_accuracy_) == estimated
    assert estimated or not_estimated(sorting)


def test_trust_depends_neither_on_threads_nor_on_the_seed():
    X = views(3, 30, noise=0.3)[0]
    one = quiet_fit(X, random_state=0)
    for params in ({"random_state": 1}, {"random_state": 0, "n_jobs": 2}):
        assert quiet_fit(X, **params).expected_accuracy_ == one.expected_accuracy_


def test_duplicates_are_no_reason_for_doubt():
    random = np.random.default_rng(0)
    twice = np.repeat(random.exponential(size=(15, 3)) * [3.0, 2.0, 1.0], 2, axis=0)
    X = [twice[random.permutation(30)] for _ in range(3)]
    sorting = MultiwaySorting().fit(X)  # warnings are errors
    first, *others = sorting.reorder(X)
    assert all(np.array_equal(first, other) for other in others)
    assert sorting.doubts_ == []


def test_one_start_is_checked_too():
    X, orders = views(3, 40)
    sorting = MultiwaySorting(n_init=1).fit(X)
    assert share_whole(sorting, orders) > 0.9
    assert sorting.expected_accuracy_ > 0.8
    assert quiet_fit(unrelated(3, 40), n_init=1).expected_accuracy_ < 0.2


def test_the_check_is_reported_with_the_answer():
    seen = []
    sorting = quiet_fit(views(3, 20)[0], callback=lambda state: seen.append(state))
    stages = [state.stage for state in seen]
    first = stages.index("checking")
    assert "checking" not in stages[:first]
    assert set(stages[first:]) == {"checking"}
    for state in seen[first:]:
        assert np.array_equal(state.permutation, sorting.permutations_)
        assert state.objective == sorting.objective_
    fractions = [state.fraction for state in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_stop_in_the_check_keeps_the_alignment(n_jobs):
    X = unrelated(3, 30)
    n_seen = []

    def stop(state):
        if state.stage == "checking":
            n_seen.append(1)
        return len(n_seen) == 3

    stopped = MultiwaySorting(callback=stop, n_jobs=n_jobs).fit(X)  # warnings are errors
    assert len(n_seen) == 3
    assert not_estimated(stopped)
    assert stopped.converged_
    assert np.array_equal(stopped.permutations_, quiet_fit(X).permutations_)


def test_a_stop_in_the_search_leaves_the_check_out():
    stopped = MultiwaySorting(callback=lambda state: state.iteration == 2).fit(unrelated(3, 30))
    assert not_estimated(stopped)


def test_an_interrupt_in_the_check_keeps_the_alignment():
    X = unrelated(3, 30)

    def interrupt(state):
        if state.stage == "checking":
            raise KeyboardInterrupt

    sorting = MultiwaySorting(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        sorting.fit(X)
    assert not_estimated(sorting)
    assert np.array_equal(sorting.permutations_, quiet_fit(X).permutations_)


def test_an_error_of_the_callback_in_the_check_is_raised():
    def fail(state):
        if state.stage == "checking":
            raise ValueError("out of order")

    with pytest.raises(ValueError, match="out of order"):
        MultiwaySorting(callback=fail).fit(unrelated(3, 30))


def test_items_that_are_all_alike_but_one_cannot_be_checked():
    alike = np.zeros((20, 2))
    alike[7] = 1.0
    with pytest.warns(DoubtWarning, match="could not be estimated.*alike but for a few"):
        sorting = MultiwaySorting().fit([alike, *unrelated(2, 20)])
    assert np.isnan(sorting.expected_accuracy_)


@pytest.mark.parametrize("trust", [None, "yes", 2])
def test_trust_is_a_flag(trust):
    with pytest.raises(ValueError, match="`trust` must be True or False"):
        MultiwaySorting(trust=trust).fit(unrelated(3, 20))
