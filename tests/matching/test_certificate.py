import itertools

import numpy as np
import pytest

from unshuffle import KernelizedSorting
from unshuffle.kernels import center, rbf_kernel, zero_diagonal

pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.matching.DoubtWarning")


def two_collections(n_first, n_second, seed=0):
    random = np.random.default_rng(seed)
    return random.exponential(size=(n_first, 3)), random.exponential(size=(n_second, 3))


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_the_highest_objective_of_all_matchings(seed):
    X, y = two_collections(7, 7, seed)
    sorting = KernelizedSorting(kernel="rbf", gamma=0.3).fit(X, y)
    certificate = sorting.certificate()
    K, L = (zero_diagonal(center(rbf_kernel(each, gamma=0.3))) for each in (X, y))
    values = {p: (K * L[np.ix_(p, p)]).sum() for p in itertools.permutations(range(7))}
    assert certificate.upper_bound == pytest.approx(max(values.values()))
    assert values[tuple(certificate.col_ind)] == pytest.approx(max(values.values()))
    assert certificate.fun == pytest.approx(sorting.objective_)
    short = (max(values.values()) - sorting.objective_) / sorting.objective_
    assert certificate.gap == pytest.approx(short, abs=1e-9)


def test_copies_have_the_highest_objective():
    X, _ = two_collections(20, 20)
    sorting = KernelizedSorting(kernel="rbf").fit(X, X[::-1])
    certificate = sorting.certificate()
    assert certificate.gap == 0.0
    assert np.array_equal(certificate.col_ind, sorting.permutation_)


@pytest.mark.parametrize("sizes", [(6, 8), (8, 6)])
def test_collections_of_different_sizes_have_one_too(sizes):
    sorting = KernelizedSorting(kernel="rbf").fit(*two_collections(*sizes))
    certificate = sorting.certificate()
    assert certificate.fun <= certificate.upper_bound
    assert certificate.col_ind.shape == (sizes[0],)
    assert (certificate.col_ind >= 0).sum() == 6


def test_frozen_pairs_are_kept():
    sorting = KernelizedSorting(kernel="rbf").fit(
        *two_collections(10, 10), frozen=[(0, 3), (4, 1)]
    )
    assert sorting.certificate().col_ind[[0, 4]].tolist() == [3, 1]


def test_the_cost_is_part_of_the_objective():
    cost = np.random.default_rng(1).normal(size=(9, 9))
    sorting = KernelizedSorting(kernel="rbf").fit(*two_collections(9, 9), cost=cost)
    paid = (cost - np.median(cost))[np.arange(9), sorting.permutation_].sum()
    assert sorting.certificate().fun == pytest.approx(sorting.objective_ - paid)


def test_large_collections_have_none():
    sorting = KernelizedSorting(kernel="rbf", trust=False).fit(*two_collections(70, 70))
    with pytest.raises(ValueError, match="at most 64 items"):
        sorting.certificate()


def test_released_pairs_have_none():
    sorting = KernelizedSorting(kernel="rbf", unmatched_cost=0.1).fit(*two_collections(20, 20))
    assert (sorting.permutation_ < 0).any()
    with pytest.raises(ValueError, match="unmatched_cost=None"):
        sorting.certificate()
