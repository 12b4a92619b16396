"""Rows of the tables, and timing."""

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
        Problem and its size.
    ours, peer : str
        Names of the methods compared.
    seconds, peer_seconds : float
        Wall-clock time of each; None if the peer was not run.
    details : dict
        Other measurements by name; None if not measured.
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
    """Result of a call and its shortest duration, which is least disturbed by other work."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return result, best
