"""What all views of the page share: a lock, listeners, messages, saving, and background work."""

import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from unshuffle.web._http.refusal import Refused
from unshuffle.web._work.jobs import Canceled, Job, Jobs, TooMany, Work
from unshuffle.web._work.state_file import Content, KeptFile

# Seconds until a state that could not be saved is saved again without a change.
_RETRY = 5.0


class StateLock:
    """Reentrant lock of a state; effects that are put off while it is held follow its release.

    Whoever holds it computes. Listeners and the disk come afterwards, so that nobody waits for
    them, and no listener runs into a lock that its caller holds.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._effects: dict[Callable[[], None], None] = {}  # each once, in order

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        effects: dict[Callable[[], None], None] = {}
        if not self._depth:
            effects, self._effects = self._effects, {}
        self._lock.release()
        for effect in effects:
            effect()

    def afterwards(self, effect: Callable[[], None]) -> None:
        """Call this once the lock is released; at once if this thread does not hold it."""
        with self:
            self._effects[effect] = None


class Workspace(ABC):
    """One view of the page, such as the wall; every method may be called from any thread.

    Any number of tabs see the same workspace. `state` says everything small about it.
    """

    def __init__(self, kinds: Sequence[str], file: KeptFile) -> None:
        self.jobs = Jobs(self.touch, kinds)
        self._file = file
        self._lock = StateLock()
        self._listeners: set[Callable[[], None]] = set()
        self._version = 0
        self._notice: dict[str, Any] | None = None
        self._noticed_step: int | None = None
        self._numbers = count(1)
        self._saving = threading.Lock()  # taken before `_lock`, never while it is held
        self._unsaved = ""
        self._retry: threading.Timer | None = None
        self._is_closed = False
        self.lost = ""  # what was not saved when it was closed, in words

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything small that the page shows."""

    @property
    def version(self) -> int:
        """Number of changes so far."""
        return self._version

    @property
    def unsaved(self) -> str | None:
        """Why the newest state is not on disk; None if it is."""
        return self._unsaved or None

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function after each change, until the returned one is called."""

        def forget() -> None:
            with self._lock:
                self._listeners.discard(listener)

        with self._lock:
            self._listeners.add(listener)
        return forget

    def touch(self) -> None:
        """Say that something has changed."""
        with self._lock:
            self._version += 1
            self._lock.afterwards(self._call_listeners)

    def _call_listeners(self) -> None:
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    @abstractmethod
    def _kept(self) -> Content | None:
        """Makes the content of the file from the present state; None leaves the file as it is.

        Called with the lock held, to take the state; what is returned is called without it.
        """

    def _save(self) -> None:
        """Write the newest state once the lock is released; `unsaved` says whether that failed.

        An older state never replaces a newer one: each writer takes the state when it is its
        turn.
        """
        self._lock.afterwards(self._write)

    def _write(self) -> None:
        with self._saving:
            if self._is_closed:
                return  # another server may use the file by now
            with self._lock:
                content = self._kept()
            if content is None:
                return
            problem = self._file.write(content)
            with self._lock:
                is_news, self._unsaved = problem != self._unsaved, problem
            if problem:
                self._try_again()
        if is_news:
            self.touch()

    def _try_again(self) -> None:
        """Save some time later, in case there is room by then."""
        if self._retry is not None:
            self._retry.cancel()
        self._retry = threading.Timer(_RETRY, self._save)
        self._retry.daemon = True
        self._retry.start()

    def _close(self, *, save: bool) -> None:
        """End all work, save for the last time, and leave the file to others."""
        self.jobs.stop()
        if save:
            self._save()
        with self._saving:
            self._is_closed = True
            if self._retry is not None:
                self._retry.cancel()
        with self._lock:
            content = self._kept() if self._unsaved else None
        if content is not None:
            place = self._file.rescue(content)
            self.lost = f"{self._unsaved} {_explain_loss(self._file.path, place)}"

    def _tell(self, message: str, kind: str = "note", *, of_step: int | None = None) -> None:
        """Show a message on all pages; one of a step of the history ends when that is left."""
        undoes = of_step is not None  # so that the message can offer Undo
        with self._lock:
            number = next(self._numbers)
            self._notice = {"id": number, "kind": kind, "message": message, "undoes": undoes}
            self._noticed_step = of_step
        self.touch()

    def _notice_at(self, step: int) -> dict[str, Any] | None:
        """The last message, unless it is about another step than this."""
        return self._notice if self._noticed_step in (None, step) else None

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
        self,
        kind: str,
        words: str,
        work: Work,
        on_cancel: Callable[[], None] | None = None,
        *,
        instead: bool = False,
    ) -> Job:
        """Begin work in the background; what goes wrong there becomes a message.

        With `instead`, other work of this kind is canceled.
        """

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
            return self.jobs.start(kind, words, guarded, on_cancel, instead=instead)
        except TooMany:
            raise Refused("Too much is going on. Try again in a moment.", status=429) from None


def _explain_loss(path: Path, place: Path | None) -> str:
    if place is None:
        return f"{path} holds what was saved before; later changes are lost."
    return f"{path} holds what was saved before; replace it with {place}, which has all changes."


def shown(name: str) -> str:
    """A name that can be sent: some are not valid Unicode."""
    return name.encode("utf-8", "replace").decode("utf-8")
