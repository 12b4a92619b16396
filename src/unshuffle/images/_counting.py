"""Work that is counted as it is done, for a progress bar."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from unshuffle.images._checks import check_callable

Progress = Callable[[int, int], object]
Result = TypeVar("Result")


class Counted:
    """Wraps functions so that each call counts one step once it is done.

    Safe with several threads: `on_progress` is called by one at a time, with counts that rise
    by one.

    Parameters
    ----------
    on_progress : callable or None
        Called with the number of steps done and the number in all.
    total : int
        The number in all.
    """

    def __init__(self, on_progress: Progress | None, total: int) -> None:
        check_callable(on_progress, "on_progress")
        self.on_progress = on_progress
        self.total = total
        self._done = 0
        self._lock = threading.Lock()

    def __call__(self, function: Callable[[Any], Result]) -> Callable[[Any], Result]:
        """`function`, counted."""

        def step(argument: Any) -> Result:
            result = function(argument)
            with self._lock:
                self._done += 1
                if self.on_progress is not None:
                    self.on_progress(self._done, self.total)
            return result

        return step
