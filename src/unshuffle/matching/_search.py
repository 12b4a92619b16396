"""What the runs of one fit share: progress, the best matching so far, and the outcome."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._progress import Reporter
from unshuffle.assignment import QuadraticProblem
from unshuffle.matching._kernel_pair import KernelPair

Permutation = NDArray[np.intp]


@dataclass(frozen=True)
class Outcome:
    """Result of one solver.

    Attributes
    ----------
    permutation : ndarray of shape (n,)
        Partner of each item of the smaller collection.
    converged : bool
        Whether every run that led to it ended by itself.
    objective_path : list of float
        Full-spectrum objective after each accepted step that led to it.
    ends : list of ndarray of shape (n,)
        Matchings that were compared in the end, by `problem`; first the one that was chosen.
    problem : QuadraticProblem
        What the permutation solves, at the spectral power of the last stage.
    """

    permutation: Permutation
    converged: bool
    objective_path: list[float]
    ends: list[Permutation]
    problem: QuadraticProblem


class Search:
    """Progress of a fit and the best matching it has seen.

    Parameters
    ----------
    pair : KernelPair
        What is being matched.
    reporter : Reporter
        Calls the user's callback; raises `Stopped` when it says so.
    to_user : callable
        Turns a matching of the pair into one in the user's numbering.
    """

    def __init__(
        self,
        pair: KernelPair,
        reporter: Reporter,
        to_user: Callable[[Permutation], Permutation],
    ) -> None:
        self.pair = pair
        self.reporter = reporter
        self.to_user = to_user
        self.n_assignments = 0
        self.best: Permutation | None = None
        self._best_rank = (-1, -np.inf)
        self._lock = threading.Lock()

    def count(self, n_assignments: int) -> None:
        """Add to the number of assignments solved."""
        with self._lock:
            self.n_assignments += n_assignments

    def recorder(
        self, stage: str, *, level: int, fraction: float, path: list[float]
    ) -> Callable[[float, Permutation], None]:
        """Make a function to call after each accepted step of one run.

        It appends the full-spectrum objective to `path`, remembers the matching if it is the
        best of the highest `level` so far, and tells the user's callback.
        """

        def record(value: float, permutation: Permutation) -> None:
            objective = self.pair.objective(permutation)
            path.append(objective)
            with self._lock:
                if (level, value) > self._best_rank:
                    self._best_rank = (level, value)
                    self.best = permutation.copy()
            self.reporter.step(
                objective, self.to_user(permutation), stage=stage, fraction=fraction
            )

        return record

    def outcome_so_far(self) -> Outcome:
        """Best matching of a search that was stopped before its end."""
        if self.best is None:
            raise RuntimeError("The search was stopped before its first matching.")
        return Outcome(
            permutation=self.best,
            converged=False,
            objective_path=[self.pair.objective(self.best)],
            ends=[self.best],
            problem=self.pair.full_problem,
        )
