"""A cluster that is gone: an error that says so, soon, and what to do."""

import time

import numpy as np
import pytest
from joblib import parallel_config
from joblib.parallel import get_active_backend

from unshuffle import KernelizedSorting
from unshuffle._run import cluster as _cluster
from unshuffle.images import describe

pytest.importorskip("distributed")
pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.slow]

GONE = r"cluster is gone.*connect a new Client"
DESERTED = r"no workers for 2 seconds\. Start workers"


def sort(**options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return KernelizedSorting(n_init=4, trust=False, **options).fit(X, X + 0.1)


def once(function):
    """A callback that calls a function at the first step."""
    done = []

    def callback(*_):
        if not done:
            done.append(True)
            function()

    return callback


def test_a_scheduler_closed_before_the_work(mortal):
    workers, _ = mortal
    with parallel_config("dask"):
        workers.close()
        with pytest.raises(ConnectionError, match=GONE):
            sort()


def test_a_scheduler_closed_during_the_work(mortal):
    workers, _ = mortal
    with parallel_config("dask"), pytest.raises(ConnectionError, match=GONE):
        sort(callback=once(workers.close))


def test_a_client_closed_during_the_work(mortal):
    _, client = mortal
    with parallel_config("dask"), pytest.raises(ConnectionError, match=GONE):
        sort(callback=once(client.close))


def test_workers_gone_before_the_work(mortal):
    workers, connected = mortal
    workers.scale(0)
    while connected.nthreads():
        time.sleep(0.1)
    with (
        parallel_config("dask", wait_for_workers_timeout=2),
        pytest.raises(ConnectionError, match=DESERTED),
    ):
        sort()


def test_workers_gone_during_the_work(mortal):
    workers, _ = mortal
    with (
        parallel_config("dask", wait_for_workers_timeout=2),
        pytest.raises(ConnectionError, match=DESERTED),
    ):
        sort(callback=once(lambda: workers.scale(0)))


def test_a_call_made_here_does_not_wait_for_what_lost_workers_held(mortal):
    workers, connected = mortal
    with parallel_config("dask", wait_for_workers_timeout=2):
        backend, _ = get_active_backend()
        workers.scale(0)
        while connected.nthreads():
            time.sleep(0.1)
        with pytest.raises(ConnectionError, match=DESERTED), _cluster._watched(backend):
            _cluster._receive_call(_cluster._share(b"", backend), b"")


def test_features_of_pictures_during_the_work(mortal):
    workers, _ = mortal
    images = np.random.default_rng(0).integers(256, size=(200, 30, 30, 3), dtype=np.uint8)
    with parallel_config("dask"), pytest.raises(ConnectionError, match=GONE):
        describe(images, "words", on_progress=once(workers.close))
