"""Threads that run one at a time and change places where a seed says, so that a run repeats."""

import random
import sys
import threading

# Lines of the watched files, at most, until another thread goes on.
_MOST_LINES = 16


class Schedule:
    """Runs functions as threads, of which one at a time is awake.

    Another one may wake up after each line of the watched files and whenever a `Lock` is taken
    or given back. Which one it is depends on the seed only.
    """

    def __init__(self, seed, watched):
        self.random = random.Random(seed)
        self.clock = 0  # number of changes of place so far
        self._watched = watched
        self._tasks = []
        self._awake = None
        self._done = threading.Event()
        self._n_lines = 1  # until the next change of place
        self.errors = []

    def run(self, *functions):
        """Run all of them to their end."""
        self._tasks = [_Task(self, function) for function in functions]
        threads = [threading.Thread(target=task.run, daemon=True) for task in self._tasks]
        for thread in threads:
            thread.start()
        self._wake(self.random.choice(self._tasks))
        assert self._done.wait(60)
        for thread in threads:
            thread.join(60)
        if self.errors:
            raise self.errors[0]

    def tick(self):
        """Count an event and say when it was."""
        self.clock += 1
        return self.clock

    def change_places(self):
        """Let another thread go on, maybe."""
        task = self._awake
        if task is None or threading.get_ident() != task.number:
            return  # a thread that is not part of it
        free = [each for each in self._tasks if each.is_free()]
        chosen = self.random.choice(free) if free else None
        if chosen is None:
            self.errors.append(AssertionError("All threads wait for each other."))
            self._done.set()
            threading.Event().wait()  # daemons, which nobody wakes any more
        if chosen is not task:
            self._wake(chosen)
            task.turn.acquire()

    def _wake(self, task):
        self._awake = task
        task.turn.release()

    def end(self, task):
        """Go on without a thread that has ended."""
        self._tasks.remove(task)
        if not self._tasks:
            self._done.set()
            return
        free = [each for each in self._tasks if each.is_free()]
        if free:
            self._wake(self.random.choice(free))
        else:
            self.errors.append(AssertionError("All threads wait for each other."))
            self._done.set()

    def trace(self, frame, event, argument):
        """Watch the lines of some files, as `sys.settrace` calls it."""
        return self._trace_line if frame.f_code.co_filename in self._watched else None

    def _trace_line(self, frame, event, argument):
        self._n_lines -= 1
        if self._n_lines <= 0:
            self._n_lines = self.random.randint(1, _MOST_LINES)
            self.change_places()
        return self._trace_line

    def lock(self):
        """A reentrant lock of these threads, for code that makes one of its own."""
        return Lock(self)

    def wait_for(self, lock):
        """Sleep until a lock is free."""
        self._awake.waits_for = lock
        self.change_places()
        self._awake.waits_for = None

    def current(self):
        """The thread that is awake; None outside of a run."""
        awake = self._awake
        return awake if awake is not None and awake.number == threading.get_ident() else None


class _Task:
    """One of the threads."""

    def __init__(self, schedule, function):
        self._schedule, self._function = schedule, function
        self.turn = threading.Semaphore(0)
        self.number = None
        self.waits_for = None

    def is_free(self):
        """Whether it waits for no lock that another one holds."""
        return self.waits_for is None or self.waits_for.owner is None

    def run(self):
        """Wait for the first turn, then run the function."""
        self.turn.acquire()
        self.number = threading.get_ident()
        sys.settrace(self._schedule.trace)
        try:
            self._function()
        except BaseException as error:
            self._schedule.errors.append(error)
        finally:
            sys.settrace(None)
            self._schedule.end(self)


class Lock:
    """A reentrant lock that a schedule knows of."""

    def __init__(self, schedule):
        self._schedule = schedule
        self.owner, self._depth = None, 0

    def acquire(self):
        """Take it, after all others who hold it."""
        task = self._schedule.current()
        if task is not None and self.owner is not task:
            self._schedule.change_places()
            while self.owner is not None:
                self._schedule.wait_for(self)
        self.owner = task
        self._depth += 1

    def release(self):
        """Give it back."""
        self._depth -= 1
        if not self._depth:
            self.owner = None
            self._schedule.change_places()

    def __enter__(self):
        self.acquire()

    def __exit__(self, *error):
        self.release()
