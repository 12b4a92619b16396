"""Calls that a user's joblib backend runs in other processes, such as the workers of Dask."""

import pickle
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

Result = TypeVar("Result")
# Seconds between looks at a cluster that works.
LOOK_EVERY = 1.0
# Name of the task whose result is the function to call.
_SHARED = "unshuffle-function"
# Errors by which Dask and joblib tell that a cluster is gone; some versions lack some of them.
_SIGNS = {
    *("CommClosedError", "CancelledError", "ClosedClientError", "TimeoutError"),
    *("KilledWorker", "NoValidWorkerError", "NoWorkerError"),
}


def joblib_shares_memory() -> bool:
    """Whether joblib would run calls on threads of this process: yes, unless the user chose."""
    backend, _ = get_active_backend(prefer="threads")
    return bool(getattr(backend, "supports_sharedmem", False))


def runs_elsewhere(n_jobs: int | None) -> bool:
    """Whether the user's joblib backend runs `n_jobs` calls in other processes.

    Not for calls inside a task of Dask: the tasks beside it use the other workers.
    """
    if n_jobs == 1 or joblib_shares_memory():
        return False
    backend, default = get_active_backend()
    if not hasattr(backend, "client"):
        return (default if n_jobs is None else n_jobs) != 1
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return True
    return False


def send_calls(
    function: Callable[..., Result], arguments: Iterable[Any]
) -> Generator[Result, None, None]:
    """Results of calls in other processes, in order, each as soon as it is there.

    Dask gets the function as a task, whose result workers pass on to one another: it is sent once,
    and made again if a worker that holds it is lost. Everything is sent as plain bytes: arrays
    sent as such arrive at addresses for which BLAS takes other code paths, and round differently.
    """
    backend, n_jobs = get_active_backend()
    with _watched(backend):
        shared = _share(to_bytes(function), backend)
        calls = (delayed(_receive_call)(shared, to_bytes(each)) for each in arguments)
        parallel = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator")
        with closing(parallel(calls)) as results:
            for result in results:
                yield pickle.loads(result)


def to_bytes(value: Any) -> bytes:
    """Pickle a value that may hold functions defined in a function or a script."""
    try:
        import cloudpickle  # Dask's own, in which users may have registered modules
    except ImportError:
        from joblib.externals import cloudpickle
    return bytes(cloudpickle.dumps(value))


def _share(content: bytes, backend: Any) -> Any:
    """What calls are given in place of bytes that all of them need."""
    client = getattr(backend, "client", None)
    if client is None:
        return content
    import dask

    # Dask would warn about more than 10 MB, for which it recommends this.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return client.submit(bytes, content, pure=False, key=f"{_SHARED}-{uuid4().hex}")


def _receive_call(function: Any, argument: bytes) -> bytes:
    # joblib makes calls here, with Dask's future in place of bytes, if one core is left there.
    content = function.result() if hasattr(function, "result") else function
    return to_bytes(pickle.loads(content)(pickle.loads(argument)))


@contextmanager
def _watched(backend: Any) -> Iterator[None]:
    """Explain what to do if a Dask cluster is gone; do not wait for its workers forever.

    Dask would, since workers may come back. They get as long as joblib gives them at the start.
    """
    client = getattr(backend, "client", None)
    if client is None:
        yield
        return
    from distributed import Future

    patience = backend.wait_for_workers_timeout
    finished, deserted = threading.Event(), threading.Event()

    def look() -> None:
        seen = monotonic()
        while not finished.wait(LOOK_EVERY):
            try:
                if client.nthreads():
                    seen = monotonic()
                elif monotonic() - seen > patience:
                    deserted.set()
                    names = (_receive_call.__name__, _SHARED)
                    keys = [key for key in list(client.futures) if any(n in key for n in names)]
                    client.cancel([Future(key, client) for key in keys])
                    return
            except Exception:
                return  # the connection is lost, and the calls fail without help

    if patience:
        threading.Thread(target=look, daemon=True).start()
    try:
        yield
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if not kinds & _SIGNS and client.status == "running":
            raise
        raise ConnectionError(_explain(kinds, patience, deserted.is_set())) from error
    finally:
        finished.set()


def _explain(kinds: set[str], patience: float, deserted: bool) -> str:
    """What happened to a cluster, and what to do."""
    local = "or leave out joblib.parallel_config to work on this machine"
    if "KilledWorker" in kinds:
        return (
            "Several workers of the Dask cluster died while they ran the same call, most often "
            f"for lack of memory. Start workers with more memory, or fit less at once, {local}."
        )
    if deserted or "TimeoutError" in kinds or kinds & {"NoValidWorkerError", "NoWorkerError"}:
        return (
            f"The Dask cluster has had no workers for {patience:g} seconds. Start workers and "
            "call again, wait longer with parallel_config('dask', wait_for_workers_timeout=600), "
            f"{local}."
        )
    return (
        "The Dask cluster is gone: the connection to its scheduler was lost, and with it what the "
        f"workers were computing. Start it again and connect a new Client, {local}."
    )
