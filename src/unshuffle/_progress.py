"""What a solver reports as it goes, how a callback stops it, and what a failed fit leaves."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._printing import short_repr


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
def refitting(estimator: Any) -> Iterator[Callable[[], None]]:
    """Put back an earlier fit, whole, where a new one fails.

    Yields a function to call once the attributes of the new fit are complete: what fails or is
    interrupted after that leaves the new fit.
    """
    before = vars(estimator).copy()

    def done() -> None:
        nonlocal before
        before = vars(estimator).copy()

    try:
        yield done
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
