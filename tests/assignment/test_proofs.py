"""Bounds are never above the optimum, and proofs find it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from tests.counts import many

from unshuffle.assignment._exact.bounds import BoundProblem, gilmore_lawler, prove


@st.composite
def problems(draw):
    """Small problem of any kind, and its step."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 5))
    m = n + draw(st.sampled_from([0, 0, 1, 2]))
    whole, symmetric, sparse = (draw(st.booleans()) for _ in range(3))

    def numbers(*shape):
        values = random.integers(-3, 6, size=shape) if whole else random.normal(size=shape)
        kept = random.random(shape) < 0.6 if sparse else 1.0
        return kept * values

    A, B, C = numbers(n, n), numbers(m, m), numbers(n, m)
    if symmetric:
        A, B = A + A.T, B + B.T
    np.fill_diagonal(A, 0.0)
    np.fill_diagonal(B, 0.0)
    if draw(st.booleans()):
        C[:] = 0.0
    w = draw(st.sampled_from([0.0, 0.5]))
    return BoundProblem(A, B, C, w), 1.0 if whole and w == 0.0 else 0.0


def all_values(problem):
    n, m = problem.C.shape
    return {p: problem.value(np.array(p)) for p in itertools.permutations(range(m), n)}


@given(problems(), st.integers(0, 2**32 - 1))
def test_values_are_the_sums_they_stand_for(drawn, seed):
    problem, _ = drawn
    n, m = problem.C.shape
    p = np.random.default_rng(seed).permutation(m)[:n]
    B = problem.B[np.ix_(p, p)]
    expected = (problem.A * B).sum() + problem.w * (B * B).sum() + problem.C[np.arange(n), p].sum()
    assert problem.value(p) == pytest.approx(expected, abs=1e-9)


@many
@given(problems())
def test_the_bound_of_gilmore_and_lawler_is_never_above_the_optimum(drawn):
    problem, _ = drawn
    assert gilmore_lawler(problem) <= min(all_values(problem).values()) + 1e-9


@many
@given(problems(), st.booleans())
def test_proofs_find_the_optimum_from_the_worst_start(drawn, stepped):
    problem, step = drawn
    values = all_values(problem)
    worst = np.array(max(values, key=values.get))
    proof = prove(problem, worst, step=step if stepped else 0.0)
    assert proof.optimal
    assert proof.bound == proof.value == pytest.approx(min(values.values()), abs=1e-9)
    assert problem.value(proof.permutation) == proof.value
    assert np.unique(proof.permutation).size == problem.A.shape[0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sizes", [(8, 8), (6, 9)])
@pytest.mark.parametrize("kind", ["plain", "symmetric", "grid", "squares"])
def test_larger_proofs_agree_with_enumeration(seed, sizes, kind):
    random = np.random.default_rng(seed)
    (n, m), w = sizes, 0.0
    A, B = random.integers(0, 9, size=(n, n)), random.integers(0, 9, size=(m, m))
    if kind == "grid":  # which has symmetries
        places = np.argwhere(np.ones((4, 3)))[:m]
        B = np.abs(places[:, None] - places).sum(axis=-1)
    if kind != "plain":
        A, B = A + A.T, B + B.T
    if kind == "squares":
        A, w = -A, 0.5
    np.fill_diagonal(A, 0)
    np.fill_diagonal(B, 0)
    problem = BoundProblem(A.astype(float), B.astype(float), np.zeros((n, m)), w)
    orders = np.array(list(itertools.permutations(range(m), n)))
    totals = sum(
        A[i, j] * B[orders[:, i], orders[:, j]] + w * B[orders[:, i], orders[:, j]] ** 2
        for i, j in itertools.permutations(range(n), 2)
    )
    proof = prove(problem, np.arange(n))
    assert proof.optimal
    assert proof.value == totals.min()


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 3), st.booleans())
def test_sorted_sequences_are_assigned_best_in_order(seed, n_first, extra, squared):
    # The bound rests on it: costs x y + w y^2 of sorted numbers are a Monge matrix.
    random = np.random.default_rng(seed)
    n, m, w = n_first + 1, n_first + extra + 1, 0.5 if squared else 0.0
    A, B = np.zeros((n, n)), np.zeros((m, m))
    A[0, 1:], B[0, 1:] = random.normal(size=n - 1), random.normal(size=m - 1)
    barred = np.full((n, m), 1e6)
    barred[0, 0] = 0.0
    barred[1:, 1:] = 0.0
    costs = A[0, 1:, None] * B[0, 1:] + w * B[0, 1:] ** 2
    best = costs[linear_sum_assignment(costs)].sum()
    assert gilmore_lawler(BoundProblem(A, B, barred, w)) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "bound"),
    [("nug12", 493), ("nug15", 963), ("nug30", 4539), ("rou12", 202272), ("scr12", 27858)],
)
def test_published_bounds_are_reached(shared_data, name, bound):
    problem, _ = published(shared_data, name)
    assert np.ceil(gilmore_lawler(problem) - 1e-6) == bound


def published(shared_data, name):
    data = np.load(shared_data("qaplib.npz"))
    A, B = (data[f"{name}_{part}"].astype(float) for part in "AB")
    return BoundProblem(A, B, np.zeros(A.shape)), float(data[f"{name}_best"])


def test_a_stopped_proof_has_a_valid_bound_and_the_same_one_again(shared_data):
    problem, best = published(shared_data, "nug15")
    bounds = []
    for work in (0.0, 1e5, 1e6, 1e7, 1e6):
        proof = prove(problem, np.arange(15), step=2.0, max_work=work)
        assert proof.bound <= best <= proof.value
        bounds.append(proof.bound)
    assert bounds[:4] == sorted(bounds[:4])
    assert bounds[2] == bounds[4]


def test_a_check_sees_nodes_and_may_stop(shared_data):
    problem, best = published(shared_data, "nug15")
    seen = []

    def check(bound, n_nodes):
        seen.append(n_nodes)
        assert bound <= best
        if n_nodes == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prove(problem, np.arange(15), check=check)
    assert seen == [1, 2, 3, 4, 5]
