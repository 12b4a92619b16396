"""Measuring: each method works in a process of its own, and the repeats of all take turns.

A process imports the area, makes the problem and warms up before time is taken. A method that
passes its limits is stopped with its process. Areas are modules with

- `TITLE`, `ABOUT`: heading and introduction of the page;
- `SIZE`: what the sizes of the problems count;
- `CORES`: 1 if everything runs on one core, or None for all;
- `problems()`: the problems, from small to large. Their data are made in the processes.
"""

import ctypes
import multiprocessing
import os
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from benchmarks._records import Record, Seconds

MEGABYTE = 1e6
PEAK = Path("/proc/self/clear_refs")  # resets the peak; only Linux has it
POLL = 0.02  # seconds between looks at a process that works
LONG = 2.0  # seconds; a first call that takes longer counts, a shorter one is the warm-up
SHORT = 0.01  # seconds; shorter calls are repeated within one measurement
# Packages of peers, by the module that is imported.
PACKAGES = {
    "ot": "POT",
    "vc_flas": "vc-flas",
    "pycpd": "pycpd",
    "ott": "ott-jax",
    "lap": "lapx",
    "umap": "umap-learn",
    "torch": "torch",
}

Result = TypeVar("Result")


class Limits(NamedTuple):
    """Of one call."""

    seconds: float
    megabytes: float


class Effort(NamedTuple):
    """How often short calls are repeated: `least` times, then up to `most` within `seconds`."""

    least: int
    most: int
    seconds: float
    long: int  # repeats of calls of more than two seconds, if less than `patience`
    patience: float


PEER_LIMITS, OUR_LIMITS = Limits(120.0, 8000.0), Limits(900.0, 16_000.0)
FULL = Effort(least=5, most=11, seconds=2.0, long=3, patience=5.0)
QUICK = Effort(least=3, most=7, seconds=0.4, long=1, patience=0.0)


@dataclass(frozen=True)
class Method:
    """One way to solve a problem.

    Attributes
    ----------
    name : str
        As it is shown.
    start : callable
        Takes the data, prepares (imports, compiles) and returns the call that is timed.
    kind : {"peer", "ours"}
        The first of ours on a problem is the one that others are compared with.
    needs : str
        Module of a peer that may not be installed.
    quick : bool
        Whether quick runs include it.
    """

    name: str
    start: Callable[[Any], Callable[[], Any]]
    kind: str = "peer"
    needs: str = ""
    quick: bool = True


@dataclass(frozen=True)
class Problem:
    """Data, the methods that are compared on them, and how good their results are.

    Attributes
    ----------
    name, size : str and int
        Problems of one name differ in size.
    make : callable
        Returns the data.
    methods : sequence of Method
        Ours first.
    judge : callable
        Takes data and result, returns the quality by name.
    quick : bool
        Whether quick runs include it.
    memory : bool
        Whether peak memory is measured.
    """

    name: str
    size: int
    make: Callable[[], Any]
    methods: Sequence[Method]
    judge: Callable[[Any, Any], dict[str, float]] = lambda data, result: {}
    quick: bool = False
    memory: bool = True


class Stopped(Exception):
    """A method failed or passed a limit."""


class Worker:
    """A process that runs one method of one area on one problem after the other."""

    def __init__(self, area: str, method: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, area, method), daemon=True)
        self.process.start()
        other.close()

    def ask(self, limits: Limits, *question: Any) -> Any:
        """The answer; raises `Stopped` if there is none within the limits."""
        self.send(*question)
        return self.answer(limits)

    def send(self, *question: Any) -> None:
        """Ask, and do not wait for the answer."""
        with suppress(OSError):  # `answer` says what happened
            self.connection.send(question)

    def answer(self, limits: Limits) -> Any:
        """What it was asked last."""
        start = time.monotonic()
        try:
            while not self.connection.poll(POLL):
                if time.monotonic() - start > limits.seconds:
                    self.stop()
                    raise Stopped(f"over {limits.seconds:.0f} s")
                if resident("VmRSS", self.process.pid) > limits.megabytes:
                    self.stop()
                    raise Stopped(f"over {limits.megabytes / 1000:.0f} GB")
            answer, failed = self.connection.recv()
        except (EOFError, OSError) as error:  # killed, for example for its memory
            self.stop()
            raise Stopped(f"ended with code {self.process.exitcode}") from error
        if failed:
            raise Stopped(failed)
        return answer

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.is_alive()

    def close(self) -> None:
        """Let the process end, so that libraries can clean up; kill it if it does not."""
        self.connection.close()
        self.process.join(timeout=3.0)
        self.stop()

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()


def work(connection: Any, area_name: str, method_name: str) -> None:
    """Answer questions until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C ends
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    warnings.simplefilter("ignore")
    area: Any = None
    problem: Any = None
    data = call = result = None
    with suppress(EOFError, OSError):
        while True:
            question, *details = connection.recv()
            answer: Any = None
            try:
                if area is None:
                    area = import_area(area_name, alone=True)
                if question == "load":
                    data = call = result = None
                    problem = next(
                        each for each in area.problems() if [each.name, each.size] == details
                    )
                    method = next(each for each in problem.methods if each.name == method_name)
                    data = problem.make()
                    call = method.start(data)
                elif question == "run":
                    result = None
                    result, *answer = measured(call, *details, area)
                else:
                    answer = problem.judge(data, result)
                failed = ""
            except Exception as error:
                failed = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            connection.send((answer, failed))


def import_area(name: str, *, alone: bool = False) -> Any:
    """The module; a process of its own keeps to the cores that the area asks for."""
    area = import_module(f"benchmarks.{name}")
    if alone and area.CORES == 1 and hasattr(os, "sched_setaffinity"):
        # Before the first call, so that no library has started threads.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        from threadpoolctl import threadpool_limits

        threadpool_limits(limits=1)
    return area


def measured(
    call: Callable[[], Result], number: int, with_peak: bool, area: Any
) -> tuple[Result, float, float | None]:
    """Result, seconds of one of several calls, and megabytes if they are asked for."""
    if getattr(area, "DEVICE", None):
        return on_gpu(call, number)
    if with_peak:
        (result, seconds), megabytes, _ = with_memory(partial(repeated, call, number))
        return result, seconds, megabytes
    return *repeated(call, number), None


def repeated(call: Callable[[], Result], number: int) -> tuple[Result, float]:
    start = time.perf_counter()
    for _ in range(number):
        result = call()
    return result, (time.perf_counter() - start) / number


def on_gpu(call: Callable[[], Result], number: int) -> tuple[Result, float, float]:
    """The same until the device is done, with its memory."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()

    def run() -> Result:
        result, _ = repeated(call, number)
        torch.cuda.synchronize()
        return result

    result, seconds = repeated(run, 1)
    peak = torch.cuda.max_memory_allocated()
    return result, seconds / number, (peak - before) / MEGABYTE


class Bench:
    """Measures the problems of one area; its processes last until `close`."""

    def __init__(self, area: str, effort: Effort, say: Callable[[str], None]) -> None:
        self.area, self.effort, self.say = area, effort, say
        self.workers: dict[str, Worker] = {}
        self.curves: dict[tuple[str, str], Record] = {}  # last record of each method
        self.missing: set[str] = set()

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers.values():
            worker.close()

    def measure(self, problem: Problem) -> Iterator[Record]:
        """Records of all methods that are installed and within reach."""
        chosen = (each for each in problem.methods if each.quick or self.effort != QUICK)
        methods = [each for each in chosen if self._is_there(each)]
        reasons = {each.name: self._beyond(each, problem) for each in methods}
        # Nothing is timed yet, so that all may load at once.
        for method in methods:
            if not reasons[method.name]:
                self._worker(method).send("load", problem.name, problem.size)
        runs = {
            method.name: self._begin(method, problem, reasons[method.name]) for method in methods
        }
        self._repeat(runs)
        for method in methods:
            blank = Record(self.area, problem.name, problem.size, method.name, method.kind)
            record = self._finish(blank, runs[method.name])
            self.curves[record.problem, record.method] = record
            yield record

    def _worker(self, method: Method) -> Worker:
        worker = self.workers.get(method.name)
        if worker is None or not worker.alive:
            worker = self.workers[method.name] = Worker(self.area, method.name)
        return worker

    def _is_there(self, method: Method) -> bool:
        if not method.needs or find_spec(method.needs) is not None:
            return True
        if method.needs not in self.missing:
            self.missing.add(method.needs)
            package = PACKAGES[method.needs]
            self.say(f"{method.name} is left out. To compare with it: pip install {package}")
        return False

    def _beyond(self, method: Method, problem: Problem) -> str:
        """Why a peer cannot be expected to end within its limits, from the size before."""
        last = self.curves.get((problem.name, method.name))
        if last is None or method.kind == "ours":
            return ""
        if last.failed:
            return (
                last.failed
                if last.failed.startswith("not run")
                else (f"not run: {last.failed} at {last.size:,}")
            )
        assert last.seconds is not None
        # No peer that comes near its limits grows more slowly than with the square.
        if last.seconds.median * (problem.size / last.size) ** 2 > 1.5 * PEER_LIMITS.seconds:
            return f"not run: {last.seconds.median:.0f} s at {last.size:,}"
        return ""

    def _begin(self, method: Method, problem: Problem, reason: str) -> "Timings":
        """Warm up; memory is measured in the second call, or in the first if it is long."""
        limits = OUR_LIMITS if method.kind == "ours" else PEER_LIMITS
        if reason:
            return Timings(None, limits, failed=reason)
        timings = Timings(self.workers[method.name], limits)
        try:
            timings.ask_loaded()
            first, timings.megabytes = timings.run(problem.memory)
            if first > LONG:
                timings.seconds.append(first)
            else:
                again, timings.megabytes = timings.run(problem.memory)
                timings.number = max(1, int(SHORT / max(again, 1e-9)))
        except Stopped as stop:
            timings.failed = str(stop)
        return timings

    def _repeat(self, runs: "dict[str, Timings]") -> None:
        """Repeat all in turn, so that other work on this machine disturbs them alike."""
        for turn in range(self.effort.most):
            for timings in runs.values():
                if not timings.failed and self._goes_on(timings, turn):
                    try:
                        timings.seconds.append(timings.run()[0])
                    except Stopped as stop:
                        timings.failed = str(stop)

    def _goes_on(self, timings: "Timings", turn: int) -> bool:
        taken = timings.seconds
        if taken and taken[0] > LONG:
            return len(taken) < self.effort.long and taken[0] < self.effort.patience
        enough = sum(taken) * timings.number > self.effort.seconds
        return turn < self.effort.least or not enough

    def _finish(self, record: Record, timings: "Timings") -> Record:
        try:
            quality = timings.judged()
        except Stopped as stop:
            return replace(record, failed=str(stop))
        taken = [digits(each) for each in timings.seconds]
        return replace(
            record,
            seconds=Seconds(digits(statistics.median(taken)), min(taken), max(taken), len(taken)),
            megabytes=None if timings.megabytes is None else round(timings.megabytes, 1),
            quality={
                name: value if isinstance(value, int) else digits(value, 5)
                for name, value in quality.items()
            },
        )


@dataclass
class Timings:
    """One method on one problem while it is measured."""

    worker: Worker | None
    limits: Limits
    number: int = 1  # calls in one measurement
    megabytes: float | None = None
    seconds: list[float] = field(default_factory=list)
    failed: str = ""

    def ask_loaded(self) -> None:
        """Wait until the data are there."""
        assert self.worker is not None
        self.worker.answer(self.limits)

    def run(self, with_peak: bool = False) -> tuple[float, float | None]:
        """Seconds of a call, and megabytes if they are asked for."""
        assert self.worker is not None
        seconds, megabytes = self.worker.ask(self.limits, "run", self.number, with_peak)
        return seconds, megabytes

    def judged(self) -> dict[str, float]:
        """Quality of the last result."""
        if self.failed or self.worker is None:
            raise Stopped(self.failed)
        return dict(self.worker.ask(OUR_LIMITS, "judge"))


def digits(value: float, n: int = 4) -> float:
    """The number with few significant digits."""
    return float(f"{value:.{n}g}")


def data_folder() -> Path | None:
    """Real data: the folder that UNSHUFFLE_DATA names, or one beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("UNSHUFFLE_DATA", beside))
    return folder if folder.is_dir() else None


def timed(function: Callable[[], Result], *, repeats: int = 1) -> tuple[Result, float]:
    """Result of a call and its shortest duration, which is least disturbed by other work."""
    best = float("inf")
    for _ in range(repeats):
        result, seconds = repeated(function, 1)
        best = min(best, seconds)
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


def resident(field: str, process: int | str | None = "self") -> float:
    """Memory in megabytes; `resource` would start from the parent process's peak."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # it has just ended, or this is not Linux
        return 0.0
    # A process that has ended, but is not collected yet, has no such line.
    kilobytes = next((line.split()[1] for line in lines if line.startswith(field)), 0)
    return 1024 * int(kilobytes) / MEGABYTE
