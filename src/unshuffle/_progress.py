"""What a solver reports as it goes, how a callback stops it, and what a failed fit leaves."""

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
class State:
    """One step of a solver, as handed to a callback.

    Attributes
    ----------
    iteration : int
        Steps taken so far, over all starts.
    objective : float
        Objective of the solution below; larger is better.
    permutation : ndarray of shape (n_items,)
        The solution at this step, in the user's numbering; -1 is unmatched. A copy,
        so it may be kept or changed. Empty where nothing is ordered.
    stage : str
        What the solver is doing, in words fit for a progress bar.
    fraction : float
        Rough share of the work done, from 0 to 1; never falls.
    generators : ndarray of shape (k, d, d) or None
        The solution of a solver that learns matrices, a copy too.
    """

    iteration: int
    objective: float
    permutation: NDArray[np.intp]
    stage: str = ""
    fraction: float = 0.0
    generators: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return short_repr(self)


@contextmanager
def refitting(estimator: Any) -> Iterator[None]:
    """Put back an earlier fit, whole, where a new one fails."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


Callback = Callable[[State], bool | np.bool_ | None]


class Stopped(Exception):
    """Raised inside a solver when the callback asked it to stop."""


class Reporter:
    """Counts steps, calls the user's callback, and remembers whether it said stop.

    Shared by solvers that may run in several threads: calls to the callback are
    made one at a time.

    Parameters
    ----------
    callback : callable or None
        Called with a `State`; returning True stops the solver.
    """

    def __init__(self, callback: Callback | None = None) -> None:
        self.callback = callback
        self.iteration = 0
        self.stopped = False
        self._fraction = 0.0
        self._lock = threading.Lock()

    def step(
        self,
        objective: float,
        permutation: NDArray[np.intp],
        *,
        stage: str = "",
        fraction: float = 0.0,
        generators: NDArray[np.float64] | None = None,
    ) -> None:
        """Count one step and tell the callback; raise `Stopped` if it asks to stop."""
        with self._lock:
            if self.stopped:
                raise Stopped
            self.iteration += 1
            self._fraction = max(self._fraction, min(fraction, 1.0))
            if self.callback is None:
                return
            state = State(
                iteration=self.iteration,
                objective=float(objective),
                permutation=permutation.copy(),
                stage=stage,
                fraction=self._fraction,
                generators=None if generators is None else generators.copy(),
            )
            answer = self.callback(state)
            # NumPy's True, which comparisons of `permutation` give, is not `True` itself.
            if isinstance(answer, bool | np.bool_) and answer:
                self.stopped = True
                raise Stopped


class Search(Reporter, Generic[Solution]):
    """A reporter that also keeps the best solution its solver has come to.

    Solvers call `offer` whenever they have something that could be stored, and `step` to tell the
    callback. Both may be called from several threads.
    """

    def __init__(self, callback: Callback | None = None) -> None:
        super().__init__(callback)
        self.best: Solution | None = None
        self._rank: Any = None

    def offer(self, solution: Solution, rank: Any) -> None:
        """Keep a solution if its rank, a number or a tuple, is above that of the best so far."""
        with self._lock:
            if self._rank is None or rank > self._rank:
                self.best, self._rank = solution, rank


def fit_by_search(
    estimator: Any,
    search: Search[Solution],
    solve: Callable[[], Solution],
    store: Callable[[Solution], None],
    judge: Callable[[bool], None] | None = None,
) -> None:
    """Solve, store, judge; where a callback or Ctrl-C stops the solver, store the best so far."""
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
        if judge is not None:
            stored = vars(estimator).copy()
            try:
                judge(interrupt is not None)
            except KeyboardInterrupt as again:
                vars(estimator).clear()
                vars(estimator).update(stored)
                interrupt = interrupt or again
    if interrupt is not None:
        raise interrupt
