"""All that KernelizedSorting offers with method="low_rank", at small sizes."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from unshuffle import KernelizedSorting
from unshuffle.kernels import rbf_kernel
from unshuffle.matching import DoubtWarning, _kernelized_sorting

WORDS = [
    "river",
    "vote",
    "budget",
    "energy",
    "fishing",
    "border",
    "school",
    "market",
    "road",
    "sea",
    "law",
    "tax",
]


def rotated(n_items, seed=0, noise=0.05):
    """Points, the same points rotated in another order, and the partners."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 6)) * np.linspace(2.0, 0.6, 6)
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    y = X @ rotation + noise * rng.normal(size=X.shape)
    order = rng.permutation(n_items)
    return X, y[order], np.argsort(order)


def unrelated(n_items):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_items, 6)) * np.linspace(2, 0.6, 6), rng.normal(size=(n_items, 4))


def mirrored(n_half):
    """Points and their mirror images, in another order, and both matchings that fit."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(n_half, 3)) * [2, 1, 0.5]
    X = np.vstack([half, half * [-1, 1, 1]])
    order = rng.permutation(len(X))
    truth = np.argsort(order)
    return X, X[order], truth, np.roll(truth, n_half)


def sort(X, y, *, frozen=None, cost=None, hints=None, **params):
    params = {"method": "low_rank", "random_state": 0} | params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        return KernelizedSorting(**params).fit(X, y, frozen=frozen, cost=cost, hints=hints)


def is_matching(permutation, n_first, n_second):
    used = permutation[permutation >= 0]
    return (
        permutation.shape == (n_first,)
        and used.size == min(n_first, n_second)
        and np.unique(used).size == used.size
        and used.max() < n_second
    )


@pytest.fixture(scope="module")
def easy():
    """A fit that finds everything, and the partners."""
    X, y, truth = rotated(600)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return KernelizedSorting(method="low_rank", random_state=0).fit(X, y), X, y, truth


@pytest.fixture(scope="module")
def smaller_X():
    X, y, truth = rotated(600)
    return sort(X[:400], y), truth[:400]


@pytest.fixture(scope="module")
def larger_X():
    X, y, truth = rotated(600)
    return sort(X, y[:400]), np.where(truth < 400, truth, -1)


def test_a_rotated_cloud_is_matched_and_trusted(easy):
    sorting, _, y, truth = easy
    assert sorting.method_ == "low_rank"
    assert np.array_equal(sorting.permutation_, truth)
    assert np.array_equal(sorting.pairs_, np.column_stack([np.arange(600), truth]))
    assert sorting.expected_accuracy_ > 0.9
    assert sorting.confidence_.min() > 0.8
    assert sorting.confidence_.max() <= 1.0
    assert sorting.doubts_ == []
    assert sorting.ambiguity_ < 0.9
    assert sorting.converged_
    assert sorting.n_iter_ == len(sorting.objective_path_) > 0
    assert sorting.objective_ == pytest.approx(max(sorting.objective_path_))
    assert np.array_equal(sorting.reorder(y), y[truth])
    assert sorting.matches_.expected_accuracy == sorting.expected_accuracy_


def test_more_items_than_are_assigned_exactly():
    X, y, truth = rotated(1700)
    sorting = sort(X, y, trust=False)
    assert is_matching(sorting.permutation_, 1700, 1700)
    assert np.mean(sorting.permutation_ == truth) > 0.99


def test_the_smaller_side_is_matched_whole(smaller_X, larger_X):
    sorting, truth = smaller_X
    assert np.mean(sorting.permutation_ == truth) > 0.99
    sorting, truth = larger_X
    assert is_matching(sorting.permutation_, 600, 400)
    assert np.mean((sorting.permutation_ == truth)[truth >= 0]) > 0.95
    assert np.all(sorting.confidence_[sorting.permutation_ < 0] == 0.0)


def test_auto_takes_it_beyond_a_size(monkeypatch):
    X, y, _ = rotated(60)
    monkeypatch.setattr(_kernelized_sorting, "LARGE", 59)
    assert sort(X, y, method="auto", trust=False).method_ == "low_rank"
    assert sort(X[:9], y, method="auto", trust=False).method_ == "low_rank"
    assert sort(X, y, method="refined", trust=False, n_init=1).method_ == "refined"
    monkeypatch.setattr(_kernelized_sorting, "LARGE", 60)
    assert sort(X, y, method="auto", trust=False, n_init=1).method_ == "refined"
    assert sort(X, y, trust=False).method_ == "low_rank"


# What the user knows


def test_frozen_pairs_are_kept_even_if_wrong():
    X, y, truth = rotated(300)
    wrong = np.array([[7, truth[0]], [0, truth[7]], [250, truth[250]]])
    sorting = sort(X, y, frozen=wrong)
    assert np.array_equal(sorting.permutation_[wrong[:, 0]], wrong[:, 1])
    assert np.all(sorting.confidence_[wrong[:, 0]] == 1.0)
    others = np.setdiff1d(np.arange(300), wrong[:, 0])
    assert np.mean((sorting.permutation_ == truth)[others]) > 0.99


@pytest.mark.parametrize("swapped", [False, True])
def test_frozen_pairs_decide_between_mirror_images(swapped):
    X, y, *matchings = mirrored(150)
    for matching in matchings:
        frozen = np.column_stack([np.arange(12), matching[:12]])
        if swapped:  # the first collection is the larger one
            X_more = np.vstack([X, [[9.0, 9, 9], [-9, 5, 2]]])
            found = sort(X_more, y, frozen=frozen).permutation_[:300]
        else:
            found = sort(X, y, frozen=frozen).permutation_
        assert np.mean(found == matching) > 0.95


def test_six_frozen_pairs_tell_how_many_others_are_right():
    X, y, truth = rotated(300)
    frozen = np.column_stack([np.arange(10), truth[:10]])
    sorting = sort(X, y, frozen=frozen)
    assert np.array_equal(sorting.permutation_, truth)
    assert sorting.expected_accuracy_ > 0.8
    X, y = unrelated(300)
    frozen = np.column_stack([np.arange(10), np.arange(10)])
    with pytest.warns(DoubtWarning):
        sorting = KernelizedSorting(method="low_rank", random_state=0).fit(X, y, frozen=frozen)
    assert sorting.expected_accuracy_ < 0.5
    assert np.array_equal(sorting.permutation_[:10], np.arange(10))


def test_hints_decide_between_mirror_images_and_may_be_overruled():
    X, y, truth, mirror = mirrored(150)
    rows = np.arange(0, 300, 10)
    for matching in (truth, mirror):
        hints = np.column_stack([rows, matching[rows], np.full(rows.size, 0.9)])
        found = sort(X, y, hints=hints, trust=False).permutation_
        assert np.mean(found == matching) > 0.95
    X, y, truth = rotated(300)
    wrong = [(0, truth[1], 0.9), (5, truth[9], 0.7)]
    assert np.array_equal(sort(X, y, hints=wrong, trust=False).permutation_, truth)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.coo_array])
def test_a_cost_decides_between_mirror_images(kind):
    X, y, *matchings = mirrored(150)
    unit = 2 * sort(X, y, trust=False).objective_ / 300
    rows = np.arange(0, 300, 5)
    for matching in matchings:
        cost = np.zeros((300, 300))
        cost[rows, matching[rows]] = -3 * unit
        found = sort(X, y, cost=kind(cost), trust=False).permutation_
        assert np.mean(found == matching) > 0.95


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_second", [300, 200])
def test_a_cost_rules_pairs_out(kind, n_second):
    X, y, truth = rotated(300)
    y, truth = y[:n_second], np.where(truth < n_second, truth, -1)
    banned = np.flatnonzero(truth >= 0)[:40]
    cost = np.zeros((300, n_second))
    cost[banned, truth[banned]] = 1e6
    found = sort(X, y, cost=kind(cost), trust=False).permutation_
    assert is_matching(found, 300, n_second)
    assert not np.any(found[banned] == truth[banned])
    others = np.setdiff1d(np.flatnonzero(truth >= 0), banned)
    assert np.mean(found[others] == truth[others]) > 0.6


def test_a_cost_of_another_shape_is_refused():
    X, y, _ = rotated(30)
    for cost in (np.zeros((30, 29)), sparse.csr_matrix((29, 30))):
        with pytest.raises(ValueError, match="cost"):
            sort(X, y, cost=cost)


def test_outliers_are_released_and_the_rest_is_kept():
    X, y, truth = rotated(500)
    rng = np.random.default_rng(3)
    X, y = (np.vstack([side, 3 * rng.normal(size=(50, 6))]) for side in (X, y))
    sorting = sort(X, y, unmatched_cost=0.4)
    found = sorting.permutation_
    assert np.mean(found[:500] == truth) > 0.95
    released = np.mean(found[500:] < 0)
    assert released > 0.3
    assert released > 10 * np.mean(found[:500] < 0)
    assert np.all(sorting.confidence_[found < 0] == 0.0)
    assert np.unique(found[found >= 0]).size == len(sorting.pairs_)
    with pytest.raises(ValueError, match="unmatched"):
        sorting.reorder(y)
    all_kept = sort(X, y, unmatched_cost=1e9, trust=False)
    assert (all_kept.permutation_ >= 0).sum() >= 545


def test_frozen_pairs_are_never_released():
    X, y, truth = rotated(300)
    wrong = np.array([(0, truth[1]), (5, truth[6])])
    sorting = sort(X, y, frozen=wrong, unmatched_cost=0.2, trust=False)
    assert np.array_equal(sorting.permutation_[[0, 5]], wrong[:, 1])
    assert (sorting.permutation_ < 0).any()


# How sure it is


@pytest.mark.slow
def test_unrelated_collections_are_doubted():
    X, y = unrelated(400)
    with pytest.warns(DoubtWarning, match=r"believed right"):
        sorting = KernelizedSorting(method="low_rank", random_state=0).fit(X, y)
    assert sorting.expected_accuracy_ < 0.5
    low, high = sorting.expected_accuracy_interval_
    assert 0.0 <= low <= sorting.expected_accuracy_ <= high <= 1.0
    assert 0.0 <= sorting.ambiguity_ <= 1.0
    assert np.all((sorting.confidence_ >= 0.0) & (sorting.confidence_ <= 1.0))
    assert sorting.doubts_


def test_without_trust_nothing_is_estimated():
    X, y, _ = rotated(200)
    sorting = sort(X, y, trust=False)
    assert np.isnan(sorting.expected_accuracy_)
    assert np.all((sorting.confidence_ >= 0.0) & (sorting.confidence_ <= 1.0))


def test_candidates_begin_with_the_partner(smaller_X, larger_X):
    for (sorting, _), n_second in ((smaller_X, 600), (larger_X, 400)):
        matched = np.flatnonzero(sorting.permutation_ >= 0)
        for k in (1, 5, n_second):
            found = sorting.candidates(k)
            assert found.shape == (sorting.permutation_.size, k)
            assert np.array_equal(found[matched, 0], sorting.permutation_[matched])
            assert all(np.unique(row).size == k for row in found)
        with pytest.raises(ValueError, match="`k` must be"):
            sorting.candidates(n_second + 1)


def test_candidates_hold_the_right_partner_where_the_match_is_wrong():
    X, y, truth = rotated(300, noise=0.6)
    sorting = sort(X, y, trust=False)
    wrong = np.flatnonzero(sorting.permutation_ != truth)
    assert 10 < wrong.size < 200
    ten = sorting.candidates(10)
    assert np.mean((ten[wrong] == truth[wrong, None]).any(axis=1)) > 0.5


def test_soft_matches_of_one_size_are_balanced():
    X, y, truth = rotated(300, noise=0.5)
    sorting = sort(X, y, trust=False)
    shares = sorting.soft_matches()
    assert sparse.issparse(shares)
    assert shares.format == "csr"
    assert shares.shape == (300, 300)
    assert shares.data.min() >= 0.0
    np.testing.assert_allclose(np.asarray(shares.sum(axis=1)).ravel(), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(shares.sum(axis=0)).ravel(), 1.0, atol=0.05)
    smoothed = np.mean((shares @ y - y[truth]) ** 2)
    assert smoothed < np.mean((y[sorting.permutation_] - y[truth]) ** 2)


def test_soft_matches_of_two_sizes_sum_to_one_on_the_smaller_side(smaller_X, larger_X):
    for (sorting, _), axis in ((smaller_X, 1), (larger_X, 0)):
        shares = sorting.soft_matches()
        np.testing.assert_allclose(np.asarray(shares.sum(axis=axis)).ravel(), 1.0, rtol=1e-6)
        assert np.asarray(shares.sum(axis=1 - axis)).max() < 1.01


def test_warmer_shares_are_softer(larger_X):
    sorting, _ = larger_X
    highest = [sorting.soft_matches(t).max(axis=0).toarray().mean() for t in (0.01, 0.2, 10, 100)]
    assert np.all(np.diff(highest) <= 1e-9)
    assert highest[0] > 0.99
    assert highest[-1] < 0.9
    with pytest.raises(ValueError, match="temperature"):
        sorting.soft_matches(0.0)


def test_frozen_pairs_have_all_of_their_share():
    X, y, truth = rotated(200, noise=0.4)
    frozen = np.column_stack([np.arange(5), truth[:5]])
    shares = sort(X, y, frozen=frozen, trust=False).soft_matches(5.0)
    np.testing.assert_allclose(np.asarray(shares[np.arange(5), truth[:5]]).ravel(), 1.0)
    assert np.asarray(shares[5:][:, truth[:5]].sum()) == pytest.approx(0.0, abs=1e-9)


# What it matches


def texts(n_texts):
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, 8)) for _ in range(n_texts)]


def collections_of(kind):
    """Two collections of 150 items, the partners, and the kernels."""
    X, y, truth = rotated(150)
    order = np.argsort(truth)
    documents = texts(150)
    shuffled = [documents[i].replace("river", "rivière") for i in order]
    table = sparse.random(150, 40, 0.2, random_state=0, format="csr")
    return {
        "texts": (documents, shuffled, "auto"),
        "sparse": (table, table[order], "auto"),
        "callable": (X, y, lambda A, B: np.exp(-0.2 * ((A[:, None] - B) ** 2).sum(axis=2))),
        "precomputed": (rbf_kernel(X), rbf_kernel(y), "precomputed"),
        "a list of kernels": (X, y, ["rbf", "linear"]),
        "two kinds": ([X, documents], [y, shuffled], ["rbf", "text"]),
        "linear": (X, y, "linear"),
        "laplacian": (X, X[order], "laplacian"),
        "chi2": (np.abs(X), np.abs(X)[order], "chi2"),
        "geodesic": (X, y, "geodesic"),
        "local": (X, y, "local"),
        "constant columns": (
            np.hstack([X, np.ones((150, 2))]),
            np.hstack([np.zeros((150, 1)), y]),
            "auto",
        ),
    }[kind], truth


@pytest.mark.parametrize(
    "kind",
    [
        "texts",
        "sparse",
        "callable",
        "precomputed",
        "a list of kernels",
        "two kinds",
        "linear",
        "laplacian",
        "chi2",
        "geodesic",
        "local",
        "constant columns",
    ],
)
def test_every_kind_of_collection(kind):
    (X, y, kernel), truth = collections_of(kind)
    found = sort(X, y, kernel=kernel, trust=False).permutation_
    assert np.mean(found == truth) > 0.95


def test_columns_in_different_units_are_scaled():
    X, _, _ = rotated(400)
    rng = np.random.default_rng(1)
    order = rng.permutation(400)
    y = (X + 0.05 * rng.normal(size=X.shape))[order] * [1e3, 1, 1, 1e-2, 1, 1]
    sorting = sort(X * [1, 1e3, 1, 1e-3, 1, 1], y)
    assert sorting.scaling_ != "as given"
    assert np.mean(sorting.permutation_ == np.argsort(order)) > 0.95


@pytest.mark.parametrize("n_first", [2, 3, 5, 20])
@pytest.mark.parametrize("n_second", [2, 3, 5, 20, 40])
def test_few_items_are_matched_one_to_one(n_first, n_second):
    rng = np.random.default_rng(0)
    sorting = sort(rng.normal(size=(n_first, 3)), rng.normal(size=(n_second, 2)))
    assert is_matching(sorting.permutation_, n_first, n_second)
    assert np.all((sorting.confidence_ >= 0) & (sorting.confidence_ <= 1))
    assert sorting.candidates(2).shape == (n_first, 2)
    assert sorting.soft_matches().shape == (n_first, n_second)


@pytest.mark.parametrize("n_items", [5, 20, 60])
def test_few_items_find_their_copies(n_items):
    X = np.random.default_rng(1).exponential(size=(n_items, 3)) * [3, 2, 1]
    found = sort(X, X[::-1]).permutation_
    assert np.array_equal(found, np.arange(n_items)[::-1])


@pytest.mark.slow
def test_duplicates_go_to_duplicates():
    X, _, _ = rotated(150)
    X = np.repeat(X, 2, axis=0)
    order = np.random.default_rng(0).permutation(300)
    sorting = sort(X, X[order])
    assert is_matching(sorting.permutation_, 300, 300)
    np.testing.assert_allclose(X[order][sorting.permutation_], X, atol=1e-6)


@pytest.mark.slow
def test_mostly_equal_rows_are_matched_one_to_one():
    X = np.ones((300, 3))
    X[:12] = np.random.default_rng(0).normal(size=(12, 3))
    sorting = sort(X, X[::-1])
    assert is_matching(sorting.permutation_, 300, 300)
    assert np.mean(X[::-1][sorting.permutation_[:12]] == X[:12]) > 0.7
    assert np.isfinite(sorting.confidence_).all()


# Progress, repetition and state


@pytest.mark.slow
def test_progress_never_goes_back():
    X, y = unrelated(200)
    for trust, last in ((False, 0.7), (True, 0.3)):
        states = []
        sort(X, y, trust=trust, callback=states.append)
        fractions = [state.fraction for state in states]
        assert np.all(np.diff(fractions) >= 0)
        assert last < fractions[-1] <= 1.0
        assert [state.iteration for state in states] == list(range(1, len(states) + 1))
        assert all(is_matching(state.permutation, 200, 200) for state in states)
        assert all(state.stage for state in states)


@pytest.mark.parametrize("last", [1, 5, 30])
@pytest.mark.parametrize("n_second", [200, 150])
def test_stopping_keeps_a_full_matching(last, n_second):
    X, y = unrelated(200)
    seen = []

    def stop(state):
        seen.append(state)
        return state.iteration == last

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sorting = KernelizedSorting(method="low_rank", callback=stop, random_state=0)
        sorting.fit(X, y[:n_second])
    assert len(seen) == last
    assert is_matching(sorting.permutation_, 200, n_second)
    assert np.isnan(sorting.expected_accuracy_)
    assert sorting.candidates(3).shape == (200, 3)


def test_ctrl_c_keeps_the_best_so_far():
    X, y = unrelated(200)

    def press(state):
        if state.iteration == 30:
            raise KeyboardInterrupt

    sorting = KernelizedSorting(method="low_rank", callback=press, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        sorting.fit(X, y)
    assert is_matching(sorting.permutation_, 200, 200)
    assert sorting.soft_matches().shape == (200, 200)


@pytest.mark.slow
def test_neither_threads_nor_repetition_change_the_answer():
    X, y = unrelated(150)
    first, *others = (sort(X, y, n_jobs=n_jobs) for n_jobs in (None, None, 1, 2))
    for other in others:
        assert np.array_equal(first.permutation_, other.permutation_)
        assert np.array_equal(first.confidence_, other.confidence_)
        assert first.expected_accuracy_ == other.expected_accuracy_
        assert np.array_equal(first.candidates(4), other.candidates(4))
        assert np.array_equal(first.soft_matches().toarray(), other.soft_matches().toarray())


def test_inputs_are_left_as_they_were():
    X, y, truth = rotated(100)
    frozen, cost = np.column_stack([np.arange(6), truth[:6]]), np.zeros((100, 100))
    before = [each.copy() for each in (X, y, frozen, cost)]
    sort(X, y, frozen=frozen, cost=cost)
    for each, copy in zip((X, y, frozen, cost), before, strict=True):
        assert np.array_equal(each, copy)


def test_a_fit_can_be_saved_and_cloned(easy):
    sorting, *_ = easy
    again = pickle.loads(pickle.dumps(sorting))
    assert np.array_equal(again.permutation_, sorting.permutation_)
    assert np.array_equal(again.candidates(3), sorting.candidates(3))
    assert clone(sorting).get_params() == sorting.get_params()
    assert not hasattr(clone(sorting), "permutation_")


def test_new_items_are_mapped(easy):
    sorting, X, y, truth = easy
    expected = sorting.transform(X[:50])
    assert np.mean((expected - y[truth[:50]]) ** 2) < 0.1 * y.var()


def test_mirror_images_are_doubted():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(200, 2)) * [3.0, 1.0] + [6.0, 0.0]
    X = np.vstack([half, half * [-1.0, 1.0]])
    with pytest.warns(DoubtWarning, match="another matching"):
        sorting = KernelizedSorting(method="low_rank", kernel="rbf", random_state=0).fit(
            X, X[::-1]
        )
    assert sorting.ambiguity_ == 1.0
