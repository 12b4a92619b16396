from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from unshuffle.kernels import gram_matrix
from unshuffle.layout import _summary, choose_representatives, summarize
from unshuffle.layout._summary import find_medoids


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:600]


def mean_distance(X, indices):
    return pairwise_distances(X, X[indices]).min(axis=1).mean()


def test_the_middle_of_each_of_three_clusters_is_chosen_largest_cluster_first():
    X = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [52.0], [53.0], [54.0], [99.0], [100.0]])
    summary = summarize(X, 3)
    assert summary.indices.tolist() == [5, 1, 8]
    assert summary.counts.tolist() == [5, 3, 2]
    assert summary.labels.tolist() == [1] * 3 + [0] * 5 + [2] * 2
    assert summary.mean_distance == pytest.approx((2 + 6 + 1) / 10)
    assert choose_representatives(X, 3).tolist() == [5, 1, 8]


@pytest.mark.parametrize(("k", "slack"), [(1, 1e-6), (2, 0.05), (3, 0.05)])
def test_tiny_collections_get_about_the_best_of_all_choices(k, slack):
    for seed in range(5):
        X = np.random.RandomState(seed).randn(12, 2)
        best = min(mean_distance(X, list(each)) for each in combinations(range(12), k))
        assert best * (1 - 1e-6) <= summarize(X, k).mean_distance <= best * (1 + slack)


@given(st.integers(0, 2**31 - 1), st.integers(2, 25), st.integers(1, 25))
def test_summaries_are_consistent(seed, n_items, k):
    k = min(k, n_items)
    rng = np.random.RandomState(seed)
    X = rng.randint(0, 4, (n_items, 2)).astype(float)  # with repeated items
    X[0] += 0.5
    summary = summarize(X, k)
    assert len(set(summary.indices)) == k
    assert (np.diff(summary.counts) <= 0).all()
    assert np.bincount(summary.labels, minlength=k).tolist() == summary.counts.tolist()
    assert summary.labels[summary.indices].tolist() == list(range(k))
    distances = pairwise_distances(X, X[summary.indices])
    own = distances[np.arange(n_items), summary.labels]
    np.testing.assert_allclose(own, distances.min(axis=1), atol=1e-6)
    np.testing.assert_allclose(own.mean(), summary.mean_distance, atol=1e-5)
    n_different = len(np.unique(X, axis=0))
    assert len(np.unique(X[summary.indices], axis=0)) == min(k, n_different)


def test_no_single_exchange_would_be_better(digits):
    X = digits[:120]
    D = pairwise_distances(X).astype(np.float32)
    chosen = find_medoids(D, 8)
    least = D[chosen].min(axis=0).sum()
    for slot in range(8):
        for other in set(range(120)) - set(chosen):
            changed = chosen.copy()
            changed[slot] = other
            assert D[changed].min(axis=0).sum() > least * (1 - 1e-5)


def test_better_than_snapped_cluster_centres_and_much_better_than_chance(digits):
    k = 20
    centers = KMeans(k, n_init=3, random_state=0).fit(digits).cluster_centers_
    snapped = pairwise_distances(centers, digits).argmin(axis=1)
    rng = np.random.RandomState(0)
    chance = np.mean([mean_distance(digits, rng.choice(600, k, replace=False)) for _ in range(5)])
    ours = mean_distance(digits, choose_representatives(digits, k))
    assert ours < mean_distance(digits, snapped)
    assert ours < 0.9 * chance


def test_order_of_the_items_does_not_matter(digits):
    X = digits[:200]
    shuffled = np.random.RandomState(3).permutation(200)
    one, two = summarize(X, 5), summarize(X[shuffled], 5)
    # Two local optima may differ; both are chosen by the same rules and come out about as good.
    assert two.mean_distance == pytest.approx(one.mean_distance, rel=0.02)


def test_repeated_items_are_not_chosen_while_others_remain():
    X = np.vstack([np.zeros((30, 2)), np.random.RandomState(0).randn(5, 2) + 5])
    chosen = choose_representatives(X, 6)
    assert set(range(30, 35)) < set(chosen)
    assert summarize(X, 6).mean_distance == 0
    assert len(set(choose_representatives(X, 9))) == 9


def test_rare_items_are_found_among_many_repeated_ones(monkeypatch):
    monkeypatch.setattr(_summary, "_MAX_CANDIDATES", 50)
    rng = np.random.RandomState(0)
    X = np.vstack([np.zeros((2000, 3)), rng.randn(8, 3)])
    summary = summarize(X, 9, random_state=0)
    assert summary.mean_distance == 0
    assert set(range(2000, 2008)) < set(summary.indices)


def test_a_sample_of_candidates_comes_close_to_all_of_them(digits, monkeypatch):
    whole = summarize(digits, 10).mean_distance
    monkeypatch.setattr(_summary, "_MAX_CANDIDATES", 100)
    sampled = summarize(digits, 10, random_state=0)
    assert sampled.mean_distance < 1.02 * whole
    assert sampled.mean_distance == pytest.approx(mean_distance(digits, sampled.indices), rel=1e-4)
    again = summarize(digits, 10, random_state=0)
    np.testing.assert_array_equal(sampled.indices, again.indices)


def test_every_way_to_say_the_same_gives_the_same(digits):
    X = digits[:150]
    expected = choose_representatives(X, 7)
    for other in (X.tolist(), sparse.csr_matrix(X), X.astype(np.float32)):
        np.testing.assert_array_equal(choose_representatives(other, 7), expected)
    K = gram_matrix(X, "linear")
    np.testing.assert_array_equal(choose_representatives(K, 7, kernel="precomputed"), expected)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2"])
def test_kernels_agree_with_their_gram_matrices(digits, kernel):
    X = digits[:150]
    one = summarize(X, 7, kernel=kernel)
    two = summarize(gram_matrix(X, kernel), 7, kernel="precomputed")
    np.testing.assert_array_equal(one.indices, two.indices)
    assert one.mean_distance == pytest.approx(two.mean_distance, rel=1e-5)


def test_documents_and_lists_of_kernels_are_taken(digits):
    texts = ["red apple pie", "green apple pie", "old steam engine", "new steam engine"]
    labels = summarize(texts, 2, kernel="text").labels
    assert labels[0] == labels[1] != labels[2] == labels[3]
    assert len(choose_representatives(digits[:50], 4, kernel=["linear", "rbf"])) == 4


def test_input_is_left_alone(digits):
    X = digits.copy()
    summarize(X, 3)
    np.testing.assert_array_equal(X, digits)


@pytest.mark.parametrize(
    ("X", "k", "message"),
    [
        (np.eye(5), 6, r"`k` is 6, but there are only 5 item\(s\)"),
        (np.eye(5), 0, "`k` must be at least 1, got 0"),
        (np.eye(5), 2.5, "`k` must be a whole number"),
        (np.array([[0.0], [np.nan]]), 1, "contains NaN"),
        (["a", "b"], 1, "holds strings"),
    ],
)
def test_what_cannot_be_summarized_is_refused(X, k, message):
    with pytest.raises(ValueError, match=message):
        choose_representatives(X, k)


def test_amounts_below_zero_are_refused_where_counts_are_compared():
    with pytest.raises(ValueError, match="never negative"):
        summarize(-np.eye(4), 2, kernel="chi2")


def test_too_little_memory_is_said_before_it_is_taken(monkeypatch, digits):
    from unshuffle._core import parameters as _parameters

    monkeypatch.setattr(_parameters, "available_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match="candidates to 600 items needs"):
        summarize(digits, 3)
