"""Dual ascent keeps the value of every matching, and its tree may be cut at any place."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import many

from unshuffle.assignment._exact import bounds as _quadratic_bounds
from unshuffle.assignment._exact.ascent import ascend
from unshuffle.assignment._exact.bounds import BoundProblem, gilmore_lawler, prove
from unshuffle.assignment._exact.symmetries import representatives

seeds = st.integers(0, 2**32 - 1)


def random_problem(seed, *, n=None, whole=False):
    """Problem of up to 6 rows and 7 columns, with entries of both signs."""
    random = np.random.default_rng(seed)
    n = random.integers(1, 7) if n is None else n
    m = random.integers(n, 8)
    shapes = (n, n), (m, m), (n, m)
    if whole:
        A, B, C = (random.integers(-3, 4, size=shape).astype(float) for shape in shapes)
    else:
        A, B, C = (10.0 ** random.integers(-6, 7) * random.normal(size=shape) for shape in shapes)
    if random.random() < 0.5:
        A, B = A + A.T, B + B.T
    return BoundProblem(A, B, C * (random.random() < 0.5), random.choice([0.0, 0.5]))


def optimum(problem):
    n, m = problem.C.shape
    return min(problem.value(np.array(p)) for p in itertools.permutations(range(m), n))


def published(shared_data, name):
    data = np.load(shared_data("qaplib.npz"))
    A, B = (data[f"{name}_{part}"].astype(float) for part in "AB")
    return BoundProblem(A, B, np.zeros(A.shape)), float(data[f"{name}_best"])


def reformed_value(pairs, leader, bound, order):
    """Value of a matching of all rows, added ones too, from the costs of a node."""
    m = len(order)
    both = zip(pairs, itertools.combinations(range(m), 2), strict=True)
    placed = sum(block[order[i], order[j]] for block, (i, j) in both)
    return bound + leader[np.arange(m), list(order)].sum() + placed


@given(seeds, st.sampled_from([np.inf, 0.3, 0.0]))
def test_ascent_keeps_the_value_of_each_matching_below_the_threshold(seed, share):
    problem = random_problem(seed, n=4)
    n, m = problem.C.shape
    orders = list(itertools.permutations(range(m)))[:: 1 + (m > 5) * 12]
    pairs, leader, bound, step = problem.pair_costs(), np.zeros((m, m)), 0.0, 0
    leader[:n] = problem.C
    values = [problem.value(np.array(order[:n])) for order in orders]
    least = optimum(problem)
    threshold = 1e300 if share == np.inf else least + share * (max(values) - least)
    matching = np.zeros(m, dtype=np.intp)
    for temperature in (0.0, 0.0, 0.01 * abs(least), 0.01 * abs(least), 0.0, 0.0):
        bound, step, is_over = ascend(
            pairs, leader, bound, threshold, 1e300, temperature, step, m * m, matching
        )
        assert leader.min() >= 0.0
        assert all(block[~np.eye(m, dtype=bool)].min() >= 0.0 for block in pairs)
        for order, value in zip(orders, values, strict=True):
            kept = reformed_value(pairs, leader, bound, order)
            if value < threshold:
                assert kept == pytest.approx(value, abs=100.0 * problem.rounding)
            else:
                assert kept >= threshold - 100.0 * problem.rounding
        if is_over:
            break


@many
@given(seeds, st.booleans(), st.floats(0.0, 6.0))
def test_a_bound_is_valid_wherever_the_work_ends(seed, whole, digits):
    problem = random_problem(seed, whole=whole)
    n = problem.A.shape[0]
    proof = prove(problem, np.arange(n), step=0.5 * whole, max_work=10.0**digits)
    least = optimum(problem)
    rounding = 10.0 * problem.rounding
    assert gilmore_lawler(problem) - rounding <= least
    assert proof.bound - rounding <= least <= proof.value + rounding
    assert problem.value(proof.permutation) == proof.value
    assert proof.optimal == (proof.bound >= proof.value)


@given(seeds, st.booleans())
def test_the_order_of_items_does_not_change_the_optimum(seed, whole):
    problem = random_problem(seed, whole=whole)
    (n, m), random = problem.C.shape, np.random.default_rng(seed)
    rows, columns = random.permutation(n), random.permutation(m)
    A, B = problem.A[np.ix_(rows, rows)], problem.B[np.ix_(columns, columns)]
    shuffled = BoundProblem(A, B, problem.C[np.ix_(rows, columns)], problem.w)
    one, other = (prove(each, random.permutation(m)[:n]) for each in (problem, shuffled))
    assert one.optimal
    assert other.optimal
    assert one.value == pytest.approx(other.value, abs=10.0 * problem.rounding)


@pytest.mark.parametrize(
    ("name", "bound"), [("tai12a", 195918), ("had14", 2492), ("rou20", 599948), ("bur26a", None)]
)
def test_bounds_of_gilmore_and_lawler_are_those_of_the_library(shared_data, name, bound):
    problem, best = published(shared_data, name)
    found = gilmore_lawler(problem)
    assert found <= best
    if bound is not None:
        assert np.ceil(found - 1e-6) == bound


@pytest.mark.parametrize("name", ["nug12", "rou12", "scr12", "chr12a", "tai12a", "had14"])
def test_published_optima_are_proved(shared_data, name):
    problem, best = published(shared_data, name)
    proof = prove(problem, np.arange(problem.A.shape[0]), step=2.0, max_work=np.inf)
    assert proof.optimal
    assert proof.value == best


def test_a_late_start_returns_the_bound_of_gilmore_and_lawler(shared_data):
    problem, _ = published(shared_data, "nug15")
    proof = prove(problem, np.arange(15), deadline=time.monotonic() - 1.0)
    assert proof.bound == pytest.approx(963.0)
    assert not proof.optimal


def test_problems_too_large_for_the_ascent_are_bounded(monkeypatch):
    problem = random_problem(0, n=6)
    unlimited = prove(problem, np.arange(6))
    for name in ("LARGEST_TREE", "LARGEST_ASCENT"):
        monkeypatch.setattr(_quadratic_bounds, name, 5)
        proof = prove(problem, np.arange(6))
        assert proof.bound <= unlimited.value
        assert proof.n_nodes <= 1


def orbits(M):
    """Orbits of the symmetries of M by trying all orders."""
    n = M.shape[0]
    symmetries = [p for p in itertools.permutations(range(n)) if (M[np.ix_(p, p)] == M).all()]
    return {frozenset(p[a] for p in symmetries) for a in range(n)}


@given(seeds, st.booleans())
def test_one_item_of_each_orbit_is_placed(seed, symmetric):
    random = np.random.default_rng(seed)
    M = (random.random((5, 5)) < 0.4).astype(float)
    M = M + M.T if symmetric else M
    np.fill_diagonal(M, 0.0)
    none = np.empty(0, dtype=np.intp)
    first = representatives(M, np.zeros((5, 1)), np.arange(5), none)
    assert all(sum(first[list(orbit)]) == 1 for orbit in orbits(M))


def test_costs_and_placed_items_break_symmetries():
    n = 6
    ring = np.zeros((n, n))
    ring[np.arange(n), np.arange(1, n + 1) % n] = 1.0
    ring += ring.T
    items, none, alike = np.arange(n), np.empty(0, dtype=np.intp), np.zeros((n, 1))
    assert representatives(ring, alike, items, none).sum() == 1
    one = (items == 0).astype(float)[:, None]
    assert representatives(ring, one, items, none).sum() == 4
    placed = np.array([0])
    assert representatives(ring, alike[1:], items[1:], placed).sum() == 3
