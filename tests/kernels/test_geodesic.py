import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.sparse.csgraph import floyd_warshall
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

from unshuffle.kernels import (
    center,
    geodesic_distances,
    geodesic_kernel,
    gram_matrix,
    local_kernel,
)
from unshuffle.kernels._geodesic import step_lengths

points = arrays(
    np.float64,
    st.tuples(st.integers(3, 15), st.integers(1, 3)),
    elements=st.integers(0, 6).map(float),
)


def test_paths_follow_an_arc():
    angle = np.linspace(0, 1.5 * np.pi, 60)
    D = geodesic_distances(np.c_[np.cos(angle), np.sin(angle)], n_neighbors=2)
    assert D[0, -1] == pytest.approx(1.5 * np.pi, rel=1e-3)


@pytest.mark.parametrize("metric", ["euclidean", "correlation", "cosine", "manhattan"])
def test_paths_agree_with_a_plain_computation(metric):
    X = np.random.default_rng(0).normal(size=(40, 4))
    named = {"manhattan": "cityblock"}.get(metric, metric)
    graph = kneighbors_graph(X, 8, mode="distance", metric=named, include_self=False)
    expected = floyd_warshall(graph.maximum(graph.T))
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(geodesic_distances(X, n_neighbors=8, metric=metric), expected)
    np.testing.assert_allclose(step_lengths(X, metric), cdist(X, X, named), atol=1e-12)


def test_all_neighbors_give_straight_lines():
    X = np.random.default_rng(0).normal(size=(15, 3))
    np.testing.assert_allclose(geodesic_distances(X, n_neighbors=14), cdist(X, X), atol=1e-12)


def test_parts_are_joined_by_their_shortest_bridges():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [30.0], [31.0]])
    D = geodesic_distances(X, n_neighbors=1)
    np.testing.assert_allclose(D, np.abs(X - X.T))


def test_many_duplicates_do_not_cut_the_graph():
    X = np.repeat([[0.0], [1.0], [3.0]], 8, axis=0)
    D = geodesic_distances(X, n_neighbors=3)
    np.testing.assert_allclose(D, np.abs(X - X.T))
    assert geodesic_kernel(X, n_neighbors=3)[0, 1] == 1


@given(points, st.integers(1, 14), st.integers(0, 99))
def test_lengths_are_a_metric_whatever_the_order(X, n_neighbors, seed):
    n_neighbors = min(n_neighbors, len(X) - 1)
    D = geodesic_distances(X, n_neighbors=n_neighbors)
    assert np.isfinite(D).all()
    assert np.array_equal(D, D.T)
    assert (np.diag(D) == 0).all()
    straight = cdist(X, X)
    assert (straight <= D + 1e-9).all()
    assert (D[:, :, None] <= D[:, None, :] + D.T[None] + 1e-9).all()
    if n_neighbors == len(X) - 1:
        np.testing.assert_allclose(D, straight, atol=1e-9)


@given(st.integers(0, 999), st.integers(1, 9))
def test_reordering_rows_reorders_lengths(seed, n_neighbors):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 2))
    order = rng.permutation(10)
    D = geodesic_distances(X, n_neighbors=n_neighbors)
    shuffled = geodesic_distances(X[order], n_neighbors=n_neighbors)
    np.testing.assert_allclose(shuffled, D[np.ix_(order, order)], atol=1e-12)


def test_kernel_is_rbf_of_the_lengths_with_median_width():
    X = np.random.default_rng(0).normal(size=(30, 3))
    D = geodesic_distances(X) ** 2
    width = np.median(D[~np.eye(30, dtype=bool)])
    np.testing.assert_allclose(geodesic_kernel(X), np.exp(-D / width))
    np.testing.assert_allclose(geodesic_kernel(X, gamma=0.5), np.exp(-0.5 * D))
    np.testing.assert_allclose(gram_matrix(X, "geodesic"), geodesic_kernel(X))


def test_options_can_be_bound_and_passed_as_a_kernel():
    X = np.random.default_rng(0).normal(size=(20, 4))
    kernel = functools.partial(geodesic_kernel, metric="correlation", n_neighbors=4)
    np.testing.assert_allclose(gram_matrix(X, kernel), kernel(X))


def test_sparse_input_gives_the_dense_result():
    X = sparse.random(20, 12, density=0.5, format="csr", random_state=0)
    for metric in ("euclidean", "manhattan", "cosine"):
        np.testing.assert_allclose(
            geodesic_distances(X, metric=metric), geodesic_distances(X.toarray(), metric=metric)
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_neighbors": 6}, "from 1 to 5"),
        ({"n_neighbors": 2.0}, "whole number"),
        ({"metric": "best"}, "`metric` must be one of"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        geodesic_distances(np.arange(12.0).reshape(6, 2), **options)


def test_rows_without_direction_are_refused():
    X = np.array([[1.0, 2.0], [3.0, 3.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="Row 1 of X is constant"):
        geodesic_distances(X, metric="correlation")
    with pytest.raises(ValueError, match="Row 0 of X is zero"):
        geodesic_distances(X - X[0], metric="cosine")


def test_two_collections_and_equal_items_are_refused():
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match="items of one collection"):
        geodesic_kernel(X, X[:3])
    with pytest.raises(ValueError, match="All items of X are equal"):
        geodesic_kernel(np.ones((6, 2)))


@pytest.mark.parametrize("n_neighbors", [None, 30, 110])
def test_views_of_the_same_cells_agree(shared_data, n_neighbors):
    views = np.load(shared_data("snareseq.npz"))
    rna, atac = (
        center(geodesic_kernel(views[view], n_neighbors=n_neighbors, metric="correlation"))
        for view in ("rna", "atac")
    )
    assert np.vdot(rna, atac) > 0.75 * np.linalg.norm(rna) * np.linalg.norm(atac)


def test_local_widths_make_regions_of_different_density_alike():
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(40, 2))
    K = local_kernel(np.concatenate([dense, 100.0 * dense + 1e4]), n_neighbors=5)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(np.diag(K), 1.0)
    np.testing.assert_allclose(K[:40, :40], K[40:, 40:], rtol=1e-6)
    assert K[:40, 40:].max() < 1e-6


def test_local_widths_ignore_duplicates_and_the_unit():
    X = np.random.default_rng(1).normal(size=(15, 3))
    X[5:12] = X[4]
    K = local_kernel(X, n_neighbors=3)
    assert np.isfinite(K).all()
    assert K[4, 7] == 1.0
    np.testing.assert_allclose(local_kernel(X * 2.0**300, n_neighbors=3), K)


def test_local_kernel_refuses_a_second_collection_and_too_many_neighbors():
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match="compares the items of one collection"):
        local_kernel(X, X[:3])
    with pytest.raises(ValueError, match="`n_neighbors` must be from 1 to 5, got 6"):
        local_kernel(X, n_neighbors=6)
