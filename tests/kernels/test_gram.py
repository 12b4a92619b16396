import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise

from unshuffle._core import parameters as _parameters
from unshuffle.kernels import (
    center,
    chi2_kernel,
    combined_gram,
    geodesic_kernel,
    gram_matrix,
    laplacian_kernel,
    linear_kernel,
    local_kernel,
    rbf_kernel,
    text_kernel,
    unit_norm,
)

NAMES = ["linear", "rbf", "laplacian", "chi2", "geodesic", "text", "precomputed"]


@pytest.fixture
def X():
    return np.random.default_rng(0).random((20, 5))


@pytest.fixture
def texts():
    words = ["river", "vote", "budget", "energy", "fishing"]
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(words, 4)) for _ in range(20)]


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("linear", linear_kernel),
        ("rbf", rbf_kernel),
        ("laplacian", laplacian_kernel),
        ("chi2", chi2_kernel),
        ("geodesic", geodesic_kernel),
        ("local", local_kernel),
    ],
)
def test_names_give_their_kernels(X, name, kernel):
    np.testing.assert_array_equal(gram_matrix(X, name), kernel(X))
    if name not in ("linear", "local"):
        np.testing.assert_array_equal(gram_matrix(X, name, gamma=0.3), kernel(X, gamma=0.3))


def test_text_and_precomputed(X, texts):
    np.testing.assert_array_equal(gram_matrix(texts, "text"), text_kernel(texts))
    np.testing.assert_array_equal(gram_matrix(np.array(texts), "text"), text_kernel(texts))
    np.testing.assert_array_equal(gram_matrix(pd.Series(texts), "text"), text_kernel(texts))
    K = rbf_kernel(X)
    np.testing.assert_array_equal(gram_matrix(K, "precomputed"), K)
    assert gram_matrix(K, "precomputed") is not K


@pytest.mark.parametrize("wrap", [list, sparse.csr_matrix, sparse.csr_array, pd.DataFrame])
def test_any_table_will_do(X, wrap):
    np.testing.assert_allclose(gram_matrix(wrap(X), "rbf"), rbf_kernel(X), atol=1e-12)


def test_whole_numbers_are_numbers():
    X = np.arange(12, dtype=np.uint8).reshape(4, 3)
    np.testing.assert_allclose(gram_matrix(X, "rbf"), rbf_kernel(X.astype(float)))


@pytest.mark.parametrize("shape", [(8, 5), (6, 6), (2, 2)])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (pairwise.polynomial_kernel, pairwise.polynomial_kernel),
        (lambda x, y: x @ y, linear_kernel),
        (lambda x, y: np.exp(-((x - y) ** 2).sum()), lambda X: rbf_kernel(X, gamma=1.0)),
        (lambda A, B: sparse.csr_matrix(A @ B.T), linear_kernel),
    ],
    ids=["matrix", "rows", "rows of scalars", "sparse"],
)
def test_functions_of_matrices_or_of_rows(shape, function, expected):
    X = np.random.default_rng(0).random(shape)
    np.testing.assert_allclose(gram_matrix(X, function), expected(X))


def test_functions_of_rows_see_dense_rows():
    X = sparse.random(7, 4, density=0.6, format="csr", random_state=0)
    np.testing.assert_allclose(gram_matrix(X, lambda x, y: x @ y), linear_kernel(X))


def test_a_function_that_is_neither_is_refused(X):
    with pytest.raises(ValueError, match="failed on X"):
        gram_matrix(X, lambda x, y: np.zeros(3))
    with pytest.raises(ValueError, match="failed on X: TypeError"):
        gram_matrix(X, lambda x: 1.0)
    with pytest.raises(ValueError, match="not symmetric"):
        gram_matrix(X, lambda A, B: np.triu(A @ B.T))
    with pytest.raises(ValueError, match="not symmetric"):
        gram_matrix(X[:5], lambda A, B: np.triu(A @ B.T))
    with pytest.raises(ValueError, match="NaN"):
        gram_matrix(X, lambda A, B: np.full((len(A), len(B)), np.nan))
    with pytest.raises(ValueError, match="NaN"):
        gram_matrix(X, lambda x, y: np.nan)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", "chi2", "geodesic", min])
def test_strings_need_the_text_kernel(texts, kernel):
    with pytest.raises(
        ValueError, match=r'second holds strings.*kernel="text".*kernel="precomputed"'
    ):
        gram_matrix(texts, kernel, name="second")


def test_numbers_do_not_suit_the_text_kernel(X):
    with pytest.raises(ValueError, match="X must be a list of str"):
        gram_matrix(X, "text")


@pytest.mark.parametrize("kernel", ["sigmoid", None, 3, ["rbf"]])
def test_unknown_kernels_are_refused_with_a_list(X, kernel):
    with pytest.raises(ValueError, match="`kernel` must be one of") as caught:
        gram_matrix(X, kernel)
    assert all(repr(name) in str(caught.value) for name in NAMES)


@pytest.mark.parametrize("kernel", [name for name in NAMES if name != "precomputed"] + [min])
def test_memory_is_checked_before_it_is_taken(monkeypatch, X, texts, kernel):
    monkeypatch.setattr(_parameters, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"kernel matrix of 20 by 20 items needs .* is free"):
        gram_matrix(texts if kernel == "text" else X, kernel)


def test_errors_use_the_name(X):
    with pytest.raises(ValueError, match="Input second contains NaN"):
        gram_matrix(X * np.nan, name="second")
    with pytest.raises(ValueError, match="All items of second are equal"):
        gram_matrix(np.ones((4, 3)), name="second")


def test_one_kernel_is_not_scaled(X):
    np.testing.assert_array_equal(combined_gram(X, "rbf"), rbf_kernel(X))


def test_several_kernels_are_summed_at_unit_centered_norm(X):
    K = combined_gram(X, ["rbf", "linear"])
    np.testing.assert_allclose(K, unit_norm(rbf_kernel(X)) + unit_norm(linear_kernel(X)))
    assert np.linalg.norm(center(combined_gram(X, ["linear"]))) == pytest.approx(1)


def test_each_kernel_may_have_its_collection(X, texts):
    K = combined_gram([X, texts], ["rbf", "text"])
    np.testing.assert_allclose(K, unit_norm(rbf_kernel(X)) + unit_norm(text_kernel(texts)))
    grams = [rbf_kernel(X), linear_kernel(X)]
    expected = unit_norm(grams[0]) + unit_norm(grams[1])
    for given_grams in (grams, tuple(grams), np.stack(grams)):
        K = combined_gram(given_grams, ["precomputed", "precomputed"])
        np.testing.assert_allclose(K, expected)
    for wrap in (list, sparse.csr_matrix, pd.DataFrame, np.ndarray.tolist):
        K = combined_gram([wrap(X), wrap(X)], ["rbf", "linear"])
        np.testing.assert_allclose(K, expected, atol=1e-12)


def test_rows_in_a_list_are_one_collection():
    rows = [[0.0, 1.0], [2.0, 5.0]]
    np.testing.assert_allclose(
        combined_gram(rows, ["rbf", "linear"]), combined_gram(np.array(rows), ["rbf", "linear"])
    )
    np.testing.assert_allclose(
        combined_gram([np.array(row) for row in rows], ["rbf", "linear"]),
        combined_gram(np.array(rows), ["rbf", "linear"]),
    )
    documents = ["river vote", "budget vote"]
    np.testing.assert_allclose(
        combined_gram(documents, ["text", "text"]), 2 * unit_norm(text_kernel(documents))
    )


def test_weights_and_widths_go_with_their_kernels(X):
    K = combined_gram(X, ["rbf", "laplacian"], gamma=[0.5, None], weights=[2.0, 0.5])
    expected = 2 * unit_norm(rbf_kernel(X, gamma=0.5)) + 0.5 * unit_norm(laplacian_kernel(X))
    np.testing.assert_allclose(K, expected)
    K = combined_gram(X, ["rbf", "laplacian"], gamma=0.5, weights=[0, 1])
    np.testing.assert_allclose(K, unit_norm(laplacian_kernel(X, gamma=0.5)))


@given(st.integers(0, 999), st.lists(st.floats(0.1, 5), min_size=3, max_size=3))
def test_reordering_reorders_any_sum(seed, weights):
    rng = np.random.default_rng(seed)
    X = rng.random((9, 3))
    order = rng.permutation(9)
    kernels = ["rbf", "chi2", "linear"]
    K = combined_gram(X, kernels, weights=weights)
    assert np.array_equal(K, K.T)
    shuffled = combined_gram(X[order], kernels, weights=weights)
    np.testing.assert_allclose(shuffled, K[np.ix_(order, order)], atol=1e-9)


@pytest.mark.parametrize(
    "weights",
    [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [[1.0, 1.0]]],
)
def test_bad_weights_are_refused(X, weights):
    with pytest.raises(ValueError, match="Kernel weights"):
        combined_gram(X, ["rbf", "linear"], weights=weights)


def test_weights_need_several_kernels(X):
    with pytest.raises(ValueError, match="for a single kernel"):
        combined_gram(X, "rbf", weights=[1.0])


def test_lengths_that_do_not_agree_are_refused(X):
    with pytest.raises(ValueError, match=r"y\[0\] has 20 items and y\[1\] has 19"):
        combined_gram([X, X[1:]], ["rbf", "rbf"], name="y")
    with pytest.raises(ValueError, match="X is a list of 3 collections, but there are 2 kernels"):
        combined_gram([X, X, X], ["rbf", "rbf"])
    with pytest.raises(ValueError, match="`gamma` has 3 entries"):
        combined_gram(X, ["rbf", "rbf"], gamma=[1, 2, 3])
    with pytest.raises(ValueError, match="empty list"):
        combined_gram(X, [])


def test_a_constant_kernel_is_named(X):
    constant = np.ones((20, 3))
    with pytest.raises(ValueError, match=r"X\[1\] \(kernel 1, 'linear'\) is zero after centering"):
        combined_gram([X, constant], ["rbf", "linear"])


def test_a_function_that_returns_nan_is_blamed_and_not_the_rows():
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match="it returns NaN or infinity, although all values of X"):
        gram_matrix(X, lambda a, b: np.full((len(a), len(b)), np.nan))
