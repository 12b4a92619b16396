"""Processes that read pictures for this one, which survives whatever happens to them.

Each is an interpreter that runs this module and answers over pipes: it is sent the task, then
batches of files, and answers for each file as soon as it is read.
"""

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Any, BinaryIO

import numpy as np

from unshuffle._pictures.decoding import Decoded
from unshuffle._pictures.reading import PictureReader, Reading, ReadingTask

# Each takes some 40 MB, and the disk is the limit before more are of use.
MAX_PROCESSES = 16
# Files sent at once: enough that no process waits, few enough that all end at the same time.
BATCH = 32
# Seconds that a process may take to finish its file after Ctrl-C.
GRACE = 3.0
# Fewer files are read by threads before processes, which start in a fifth of a second, catch up.
PROCESSES_FROM = 500
_LENGTHS = struct.Struct("<2I")  # of a message, and of the pixels that follow it
_CRASHED = "it crashes the decoder"
_KILLED = "its decoder was killed, perhaps for lack of memory"


def read_pictures(
    paths: Sequence[Path],
    reader: PictureReader,
    take: Callable[[int, Reading], None],
    step: Callable[[], None],
    *,
    n_jobs: int | None = None,
) -> None:
    """Read every file: many by processes, where they can be started, else by threads.

    `take` is called with the number of a file and its reading, and `step` after each; `take` from
    several threads at once. What `step` raises ends the reading.
    """
    # Not at the top: a process that reads pictures would load it in vain.
    from unshuffle._run.parallel import count_threads, map_parallel

    def read(i: int) -> None:
        take(i, reader.read(paths[i], i))
        step()

    n_workers = count_threads(n_jobs, len(paths))
    left: Sequence[int] = range(len(paths))
    if n_workers > 1 and len(paths) >= PROCESSES_FROM and can_start_processes():
        left = read_in_processes(paths, reader.task, n_workers, take, step)
    with warnings.catch_warnings():
        # Decoders warn about oddities in files; readings tell what matters.
        warnings.simplefilter("ignore")
        map_parallel(read, left, n_jobs=n_jobs)


def can_start_processes() -> bool:
    """Whether this program is an interpreter; others may have Python inside."""
    name = os.path.basename(sys.executable or "").lower()
    return "py" in name and not getattr(sys, "frozen", False)


def read_in_processes(
    paths: Sequence[Path],
    task: ReadingTask,
    n_processes: int,
    take: Callable[[int, Reading], None],
    step: Callable[[], None],
) -> list[int]:
    """Read pictures in processes; the numbers of those left where none can be started.

    `take` is called from threads with the number of a picture and its reading, `step` from this
    thread after each.
    """
    return _Pool(paths, task, take).run(min(n_processes, MAX_PROCESSES), step)


class _Pool:
    """Processes, each with a thread that sends it files and takes its answers."""

    def __init__(
        self, paths: Sequence[Path], task: ReadingTask, take: Callable[[int, Reading], None]
    ) -> None:
        self.paths, self.task, self.take = paths, task, take
        begins = range(0, len(paths), BATCH)
        self.pending = deque(range(each, min(each + BATCH, len(paths))) for each in begins)
        self.steps: SimpleQueue[bool] = SimpleQueue()  # False where a thread ends
        self.processes: set[_Process] = set()
        self.stopping = False
        self.error: BaseException | None = None

    def run(self, n_processes: int, step: Callable[[], None]) -> list[int]:
        threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(n_processes)]
        try:
            for thread in threads:
                thread.start()
            for _ in threads:
                while self.steps.get():
                    step()
        finally:
            self.stopping = True
            self._end(threads)
        if self.error is not None:
            raise self.error
        return [i for numbers in self.pending for i in numbers]

    def _end(self, threads: Sequence[threading.Thread]) -> None:
        """Let every process finish its file, so that its copy is kept, if that does not last."""
        end = monotonic() + GRACE
        try:
            for thread in threads:
                thread.join(max(0.0, end - monotonic()))
        finally:
            for process in tuple(self.processes):
                process.kill()
        for thread in threads:
            thread.join()

    def _serve(self) -> None:
        try:
            while self.pending and not self.stopping and self._read_with_one_process():
                pass
        except BaseException as error:
            self.error = error
        finally:
            self.steps.put(False)

    def _read_with_one_process(self) -> bool:
        """Read until no files are left or the process dies; whether to go on with another."""
        try:
            process = _Process(self.task)
        except OSError:
            return False
        self.processes.add(process)
        try:
            if not process.is_ready():
                return False
            while not self.stopping:
                try:
                    numbers = self.pending.popleft()
                except IndexError:
                    return False
                self._read_batch(process, numbers)
            return False
        except EOFError:
            return True
        finally:
            process.end()
            self.processes.discard(process)

    def _read_batch(self, process: "_Process", numbers: range) -> None:
        answers = process.read([self.paths[i] for i in numbers], numbers.start)
        for i in numbers:
            try:
                reading = next(answers)
            except EOFError:
                if i + 1 < numbers.stop:
                    self.pending.appendleft(range(i + 1, numbers.stop))
                self.take(i, Reading(reason=process.end()))
                self.steps.put(True)
                raise
            self.take(i, reading)
            self.steps.put(True)
            if self.stopping:
                return


class _Process:
    """Another interpreter that reads pictures."""

    def __init__(self, task: ReadingTask) -> None:
        self.task = task
        self._process = subprocess.Popen(
            # -P: a file in the current folder must not be taken for a module.
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # decoders in C print warnings
            env=_environment(),
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )

    def is_ready(self) -> bool:
        """Send it the task; whether it understands."""
        try:
            self._send(self.task)
            self._receive()
        except (EOFError, ValueError):  # ended, or another program
            return False
        return True

    def read(self, paths: Sequence[Path], first: int) -> Iterator[Reading]:
        """The readings of these files, one by one; EOFError if the process dies."""
        height, width = self.task.size
        self._send((first, [str(path) for path in paths]))
        for _ in paths:
            (original, *rest), data = self._receive()
            picture = None
            if data:
                pixels = np.frombuffer(data, np.uint8).reshape(height, width, 3)
                picture = Decoded(pixels, tuple(original))
            yield Reading(picture, *rest)

    def end(self) -> str:
        """Stop after the current file; the reason if the process crashed, else an empty string."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        try:
            code = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        return _KILLED if code == -9 else _CRASHED

    def kill(self) -> None:
        """End it now."""
        self._process.kill()

    def _send(self, message: Any) -> None:
        try:
            _write(self._process.stdin, message)
        except OSError as error:  # a broken pipe
            raise EOFError from error

    def _receive(self) -> tuple[Any, bytes]:
        return _read(self._process.stdout)


def _environment() -> dict[str, str]:
    """Variables for another interpreter that is to find the same modules and files."""
    root = str(Path(__file__).resolve().parents[2])
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), root]),
        "PYTHONUTF8": str(sys.flags.utf8_mode),
        "OPENBLAS_NUM_THREADS": "1",  # would take memory and is not used
    }


def _write(pipe: Any, message: Any, data: bytes = b"") -> None:
    text = json.dumps(message).encode()
    pipe.write(_LENGTHS.pack(len(text), len(data)) + text + data)
    pipe.flush()


def _read(pipe: Any) -> tuple[Any, bytes]:
    """The next message and its pixels; EOFError if the other side is gone."""
    head = pipe.read(_LENGTHS.size)
    if len(head) == _LENGTHS.size:
        n_text, n_data = _LENGTHS.unpack(head)
        text, data = pipe.read(n_text), pipe.read(n_data)
        if len(text) == n_text and len(data) == n_data:
            return json.loads(text), data
    raise EOFError


def _answer(requests: BinaryIO, answers: BinaryIO) -> None:
    """Read pictures for the process at the other side of these pipes until it is gone."""
    task, _ = _read(requests)
    reader = PictureReader(ReadingTask(tuple(task[0]), *task[1:]))
    _write(answers, None)
    while True:
        (first, paths), _ = _read(requests)
        for number, path in enumerate(paths, start=first):
            picture, *rest = reader.read(Path(path), number)
            if picture is None:
                _write(answers, (None, *rest))
            else:
                _write(answers, (picture.original, *rest), picture.pixels.tobytes())


def main() -> None:
    """Answer the process that started this one."""
    # Ctrl-C reaches every process of a terminal; the one that was started by the user decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is not an answer
    with suppress(EOFError, BrokenPipeError):
        _answer(sys.stdin.buffer, answers)
    os._exit(0)  # nothing is left to clean up


if __name__ == "__main__":
    main()
