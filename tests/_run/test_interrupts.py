"""Long work of each kind: Ctrl-C gets through, and cutting it into pieces changes no result."""

import threading

import numpy as np
import pytest

from unshuffle import KernelizedSorting
from unshuffle._assign import paths as _assign_loops
from unshuffle._assign.linear import LARGE, assign_many
from unshuffle._core.bags import Bags
from unshuffle._quadratic import loops as _loops
from unshuffle._quadratic.problem import QuadraticProblem, swap_ascent
from unshuffle._run import parallel as _parallel
from unshuffle._run.parallel import eigh, product
from unshuffle.kernels import ExpectedLikelihoodKernel, geodesic_distances
from unshuffle.kernels.sets._models import mixture_loops as _mixture_loops
from unshuffle.kernels.sets._models.mixtures import COVARIANCE_TYPES, FitSettings, fit_sets
from unshuffle.matching._dense.pair import _distances
from unshuffle.svm import _ball_loops
from unshuffle.svm._templates import enclosing_ball


@pytest.fixture
def count_calls(monkeypatch):
    """Counts the calls of a function, by its module and name."""

    def count(module, name):
        calls, function = [], getattr(module, name)

        def counted(*arguments):
            calls.append(arguments)
            return function(*arguments)

        monkeypatch.setattr(module, name, counted)
        return calls

    return count


@pytest.fixture
def in_pieces(monkeypatch):
    """Result of a function, first in calls as they are, then in calls of almost no work."""

    def run(function, calls):
        whole = function()
        n_whole = len(calls)
        assert n_whole > 0
        monkeypatch.setattr(_parallel, "WORK_PER_CALL", 1e3)
        pieces = function()
        assert len(calls) > 2 * n_whole
        return whole, pieces

    return run


def similarities(n_items, seed):
    K = np.random.default_rng(seed).normal(size=(n_items, n_items))
    K += K.T
    np.fill_diagonal(K, 0.0)
    return K


@pytest.mark.parametrize("n_partners", [40, 50])
@pytest.mark.parametrize("loop", ["apply_swaps", "apply_replacements"])
def test_exchanges_do_not_depend_on_the_pieces(count_calls, in_pieces, n_partners, loop):
    if (n_partners, loop) == (40, "apply_replacements"):
        pytest.skip("collections of one size have no unused partners")
    problem = QuadraticProblem(similarities(40, 0), similarities(n_partners, 1))
    start = np.random.default_rng(2).permutation(n_partners)[:40]
    calls = count_calls(_loops, loop)
    whole, pieces = in_pieces(lambda: swap_ascent(problem, start), calls)
    assert np.array_equal(whole[0], pieces[0])
    assert whole[1] == pieces[1] > 0


@pytest.mark.parametrize(("n", "loop"), [(20, "assign_each"), (LARGE, "augment_rows")])
def test_many_assignments_do_not_depend_on_the_pieces(count_calls, in_pieces, n, loop):
    costs = np.random.default_rng(0).random((8, n, n))
    calls = count_calls(_assign_loops, loop)

    def solve():
        prices = np.ones((8, n))
        return assign_many(costs, prices), prices

    whole, pieces = in_pieces(solve, calls)
    assert np.array_equal(whole[0], pieces[0])
    assert np.array_equal(whole[1], pieces[1])


@pytest.mark.parametrize("slack", [None, 0.3])
def test_the_ball_does_not_depend_on_the_pieces(count_calls, in_pieces, slack):
    X = np.random.default_rng(0).normal(size=(60, 20))
    calls = count_calls(_ball_loops, "exchange_weights")
    whole, pieces = in_pieces(lambda: enclosing_ball(X @ X.T, slack), calls)
    assert np.array_equal(whole.weights, pieces.weights)


@pytest.mark.parametrize("kind", COVARIANCE_TYPES)
def test_mixtures_do_not_depend_on_the_pieces(count_calls, monkeypatch, kind):
    rng = np.random.default_rng(0)
    sets = [
        rng.normal(size=(30 + 5 * i, 3)) + rng.integers(0, 2, (30 + 5 * i, 1)) for i in range(4)
    ]
    bags = Bags.of(sets)
    how = FitSettings(3, 3, kind, 1e-3, 40, 1e-6, rng.random((3, 2, 3)))
    numbers = np.array([3, 1, 2, 3])
    calls = count_calls(_mixture_loops, "run_rounds")
    whole = fit_sets(bags, numbers, how)
    n_whole = len(calls)
    monkeypatch.setattr(_parallel, "WORK_PER_CALL", 1e3)
    pieces = fit_sets(bags, numbers, how)
    assert len(calls) > 2 * n_whole
    assert {arguments[6] for arguments in calls[n_whole:]} == {1}  # rounds
    for one, other in zip(whole, pieces, strict=True):
        assert np.array_equal(one, other)


def test_kernels_of_mixtures_do_not_depend_on_the_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(12, 2)) * rng.random(2) for _ in range(70)]
    kernel = ExpectedLikelihoodKernel(n_components="cv", max_components=2, random_state=0)
    whole = kernel.fit_transform(bags)
    monkeypatch.setattr(_parallel, "WORK_PER_CALL", 1e3)
    assert np.array_equal(whole, kernel.fit_transform(bags))


def test_distances_do_not_depend_on_the_pieces(monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 3))
    whole = geodesic_distances(X), _distances(X, X[:20], "cityblock")
    monkeypatch.setattr(_parallel, "WORK_PER_CALL", 1e3)
    assert np.array_equal(whole[0], geodesic_distances(X))
    assert np.array_equal(whole[1], _distances(X, X[:20], "cityblock"))


def test_long_products_and_decompositions_are_waited_for(monkeypatch):
    threads = []

    def noted(function):
        def note(*arguments):
            threads.append(threading.current_thread())
            return function(*arguments)

        return note

    monkeypatch.setattr(np, "matmul", noted(np.matmul))
    monkeypatch.setattr(np.linalg, "eigh", noted(np.linalg.eigh))
    A = similarities(30, 0)
    short = product(A, A), eigh(A)
    monkeypatch.setattr(_parallel, "LONG_PRODUCT", 0)
    threads.clear()
    assert np.array_equal(short[0], product(A, A))
    assert np.array_equal(short[1][1], eigh(A)[1])
    assert len(threads) == 2
    assert threading.main_thread() not in threads
    threads.clear()
    X = np.random.default_rng(0).normal(size=(20, 2))
    KernelizedSorting(random_state=0).fit(X, X[::-1])
    assert len(threads) > 10


LONG_WORK = {
    "SciPy's assignment": """
        from unshuffle.assignment import solve_assignment
        steps = np.arange(6000.0)
        cost = np.outer(steps, steps)  # the hardest costs there are for shortest paths
        work = lambda: solve_assignment(cost, solver="exact")
    """,
    "our own assignment": """
        from unshuffle._assign.linear import assign_many
        assign_many(np.ones((1, 300, 300)), np.ones((1, 300)))
        steps = np.arange(5000.0)
        costs, prices = np.outer(steps, steps)[None], np.ones((1, 5000))
        work = lambda: assign_many(costs, prices)
    """,
    "tabu search": """
        from unshuffle.assignment import quadratic_assignment
        A, B = np.random.default_rng(0).random((2, 300, 300))
        quadratic_assignment(A[:9, :9], B[:9, :9])
        work = lambda: quadratic_assignment(A, B, max_time=100.0)
    """,
    "branch and bound": """
        from unshuffle.assignment import quadratic_assignment
        A, B = np.random.default_rng(0).random((2, 25, 25))
        quadratic_assignment(A[:9, :9], B[:9, :9], "exact")
        work = lambda: quadratic_assignment(A, B, "exact", n_init=1)
    """,
    "mixtures": """
        from unshuffle.kernels import ExpectedLikelihoodKernel
        bags = [np.random.default_rng(i).normal(size=(500, 2)) for i in range(2)]
        ExpectedLikelihoodKernel(n_components=3, n_init=1).fit(bags)
        work = lambda: ExpectedLikelihoodKernel(n_components=3, n_init=500_000).fit(bags)
    """,
    "libsvm": """
        from unshuffle import PermutationInvariantSVC
        X = np.random.default_rng(0).normal(size=(2000, 3))
        y = np.arange(2000) % 2
        work = lambda: PermutationInvariantSVC(C=1e12).fit(X, y)
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", LONG_WORK)
def test_ctrl_c_gets_through_to_long_work(press_ctrl_c, kind):
    script = (
        "import numpy as np\nfrom textwrap import dedent\n"
        f"exec(dedent({LONG_WORK[kind]!r}))\n"
        "print('running', flush=True)\n"
        "try: work()\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
    )
    assert press_ctrl_c(script) == "interrupted\n"
