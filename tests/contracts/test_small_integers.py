"""Counts may be small NumPy integers, which overflow where Python's do not."""

import warnings
from inspect import signature

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import unshuffle
from unshuffle import assignment, kernels, layout, metrics, preprocessing, svm
from unshuffle._core.parameters import SHARED, Form

RNG = np.random.RandomState(0)
TABLE = RNG.rand(12, 4)
SETS = [RNG.rand(9, 2) + (i % 2) for i in range(8)]
TILES = RNG.randint(256, size=(20, 6, 6, 3)).astype(np.uint8)
TEMPLATE = RNG.randint(256, size=(40, 60, 3)).astype(np.uint8)

# Values that overflow eight bits as soon as they are multiplied or added to.
ESTIMATORS = {
    "KernelizedSorting": (unshuffle.KernelizedSorting, (TABLE, TABLE[::-1]), {"n_init": 4}),
    "MultiwaySorting": (unshuffle.MultiwaySorting, ([TABLE, TABLE[::-1]],), {"n_init": 4}),
    "MinimumVolumePCA": (
        unshuffle.MinimumVolumePCA,
        (SETS,),
        {"kernel": "rbf", "n_components": 5, "n_points": 9, "degree": 2, "n_init": 4},
    ),
    "PermutationInvariantSVC": (
        unshuffle.PermutationInvariantSVC,
        (SETS, [i % 2 for i in range(8)]),
        {"kernel": "rbf", "n_points": 9, "degree": 2},
    ),
    "SetAligner": (svm.SetAligner, (SETS,), {"kernel": "rbf", "n_points": 9, "degree": 2}),
    "OrbitLearner": (
        unshuffle.OrbitLearner,
        (TABLE,),
        {"n_generators": 2, "n_components": 3, "n_neighbors": 5, "n_init": 2, "max_iter": 20},
    ),
    "MeanMapKernel, waves": (
        kernels.MeanMapKernel,
        (SETS,),
        {"n_features": 120, "degree": 2, "random_state": 0},
    ),
    "MeanMapKernel, poly": (
        kernels.MeanMapKernel,
        (SETS,),
        {"base_kernel": "poly", "degree": 120, "n_features": None, "gamma": 0.01},
    ),
    "MaxMapKernel": (kernels.MaxMapKernel, (SETS,), {"n_landmarks": 20}),
    "SlicedWassersteinKernel": (kernels.SlicedWassersteinKernel, (SETS,), {}),
    "FisherVectorKernel": (kernels.FisherVectorKernel, (SETS,), {"n_components": 2}),
    "ExpectedLikelihoodKernel": (
        kernels.ExpectedLikelihoodKernel,
        (SETS,),
        {"n_components": 2, "degree": 2, "max_components": 3, "n_init": 2},
    ),
    "BhattacharyyaKernel": (kernels.BhattacharyyaKernel, (SETS,), {"degree": 2}),
    "NeighborhoodShape": (preprocessing.NeighborhoodShape, (SETS,), {}),
    "Collage": (unshuffle.Collage, (TILES[:2],), {"template": TEMPLATE, "detail": 3}),
    "Collage, shape": (
        unshuffle.Collage,
        (TILES,),
        {"template": TEMPLATE, "detail": 3, "shape": (12, 15)},
    ),
}


def counts_of(kind):
    """Parameters of an estimator that are whole numbers with bounds."""
    return [
        name
        for name in signature(kind).parameters
        if any(
            isinstance(form, Form) and form.words.startswith("a whole number at least")
            for form in {**SHARED, **kind._constraints}.get(name, ())
        )
    ]


def fitted(kind, data, options):
    if "random_state" in signature(kind).parameters:
        options = {"random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, UserWarning))
        warnings.simplefilter("error", RuntimeWarning)
        return kind(**options).fit(*data)


def arrays_of(estimator):
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and isinstance(value, np.ndarray | int | float)
    }


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_takes_counts_of_eight_bits(name):
    kind, data, options = ESTIMATORS[name]
    counts = counts_of(kind)
    assert counts
    values = {count: options.get(count, 100) for count in counts}
    small = {k: None if v is None else np.int8(v) for k, v in values.items()}
    plain = arrays_of(fitted(kind, data, {**options, **values}))
    found = arrays_of(fitted(kind, data, {**options, **small}))
    assert plain.keys() == found.keys()
    for attribute, value in plain.items():
        np.testing.assert_array_equal(found[attribute], value, err_msg=attribute)


def test_functions_take_counts_and_indices_of_eight_bits():
    assert layout.rectangle_for(np.int8(120)) == layout.rectangle_for(120)
    many = RNG.rand(200, 2)
    shape = (np.int8(10), np.int8(20))
    assert unshuffle.GridLayout(shape=shape, random_state=0).fit(many).grid_.shape == (10, 20)
    order = np.arange(100, dtype=np.uint8)
    assert metrics.matching_accuracy(order, order.astype(np.int8)) == 1.0
    frozen = np.array([[100, 120], [5, 7]], dtype=np.int8)
    found = assignment.solve_assignment(RNG.rand(200, 200), frozen=frozen)
    assert found.columns[100] == 120
    wide = [RNG.rand(9, 200) for _ in range(4)]
    chosen = preprocessing.SetNormalizer(columns=np.array([3, -1], dtype=np.int8)).fit(wide)
    np.testing.assert_array_equal(
        chosen.transform(wide)[0],
        preprocessing.SetNormalizer(columns=[3, 199]).fit(wide).transform(wide)[0],
    )
    assert layout.summarize(many, np.int8(100)).indices.shape == (100,)


def test_a_permutation_without_sign_that_repeats_is_refused():
    twice = np.zeros(3, dtype=np.uint64)
    with pytest.raises(ValueError, match="uses item 0 of y 3 times"):
        unshuffle.matching.Matches(twice, np.ones(3), ["a"] * 3, ["b"] * 3)
