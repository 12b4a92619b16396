import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from unshuffle.metrics import _layout, distance_preservation_quality, neighbor_distance

SQUARE = np.array([[0.0], [1.0], [3.0], [7.0]])


def sorted_grid(X, rows, columns):
    """Rows by the first feature, columns by the second: a layout with some order in it."""
    by_first = np.argsort(X[:, 0], kind="stable").reshape(rows, columns)
    return np.take_along_axis(by_first, np.argsort(X[by_first, 1], axis=1), axis=1)


def quality_by_definition(X, places, p, period=None):
    """Running means row by row, over rows sorted one at a time."""
    steps = np.abs(places[:, None] - places)
    if period is not None:
        steps = np.minimum(steps, np.asarray(period) - steps)
    on_grid, apart = np.rint((steps**2).sum(axis=-1) * 1e6), cdist(X, X)
    n = len(X)
    by_grid = [apart[i][np.lexsort((apart[i], on_grid[i]))][1:] for i in range(n)]
    by_features = np.sort(apart, axis=1)[:, 1:]
    norms = []
    for ranked in (np.array(by_grid), by_features):
        running = (np.cumsum(ranked, axis=1) / np.arange(1, n)).mean(axis=0)
        gains = np.maximum(0, 1 - running / by_features.mean())
        norms.append((gains**p).sum() ** (1 / p))
    return norms[0] / norms[1]


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(("shape", "n_holes"), [((8, 9), 0), ((6, 13), 20), ((1, 20), 3)])
def test_quality_agrees_with_the_definition(shape, n_holes, wrap):
    rng = np.random.default_rng(0)
    n = shape[0] * shape[1]
    X = rng.normal(size=(n, 3))
    grid = sorted_grid(X, *shape)
    grid.flat[rng.permutation(n)[:n_holes]] = -1
    filled = grid >= 0
    expected = quality_by_definition(
        X[grid[filled]], np.argwhere(filled), 4, shape if wrap else None
    )
    assert distance_preservation_quality(X, grid, p=4, wrap=wrap) == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(("shape", "n_holes"), [((12, 12), 0), ((5, 20), 17), ((2, 15), 0)])
def test_quality_agrees_with_the_peer(peer, shape, n_holes, wrap, dtype):
    theirs = peer("vc_flas.metrics")
    rng = np.random.default_rng(1)
    n = shape[0] * shape[1]
    X = rng.random((n, 5)).astype(dtype)
    grid = sorted_grid(X, *shape)
    grid.flat[rng.permutation(n)[:n_holes]] = -1
    for p in (2, 16):
        expected = theirs.distance_preservation_quality(X[grid], grid >= 0, wrap, p)
        found = distance_preservation_quality(X, grid, p=p, wrap=wrap)
        assert found == pytest.approx(expected, abs=1e-6)


def test_quality_agrees_with_the_peer_on_photos(peer, shared_data):
    theirs = peer("vc_flas.metrics")
    X = np.load(shared_data("flickr320.npz"))["images"].reshape(320, -1).astype(np.float32)
    grid = sorted_grid(X.reshape(320, -1, 3).mean(axis=1), 16, 20)
    expected = theirs.distance_preservation_quality(X[grid], None, False, 16)
    assert distance_preservation_quality(X, grid) == pytest.approx(expected, abs=1e-5)


def test_quality_of_a_perfect_order_is_one():
    line = np.arange(30.0)[:, None]
    assert distance_preservation_quality(line, np.arange(30)[None]) == pytest.approx(1)
    turn = 2 * np.pi * np.arange(30) / 30
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    assert distance_preservation_quality(circle, np.arange(30)[None], wrap=True) == pytest.approx(
        1
    )
    assert distance_preservation_quality(circle, np.arange(30)[None]) < 0.999


def test_quality_on_points_equals_that_on_the_grid_they_form():
    X = np.random.default_rng(0).normal(size=(48, 3))
    grid = sorted_grid(X, 6, 8)
    grid[2, 3:5] = -1
    # Moved, turned and scaled: the tenths and sines are inexact, and ties must survive that.
    turn = np.array([[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]])
    points = np.argwhere(np.ones((6, 8))) @ turn * 0.1 + 1e3
    found = distance_preservation_quality(X, grid.ravel(), points=points)
    assert found == pytest.approx(distance_preservation_quality(X, grid))


def test_points_in_one_place_are_ranked_by_features():
    X = np.random.default_rng(0).normal(size=(12, 2))
    found = distance_preservation_quality(X, np.arange(12), points=np.ones((12, 2)))
    assert found == pytest.approx(1)


@pytest.mark.parametrize("n_rows", [60, 200])
def test_as_many_rows_as_items_are_all_rows(n_rows):
    X = np.random.default_rng(0).normal(size=(60, 3))
    grid = sorted_grid(X, 6, 10)
    found = distance_preservation_quality(X, grid, n_rows=n_rows, random_state=0)
    assert found == distance_preservation_quality(X, grid)


def test_sampled_rows_estimate_the_quality():
    X = np.random.default_rng(0).random((400, 3))
    grid = sorted_grid(X, 20, 20)
    draws = [
        distance_preservation_quality(X, grid, n_rows=40, random_state=seed) for seed in range(30)
    ]
    assert np.std(draws) > 0
    assert np.mean(draws) == pytest.approx(distance_preservation_quality(X, grid), abs=0.01)
    again = distance_preservation_quality(X, grid, n_rows=40, random_state=3)
    assert again == draws[3]


def test_blocks_and_many_rings_change_nothing(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    grid = sorted_grid(X, 5, 12)
    expected = [distance_preservation_quality(X, grid), neighbor_distance(X, grid)]
    monkeypatch.setattr(_layout, "_BLOCK", 130)
    monkeypatch.setattr(_layout, "_smallest_type", lambda _: np.uint32)
    found = [distance_preservation_quality(X, grid), neighbor_distance(X, grid)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("X", [np.eye(12), np.ones((12, 2)), np.arange(2.0)[:, None]])
def test_where_no_layout_is_better_the_quality_is_one(X):
    assert distance_preservation_quality(X, np.arange(len(X))[None]) == 1


@given(st.integers(0, 999), st.booleans(), st.floats(0.01, 100), st.floats(-100, 100))
def test_turning_the_grid_or_the_features_changes_nothing(seed, wrap, scale, shift):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(35, 3))
    grid = np.append(rng.permutation(35), np.full(7, -1))[rng.permutation(42)].reshape(6, 7)
    order = rng.permutation(35)
    relabelled = np.where(grid >= 0, np.argsort(order)[grid], -1)
    moved = scale * X @ np.linalg.qr(rng.normal(size=(3, 3)))[0] + shift
    value = distance_preservation_quality(X, grid, wrap=wrap)
    for same in (
        distance_preservation_quality(X, grid.T[::-1], wrap=wrap),
        distance_preservation_quality(X[order], relabelled, wrap=wrap),
        distance_preservation_quality(moved, grid, wrap=wrap),
        distance_preservation_quality(sparse.csr_matrix(X), grid, wrap=wrap),
    ):
        assert same == pytest.approx(value, abs=1e-8)
    apart = neighbor_distance(X, grid, wrap=wrap)
    assert neighbor_distance(X, grid.T[::-1], wrap=wrap) == pytest.approx(apart)
    assert neighbor_distance(X[order], relabelled, wrap=wrap) == pytest.approx(apart)
    assert neighbor_distance(moved, grid, wrap=wrap) == pytest.approx(scale * apart)
    assert neighbor_distance(sparse.csr_matrix(X), grid, wrap=wrap) == pytest.approx(apart)


def test_items_in_no_cell_do_not_count():
    X = np.random.default_rng(0).normal(size=(30, 3))
    grid = sorted_grid(X[:20], 4, 5)
    expected = distance_preservation_quality(X[:20], grid)
    assert distance_preservation_quality(X, grid) == pytest.approx(expected)


def test_neighbor_distance_counts_each_touching_pair_once():
    assert neighbor_distance(SQUARE, [[0, 1], [2, 3]]) == (1 + 4 + 3 + 6) / 4
    assert neighbor_distance(SQUARE, [[0, 1], [-1, 3]]) == (1 + 6) / 2
    assert neighbor_distance(SQUARE, [[0, 1, 2, 3]]) == (1 + 2 + 4) / 3
    assert neighbor_distance(SQUARE, [[0, 1, 2, 3]], wrap=True) == (1 + 2 + 4 + 7) / 4
    assert neighbor_distance(SQUARE, [[0, 1], [2, 3]], wrap=True) == (1 + 4 + 3 + 6) / 4


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("n_holes", [0, 9])
def test_neighbor_distance_agrees_with_the_peer(peer, wrap, n_holes):
    theirs = peer("vc_flas.metrics")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(42, 4)).astype(np.float32)
    grid = rng.permutation(42).reshape(6, 7)
    grid.flat[rng.permutation(42)[:n_holes]] = -1
    expected = theirs.mean_neighbor_distance(X[grid], grid >= 0, wrap)
    assert neighbor_distance(X, grid, wrap=wrap) == pytest.approx(expected)


def test_metrics_leave_their_input_as_it_was():
    X = np.random.default_rng(0).normal(size=(12, 2))
    grid = np.arange(12).reshape(3, 4)
    copies = X.copy(), grid.copy()
    distance_preservation_quality(X, grid)
    neighbor_distance(X, grid)
    np.testing.assert_array_equal(X, copies[0])
    np.testing.assert_array_equal(grid, copies[1])


@pytest.mark.parametrize("scale", [1e-300, 1e200, 1.7e308])
def test_quality_has_no_unit_and_distances_do(scale):
    X = np.random.default_rng(0).uniform(size=(12, 2))
    grid = np.arange(12).reshape(3, 4)
    expected = distance_preservation_quality(X, grid)
    assert distance_preservation_quality(X * scale, grid) == pytest.approx(expected)
    if scale > 1:
        with pytest.raises(ValueError, match="too large for a float"):
            neighbor_distance(X * scale, grid)


@pytest.mark.parametrize("metric", [distance_preservation_quality, neighbor_distance])
@pytest.mark.parametrize(
    ("X", "grid", "message"),
    [
        (SQUARE, [0, 1, 2, 3], "`grid` must be a 2-D array of whole numbers, got shape"),
        (SQUARE, [[0.0, 1.0]], "dtype float64"),
        (SQUARE, [[0, 4]], "items from 0 to 3, or -1 for empty, got values from 0 to 4"),
        (SQUARE, [[-2, 1]], "got values from -2 to 1"),
        (SQUARE, np.empty((0, 3), int), "`grid` has no cells"),
        (SQUARE * np.nan, [[0, 1]], "Input X contains NaN"),
        (SQUARE[:1], [[0]], "at least two items"),
    ],
)
def test_bad_layouts_are_refused(metric, X, grid, message):
    with pytest.raises(ValueError, match=message):
        metric(X, grid)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p": 0.5}, "`p` must be a finite number at least 1, got 0.5"),
        ({"n_rows": 0}, "`n_rows` must be at least 1, got 0"),
        ({"n_rows": 2.5}, "`n_rows` must be a whole number"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        distance_preservation_quality(SQUARE, [[0, 1], [2, 3]], **options)


def test_bad_points_are_refused():
    def quality(points, grid=(0, 1, 2, 3), **options):
        return distance_preservation_quality(SQUARE, grid, points=points, **options)

    corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    with pytest.raises(ValueError, match="`points` must be 4 pairs of finite numbers"):
        quality(corners[:3])
    with pytest.raises(ValueError, match="got NaN or infinity"):
        quality(np.full((4, 2), np.nan))
    with pytest.raises(ValueError, match="`grid` must be a 1-D array"):
        quality(corners, grid=[[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="`wrap` joins opposite edges"):
        quality(corners, wrap=True)


def test_layouts_without_pairs_are_refused():
    with pytest.raises(ValueError, match=r"`grid` holds 1 item\(s\)"):
        distance_preservation_quality(SQUARE, [[-1, 2]])
    with pytest.raises(ValueError, match="No two items of `grid` are side by side"):
        neighbor_distance(SQUARE, [[0, -1], [-1, 3]])


def test_quality_does_not_depend_on_the_numbers_of_the_items():
    X = np.random.RandomState(0).randn(30, 4)
    grid = np.random.RandomState(1).permutation(30).reshape(5, 6)
    quality = distance_preservation_quality(X, grid)
    order = np.random.RandomState(2).permutation(30)
    other = distance_preservation_quality(X[order], np.argsort(order)[grid])
    assert other == pytest.approx(quality, abs=1e-12)
    # As many cells as items, but some of these twice.
    twice = np.where(grid < 10, grid + 10, grid)
    copies = distance_preservation_quality(X[twice.ravel()], np.arange(30).reshape(5, 6))
    assert distance_preservation_quality(X, twice) == pytest.approx(copies, abs=1e-12)
