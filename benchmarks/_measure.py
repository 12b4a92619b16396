"""What one line of the table holds, and how a duration is taken."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Row:
    """One comparison with one peer on one problem.

    Attributes
    ----------
    topic : str
        Title of the table the row belongs to.
    problem : str
        What was solved, with its size.
    ours, peer : str
        What was compared.
    seconds, peer_seconds : float
        Wall-clock time of each; None where the peer was not run.
    details : dict
        Anything else that was measured, by name; None where it was not.
    """

    topic: str
    problem: str
    ours: str
    seconds: float
    peer: str
    peer_seconds: float | None
    details: dict[str, float | int | str | None] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """How many times faster than the peer."""
        return None if self.peer_seconds is None else self.peer_seconds / self.seconds


def timed(function: Callable[[], Result], *, repeats: int = 1) -> tuple[Result, float]:
    """Result of a call and the shortest of its durations, which other work disturbs least."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return result, best
