import inspect
from functools import partial

import numpy as np
import pytest

import unshuffle
from unshuffle import (
    Collage,
    GridLayout,
    KernelizedSorting,
    MinimumVolumePCA,
    MultiwaySorting,
    OrbitLearner,
    PermutationInvariantSVC,
    SetAligner,
)
from unshuffle._run.search import Search, Stopped, fit_by_search
from unshuffle.assignment import quadratic_assignment


class Estimator:
    pass


def fit(estimator, ending, *, offered=True, judge=None):
    """Fit by a solver that offers 1 and 3, and ends: by a solution, a stop or an interrupt."""
    search = Search()

    def solve():
        if offered:
            search.offer(3, rank=(1, 0.5))
            search.offer(1, rank=(0, 9.0))
        if isinstance(ending, int):
            return ending
        raise ending

    def store(solution):
        estimator.solution_ = solution

    fit_by_search(estimator, search, solve, store, *([] if judge is None else [judge]))
    return search


def test_a_solution_is_stored_and_then_judged():
    estimator = Estimator()
    fit(estimator, 7, judge=lambda hurried: setattr(estimator, "hurried_", hurried))
    assert (estimator.solution_, estimator.hurried_) == (7, False)


def test_a_stop_stores_the_best_so_far():
    estimator = Estimator()
    assert fit(estimator, Stopped()).stopped
    assert estimator.solution_ == 3


def test_an_interrupt_stores_the_best_so_far_and_goes_on_to_the_caller():
    estimator = Estimator()
    with pytest.raises(KeyboardInterrupt):
        fit(estimator, KeyboardInterrupt(), judge=lambda h: setattr(estimator, "hurried_", h))
    assert (estimator.solution_, estimator.hurried_) == (3, True)


@pytest.mark.parametrize(
    ("offered", "n_steps", "words"),
    [
        (False, 0, "before the first result; nothing of this fit is stored"),
        (True, 0, "only a rough start"),
        (True, 1, "the best result so far is stored"),
    ],
)
def test_an_interrupt_says_what_is_stored(offered, n_steps, words):
    search = Search()

    def solve():
        if offered:
            search.offer(3, rank=1)
        for _ in range(n_steps):
            search.step(1.0, np.arange(3))
        raise KeyboardInterrupt

    estimator = Estimator()
    with pytest.raises(KeyboardInterrupt, match=words):
        fit_by_search(estimator, search, solve, partial(setattr, estimator, "solution_"))
    assert vars(estimator) == ({"solution_": 3} if offered else {})


def test_an_interrupt_that_says_something_keeps_its_words():
    with pytest.raises(KeyboardInterrupt, match=r"^enough$"):
        fit(Estimator(), KeyboardInterrupt("enough"))


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), ValueError("wrong")])
def test_without_a_solution_the_earlier_fit_stays(ending):
    estimator = Estimator()
    fit(estimator, 7)
    with pytest.raises(type(ending)):
        fit(estimator, ending, offered=False)
    assert vars(estimator) == {"solution_": 7}


@pytest.mark.parametrize("ending", [7, KeyboardInterrupt()])
def test_an_interrupted_judgement_costs_nothing_else(ending):
    estimator = Estimator()

    def judge(hurried):
        estimator.confidence_ = 0.5
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(estimator, ending, judge=judge)
    assert estimator.solution_ in (3, 7)
    assert not hasattr(estimator, "confidence_")


def test_a_judgement_that_fails_leaves_the_earlier_fit():
    estimator = Estimator()
    fit(estimator, 7)

    def judge(hurried):
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fit(estimator, 8, judge=judge)
    assert vars(estimator) == {"solution_": 7}


RNG = np.random.default_rng(0)
POINTS, SETS, CLASSES = RNG.random((12, 3)), list(RNG.random((6, 5, 2))), [0, 1] * 3
PICTURES = RNG.integers(0, 256, (64, 4, 4, 3), dtype=np.uint8)
K = POINTS @ POINTS.T
# A call of each solver that takes a callback.
SOLVERS = {
    KernelizedSorting: lambda f: KernelizedSorting(callback=f).fit(POINTS, POINTS[::-1]),
    MultiwaySorting: lambda f: MultiwaySorting(callback=f).fit([POINTS, POINTS[::-1]]),
    GridLayout: lambda f: GridLayout(callback=f).fit(POINTS),
    Collage: lambda f: Collage(PICTURES[:, 0, 0], callback=f).fit(PICTURES),
    MinimumVolumePCA: lambda f: MinimumVolumePCA(1, callback=f).fit(SETS),
    OrbitLearner: lambda f: OrbitLearner(1, callback=f).fit(POINTS),
    SetAligner: lambda f: SetAligner(callback=f).fit(SETS),
    PermutationInvariantSVC: lambda f: PermutationInvariantSVC(callback=f).fit(SETS, CLASSES),
    quadratic_assignment: lambda f: quadratic_assignment(
        POINTS @ POINTS.T, np.eye(12), callback=f
    ),
}


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.__name__)
@pytest.mark.parametrize("answer", ["stop", 1, np.array([1, 2])], ids=repr)
def test_an_answer_that_a_callback_cannot_give_is_refused(solver, answer):
    calls = []

    def reply(state):
        calls.append(state)
        return answer

    with pytest.raises(TypeError, match=r"`callback` returned .*Return True to stop"):
        SOLVERS[solver](reply)
    assert len(calls) == 1


@pytest.mark.parametrize("answer", ["stop", 1])
def test_a_callback_that_fails_leaves_the_earlier_fit(answer):
    sorting = KernelizedSorting().fit(POINTS, POINTS[::-1])
    before = sorting.permutation_
    with pytest.raises(TypeError, match="`callback`"):
        sorting.set_params(callback=lambda state: answer).fit(POINTS, POINTS)
    assert sorting.permutation_ is before


def test_no_solver_with_a_callback_is_left_out():
    takers = {
        value
        for room in (unshuffle, unshuffle.assignment)
        for name in room.__all__
        if callable(value := getattr(room, name))
        and "callback" in inspect.signature(value).parameters
    }
    assert takers == set(SOLVERS)
