"""MultiwaySorting: known answers, what holds for every input, and progress."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tests.counts import few

from unshuffle import KernelizedSorting, MultiwaySorting
from unshuffle.kernels import gram_matrix
from unshuffle.matching._dense.entropy import multiway_entropy
from unshuffle.matching._several.joint import multiway_hsic

OBJECTIVES = ("hsic", "entropy")


def noisy_copies(n_collections, n_items, *, noise=0.0, seed=0):
    """Shuffled copies of one shape, and the place of each of its points in every copy."""
    random = np.random.default_rng(seed)
    shape = random.exponential(size=(n_items, 2)) * [2.0, 1.0]
    orders = [random.permutation(n_items) for _ in range(n_collections)]
    copies = [(shape + noise * random.normal(size=shape.shape))[order] for order in orders]
    return copies, np.array([np.argsort(order) for order in orders])


def share_right(permutations, places):
    """Share of points, over all pairs of collections, whose partner is the right one."""
    points = np.array(
        [np.argsort(place)[p] for place, p in zip(places, permutations, strict=True)]
    )
    equal = points[:, None] == points[None]
    n_collections = len(points)
    return (equal.mean(axis=-1).sum() - n_collections) / (n_collections * (n_collections - 1))


def is_alignment(permutations, n_collections, n_items):
    each = np.sort(permutations, axis=1)
    return (
        permutations.shape == (n_collections, n_items)
        and np.array_equal(permutations[0], np.arange(n_items))
        and np.array_equal(each, np.tile(np.arange(n_items), (n_collections, 1)))
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_collections", [2, 3, 5])
def test_exact_copies_are_put_in_order(objective, n_collections):
    copies, places = noisy_copies(n_collections, 15)
    sorting = MultiwaySorting(objective=objective).fit(copies)
    assert is_alignment(sorting.permutations_, n_collections, 15)
    assert share_right(sorting.permutations_, places) == 1.0
    assert sorting.converged_
    for copy in sorting.reorder(copies):
        assert np.array_equal(copy, copies[0])


@pytest.mark.slow
def test_ten_noisy_copies_are_matched_better_than_by_the_papers_criterion():
    default, paper = [], []
    for seed in range(3):
        random = np.random.default_rng(seed + 20)
        shape = random.normal(size=(30, 2))
        orders = [random.permutation(30) for _ in range(10)]
        copies = [(shape + 0.1 * random.normal(size=(30, 2)))[order] for order in orders]
        places = np.array([np.argsort(order) for order in orders])
        default.append(share_right(MultiwaySorting().fit(copies).permutations_, places))
        literal = MultiwaySorting(offset=0.0, trust=False).fit(copies)
        paper.append(share_right(literal.permutations_, places))
    assert np.mean(default) > 0.85
    assert np.mean(default) > np.mean(paper) + 0.05


def test_of_two_collections_the_partners_are_those_of_kernelized_sorting():
    copies, places = noisy_copies(2, 25, noise=0.02, seed=1)
    two = KernelizedSorting().fit(*copies)
    several = MultiwaySorting().fit(copies)
    assert np.mean(several.permutations_[1] == two.permutation_) > 0.9
    assert share_right(several.permutations_, places) > 0.9


@pytest.mark.parametrize("kernel", ["linear", "laplacian", "geodesic", "chi2"])
def test_other_kernels_find_exact_copies(kernel):
    copies, places = noisy_copies(3, 15, seed=2)
    sorting = MultiwaySorting(kernel).fit(copies)
    assert share_right(sorting.permutations_, places) == 1.0


def test_the_objective_is_the_multiway_hsic_of_the_kernels_with_their_offset():
    copies, _ = noisy_copies(3, 12, noise=0.1, seed=3)
    sorting = MultiwaySorting(offset=2.0).fit(copies)
    kernels = [(gram_matrix(copy) + 2.0) / 3.0 for copy in sorting.reorder(copies)]
    assert sorting.objective_ == pytest.approx(multiway_hsic(kernels))


@pytest.mark.parametrize("gamma", [None, 0.7])
def test_without_offset_gamma_is_divided_by_the_number_of_collections(gamma):
    copies, _ = noisy_copies(4, 12, noise=0.1, seed=3)
    sorting = MultiwaySorting(offset=0, gamma=gamma).fit(copies)
    kernels = [gram_matrix(copy, gamma=gamma) ** 0.25 for copy in sorting.reorder(copies)]
    assert sorting.objective_ == pytest.approx(multiway_hsic(kernels))


def test_the_entropy_is_minus_the_log_volume():
    copies, _ = noisy_copies(3, 12, noise=0.1, seed=4)
    sorting = MultiwaySorting(objective="entropy").fit(copies)
    kernels = [gram_matrix(copy) ** (1 / 3) for copy in sorting.reorder(copies)]
    assert sorting.objective_ == pytest.approx(-multiway_entropy(kernels, ridge=0.01))


@given(
    seed=st.integers(0, 999),
    kernel=st.sampled_from(["rbf", "linear"]),  # the second's diagonal differs
    objective=st.sampled_from(OBJECTIVES),
    offset=st.sampled_from([None, 0.0]),
)
def test_the_objective_never_falls_and_ends_at_what_is_kept(seed, kernel, objective, offset):
    copies, _ = noisy_copies(3, 9, noise=0.6, seed=seed)
    sorting = MultiwaySorting(kernel, objective=objective, offset=offset, n_init=2).fit(copies)
    assert np.all(np.diff(sorting.objective_path_) > 0)
    assert sorting.objective_path_[-1] == pytest.approx(sorting.objective_)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_exchange_of_two_improves_the_answer(objective):
    copies, _ = noisy_copies(3, 8, noise=0.5, seed=5)
    sorting = MultiwaySorting(objective=objective, tol=0.0).fit(copies)
    kernels = [gram_matrix(copy) for copy in sorting.reorder(copies)]

    def value(kernels):
        if objective == "entropy":
            return -multiway_entropy([K ** (1 / 3) for K in kernels], ridge=0.01)
        return multiway_hsic([(K + 3.0) / 4.0 for K in kernels])

    best = value(kernels)
    assert best == pytest.approx(sorting.objective_)
    for t in range(3):
        for i, j in zip(*np.triu_indices(8, 1), strict=True):
            order = np.arange(8)
            order[[i, j]] = j, i
            changed = list(kernels)
            changed[t] = kernels[t][np.ix_(order, order)]
            assert value(changed) <= best + 1e-9


@few
@given(seed=st.integers(0, 999))
def test_shuffling_a_collection_shuffles_its_indices_alone(seed):
    copies, _ = noisy_copies(3, 12, noise=0.05, seed=6)
    random = np.random.default_rng(seed)
    orders = [random.permutation(12) for _ in copies]
    shuffled = [copy[order] for copy, order in zip(copies, orders, strict=True)]
    before = MultiwaySorting().fit(copies).permutations_
    after = MultiwaySorting().fit(shuffled).permutations_
    back = np.array([order[p] for order, p in zip(orders, after, strict=True)])
    assert np.array_equal(back[:, np.argsort(back[0])], before)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_threads_change_nothing(objective):
    copies, _ = noisy_copies(3, 14, noise=0.4, seed=7)
    one, two = (
        MultiwaySorting(objective=objective, n_init=8, n_jobs=n_jobs, random_state=0).fit(copies)
        for n_jobs in (1, 2)
    )
    assert np.array_equal(one.permutations_, two.permutations_)
    assert np.array_equal(one.objective_path_, two.objective_path_)
    assert one.n_iter_ == two.n_iter_


def test_more_starts_are_never_worse_and_look_from_other_collections():
    copies, _ = noisy_copies(4, 15, noise=0.8, seed=8)
    values = [MultiwaySorting(n_init=n, random_state=0).fit(copies).objective_ for n in (1, 4, 9)]
    assert values[0] < values[1] <= values[2]


def test_scales_of_the_collections_do_not_matter():
    copies, _ = noisy_copies(3, 12, noise=0.3, seed=9)
    scaled = [factor * copy for factor, copy in zip((1e-60, 1.0, 1e60), copies, strict=True)]
    for kernel in ("rbf", "linear"):
        here = MultiwaySorting(kernel).fit(copies)
        there = MultiwaySorting(kernel).fit(scaled)
        assert np.array_equal(here.permutations_, there.permutations_)
        assert here.objective_ == pytest.approx(there.objective_)


def test_collections_may_differ_in_kind_and_in_kernel():
    copies, places = noisy_copies(4, 12, seed=10)
    words = ["red", "green", "blue", "apple", "pear", "plum", "car", "bus", "ship", "cat", "dog"]
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(words, size=12)) for _ in range(12)]
    frame = pd.DataFrame(copies[1], index=list("abcdefghijkl"))
    X = [copies[0], frame, sparse.csr_array(copies[2]), gram_matrix(copies[3])]
    sorting = MultiwaySorting(["rbf", "rbf", "rbf", "precomputed"]).fit(X)
    assert share_right(sorting.permutations_, places) == 1.0
    reordered = sorting.reorder([texts, *X[1:3], texts])
    assert reordered[0] == texts
    assert list(reordered[1].index) == [frame.index[i] for i in sorting.permutations_[1]]
    assert np.allclose(reordered[2].toarray(), copies[0])
    assert isinstance(reordered[3], list)


def test_documents_of_three_languages_are_aligned():
    random = np.random.default_rng(1)
    topics = random.dirichlet(np.full(5, 0.3), size=20)
    shares = random.dirichlet(np.full(30, 0.2), size=5)
    collections, places = [], []
    for language in "xyz":
        order = random.permutation(20)
        chances = topics @ shares
        words = [f"{language}{number:02d}w" for number in range(30)]
        texts = [" ".join(random.choice(words, size=3000, p=chance)) for chance in chances]
        collections.append([texts[i] for i in order])
        places.append(np.argsort(order))
    sorting = MultiwaySorting("text").fit(collections)
    assert share_right(sorting.permutations_, places) > 0.9


def test_a_stack_of_three_dimensions_is_several_collections():
    copies, places = noisy_copies(3, 12, seed=11)
    sorting = MultiwaySorting().fit(np.array(copies))
    assert share_right(sorting.permutations_, places) == 1.0


def test_precomputed_kernels_give_the_alignment_of_the_data():
    copies, _ = noisy_copies(3, 12, noise=0.2, seed=12)
    data = MultiwaySorting().fit(copies)
    grams = MultiwaySorting("precomputed").fit([gram_matrix(copy) for copy in copies])
    assert np.array_equal(data.permutations_, grams.permutations_)


def test_inputs_and_parameters_stay_as_they_are():
    copies, _ = noisy_copies(3, 10, seed=13)
    kept = [copy.copy() for copy in copies]
    sorting = MultiwaySorting(gamma=0.5, n_init=2)
    sorting.fit(copies, None)
    assert all(np.array_equal(a, b) for a, b in zip(copies, kept, strict=True))
    assert sorting.get_params() == clone(sorting).get_params()
    again = pickle.loads(pickle.dumps(sorting))
    assert np.array_equal(again.permutations_, sorting.permutations_)


def test_the_tags_say_that_one_table_is_not_enough():
    tags = MultiwaySorting().__sklearn_tags__()
    assert tags.input_tags.three_d_array
    assert not tags.input_tags.two_d_array


def test_too_few_sweeps_warn():
    copies, _ = noisy_copies(4, 20, noise=0.7, seed=14)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 sweeps.*Raise max_iter"):
        sorting = MultiwaySorting(max_iter=1, tol=0.0, trust=False).fit(copies)
    assert not sorting.converged_


def test_each_step_is_reported_in_the_numbering_of_the_user():
    copies, _ = noisy_copies(3, 12, noise=0.5, seed=15)
    seen = []
    sorting = MultiwaySorting(callback=lambda state: seen.append(state)).fit(copies)
    assert [state.iteration for state in seen] == list(range(1, len(seen) + 1))
    assert all(is_alignment(state.permutation, 3, 12) for state in seen)
    assert max(state.objective for state in seen) == pytest.approx(sorting.objective_)
    fractions = [state.fraction for state in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("last", [1, 3])
def test_a_callback_stops_with_the_best_alignment_so_far(objective, n_jobs, last):
    copies, _ = noisy_copies(3, 12, noise=0.6, seed=16)
    seen = []

    def stop(state):
        seen.append(state)
        return state.iteration >= last

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sorting = MultiwaySorting(objective=objective, n_jobs=n_jobs, callback=stop).fit(copies)
    assert len(seen) == last
    assert sorting.converged_ is False
    assert is_alignment(sorting.permutations_, 3, 12)
    if n_jobs == 1:  # else another thread may have got further meanwhile
        assert sorting.objective_ == pytest.approx(max(state.objective for state in seen))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_keeps_the_best_alignment_and_goes_on_to_the_caller(objective, n_jobs):
    copies, _ = noisy_copies(3, 12, noise=0.6, seed=17)

    def interrupt(state):
        if state.iteration == 2:
            raise KeyboardInterrupt

    sorting = MultiwaySorting(objective=objective, n_jobs=n_jobs, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        sorting.fit(copies)
    assert is_alignment(sorting.permutations_, 3, 12)
    assert sorting.converged_ is False
    assert len(sorting.reorder(copies)) == 3


def test_reordering_needs_a_fit():
    with pytest.raises(NotFittedError):
        MultiwaySorting().reorder([[1, 2], [3, 4]])
