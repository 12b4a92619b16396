"""Few items, many features, equal items, empty cells, and every way to pass the same numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from unshuffle import GridLayout
from unshuffle.metrics import distance_preservation_quality

QUALITIES = ["fast", "balanced", "best", "classic"]


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("shape", [None, (1, 1), (3, 4), np.eye(3, dtype=bool), [[0.5, 2.5]]])
def test_a_single_item_is_simply_placed(check_layout, quality, shape):
    layout = GridLayout(shape, quality=quality, random_state=0).fit([[1.0, 2.0]])
    assert (layout.grid_ == 0).sum() == 1
    assert layout.positions_.shape == (1, 2)
    assert layout.score_ == 1.0
    assert layout.n_iter_ > 0


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        ("rbf", [[3.0]]),
        ("geodesic", [[3.0]]),
        ("text", ["one document"]),
        ("precomputed", [[1.0]]),
        (["rbf", "text"], [np.ones((1, 2)), ["one document"]]),
        (lambda a, b: a @ b.T, [[3.0]]),
    ],
)
def test_a_single_item_needs_nothing_to_be_compared_with(kernel, X):
    layout = GridLayout((2, 2), kernel=kernel, random_state=0).fit(X)
    assert np.array_equal(np.sort(layout.grid_.ravel()), [-1, -1, -1, 0])
    assert layout.score_ == 1.0


def test_a_single_item_stays_where_it_is_frozen_and_others_may_follow():
    layout = GridLayout((2, 3), random_state=0).fit([[1.0, 2.0]], frozen=[(0, 4)])
    assert layout.grid_[1, 1] == 0
    layout.add([[1.0, 2.0], [3.0, 4.0]])
    assert layout.grid_[1, 1] == 0
    assert len(layout.positions_) == 3


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("n_items", [2, 3, 4])
@pytest.mark.parametrize("shape", [(2, 2), (1, 5), (9, 9)])
def test_very_few_items_are_placed(check_layout, colors, quality, n_items, shape):
    layout = GridLayout(shape, quality=quality, random_state=0).fit(colors(n_items))
    check_layout(layout, n_items)
    assert np.isfinite(layout.score_)


@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
@pytest.mark.parametrize("kind", ["rectangle", "torus", "mask", "points"])
def test_equal_items_are_placed_all_the_same(check_layout, quality, kind):
    shape = {"mask": np.tri(9, dtype=bool), "points": np.eye(40)[:, :2]}.get(kind, (6, 6))
    wrap = kind == "torus"
    layout = GridLayout(shape, wrap=wrap, quality=quality, random_state=0).fit(np.ones((36, 4)))
    check_layout(layout, 36, shape if kind == "mask" else None)
    assert layout.score_ == 1.0


def test_equal_items_give_the_paper_nothing_to_go_by():
    with pytest.raises(ValueError, match=r"All items of X are equal.*Check that the right"):
        GridLayout(quality="classic").fit(np.ones((9, 4)))


@pytest.mark.parametrize("quality", QUALITIES)
def test_copies_of_few_items_lie_together(check_layout, quality):
    X = np.repeat(np.eye(4), 16, axis=0)
    layout = GridLayout((8, 8), quality=quality, random_state=0).fit(X)
    check_layout(layout, 64)
    kind = layout.grid_ // 16
    alike = np.mean(np.concatenate([(np.diff(kind, axis=axis) == 0).ravel() for axis in (0, 1)]))
    assert alike > 0.7


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("n_features", [9, 17, 50, 1000])
def test_many_features_are_no_obstacle(check_layout, quality, n_features):
    X = np.random.default_rng(0).random((40, n_features))
    X[:20] += 1.0
    layout = GridLayout((2, 20), quality=quality, random_state=0).fit(X)
    check_layout(layout, 40)
    left = layout.positions_[:, 1] < 10
    assert max(left[:20].sum(), left[20:].sum()) >= 18


@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
def test_half_empty_boards_are_as_good_as_full_ones(colors, quality):
    X = colors(128)
    full = GridLayout((8, 16), quality=quality, random_state=0).fit(X).score_
    half = GridLayout((16, 16), quality=quality, random_state=0).fit(X).score_
    assert half > full - 0.03


@pytest.mark.parametrize("quality", ["fast", "balanced"])
def test_every_way_to_say_the_same_gives_the_same(colors, quality):
    X = np.round(255 * colors(30))
    plain = GridLayout(quality=quality, random_state=0).fit(X)
    others = {
        "list": X.tolist(),
        "integers": X.astype(np.uint8),
        "float32": X.astype(np.float32),
        "table": pd.DataFrame(X),
        "columns first": np.asfortranarray(X),
        "sparse": sparse.csr_matrix(X),
        "sparse array": sparse.csc_array(X),
        "read only": X.copy(),
    }
    others["read only"].flags.writeable = False
    for name, other in others.items():
        layout = GridLayout(quality=quality, random_state=0).fit(other)
        if name in ("float32", "columns first"):  # means are rounded otherwise
            assert layout.score_ == pytest.approx(plain.score_, abs=0.03)
        else:
            assert np.array_equal(layout.grid_, plain.grid_), name


def test_sparse_and_dense_features_give_layouts_as_good_as_each_other():
    S = sparse.random(300, 400, density=0.05, format="lil", random_state=0)
    S[:150, :40] = 1.0
    S = S.tocsr()
    one, two = (GridLayout(quality="fast", random_state=0).fit(X) for X in (S, S.toarray()))
    assert one.score_ == pytest.approx(two.score_, abs=0.03)
    dense = distance_preservation_quality(S.toarray(), one.grid_)
    assert one.score_ == pytest.approx(dense, abs=1e-6)


def test_sparse_rows_that_are_all_equal_are_placed(check_layout):
    check_layout(GridLayout(random_state=0).fit(sparse.csr_matrix((50, 200))), 50)


@pytest.mark.parametrize("largest", [1e-300, 1e300, 1.7e308])
def test_numbers_near_the_ends_of_the_scale_are_laid_out_as_others_are(colors, largest):
    X = colors(30)
    X[0, 0] = 1.0
    plain = GridLayout(random_state=0).fit(X)
    scaled = GridLayout(random_state=0).fit(X * largest)
    score = distance_preservation_quality(X, scaled.grid_)
    assert score == pytest.approx(plain.score_, abs=0.03)
    assert scaled.score_ == pytest.approx(score, abs=1e-9)


def test_single_precision_reaches_its_largest_numbers_too(colors):
    X = (colors(30) * 3.4e38).astype(np.float32)
    layout = GridLayout(random_state=0).fit(X)
    assert distance_preservation_quality(X / 1e38, layout.grid_) > 0.8


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_kernel_matrices_of_any_scale_are_taken(colors, scale):
    X = colors(36)
    plain = GridLayout(kernel="precomputed", random_state=0).fit(X @ X.T)
    scaled = GridLayout(kernel="precomputed", random_state=0).fit(scale * (X @ X.T))
    assert scaled.score_ == pytest.approx(plain.score_, abs=0.03)
    assert scaled.score_ > 0.8


def test_points_may_lie_anywhere_and_on_top_of_each_other(colors, check_layout):
    rng = np.random.default_rng(0)
    shapes = {
        "one far away": np.vstack([rng.random((30, 2)), [[1e9, 1e9]]]),
        "all in one place": np.zeros((31, 2)),
        "in pairs": np.repeat(rng.random((16, 2)), 2, axis=0),
        "on a line": np.column_stack([np.zeros(31), np.arange(31.0)]),
        "negative": -5 - rng.random((31, 2)),
        "tiny": 1e-200 * rng.random((31, 2)),
    }
    for shape in shapes.values():
        layout = GridLayout(shape, quality="fast", random_state=0).fit(colors(30))
        check_layout(layout, 30)


def test_moving_scaling_and_turning_points_keeps_the_layout_as_good(colors):
    points = np.random.default_rng(0).random((150, 2))
    plain = GridLayout(points, random_state=0).fit(colors(150)).score_
    for other in (1024.0 * points, points - 7.0, points[:, ::-1], -points):
        layout = GridLayout(other, random_state=0).fit(colors(150))
        assert layout.score_ == pytest.approx(plain, abs=0.04)


def test_long_thin_boards_of_several_tiles_are_filled(colors, check_layout):
    for shape in ((2, 300), (1, 500), (700, 1)):
        for wrap in (False, True):
            layout = GridLayout(shape, wrap=wrap, quality="fast", random_state=0)
            check_layout(layout.fit(colors(shape[0] * shape[1] - 3)), shape[0] * shape[1] - 3)


def test_rows_and_columns_may_be_an_array(colors):
    assert GridLayout(np.array([3, 4])).fit(colors(12)).grid_.shape == (3, 4)
