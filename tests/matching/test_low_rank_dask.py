"""The low-rank search on a cluster: joblib's Dask backend, and a worker that dies."""

import os
import signal
import sys
import time
import warnings

import numpy as np
import pytest
from joblib import parallel_config

from unshuffle import KernelizedSorting
from unshuffle.matching import DoubtWarning

pytest.importorskip("distributed")


def networks(n_items):
    """Points of clusters as seen by two random networks: only the annealed path matches them."""
    rng = np.random.default_rng(0)
    labels = rng.integers(20, size=n_items)
    latent = rng.normal(size=(20, 8))[labels] + 0.4 * rng.normal(size=(n_items, 8))
    views = []
    for n_hidden, n_features in ((64, 16), (96, 24)):
        hidden = np.tanh(latent @ rng.normal(size=(8, n_hidden)) / np.sqrt(8))
        views.append(hidden @ rng.normal(size=(n_hidden, n_features)))
    return views[0], views[1][rng.permutation(n_items)]


@pytest.fixture(scope="module")
def cluster():
    """Client of two worker processes."""
    import cloudpickle
    from distributed import Client, LocalCluster

    # Workers cannot import the tests.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with (
        # Port 0 is any that is free: other clusters may run on this machine.
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as workers,
        Client(workers) as client,
    ):
        yield client
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def sort(X, y, callback=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtWarning)
        return KernelizedSorting(
            method="low_rank", n_init=2, random_state=0, trust=False, callback=callback
        ).fit(X, y)


@pytest.mark.slow
def test_a_worker_killed_midway_changes_nothing(cluster):
    X, y = networks(800)
    expected = sort(X, y)
    before = set(cluster.run(os.getpid).values())
    assert len(before) == 2
    stages, doomed = [], []

    def kill(state):
        # Just before the starts are annealed on the workers.
        if not stages and state.stage == "matching":
            stages.append(state.stage)
            doomed.append(cluster.submit(_die_soon, pure=False))

    with parallel_config("dask"):
        found = sort(X, y, kill)
    assert stages
    assert set(cluster.run(os.getpid).values()) != before
    assert np.array_equal(found.permutation_, expected.permutation_)
    assert np.array_equal(found.objective_path_, expected.objective_path_)
    assert "groups" in "".join(_stages(X, y))  # the annealed path was taken


def _stages(X, y):
    seen = []
    sort(X, y, lambda state: seen.append(state.stage) or "groups" in state.stage)
    return seen


def _die_soon():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
