import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshuffle.preprocessing import NeighborhoodShape, _neighborhood_shape
from unshuffle.preprocessing._neighborhood_shape import neighborhood_shapes


def described(points, **options):
    return NeighborhoodShape(**{"weight": 1.0, **options}).fit_transform([points])[0]


def test_points_on_a_line_tell_its_direction():
    for angle in (0.0, 0.4, 2.0):
        line = np.arange(12.0)[:, None] * [np.cos(angle), np.sin(angle)]
        shape = described(line, n_neighbors=4)[:, 2:]
        doubled = np.array([np.cos(2 * angle), np.sin(2 * angle)]) / np.sqrt(2)
        np.testing.assert_allclose(shape, np.broadcast_to(doubled, shape.shape), atol=1e-9)


def test_neighbors_all_around_have_no_direction():
    angles = np.arange(6) * np.pi / 3
    ring = np.vstack([[0, 0], np.column_stack([np.cos(angles), np.sin(angles)])])
    np.testing.assert_allclose(described(ring, n_neighbors=7)[0, 2:], 0, atol=1e-12)


def test_neighbors_at_one_distance_share_the_last_places():
    cross = np.array([[0.0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
    np.testing.assert_allclose(described(cross, n_neighbors=3)[0, 2:], 0, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_rotating_a_set_keeps_the_inner_products_of_shapes(seed, d):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(15, d))
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    before = neighborhood_shapes(points, points, 5)
    after = neighborhood_shapes(3 * points @ rotation + 1, 3 * points @ rotation + 1, 5)
    assert before.shape == (15, d * (d + 1) // 2 - 1)
    np.testing.assert_allclose(before @ before.T, after @ after.T, atol=1e-8)


def test_a_naive_covariance_agrees():
    points = np.random.default_rng(0).normal(size=(20, 3))
    found = neighborhood_shapes(points, points, 6)
    for i in (0, 7, 19):
        nearest = np.argsort(np.sum((points - points[i]) ** 2, axis=1))[:6]
        C = np.cov(points[nearest].T)
        expected = C / np.trace(C) - np.eye(3) / 3
        assert found[i] @ found[i] == pytest.approx(np.sum(expected**2))


def test_order_inside_a_set_changes_no_digit():
    points = np.random.default_rng(0).integers(0, 5, size=(30, 2)).astype(float)
    order = np.random.default_rng(1).permutation(30)
    np.testing.assert_array_equal(described(points[order]), described(points)[order])


def test_equal_points_have_no_shape():
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(described(np.full((5, 2), 0.1))[:, 2:], 0)


def test_large_sets_are_described_in_blocks():
    points = np.random.default_rng(0).normal(size=(1100, 2))
    np.testing.assert_allclose(
        described(points)[:, 2:], neighborhood_shapes(points, points, 8), atol=1e-9
    )


def test_small_sets_use_all_points():
    points = np.random.default_rng(0).normal(size=(4, 2))
    np.testing.assert_array_equal(described(points), described(points, n_neighbors=4))


def test_one_neighbor_is_refused():
    with pytest.raises(ValueError, match="n_neighbors"):
        NeighborhoodShape(1).fit([np.eye(2)])


def test_large_sets_are_described_in_pieces(monkeypatch):
    bags = [np.random.default_rng(0).normal(size=(200, 2))]
    whole = NeighborhoodShape().fit_transform(bags)[0]
    monkeypatch.setattr(_neighborhood_shape, "MAX_NUMBERS", 3000)
    np.testing.assert_allclose(NeighborhoodShape().fit_transform(bags)[0], whole, atol=1e-13)
