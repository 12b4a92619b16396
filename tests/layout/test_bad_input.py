"""One clear error for each kind of bad input: what was wrong, what arrived, what to do."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from unshuffle import GridLayout

X = np.random.default_rng(0).random((6, 3))
TEXT = ["one red apple", "two red pears", "three blue plums"]
HOLE = np.ones((3, 4), dtype=bool)
HOLE[1, 2] = False
GRAM = {"kernel": "precomputed"}
TWO = {"kernel": ["rbf", "linear"]}


def with_entry(array, value):
    array = array.copy()
    array[2, 1] = value
    return array


SHAPES = {
    "no row": ((0, 5), r"`shape` has no cell: it is 0 x 5. Give at least one row"),
    "negative": ((3, -2), r"`shape` has no cell: it is 3 x -2. Give at least one row"),
    "float sizes": ((3.0, 4.0), r"must say where the cells are, got an array of shape \(2,\)"),
    "half sizes": ((2.5, 4), r"got an array of shape \(2,\) and dtype float64. Give \(rows"),
    "three numbers": ((2, 3, 4), r"got an array of shape \(3,\).*Give \(rows, columns\)"),
    "one number in a list": ([6], r"got an array of shape \(1,\).*Give \(rows, columns\)"),
    "words": (["a", "b"], r"got an array of shape \(2,\) and dtype <U1.*Give \(rows"),
    "mask of numbers": (np.ones((4, 4), dtype=int), r"shape \(4, 4\) and dtype int64.*boolean"),
    "ragged": ([[1, 2], [3]], r"`shape` is not understood: .*Give \(rows, columns\)"),
    "two booleans": ((True, True), r"a mask with 1 dimension\(s\), got shape \(2,\)"),
    "flat mask": (np.ones(6, dtype=bool), r"a mask with 1 dimension\(s\), got shape \(6,\)"),
    "deep mask": (np.ones((2, 2, 2), dtype=bool), r"a mask with 3 dimension\(s\)"),
    "closed mask": (np.zeros((3, 4), dtype=bool), r"a mask of 3 x 4 without a single cell. Set"),
    "no points": (np.empty((0, 2)), r"`shape` holds no point. Give"),
    "nan points": (
        np.array([[0, 0], [1, np.nan], [np.inf, 2]]),
        r"NaN or infinity \(in 2 of 3 points, the first is point 1\). Drop these points",
    ),
    "huge points": (1e200 * np.eye(8)[:, :2], r"`shape` holds 1e\+200, whose square is too large"),
    "too small": ((2, 2), r"6 items do not fit into the 4 cells of a 2 x 2 rectangle.*larger"),
    "mask too small": (np.eye(5, dtype=bool), r"6 items do not fit into the 5 cells of a 5 x 5 m"),
    "points too few": (np.eye(5)[:, :2], r"the 5 cells of `shape` \(5 points\). Give a larger"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_cannot_be_filled_are_refused(name):
    shape, message = SHAPES[name]
    with pytest.raises(ValueError, match=message):
        GridLayout(shape).fit(X)


def test_more_cells_than_memory_holds_are_refused_before_they_are_taken():
    with pytest.raises(MemoryError, match=r"x 1,000,000 cells needs 80,000.0 GB; .* Give"):
        GridLayout((10**6, 10**6)).fit(X)


@pytest.mark.parametrize("values", [None, 3.5])
def test_a_single_value_is_not_arranged_among_several_items(values):
    with pytest.raises(ValueError, match="`values` has 1 items; the fitted one has 6"):
        GridLayout(random_state=0).fit(X).arrange(values)


def test_points_do_not_wrap():
    with pytest.raises(ValueError, match="wrap"):
        GridLayout(np.eye(8)[:, :2], wrap=True).fit(X)


COLLECTIONS = {
    "nan": (with_entry(X, np.nan), {}, r"X contains NaN \(in 1 of 6 rows.*row 2\). Drop"),
    "inf": (with_entry(X, np.inf), {}, r"X contains infinity .*row 2\). Drop these rows"),
    "sparse nan": (sparse.csr_array(with_entry(X, np.nan)), {}, r"X contains NaN .*row 2\)"),
    "missing value": (pd.DataFrame({"a": [1.0, None, 3.0]}), {}, r"X contains NaN .*row 1\)"),
    "no items": (np.empty((0, 3)), {}, "X is empty: found 0"),
    "no columns": (np.empty((6, 0)), {}, "minimum of 1 is required"),
    "empty list": ([], {}, "X is empty"),
    "1-D": (X[0], {}, "must be 2-D, got 1 dimension"),
    "number": (3.0, {}, "must be 2-D, got 0 dimension"),
    "None": (None, {}, "X is None. Pass one row"),
    "complex": (X + 1j, {}, "Complex data not supported"),
    "words": (
        TEXT,
        {"kernel": "linear"},
        "X holds strings, but kernel='linear' compares numbers. Pass kernel=",
    ),
    "one string": ("apple", {}, "X is one string, 'apple'. Pass a list .*unshuffle layout"),
    "one path": (Path("a.csv"), {}, "X is one path, 'a.csv'.*read it first"),
    "column of words": (pd.DataFrame({"a": [1, 2], "b": list("uv")}), {}, "X holds text among"),
    "numbers as text": (X, {"kernel": "text"}, "must be a list of str"),
    "None as text": (None, {"kernel": "text"}, "must be a list of str"),
    "string as text": ("apple", {"kernel": "text"}, "X is one string, .* Pass a list"),
    "no documents": ([], {"kernel": "text"}, "X is empty: found 0 documents"),
    "no words": (["", "!"], {"kernel": "text"}, "hold no word"),
    "negative amounts": (-X, {"kernel": "chi2"}, "never negative"),
    "oblong matrix": (X, GRAM, r"must be a square kernel matrix, got shape \(6, 3\)"),
    "lopsided matrix": (np.tri(4), GRAM, "is not symmetric"),
    "nan matrix": (np.full((3, 3), np.nan), GRAM, "contains NaN"),
    "unknown kernel": (X, {"kernel": "rfb"}, "one of 'linear'.*Did you mean 'rbf'"),
    "no kernel": (X, {"kernel": []}, "`kernel` is an empty list"),
    "three for two": ([X, X, X], TWO, "a list of 3 collections, but there are 2 kernels"),
    "uneven": ([X, X[:4]], TWO, r"X\[0\] has 6 items and X\[1\] has 4.*describe the same item"),
    "nan in one": ([X, with_entry(X, np.nan)], TWO, r"X\[1\] contains NaN"),
    "two widths": (X, {"kernel": "rbf", "gamma": [1.0, 2.0]}, "gamma"),
    "three widths": (X, {**TWO, "gamma": [1.0, 2.0, 3.0]}, "3 entries for 2 kernel"),
}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_items_that_cannot_be_compared_are_refused(name):
    collection, options, message = COLLECTIONS[name]
    with pytest.raises((ValueError, TypeError), match=message):
        GridLayout(**options).fit(collection)


FROZEN = {
    "one pair": (
        [1, 2],
        {},
        r"`frozen` must have shape \(n_frozen, 2\), got \(2,\). Give one row",
    ),
    "triples": ([[1, 2, 3]], {}, r"shape \(n_frozen, 2\), got \(1, 3\). Give one row"),
    "ragged": ([[1, 2], [3]], {}, "rows of different lengths"),
    "halves": ([[0.5, 1.0]], {}, "must hold whole numbers, got dtype float64"),
    "words": ([["a", "b"]], {}, "must hold whole numbers"),
    "item too large": ([[6, 0]], {}, r"names item 6 of X \(row 0\), which has 6 items"),
    "negative item": ([[-1, 0]], {}, r"names item -1 of X \(row 0\)"),
    "cell too large": (
        [[0, 12]],
        {},
        r"names cell 12 of the layout \(row 0\), which has 12 cells",
    ),
    "item twice": ([[1, 0], [2, 1], [1, 2]], {}, r"repeats item 1 of X \(rows 0 and 2\)"),
    "cell twice": ([[1, 4], [2, 4]], {}, r"repeats cell 4 of the layout \(rows 0 and 1\)"),
    "outside the mask": (
        [[5, 6]],
        {"shape": HOLE},
        r"item 5 into cell 6 \(row 1, column 2\), which is outside the mask. Choose a cell",
    ),
}


@pytest.mark.parametrize("name", FROZEN)
def test_frozen_pairs_that_cannot_be_kept_are_refused(name):
    frozen, options, message = FROZEN[name]
    with pytest.raises(ValueError, match=message):
        GridLayout(**{"shape": (3, 4), **options}).fit(X, frozen=frozen)


@pytest.mark.parametrize("frozen", [None, [], np.empty((0, 2)), [[5.0, 11.0]]])
def test_no_frozen_pairs_and_whole_floats_are_taken(frozen, check_layout):
    check_layout(GridLayout((3, 4), random_state=0).fit(X, frozen=frozen), 6)


PARAMETERS = {
    "shape": ["4x4", 16, "circle"],
    "wrap": ["yes", 2, None],
    "quality": ["Best", "slow", None, 3],
    "gamma": [0, -1.0, "scale"],
    "random_state": ["seed", -1, 0.5],
    "n_jobs": [1.5, "all"],
    "callback": ["print", 3],
    "kernel": [3, {"rbf"}],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in PARAMETERS for value in PARAMETERS[name]]
)
def test_parameters_of_the_wrong_kind_are_refused_by_fit_and_named(name, value):
    layout = GridLayout(**{name: value})
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        layout.fit(X)


@pytest.mark.parametrize(
    ("shape", "usual"),
    [("5x4", r"\(5, 4\)"), ("5, 4", r"\(5, 4\)"), (20, r"\(4, 5\)"), (np.int64(6), r"\(2, 3\)")],
)
def test_a_shape_in_another_form_is_answered_by_the_usual_one(shape, usual):
    with pytest.raises(ValueError, match=rf"must be \(rows, columns\), such as {usual}, "):
        GridLayout(shape=shape).fit(X)


def test_a_fit_that_fails_leaves_the_last_one(check_layout):
    layout = GridLayout(random_state=0).fit(X)
    grid, score = layout.grid_.copy(), layout.score_
    layout.shape = (1, 2)
    with pytest.raises(ValueError, match="do not fit"):
        layout.fit(np.ones((9, 2)))
    assert np.array_equal(layout.grid_, grid)
    assert layout.score_ == score


def test_kernels_too_large_for_memory_are_refused_before_they_are_made(monkeypatch):
    from unshuffle._core import parameters as _parameters

    monkeypatch.setattr(_parameters, "available_memory", lambda: 10**4)
    with pytest.raises(MemoryError, match="needs"):
        GridLayout(kernel="rbf").fit(np.random.default_rng(0).random((300, 2)))
