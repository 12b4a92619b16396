"""Columns that all collections share decide between mirror images, and between nothing else."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.counts import few

from unshuffle import MultiwaySorting
from unshuffle.kernels import gram_matrix, rbf_kernel
from unshuffle.matching import DoubtWarning
from unshuffle.matching._several.shared_columns import NEARLY, find_shared_columns

OBJECTIVES = ("hsic", "entropy")


def symmetric_copies(n_collections, *, noise=0.04, seed=0):
    """Shuffled noisy copies of 24 points that are symmetric about both axes, and their orders."""
    random = np.random.default_rng(seed)
    quarter = random.uniform(0.1, 1.0, size=(6, 2)) * [1.5, 1.0]
    shape = np.concatenate([quarter * signs for signs in ([1, 1], [1, -1], [-1, 1], [-1, -1])])
    orders = [random.permutation(24) for _ in range(n_collections)]
    return [(shape + noise * random.normal(size=shape.shape))[order] for order in orders], orders


def rotated_copies(n_collections, *, noise, seed=0):
    """Shuffled noisy copies of one shape, each rotated, so that its columns mean other things."""
    random = np.random.default_rng(seed)
    shape = random.exponential(size=(30, 3)) * [2.0, 1.4, 1.0]
    copies = []
    for _ in range(n_collections):
        turn, _ = np.linalg.qr(random.normal(size=(3, 3)))
        noisy = shape @ turn + noise * random.normal(size=shape.shape)
        copies.append(noisy[random.permutation(30)])
    return copies


def share_right(sorting, orders):
    items = np.array([order[p] for order, p in zip(orders, sorting.permutations_, strict=True)])
    return float(np.mean(items[1:] == items[0]))


def fit(X, **params):
    return MultiwaySorting(**{"trust": False, **params}).fit(X)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_collections", [2, 4])
def test_symmetric_shapes_come_out_upright(objective, n_collections):
    with_columns, without = [], []
    for seed in range(4):
        copies, orders = symmetric_copies(n_collections, seed=seed)
        with_columns.append(share_right(fit(copies, objective=objective), orders))
        plain = fit(copies, objective=objective, compare_columns=False)
        without.append(share_right(plain, orders))
    assert min(with_columns) > 0.9
    assert np.mean(without) < 0.7


def test_a_line_keeps_its_direction():
    line = np.arange(12.0)[:, None]
    sorting = fit([line, line[::-1], 3.0 * line + 5.0])
    np.testing.assert_array_equal(sorting.permutations_[1], np.arange(12)[::-1])
    np.testing.assert_array_equal(sorting.permutations_[2], np.arange(12))


def test_the_estimator_says_whether_the_columns_decided():
    decided = []
    for seed in range(6):
        copies, _ = symmetric_copies(3, seed=seed)
        sorting, plain = fit(copies), fit(copies, compare_columns=False)
        assert plain.decided_by_columns_ is False
        assert sorting.decided_by_columns_ == (sorting.objective_ < plain.objective_)
        assert sorting.objective_ >= NEARLY * plain.objective_
        assert np.all(np.diff(sorting.objective_path_) > 0)
        assert sorting.objective_path_[-1] == pytest.approx(sorting.objective_)
        decided.append(sorting.decided_by_columns_)
    assert any(decided)


def test_a_decision_by_columns_is_a_doubt():
    copies, orders = symmetric_copies(4, seed=0)
    with pytest.warns(DoubtWarning, match="at least as good, and only the columns decided"):
        sorting = MultiwaySorting().fit(copies)
    assert share_right(sorting, orders) == 1.0
    assert 0.4 < sorting.expected_accuracy_ < 0.5  # one of two alignments that are equally good


@pytest.mark.parametrize("n_columns", [1, 2, 3])
@pytest.mark.parametrize("n_collections", [3, 5])
def test_agreeing_columns_of_unrelated_collections_are_doubted(n_collections, n_columns):
    believed = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        X = [random.normal(size=(40, n_columns)) for _ in range(n_collections)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DoubtWarning)
            believed.append(MultiwaySorting().fit(X).expected_accuracy_)
    assert np.mean(believed) < 0.5


@few
@given(seed=st.integers(0, 999), noise=st.sampled_from([0.0, 0.05, 0.1]))
def test_columns_of_other_meanings_do_no_harm(seed, noise):
    copies = rotated_copies(3, noise=noise, seed=seed)
    sorting = fit(copies)
    assert sorting.decided_by_columns_ is False
    # One more start may only raise the objective.
    assert sorting.objective_ >= fit(copies, compare_columns=False).objective_ - 1e-12


@few
@given(seed=st.integers(0, 999))
def test_shuffling_the_items_shuffles_their_indices_alone(seed):
    copies, _ = symmetric_copies(3, seed=1)
    random = np.random.default_rng(seed)
    orders = [random.permutation(24) for _ in copies]
    shuffled = [copy[order] for copy, order in zip(copies, orders, strict=True)]
    before, after = fit(copies).permutations_, fit(shuffled).permutations_
    back = np.array([order[p] for order, p in zip(orders, after, strict=True)])
    np.testing.assert_array_equal(back[:, np.argsort(back[0])], before)


@few
@given(exponent=st.integers(-60, 60), shift=st.integers(-50, 50))
def test_units_and_origins_of_the_tables_do_not_matter(exponent, shift):
    copies, orders = symmetric_copies(3, seed=2)
    moved = [copies[0], 2.0**exponent * copies[1], copies[2] + shift]
    sorting = fit(moved)
    assert share_right(sorting, orders) > 0.9


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_threads_and_seeds_change_nothing(objective):
    copies, _ = symmetric_copies(3, seed=3)
    one = fit(copies, objective=objective, random_state=0)
    for params in ({"n_jobs": 2, "random_state": 0}, {"random_state": 1}):
        other = fit(copies, objective=objective, **params)
        np.testing.assert_array_equal(one.permutations_, other.permutations_)
        assert one.decided_by_columns_ == other.decided_by_columns_


def test_the_container_does_not_matter():
    copies, _ = symmetric_copies(3, seed=4)
    expected = fit(copies).permutations_
    for wrap in (sparse.csr_array, pd.DataFrame, np.ndarray.tolist):
        np.testing.assert_array_equal(fit([wrap(X) for X in copies]).permutations_, expected)


def test_columns_that_are_constant_somewhere_are_left_out():
    copies, orders = symmetric_copies(3, seed=5)
    flat = [np.column_stack([X, np.full((24, 2), height)]) for height, X in enumerate(copies)]
    assert share_right(fit(flat), orders) > 0.9
    assert find_shared_columns(flat, ["rbf"] * 3).tables[0].shape == (24, 2)


def frames(*names):
    return [pd.DataFrame(np.eye(5, 2), columns=list(each)) for each in names]


TABLE, WIDE = np.eye(5, 2), np.eye(5, 17)
WITHOUT_COLUMNS = {
    "kernel matrices": ([np.eye(5)] * 2, ["precomputed"] * 2),
    "one kernel matrix": ([TABLE, np.eye(5)], ["rbf", "precomputed"]),
    "texts": ([list("abcde")] * 2, ["text"] * 2),
    "functions": ([TABLE] * 2, [rbf_kernel] * 2),
    "sums of kernels": ([[TABLE, TABLE]] * 2, [["rbf", "linear"]] * 2),
    "other numbers of columns": ([TABLE, np.eye(5, 3)], ["rbf"] * 2),
    "other names of columns": (frames("xy", "xz"), ["rbf"] * 2),
    "names in another order": (frames("xy", "yx"), ["rbf"] * 2),
    "many columns": ([WIDE] * 2, ["rbf"] * 2),
    "constant columns": ([TABLE * [1, 0], TABLE * [0, 1]], ["rbf"] * 2),
}


@pytest.mark.parametrize("case", WITHOUT_COLUMNS)
def test_no_columns_are_shared_by(case):
    assert find_shared_columns(*WITHOUT_COLUMNS[case]) is None


def test_names_are_compared_where_there_are_any():
    shared = find_shared_columns([*frames("xy", "xy"), TABLE], ["rbf", "linear", "local"])
    assert len(shared.tables) == 3


def test_kernel_matrices_give_the_alignment_without_columns():
    copies, _ = symmetric_copies(3, seed=6)
    grams = fit([gram_matrix(X) for X in copies], kernel="precomputed")
    plain = fit(copies, compare_columns=False)
    np.testing.assert_array_equal(grams.permutations_, plain.permutations_)


@pytest.mark.parametrize("compare_columns", [None, "yes", 2])
def test_comparing_columns_is_a_flag(compare_columns):
    with pytest.raises(ValueError, match="`compare_columns` must be True or False"):
        fit([TABLE, TABLE], compare_columns=compare_columns)
