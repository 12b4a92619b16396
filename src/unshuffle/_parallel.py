"""The one place that starts workers."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

Result = TypeVar("Result")


def map_parallel(
    function: Callable[..., Result], arguments: Iterable[Any], *, n_jobs: int | None = None
) -> list[Result]:
    """Apply `function` to each of `arguments`, in order, on `n_jobs` threads.

    Threads, not processes: the work is BLAS and compiled loops that release the
    interpreter lock, and the kernel matrices are shared rather than copied. The
    results come in the order of the arguments, and BLAS is kept to one thread in each, since
    its sums round differently on two: so they never depend on `n_jobs`.

    Parameters
    ----------
    function : callable
        Takes one argument.
    arguments : iterable
        One call is made for each.
    n_jobs : int or None, default=None
        Number of threads; None is 1 unless a `joblib.parallel_config` says
        otherwise, -1 is all cores. More threads use more cores.

    Returns
    -------
    results : list
        `function` of each argument, in order.
    """
    with one_blas_thread():
        return list(
            Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(function)(each) for each in arguments
            )
        )


def n_threads(n_jobs: int | None, most: int) -> int:
    """Threads that share `most` pieces of work, for memory that each of them takes."""
    return min(effective_n_jobs(n_jobs or None), most)


def one_blas_thread() -> threadpool_limits:
    """Context in which BLAS keeps to one thread.

    Its sums round differently on two, and small decompositions take longer there: threads that
    have finished go on spinning in the way of others.
    """
    return threadpool_limits(limits=1, user_api="blas")


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
        self.n_threads = effective_n_jobs(n_jobs)
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
