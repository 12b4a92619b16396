import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.metrics import pairwise

from unshuffle._core.distances import mirror_upper, squared_distances
from unshuffle.kernels import (
    chi2_kernel,
    laplacian_kernel,
    linear_kernel,
    median_gamma,
    rbf_kernel,
)

KERNELS = [linear_kernel, rbf_kernel, laplacian_kernel, chi2_kernel]
WIDE = [rbf_kernel, laplacian_kernel, chi2_kernel]

vectors = arrays(
    np.float64,
    st.tuples(st.integers(3, 12), st.integers(1, 4)),
    elements=st.floats(0, 10, allow_subnormal=False).map(lambda v: round(v, 3)),
).filter(lambda X: np.ptp(X, axis=0).max() > 0.1)


@pytest.fixture
def X():
    return np.random.default_rng(0).random((30, 5))


@pytest.fixture
def Y():
    return np.random.default_rng(1).random((7, 5))


@pytest.mark.parametrize("both", [False, True])
def test_kernels_agree_with_scikit_learn(X, Y, both):
    Y = Y if both else None
    np.testing.assert_allclose(linear_kernel(X, Y), pairwise.linear_kernel(X, Y))
    for ours, theirs in [
        (rbf_kernel, pairwise.rbf_kernel),
        (laplacian_kernel, pairwise.laplacian_kernel),
        (chi2_kernel, pairwise.chi2_kernel),
    ]:
        np.testing.assert_allclose(ours(X, Y, gamma=0.7), theirs(X, Y, gamma=0.7), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("both", [False, True])
def test_sparse_input_gives_the_dense_result(kernel, both):
    X = sparse.random(20, 15, density=0.3, format="csr", random_state=0)
    Y = sparse.random(6, 15, density=0.3, format="csr", random_state=1) if both else None
    dense = kernel(X.toarray(), Y.toarray() if both else None)
    np.testing.assert_allclose(kernel(X, Y), dense, atol=1e-12)
    np.testing.assert_allclose(kernel(X, Y.toarray() if both else None), dense, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "distance"),
    [
        (rbf_kernel, lambda x, y: ((x - y) ** 2).sum()),
        (laplacian_kernel, lambda x, y: np.abs(x - y).sum()),
        (chi2_kernel, lambda x, y: ((x - y) ** 2 / (x + y)).sum()),
    ],
)
def test_default_width_is_one_over_the_median_off_the_diagonal(X, kernel, distance):
    D = np.array([[distance(x, y) for y in X] for x in X])
    off_diagonal = D[~np.eye(len(X), dtype=bool)]
    np.testing.assert_allclose(kernel(X), np.exp(-D / np.median(off_diagonal)), rtol=1e-10)


@pytest.mark.parametrize("kernel", WIDE)
def test_default_width_of_a_block_comes_from_the_first_collection(X, kernel):
    np.testing.assert_allclose(kernel(X, X[:4]), kernel(X)[:, :4], rtol=1e-12)


@pytest.mark.parametrize("kernel", WIDE)
def test_larger_gamma_is_narrower(X, kernel):
    off_diagonal = ~np.eye(len(X), dtype=bool)
    assert (kernel(X, gamma=2.0) < kernel(X, gamma=1.0))[off_diagonal].all()


@given(X=vectors, seed=st.integers(0, 99), index=st.integers(0, 3))
def test_reordering_rows_reorders_the_matrix(X, seed, index):
    order = np.random.default_rng(seed).permutation(len(X))
    K = KERNELS[index](X)
    np.testing.assert_allclose(KERNELS[index](X[order]), K[np.ix_(order, order)], atol=1e-9)


@given(X=vectors, shift=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3))
def test_rbf_with_median_width_ignores_shift_and_scale(X, shift, scale):
    np.testing.assert_allclose(rbf_kernel(scale * (X + shift)), rbf_kernel(X), atol=1e-6)


@given(X=vectors, index=st.integers(0, 3))
def test_matrix_is_exactly_symmetric_and_positive(X, index):
    K = KERNELS[index](X)
    assert K.dtype == np.float64
    assert np.array_equal(K, K.T)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-10 * values[-1]
    if KERNELS[index] is not linear_kernel:
        assert (np.diag(K) == 1).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_input_is_left_as_it_was(X, Y, kernel):
    before = X.copy(), Y.copy()
    kernel(X, Y)
    kernel(X)
    assert np.array_equal(X, before[0])
    assert np.array_equal(Y, before[1])


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_distances_survive_cancellation(offset):
    rng = np.random.default_rng(0)
    # Two tight clusters far apart: centering alone does not help inside a cluster.
    X = rng.integers(0, 8, (20, 3)) / 8 + offset
    X[10:] += 1e5
    exact = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(squared_distances(X), exact, rtol=1e-9)
    np.testing.assert_allclose(squared_distances(sparse.csr_matrix(X)), exact, rtol=1e-9)


def test_duplicates_are_exactly_equal():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(5, 40)) * 1e4, 3, axis=0)
    K = rbf_kernel(X)
    assert (K[0, :3] == 1).all()
    D = squared_distances(X, X[:4])
    assert D[0, 2] == 0
    assert D[0, 3] > 0


def test_float32_is_computed_in_double():
    X = np.random.default_rng(0).random((10, 3)).astype(np.float32)
    np.testing.assert_array_equal(rbf_kernel(X), rbf_kernel(X.astype(np.float64)))


def test_mirroring_covers_more_than_one_block():
    D = np.random.default_rng(0).random((1100, 1100))
    upper = np.triu(D)
    M = mirror_upper(D)
    assert np.array_equal(M, M.T)
    assert np.array_equal(np.triu(M), upper)


def test_many_duplicates_do_not_give_width_zero():
    X = np.zeros((20, 2))
    X[0] = [3.0, 4.0]
    assert rbf_kernel(X)[0, 1] == pytest.approx(np.exp(-1))
    assert rbf_kernel(X)[1, 2] == 1


def test_median_takes_flat_and_square_input():
    assert median_gamma([1.0, 2.0, 5.0]) == 0.5
    assert median_gamma(np.array([[0.0, 8.0], [8.0, 0.0]])) == 0.125
    assert median_gamma([0.0, 0.0, 0.0, 4.0]) == 0.25


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        ([0.0, 0.0], "All items of distances are equal"),
        ([[0.0, 0.0], [0.0, 0.0]], "equal"),
        ([[0.0]], "no distance"),
        ([], "no distance"),
        ([np.nan, 1.0], "finite"),
        ([np.inf, 1.0], "finite"),
        ([-1.0, 1.0], "at least 0"),
        (np.ones((2, 3)), "square"),
    ],
)
def test_median_refuses_what_has_no_width(distances, message):
    with pytest.raises(ValueError, match=message):
        median_gamma(distances)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "X",
    [
        [[1.0, np.nan], [1.0, 2.0]],
        [[1.0, np.inf], [1.0, 2.0]],
        np.empty((0, 3)),
        np.empty((3, 0)),
        [[1.0, 2.0]],
        [1.0, 2.0, 3.0],
        np.ones((2, 2, 2)),
        ["one", "two"],
        "one",
        np.ones((3, 2)) * 1j,
        [[1e200, 0.0], [0.0, 1.0]],
    ],
    ids=[
        "nan",
        "inf",
        "no rows",
        "no columns",
        "one",
        "1-D",
        "3-D",
        "text",
        "str",
        "complex",
        "big",
    ],
)
def test_kernels_refuse_bad_vectors(kernel, X):
    with pytest.raises(ValueError, match=r"."):
        kernel(X)


@pytest.mark.parametrize("kernel", WIDE)
def test_kernels_refuse_items_that_are_all_equal(kernel):
    with pytest.raises(ValueError, match="All items of X are equal"):
        kernel(np.ones((4, 2)))


@pytest.mark.parametrize("kernel", WIDE)
@pytest.mark.parametrize("gamma", [0, -1.0, np.nan, np.inf, "1", True])
def test_kernels_refuse_bad_gamma(X, kernel, gamma):
    with pytest.raises(ValueError, match="`gamma` must be a finite number above 0"):
        kernel(X, gamma=gamma)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_refuse_other_columns(X, kernel):
    with pytest.raises(ValueError, match="Y has 3 columns and X has 5"):
        kernel(X, X[:, :3])


def test_chi2_refuses_negative_features():
    with pytest.raises(ValueError, match=r"X holds -1, but kernel='chi2' compares amounts"):
        chi2_kernel([[1.0, -1.0], [0.0, 2.0]])


def test_huge_gamma_gives_zero_similarity(X):
    K = rbf_kernel(X, gamma=1e308)
    assert np.array_equal(K, np.eye(len(X)))
