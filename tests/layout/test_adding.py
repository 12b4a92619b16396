import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from unshuffle import GridLayout

QUALITIES = ["fast", "balanced", "best", "classic"]
TEXT = ["red apple pie", "green apple pie", "old steam engine", "new steam engine", "apple"]


def assert_stayed(layout, grid):
    assert np.array_equal(layout.grid_[grid >= 0], grid[grid >= 0])


@pytest.mark.parametrize("quality", QUALITIES)
def test_old_items_stay_and_new_ones_land_near_their_likes(colors, check_layout, quality):
    X = colors(110)
    layout = GridLayout((12, 12), quality=quality, random_state=0).fit(X)
    old, originals = layout.grid_.copy(), np.random.default_rng(1).permutation(110)[:20]
    assert layout.add(X[originals]) is layout
    check_layout(layout, 130)
    assert_stayed(layout, old)
    there, landed = layout.positions_[originals], layout.positions_[110:]
    distance = np.linalg.norm(there[:, None] - landed, axis=-1)
    assert np.trace(distance) / 20 < 0.65 * distance.mean()


def test_a_copy_takes_the_place_beside_its_original_where_that_is_empty():
    mask = np.ones((3, 9), dtype=bool)
    X = np.arange(24.0)[:, None]
    cells = np.delete(np.arange(27), [1, 13, 25])
    frozen = np.column_stack([np.arange(24), cells])
    layout = GridLayout(mask, random_state=0).fit(X, frozen=frozen)
    new = X[layout.grid_.ravel()[[24, 12, 0]]]
    layout.add(new)
    assert layout.grid_.ravel()[[25, 13, 1]].tolist() == [24, 25, 26]


@pytest.mark.parametrize("quality", ["fast", "balanced", "classic"])
@pytest.mark.parametrize("kind", ["torus", "mask", "points"])
def test_items_can_be_added_to_any_shape_again_and_again(colors, check_layout, quality, kind):
    mask = np.random.default_rng(0).random((9, 9)) < 0.7
    points = np.random.default_rng(0).random((40, 2))
    shape = {"torus": (6, 7), "mask": mask, "points": points}[kind]
    layout = GridLayout(shape, wrap=kind == "torus", quality=quality, random_state=0)
    layout.fit(colors(25))
    for n_items in (26, 32, 40):
        old = layout.grid_.copy()
        layout.add(colors(n_items - len(layout.positions_), seed=n_items))
        check_layout(layout, n_items, mask if kind == "mask" else None)
        assert_stayed(layout, old)


def test_what_was_added_is_scored_and_arranged(colors):
    layout = GridLayout((6, 6), random_state=0).fit(colors(30))
    before = layout.score_
    layout.add(colors(6, seed=1))
    assert layout.score_ != before
    assert layout.arrange(np.arange(36)).min() == 0


def test_documents_can_be_added_one_at_a_time(check_layout):
    layout = GridLayout((2, 4), kernel="text", random_state=0).fit(TEXT)
    old = layout.grid_.copy()
    layout.add(["a steam engine"]).add(np.array(["pear pie", "old apple"]))
    check_layout(layout, 8)
    assert_stayed(layout, old)


@pytest.mark.parametrize("quality", ["balanced", "classic"])
def test_a_larger_kernel_matrix_adds_its_last_items(colors, check_layout, quality):
    X = colors(30)
    K = X @ X.T
    layout = GridLayout((5, 6), kernel="precomputed", quality=quality, random_state=0)
    old = layout.fit(K[:20, :20]).grid_.copy()
    check_layout(layout.add(K), 30)
    assert_stayed(layout, old)


@pytest.mark.parametrize("old", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("new", [np.asarray, sparse.csr_array, np.float32, np.ndarray.tolist])
def test_kinds_of_input_may_be_mixed(colors, check_layout, old, new):
    layout = GridLayout((5, 5), random_state=0).fit(old(colors(20)))
    grid = layout.grid_.copy()
    check_layout(layout.add(new(colors(3, seed=1))), 23)
    assert_stayed(layout, grid)
    assert 0 < layout.score_ <= 1.1


@pytest.mark.parametrize("kernel", ["rbf", lambda a, b: a @ b.T, ["rbf", "linear"]])
def test_items_can_be_added_whatever_compares_them(colors, check_layout, kernel):
    layout = GridLayout((5, 5), kernel=kernel, random_state=0).fit(colors(20).tolist())
    grid = layout.grid_.copy()
    check_layout(layout.add(colors(3, seed=1)), 23)
    assert_stayed(layout, grid)


def test_several_descriptions_are_added_together(colors, check_layout):
    X, K = colors(8), colors(8, seed=1) @ colors(8, seed=1).T
    kernels = ["rbf", "text", "precomputed"]
    words = [*TEXT, "pear", "apple pear", "steam pie"]
    layout = GridLayout((3, 3), kernel=kernels, random_state=0).fit([X[:5], words[:5], K[:5, :5]])
    grid = layout.grid_.copy()
    check_layout(layout.add([X[5:], words[5:], K]), 8)
    assert_stayed(layout, grid)
    with pytest.raises(ValueError, match="list of 2 collections, but there are 3 kernels"):
        layout.add([X[5:], words[5:]])


def test_columns_with_names_must_keep_them(colors, check_layout):
    table = pd.DataFrame(colors(20), columns=["red", "green", "blue"])
    layout = GridLayout((5, 5), random_state=0).fit(table)
    check_layout(layout.add(table[:3]), 23)
    with pytest.raises(ValueError, match="feature names should match"):
        layout.add(table[["blue", "green", "red"]])
    check_layout(layout, 23)


BAD_ADDITIONS = {
    "too many": (np.ones((6, 3)), r"6 new items do not fit into the 5 empty cells.*Fit"),
    "columns": (np.ones((2, 4)), "X has 4 columns, but the fitted items have 3.*same"),
    "none": (np.ones((0, 3)), "X is empty: found 0"),
    "nan": (np.full((1, 3), np.nan), "contains NaN.*Drop these rows"),
    "one row": (np.ones(3), "must be 2-D, got 1 dimension"),
    "text": (["a", "b"], "[Tt]ext|strings"),
}


@pytest.mark.parametrize("name", BAD_ADDITIONS)
def test_what_cannot_be_added_is_refused_and_nothing_changes(colors, name):
    X, message = BAD_ADDITIONS[name]
    layout = GridLayout((5, 5), random_state=0).fit(colors(20))
    grid, score = layout.grid_.copy(), layout.score_
    with pytest.raises(ValueError, match=message):
        layout.add(X)
    assert np.array_equal(layout.grid_, grid)
    assert layout.score_ == score


@pytest.mark.parametrize(
    ("X", "message"), [("pie", "X is one string"), ([3], "item 0 is a int"), ([], "is empty")]
)
def test_documents_that_are_none_are_refused(X, message):
    layout = GridLayout((3, 4), kernel="text", random_state=0).fit(TEXT)
    with pytest.raises(ValueError, match=message):
        layout.add(X)


def test_a_smaller_kernel_matrix_is_refused(colors):
    K = colors(9) @ colors(9).T
    layout = GridLayout((4, 4), kernel="precomputed", random_state=0).fit(K)
    with pytest.raises(ValueError, match=r"no more items than are laid out.*fitted ones first"):
        layout.add(K)
    with pytest.raises(ValueError, match=r"fewer items than are laid out.*fitted ones first"):
        layout.add(K[:3, :3])


def test_nothing_can_be_added_or_arranged_before_a_fit(colors):
    with pytest.raises(NotFittedError):
        GridLayout().add(colors(3))
    with pytest.raises(NotFittedError):
        GridLayout().arrange(colors(3))


def test_values_of_other_items_are_refused(colors):
    layout = GridLayout((4, 4), random_state=0).fit(colors(10))
    with pytest.raises(ValueError, match="`values` has 11 items; the fitted one has 10"):
        layout.arrange(np.arange(11))


def test_what_fills_empty_cells_is_not_cut_to_the_type_of_the_values(colors):
    layout = GridLayout((3, 4), random_state=0).fit(colors(10))
    assert np.isnan(layout.arrange(np.arange(10), fill=np.nan)).sum() == 2
    assert (layout.arrange(np.arange(10), fill=0.5) == 0.5).sum() == 2
    assert (layout.arrange(np.array(["a"] * 10), fill="none") == "none").sum() == 2
    assert (layout.arrange(np.array(["a"] * 10)) == "").sum() == 2
    assert layout.arrange(np.arange(10, dtype=np.uint8), fill=255).dtype == np.uint8


def test_anything_can_be_arranged(colors):
    layout = GridLayout((3, 4), random_state=0).fit(colors(10))
    names = np.array([f"item {i}" for i in range(10)])
    arranged = layout.arrange(names, fill="")
    assert arranged.shape == (3, 4)
    assert set(arranged.ravel()) == {*names, ""}
    pictures = np.random.default_rng(0).integers(0, 256, (10, 2, 5, 3), dtype=np.uint8)
    wall = layout.arrange(pictures, fill=255)
    assert wall.shape == (3, 4, 2, 5, 3)
    assert wall.dtype == np.uint8
    row, column = layout.positions_[7]
    assert np.array_equal(wall[row, column], pictures[7])
    assert np.all(wall[layout.grid_ == -1] == 255)
