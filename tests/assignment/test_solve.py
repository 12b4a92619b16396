import itertools
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from tests.counts import many

from unshuffle._assign import linear as _assign
from unshuffle._assign.linear import assign
from unshuffle.assignment import soft_assignment, solve_assignment

SOLVERS = ["exact", "auction", "auto"]


def best_value(cost, *, maximize=False):
    rows, cols = linear_sum_assignment(cost, maximize=maximize)
    return cost[rows, cols].sum()


def scale(cost, objective):
    """No less than what the gap is a share of."""
    return max(abs(objective), np.ptp(cost))


def smooth_benefit(n_items, seed=0):
    """Gradient of a kernel-sorting objective: random colors onto a square grid."""
    random = np.random.default_rng(seed)
    side = int(np.ceil(np.sqrt(n_items)))
    grid = np.argwhere(np.ones((side, side)))[:n_items] / side

    def kernel(points):
        squared = cdist(points, points, "sqeuclidean")
        K = np.exp(-squared / np.median(squared))
        K -= K.mean(axis=0)
        return K - K.mean(axis=1, keepdims=True)

    return kernel(random.random((n_items, 3))) @ kernel(grid)[random.permutation(n_items)]


costs = st.tuples(st.integers(1, 12), st.integers(1, 12)).flatmap(
    lambda shape: st.one_of(
        arrays(np.float64, shape, elements=st.floats(-100, 100, allow_subnormal=False)),
        arrays(np.int64, shape, elements=st.integers(-3, 3)),
        st.floats(-5, 5).map(lambda value: np.full(shape, value)),
    )
)


@pytest.mark.parametrize("solver", SOLVERS)
def test_known_answer(solver):
    cost = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    least = solve_assignment(cost, solver=solver)
    assert least.columns.tolist() == [1, 0, 2]
    assert least.value == 5.0
    most = solve_assignment(cost, solver=solver, maximize=True)
    assert most.columns.tolist() == [0, 2, 1]
    assert most.value == 11.0


@many
@given(cost=costs, maximize=st.booleans())
def test_auction_is_within_its_gap_of_the_optimum(cost, maximize):
    found = solve_assignment(cost, solver="auction", maximize=maximize)
    best = best_value(cost, maximize=maximize)
    matched = found.columns >= 0
    assert matched.sum() == min(cost.shape)
    assert np.unique(found.columns[matched]).size == matched.sum()
    assert found.value == pytest.approx(cost[matched, found.columns[matched]].sum())
    loss = (best - found.value) * (1 if maximize else -1)
    assert found.gap <= 1e-6
    assert loss <= found.gap * scale(cost, found.value) + 1e-9 * (1 + abs(best))


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("shape", [(200, 200), (150, 200), (200, 150)])
def test_gap_bounds_the_true_loss(shape, tol):
    for benefit in (smooth_benefit(200), np.random.default_rng(1).random((200, 200))):
        part = np.ascontiguousarray(benefit[: shape[0], : shape[1]])
        found = solve_assignment(part, solver="auction", maximize=True, tol=tol)
        loss = (best_value(part, maximize=True) - found.value) / scale(part, found.value)
        assert found.solver == "auction"
        assert -1e-12 <= loss <= found.gap + 1e-12
        assert found.gap <= tol


def test_prices_certify_the_gap_on_their_own():
    benefit = smooth_benefit(300)
    found = solve_assignment(benefit, solver="auction", maximize=True)
    dual = found.prices.sum() + (benefit - found.prices).max(axis=1).sum()
    assert dual >= best_value(benefit, maximize=True) - 1e-9
    loss = dual - found.value
    apart = abs(found.value - np.median(benefit) * len(benefit))
    assert loss / scale(benefit, found.value) - 1e-9 <= found.gap <= 1.5 * loss / apart


def test_sampled_start_reaches_the_optimum():
    benefit = smooth_benefit(1600)[:1520]
    for problem in (benefit, benefit.T):
        found = assign(np.ascontiguousarray(problem), tol=1e-5)
        assert found.solver == "auction"
        assert found.value == pytest.approx(best_value(problem, maximize=True), rel=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 1)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_thin_problems(shape, solver):
    cost = np.random.default_rng(0).random(shape)
    found = solve_assignment(cost, solver=solver)
    assert found.value == cost.min()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("value", [0.0, -3.0, 1e12])
def test_constant_costs_are_matched_completely(solver, value):
    found = solve_assignment(np.full((30, 40), value), solver=solver)
    assert np.unique(found.columns).size == 30
    assert found.value == 30 * value


def test_a_large_offset_does_not_stop_the_auction():
    cost = 1e9 + np.random.default_rng(0).random((250, 250))
    found = solve_assignment(cost, solver="auction", tol=1e-15)
    assert found.value == pytest.approx(best_value(cost), rel=1e-14)


@pytest.mark.parametrize("shape", [(300, 300), (250, 300), (300, 250)])
def test_warm_prices_give_the_same_value(shape):
    cost = -smooth_benefit(300)[: shape[0], : shape[1]]
    changed = cost + 0.01 * cost.std() * np.random.default_rng(0).random(shape)
    first = solve_assignment(cost, solver="auction")
    given = first.prices.copy()
    warm = solve_assignment(changed, solver="auction", prices=given)
    assert np.array_equal(given, first.prices)
    assert warm.value == pytest.approx(best_value(changed), rel=1e-6)


def test_huge_prices_do_no_harm():
    benefit = smooth_benefit(200)
    prices = 1e3 * np.random.default_rng(0).standard_normal(200)
    found = assign(benefit, prices, solver="auction")
    assert found.value == pytest.approx(best_value(benefit, maximize=True), rel=1e-6)


def test_float32_is_solved_as_it_is():
    benefit = smooth_benefit(300).astype(np.float32)
    found = solve_assignment(benefit, maximize=True, solver="auction")
    assert found.value == pytest.approx(best_value(benefit.astype(float), maximize=True), rel=1e-5)


def test_read_only_and_strided_costs_are_left_alone():
    cost = np.random.default_rng(0).random((240, 480))[:, ::2]
    before = cost.copy()
    cost.flags.writeable = False
    for options in ({}, {"unmatched_cost": 0.1}, {"forbidden": cost > 0.9}):
        solve_assignment(cost, solver="auction", **options)
        solve_assignment(cost, solver="auction", maximize=True, **options)
    frozen_in_memory = np.ascontiguousarray(cost)
    frozen_in_memory.flags.writeable = False
    assert assign(frozen_in_memory, solver="auction").solver == "auction"
    assert np.array_equal(cost, before)


@given(cost=costs, data=st.data(), solver=st.sampled_from(["exact", "auction"]))
def test_frozen_pairs_survive_any_row_order(cost, data, solver):
    n_frozen = data.draw(st.integers(0, min(cost.shape)))
    rows = data.draw(st.permutations(range(cost.shape[0])))[:n_frozen]
    cols = data.draw(st.permutations(range(cost.shape[1])))[:n_frozen]
    found = solve_assignment(cost, solver=solver, frozen=list(zip(rows, cols, strict=True)))
    assert found.columns[list(rows)].tolist() == list(cols)
    rest = np.delete(np.delete(cost, rows, axis=0), cols, axis=1)
    fixed = cost[list(rows), list(cols)].sum()
    assert found.value == pytest.approx(fixed + best_value(rest), abs=1e-6 * (1 + np.ptp(cost)))


def test_prices_cover_frozen_columns():
    cost = -smooth_benefit(300)
    found = solve_assignment(cost, solver="auction", frozen=[(250, 3), (4, 17)])
    assert found.prices.shape == (300,)
    again = solve_assignment(cost, solver="auction", prices=found.prices)
    assert again.value == pytest.approx(best_value(cost), rel=1e-6)


@pytest.mark.parametrize("shape", [(220, 220), (200, 220), (220, 200)])
@pytest.mark.parametrize("solver", ["exact", "auction"])
def test_forbidden_pairs_are_never_matched(shape, solver):
    random = np.random.default_rng(0)
    cost, forbidden = random.random(shape), random.random(shape) < 0.9
    forbidden[np.arange(200), np.arange(200)] = False
    if shape == (220, 220):
        np.fill_diagonal(forbidden, False)
    found = solve_assignment(cost, solver=solver, forbidden=forbidden)
    matched = found.columns >= 0
    assert matched.sum() == min(shape)
    assert not forbidden[matched, found.columns[matched]].any()
    assert found.value == pytest.approx(best_value(np.where(forbidden, np.inf, cost)), rel=1e-5)


@pytest.mark.parametrize("shape", [(260, 220), (220, 260)])
def test_items_with_no_allowed_partner_stay_unmatched(shape):
    cost = np.random.default_rng(0).random(shape)
    forbidden = np.zeros(shape, dtype=bool)
    forbidden[(slice(None), 7) if shape[0] < shape[1] else 7] = True
    expected = best_value(np.delete(cost, 7, axis=int(shape[0] < shape[1])))
    prices = None
    for _ in range(2):
        found = solve_assignment(cost, solver="auction", forbidden=forbidden, prices=prices)
        prices = found.prices
        assert found.solver == "auction"
        assert found.value == pytest.approx(expected, rel=1e-5)
        assert np.isfinite(prices).all()


def test_a_single_allowed_assignment_is_found():
    forbidden = np.tril(np.ones((30, 30), dtype=bool), -1)
    forbidden |= np.triu(np.ones((30, 30), dtype=bool), 2)
    forbidden[0, 1] = True
    found = solve_assignment(np.zeros((30, 30)), solver="auction", forbidden=forbidden)
    assert found.columns.tolist() == list(range(30))


def test_infeasible_problems_are_refused():
    forbidden = np.zeros((3, 3), dtype=bool)
    forbidden[:2, 1:] = True
    for solver in SOLVERS:
        with pytest.raises(ValueError, match="at most 2 of 3 pairs"):
            solve_assignment(np.zeros((3, 3)), forbidden=forbidden, solver=solver)
    apart = solve_assignment(np.zeros((3, 3)), forbidden=forbidden, unmatched_cost=1.0)
    assert (apart.columns == -1).sum() == 1
    with pytest.raises(ValueError, match=r"row 0, column 2\) is both frozen and forbidden"):
        solve_assignment(np.zeros((3, 3)), forbidden=forbidden, frozen=[(0, 2)])


def least_objective(cost, unmatched_cost):
    """Every matching of a small problem, tried in turn."""
    n_rows, n_cols = cost.shape
    best = np.inf
    for size in range(min(cost.shape) + 1):
        for rows in itertools.combinations(range(n_rows), size):
            for cols in itertools.permutations(range(n_cols), size):
                apart = unmatched_cost * (n_rows + n_cols - 2 * size)
                best = min(best, cost[list(rows), list(cols)].sum() + apart)
    return best


@given(
    cost=st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.integers(-4, 9))
    ),
    unmatched_cost=st.sampled_from([-1.0, 0.0, 0.5, 2.0, 10.0]),
    solver=st.sampled_from(["exact", "auction"]),
    maximize=st.booleans(),
)
def test_unmatched_cost_agrees_with_every_matching_tried(cost, unmatched_cost, solver, maximize):
    sign = -1 if maximize else 1
    found = solve_assignment(
        sign * cost, unmatched_cost=unmatched_cost, solver=solver, maximize=maximize
    )
    n_apart = sum(cost.shape) - 2 * (found.columns >= 0).sum()
    objective = sign * found.value + unmatched_cost * n_apart
    assert objective == pytest.approx(least_objective(cost, unmatched_cost), abs=1e-4)
    matched = np.flatnonzero(found.columns >= 0)
    assert (cost[matched, found.columns[matched]] <= 2 * unmatched_cost).all()


def test_auto_takes_each_solver_where_it_is_faster():
    random = np.random.default_rng(0)
    assert solve_assignment(random.random((50, 50))).solver == "exact"
    assert solve_assignment(random.random((400, 400))).solver == "auction"
    assert solve_assignment(random.random((400, 5000))).solver == "exact"
    between = random.random((150, 150))
    assert assign(between).solver == "exact"
    assert assign(between, np.zeros(150)).solver == "auction"


def test_a_war_of_bids_ends_with_the_exact_solver(monkeypatch):
    monkeypatch.setattr(_assign, "MAX_BIDS_PER_ROW", 2)
    benefit = smooth_benefit(200)
    found = assign(benefit, solver="auction")
    assert found.solver == "exact"
    assert found.value == best_value(benefit, maximize=True)


def test_works_without_numba(monkeypatch):
    monkeypatch.setattr(_assign, "_auction", lambda: None)
    found = solve_assignment(smooth_benefit(250), maximize=True)
    assert found.solver == "exact"


def test_import_leaves_numba_alone():
    script = "import sys, unshuffle.assignment; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer signal")
def test_an_interrupt_gets_out_of_the_auction(monkeypatch):
    monkeypatch.setattr(_assign, "MAX_BIDS_PER_ROW", np.inf)
    assign(np.eye(10), solver="auction")  # compile before the clock starts
    # 1,400 rows want 1,399 columns: without the check for feasibility, bids without end
    endless = np.zeros((1400, 1400))
    endless[:, -1] = -np.inf
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            assign(endless, solver="auction")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (np.empty((0, 3)), r"`cost` is empty: it has shape \(0, 3\)"),
        (np.empty((3, 0)), r"`cost` is empty: it has shape \(3, 0\)"),
        ([[1.0, np.nan]], "NaN"),
        ([[1.0, np.inf]], "infinity"),
        ([1.0, 2.0], "must be 2-D"),
    ],
)
def test_unusable_costs_are_refused(cost, message):
    with pytest.raises(ValueError, match=message):
        solve_assignment(cost)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "magic"}, "`solver` must be one of"),
        ({"tol": 0}, "`tol` must be a finite number above 0"),
        ({"prices": [1.0]}, r"`prices` must have shape \(3,\)"),
        ({"prices": [1.0, np.nan, 2.0]}, "`prices` holds NaN"),
        ({"frozen": [(0, 0), (0, 1)]}, "repeats item 0 of rows"),
        ({"frozen": [(0, 5)]}, "names item 5 of columns"),
        ({"forbidden": np.zeros((3, 2), dtype=bool)}, "Pass its transpose"),
        ({"forbidden": np.zeros((2, 3))}, "must be a boolean matrix"),
        ({"unmatched_cost": np.nan}, "`unmatched_cost` must be a finite number"),
    ],
)
def test_unusable_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        solve_assignment(np.ones((2, 3)), **options)


@pytest.mark.parametrize("shift", [1e3, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("maximize", [False, True])
def test_a_constant_added_to_all_costs_makes_no_loss_small(shift, maximize):
    cost = np.random.default_rng(0).random((300, 300)) + shift
    found = solve_assignment(cost, solver="auction", maximize=maximize)
    held = cost - shift  # what the shifted costs still tell apart
    best = best_value(held, maximize=maximize)
    assert held[np.arange(300), found.columns].sum() == pytest.approx(best, rel=1e-5)
    assert found.gap <= 1e-6


@pytest.mark.parametrize("share", [0.001, 0.3, 0.8])
@pytest.mark.parametrize("barrier", [1e3, 1e6, 1e9, 1e20, 1e150])
def test_costs_that_mean_never_do_not_hide_the_others(barrier, share):
    random = np.random.default_rng(0)
    cost = random.random((250, 250))
    cost[random.random(cost.shape) < share] = barrier
    found = solve_assignment(cost, solver="auction")
    assert found.value == pytest.approx(best_value(cost), rel=1e-5)


def test_a_dear_frozen_pair_does_not_hide_the_others():
    cost = np.random.default_rng(0).random((250, 250))
    cost[0, 0] = 1e20
    columns = solve_assignment(cost, solver="auction", frozen=[(0, 0)]).columns
    assert cost[np.arange(1, 250), columns[1:]].sum() == pytest.approx(
        best_value(cost[1:, 1:]), rel=1e-5
    )


@pytest.mark.parametrize("solver", ["exact", "auction"])
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e-200, 1e150, 1e290])
def test_costs_of_any_size_are_assigned_alike(scale, solver):
    cost = np.random.default_rng(0).integers(1, 50, size=(60, 70)).astype(float)
    for options in ({}, {"frozen": [(3, 4)]}, {"forbidden": cost == 1.0}):
        found = solve_assignment(cost * scale, solver=solver, **options)
        plain = solve_assignment(cost, solver="exact", **options)
        assert found.value == pytest.approx(plain.value * scale, rel=1e-5)
        assert found.prices is None or np.isfinite(found.prices).all()
    part = solve_assignment(cost * scale, solver=solver, unmatched_cost=2 * scale)
    assert (part.columns >= 0).sum() == (
        solve_assignment(cost, solver="exact", unmatched_cost=2.0).columns >= 0
    ).sum()


def test_costs_whose_total_overflows_are_refused():
    with pytest.raises(ValueError, match=r"`cost` holds 1e\+308, and a total of 4"):
        solve_assignment(np.full((4, 4), 1e308))


@pytest.mark.parametrize("unmatched_cost", [1e20, 1e300, 1.7e308])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_huge_unmatched_cost_does_not_hide_the_costs(unmatched_cost, dtype):
    cost = np.random.default_rng(0).random((40, 40)).astype(dtype)
    found = solve_assignment(cost, unmatched_cost=unmatched_cost)
    assert found.value == pytest.approx(best_value(cost), rel=1e-6)
    huge = solve_assignment(cost * dtype(3e38), unmatched_cost=unmatched_cost * 1e-300)
    assert huge.columns.shape == (40,)


@pytest.mark.parametrize("function", [solve_assignment, soft_assignment])
@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ([["1", "2"], ["3", "4"]], "`cost` holds text: '1'"),
        (np.array([["a", "b"]]), "`cost` holds text: 'a'"),
        (np.array([[1, b"2"]], dtype=object), "`cost` holds text: b'2'"),
        ("costs.csv", "`cost` holds text: 'costs.csv'"),
        (None, "`cost` is None"),
        ([1.0, 2.0], r"must be 2-D.*shape \(2,\). Pass \[cost\] for a single row"),
        (np.ones((2, 2, 2)), r"must be 2-D.*3 dimension"),
        (np.float32([1.0, 2.0]), r"must be 2-D.*shape \(2,\)"),
    ],
)
def test_costs_that_are_no_matrix_of_numbers_are_explained(function, cost, message):
    with pytest.raises(ValueError, match=message):
        function(cost)


def test_prices_as_text_are_refused():
    with pytest.raises(ValueError, match="`prices` holds text: '1'"):
        solve_assignment(np.eye(2), prices=["1", "2"])
