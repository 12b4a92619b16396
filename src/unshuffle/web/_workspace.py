"""What all views of the page share: listeners, messages, and work in the background."""

import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from unshuffle.web._jobs import Canceled, Job, Jobs, TooMany, Work
from unshuffle.web._refusal import Refused


class Workspace(ABC):
    """One view of the page, such as the wall; every method may be called from any thread.

    Any number of tabs see the same workspace. `state` says everything small about it.
    """

    def __init__(self, kinds: Sequence[str]) -> None:
        self.jobs = Jobs(self.touch, kinds)
        self._lock = threading.RLock()
        self._listeners: set[Callable[[], None]] = set()
        self._version = 0
        self._notice: dict[str, Any] | None = None
        self._numbers = count(1)

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything small that the page shows."""

    @property
    def version(self) -> int:
        """Number of changes so far."""
        return self._version

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function after each change, until the returned one is called."""
        with self._lock:
            self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def touch(self) -> None:
        """Say that something has changed."""
        with self._lock:
            self._version += 1
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def _tell(self, message: str, kind: str = "note") -> None:
        """Show a message on all pages."""
        with self._lock:
            self._notice = {"id": next(self._numbers), "kind": kind, "message": message}
        self.touch()

    def undo(self) -> None:
        """Go one step back."""
        self._go(-1, "There is nothing to undo.")

    def redo(self) -> None:
        """Take back an undo."""
        self._go(1, "There is nothing to redo.")

    @abstractmethod
    def _go(self, by: int, problem: str) -> None:
        """Show another step of the history; `Refused` with the problem if there is none."""

    def cancel(self, name: str) -> None:
        """Cancel a job; what it has is kept."""
        job = self.jobs.find(name)
        if job is None:
            raise Refused("It has already ended.", status=404)
        job.cancel()

    def _start(
        self, kind: str, words: str, work: Work, on_cancel: Callable[[], None] | None = None
    ) -> Job:
        """Begin work in the background; what goes wrong there becomes a message."""

        def guarded(job: Job) -> None:
            try:
                work(job)
            except Canceled:
                if job.late:
                    self._tell(f"{words} took too long and was stopped. What was done is kept.")
                raise
            except Refused as error:
                self._tell(str(error), "error")
            except (ValueError, MemoryError, OSError, ImportError) as error:
                self._tell(f"{words} failed: {' '.join(str(error).split())}", "error")
            except Exception:
                traceback.print_exc(file=sys.stderr)
                self._tell(f"{words} failed. The terminal has the details.", "error")

        try:
            return self.jobs.start(kind, words, guarded, on_cancel)
        except TooMany:
            raise Refused("Too much is going on. Try again in a moment.", status=429) from None


def shown(name: str) -> str:
    """A name that can be sent: some are not valid Unicode."""
    return name.encode("utf-8", "replace").decode("utf-8")
