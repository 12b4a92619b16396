"""The one place that starts workers."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from joblib import Parallel, delayed
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
    with threadpool_limits(limits=1, user_api="blas"):
        return list(
            Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(function)(each) for each in arguments
            )
        )
