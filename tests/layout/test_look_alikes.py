import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances

from unshuffle.kernels import gram_matrix
from unshuffle.layout import _look_alikes, look_alikes


def nearest_by(D, k):
    """The k nearest others from all distances, equally near ones in their order."""
    D = D.copy()
    np.fill_diagonal(D, np.inf)
    return np.argsort(D, axis=1, kind="stable")[:, :k]


def found_again(first, second):
    """Share of the items of one answer that the other holds too."""
    both = [len(set(a) & set(b)) for a, b in zip(first, second, strict=True)]
    return np.mean(both) / first.shape[1]


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:700]


def test_neighbors_on_a_line_are_found_nearest_first():
    assert look_alikes([[0.0], [1.0], [3.0], [7.0]], 2).tolist() == [
        [1, 2],
        [0, 2],
        [1, 0],
        [2, 1],
    ]


def test_all_others_are_returned_where_k_is_larger_than_their_number():
    assert look_alikes([[0.0], [1.0], [3.0]], 50).tolist() == [[1, 2], [0, 2], [1, 0]]
    assert look_alikes([[1.0, 2.0]], 3).shape == (1, 0)


@given(
    st.integers(0, 2**31 - 1),
    st.integers(2, 40),
    st.integers(1, 5),
    st.integers(1, 12),
    st.sampled_from([np.float64, np.float32, np.uint8, np.int16]),
)
def test_answers_are_those_of_all_distances(seed, n_items, n_columns, k, dtype):
    # Small whole numbers: many equal rows and equal distances, all of them exact.
    X = np.random.RandomState(seed).randint(0, 4, (n_items, n_columns)).astype(dtype)
    expected = nearest_by(pairwise_distances(X.astype(float)), min(k, n_items - 1))
    np.testing.assert_array_equal(look_alikes(X, k), expected)


@given(st.integers(0, 2**31 - 1), st.floats(-300, 300), st.integers(1, 3))
def test_order_position_and_unit_do_not_matter(seed, exponent, n_jobs):
    rng = np.random.RandomState(seed)
    X = rng.randn(60, 3)
    expected = look_alikes(X, 4)
    order = rng.permutation(60)
    found = look_alikes(X[order], 4, n_jobs=n_jobs)
    np.testing.assert_array_equal(order[found], expected[order])
    np.testing.assert_array_equal(look_alikes(X * 10.0**exponent, 4), expected)
    np.testing.assert_array_equal(look_alikes(X + 1e6, 4), expected)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_many_items_in_many_tiles(digits, n_jobs):
    X = np.concatenate([digits, digits[:600] + 0.25])
    expected = nearest_by(pairwise_distances(X, metric="sqeuclidean"), 5)
    np.testing.assert_array_equal(look_alikes(X, 5, n_jobs=n_jobs), expected)


def test_tight_groups_far_from_each_other_are_resolved():
    # The square of 1e-9 is lost beside that of 1: products alone could not tell.
    rng = np.random.RandomState(0)
    X = np.repeat([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0]], 5, axis=0) + 1e-9 * rng.randn(15, 2)
    X = np.concatenate([X, rng.randn(30, 2) + 8])
    exact = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(look_alikes(X, 4), nearest_by(exact, 4))


def test_many_equal_items_are_the_look_alikes_of_each_other():
    X = np.random.RandomState(0).randn(200, 6)
    X[50:120] = X[50]
    found = look_alikes(X, 5)
    assert ((found[50:120] >= 50) & (found[50:120] < 120)).all()
    assert (found[50:120] != np.arange(50, 120)[:, None]).all()
    np.testing.assert_array_equal(found, look_alikes(X, 5, n_jobs=2))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "chi2", "geodesic", "local"])
def test_kernels_agree_with_their_matrix(digits, kernel):
    X = digits[:150]
    K = gram_matrix(X, kernel)
    D = np.maximum(K.diagonal()[:, None] + K.diagonal() - 2 * K, 0)
    found = look_alikes(X, 6, kernel=kernel)
    assert found_again(found, nearest_by(D, 6)) > 0.99
    by_matrix = look_alikes(K, 6, kernel="precomputed")
    assert found_again(found, by_matrix) > 0.99


def test_a_callable_and_a_list_of_kernels(digits):
    X = digits[:80]
    found = look_alikes(X, 3, kernel=lambda A, B: A @ B.T)
    np.testing.assert_array_equal(found, look_alikes(X, 3))
    both = look_alikes([X, np.arange(80.0)[:, None]], 3, kernel=["rbf", "linear"])
    assert both.shape == (80, 3)
    # The number in the second collection draws consecutive items together.
    apart = np.abs(both - np.arange(80)[:, None]).mean()
    assert apart < np.abs(found - np.arange(80)[:, None]).mean()


def test_texts_find_texts_of_the_same_words():
    texts = ["red green blue", "apples and pears", "green blue red", "pears and plums and apples"]
    assert look_alikes(texts, 1, kernel="text").ravel().tolist() == [2, 3, 0, 1]


def test_sparse_rows_are_compared_like_dense_ones(digits):
    X = digits[:300]
    np.testing.assert_array_equal(look_alikes(sparse.csr_matrix(X), 5), look_alikes(X, 5))


@pytest.mark.parametrize("most_covaried", [4096, 8])
def test_wide_items_are_found_by_their_components(monkeypatch, most_covaried):
    monkeypatch.setattr(_look_alikes, "MOST_PRODUCTS", 1)
    monkeypatch.setattr(_look_alikes, "LEAST_COMPONENTS", 16)
    monkeypatch.setattr(_look_alikes, "MOST_COVARIED", most_covaried)
    X = load_digits().data
    X = np.concatenate([X, X + np.random.RandomState(0).randn(*X.shape)], axis=1)
    expected = nearest_by(pairwise_distances(X), 8)
    found = look_alikes(X, 8, random_state=0)
    assert found_again(found, expected) > 0.97
    single = look_alikes(X.astype(np.float32).astype(np.float64), 8, random_state=0)
    np.testing.assert_array_equal(look_alikes(X.astype(np.float32), 8, random_state=0), single)
    few = look_alikes(sparse.csr_matrix(X), 8, random_state=0)
    assert found_again(few, expected) > 0.6, "without a second look at the true distances"


def test_one_item_far_out_does_not_hide_the_components_of_the_others(monkeypatch):
    monkeypatch.setattr(_look_alikes, "MOST_PRODUCTS", 1)
    monkeypatch.setattr(_look_alikes, "LEAST_COMPONENTS", 16)
    X = load_digits().data[:600]
    X[17] *= 1e12
    found = look_alikes(X, 8)
    others = np.delete(np.arange(600), 17)
    exact = nearest_by(pairwise_distances(X[others]), 8)
    assert found_again(found[others], others[exact]) > 0.95


def test_progress_grows_to_the_number_of_items(digits):
    seen = []
    look_alikes(digits, 2, on_progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (700, 700)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_an_interruption_leaves_no_thread_at_work(digits):
    def interrupt(done, total):
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        look_alikes(digits, 2, n_jobs=2, on_progress=interrupt)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "`k` must be at least 1, got 0"),
        ({"k": 2.5}, "`k` must be a whole number"),
        ({"kernel": None}, "`kernel` must be a name, a callable or a list of these"),
        ({"kernel": "cosine"}, "cosine"),
        ({"kernel": "text"}, "list of str"),
        ({"kernel": "rbf", "gamma": -1.0}, "`gamma` must be"),
        ({"n_jobs": 0}, "`n_jobs` must not be 0"),
        ({"on_progress": 3}, "`on_progress` must be a function or None"),
        ({"random_state": -1}, "`random_state` must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        look_alikes(np.eye(4), **arguments)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.nan], [2.0, 3.0]], "contains NaN"),
        (["some", "words"], 'kernel="text"'),
        ([1.0, 2.0], "must be 2-D"),
        (np.empty((0, 3)), "is empty"),
        (None, "X is None"),
        ([[1e9, 1.0], [1e9 + 1e-7, 1.0]], "the difference is rounding"),
    ],
)
def test_bad_items_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        look_alikes(X)


def test_too_many_neighbors_are_refused_before_they_are_allocated(monkeypatch):
    monkeypatch.setattr("unshuffle._core.parameters.available_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match="Choose a smaller `k`"):
        look_alikes(np.random.RandomState(0).randn(2000, 2), 1000)
