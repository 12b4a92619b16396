import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from unshuffle import KernelizedSorting, MultiwaySorting
from unshuffle._quadratic.problem import QuadraticProblem
from unshuffle.kernels import SpectralPower, center, combined_gram, gram_matrix, zero_diagonal
from unshuffle.matching._dense.entropy import entropy_value
from unshuffle.matching._dense.search import POWERS
from unshuffle.metrics._dependence import hsic_biased

pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")

PAPER = [("classic", "set"), ("unbiased", "set"), ("unbiased", "line_search"), ("entropy", "set")]


def watched(X, y, **params):
    """A fit, and the matchings that led to its answer."""
    seen = []
    sorting = KernelizedSorting(callback=lambda state: seen.append(state), **params).fit(X, y)
    length = len(sorting.objective_path_)
    # One start after the other, so the steps that led to the answer stand together.
    path = next(
        seen[first : first + length]
        for first in range(len(seen) - length + 1)
        if np.array_equal(
            [state.objective for state in seen[first : first + length]], sorting.objective_path_
        )
    )
    return sorting, [state.permutation for state in path]


@pytest.mark.parametrize(("method", "step"), PAPER)
def test_each_method_finds_a_strongly_skewed_line(method, step):
    # One dimension, far from symmetric: the leading eigenvector already sorts it.
    x = np.random.default_rng(0).exponential(size=25).cumsum()[:, None] ** 2
    order = np.random.default_rng(1).permutation(25)
    sorting = KernelizedSorting(method=method, step=step).fit(x, 3 * x[order] + 2)
    assert np.array_equal(order[sorting.permutation_], np.arange(25))
    assert sorting.converged_
    assert sorting.n_iter_ >= 1


@pytest.mark.parametrize(("method", "step"), PAPER)
@pytest.mark.parametrize("seed", range(3))
def test_each_method_ends_at_a_permutation_better_than_chance(paired_points, method, step, seed):
    X, y, _ = paired_points(30, seed, noise=0.1)
    sorting = KernelizedSorting(method=method, step=step).fit(X, y)
    assert np.array_equal(np.sort(sorting.permutation_), np.arange(30))
    K, L = (zero_diagonal(center(gram_matrix(each))) for each in (X, y))
    random = np.random.default_rng(seed)
    chance = [np.sum(K * L[np.ix_(p, p)]) for p in (random.permutation(30) for _ in range(50))]
    assert sorting.objective_ > max(chance)


@pytest.mark.parametrize("seed", range(5))
def test_classic_never_lowers_the_biased_objective(paired_points, seed):
    X, y, _ = paired_points(30, seed, noise=0.3)
    _, path = watched(X, y, method="classic")
    K, L = gram_matrix(X), gram_matrix(y)
    values = [hsic_biased(K, L[np.ix_(p, p)]) for p in path]
    assert len(values) > 1
    assert np.all(np.diff(values) > 0)


@pytest.mark.parametrize("step", ["set", "line_search"])
@pytest.mark.parametrize("seed", range(5))
def test_unbiased_ends_no_lower_than_it_started(paired_points, step, seed):
    X, y, _ = paired_points(30, seed, noise=0.3)
    sorting, path = watched(X, y, method="unbiased", step=step)
    K, L = (zero_diagonal(center(gram_matrix(each))) for each in (X, y))
    values = [np.sum(K * L[np.ix_(p, p)]) for p in path]
    assert values[-1] >= values[0]
    assert sorting.objective_ == pytest.approx(values[-1])


@pytest.mark.parametrize("seed", range(5))
def test_entropy_lowers_the_joint_entropy_at_every_step(paired_points, seed):
    X, y, _ = paired_points(30, seed, noise=0.3)
    _, path = watched(X, y, method="entropy")
    K, L = gram_matrix(X), gram_matrix(y)
    values = [entropy_value(K, L, p, ridge=1e-2) for p in path]
    assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize("seed", range(3))
def test_refined_reaches_no_lower_objective_than_classic(paired_points, seed):
    X, y, truth = paired_points(40, seed, noise=0.1)
    refined = KernelizedSorting("rbf", gamma=0.3).fit(X, y)
    classic = KernelizedSorting("rbf", gamma=0.3, method="classic").fit(X, y)
    assert max(refined.objective_path_) >= classic.objective_ - 1e-9
    assert np.sum(refined.permutation_ == truth) >= np.sum(classic.permutation_ == truth)


def test_the_path_of_refined_rises_while_a_start_is_climbed(paired_points):
    X, y, _ = paired_points(40, 0, noise=0.5)
    climbing = []

    def watch(state):
        if state.stage == "climbing":
            climbing.append(state.objective)

    sorting = KernelizedSorting(n_init=1, callback=watch).fit(X, y)
    assert len(climbing) > 1
    assert np.all(np.diff(climbing) > 0)
    assert np.array_equal(sorting.objective_path_[: len(climbing)], climbing)


@pytest.mark.parametrize("method", ["classic", "unbiased", "refined"])
@pytest.mark.parametrize(("extra_x", "extra_y"), [(0, 8), (8, 0)])
def test_sizes_may_differ(paired_points, method, extra_x, extra_y):
    X, y, _ = paired_points(20, 1, extra_x=extra_x, extra_y=extra_y)
    sorting = KernelizedSorting(method=method).fit(X, y)
    assert sorting.permutation_.shape == (20 + extra_x,)
    assert len(sorting.pairs_) == 20
    assert np.unique(sorting.pairs_[:, 1]).size == 20


def test_more_starts_never_lower_the_best_objective_of_the_climb(paired_points):
    X, y, _ = paired_points(40, 3, noise=1.0)

    def best_climb(n_init):
        values = []
        KernelizedSorting(
            n_init=n_init,
            random_state=0,
            callback=lambda state: (
                values.append(state.objective) if state.stage == "climbing" else None
            ),
        ).fit(X, y)
        return max(values)

    reached = [best_climb(n_init) for n_init in (1, 3, 8, 16)]
    assert np.all(np.diff(reached) >= 0)


@pytest.mark.parametrize("method", ["classic", "unbiased", "entropy", "refined"])
def test_stopping_at_max_iter_warns(paired_points, method):
    X, y, _ = paired_points(40, 2, noise=0.5)
    sorting = KernelizedSorting(method=method, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 .*Raise max_iter"):
        sorting.fit(X, y)
    assert sorting.converged_ is False
    assert np.array_equal(np.sort(sorting.permutation_), np.arange(40))


def test_a_larger_tol_stops_sooner(paired_points):
    X, y, _ = paired_points(40, 2, noise=0.5)
    coarse = KernelizedSorting(method="classic", tol=0.5).fit(X, y)
    fine = KernelizedSorting(method="classic", tol=0.0).fit(X, y)
    assert coarse.n_iter_ < fine.n_iter_
    assert coarse.objective_ <= fine.objective_


def test_ties_everywhere_still_end():
    # Groups of exact duplicates: many matchings are equally good.
    X = np.repeat(np.array([[0.0], [1.0], [5.0], [20.0]]), 4, axis=0)
    order = np.random.default_rng(0).permutation(16)
    for method in ("classic", "unbiased", "entropy", "refined"):
        sorting = KernelizedSorting(method=method).fit(X, X[order])
        assert sorting.converged_
        assert np.array_equal(X[order][sorting.permutation_], X)


def test_entropy_of_an_indefinite_kernel_is_refused_with_a_way_out():
    random = np.random.default_rng(0)
    K = random.normal(size=(12, 12))
    with pytest.raises(ValueError, match=r'positive semi-definite.*method="refined"'):
        KernelizedSorting("precomputed", method="entropy").fit(K + K.T, K + K.T)


def test_entropy_of_unequal_sizes_is_refused_with_a_way_out(paired_points):
    X, y, _ = paired_points(12)
    with pytest.raises(ValueError, match=r'one size, got 12 and 10 items.*method="refined"'):
        KernelizedSorting(method="entropy").fit(X, y[:10])


@pytest.mark.parametrize("n_second", [25, 30])
def test_each_stage_of_the_path_is_computed_once(monkeypatch, n_second):
    powers, decomposed = [], []
    whole, raised = SpectralPower.__init__, SpectralPower.__call__

    def init(self, K, **options):
        decomposed.append(len(K))
        whole(self, K, **options)

    def call(self, exponent):
        powers.append((len(self.eigenvectors_), exponent))
        return raised(self, exponent)

    monkeypatch.setattr(SpectralPower, "__init__", init)
    monkeypatch.setattr(SpectralPower, "__call__", call)
    X = np.random.default_rng(0).exponential(size=(30, 3))
    KernelizedSorting(n_init=4, random_state=0, trust=False).fit(X[:25], 2.0 * X[:n_second])
    assert sorted(powers) == sorted((size, power) for power in POWERS for size in (25, n_second))
    assert len(decomposed) == 2


@pytest.mark.parametrize(("n_first", "n_second"), [(25, 25), (25, 30), (30, 25)])
def test_each_stage_builds_one_problem_and_the_starts_none(monkeypatch, n_first, n_second):
    shapes = []
    build = QuadraticProblem.__post_init__

    def counted(self):
        build(self)
        shapes.append(self.shape)

    monkeypatch.setattr(QuadraticProblem, "__post_init__", counted)
    X = np.random.default_rng(0).exponential(size=(30, 3))
    sorting = KernelizedSorting(n_init=12, trust=False)
    sorting.fit(X[:n_first], 2.0 * X[:n_second], frozen=[(3, 3)])
    smaller, larger = sorted((n_first, n_second))
    # One more tells which items could exchange partners.
    assert shapes == [(smaller, larger)] * (2 + len(POWERS))


@pytest.mark.parametrize("shift", [1e6, 1e8, 1e12])
def test_linear_kernels_find_all_pairs_however_far_the_origin_is(shift):
    random = np.random.default_rng(0)
    X = random.exponential(size=(40, 3)) * [3.0, 2.0, 1.0]
    order = random.permutation(40)
    y = (X @ np.linalg.qr(random.normal(size=(3, 3)))[0])[order]
    sorting = KernelizedSorting("linear").fit(X + shift, y + shift)
    np.testing.assert_array_equal(order[sorting.permutation_], np.arange(40))
    several = MultiwaySorting("linear").fit([X + shift, y + shift, 2.0 * X[order] + shift])
    for found in several.permutations_[1:]:
        np.testing.assert_array_equal(order[found], np.arange(40))


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_kernels_whose_objective_overflows_are_refused(scale):
    X = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(ValueError, match="sums of their products do not fit into a float"):
        KernelizedSorting("linear").fit(scale * X, scale * X)


@pytest.mark.parametrize("n_second", [7, 11])
def test_kernels_too_large_are_named_in_the_order_they_were_given(n_second):
    X = np.random.default_rng(0).normal(size=(11, 2))
    K, L = 1e150 * combined_gram(X[:9], "rbf"), 1e149 * combined_gram(X[:n_second], "rbf")
    with pytest.raises(ValueError, match=r"X and y hold .* up to 1e\+150 and 1e\+149,"):
        KernelizedSorting("precomputed").fit(K, L)


def test_the_linear_kernel_is_the_same_for_sparse_and_dense():
    X = np.random.default_rng(0).exponential(size=(30, 4)) * [0.0, 1.0, 2.0, 3.0]
    X[::3, 1] = 0.0
    dense = combined_gram(X, "linear", center=True)
    np.testing.assert_allclose(
        combined_gram(sparse.csr_matrix(X), "linear", center=True), dense, atol=1e-12
    )
    thin = X * (np.random.default_rng(1).random(X.shape) < 0.3)
    np.testing.assert_allclose(
        combined_gram(sparse.csr_matrix(thin), "linear", center=True),
        combined_gram(thin, "linear", center=True),
        atol=1e-12,
    )
