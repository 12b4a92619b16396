"""Memory of several processes together, and waits for a core. Linux only."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks._measure import MEGABYTE, resident

INTERVAL = 0.1


def proportional(process: int) -> float:
    """Megabytes of one process; what it shares with others is divided among them (PSS)."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has just ended
        return 0.0
    found = (line.split()[1] for line in lines if line.startswith("Pss:"))
    return 1024 * int(next(found, "0")) / MEGABYTE


def whole(process: int) -> float:
    """Megabytes of one process, with all that it shares (RSS)."""
    try:
        return resident("VmRSS", process)
    except OSError:
        return 0.0


def waited(process: int) -> float:
    """Seconds that the main thread was ready to run while others had the cores."""
    schedule = Path(f"/proc/{process}/task/{process}/schedstat").read_text().split()
    return int(schedule[1]) / 1e9


def tree(process: int) -> list[int]:
    """A process and all its descendants."""
    found = [process]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return found


class Watch:
    """Peak memory of processes, sampled in a thread until it is left.

    Parameters
    ----------
    processes : callable
        Gives the processes of the moment.
    measure : callable
        Megabytes of one process.
    """

    def __init__(
        self,
        processes: Callable[[], Iterable[int]],
        measure: Callable[[int], float] = proportional,
    ) -> None:
        self.processes, self.measure = processes, measure
        self.peak = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def now(self) -> float:
        """Megabytes of all of them now."""
        megabytes = sum(self.measure(each) for each in self.processes())
        self.peak = max(self.peak, megabytes)
        return megabytes

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(INTERVAL):
            self.now()
