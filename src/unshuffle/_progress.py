"""Progress reports, callbacks that stop a solver, and fits that survive an interruption."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from unshuffle._printing import short_repr

Solution = TypeVar("Solution")


@dataclass(frozen=True)
class SearchState:
    """One step of a solver, as a callback receives it.

    Pass `callback=function` to an estimator that has this parameter. The function is called with a
    `SearchState` after each step, one call at a time. If it returns True, the solver stops and the
    estimator keeps the best solution so far.

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


class Stopped(Exception):
    """Raised inside a solver when the callback asked it to stop."""


class Search(Generic[Solution]):
    """Counts the steps of a solver, calls the user's callback, and keeps the best solution.

    Solvers call `offer` with each solution that could be stored, and `step` to report progress.
    Both may be called from several threads.
    """

    def __init__(self, callback: Callback | None = None) -> None:
        self.callback = callback
        self.iteration = 0
        self.stopped = False
        self.best: Solution | None = None
        self._rank: Any = None
        self._fraction = 0.0
        self._lock = threading.Lock()

    def offer(self, solution: Solution, rank: Any) -> None:
        """Keep a solution if its rank, a number or a tuple, is above that of the best so far."""
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
            answer = self.callback(state)
            # np.True_, from comparisons of `permutation`, is not True itself.
            if isinstance(answer, bool | np.bool_) and answer:
                self.stopped = True
                raise Stopped


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
            if search.best is None:
                raise
            solution = search.best
            interrupt = stop if isinstance(stop, KeyboardInterrupt) else None
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
                    interrupt = interrupt or stop
    if interrupt is not None:
        raise interrupt
