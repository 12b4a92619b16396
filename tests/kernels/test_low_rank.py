import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from unshuffle._core import parameters as _parameters
from unshuffle.kernels import gram_matrix, nystroem_factors, pivoted_cholesky, rbf_kernel

VECTORS = ["linear", "rbf", "laplacian", "chi2"]


@pytest.fixture
def X():
    return np.random.default_rng(0).random((60, 3))


@pytest.mark.parametrize("kernel", [*VECTORS, lambda A, B: A @ B.T])
def test_full_rank_gives_the_matrix_back(X, kernel):
    K = gram_matrix(X, kernel)
    for F in (
        pivoted_cholesky(K, 60, tol=0),
        pivoted_cholesky(X, 60, kernel=kernel, tol=0),
        nystroem_factors(X, kernel, 60, random_state=0),
    ):
        np.testing.assert_allclose(F @ F.T, K, atol=1e-7)


def test_rank_of_the_data_suffices_for_the_linear_kernel(X):
    assert pivoted_cholesky(X, 50, kernel="linear").shape == (60, 3)
    F = nystroem_factors(X, "linear", 10, random_state=0)
    np.testing.assert_allclose(F @ F.T, X @ X.T, atol=1e-9)


@pytest.mark.parametrize("kernel", VECTORS)
def test_columns_on_the_fly_agree_with_the_whole_matrix(X, kernel):
    whole = pivoted_cholesky(gram_matrix(X, kernel), 8)
    np.testing.assert_allclose(pivoted_cholesky(X, 8, kernel=kernel), whole, atol=1e-9)
    np.testing.assert_allclose(
        pivoted_cholesky(sparse.csr_matrix(X), 8, kernel=kernel), whole, atol=1e-9
    )


def test_text_is_factored_without_its_matrix():
    documents = ["river vote", "river budget", "energy vote", "fishing"]
    F = pivoted_cholesky(documents, 4, kernel="text")
    np.testing.assert_allclose(F @ F.T, gram_matrix(documents, "text"), atol=1e-12)


@given(st.integers(0, 999), st.floats(0.1, 20))
def test_residual_is_positive_and_falls_with_rank(seed, gamma):
    X = np.random.default_rng(seed).normal(size=(25, 2))
    K = rbf_kernel(X, gamma=gamma)
    traces = []
    for rank in (1, 2, 4, 8, 16, 25):
        F = pivoted_cholesky(K, rank)
        residual = K - F @ F.T
        traces.append(np.trace(residual))
        values = np.linalg.eigvalsh(residual)
        assert values[0] > -1e-8
        # The trace bounds the error in any unitarily invariant norm.
        assert np.linalg.norm(residual) <= traces[-1] + 1e-8
    assert min(traces) >= -1e-10
    assert (np.diff(traces) <= 1e-10).all()


@given(st.integers(0, 999), st.integers(1, 25))
def test_nystroem_residual_is_positive(seed, rank):
    X = np.random.default_rng(seed).normal(size=(25, 2))
    F = nystroem_factors(X, "rbf", rank, random_state=seed)
    assert F.shape[1] <= rank
    assert np.linalg.eigvalsh(rbf_kernel(X) - F @ F.T)[0] > -1e-7


def test_larger_tolerance_stops_earlier(X):
    loose, tight = (pivoted_cholesky(X, 60, kernel="rbf", tol=tol) for tol in (0.1, 0.001))
    assert loose.shape[1] < tight.shape[1]
    assert 60 - np.sum(tight**2) <= 0.001 * 60
    np.testing.assert_allclose(tight[:, : loose.shape[1]], loose)


def test_duplicates_do_not_count_twice():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 5, axis=0)
    assert pivoted_cholesky(X, 20, kernel="rbf", tol=0).shape == (20, 4)
    F = nystroem_factors(X, "rbf", 20, random_state=0)
    np.testing.assert_allclose(F @ F.T, rbf_kernel(X), atol=1e-9)


def test_an_indefinite_matrix_stops_at_its_last_positive_pivot():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    F = pivoted_cholesky(K, 2)
    assert F.shape == (2, 1)
    assert pivoted_cholesky(-np.eye(3), 2).shape == (3, 0)


def test_width_of_a_large_collection_comes_from_a_sample():
    X = np.random.default_rng(0).normal(size=(2500, 2))
    F = pivoted_cholesky(X, 150, kernel="rbf", tol=1e-6)
    np.testing.assert_allclose(F[:300] @ F[:300].T, rbf_kernel(X)[:300, :300], atol=0.03)


def test_same_seed_same_factors(X):
    first, second = (nystroem_factors(X, "rbf", 9, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("factor", [pivoted_cholesky, nystroem_factors])
def test_bad_arguments_are_refused(X, factor, monkeypatch):
    with pytest.raises(ValueError, match="`rank` must be"):
        factor(X, kernel="rbf", rank=0)
    with pytest.raises(ValueError, match="`gamma` must be"):
        factor(X, kernel="rbf", rank=3, gamma=-1)
    with pytest.raises(ValueError, match="`kernel` must be one of"):
        factor(X, kernel="best", rank=3)
    with pytest.raises(ValueError, match="`kernel` must be one of"):
        factor(X, kernel=["rbf"], rank=3)
    with pytest.raises(ValueError, match="-1, but kernel='chi2'"):
        factor(X - X - 1, kernel="chi2", rank=3)
    with pytest.raises(ValueError, match="All items of X are equal"):
        factor(np.ones((5, 2)), kernel="rbf", rank=3)
    with pytest.raises(ValueError, match="NaN"):
        factor(X * np.nan, kernel="rbf", rank=3)
    monkeypatch.setattr(_parameters, "available_memory", lambda: 10)
    with pytest.raises(MemoryError, match="Choose a smaller rank"):
        factor(X, kernel="rbf", rank=3)


def test_bad_tolerance_is_refused(X):
    with pytest.raises(ValueError, match="`tol` must be"):
        pivoted_cholesky(X, 3, kernel="rbf", tol=-1)
