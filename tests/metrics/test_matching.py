import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.preprocessing import normalize

from unshuffle.metrics import foscttm, matching_accuracy


def test_accuracy_counts_right_matches():
    assert matching_accuracy([0, 1, 2, 3], [0, 1, 3, 2]) == 0.5
    assert matching_accuracy([2, 0, 1], [2, 0, 1]) == 1.0


def test_unmatched_is_right_only_where_the_truth_says_so():
    assert matching_accuracy([-1, 1, -1, 0], [0, 1, -1, -1]) == 0.5
    labels = ["a", "b"]
    assert matching_accuracy([-1, 1, -1, 0], [0, 1, -1, -1], duplicates=labels) == 0.5


def test_duplicates_count_as_right():
    assert matching_accuracy([1, 0, 2], [0, 1, 2]) == pytest.approx(1 / 3)
    assert matching_accuracy([1, 0, 2], [0, 1, 2], duplicates=[7, 7, 8]) == 1.0
    # y may hold items that neither matching uses.
    assert matching_accuracy([1, 0], [0, 1], duplicates=[7, 7, 8, 9]) == 1.0


@given(st.permutations(range(8)), st.permutations(range(8)), st.permutations(range(8)))
def test_relabelling_changes_nothing(found, truth, order):
    found, truth, order = map(np.array, (found, truth, order))
    value = matching_accuracy(found, truth)
    assert matching_accuracy(found[order], truth[order]) == value
    assert matching_accuracy(order[found], order[truth]) == value
    assert matching_accuracy(truth, found) == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0, 1, 2]), "permutation has 2 items and truth has 3"),
        (([0.5, 1], [0, 1]), "`permutation` must be a list of whole numbers"),
        (([0, 1], [[0, 1]]), "`truth` must be a list of whole numbers"),
        (([], []), "`permutation` must be a list"),
        (([0, -2], [0, 1]), "`permutation` holds -2"),
    ],
)
def test_bad_matchings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        matching_accuracy(*arguments)


@pytest.mark.parametrize("duplicates", [[1], [[1, 2]]])
def test_bad_labels_are_refused(duplicates):
    with pytest.raises(ValueError, match="`duplicates` must hold one label"):
        matching_accuracy([0, 1], [0, 1], duplicates=duplicates)


@pytest.mark.parametrize("n_items", [2, 40, 1100])
def test_foscttm_agrees_with_the_definition(n_items):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_items, 2))
    y = X + rng.normal(size=(n_items, 2))
    D = cdist(X, y, "sqeuclidean")
    true = np.diag(D)
    expected = ((true[:, None] > D).mean() + (true > D).mean()) / 2
    assert foscttm(X, y) == pytest.approx(expected)
    assert foscttm(sparse.csr_matrix(X), y) == pytest.approx(expected)
    assert foscttm(y, X) == pytest.approx(expected)


def test_foscttm_of_equal_items_is_zero():
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 4, axis=0)
    assert foscttm(X, X) == 0
    # Ties at a distance do not count either.
    assert foscttm(X, X + 1e3) < 1
    assert foscttm(np.zeros((6, 2)), np.full((6, 2), 1 / 3)) == 0


def test_foscttm_at_random_is_a_half():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    assert foscttm(X, rng.permutation(X)) == pytest.approx(0.5, abs=0.05)


@given(st.integers(0, 999), st.floats(-1e3, 1e3))
def test_foscttm_ignores_order_and_common_shift(seed, shift):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(15, 2)), rng.normal(size=(15, 2))
    order = rng.permutation(15)
    value = foscttm(X, y)
    assert 0 <= value < 1
    assert foscttm(X[order], y[order]) == value
    assert foscttm(X + shift, y + shift) == value


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((3, 2)), np.ones((4, 2)), "X has 3 items and y has 4"),
        (np.ones((3, 2)), np.ones((3, 4)), "y has 4 columns and X has 2"),
        (np.ones((1, 2)), np.ones((1, 2)), "at least two items"),
        (np.ones((3, 2)) * np.nan, np.ones((3, 2)), "NaN"),
        (np.ones((3, 2)), np.ones((3, 2)) * np.inf, "infinity"),
        (np.ones(3), np.ones(3), "must be 2-D"),
        (["a", "b"], ["a", "b"], "strings"),
    ],
)
def test_foscttm_refuses_bad_input(X, y, message):
    with pytest.raises(ValueError, match=message):
        foscttm(X, y)


def test_foscttm_on_cells(shared_data):
    cells = np.load(shared_data("snareseq.npz"))
    atac = normalize(cells["atac"])
    assert foscttm(atac, atac) == 0
    order = np.random.default_rng(0).permutation(len(atac))
    within_type = order[np.lexsort((np.arange(len(order)), cells["cell_type"][order]))]
    matched = np.empty(len(order), dtype=int)
    matched[np.argsort(cells["cell_type"], kind="stable")] = within_type
    assert foscttm(atac[matched], atac) < 0.3
