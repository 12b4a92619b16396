"""Low-rank factors of every kind of collection."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from unshuffle._core import distances as _distances
from unshuffle._core import parameters as _parameters
from unshuffle.kernels import center, combined_gram, geodesic_kernel, rbf_kernel
from unshuffle.matching._low_rank import blocks as _blocks
from unshuffle.matching._low_rank import landmarks as _landmarks
from unshuffle.matching._low_rank.factors import compute_factors

VECTORS = ["linear", "rbf", "laplacian", "chi2", "geodesic", "local"]
WORDS = ["river", "vote", "budget", "energy", "fishing", "border", "school", "market", "road"]


def factors(X, kernel="rbf", *, gamma=None, weights=None, rank=1000, **options):
    return compute_factors(X, kernel, gamma=gamma, weights=weights, name="X", rank=rank, **options)


def kernel_of(found):
    scores = found.scores.astype(np.float64)
    return (scores * found.eigenvalues) @ scores.T


def positive_part(K):
    """Centered kernel without its negative eigenvalues."""
    values, vectors = np.linalg.eigh(center(K))
    return (vectors * np.maximum(values, 0)) @ vectors.T


def documents(n_documents):
    rng = np.random.default_rng(3)
    return [" ".join(rng.choice(WORDS, 4)) for _ in range(n_documents)]


def check_components(found):
    """Mean 0, variance 1, no correlation, and variances in decreasing order."""
    scores = found.scores.astype(np.float64)
    assert found.scores.dtype == np.float32
    assert found.scores.flags.c_contiguous
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(scores.T @ scores / len(scores), np.eye(scores.shape[1]), atol=1e-4)
    assert np.all(np.diff(found.eigenvalues) <= 0)
    assert found.eigenvalues[-1] > 0


@pytest.fixture
def X():
    return np.random.default_rng(0).random((120, 5)) * [3, 2, 1, 1, 0.5]


@pytest.mark.parametrize("kernel", [*VECTORS, lambda A, B: (A @ B.T + 1) ** 2])
def test_few_items_have_their_own_kernel(X, kernel):
    found = factors(X, kernel)
    expected = positive_part(combined_gram(X, kernel))
    np.testing.assert_allclose(kernel_of(found), expected, atol=1e-4 * np.abs(expected).max())
    check_components(found)


def test_separate_groups_are_joined_by_their_shortest_distances():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 2)) + shift for shift in ([0, 0], [30, 0], [0, 50])])
    expected = positive_part(combined_gram(X, "geodesic"))
    np.testing.assert_allclose(kernel_of(factors(X, "geodesic")), expected, atol=1e-4)


def test_repeated_rows_do_not_make_local_widths_zero(X):
    X = np.vstack([X, np.repeat(X[:3], 15, axis=0)])
    expected = positive_part(combined_gram(X, "local"))
    for rows in (X, sparse.csr_matrix(X)):
        np.testing.assert_allclose(kernel_of(factors(rows, "local")), expected, atol=1e-4)


def test_few_texts_have_their_own_kernel():
    texts = documents(100)
    expected = center(combined_gram(texts, "text"))
    np.testing.assert_allclose(kernel_of(factors(texts, "text")), expected, atol=1e-5)
    narrow = factors(texts, "text", n_landmarks=20)  # fewer landmarks than documents
    np.testing.assert_allclose(kernel_of(narrow), expected, atol=1e-5)


def test_rows_longer_than_the_landmarks_are_many():
    wide = np.random.default_rng(1).normal(size=(90, 300))
    expected = center(combined_gram(wide, "linear", center=True))
    for rows in (wide, sparse.csr_matrix(wide)):
        found = factors(rows, "linear", n_landmarks=100)
        np.testing.assert_allclose(kernel_of(found), expected, atol=1e-3)


def test_components_are_exact_up_to_the_rank(X):
    whole, found = factors(X), factors(X, rank=7)
    assert found.scores.shape == (120, 7)
    np.testing.assert_allclose(found.eigenvalues, whole.eigenvalues[:7], rtol=1e-4)
    signs = np.sign((found.scores * whole.scores[:, :7]).sum(axis=0))
    np.testing.assert_allclose(found.scores * signs, whole.scores[:, :7], atol=1e-3)
    check_components(found)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", VECTORS)
def test_landmarks_stand_for_all_items(kernel):
    X = np.random.default_rng(0).random((900, 3))
    found = factors(X, kernel, n_landmarks=300, rank=20)
    check_components(found)
    K = center(combined_gram(X, kernel))
    values, vectors = np.linalg.eigh(K)
    best = (vectors[:, -20:] * values[-20:]) @ vectors[:, -20:].T
    gap, least = np.linalg.norm(kernel_of(found) - K), np.linalg.norm(best - K)
    assert gap < 1.1 * least + 0.02 * np.linalg.norm(K)


def test_main_directions_of_many_columns_are_found_from_a_part_of_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 12)) * np.linspace(3, 1, 12) @ rng.normal(size=(12, 200))
    X += 0.1 * rng.normal(size=X.shape)
    expected = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1][:12]
    for rows in (X, sparse.csr_matrix(X)):
        found = factors(rows, "linear", n_landmarks=64, rank=12)
        np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-3)
        check_components(found)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "local", ["rbf", "linear"]])
def test_number_of_threads_changes_nothing(kernel, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK", 2**12)  # many blocks
    X = np.random.default_rng(0).normal(size=(700, 4))
    one, two = (factors(X, kernel, n_landmarks=50, rank=9, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.eigenvalues, two.eigenvalues)
    np.testing.assert_array_equal(one.points, two.points)
    assert one.spread == two.spread


@pytest.mark.parametrize("kernel", VECTORS)
def test_sparse_rows_give_the_factors_of_dense_ones(kernel):
    rng = np.random.default_rng(0)
    X = rng.random((300, 8)) * (rng.random((300, 8)) < 0.5)
    dense, thin = (
        factors(rows, kernel, n_landmarks=150, rank=12) for rows in (X, sparse.csr_matrix(X))
    )
    np.testing.assert_allclose(thin.eigenvalues, dense.eigenvalues, rtol=1e-3)
    expected = kernel_of(dense)
    np.testing.assert_allclose(kernel_of(thin), expected, atol=1e-3 * np.abs(expected).max())
    assert thin.spread == pytest.approx(dense.spread, rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_precision_and_layout_of_a_table_do_not_matter(dtype):
    X = np.random.default_rng(0).integers(0, 200, (400, 6)).astype(np.float64)
    expected = factors(X, n_landmarks=100, rank=8)
    for same in (X.astype(dtype), np.asfortranarray(X, dtype=dtype), X.tolist()):
        found = factors(same, n_landmarks=100, rank=8)
        np.testing.assert_array_equal(found.scores, expected.scores)
        np.testing.assert_array_equal(found.points, expected.points)


def test_several_kernels_are_summed_as_their_matrices(X):
    tables = [X, documents(120), X[:, :2]]
    kernels, weights = ["rbf", "text", "linear"], [1.0, 0.5, 2.0]
    found = factors(tables, kernels, weights=weights, gamma=[0.2, None, None])
    K = combined_gram(tables, kernels, weights=weights, gamma=[0.2, None, None], center=True)
    expected = center(K)
    np.testing.assert_allclose(kernel_of(found), expected, atol=1e-4 * np.abs(expected).max())
    check_components(found)
    both = factors(X, ["rbf", "linear"])
    np.testing.assert_allclose(
        kernel_of(both), center(combined_gram(X, ["rbf", "linear"])), atol=1e-5
    )


def test_matrix_in_a_file_is_read_by_landmarks(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 4))
    K = rbf_kernel(X) + 1e4  # a constant changes nothing
    expected = factors(K, "precomputed", n_landmarks=80, rank=10)
    assert np.corrcoef(kernel_of(expected).ravel(), center(K).ravel())[0, 1] > 0.95
    others = np.setdiff1d(np.arange(300), _blocks.draw(300, 80))
    K[others] = np.nan
    np.save(tmp_path / "kernel.npy", K)
    found = factors(
        np.load(tmp_path / "kernel.npy", mmap_mode="r"), "precomputed", n_landmarks=80, rank=10
    )
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("scale", [1e-120, 1e-20, 1e20, 1e120])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "geodesic", "local"])
def test_unit_of_the_columns_does_not_matter(X, kernel, scale):
    unit = scale**2 if kernel == "linear" else 1.0
    expected, found = factors(X, kernel, rank=5), factors(X * scale, kernel, rank=5)
    np.testing.assert_allclose(found.eigenvalues / unit, expected.eigenvalues, rtol=1e-3)
    assert np.isfinite(found.scores).all()
    assert np.isfinite(found.points).all()


def test_digits_far_from_the_origin_are_kept(X):
    expected = kernel_of(factors(X, rank=10))
    for moved in (X + 1e7, X - [1e9, 0, 0, 0, 0]):
        np.testing.assert_allclose(kernel_of(factors(moved, rank=10)), expected, atol=1e-4)


def test_far_groups_keep_their_inner_distances():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:60] += [3e4, 0, 0]
    expected = center(rbf_kernel(X, gamma=0.5))
    np.testing.assert_allclose(kernel_of(factors(X, gamma=0.5)), expected, atol=1e-3)


@pytest.mark.parametrize("gamma", [1e-7, 1e-3, 1e3])
def test_very_wide_and_narrow_kernels_keep_their_digits(X, gamma):
    expected = center(rbf_kernel(X, gamma=gamma))
    atol = 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(kernel_of(factors(X, gamma=gamma)), expected, atol=atol)


def test_points_are_the_vectors_of_narrow_tables(X):
    found = factors(X, rank=4)
    gaps = found.points.astype(np.float64) - X
    np.testing.assert_allclose(gaps, np.broadcast_to(gaps[0], X.shape), atol=1e-6)
    apart = ((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(120, 1)]
    assert found.spread == pytest.approx(np.median(apart), rel=1e-5)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_points_of_wide_tables_are_their_main_coordinates(container):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10)) @ rng.normal(size=(10, 90))
    found = factors(container(X), rank=4)
    assert found.points.shape[1] <= 64
    distances = ((X[:50, None] - X[:50]) ** 2).sum(axis=2)
    points = found.points[:50].astype(np.float64)
    np.testing.assert_allclose(
        ((points[:, None] - points) ** 2).sum(axis=2), distances, rtol=1e-3, atol=1e-2
    )


def test_points_of_other_kernels_are_components(X):
    found = factors(X, "laplacian", rank=100)
    assert found.points.shape == (120, 64)
    expected = found.scores[:, :64] * np.sqrt(found.eigenvalues[:64])
    np.testing.assert_allclose(found.points, expected, rtol=1e-5)


def test_function_of_two_rows_is_called_on_pairs(X):
    def overlap(x, y):
        return float(np.minimum(x, y).sum())

    def overlaps(A, B):
        return np.minimum(A[:, None], B).sum(axis=2)

    by_rows, by_tables = (
        factors(X, kernel, n_landmarks=30, rank=6) for kernel in (overlap, overlaps)
    )
    np.testing.assert_allclose(by_rows.scores, by_tables.scores, atol=1e-5)


def test_product_of_two_rows_is_not_taken_for_one_of_tables(X):
    X = np.hstack([X, X])
    found = factors(X, lambda x, y: x @ y, n_landmarks=10)
    expected = center(combined_gram(X, "linear"))
    np.testing.assert_allclose(kernel_of(found), expected, atol=1e-4 * np.abs(expected).max())


def test_kernel_of_one_whole_collection_is_refused_beyond_the_landmarks(X):
    kernel = partial(geodesic_kernel, metric="correlation")
    assert factors(X, kernel).scores.shape[0] == 120
    with pytest.raises(ValueError, match=r"two different parts of X.*more than 40 items"):
        factors(X, kernel, n_landmarks=40)


@pytest.mark.parametrize("kernel", [*VECTORS, lambda A, B: A @ B.T])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_mostly_equal_rows_have_factors(kernel, container, monkeypatch):
    monkeypatch.setattr(_landmarks, "WIDTH_SAMPLE", 30)
    X = np.zeros((400, 4))
    X[[50, 51, 350]] = [[1, 0, 0, 0], [1, 2, 0, 0], [0, 1, 3, 0]]
    found = factors(container(X), kernel, n_landmarks=20)
    assert found.scores.shape == (400, 3)
    assert len(np.unique(found.scores.round(3), axis=0)) == 4


@pytest.mark.parametrize("n_items", [2, 3, 5])
@pytest.mark.parametrize("kernel", VECTORS)
def test_very_few_items_have_factors(X, kernel, n_items):
    found = factors(X[:n_items], kernel)
    assert 1 <= found.scores.shape[1] <= n_items - 1
    check_components(found)


def with_entry(X, row, value):
    X = X.copy()
    X[row, 1] = value
    return X


def asymmetric(n_items):
    return np.random.default_rng(0).random((n_items, n_items))


@pytest.mark.parametrize(
    ("collection", "kernel", "message"),
    [
        (lambda X: with_entry(X, 7, np.nan), "rbf", r"X contains NaN \(in 1 of 120 .* row 7"),
        (lambda X: with_entry(X, 9, np.inf), "linear", "contains infinity .* row 9"),
        (lambda X: with_entry(X, 9, np.nan).astype(np.float32), "rbf", "NaN .* row 9"),
        (lambda X: np.ones_like(X), "rbf", "All items of X are equal"),
        (lambda X: np.ones_like(X), "linear", "All items of X are equally similar"),
        (lambda X: ["one text"] * 20, "text", "All items of X are equally similar"),
        (lambda X: with_entry(X, 3, 1e12), "linear", "Row 3 of X lies 1e.12 from the median"),
        (lambda X: with_entry(X, 3, 1e160), "rbf", "square is too large"),
        (lambda X: -X, "chi2", "never negative"),
        (lambda X: 1 + 1e-16 * X.round(), "rbf", "the difference is rounding"),
        (lambda X: X[0], "rbf", "must be 2-D"),
        (lambda X: X[:1], "rbf", "1 item"),
        (lambda X: X[:, :0], "rbf", "0 feature"),
        (lambda X: ["a", "b"], "rbf", "holds strings"),
        (lambda X: X, "text", "must be a list of str"),
        (lambda X: X, "cubic", "`kernel` must be one of"),
        (lambda X: X, "precomputed", "square kernel matrix"),
        (lambda X: asymmetric(40), "precomputed", "X is not symmetric: entry"),
        (lambda X: np.eye(30), "precomputed", "equally similar"),
        (lambda X: with_entry(np.eye(30), 4, np.nan), "precomputed", "NaN .* row 1"),
        (lambda X: X, lambda A, B: np.full((len(A), len(B)), np.nan), "NaN"),
        (lambda X: X, lambda A, B: A @ B.T @ np.ones(3), "failed on X"),
        (lambda X: [X, X[:5]], ["rbf", "linear"], "120 items and X.1. has 5"),
        (lambda X: [X, np.ones_like(X)], ["rbf", "linear"], "kernel 1, 'linear'.* is zero"),
        (lambda X: [X, X, X], ["rbf", "linear"], "list of 3 collections"),
        (lambda X: X, [], "empty list"),
    ],
)
def test_bad_input_is_refused(X, collection, kernel, message):
    with pytest.raises((ValueError, TypeError), match=message):
        factors(collection(X), kernel)


def test_asymmetry_is_reported_in_the_numbers_of_the_user():
    K = np.array(rbf_kernel(np.random.default_rng(0).normal(size=(300, 2))))
    K[np.triu_indices(300, 1)] += 0.5
    with pytest.raises(ValueError, match="not symmetric") as caught:
        factors(K, "precomputed", n_landmarks=40)
    i, j = (int(each) for each in str(caught.value).split("(")[1].split(")")[0].split(","))
    assert f"({i}, {j}) is {K[i, j]:.6g}" in str(caught.value)


def test_wrong_widths_and_weights_are_refused(X):
    with pytest.raises(ValueError, match="`gamma` must be"):
        factors(X, gamma=-1.0)
    with pytest.raises(ValueError, match="single kernel"):
        factors(X, weights=[1.0])
    with pytest.raises(ValueError, match="at least 0"):
        factors(X, ["rbf", "linear"], weights=[1.0, -1.0])
    with pytest.raises(ValueError, match="2 entries for 3"):
        factors(X, ["rbf", "linear", "local"], gamma=[1.0, 2.0])


def test_memory_is_checked_first(X, monkeypatch):
    monkeypatch.setattr(_parameters, "_available_at", lambda moment: 10_000)
    with pytest.raises(MemoryError, match="Rank 50 factors of 120 items"):
        factors(X, rank=50)


def test_table_in_a_file_is_not_copied(tmp_path, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK", 2**14)
    monkeypatch.setattr(_blocks, "N_TYPICAL", 100)
    monkeypatch.setattr(_distances, "WIDTH_SAMPLE", 100)
    X = np.random.default_rng(0).normal(size=(20_000, 100)).astype(np.float32)
    np.save(tmp_path / "table.npy", X)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    tracemalloc.start()
    found = factors(mapped, "linear", rank=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.scores.shape == (20_000, 2)
    assert peak < X.nbytes / 2
