"""What estimators hold once fitted: an earlier fit whole where a new one fails, and no more
than they need.
"""

import pickle
import warnings

import numpy as np
import pytest

from unshuffle import (
    Collage,
    GridLayout,
    KernelizedSorting,
    MinimumVolumePCA,
    MultiwaySorting,
    OrbitLearner,
    PermutationInvariantSVC,
    SetAligner,
)
from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    FisherVectorKernel,
    MaxMapKernel,
    MeanMapKernel,
    SetKernelSum,
    SlicedWassersteinKernel,
)
from unshuffle.preprocessing import NeighborhoodShape, SetNormalizer

RNG = np.random.default_rng(0)
ANGLES = np.linspace(0.2, 1.4, 15)
ARC = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])
ONE, OTHER = RNG.normal(size=(20, 3)), RNG.normal(size=(20, 4))
SETS, LABELS = RNG.normal(size=(12, 6, 2)), np.arange(12) % 2
PICTURES = RNG.integers(0, 256, (9, 8, 8, 3), dtype=np.uint8)

# An estimator, what it is fitted to, what it is fitted to next, and the late step that fails.
REFITS = {
    "KernelizedSorting": (KernelizedSorting(), (ONE, OTHER), (ONE[:9], OTHER[:9, :2]), "_judge"),
    "MultiwaySorting": (MultiwaySorting(), ([ONE, OTHER],), ([ONE[:9], OTHER[:9]],), "_store"),
    "GridLayout": (GridLayout(), (ONE,), (OTHER[:9],), "_store"),
    "GridLayout, classic": (GridLayout(quality="classic"), (ONE,), (OTHER[:9],), "_store"),
    "Collage": (Collage(PICTURES[0]), (PICTURES,), (PICTURES[:4],), None),
    "MinimumVolumePCA": (MinimumVolumePCA(2), (SETS,), (SETS[:5, :, :1],), "_store"),
    "SetAligner": (SetAligner(), (SETS,), (SETS[:5, :, :1],), "_record_columns"),
    "PermutationInvariantSVC": (
        PermutationInvariantSVC(kernel="rbf", probability=True),
        (SETS, LABELS),
        (SETS[:8, :, :1], LABELS[:8]),
        "_calibrate",
    ),
    "OrbitLearner": (OrbitLearner(1), (ARC,), (2 * ONE,), "_store"),
    "BhattacharyyaKernel": (BhattacharyyaKernel(), (SETS,), (SETS[:5, :, :1],), "_store"),
    "ExpectedLikelihoodKernel": (
        ExpectedLikelihoodKernel(2, base_kernel="rbf"),
        (SETS,),
        (SETS[:5, :, :1],),
        "_store",
    ),
    "FisherVectorKernel": (
        FisherVectorKernel(n_components=2),
        (SETS,),
        (SETS[:5, :, :1],),
        "_store",
    ),
    "MaxMapKernel": (MaxMapKernel(), (SETS,), (SETS[:5, :, :1],), "_store"),
    "MeanMapKernel": (MeanMapKernel(), (SETS,), (SETS[:5, :, :1],), "_store"),
    "SetKernelSum": (
        SetKernelSum([MeanMapKernel(), SlicedWassersteinKernel()]),
        (SETS,),
        (np.zeros((3, 4, 2)),),
        None,
    ),
    "SlicedWassersteinKernel": (
        SlicedWassersteinKernel(),
        (SETS,),
        (SETS[:5, :, :1],),
        "_store",
    ),
    "NeighborhoodShape": (NeighborhoodShape(), (SETS,), (SETS[:5, :, :1],), "_record_columns"),
    "SetNormalizer": (SetNormalizer(), (SETS,), (SETS[:5, :, :1],), "_record_columns"),
}


def fails(*args, **options):
    raise ZeroDivisionError("out of order")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("name", REFITS)
def test_a_fit_that_fails_leaves_the_earlier_one_whole(name, error, monkeypatch):
    estimator, data, others, step = REFITS[name]

    def fail(*args, **options):
        raise error("out of order")

    estimator.fit(*data)
    if "callback" in estimator.get_params() and error is ZeroDivisionError:
        before = dict(vars(estimator), callback=fail)
        with pytest.raises(error):
            estimator.set_params(callback=fail).fit(*others)
        assert_unchanged(estimator, before)
        estimator.set_params(callback=None)
    if step is not None and not (error is KeyboardInterrupt and step in ("_judge", "_calibrate")):
        before = dict(vars(estimator))
        monkeypatch.setattr(type(estimator), step, fail)
        with pytest.raises(error):
            estimator.fit(*others)
        assert_unchanged(estimator, before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFITS)
def test_a_refused_input_leaves_the_earlier_fit_whole(name):
    estimator, data, _, _ = REFITS[name]
    before = dict(vars(estimator.fit(*data)))
    with pytest.raises((ValueError, TypeError)):
        estimator.fit(*([np.full((4, 3), np.nan)] * len(data)))
    assert_unchanged(estimator, before)


def test_items_that_cannot_be_added_leave_the_layout_whole(monkeypatch):
    layout = GridLayout((5, 6), random_state=0).fit(ONE)
    before = dict(vars(layout))
    layout.set_params(callback=fails)
    with pytest.raises(ZeroDivisionError):
        layout.add(ONE[:2])
    assert_unchanged(layout, dict(before, callback=fails))


def assert_unchanged(estimator, before):
    after = vars(estimator)
    assert sorted(after) == sorted(before)
    assert [name for name in before if after[name] is not before[name]] == []


BAGS = RNG.normal(size=(60, 40, 2))
# Largest size of a pickle as a multiple of the bytes of the sets, and what must come out of it
# as it went in.
PICKLED = {
    "BhattacharyyaKernel": (BhattacharyyaKernel(), 1.3, "transform"),
    "Bhattacharyya, rbf": (BhattacharyyaKernel(base_kernel="rbf", n_landmarks=40), 2, "transform"),
    "ExpectedLikelihoodKernel": (ExpectedLikelihoodKernel(2), 1.5, "transform"),
    "Expected likelihood, rbf": (
        ExpectedLikelihoodKernel(1, base_kernel="rbf", n_landmarks=40),
        2,
        "transform",
    ),
    "FisherVectorKernel": (FisherVectorKernel(4), 1.7, "transform"),
    "MaxMapKernel": (MaxMapKernel(), 2.5, "transform"),
    "MeanMapKernel": (MeanMapKernel(), 1.3, "transform"),
    "MeanMapKernel, narrow": (MeanMapKernel(gamma=10.0), 1.6, "transform"),
    "MeanMapKernel, waves": (MeanMapKernel(n_features=500, random_state=0), 1.3, "transform"),
    "SlicedWassersteinKernel": (SlicedWassersteinKernel(), 1.3, "transform"),
    "SetKernelSum": (
        SetKernelSum([MeanMapKernel(), SlicedWassersteinKernel()]),
        1.4,
        "transform",
    ),
    "SetAligner": (SetAligner(), 1, "transform"),
    "MinimumVolumePCA": (MinimumVolumePCA(2, max_iter=3), 2, "transform"),
    "PermutationInvariantSVC": (PermutationInvariantSVC(max_iter=3), 2.5, "decision_function"),
    "OrbitLearner": (OrbitLearner(1, max_iter=3, n_neighbors=2), 3, "transform"),
    "GridLayout": (GridLayout(random_state=0), 1.6, "arrange"),
}


@pytest.mark.parametrize("name", PICKLED)
def test_a_pickle_is_about_as_large_as_what_was_fitted(name):
    estimator, most, method = PICKLED[name]
    data = BAGS
    if name in ("OrbitLearner", "GridLayout"):
        data = np.abs(BAGS.reshape(-1, 8)[:80]) + 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three rounds do not settle
        estimator.fit(data, np.arange(len(data)) % 2)
    pickled = pickle.dumps(estimator)
    assert len(pickled) < most * data.nbytes
    again = pickle.loads(pickled)
    expected = getattr(estimator, method)(data)
    assert np.array_equal(getattr(again, method)(data), expected)
    assert np.array_equal(getattr(again, method)(data), expected)  # nor later
