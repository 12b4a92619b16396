import warnings

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from unshuffle import KernelizedSorting
from unshuffle.matching import DoubtWarning
from unshuffle.matching._dense.search import disagreement
from unshuffle.matching._trust.evidence import calibrate


def quiet_fit(X, y, *, frozen=None, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        return KernelizedSorting(**params).fit(X, y, frozen=frozen)


def skewed(n_items, seed=0):
    """A collection unlike its mirror image, and its copy in another order."""
    random = np.random.default_rng(seed)
    X = random.exponential(size=(n_items, 4)) ** 1.5 * [3.0, 2.0, 1.0, 0.5]
    order = random.permutation(n_items)
    return X, X[order], np.argsort(order)


@pytest.mark.parametrize("seed", range(4))
def test_a_mirrored_line_is_ambiguous(seed):
    half = np.sort(np.random.default_rng(seed).uniform(0.05, 1.0, size=12))
    x = np.concatenate([-half[::-1], half])[:, None]
    with pytest.warns(DoubtWarning, match=r"reaches 100.0%.*Freeze known pairs"):
        sorting = KernelizedSorting().fit(x, 5 * x)
    assert sorting.ambiguity_ == pytest.approx(1.0)


def test_known_pairs_silence_the_warning_of_a_mirrored_line():
    x = np.linspace(-1, 1, 20)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sorting = KernelizedSorting().fit(x, x, frozen=[(0, 19), (3, 16)])
    assert sorting.ambiguity_ < 0.9
    assert np.array_equal(sorting.permutation_, np.arange(20)[::-1])


@pytest.mark.parametrize("seed", range(4))
def test_a_clear_answer_comes_without_a_warning(seed):
    X, y, truth = skewed(40, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sorting = KernelizedSorting().fit(X, y)
    assert np.array_equal(sorting.permutation_, truth)
    assert 0.0 <= sorting.ambiguity_ < 0.93


def test_duplicates_are_alike_but_not_rivals():
    X, _, _ = skewed(20, 0)
    twice = np.repeat(X, 2, axis=0)
    order = np.random.default_rng(0).permutation(40)
    with pytest.warns(DoubtWarning, match="^About 50% .*: 100% of the items could exchange"):
        sorting = KernelizedSorting().fit(twice, twice[order])
    assert np.array_equal(twice[order][sorting.permutation_], twice)
    assert sorting.ambiguity_ < 0.93


@pytest.mark.parametrize("noise", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("method", ["refined", "classic"])
def test_confidence_and_ambiguity_lie_between_zero_and_one(paired_points, noise, method):
    X, y, _ = paired_points(25, 0, noise=noise)
    sorting = quiet_fit(X, y, method=method)
    assert sorting.confidence_.shape == (25,)
    assert sorting.confidence_.min() >= 0.0
    assert sorting.confidence_.max() <= 1.0
    assert 0.0 <= sorting.ambiguity_ <= 1.0


@pytest.mark.parametrize(("extra_x", "extra_y"), [(6, 0), (0, 6)])
def test_confidence_is_zero_only_for_unmatched_items(paired_points, extra_x, extra_y):
    X, y, _ = paired_points(25, 1, extra_x=extra_x, extra_y=extra_y)
    sorting = quiet_fit(X, y)
    assert sorting.confidence_.shape == (25 + extra_x,)
    unmatched = sorting.permutation_ == -1
    assert np.all(sorting.confidence_[unmatched] == 0.0)
    assert sorting.confidence_[~unmatched].mean() > 0.5


def test_confidence_is_higher_for_right_pairs_than_for_wrong_ones(paired_points):
    scores = []
    for seed in range(4):
        X, y, truth = paired_points(60, seed, noise=0.25)
        sorting = quiet_fit(X, y)
        right = sorting.permutation_ == truth
        assert 5 < right.sum() < 60
        scores.append(roc_auc_score(right, sorting.confidence_))
    assert np.mean(scores) > 0.6


def test_confidence_falls_as_noise_grows(paired_points):
    means = [
        quiet_fit(*paired_points(40, 2, noise=noise)[:2]).confidence_.mean()
        for noise in (0, 0.3, 5)
    ]
    assert means[0] > means[1] > means[2]


def test_frozen_pairs_are_trusted(paired_points):
    X, y, truth = paired_points(25, 3, noise=0.3)
    frozen = np.array([[4, truth[4]], [11, truth[11]]])
    sorting = quiet_fit(X, y, frozen=frozen)
    assert np.all(sorting.confidence_[frozen[:, 0]] == 1.0)


def test_disagreement_is_zero_for_the_same_partners_and_one_at_random():
    random = np.random.default_rng(0)
    points = random.normal(size=(400, 3))
    L = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=-1))
    same = np.arange(400)
    assert disagreement(L, same, same) == 0.0
    assert disagreement(L, same, random.permutation(400)) == pytest.approx(1.0, abs=0.1)


def test_matching_a_duplicate_instead_is_not_a_disagreement():
    points = np.repeat(np.random.default_rng(1).normal(size=(10, 2)), 2, axis=0)
    L = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=-1))
    twins = np.arange(20).reshape(-1, 2)[:, ::-1].ravel()
    assert disagreement(L, np.arange(20), twins) == pytest.approx(0.0, abs=1e-12)


def test_right_pairs_are_believed_and_the_confidences_average_to_the_belief():
    X, y, truth = skewed(60, 0)
    sorting = KernelizedSorting().fit(X, y)
    assert np.array_equal(sorting.permutation_, truth)
    assert sorting.expected_accuracy_ > 0.9
    assert sorting.doubts_ == []
    assert sorting.confidence_.mean() == pytest.approx(sorting.expected_accuracy_)
    low, high = sorting.expected_accuracy_interval_
    assert 0.0 <= low < sorting.expected_accuracy_ < high <= 1.0


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_not_believed(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 4)), rng.normal(size=(80, 6))
    with pytest.warns(DoubtWarning, match=r"hardly more than halves.*were found again"):
        sorting = KernelizedSorting().fit(X, y)
    assert sorting.expected_accuracy_ < 0.1
    assert sorting.confidence_.mean() < 0.1
    assert len(sorting.doubts_) >= 2


def test_noise_is_not_believed_if_one_side_is_larger():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), rng.normal(size=(64, 6))
    assert quiet_fit(X, y).expected_accuracy_ < 0.1
    assert quiet_fit(y, X).expected_accuracy_ < 0.1


def test_halves_of_equal_items_speak_for_nothing():
    X = np.zeros((40, 2))
    X[0], X[1] = 1.0, [0.0, 3.0]
    sorting = quiet_fit(X, X[::-1])
    assert sorting.expected_accuracy_ < 0.5
    assert sorting.doubts_


def test_without_trust_nothing_is_estimated():
    X, y, _ = skewed(40, 0)
    sorting = KernelizedSorting(trust=False).fit(X, y)
    assert np.array_equal(sorting.permutation_, KernelizedSorting().fit(X, y).permutation_)
    assert np.isnan(sorting.expected_accuracy_)
    assert np.isnan(sorting.expected_accuracy_interval_).all()
    assert "was not estimated" in str(sorting.matches_)


def test_trust_does_not_depend_on_the_seed_or_the_threads():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    believed = {
        quiet_fit(X, y, random_state=seed, n_jobs=n_jobs).expected_accuracy_
        for seed, n_jobs in ((0, 1), (1, 2))
    }
    assert len(believed) == 1


def test_of_two_equal_answers_at_most_half_is_believed():
    half = np.sort(np.random.default_rng(0).uniform(0.05, 1.0, size=12))
    x = np.concatenate([-half[::-1], half])[:, None]
    assert quiet_fit(x, 5 * x).expected_accuracy_ < 0.5


def test_a_stopped_check_keeps_the_match_and_estimates_nothing():
    X, y, truth = skewed(40, 0)
    stages = []

    def stop(state):
        stages.append(state.stage)
        return state.stage == "checking"

    sorting = KernelizedSorting(callback=stop).fit(X, y)
    assert stages[-1] == "checking"
    assert np.array_equal(sorting.permutation_, truth)
    assert np.isnan(sorting.expected_accuracy_)
    assert sorting.confidence_.min() > 0.0


def test_progress_never_falls_and_covers_the_check():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    fractions = []
    quiet_fit(X, y, callback=lambda state: fractions.append(state.fraction))
    assert np.all(np.diff(fractions) >= 0)
    assert max(fractions) <= 1.0


@pytest.mark.parametrize("method", ["refined", "low_rank"])
def test_progress_moves_within_a_check_and_a_stop_there_keeps_the_match(method):
    X, y, _ = skewed(60, 0)
    whole, moved = [], []
    quiet_fit(X, y, method=method, callback=whole.append)
    checks = [state for state in whole if state.stage == "checking"]
    # More than one report for each of four checks, which may take minutes each.
    assert len({state.fraction for state in checks}) > 12
    assert all(state.permutation.size == len(X) for state in checks)

    def stop(state):
        moved.append(state.stage == "checking")
        return sum(moved) == 6

    sorting = quiet_fit(X, y, method=method, callback=stop)
    assert sum(moved) == 6
    assert np.array_equal(np.sort(sorting.permutation_), np.arange(len(X)))
    assert np.isnan(sorting.expected_accuracy_)


def test_the_printed_summary_says_how_many_why_and_what_to_do():
    rng = np.random.default_rng(0)
    lines = str(quiet_fit(rng.normal(size=(40, 3)), rng.normal(size=(40, 3))).matches_)
    size, believed, advice = lines.splitlines()
    assert size == "40 pairs of 40 and 40 items."
    assert believed.startswith("About ")
    assert "the two collections agree hardly more than halves of them" in believed
    assert advice.startswith("Next: ")


def test_calibrated_confidences_keep_their_order_and_average_to_the_target():
    resampled = np.array([0.0, 0.2, 0.9, 1.0])
    for expected in (0.0, 0.3, 0.525, 0.8, 1.0):
        found = calibrate(resampled, expected)
        assert found.mean() == pytest.approx(expected)
        assert np.all(np.diff(found) >= 0)
        assert found.min() >= 0.0
        assert found.max() <= 1.0
    assert calibrate(np.ones(3), 0.5) == pytest.approx(0.5)
    assert calibrate(np.zeros(3), 0.5) == pytest.approx(0.5)
