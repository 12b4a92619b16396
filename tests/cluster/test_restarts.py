"""Restarts of searches on two workers: the same numbers as in one process."""

import os
import pickle
import warnings

import numpy as np
import pytest
from joblib import parallel_config

from unshuffle import KernelizedSorting, MinimumVolumePCA, MultiwaySorting, OrbitLearner
from unshuffle._run.parallel import count_threads, map_parallel

pytest.importorskip("distributed")
pytestmark = pytest.mark.xdist_group("cluster")

N_INIT = 5


def views(n_items, n_views=2):
    rng = np.random.default_rng(0)
    points, found = rng.normal(size=(n_items, 3)), []
    for _ in range(n_views):
        turned = points @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        found.append((turned + 0.1 * rng.normal(size=points.shape))[rng.permutation(n_items)])
    return found


def networks(n_items):
    """Points of clusters as seen by two random networks: only the annealed path matches them."""
    rng = np.random.default_rng(0)
    labels = rng.integers(20, size=n_items)
    latent = rng.normal(size=(20, 8))[labels] + 0.4 * rng.normal(size=(n_items, 8))
    found = []
    for n_hidden, n_features in ((64, 16), (96, 24)):
        hidden = np.tanh(latent @ rng.normal(size=(8, n_hidden)) / np.sqrt(8))
        found.append(hidden @ rng.normal(size=(n_hidden, n_features)))
    return found[0], found[1][rng.permutation(n_items)]


def sort(method, n_items=50, **options):
    options = {"n_init": N_INIT, "random_state": 0, "trust": False, **options}
    return KernelizedSorting(method=method, **options).fit(*views(n_items))


def align_many(**options):
    return MultiwaySorting(n_init=N_INIT, random_state=0, **options).fit(views(30, 3))


def align_bags(**options):
    bags = list(np.random.default_rng(0).normal(size=(8, 12, 2)))
    return MinimumVolumePCA(n_init=N_INIT, random_state=0, **options).fit(bags)


def learn_orbit(**options):
    X, moved = np.random.default_rng(0).normal(size=(2, 40, 4))
    learner = OrbitLearner(n_generators=2, n_init=N_INIT, max_iter=10, random_state=0, **options)
    return learner.fit(X, X + 0.1 * moved)


def sort_factors(**options):
    options = {"method": "low_rank", "n_init": 2, "random_state": 0, "trust": False, **options}
    return KernelizedSorting(**options).fit(*networks(400))


SEARCHES = {
    **{
        method: lambda method=method, **options: sort(method, **options)
        for method in ("refined", "classic", "unbiased", "entropy")
    },
    "low_rank": sort_factors,
    "MultiwaySorting": align_many,
    "MinimumVolumePCA": align_bags,
    "OrbitLearner": learn_orbit,
}


@pytest.fixture(autouse=True)
def silent():
    """What is found is compared, not judged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def assert_same(found, expected):
    """All fitted attributes are the same to the last bit."""
    names = [name for name in vars(expected) if name.endswith("_") and name[0] != "_"]
    assert len(names) > 5
    for name in names:
        assert pickle.dumps(getattr(found, name)) == pickle.dumps(getattr(expected, name)), name


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
def test_workers_run_the_starts_and_give_the_same_numbers(sent, search):
    expected = SEARCHES[search]()
    with parallel_config("dask"), sent:
        found = SEARCHES[search]()
    assert sent.calls >= 4
    assert_same(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
def test_a_worker_killed_midway_changes_nothing(kill_one, search):
    expected = SEARCHES[search]()
    with parallel_config("dask"):
        found = SEARCHES[search](callback=kill_one)
    found.set_params(callback=None)
    assert_same(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
def test_a_callback_sees_every_step_and_can_stop(cluster, search):
    steps, expected = [], []
    SEARCHES[search](callback=expected.append)
    with parallel_config("dask"):
        SEARCHES[search](callback=steps.append)
    assert [each.iteration for each in steps] == list(range(1, len(steps) + 1))
    assert [each.objective for each in steps] == [each.objective for each in expected]
    assert np.all(np.diff([each.fraction for each in steps]) >= 0)
    for one, other in zip(steps, expected, strict=True):
        np.testing.assert_array_equal(one.permutation, other.permutation)
    seen = []
    with parallel_config("dask"):
        stopped = SEARCHES[search](callback=lambda state: seen.append(state) or len(seen) == 3)
    assert len(seen) == 3
    assert stopped.converged_ in (True, False)  # it is fitted


def test_one_job_stays_here(sent):
    with parallel_config("dask"), sent:
        sort("refined", n_jobs=1)
    assert sent.calls == 0


def test_threads_here_are_not_counted_by_the_workers_there(cluster):
    with parallel_config("dask"):
        assert count_threads(None) == 1
        assert count_threads(3) == 3
        assert count_threads(-1) >= 1
        pids = map_parallel(lambda _: os.getpid(), range(4))
        assert set(pids) == {os.getpid()}
        pids = map_parallel(lambda _: os.getpid(), range(4), anywhere=True)
        assert os.getpid() not in pids


def test_an_error_of_a_start_is_that_of_one_process(cluster):
    K = np.random.default_rng(0).normal(size=(20, 20))
    K = K + K.T
    with (
        parallel_config("dask"),
        pytest.raises(ValueError, match="needs positive semi-definite kernels"),
    ):
        KernelizedSorting("precomputed", method="entropy", trust=False).fit(K, K)


def test_processes_of_joblib_itself_give_the_same_numbers():
    expected = sort("classic")
    with parallel_config("loky", n_jobs=2):
        found = sort("classic")
    assert_same(found, expected)
