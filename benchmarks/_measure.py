"""Rows of the tables, and timing."""

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

MEGABYTE = 1e6
PEAK = Path("/proc/self/clear_refs")  # resets the peak; only Linux has it

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


def with_memory(function: Callable[[], Result]) -> tuple[Result, float | None, float | None]:
    """Result of a call, and peak memory in megabytes, added by it and in total.

    Call it in a process of its own: memory freed earlier may be reused and not counted. None
    outside Linux.
    """
    if not PEAK.exists():
        return function(), None, None
    c_library = ctypes.CDLL(None)
    if hasattr(c_library, "malloc_trim"):
        c_library.malloc_trim(0)  # return freed memory to the system
    PEAK.write_text("5")
    before = resident("VmRSS")
    result = function()
    peak = resident("VmHWM")
    return result, peak - before, peak


def resident(field: str, process: int | str = "self") -> float:
    """Memory in megabytes; `resource` would start from the parent process's peak."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    # A process that has ended, but is not collected yet, has no such line.
    kilobytes = next((line.split()[1] for line in lines if line.startswith(field)), 0)
    return 1024 * int(kilobytes) / MEGABYTE
