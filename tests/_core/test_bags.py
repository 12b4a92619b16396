import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from unshuffle import MinimumVolumePCA, SetAligner
from unshuffle._core.bags import Bags, canonical_order, equal_sizes, gathered
from unshuffle.kernels import MeanMapKernel
from unshuffle.preprocessing import SetNormalizer


def test_a_list_of_arrays_is_stacked_in_order():
    bags = Bags.of([np.zeros((2, 3)), np.ones((4, 3))])
    assert len(bags) == 2
    assert bags.width == 3
    assert bags.sizes.tolist() == [2, 4]
    assert bags.offsets.tolist() == [0, 2, 6]
    np.testing.assert_array_equal(bags[1], np.ones((4, 3)))
    assert [len(bag) for bag in bags] == [2, 4]


def test_three_dimensions_are_bags_of_one_size():
    array = np.arange(24).reshape(4, 3, 2)
    bags = Bags.of(array)
    assert bags.sizes.tolist() == [3, 3, 3, 3]
    np.testing.assert_array_equal(bags[2], array[2])


@pytest.mark.parametrize(
    "table", [np.eye(3), [[1, 0, 0], [0, 1, 0], [0, 0, 1]], pd.DataFrame(np.eye(3))]
)
def test_the_rows_of_a_table_are_bags_of_one(table):
    bags = Bags.of(table)
    assert bags.sizes.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(bags.points, np.eye(3))


@pytest.mark.parametrize(
    "bags",
    [
        [[[1, 2]], [[3, 4], [5, 6]]],
        ([[1, 2]], np.array([[3, 4], [5, 6]])),
        np.array([np.array([[1, 2]]), np.array([[3, 4], [5, 6]])], dtype=object),
        [pd.DataFrame([[1, 2]]), pd.DataFrame([[3, 4], [5, 6]])],
    ],
)
def test_nested_lists_tuples_object_arrays_and_data_frames_are_bags(bags):
    found = Bags.of(bags)
    assert found.sizes.tolist() == [1, 2]
    assert found.points.dtype == np.float64
    assert found.points.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_what_was_passed_is_not_changed():
    array = np.arange(12.0).reshape(2, 3, 2)
    before = array.copy()
    bags = Bags.of(array)
    bags.points[:] = -1
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize(
    ("bags", "words"),
    [
        ([], "Reshape your data|empty|0 bags|minimum of 1 is required"),
        ([np.zeros((2, 3)), np.zeros((2, 4))], "bag 1 of X have 4 columns.*bag 0 have 3"),
        ([np.zeros((2, 3)), np.zeros((0, 3))], "Bag 1 of X is empty"),
        ([np.zeros((2, 3)), []], "Bag 1 of X is empty"),
        ([np.zeros((2, 3)), [[0, 1, np.nan]]], "bag 1 of X contains NaN.*point 0"),
        ([np.zeros((2, 3)), [[0, 1, np.inf]]], "bag 1 of X contains infinity"),
        ([np.zeros((2, 3)), np.zeros(3)], "Bag 1 of X has 1 dimension"),
        ([np.zeros((2, 3)), np.zeros((2, 2, 3))], "Bag 1 of X has 3 dimension"),
        (np.zeros((2, 2, 2, 2)), "dim 4|4 dim"),
        ("bags", "holds strings"),
        (["one", "two"], "holds strings"),
        ([[["a", "b"]], [["c", "d"]]], "hold text"),
        ([[[1e200, 0]], [[0, 0]]], "too large for a float"),
        (np.zeros((3, 0)), "0 feature"),
    ],
)
def test_bad_bags_are_refused_in_words(bags, words):
    with pytest.raises(ValueError, match=words):
        Bags.of(bags)


def test_a_sparse_table_of_bags_of_one_is_refused():
    with pytest.raises(TypeError, match=r"toarray\(\)"):
        Bags.of(sparse.eye(3, format="csr"))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_matrices_in_a_list_are_bags(kind):
    bags = [np.eye(3), np.array([[0, 2, 0]]), np.zeros((2, 3))]
    for given in ([kind(bag) for bag in bags], [bags[0], kind(bags[1]), bags[2].tolist()]):
        found = Bags.of(given)
        assert [bag.tolist() for bag in found] == [bag.tolist() for bag in bags]


@pytest.mark.parametrize(
    ("bag", "words"),
    [
        (sparse.csr_array((0, 3)), "Bag 1 of X is empty"),
        (sparse.csr_array([[1.0, 2.0]]), "bag 1 of X have 2 columns"),
        (sparse.csr_array([[1.0, np.nan, 2.0]]), "bag 1 of X contains NaN"),
        (sparse.coo_array([1.0, 2.0, 3.0]), r"Bag 1 of X has 1 dimension\(s\)"),
        (sparse.csr_array([[1j, 0.0, 0.0]]), "Complex"),
    ],
)
def test_bad_sparse_bags_are_refused_in_words(bag, words):
    with pytest.raises(ValueError, match=words):
        Bags.of([np.eye(3), bag])


def test_sparse_bags_that_do_not_fit_into_memory_are_refused():
    with pytest.raises(MemoryError, match="sparse bags of X needs"):
        Bags.of([sparse.csr_array((10**6, 10**9))] * 2)


POINTS = pd.DataFrame(
    {"x": [1.0, 2.0, 3.0], "mouse": ["b", "a", "b"], "y": [4.0, 5.0, 6.0], "day": [1, 1, 2]}
)


def test_each_group_of_a_frame_is_a_bag_without_the_columns_grouped_by():
    bags = Bags.of(POINTS.groupby("mouse"))
    assert [bag.tolist() for bag in bags] == [[[2, 5, 1]], [[1, 4, 1], [3, 6, 2]]]
    assert Bags.of(POINTS.groupby("mouse", sort=False)).sizes.tolist() == [2, 1]
    assert [bag.tolist() for bag in Bags.of(POINTS.groupby(["mouse", "day"]))] == [
        [[2, 5]],
        [[1, 4]],
        [[3, 6]],
    ]
    assert [bag.tolist() for bag in Bags.of(POINTS.groupby("mouse")["x"])] == [[[2]], [[1], [3]]]


def test_estimators_take_groups_as_the_bags_they_are():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["x", "y"]).assign(
        mouse=np.repeat(list("abcdef"), 5)
    )
    groups = frame.groupby("mouse")
    bags = [group[["x", "y"]] for _, group in groups]
    plain, grouped = MeanMapKernel().fit(bags), MeanMapKernel().fit(groups)
    assert grouped.feature_names_in_.tolist() == ["x", "y"]
    assert np.array_equal(grouped.transform(groups), plain.transform(bags))
    assert np.array_equal(grouped.gram(groups, groups), plain.gram(bags, bags))
    assert np.array_equal(MeanMapKernel().fit_transform(groups), plain.fit_transform(bags))
    normalized = SetNormalizer().fit_transform(groups)
    assert [each.shape for each in normalized] == [(5, 2)] * 6
    assert np.array_equal(
        SetAligner().fit(groups).permutations_, SetAligner().fit(bags).permutations_
    )


@pytest.mark.parametrize(
    "estimator", [MeanMapKernel(), SetNormalizer(), SetAligner(), MinimumVolumePCA(1)]
)
def test_a_frame_whose_rows_are_taken_for_bags_warns_and_says_how_to_group_them(estimator):
    frame = POINTS.drop(columns="mouse")
    with pytest.warns(UserWarning, match=r"its 3 rows .* bag of one point.*X\.groupby") as caught:
        estimator.fit(frame)
    assert [each.filename for each in caught] == [__file__]
    # Nothing else warns: groups, arrays, and frames that are bags.
    estimator.fit(frame.to_numpy())
    estimator.fit([frame, frame + 1.0])
    estimator.fit(frame.groupby("day"))


def test_a_frame_with_a_column_of_text_is_told_to_group_by_it():
    with pytest.raises(ValueError, match=r"Column 'mouse' of X .*X\.groupby\('mouse'\)"):
        Bags.of(POINTS)


@pytest.mark.parametrize("given", [object(), 3.0, np.float64(3), None, {1: 2}, range(3)])
def test_what_is_no_set_of_points_is_refused_in_words(given):
    with pytest.raises((ValueError, TypeError), match=r"Pass|pass"):
        Bags.of(given)


def test_bags_do_not_change_with_the_array_they_were_made_of():
    given = np.ones((3, 2))
    bags = Bags.of(given)
    given[:] = 0
    assert bags.points.all()


def points(n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def test_sorted_bags_do_not_depend_on_the_order_given():
    rng = np.random.default_rng(2)
    bags = [np.repeat(points(n), 2, axis=0) for n in (1, 5, 30)]
    mixed = Bags.of([rng.permutation(each) for each in bags]).sorted()
    np.testing.assert_array_equal(mixed.points, Bags.of(bags).sorted().points)
    np.testing.assert_array_equal(mixed[1], bags[1][canonical_order(bags[1])])


def test_a_part_of_the_bags_is_these_bags():
    bags = Bags.of([points(3), points(5), points(2), points(4)])
    part = bags.part(1, 3)
    assert part.sizes.tolist() == [5, 2]
    np.testing.assert_array_equal(part[1], bags[2])


def test_the_canonical_order_does_not_depend_on_the_order_given():
    X = np.repeat(points(), 2, axis=0)
    mixed = np.random.default_rng(1).permutation(X)
    np.testing.assert_array_equal(mixed[canonical_order(mixed)], X[canonical_order(X)])


def test_every_point_is_copied_as_often_as_any_other():
    bags = Bags.of([points(7), points(23), points(10)])
    chosen = equal_sizes(bags, 23, missing=False, seed=0)
    assert np.bincount(chosen[0]).min() == 3
    assert np.bincount(chosen[0]).max() == 4
    np.testing.assert_array_equal(np.sort(chosen[1]), np.arange(23))
    assert gathered(bags, chosen).shape == (3, 23, 2)
    fewer = equal_sizes(bags, 5, missing=False, seed=0)
    assert all(np.unique(each).size == 5 for each in fewer)
    assert not np.array_equal(chosen, equal_sizes(bags, 23, missing=False, seed=1))


def test_missing_points_are_marked_and_zero():
    bags = Bags.of([points(3), points(5)])
    chosen = equal_sizes(bags, 5, missing=True, seed=0)
    assert chosen[0, 3:].tolist() == [-1, -1]
    assert not gathered(bags, chosen)[0, 3:].any()
