"""Progress reports, callbacks that stop a solver, and fits that survive an interruption."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.cluster import runs_elsewhere
from unshuffle._run.parallel import map_parallel, stream_elsewhere
from unshuffle._run.printing import short_repr

Result = TypeVar("Result")
Solution = TypeVar("Solution")


@dataclass(frozen=True)
class SearchState:
    """One step of a solver, as a callback receives it.

    Pass `callback=function` to an estimator that has this parameter. The function is called with a
    `SearchState` after each step, one call at a time. If it returns True, the solver stops and the
    estimator keeps the best solution so far. If it returns False or None, the solver continues.
    Anything else raises a TypeError; an earlier fit stays as it was.

    Attributes
    ----------
    iteration : int
        Number of steps so far, over all starts.
    objective : float
        Objective of the solution at this step. Larger is better, except that
        `quadratic_assignment` reports its `fun`.
    permutation : ndarray of shape (n_items,)
        Solution at this step: item i is matched to `permutation[i]`, or unmatched if that is -1.
        A copy, so you may keep or change it. Empty if the estimator orders nothing.
    stage : str
        What the solver is doing, as text for a progress bar.
    fraction : float
        Rough share of the work done, from 0 to 1. It never decreases.
    generators : ndarray of shape (k, d, d) or None
        Solution of a solver that learns matrices, as a copy; None for other solvers.

    Examples
    --------
    Stop after three steps:

    >>> import numpy as np
    >>> from unshuffle import KernelizedSorting
    >>> from unshuffle.base import SearchState
    >>> def stop_after_three(state: SearchState) -> bool:
    ...     return state.iteration >= 3
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> sorting = KernelizedSorting(callback=stop_after_three).fit(X, X[::-1])
    >>> sorting.permutation_.shape
    (30,)
    """

    iteration: int
    objective: float
    permutation: NDArray[np.intp]
    stage: str = ""
    fraction: float = 0.0
    generators: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return short_repr(self)


Callback = Callable[[SearchState], bool | np.bool_ | None]


# What Ctrl-C says of a fit: Python shows it below the traceback.
NOTHING_STORED = "Interrupted before the first result; nothing of this fit is stored."
START_STORED = "Interrupted before the first step; what is stored is only a rough start."
BEST_STORED = "Interrupted; the best result so far is stored."


def explained(interrupt: KeyboardInterrupt, words: str) -> KeyboardInterrupt:
    """The same interrupt, which says what is stored unless it says something already."""
    interrupt.args = interrupt.args or (words,)
    return interrupt


@contextmanager
def before_results() -> Iterator[None]:
    """Say of Ctrl-C that nothing is stored, in preparations that take long."""
    try:
        yield
    except KeyboardInterrupt as stop:
        explained(stop, NOTHING_STORED)
        raise


@contextmanager
def refitting(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an earlier fit if the new one fails."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def asks_to_stop(callback: Callback, state: SearchState) -> bool:
    """Call a callback, and return its answer; refuse all but True, False and None."""
    answer: Any = callback(state)
    # np.True_, from comparisons of `permutation`, is not True itself.
    if answer is not None and not isinstance(answer, bool | np.bool_):
        raise TypeError(
            f"`callback` returned {answer!r:.100}, a {type(answer).__name__}. Return True to "
            "stop, and False or None to continue."
        )
    return bool(answer)


class Stopped(Exception):
    """Raised inside a solver when the callback asked it to stop."""


class Search(Generic[Solution]):
    """Counts the steps of a solver, calls the user's callback, and keeps the best solution.

    Solvers call `offer` with each solution that could be stored, and `step` to report progress.
    Both may be called from several threads, and from calls that `map` runs in other processes.
    There they are made to a copy, which keeps a list of them to be repeated here.
    """

    def __init__(self, callback: Callback | None = None) -> None:
        self.callback = callback
        self.iteration = 0
        self.stopped = False
        self.best: Solution | None = None
        self._rank: Any = None
        self._fraction = 0.0
        self._lock = threading.Lock()
        self._told: list[tuple[str, tuple[Any, ...], dict[str, Any]]] | None = None

    def map(
        self,
        function: Callable[..., Result],
        arguments: Iterable[Any],
        *,
        n_jobs: int | None = None,
    ) -> list[Result]:
        """`map_parallel` for calls that report to this search, here or in other processes.

        What is reported in another process is repeated here when its call and those before it
        have ended.
        """
        if not runs_elsewhere(n_jobs):
            return map_parallel(function, arguments, n_jobs=n_jobs)
        results = []
        with closing(stream_elsewhere(partial(_with_reports, self, function), arguments)) as ended:
            for result, told in ended:
                for name, positional, named in told:
                    getattr(self, name)(*positional, **named)
                results.append(result)
        return results

    def __getstate__(self) -> dict[str, Any]:
        """State of a copy for another process."""
        state = vars(self).copy()
        del state["_lock"]
        callback = None if self.callback is None else _never_stop
        return {**state, "callback": callback, "best": None, "_rank": None, "_told": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def _is_kept(self, name: str, *positional: Any, **named: Any) -> bool:
        """In another process, keep a call of a method to be repeated, and return True."""
        if self._told is None:
            return False
        self._told.append((name, positional, named))
        return True

    def offer(self, solution: Solution, rank: Any) -> None:
        """Keep a solution if its rank, a number or a tuple, is above that of the best so far."""
        if self._is_kept("offer", solution, rank):
            return
        with self._lock:
            if self._rank is None or rank > self._rank:
                self.best, self._rank = solution, rank

    def step(
        self,
        objective: float,
        permutation: NDArray[np.intp],
        *,
        stage: str = "",
        fraction: float = 0.0,
        generators: NDArray[np.float64] | None = None,
    ) -> None:
        """Count one step and call the callback; raise `Stopped` if it returns True."""
        if self._told is not None:
            if self.callback is None:  # no callback: do not send arrays between processes
                permutation, generators = permutation[:0], None
            self._told.append(
                (
                    "step",
                    (objective, permutation.copy()),
                    {"stage": stage, "fraction": fraction, "generators": generators},
                )
            )
            return
        with self._lock:
            if self.stopped:
                raise Stopped
            self.iteration += 1
            self._fraction = max(self._fraction, min(fraction, 1.0))
            if self.callback is None:
                return
            state = SearchState(
                iteration=self.iteration,
                objective=float(objective),
                permutation=permutation.copy(),
                stage=stage,
                fraction=self._fraction,
                generators=None if generators is None else generators.copy(),
            )
            if asks_to_stop(self.callback, state):
                self.stopped = True
                raise Stopped


def _never_stop(state: SearchState) -> None:
    """Stands for the user's callback in other processes."""


def _with_reports(search: Search[Any], function: Callable[..., Any], argument: Any) -> Any:
    """Result of a call in another process, and all that it reported to the search."""
    return function(argument), search._told


def _stored(search: Search[Any]) -> str:
    if search.best is None:
        return NOTHING_STORED
    return BEST_STORED if search.iteration else START_STORED


def fit_by_search(
    estimator: Any,
    search: Search[Solution],
    solve: Callable[[], Solution],
    store: Callable[[Solution], None],
    *judges: Callable[[bool], None],
) -> None:
    """Solve, store, judge. If a callback or Ctrl-C stops the solver, store the best so far.

    Each judge receives whether Ctrl-C was pressed. What one sets is dropped if it is stopped.
    """
    interrupt: KeyboardInterrupt | None = None
    with refitting(estimator):
        try:
            solution = solve()
        except (Stopped, KeyboardInterrupt) as stop:
            search.stopped = True
            interrupt = stop if isinstance(stop, KeyboardInterrupt) else None
            if interrupt is not None:
                explained(interrupt, _stored(search))
            if search.best is None:
                raise
            solution = search.best
        store(solution)
        for judge in judges:
            stored = vars(estimator).copy()
            try:
                judge(interrupt is not None)
            except (Stopped, KeyboardInterrupt) as stop:
                search.stopped = True
                vars(estimator).clear()
                vars(estimator).update(stored)
                if isinstance(stop, KeyboardInterrupt):
                    interrupt = interrupt or explained(stop, BEST_STORED)
    if interrupt is not None:
        raise interrupt
