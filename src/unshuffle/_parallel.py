"""The one place that starts threads, and that cuts long work so that Ctrl-C can stop it."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import cached_property
from numbers import Integral
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

# More threads than this many for each core only wait for one another.
THREADS_PER_CORE = 4
# Work of one compiled call, in steps of about a nanosecond: a tenth of a second.
WORK_PER_CALL = 1e8
# Products of so many pairs of numbers take a tenth of a second or more; a thread to wait for
# them, a tenth of a millisecond.
LONG_PRODUCT = 1e9


def spans(n: int, work: float) -> Iterator[tuple[int, int]]:
    """Ranges of `range(n)` that are short enough for one compiled call each.

    Python sees Ctrl-C between two calls, never during one.

    Examples
    --------
    >>> list(spans(5, 4e7))
    [(0, 2), (2, 4), (4, 5)]
    """
    step = per_call(work)
    for start in range(0, n, step):
        yield start, min(start + step, n)


def per_call(work: float) -> int:
    """How many pieces that take so many nanoseconds each one compiled call may do."""
    return int(max(1.0, WORK_PER_CALL / max(work, 1.0)))


def wait_for(function: Callable[..., Result], *arguments: Any) -> Result:
    """Return what a long call into a library gives; Ctrl-C gets through while it runs.

    For calls that cannot be cut into pieces and that release the interpreter lock: products and
    decompositions of NumPy, SciPy's assignment, libsvm. The call runs in a thread of its own.
    After Ctrl-C it goes on in the background until it is done, and its result is dropped; so it
    must not write to anything that is used later.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)  # signals only ever reach the main thread
    outcome: Future[Result] = Future()
    # NumPy keeps its error state in the context, before version 2 in the thread.
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
    """`a @ b` of two matrices, while which Ctrl-C gets through if it takes long."""
    if a.shape[0] * a.shape[1] * b.shape[1] > LONG_PRODUCT:
        return wait_for(np.matmul, a, b)
    return np.asarray(a @ b)


def eigh(A: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Eigenvalues of a symmetric matrix in ascending order, and eigenvectors, as `product`."""
    if A.shape[0] ** 3 > LONG_PRODUCT / 10:
        return wait_for(np.linalg.eigh, A)
    return np.linalg.eigh(A)


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse a number of threads that cannot be used."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool)):
        raise ValueError(f"`n_jobs` must be a whole number or None, got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError(
            "`n_jobs` must not be 0. Pass the number of threads, -1 for one on every core, or "
            "None for one."
        )


def count_threads(n_jobs: int | None, n_tasks: int | None = None) -> int:
    """Threads to start for `n_jobs`: no more than tasks, nor than a few for each core."""
    check_n_jobs(n_jobs)
    n_threads = int(effective_n_jobs(n_jobs))
    if n_tasks is not None:
        n_threads = max(1, min(n_threads, n_tasks))
    if n_threads > THREADS_PER_CORE:  # counting the cores takes a millisecond
        n_threads = min(n_threads, THREADS_PER_CORE * cpu_count())
    return n_threads


def map_parallel(
    function: Callable[..., Result], arguments: Iterable[Any], *, n_jobs: int | None = None
) -> list[Result]:
    """Apply `function` to each of `arguments`, in order, on `n_jobs` threads.

    Threads, not processes: the work is BLAS and compiled loops that release the
    interpreter lock, and the kernel matrices are shared rather than copied. The
    results come in the order of the arguments, and BLAS is kept to one thread in each, since
    its sums round differently on two: so they never depend on `n_jobs`.
    """
    n_tasks = len(arguments) if isinstance(arguments, Sized) else None
    with one_blas_thread():
        return list(
            Parallel(n_jobs=count_threads(n_jobs, n_tasks), prefer="threads")(
                delayed(function)(each) for each in arguments
            )
        )


class _Blas:
    """The BLAS of NumPy and that of SciPy, and how many callers want it to keep to one thread."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_inside = 0
        self.limiter: Any = None

    @cached_property
    def libraries(self) -> ThreadpoolController:
        """Found once: to look for them takes milliseconds."""
        import scipy.linalg  # noqa: F401  loads its own

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
        # threadpoolctl 3.8 and later let only the thread that set a limit change it
        for library in self.libraries.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


_blas = _Blas()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which BLAS keeps to one thread.

    Its sums round differently on two, and small decompositions take longer there: threads that
    have finished go on spinning in the way of others. Callers in several threads may overlap.
    """
    _blas.enter()
    try:
        yield
    finally:
        _blas.leave()


class Workers:
    """Threads that stay, for solvers that hand out short pieces of compiled work many times.

    joblib needs about a millisecond to start a round; this needs some twenty microseconds. The
    work must release the interpreter lock, and its pieces must not touch what others write.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Number of threads, as in `map_parallel`.

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

        After Ctrl-C too it returns only then, so that no thread goes on writing.
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
