"""Threads, calls in other processes, and long work in pieces that Ctrl-C can interrupt."""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import cached_property, partial
from itertools import count
from numbers import Integral
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from unshuffle._run.cluster import joblib_shares_memory, runs_elsewhere, send_calls
from unshuffle._run.types import Progress

Result = TypeVar("Result")

# More threads per core would only wait for each other.
THREADS_PER_CORE = 4
# Nanoseconds of work in one compiled call: a tenth of a second.
WORK_PER_CALL = 1e8
# Products of this many pairs of numbers take a tenth of a second or more; starting a thread for
# them takes a tenth of a millisecond.
LONG_PRODUCT = 1e9


def spans(n: int, work: float) -> Iterator[tuple[int, int]]:
    """Ranges of `range(n)`, each short enough for one compiled call.

    Python handles Ctrl-C between compiled calls, never during one.

    Examples
    --------
    >>> list(spans(5, 4e7))
    [(0, 2), (2, 4), (4, 5)]
    """
    step = per_call(work)
    for start in range(0, n, step):
        yield start, min(start + step, n)


def per_call(work: float) -> int:
    """Number of pieces of `work` nanoseconds each that one compiled call may process."""
    return int(max(1.0, WORK_PER_CALL / max(work, 1.0)))


def wait_for(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a long library function in a thread, so that Ctrl-C works while it runs.

    For calls that cannot be split and that release the interpreter lock: NumPy's products and
    decompositions, SciPy's assignment, libsvm. After Ctrl-C the call continues in the background
    and its result is dropped, so it must not write to anything used later.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)  # signals reach only the main thread
    outcome: Future[Result] = Future()
    # NumPy 2 keeps its error state in the context, earlier versions in the thread.
    context, errors = copy_context(), np.geterr()

    def run() -> None:
        try:
            with np.errstate(**errors):
                outcome.set_result(context.run(function, *arguments))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result()


def product(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """`a @ b` of two matrices; Ctrl-C works during long products."""
    if a.shape[0] * a.shape[1] * b.shape[1] > LONG_PRODUCT:
        return wait_for(np.matmul, a, b)
    return np.asarray(a @ b)


def eigh(A: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ascending eigenvalues and eigenvectors of a symmetric matrix; Ctrl-C works meanwhile."""
    if A.shape[0] ** 3 > LONG_PRODUCT / 10:
        return wait_for(np.linalg.eigh, A)
    return np.linalg.eigh(A)


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse an invalid number of threads."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool)):
        raise ValueError(f"`n_jobs` must be a whole number or None, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError(
            "`n_jobs` must not be 0. Pass the number of threads, -1 for one on every core, or "
            "None for one."
        )


def count_threads(n_jobs: int | None, n_tasks: int | None = None) -> int:
    """Threads to start for `n_jobs`: at most one per task and a few per core."""
    check_n_jobs(n_jobs)
    if not joblib_shares_memory():  # its own count is that of a cluster
        n_jobs = 1 if n_jobs is None else n_jobs
        n_threads = int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))
    else:
        n_threads = int(effective_n_jobs(n_jobs))
    if n_tasks is not None:
        n_threads = max(1, min(n_threads, n_tasks))
    if n_threads > THREADS_PER_CORE:  # counting the cores takes a millisecond
        n_threads = min(n_threads, THREADS_PER_CORE * cpu_count())
    return n_threads


def all_cores(n_jobs: int | None) -> int:
    """Threads for work that uses every core unless the user says otherwise."""
    n_threads = count_threads(n_jobs)
    return int(cpu_count()) if n_jobs is None and n_threads == 1 else n_threads


def map_parallel(
    function: Callable[..., Result],
    arguments: Iterable[Any],
    *,
    n_jobs: int | None = None,
    anywhere: bool = False,
    done: Callable[[], object] | None = None,
) -> list[Result]:
    """Apply `function` to each of `arguments`, in order, on `n_jobs` threads.

    Threads, not processes: the work is BLAS and compiled loops that release the interpreter lock,
    and kernel matrices are shared, not copied. Results are in the order of the arguments and do
    not depend on `n_jobs`: BLAS uses one thread in each, since its sums round differently on two.
    With `anywhere`, for long calls that write to nothing shared, a user's joblib backend, such as
    Dask, may run them in other processes. `done` is called here after each.
    """
    if anywhere and runs_elsewhere(n_jobs):
        return [_then(done, result) for result in stream_elsewhere(function, arguments)]
    n_tasks = len(arguments) if isinstance(arguments, Sized) else None
    n_threads = count_threads(n_jobs, n_tasks)
    with one_blas_thread():
        if n_threads == 1:  # joblib would take a tenth of a millisecond
            return [_then(done, function(each)) for each in arguments]
        calls = (delayed(lambda one: _then(done, function(one)))(each) for each in arguments)
        return list(Parallel(n_jobs=n_threads, require="sharedmem")(calls))


def step_counter(on_progress: Progress | None, total: int) -> Callable[[], None]:
    """Function that reports one more step; threads that share it report one after another."""
    lock, numbers = threading.Lock(), count(1)

    def step() -> None:
        if on_progress is not None:
            with lock:
                on_progress(next(numbers), total)

    return step


def stream_elsewhere(
    function: Callable[..., Result], arguments: Iterable[Any]
) -> Generator[Result, None, None]:
    """Results of calls in other processes, in order, each as soon as it is there."""
    return send_calls(partial(_call_with_one_blas_thread, function), arguments)


def _then(done: Callable[[], object] | None, result: Result) -> Result:
    if done is not None:
        done()
    return result


def _call_with_one_blas_thread(function: Callable[..., Result], argument: Any) -> Result:
    with one_blas_thread():
        return function(argument)


class _Blas:
    """BLAS of NumPy and SciPy, and the number of callers that limit it to one thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_inside = 0
        self.limiter: Any = None

    @cached_property
    def libraries(self) -> ThreadpoolController:
        """BLAS libraries, found once, since the search takes milliseconds."""
        import scipy.linalg  # noqa: F401  loads its BLAS

        return ThreadpoolController().select(user_api="blas")

    def enter(self) -> None:
        """Set the limit, if this caller is the first one in."""
        with self.lock:
            if self.n_inside == 0:
                self._take_over()
                self.limiter = self.libraries.limit(limits=1)
            self.n_inside += 1

    def leave(self) -> None:
        """Lift the limit, if this caller is the last one out."""
        with self.lock:
            self.n_inside -= 1
            if self.n_inside == 0:
                self._take_over()
                self.limiter.restore_original_limits()

    def _take_over(self) -> None:
        # since threadpoolctl 3.8 only the thread that set a limit may change it
        for library in self.libraries.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


_blas = _Blas()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which BLAS uses one thread; callers in several threads may overlap.

    Its sums round differently on two, and spinning threads slow down small decompositions.
    """
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


class Workers:
    """Persistent threads for solvers that run many short pieces of compiled work.

    A round starts in about 20 microseconds; joblib takes a millisecond. The work must release the
    interpreter lock, and no piece may touch data that another writes.

    Examples
    --------
    >>> with Workers(2) as workers:
    ...     workers.each(print, [("one piece",)])
    one piece
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_threads = count_threads(n_jobs)
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def each(self, function: Callable[..., Any], pieces: Sequence[tuple[Any, ...]]) -> None:
        """Call `function` with the arguments of each piece; return when all are done.

        Also after Ctrl-C, so that no thread keeps writing.
        """
        if self.n_threads == 1 or len(pieces) == 1:
            for piece in pieces:
                function(*piece)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads)
        running = [self._pool.submit(function, *piece) for piece in pieces]
        try:
            wait(running)
        except BaseException:
            for each in running:
                each.cancel()
            wait(running)
            raise
        for each in running:
            each.result()
