"""Two worker processes for all tests of this folder, and a bound on each test."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from tests.cluster import marked

BOUND = 900  # seconds after which a test that waits for a cluster fails


def start_cluster() -> Any:
    """Two worker processes of one thread each."""
    import dask
    from distributed import LocalCluster

    # Workers start and answer late where other work shares the cores.
    dask.config.set(
        {
            "distributed.comm.timeouts.connect": "600s",
            "distributed.comm.timeouts.tcp": "600s",
            "distributed.deploy.lost-worker-timeout": "600s",
        }
    )
    # Port 0 is any that is free: other clusters may run on this machine.
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")


@pytest.fixture(autouse=True)
def bounded(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test hangs: a cluster that is gone is easily waited for forever."""
    if not hasattr(signal, "SIGALRM"):
        pytest.skip("no alarms on this system")

    def give_up(*_: Any) -> None:
        raise AssertionError(f"still running after {BOUND} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(BOUND)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True, scope="module")
def sent_by_value(request: pytest.FixtureRequest) -> Iterator[None]:
    """Workers cannot import the tests."""
    cloudpickle = pytest.importorskip("cloudpickle")
    modules = [request.module, marked]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture(scope="module")
def shared_client() -> Iterator[Any]:
    """Client of a cluster that the tests of a module share."""
    pytest.importorskip("distributed")
    from distributed import Client

    with start_cluster() as workers, Client(workers) as client:
        yield client


@pytest.fixture
def cluster(shared_client: Any) -> Any:
    """Client of two workers; one that an earlier test killed has been replaced."""
    shared_client.wait_for_workers(2)
    return shared_client


@pytest.fixture
def mortal() -> Iterator[Any]:
    """A cluster and its client that a test may end."""
    pytest.importorskip("distributed")
    import dask
    from distributed import Client

    # A client whose cluster is gone does not undo that it is Dask's default.
    with dask.config.set(scheduler=None), start_cluster() as workers, Client(workers) as client:
        yield workers, client


@pytest.fixture
def processes(cluster: Any) -> Callable[[], set[int]]:
    """Numbers of the worker processes."""
    return lambda: set(cluster.run(os.getpid).values())


@pytest.fixture
def kill_one(processes: Callable[[], set[int]]) -> Iterator[Callable[..., None]]:
    """Kills one worker when it is called first, and checks in the end that it was called."""
    before, killed = processes(), []
    assert len(before) == 2

    def kill(*_: Any) -> None:
        if not killed:
            killed.append(min(before))
            os.kill(killed[0], signal.SIGKILL)

    yield kill
    assert killed
    while True:  # until another has taken its place
        with suppress(OSError):
            if len(processes() - set(killed)) == 2:
                return
        time.sleep(0.1)


@pytest.fixture
def sent(cluster: Any) -> Any:
    """Context whose `calls` counts ours that workers ran inside it."""
    from distributed import get_task_stream

    class Sent(get_task_stream):  # type: ignore[misc]
        @property
        def calls(self) -> int:
            return sum("_receive_call" in str(each["key"]) for each in self.data)

    return Sent(cluster)
