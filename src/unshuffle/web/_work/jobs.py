"""Long work in the background: one job of a kind at a time, with progress, cancel and limits."""

import itertools
import threading
import traceback
from collections.abc import Callable, Iterable
from math import inf
from queue import SimpleQueue
from time import monotonic
from typing import Any

from unshuffle._run.printing import duration

# Unfinished jobs of one kind; more are refused.
MOST_WAITING = 4
# Seconds that a job may take; what there is by then is kept.
LONGEST = 3600.0
# Seconds that the server waits for its jobs when it stops.
PATIENCE = 5.0
_FROM = 1.0, 0.03  # seconds and share of the work from which the time left can be told


class Canceled(Exception):
    """Raised inside a job that was canceled or has taken too long."""


class TooMany(Exception):
    """Too much is under way to begin more."""


class Job:
    """One piece of long work, as its thread reports on it."""

    def __init__(
        self,
        number: int,
        kind: str,
        words: str,
        changed: Callable[[], None],
        on_cancel: Callable[[], None] | None = None,
    ) -> None:
        self.id = f"j{number}"
        self.kind = kind
        self.words = words
        self.done = self.total = 0
        self.fraction = 0.0
        self.replaced = False  # by another that does the same work
        self._changed = changed
        self._on_cancel = on_cancel
        self._canceled = threading.Event()
        self._began = inf  # the work that `words` names
        self._deadline = inf

    @property
    def canceled(self) -> bool:
        """Whether it was canceled or has taken too long."""
        return self._canceled.is_set() or self.late

    @property
    def late(self) -> bool:
        """Whether it has taken too long."""
        return monotonic() > self._deadline

    def begin(self) -> None:
        """Start the clock."""
        self._deadline = monotonic() + LONGEST

    def check(self) -> None:
        """Raise `Canceled` if the job is to end."""
        if self.canceled:
            raise Canceled

    def cancel(self) -> None:
        """Ask the job to end soon."""
        if self._on_cancel is not None and not self._canceled.is_set():
            self._on_cancel()
        self._canceled.set()
        self._changed()

    def say(self, words: str) -> None:
        """Begin a stage of the work."""
        self.words, self.done, self.total, self.fraction = words, 0, 0, 0.0
        self._began = monotonic()
        self._changed()

    def count(self, done: int, total: int) -> None:
        """Report counted work; `Canceled` if the job is to end."""
        self.done, self.total = done, total
        self.advance(done / max(total, 1))

    def advance(self, fraction: float) -> None:
        """Report the share of the work done; `Canceled` if the job is to end."""
        self.follow(fraction)
        self.check()

    def follow(self, fraction: float) -> bool:
        """Report the share of the work done; whether the job is to end."""
        self.fraction = min(max(fraction, 0.0), 1.0)
        self._changed()
        return self.canceled

    def describe(self) -> dict[str, Any]:
        """What the page shows of it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "words": self.words,
            "done": self.done,
            "total": self.total,
            "fraction": round(self.fraction, 4),
            "left": self._left(),
        }

    def _left(self) -> str:
        elapsed = monotonic() - self._began
        if elapsed < _FROM[0] or not _FROM[1] <= self.fraction < 1:
            return ""
        return f"{duration(elapsed * (1 - self.fraction) / self.fraction)} left"


Work = Callable[[Job], None]


class Jobs:
    """The jobs that wait or run, each kind in a thread of its own."""

    def __init__(self, changed: Callable[[], None], kinds: Iterable[str]) -> None:
        self._changed = changed
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._unfinished: list[Job] = []
        self._idle = threading.Condition(self._lock)
        self._queues: dict[str, SimpleQueue[tuple[Job, Work]]] = {}
        for kind in kinds:
            self._queues[kind] = SimpleQueue()
            # A daemon thread, not an executor: exit must not wait for a running job.
            threading.Thread(target=self._serve, args=(self._queues[kind],), daemon=True).start()

    def start(
        self,
        kind: str,
        words: str,
        work: Work,
        on_cancel: Callable[[], None] | None = None,
        *,
        instead: bool = False,
    ) -> Job:
        """Begin work when that of the same kind is done; `TooMany` if too much waits.

        A canceled job ends some time later; `on_cancel` is called at once. With `instead`, all
        others of the kind are canceled, so that it is never too much.
        """
        with self._lock:
            waiting = [job for job in self._unfinished if job.kind == kind and not job.canceled]
            if len(waiting) >= MOST_WAITING and not instead:
                raise TooMany
            job = Job(next(self._numbers), kind, words, self._changed, on_cancel)
            self._unfinished.append(job)
            self._queues[kind].put((job, work))  # in the order of the list
        for each in waiting if instead else ():
            each.replaced = True
            each.cancel()
        self._changed()
        return job

    def _serve(self, queue: "SimpleQueue[tuple[Job, Work]]") -> None:
        while True:
            self._run(*queue.get())

    def _run(self, job: Job, work: Work) -> None:
        try:
            if not job.canceled:
                job.begin()
                job.say(job.words)
                work(job)
        except Canceled:
            pass
        except Exception:
            traceback.print_exc()  # the next one is to run nevertheless
        finally:
            with self._lock:
                self._unfinished.remove(job)
                self._idle.notify_all()
            self._changed()

    def unfinished(self, kind: str | None = None) -> list[Job]:
        """Jobs that wait or run, oldest first."""
        with self._lock:
            return [job for job in self._unfinished if kind in (None, job.kind)]

    def find(self, name: str) -> Job | None:
        """The unfinished job of an id."""
        return next((job for job in self.unfinished() if job.id == name), None)

    def cancel(self, kind: str | None = None) -> None:
        """Cancel all jobs of a kind."""
        for job in self.unfinished(kind):
            job.cancel()

    def wait(self, kind: str | None = None, timeout: float | None = None) -> bool:
        """Wait until no job of a kind is left; whether that came true in time."""
        with self._lock:
            return self._idle.wait_for(
                lambda: not any(kind in (None, job.kind) for job in self._unfinished), timeout
            )

    def stop(self) -> None:
        """Cancel everything and wait for it for some seconds."""
        self.cancel()
        self.wait(timeout=PATIENCE)
