"""Gram matrices of sets in blocks, as Dask arrays."""

import os
import sys

import numpy as np
import pytest
from sklearn.base import clone
from tests.cluster.marked import Marked

from unshuffle.kernels import (
    ExpectedLikelihoodKernel,
    FisherVectorKernel,
    MaxMapKernel,
    MeanMapKernel,
    SetKernelSum,
    SlicedWassersteinKernel,
)

pytest.importorskip("distributed")
pytestmark = pytest.mark.xdist_group("cluster")

KERNELS = [
    MeanMapKernel(),
    MaxMapKernel(n_landmarks=50),
    MeanMapKernel("poly", outer="rbf"),
    SlicedWassersteinKernel(5, random_state=0),
    FisherVectorKernel(3, random_state=0),
    SetKernelSum([MeanMapKernel(), SlicedWassersteinKernel(5, random_state=0)]),
    ExpectedLikelihoodKernel(2, random_state=0),
]


def sets(n, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(rng.normal(size=2), 1.0, size=(rng.integers(5, 15), 2)) for _ in range(n)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("fitted", [False, True])
def test_blocks_hold_the_same_numbers_to_the_last_bit(kernel, fitted):
    bags, others = sets(150), sets(70, seed=1)
    kernel = clone(kernel)
    if fitted:
        kernel.fit(bags[:30])
    found = kernel.dask_gram(bags, block_size=64)
    assert found.chunks == ((64, 64, 22), (64, 64, 22))
    np.testing.assert_array_equal(found.compute(), kernel.gram(bags))
    found = kernel.dask_gram(bags, others, block_size=100)
    assert found.chunks == ((128, 22), (70,))
    np.testing.assert_array_equal(found.compute(), kernel.gram(bags, others))


def test_half_of_the_blocks_are_computed(monkeypatch):
    pairs = []
    compute = MeanMapKernel._gram

    def counted(self, a, b=None):
        pairs.append((len(a), None if b is None else len(b)))
        return compute(self, a, b)

    monkeypatch.setattr(MeanMapKernel, "_gram", counted)
    MeanMapKernel(gamma=1.0).dask_gram(sets(150), block_size=64).compute(scheduler="threads")
    expected = [(64, None), (64, 64), (64, 22), (64, None), (64, 22), (22, None)]
    assert sorted(map(str, pairs)) == sorted(map(str, expected))


def test_tasks_hold_the_points_of_their_block_alone():
    import cloudpickle

    bags = [np.random.default_rng(i).normal(size=(500, 2)) for i in range(640)]
    kernel = SlicedWassersteinKernel(5, gamma=1.0, n_quantiles=8).fit(bags)
    tasks = dict(kernel.dask_gram(bags, block_size=64).__dask_graph__())
    sizes = [len(cloudpickle.dumps(task)) for task in tasks.values()]
    everything = sum(bag.nbytes for bag in bags)
    assert max(sizes) < 1.1 * everything / 10
    assert sum(sizes) < 1.2 * everything


def test_nothing_is_computed_before_it_is_asked_for(tmp_path):
    folder = tmp_path / "marks"
    MeanMapKernel(Marked(folder, 10**9)).dask_gram(sets(150), block_size=64)
    assert os.listdir(folder) == []


def test_a_missing_dask_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r"pip install 'unshuffle\[dask\]'"):
        MeanMapKernel().dask_gram(sets(3))


@pytest.mark.parametrize("block_size", [0, -64, 2.5, "many"])
def test_a_block_must_hold_a_set(block_size):
    with pytest.raises(ValueError, match="`block_size` must be"):
        MeanMapKernel().dask_gram(sets(3), block_size=block_size)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS[2:], ids=lambda kernel: type(kernel).__name__)
def test_two_workers_give_the_same_numbers_to_the_last_bit(cluster, kernel):
    bags, kernel = sets(200), clone(kernel)
    np.testing.assert_array_equal(
        kernel.dask_gram(bags, block_size=64).compute(), kernel.gram(bags)
    )


@pytest.mark.slow
def test_a_worker_killed_midway_changes_nothing(cluster, processes, tmp_path):
    bags, before = sets(200), processes()
    assert len(before) == 2
    # 4 blocks of up to 64 sets, each in three groups: 10 calls for the lengths of mean maps, and
    # up to six for each of 10 pairs of blocks. The deadly one comes when some are done.
    deadly = MeanMapKernel(Marked(tmp_path / "marks", 25))
    found = deadly.dask_gram(bags, block_size=64).compute()
    assert (tmp_path / "marks.killed").exists()
    assert len(before - processes()) == 1

    harmless = MeanMapKernel(Marked(tmp_path / "harmless", 10**9))
    np.testing.assert_array_equal(found, harmless.gram(bags))
    assert len(os.listdir(tmp_path / "harmless")) >= 50  # the deadly one was not the last
