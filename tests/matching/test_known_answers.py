import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from unshuffle import KernelizedSorting
from unshuffle.kernels import center, gram_matrix, zero_diagonal

# How close rivals come is tested in test_trust.py.
pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")


def distances(X, Y):
    return -np.sqrt(((X[:, None] - Y[None]) ** 2).sum(axis=-1))


def one_distance(x, y):
    return -float(np.sqrt(np.sum((x - y) ** 2)))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "geodesic", distances])
def test_a_rotated_point_set_is_recovered_exactly(paired_points, kernel):
    X, y, truth = paired_points(40)
    if kernel == "laplacian":  # city-block distances change with a rotation
        X, y = np.abs(X), np.abs(X)[np.argsort(truth)] + 3.0
    sorting = KernelizedSorting(kernel).fit(X, y)
    assert np.array_equal(sorting.permutation_, truth)
    assert np.array_equal(sorting.pairs_, np.column_stack([np.arange(40), truth]))
    assert sorting.converged_
    assert sorting.confidence_.min() > 0.5


def test_counts_are_recovered_by_chi2():
    random = np.random.default_rng(0)
    X = random.poisson(3.0, size=(30, 8)).astype(float)
    order, columns = random.permutation(30), random.permutation(8)
    sorting = KernelizedSorting("chi2").fit(X, X[order][:, columns])
    assert np.array_equal(order[sorting.permutation_], np.arange(30))


def test_documents_are_matched_across_languages():
    random = np.random.default_rng(1)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    words = ["".join(random.choice(letters, 7)) for _ in range(240)]
    english, foreign = words[:120], dict(zip(words[:120], words[120:], strict=True))
    documents = [
        [english[i] for i in random.choice(120, size=60, p=random.dirichlet(np.full(120, 0.1)))]
        for _ in range(30)
    ]
    order = random.permutation(30)
    X = [" ".join(document) for document in documents]
    y = [" ".join(foreign[word] for word in documents[i]) for i in order]
    sorting = KernelizedSorting("text").fit(X, y)
    assert np.array_equal(order[sorting.permutation_], np.arange(30))
    assert sorting.reorder(y)[7] == " ".join(foreign[word] for word in documents[7])
    assert not hasattr(sorting, "n_features_in_")


def test_precomputed_kernels_give_what_their_features_give(paired_points):
    X, y, _ = paired_points(25, 1, noise=0.1)
    by_features = KernelizedSorting("rbf", gamma=0.3).fit(X, y)
    K, L = gram_matrix(X, "rbf", gamma=0.3), gram_matrix(y, "rbf", gamma=0.3)
    by_kernels = KernelizedSorting("precomputed").fit(K, L)
    assert np.array_equal(by_kernels.permutation_, by_features.permutation_)
    assert by_kernels.objective_ == pytest.approx(by_features.objective_)


def test_the_objective_is_the_centered_trace_with_zeroed_diagonals(paired_points):
    X, y, _ = paired_points(25, 2, noise=0.2)
    sorting = KernelizedSorting("rbf", gamma=0.3).fit(X, y)
    K, L = (zero_diagonal(center(gram_matrix(each, "rbf", gamma=0.3))) for each in (X, y))
    p = sorting.permutation_
    explicit = sum(K[i, j] * L[p[i], p[j]] for i in range(25) for j in range(25))
    assert sorting.objective_ == pytest.approx(explicit)
    assert sorting.objective_path_[-1] == pytest.approx(explicit)


@pytest.mark.parametrize("kernel", [distances, one_distance])
def test_a_callable_works_on_whole_collections_or_on_two_items(paired_points, kernel):
    X, y, truth = paired_points(20, 3)
    sorting = KernelizedSorting(kernel).fit(X, y)
    assert np.array_equal(sorting.permutation_, truth)


def test_the_second_collection_may_have_a_kernel_of_its_own(paired_points):
    X, y, truth = paired_points(30, 4)
    L = gram_matrix(y, "rbf")
    sorting = KernelizedSorting("rbf", kernel_y="precomputed").fit(X, L)
    assert np.array_equal(sorting.permutation_, truth)


def test_two_kernels_on_one_collection_or_one_collection_for_each(paired_points):
    X, y, truth = paired_points(30, 5)
    kernels = ["rbf", "linear"]
    one = KernelizedSorting(kernels).fit(X, y)
    each = KernelizedSorting(kernels).fit([X, X], [y, y])
    assert np.array_equal(one.permutation_, truth)
    assert np.array_equal(each.permutation_, truth)
    assert each.objective_ == pytest.approx(one.objective_)


def test_lists_of_kernel_matrices_are_summed(paired_points):
    X, y, truth = paired_points(30, 6)
    grams = [[gram_matrix(each, "rbf", gamma=0.3), gram_matrix(each, "linear")] for each in (X, y)]
    given = KernelizedSorting(["precomputed", "precomputed"]).fit(*grams)
    named = KernelizedSorting(["rbf", "linear"], gamma=[0.3, None]).fit(X, y)
    assert np.array_equal(given.permutation_, truth)
    assert given.objective_ == pytest.approx(named.objective_)


def test_a_second_kernel_separates_what_the_first_cannot():
    random = np.random.default_rng(7)
    groups = np.repeat(np.arange(5), 5)[:, None].astype(float)
    inside = random.normal(size=(25, 2))
    order = random.permutation(25)
    both = KernelizedSorting(["rbf", "rbf"]).fit(
        [groups, inside], [3 * groups[order], -inside[order]]
    )
    assert np.array_equal(order[both.permutation_], np.arange(25))


def test_a_kernel_of_weight_zero_counts_for_nothing(paired_points):
    X, y, truth = paired_points(25, 8)
    noise = np.random.default_rng(0).normal(size=(2, 25, 3))
    sorting = KernelizedSorting(["rbf", "rbf"], kernel_weights=[1.0, 0.0])
    sorting.fit([X, noise[0]], [y, noise[1]])
    assert np.array_equal(sorting.permutation_, truth)


def test_sparse_features_give_what_dense_ones_give(paired_points):
    X, y, truth = paired_points(25, 9)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        sorting = KernelizedSorting().fit(kind(X), kind(y))
        assert np.array_equal(sorting.permutation_, truth)
    assert sorting.n_features_in_ == 3


def test_single_precision_is_enough(paired_points):
    X, y, truth = paired_points(30, 10)
    sorting = KernelizedSorting().fit(X.astype(np.float32), y.astype(np.float32))
    assert np.array_equal(sorting.permutation_, truth)


def test_lists_of_lists_are_collections_too(paired_points):
    X, y, truth = paired_points(15, 11)
    sorting = KernelizedSorting().fit(X.tolist(), y.tolist())
    assert np.array_equal(sorting.permutation_, truth)
    assert sorting.n_features_in_ == 3


def test_names_of_data_frames_are_kept(paired_points):
    X, y, truth = paired_points(20, 12)
    people = pd.DataFrame(X, index=[f"person {i}" for i in range(20)], columns=list("abc"))
    records = pd.DataFrame(y, index=[f"record {i}" for i in range(20)], columns=list("def"))
    sorting = KernelizedSorting().fit(people, records)
    expected = [(f"person {i}", f"record {truth[i]}") for i in range(20)]
    assert sorting.matches_.named_pairs() == expected
    assert sorting.feature_names_in_.tolist() == ["a", "b", "c"]
    again = sorting.fit(X, y)
    assert not hasattr(again, "feature_names_in_")
    assert again.matches_.named_pairs()[0] == ("0", str(truth[0]))


@pytest.mark.parametrize(("extra_x", "extra_y"), [(0, 10), (10, 0)])
def test_all_of_the_smaller_side_are_matched(paired_points, extra_x, extra_y):
    X, y, truth = paired_points(30, extra_x=extra_x, extra_y=extra_y)
    sorting = KernelizedSorting().fit(X, y)
    assert sorting.pairs_.shape == (30, 2)
    assert np.unique(sorting.pairs_[:, 0]).size == 30
    assert np.unique(sorting.pairs_[:, 1]).size == 30
    assert (sorting.permutation_[:30] == truth[:30]).sum() >= 29
    assert (sorting.permutation_ == -1).sum() == extra_x


def test_two_items_are_enough():
    sorting = KernelizedSorting().fit([[0.0], [1.0]], [[5.0], [9.0]])
    assert sorted(sorting.permutation_.tolist()) == [0, 1]


def test_a_linear_cost_steers_where_the_kernels_tie():
    x = np.linspace(-1, 1, 15)[:, None]
    towards = 1e-3 * np.abs(np.arange(15)[:, None] - np.arange(15)[None, :])
    straight = KernelizedSorting().fit(x, x, cost=towards)
    mirrored = KernelizedSorting().fit(x, x, cost=towards[:, ::-1])
    assert np.array_equal(straight.permutation_, np.arange(15))
    assert np.array_equal(mirrored.permutation_, np.arange(15)[::-1])


@pytest.mark.parametrize("sizes", [(20, 20), (15, 20), (20, 15)])
def test_a_cost_that_outweighs_the_kernels_decides(sizes):
    random = np.random.default_rng(13)
    X, y = random.normal(size=(sizes[0], 3)), random.normal(size=(sizes[1], 3))
    wanted = random.permutation(max(sizes))[: min(sizes)]
    cost = np.ones(sizes)
    if sizes[0] <= sizes[1]:
        cost[np.arange(sizes[0]), wanted] = 0.0
    else:
        cost[wanted, np.arange(sizes[1])] = 0.0
    sorting = KernelizedSorting().fit(X, y, cost=1e6 * cost)
    assert cost[tuple(sorting.pairs_.T)].sum() == 0.0
    assert len(sorting.pairs_) == min(sizes)


def test_known_pairs_break_a_symmetry():
    x = np.linspace(-1, 1, 15)[:, None]
    mirrored = KernelizedSorting().fit(x, x, frozen=[(0, 14), (1, 13)])
    assert np.array_equal(mirrored.permutation_, np.arange(15)[::-1])
    straight = KernelizedSorting().fit(x, x, frozen=[(1, 1), (0, 0)])
    assert np.array_equal(straight.permutation_, np.arange(15))


def test_everything_may_be_frozen(paired_points):
    X, y, _ = paired_points(10, 14)
    frozen = np.column_stack([np.arange(10), np.roll(np.arange(10), 3)])
    sorting = KernelizedSorting().fit(X, y, frozen=frozen)
    assert np.array_equal(sorting.pairs_, frozen)


def test_extra_items_can_be_left_without_a_partner(paired_points):
    X, y, truth = paired_points(40, 3, extra_x=6, extra_y=8)
    sorting = KernelizedSorting(unmatched_cost=0.2).fit(X, y)
    found = sorting.permutation_
    assert (found[40:] == -1).sum() >= 3
    assert (found[:40] == truth[:40]).sum() >= 30
    assert np.unique(found[found >= 0]).size == len(sorting.pairs_)
    assert np.all(sorting.confidence_[found == -1] == 0.0)


def test_a_smaller_unmatched_cost_leaves_more_alone(paired_points):
    X, y, _ = paired_points(40, 4, noise=0.1, extra_x=6, extra_y=8)
    matched = [
        len(KernelizedSorting(unmatched_cost=cost).fit(X, y).pairs_) for cost in (0.02, 0.2, 1.0)
    ]
    assert matched[0] < matched[1] <= matched[2]
    assert matched[2] >= 44


def test_frozen_pairs_are_never_released(paired_points):
    X, y, truth = paired_points(30, 5, noise=0.3)
    wrong = [(0, truth[1]), (5, truth[6])]
    sorting = KernelizedSorting(unmatched_cost=0.05).fit(X, y, frozen=wrong)
    assert sorting.permutation_[0] == truth[1]
    assert sorting.permutation_[5] == truth[6]
    assert (sorting.permutation_ == -1).any()


def test_gamma_sets_the_width_of_the_kernel(paired_points):
    X, y, truth = paired_points(25, 6)
    objectives = []
    for gamma in (0.1, 1.0):
        sorting = KernelizedSorting(gamma=gamma).fit(X, y)
        assert np.array_equal(sorting.permutation_, truth)
        objectives.append(sorting.objective_)
    assert objectives[0] != pytest.approx(objectives[1])
