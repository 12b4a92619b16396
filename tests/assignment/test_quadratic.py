"""`quadratic_assignment`: known answers, SciPy's calls, invariants, and clear errors."""

import itertools
import time

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from numpy.testing import assert_array_equal
from tests.counts import few, many

from unshuffle.assignment import _quadratic_task, quadratic_assignment
from unshuffle.assignment._search.climb import TabuSearch

FLOWS = np.array([[0, 5, 8, 6], [5, 0, 5, 1], [8, 5, 0, 2], [6, 1, 2, 0]])
DISTANCES = np.array([[0, 1, 8, 4], [1, 0, 5, 2], [8, 5, 0, 5], [4, 2, 5, 0]])


def objective(A, B, columns, *, cost=None, maximize=False):
    """The sum as the documentation states it."""
    rows = np.flatnonzero(columns >= 0)
    columns = columns[rows]
    a, b = A[np.ix_(rows, rows)], B[np.ix_(columns, columns)]
    total = (a * b).sum()
    if cost is not None:
        total = total + cost[rows, columns].sum()
    if maximize and A.shape != B.shape:
        total = total - ((a if len(A) > len(B) else b) ** 2).sum() / 2
    return total


def all_matchings(n_first, n_second):
    """Every matching of all items of the smaller side."""
    if n_first <= n_second:
        yield from map(np.array, itertools.permutations(range(n_second), n_first))
        return
    for rows in itertools.permutations(range(n_first), n_second):
        columns = np.full(n_first, -1)
        columns[list(rows)] = np.arange(n_second)
        yield columns


@st.composite
def tasks(draw):
    """Arguments of a small task of any kind."""
    random = default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.integers(1, 5)), draw(st.integers(1, 5))

    def numbers(*shape):
        if draw(st.booleans()):
            return random.integers(-4, 5, size=shape)
        return random.normal(size=shape)

    A, B = numbers(sizes[0], sizes[0]), numbers(sizes[1], sizes[1])
    if draw(st.booleans()):
        A = A + A.T
    if draw(st.booleans()):
        B = B + B.T
    options = {"maximize": draw(st.booleans())}
    if draw(st.booleans()):
        options["cost"] = numbers(*sizes)
    n_frozen = draw(st.integers(0, min(sizes)))
    if n_frozen:
        rows, columns = (random.permutation(size)[:n_frozen] for size in sizes)
        options["frozen"] = np.column_stack([rows, columns])
    return A, B, options


@many
@given(tasks())
def test_small_tasks_are_solved_and_proved(task):
    A, B, options = task
    found = quadratic_assignment(A, B, random_state=0, **options)
    frozen = options.pop("frozen", np.empty((0, 2), dtype=int))
    assert_array_equal(found.col_ind[frozen[:, 0]], frozen[:, 1])
    values = [
        objective(A, B, columns, **options)
        for columns in all_matchings(len(A), len(B))
        if (columns[frozen[:, 0]] == frozen[:, 1]).all()
    ]
    best = (max if options["maximize"] else min)(values)
    assert found.fun == pytest.approx(best, abs=1e-9)
    assert found.fun == pytest.approx(objective(A, B, found.col_ind, **options), abs=1e-9)
    assert found["upper_bound" if options["maximize"] else "lower_bound"] == found.fun
    assert found.gap == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("sizes", [(12, 12), (9, 12), (12, 9)])
@pytest.mark.parametrize("maximize", [False, True])
def test_bounds_hold_and_a_proof_reaches_them(asymmetric, sizes, maximize):
    random = default_rng(sum(sizes) + maximize)
    A, B = (random.integers(0, 10, size=(size, size)) for size in sizes)
    if not asymmetric:
        A, B = A + A.T, B + B.T
    quick = quadratic_assignment(A, B, maximize=maximize, random_state=0)
    proved = quadratic_assignment(A, B, "exact", maximize=maximize, random_state=0)
    assert proved.gap == 0.0
    assert quick.fun == proved.fun
    bounds = [each["upper_bound" if maximize else "lower_bound"] for each in (quick, proved)]
    assert bounds[1] == proved.fun
    assert bounds[0] >= bounds[1] if maximize else bounds[0] <= bounds[1]
    assert quick.gap == pytest.approx(abs(quick.fun - bounds[0]) / abs(quick.fun))


@pytest.mark.parametrize("name", ["nug12", "rou12", "scr12", "chr12a", "tai12a", "tai12b"])
def test_published_optima_are_found_and_proved(shared_data, name):
    problems = np.load(shared_data("qaplib.npz"))
    found = quadratic_assignment(
        problems[f"{name}_A"], problems[f"{name}_B"], "exact", random_state=0
    )
    assert (found.fun, found.gap) == (int(problems[f"{name}_best"]), 0.0)


@pytest.mark.parametrize("name", ["bur26d", "chr18a", "esc32e", "kra30a", "lipa40a", "nug30"])
def test_published_optima_are_found(shared_data, name):
    problems = np.load(shared_data("qaplib.npz"))
    A, B, best = (problems[f"{name}_{part}"] for part in ("A", "B", "best"))
    found = quadratic_assignment(A, B, n_init=600, random_state=0)
    assert found.fun == int(best)
    assert found.lower_bound <= found.fun


@pytest.mark.slow
@pytest.mark.parametrize(("n_items", "share", "noise"), [(60, 0.3, 0.05), (200, 0.2, 0.05)])
def test_noisy_copies_of_graphs_are_matched(n_items, share, noise):
    random = default_rng(n_items)
    first = np.triu(random.random((n_items, n_items)) < share, 1)
    second = first ^ np.triu(random.random((n_items, n_items)) < noise, 1)
    order = random.permutation(n_items)
    A, B = ((each | each.T).astype(int) for each in (first, second))
    found = quadratic_assignment(A, B[np.ix_(order, order)], maximize=True, random_state=0)
    assert (order[found.col_ind] == np.arange(n_items)).all()


def test_the_closest_part_of_a_larger_matrix_is_found():
    random = default_rng(0)
    points = random.normal(size=(30, 2))
    B = np.linalg.norm(points[:, None] - points, axis=-1)
    chosen = random.permutation(30)[:20]
    A = B[np.ix_(chosen, chosen)]
    found = quadratic_assignment(A, B, maximize=True, random_state=0)
    assert_array_equal(found.col_ind, chosen)
    back = quadratic_assignment(B, A, maximize=True, random_state=0)
    assert_array_equal(np.flatnonzero(back.col_ind >= 0), np.sort(chosen))
    assert_array_equal(chosen[back.col_ind[chosen]], chosen)
    assert back.fun == pytest.approx(found.fun)


def test_spare_places_are_left_empty():
    places = np.array([0.0, 1.0, 2.0, 50.0, 51.0])
    distances = np.abs(places[:, None] - places)
    found = quadratic_assignment(1.0 - np.eye(3), distances, random_state=0)
    assert sorted(found.col_ind) == [0, 1, 2]
    assert (found.fun, found.gap) == (8.0, 0.0)


# Calls as SciPy's documentation has them, and variations of these.
def scipy_calls():
    rng = default_rng(1)
    A1 = np.array([[0, 80, 150, 170], [80, 0, 130, 100], [150, 130, 0, 120], [170, 100, 120, 0]])
    B1 = np.array([[0, 5, 2, 7], [0, 0, 3, 8], [0, 0, 0, 3], [0, 0, 0, 0]])
    A2, B2 = rng.random((15, 15)), rng.random((15, 15))
    guess = np.array([np.arange(4), [1, 0, 3, 2]]).T
    seeds = np.array([[0, 2], [1, 0]])
    random = {"P0": "randomized"}
    soft = np.full((13, 13), 1 / 13)
    yield from (
        ((A1, B1), {}),
        ((A1, B1), {"options": {"maximize": True}}),
        ((A1, B1, "FAQ"), {"options": {"maximize": False, "tol": 0.01, "maxiter": 50}}),
        ((FLOWS, DISTANCES), {}),
        ((FLOWS, DISTANCES), {"method": "2opt", "options": {"partial_guess": guess}}),
        ((FLOWS, DISTANCES), {"method": "2opt", "options": {"partial_match": seeds}}),
        ((FLOWS, DISTANCES), {"options": {"partial_match": seeds, "maximize": True}}),
        ((FLOWS.tolist(), DISTANCES.tolist()), {"options": {"partial_match": None}}),
        ((A2, B2), {}),
        ((A2, B2), {"options": random}),
        ((A2, B2), {"options": {"P0": "barycenter", "shuffle_input": True}}),
        ((A2, B2), {"options": {"P0": soft, "partial_match": seeds}}),
        ((A2, B2), {"options": {**random, "maximize": True}}),
        ((A2, B2), {"method": "2opt"}),
        ((A2, B2), {"method": "2opt", "options": {"maximize": True, "partial_match": seeds}}),
        ((A2 @ A2.T, B2 @ B2.T), {"method": "2opt"}),
        ((rng.random((40, 40)), rng.random((40, 40))), {}),
        (((rng.random((30, 30)) < 0.2) * 1, (rng.random((30, 30)) < 0.2) * 1), {}),
    )


@pytest.mark.parametrize("call", list(scipy_calls()))
def test_calls_of_scipy_give_a_result_no_worse(call):
    positional, named = call
    options = named.get("options", {})
    sign = -1 if options.get("maximize") else 1
    results = []
    for function in (quadratic_assignment, scipy.optimize.quadratic_assignment):
        given = {**options, "rng": default_rng(0)}
        results.append(function(*positional, **{**named, "options": given}))
    ours, theirs = results
    assert sign * ours.fun <= sign * theirs.fun + 1e-9 * abs(theirs.fun)
    A, B = map(np.asarray, positional[:2])
    perm = ours["col_ind"]
    assert ours.fun == pytest.approx(np.trace(A.T @ B[perm][:, perm]))
    assert isinstance(ours.nit, int)
    pairs = options.get("partial_match")
    if pairs is not None:
        assert_array_equal(perm[pairs[:, 0]], pairs[:, 1])


def test_a_guess_and_a_position_are_starts():
    random = default_rng(0)
    A, B = random.random((40, 40)), random.random((40, 40))
    best = quadratic_assignment(A, B, n_init=100, random_state=0)
    pairs = np.column_stack([np.arange(40), best.col_ind])
    one = {"n_init": 1, "random_state": 1}
    plain = quadratic_assignment(A, B, **one)
    assert plain.fun > best.fun
    for options in ({"partial_guess": pairs[::-1]}, {"P0": np.eye(40)[best.col_ind]}):
        assert quadratic_assignment(A, B, options=options, **one).fun <= best.fun + 1e-9


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_a_seed_gives_one_result_whatever_the_threads(n_jobs):
    random = default_rng(0)
    A, B = random.random((40, 40)), random.random((45, 45))
    one, other = (
        quadratic_assignment(A, B, random_state=3, n_init=30, n_jobs=jobs) for jobs in (1, n_jobs)
    )
    assert_array_equal(one.col_ind, other.col_ind)
    assert (one.fun, one.nit, one.lower_bound) == (other.fun, other.nit, other.lower_bound)


def test_a_generator_is_a_seed():
    random = default_rng(0)
    A, B = random.random((30, 30)), random.random((30, 30))
    first, second = (
        quadratic_assignment(A, B, random_state=default_rng(4), n_init=2) for _ in range(2)
    )
    assert_array_equal(first.col_ind, second.col_ind)


@few
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_relabeling_and_sign_do_not_change_the_optimum(seed, symmetric):
    random = default_rng(seed)
    A, B = random.integers(0, 9, size=(2, 9, 9))
    if symmetric:
        A, B = A + A.T, B + B.T
    first, second = random.permutation(9), random.permutation(9)
    found = quadratic_assignment(A, B, "exact", random_state=0)
    moved = quadratic_assignment(
        A[np.ix_(first, first)], B[np.ix_(second, second)], "exact", random_state=0
    )
    turned = quadratic_assignment(-A, B, "exact", maximize=True, random_state=0)
    exchanged = quadratic_assignment(B, A, "exact", random_state=0)
    assert found.fun == moved.fun == -turned.fun == exchanged.fun


def test_frozen_pairs_survive_any_row_order():
    random = default_rng(0)
    A, B = random.random((20, 20)), random.random((20, 20))
    pairs = np.column_stack([random.permutation(20)[:6], random.permutation(20)[:6]])
    results = [
        quadratic_assignment(A, B, frozen=rows, random_state=0)
        for rows in (pairs, pairs[::-1].tolist())
    ]
    for found in results:
        assert_array_equal(found.col_ind[pairs[:, 0]], pairs[:, 1])
    assert_array_equal(results[0].col_ind, results[1].col_ind)


def test_everything_frozen_is_optimal():
    found = quadratic_assignment(FLOWS, DISTANCES, frozen=[(i, 3 - i) for i in range(4)])
    assert_array_equal(found.col_ind, [3, 2, 1, 0])
    assert (found.gap, found.nit) == (0.0, 0)
    assert found.fun == found.lower_bound == (FLOWS * DISTANCES[::-1, ::-1]).sum()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, object])
def test_integers_are_summed_exactly(dtype):
    huge = 3 * 10**9 + 1
    A = (FLOWS * huge).astype(dtype)
    B = (DISTANCES * huge).astype(dtype)
    found = quadratic_assignment(A, B, random_state=0)
    exact = sum(
        int(FLOWS[i, j]) * int(DISTANCES[found.col_ind[i], found.col_ind[j]])
        for i, j in itertools.product(range(4), repeat=2)
    )
    if dtype is object:
        assert found.fun == pytest.approx(exact * huge**2)
    else:
        assert found.fun == exact * huge**2
        assert isinstance(found.fun, int)


def test_booleans_are_numbers():
    found = quadratic_assignment(FLOWS > 4, DISTANCES > 4, maximize=True, random_state=0)
    assert isinstance(found.fun, int)
    assert found.fun == ((FLOWS > 4) & (DISTANCES > 4)[np.ix_(*[found.col_ind] * 2)]).sum()


@pytest.mark.slow
def test_more_time_is_used_and_not_much_more():
    random = default_rng(0)
    A, B = random.random((60, 60)), random.random((60, 60))
    quadratic_assignment(A, B, n_init=1)
    began = time.monotonic()
    found = quadratic_assignment(A, B, max_time=0.5, random_state=0)
    assert 0.4 < time.monotonic() - began < 20.0
    assert found.nit > quadratic_assignment(A, B, n_init=2, random_state=0).nit


def test_an_instant_still_gives_an_answer():
    random = default_rng(0)
    A, B = random.random((50, 50)), random.random((60, 60))
    found = quadratic_assignment(A, B, max_time=1e-9)
    assert np.unique(found.col_ind).size == 50
    assert found.fun == pytest.approx(objective(A, B, found.col_ind))


def test_callbacks_see_the_search_and_stop_it():
    random = default_rng(0)
    A, B = random.random((30, 30)), random.random((30, 30))
    states = []

    def watch(state):
        states.append(state)
        return len(states) == 5

    found = quadratic_assignment(A, B, maximize=True, random_state=0, callback=watch)
    assert [state.iteration for state in states] == [1, 2, 3, 4, 5]
    assert {state.stage for state in states} == {"searching"}
    for state in states:
        assert state.objective == pytest.approx(objective(A, B, state.permutation))
    assert found.fun == states[-1].objective == max(state.objective for state in states)
    assert found.fun < found.upper_bound < np.inf


def test_a_callback_that_stops_the_proof_keeps_its_bound():
    random = default_rng(0)
    A, B = random.random((16, 16)), random.random((16, 16))

    def stop(state):
        return state.stage == "proving" and state.iteration > 60

    found = quadratic_assignment(A, B, "exact", random_state=0, callback=stop)
    assert 0.0 < found.lower_bound < found.fun
    assert 0.0 < found.gap < 1.0


def test_large_tasks_have_no_bound(monkeypatch):
    monkeypatch.setattr("unshuffle.assignment._quadratic_assignment.LARGEST_BOUND", 20)
    random = default_rng(0)
    A, B = random.random((21, 21)), random.random((21, 21))
    found = quadratic_assignment(A, B, n_init=1)
    assert (found.lower_bound, found.gap) == (-np.inf, np.inf)


def test_equal_numbers_have_any_order():
    found = quadratic_assignment(np.ones((6, 6)), np.ones((6, 6)))
    assert sorted(found.col_ind) == list(range(6))
    assert (found.fun, found.gap) == (36.0, 0.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sizes", [(7, 7), (5, 9), (1, 4), (2, 2)])
@pytest.mark.parametrize("maximize", [False, True])
def test_the_tabu_search_reports_what_it_gains(seed, sizes, maximize):
    random = default_rng(seed)
    A, B = random.normal(size=(sizes[0],) * 2), random.normal(size=(sizes[1],) * 2)
    cost = random.normal(size=sizes)
    problem = _quadratic_task.Task.of(A, B, cost, maximize, None).free
    order = random.permutation(sizes[1])
    found, _ = TabuSearch(problem).run(order, seed)
    assert sorted(found) == list(range(sizes[1]))
    values = [problem.value(each[: sizes[0]]) for each in (order, found)]
    assert values[1] >= values[0]
    again, _ = TabuSearch(problem).run(found, seed)
    assert problem.value(again[: sizes[0]]) >= values[1]


BAD = {
    "NaN": ((FLOWS * np.nan, DISTANCES), {}, "A contains NaN"),
    "infinity": ((FLOWS, DISTANCES + np.inf), {}, "B contains"),
    "not square": ((FLOWS[:3], DISTANCES), {}, "`A` must be square"),
    "one row": ((FLOWS, DISTANCES[0]), {}, "`B` must be 2-D"),
    "empty": ((np.empty((0, 0)), DISTANCES), {}, "`A` is empty"),
    "text": (([["a"]], DISTANCES), {}, "`A` holds text"),
    "complex": ((FLOWS * 1j, DISTANCES), {}, "Complex"),
    "too large": ((FLOWS * 1e200, DISTANCES), {}, "too large"),
    "cost": ((FLOWS, DISTANCES), {"cost": np.ones((4, 3))}, "`cost` must have shape"),
    "cost NaN": ((FLOWS, DISTANCES), {"cost": FLOWS * np.nan}, "cost contains NaN"),
    "frozen twice": ((FLOWS, DISTANCES), {"frozen": [(0, 1), (0, 2)]}, "`frozen` repeats item 0"),
    "frozen outside": ((FLOWS, DISTANCES), {"frozen": [(0, 4)]}, "`frozen` names item 4 of B"),
    "method": ((FLOWS, DISTANCES, "tabu"), {}, "`method` must be one of"),
    "options": ((FLOWS, DISTANCES, None, [1]), {}, "`options` must be a dict"),
    "unknown": ((FLOWS, DISTANCES), {"options": {"n_init": 3}}, "'n_init'"),
    "n_init": ((FLOWS, DISTANCES), {"n_init": 0}, "`n_init` must be from 1"),
    "max_time": ((FLOWS, DISTANCES), {"max_time": -1.0}, "`max_time` must be"),
    "n_jobs": ((FLOWS, DISTANCES), {"n_jobs": 0}, "`n_jobs` must not be 0"),
    "callback": ((FLOWS, DISTANCES), {"callback": 5}, "`callback` must be a callable"),
    "seed": ((FLOWS, DISTANCES), {"random_state": "a"}, "`random_state` must be"),
    "maxiter": ((FLOWS, DISTANCES), {"options": {"maxiter": 0}}, "`maxiter` must be"),
    "tol": ((FLOWS, DISTANCES), {"options": {"tol": 0}}, "`tol` must be"),
    "P0": ((FLOWS, DISTANCES), {"options": {"P0": "center"}}, "`P0` must be one of"),
    "P0 shape": ((FLOWS, DISTANCES), {"options": {"P0": np.eye(3)}}, "`P0` must have shape"),
    "P0 sums": ((FLOWS, DISTANCES), {"options": {"P0": np.ones((4, 4))}}, "doubly stochastic"),
    "guess": (
        *((FLOWS, DISTANCES), {"options": {"partial_guess": [(0, 9)]}}),
        "`partial_guess` names item 9 of B",
    ),
    "both maximize": (
        *((FLOWS, DISTANCES), {"maximize": True, "options": {"maximize": True}}),
        r"`maximize` is also given as options\['maximize'\]",
    ),
    "both frozen": (
        *((FLOWS, DISTANCES), {"frozen": [(0, 0)], "options": {"partial_match": [(0, 0)]}}),
        r"`frozen` is also given as options\['partial_match'\]",
    ),
    "both seeds": (
        *((FLOWS, DISTANCES), {"random_state": 0, "options": {"rng": 0}}),
        r"`random_state` is also given as options\['rng'\]",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_arguments_are_explained(case):
    positional, named, words = BAD[case]
    with pytest.raises(ValueError, match=words):
        quadratic_assignment(*positional, **named)


def test_tasks_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr("unshuffle._core.parameters.available_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match="Quadratic assignment of 300 and 300 items needs"):
        quadratic_assignment(np.ones((300, 300)), np.ones((300, 300)))
