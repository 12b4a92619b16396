import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from tests.counts import few

from unshuffle import KernelizedSorting

pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")

# Fixed draws: an ascent promises a local optimum, and rounding may choose between two of them.
sizes = st.integers(5, 16)
seeds = st.integers(0, 10_000)
noises = st.sampled_from([0.0, 0.02])


@few
@given(n_items=sizes, seed=seeds, noise=noises, data=st.data())
def test_reordering_x_reorders_the_answer(paired_points, n_items, seed, noise, data):
    X, y, _ = paired_points(n_items, seed, noise=noise)
    order = list(data.draw(st.permutations(range(n_items))))
    plain, reordered = KernelizedSorting().fit(X, y), KernelizedSorting().fit(X[order], y)
    assert np.array_equal(reordered.permutation_, plain.permutation_[order])
    assert reordered.objective_ == pytest.approx(plain.objective_)


@few
@given(n_items=sizes, seed=seeds, noise=noises, data=st.data())
def test_reordering_y_relabels_the_answer(paired_points, n_items, seed, noise, data):
    X, y, _ = paired_points(n_items, seed, noise=noise)
    order = np.array(data.draw(st.permutations(range(n_items))))
    plain, reordered = KernelizedSorting().fit(X, y), KernelizedSorting().fit(X, y[order])
    assert np.array_equal(order[reordered.permutation_], plain.permutation_)
    assert reordered.objective_ == pytest.approx(plain.objective_)


@few
@given(n_items=sizes, seed=seeds, noise=noises, extra_items=st.sampled_from([0, 4]))
def test_exchanging_the_collections_inverts_the_answer(
    paired_points, n_items, seed, noise, extra_items
):
    X, y, _ = paired_points(n_items, seed, noise=noise, extra_y=extra_items)
    there, back = KernelizedSorting().fit(X, y), KernelizedSorting().fit(y, X)
    assert np.array_equal(back.permutation_[there.permutation_], np.arange(n_items))
    assert set(map(tuple, back.pairs_[:, ::-1])) == set(map(tuple, there.pairs_))
    assert back.objective_ == pytest.approx(there.objective_)
    assert (back.permutation_ == -1).sum() == extra_items
    assert np.all(back.confidence_[back.permutation_ == -1] == 0.0)


@few
@given(
    n_items=sizes,
    seed=seeds,
    scale=st.sampled_from([1e-6, 0.3, 7.0, 1e5]),
    shift=st.floats(-100, 100),
    angle=st.floats(0, 2 * np.pi),
)
def test_scaling_shifting_and_rotating_features_change_nothing(
    paired_points, n_items, seed, scale, shift, angle
):
    X, y, _ = paired_points(n_items, seed, noise=0.02)
    rotation = np.eye(3)
    rotation[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    plain = KernelizedSorting().fit(X, y)
    moved = KernelizedSorting().fit(X, scale * (y @ rotation + shift))
    assert np.array_equal(moved.permutation_, plain.permutation_)
    assert moved.objective_ == pytest.approx(plain.objective_, rel=1e-5)


@few
@given(n_items=sizes, extra=st.sampled_from([0, 3]), seed=seeds, data=st.data())
def test_frozen_pairs_survive_any_row_order(paired_points, n_items, extra, seed, data):
    X, y, _ = paired_points(n_items, seed, noise=0.5, extra_y=extra)
    random = np.random.default_rng(seed)
    n_frozen = data.draw(st.integers(1, n_items))
    rows = random.permutation(n_items)[:n_frozen]
    frozen = np.column_stack([rows, random.permutation(n_items + extra)[:n_frozen]])
    shuffled = frozen[list(data.draw(st.permutations(range(n_frozen))))]
    one, other = (KernelizedSorting().fit(X, y, frozen=pairs) for pairs in (frozen, shuffled))
    assert np.array_equal(one.permutation_[frozen[:, 0]], frozen[:, 1])
    assert np.array_equal(one.permutation_, other.permutation_)
    swapped = KernelizedSorting().fit(y, X, frozen=shuffled[:, ::-1])
    assert np.array_equal(swapped.permutation_[frozen[:, 1]], frozen[:, 0])


@pytest.mark.parametrize("method", ["classic", "unbiased", "entropy", "refined"])
def test_frozen_pairs_survive_every_method(paired_points, method):
    X, y, _ = paired_points(14, 3, noise=0.5)
    frozen = np.array([[9, 0], [2, 13], [5, 5]])
    sorting = KernelizedSorting(method=method).fit(X, y, frozen=frozen)
    assert np.array_equal(sorting.permutation_[frozen[:, 0]], frozen[:, 1])


@few
@given(
    n_items=sizes,
    seed=seeds,
    method=st.sampled_from(["refined", "classic", "unbiased", "entropy"]),
    noise=st.sampled_from([0.0, 0.5]),
)
def test_the_number_of_threads_changes_nothing(paired_points, n_items, seed, method, noise):
    X, y, _ = paired_points(n_items, seed, noise=noise)
    one, two = (KernelizedSorting(method=method, n_jobs=n).fit(X, y) for n in (1, 2))
    assert np.array_equal(one.permutation_, two.permutation_)
    assert np.array_equal(one.confidence_, two.confidence_)
    assert np.array_equal(one.objective_path_, two.objective_path_)
    assert (one.objective_, one.ambiguity_) == (two.objective_, two.ambiguity_)
    assert (one.n_iter_, one.converged_) == (two.n_iter_, two.converged_)


def test_the_same_random_state_gives_the_same_answer(paired_points):
    X, y, _ = paired_points(25, 0, noise=1.0)
    fits = [KernelizedSorting(n_init=14, random_state=3).fit(X, y) for _ in range(2)]
    assert np.array_equal(fits[0].permutation_, fits[1].permutation_)
    assert np.array_equal(fits[0].confidence_, fits[1].confidence_)
    by_instance = KernelizedSorting(n_init=14, random_state=np.random.RandomState(3)).fit(X, y)
    assert np.array_equal(fits[0].permutation_, by_instance.permutation_)


def test_fit_changes_neither_its_inputs_nor_its_parameters(paired_points):
    X, y, truth = paired_points(20, 1, noise=0.1)
    frozen = np.array([[5, truth[5]], [0, truth[0]]])
    cost = np.random.default_rng(0).normal(size=(20, 20)) * 1e-3
    inputs = [X, y, frozen, cost]
    before = copy.deepcopy(inputs)
    weights = np.array([2.0, 1.0])
    sorting = KernelizedSorting(["rbf", "linear"], kernel_weights=weights, random_state=0)
    params = copy.deepcopy(sorting.get_params())
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    sorting.fit(X, y, frozen=frozen, cost=cost)
    for now, then in zip(inputs, before, strict=True):
        assert np.array_equal(now, then)
    assert np.array_equal(sorting.kernel_weights, params.pop("kernel_weights"))
    assert {key: sorting.get_params()[key] for key in params} == params
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_read_only_collections_are_fine(paired_points):
    X, y, truth = (array.copy() for array in paired_points(15, 2))
    for array in (X, y):
        array.setflags(write=False)
    assert np.array_equal(KernelizedSorting().fit(X, y).permutation_, truth)


def test_precomputed_kernels_are_not_changed(paired_points):
    X, y, _ = paired_points(15, 3)
    K, L = X @ X.T, y @ y.T
    before = K.copy(), L.copy()
    KernelizedSorting("precomputed").fit(K, L)
    KernelizedSorting(["precomputed", "precomputed"]).fit([K, K], [L, L])
    assert np.array_equal(K, before[0])
    assert np.array_equal(L, before[1])


def test_fitting_again_forgets_the_first_fit(paired_points):
    sorting = KernelizedSorting(unmatched_cost=0.1).fit(*paired_points(20, 4, noise=0.5)[:2])
    X, y, _ = paired_points(12, 5, noise=0.1)
    again, fresh = sorting.fit(X, y), KernelizedSorting(unmatched_cost=0.1).fit(X, y)
    assert np.array_equal(again.permutation_, fresh.permutation_)
    assert np.array_equal(again.soft_matches(), fresh.soft_matches())
    assert len(again.matches_.names_x) == 12


def test_a_clone_is_unfitted_and_has_the_same_parameters():
    sorting = KernelizedSorting("linear", n_init=3, method="classic", step="line_search")
    copied = clone(sorting)
    assert copied.get_params() == sorting.get_params()
    assert not hasattr(copied, "permutation_")
    assert copied.set_params(n_init=5).n_init == 5
    assert sorting.n_init == 3


def test_a_fitted_estimator_survives_pickling(paired_points):
    X, y, _ = paired_points(15, 6, noise=0.1)
    sorting = KernelizedSorting(random_state=0).fit(X, y, frozen=[(0, 0)])
    loaded = pickle.loads(pickle.dumps(sorting))
    assert np.array_equal(loaded.permutation_, sorting.permutation_)
    assert np.array_equal(loaded.candidates(3), sorting.candidates(3))
    assert np.array_equal(loaded.reorder(y), sorting.reorder(y))
    assert loaded.matches_.named_pairs() == sorting.matches_.named_pairs()
    assert loaded.get_params() == sorting.get_params()


def test_only_changed_parameters_are_printed():
    assert repr(KernelizedSorting()) == "KernelizedSorting()"
    printed = repr(KernelizedSorting("text", n_init=4, kernel_weights=None))
    assert printed == "KernelizedSorting(kernel='text', n_init=4)"


def test_every_parameter_of_the_constructor_can_be_read_back():
    names = (
        "kernel kernel_y gamma method n_init max_iter tol unmatched_cost random_state n_jobs "
        "callback kernel_weights trust step device"
    )
    assert sorted(KernelizedSorting().get_params()) == sorted(names.split())
    in_order = KernelizedSorting("linear", "rbf", 2.0, "classic", 3, 50, 1e-3, 0.5, 7, 1, print)
    expected = ["linear", "rbf", 2.0, "classic", 3, 50, 1e-3, 0.5, 7, 1, print]
    assert [in_order.get_params()[name] for name in names.split()[:11]] == expected
