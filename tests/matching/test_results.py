import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from unshuffle import KernelizedSorting
from unshuffle.matching import Matches

pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")


@pytest.fixture(scope="module")
def fitted(paired_points):
    X, y, truth = paired_points(25, 0)
    return KernelizedSorting().fit(X, y), X, y, truth


@pytest.fixture(scope="module")
def uncertain(paired_points):
    X, y, truth = paired_points(30, 1, noise=0.4)
    return KernelizedSorting().fit(X, y), X, y, truth


@pytest.fixture(scope="module", params=["more_y", "more_x"])
def unequal(request, paired_points):
    extra_items = {"more_y": "extra_y", "more_x": "extra_x"}[request.param]
    X, y, _ = paired_points(20, 2, **{extra_items: 7})
    return KernelizedSorting().fit(X, y), X, y


def test_reorder_brings_arrays_lists_and_tuples_into_the_order_of_x(fitted):
    sorting, _, y, truth = fitted
    assert np.array_equal(sorting.reorder(y), y[truth])
    assert sorting.reorder(list(range(25))) == truth.tolist()
    assert sorting.reorder(tuple(range(25))) == tuple(truth.tolist())
    pictures = np.arange(25 * 4).reshape(25, 2, 2)
    assert np.array_equal(sorting.reorder(pictures), pictures[truth])


def test_reorder_keeps_data_frames_series_and_sparse_matrices_what_they_are(fitted):
    sorting, _, y, truth = fitted
    frame = pd.DataFrame(y, index=[f"row {i}" for i in range(25)], columns=list("abc"))
    reordered = sorting.reorder(frame)
    assert isinstance(reordered, pd.DataFrame)
    assert reordered.index.tolist() == [f"row {i}" for i in truth]
    assert np.array_equal(reordered.to_numpy(), y[truth])
    assert sorting.reorder(frame["a"]).equals(frame["a"].iloc[truth])
    for kind in (sparse.csr_array, sparse.coo_array, sparse.csc_matrix):
        moved = sorting.reorder(kind(y))
        assert sparse.issparse(moved)
        assert np.array_equal(moved.toarray(), y[truth])


class Frame:
    """What a frame of Polars looks like."""

    def __init__(self, table):
        self.table = table
        self.columns, self.shape = list(table.columns), table.shape

    def __len__(self):
        return len(self.table)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.table, dtype=dtype)

    def __getitem__(self, item):
        """A column by its name, or some rows."""
        part = self.table[item] if isinstance(item, str) else self.table.iloc[item]
        return part.tolist() if isinstance(item, str) else Frame(part)

    def drop(self, column):
        return Frame(self.table.drop(columns=column))


Frame.__module__ = "polars.dataframe.frame"


def test_reorder_keeps_frames_of_polars_what_they_are(fitted):
    sorting, _, y, truth = fitted
    moved = sorting.reorder(Frame(pd.DataFrame(y, columns=list("abc"))))
    assert isinstance(moved, Frame)
    assert np.array_equal(np.asarray(moved), y[truth])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # of a real frame
@pytest.mark.parametrize("heading", ["id", "Name"])
def test_rows_of_polars_are_named_by_their_first_column(fitted, heading):
    plain, X, y, truth = fitted
    people, records = [f"person {i}" for i in range(25)], [f"record {i}" for i in range(25)]
    tables = []
    for values, names in ((X, people), (y, records)):
        table = pd.DataFrame(values, columns=[f"column {k}" for k in range(values.shape[1])])
        table.insert(0, heading, names)
        tables.append(Frame(table))
    sorting = KernelizedSorting().fit(*tables)
    assert np.array_equal(sorting.permutation_, plain.permutation_)
    assert sorting.matches_.named_pairs() == [
        (f"person {i}", f"record {j}") for i, j in enumerate(truth)
    ]
    assert sorting.n_features_in_ == X.shape[1]
    assert sorting.feature_names_in_.tolist() == tables[0].columns[1:]
    assert np.array_equal(sorting.transform(tables[0]), plain.transform(X))
    assert sorting.match(*tables).named_pairs()[0] == ("person 0", f"record {truth[0]}")
    assert sorting.reorder(tables[1]).table[heading].tolist() == [records[j] for j in truth]


def test_reordering_y_leaves_nothing_to_reorder(fitted):
    sorting, X, y, _ = fitted
    again = KernelizedSorting().fit(X, sorting.reorder(y))
    assert np.array_equal(again.permutation_, np.arange(25))


def test_reorder_refuses_another_length(fitted):
    sorting, _, y, _ = fitted
    with pytest.raises(ValueError, match="`y` has 24 items; the fitted one has 25"):
        sorting.reorder(y[:-1])
    with pytest.raises(ValueError, match="`y` has 26 items; the fitted one has 25"):
        sorting.reorder(list(range(26)))


def test_reorder_raises_where_an_item_is_unmatched(paired_points):
    X, y, _ = paired_points(15, 3, extra_x=5)
    sorting = KernelizedSorting().fit(X, y)
    first = np.flatnonzero(sorting.permutation_ < 0)[0]
    message = f"5 of 20 items of X are unmatched .the first is item {first}.*`pairs_`"
    with pytest.raises(ValueError, match=message):
        sorting.reorder(y)


def test_reorder_selects_the_partners_from_a_larger_collection(paired_points):
    X, y, _ = paired_points(15, 3, extra_y=5)
    sorting = KernelizedSorting().fit(X, y)
    assert np.array_equal(sorting.reorder(y), y[sorting.permutation_])
    assert sorting.reorder(y).shape == (15, 3)


@pytest.mark.parametrize("k", [1, 3, 30])
def test_candidates_are_different_and_begin_with_the_partner(uncertain, k):
    sorting = uncertain[0]
    candidates = sorting.candidates(k)
    assert candidates.shape == (30, k)
    assert np.array_equal(candidates[:, 0], sorting.permutation_)
    assert all(np.unique(row).size == k for row in candidates)
    assert candidates.min() >= 0
    assert candidates.max() < 30


def test_more_candidates_hold_the_right_one_more_often(uncertain):
    sorting, _, _, truth = uncertain
    held = [np.mean((sorting.candidates(k) == truth[:, None]).any(axis=1)) for k in (1, 3, 8, 30)]
    assert held[0] < held[1] < held[3] == 1.0
    assert held[1] <= held[2]


def test_a_longer_list_of_candidates_begins_with_the_shorter_one(uncertain):
    sorting = uncertain[0]
    assert np.array_equal(sorting.candidates(9)[:, :4], sorting.candidates(4))


def test_candidates_of_unequal_sizes(unequal):
    sorting, X, y = unequal
    candidates = sorting.candidates(4)
    assert candidates.shape == (len(X), 4)
    assert candidates.max() < len(y)
    matched = sorting.permutation_ >= 0
    assert np.array_equal(candidates[matched, 0], sorting.permutation_[matched])


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (0, "`k` must be from 1 to 25, got 0"),
        (26, "`k` must be from 1 to 25, got 26"),
        (-3, "`k` must be from 1 to 25"),
        (2.5, "`k` must be a whole number, got 2.5"),
        ("3", "`k` must be a whole number"),
        (True, "`k` must be a whole number"),
    ],
)
def test_an_impossible_number_of_candidates_is_refused(fitted, k, message):
    with pytest.raises(ValueError, match=message):
        fitted[0].candidates(k)


def test_soft_matches_sum_to_one_in_rows_and_columns(uncertain):
    shares = uncertain[0].soft_matches()
    assert shares.shape == (30, 30)
    assert shares.min() >= 0.0
    assert shares.sum(axis=1) == pytest.approx(np.ones(30), abs=0.02)
    assert shares.sum(axis=0) == pytest.approx(np.ones(30), abs=0.02)


def test_soft_matches_of_unequal_sizes_fill_the_smaller_side(unequal):
    sorting, X, y = unequal
    shares = sorting.soft_matches()
    assert shares.shape == (len(X), len(y))
    filled, spare = (1, 0) if len(X) < len(y) else (0, 1)
    assert shares.sum(axis=filled) == pytest.approx(np.ones(20), abs=0.02)
    assert shares.sum(axis=spare).max() < 1.02


def test_a_lower_temperature_sharpens_the_shares(uncertain):
    sorting = uncertain[0]
    peaks = [sorting.soft_matches(t).max(axis=1).mean() for t in (0.02, 0.2, 2.0)]
    assert peaks[0] > peaks[1] > peaks[2]
    assert peaks[0] > 0.85


def test_frozen_pairs_are_certain_in_soft_matches(paired_points):
    X, y, _ = paired_points(15, 4, noise=0.3)
    for first, second, pairs in ((X, y[:12], [(3, 5), (9, 0)]), (X[:12], y, [(3, 5), (9, 0)])):
        sorting = KernelizedSorting().fit(first, second, frozen=pairs)
        shares = sorting.soft_matches()
        assert shares[3, 5] == pytest.approx(1.0)
        assert shares[9].sum() == pytest.approx(shares[9, 0])


@pytest.mark.parametrize("temperature", [0.0, -1.0, np.nan, np.inf, "warm"])
def test_an_impossible_temperature_is_refused(fitted, temperature):
    with pytest.raises(ValueError, match="`temperature` must be a finite number above 0"):
        fitted[0].soft_matches(temperature)


def test_what_is_read_from_a_fit_cannot_change_it(fitted):
    sorting, _, _, truth = fitted
    sorting.matches_.permutation[:] = 0
    sorting.soft_matches()[:] = 0.0
    sorting.candidates(2)[:] = 0
    assert np.array_equal(sorting.matches_.permutation, truth)
    assert np.array_equal(sorting.candidates(1)[:, 0], truth)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_matches_with_odd_names_are_saved_and_loaded(paired_points, tmp_path, suffix):
    X, y, _ = paired_points(8, 5, extra_x=3, extra_y=2)
    odd = ["a,b", 'say "hi"', "two\nlines", "naïve ☃", "", " ", "0", "\u2028", "x\r\ny", "'", ";"]
    people = pd.DataFrame(X, index=odd)
    records = pd.DataFrame(y, index=odd[::-1][: len(y)])
    saved = KernelizedSorting().fit(people, records).matches_
    saved.save(tmp_path / f"pairs{suffix}")
    loaded = Matches.load(tmp_path / f"pairs{suffix}")
    assert loaded.names_x == odd
    assert loaded.names_y == odd[::-1][: len(y)]
    assert np.array_equal(loaded.permutation, saved.permutation)
    assert (saved.permutation == -1).sum() == 1
    assert loaded.confidence == pytest.approx(saved.confidence, abs=1e-6)
    assert loaded.named_pairs() == saved.named_pairs()


@pytest.mark.parametrize(
    "ask",
    [
        lambda sorting: sorting.reorder([1, 2]),
        lambda sorting: sorting.candidates(1),
        lambda sorting: sorting.questions(1),
        lambda sorting: sorting.soft_matches(),
        lambda sorting: sorting.matches_,
    ],
)
def test_an_unfitted_estimator_says_so(ask):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ask(KernelizedSorting())
