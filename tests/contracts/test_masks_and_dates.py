"""Masked entries and dates are refused wherever arrays enter; they are not numbers."""

import datetime

import numpy as np
import pytest

import unshuffle
from unshuffle import assignment, kernels, layout, metrics
from unshuffle.alignment import match_shapes
from unshuffle.matching import Matches
from unshuffle.preprocessing import SetNormalizer

X = np.random.RandomState(0).rand(12, 3)
GRAM = X @ X.T
GRID = np.arange(12).reshape(3, 4)
ORDER = np.arange(12)


def masked(values):
    """The same numbers, one of them masked."""
    mask = np.zeros(np.shape(values), dtype=bool)
    mask.flat[1] = True
    return np.ma.masked_array(values, mask)


TABLES = {
    "KernelizedSorting, first": lambda T: unshuffle.KernelizedSorting().fit(T, X),
    "KernelizedSorting, second": lambda T: unshuffle.KernelizedSorting().fit(X, T),
    "KernelizedSorting, list": lambda T: unshuffle.KernelizedSorting(["rbf"] * 2).fit([T, X], X),
    "MultiwaySorting": lambda T: unshuffle.MultiwaySorting().fit([X, T]),
    "GridLayout": lambda T: unshuffle.GridLayout().fit(T),
    "OrbitLearner": lambda T: unshuffle.OrbitLearner().fit(T),
    "MinimumVolumePCA": lambda T: unshuffle.MinimumVolumePCA().fit([X, T]),
    "PermutationInvariantSVC": lambda T: unshuffle.PermutationInvariantSVC().fit([X, T], [0, 1]),
    "MeanMapKernel": lambda T: kernels.MeanMapKernel().fit([X, T]),
    "SetNormalizer": lambda T: SetNormalizer().fit([X, T]),
    "rbf_kernel": lambda T: kernels.rbf_kernel(T),
    "rbf_kernel, second": lambda T: kernels.rbf_kernel(X, T),
    "geodesic_kernel": lambda T: kernels.geodesic_kernel(T),
    "gram_matrix": lambda T: kernels.gram_matrix(T, "linear"),
    "summarize": lambda T: layout.summarize(T, 2),
    "hsic": lambda T: metrics.hsic(X, T),
    "foscttm": lambda T: metrics.foscttm(X, T),
    "distance preservation": lambda T: metrics.distance_preservation_quality(T, GRID),
    "match_shapes": lambda T: match_shapes(T, X),
    "solve_assignment": lambda T: assignment.solve_assignment(T),
    "soft_assignment": lambda T: assignment.soft_assignment(T),
}
DATES = np.datetime64("2024-01-01") + np.arange(36).reshape(12, 3)
TIMES = {
    "datetime64": DATES,
    "timedelta64": DATES - DATES[0, 0],
    "objects": DATES.astype(object),
    "lists": DATES.tolist(),
    "one among numbers": [[0.5, 1, datetime.timedelta(1)], *X[1:].tolist()],
}


@pytest.mark.parametrize("name", TABLES)
def test_a_masked_table_is_refused(name):
    with pytest.raises(ValueError, match="is masked: some entries have no value"):
        TABLES[name](masked(X))


@pytest.mark.parametrize("form", TIMES)
@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_dates_is_refused(name, form):
    with pytest.raises(ValueError, match="holds dates or times, which have no unit as numbers"):
        TABLES[name](TIMES[form])


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]", object, "tz"])
def test_a_data_frame_with_a_column_of_dates_is_refused(kind):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    days = pd.Series(pd.date_range("2024", periods=12, tz="UTC" if kind == "tz" else None))
    frame["b"] = days - days[0] if kind == "timedelta64[ns]" else days
    if kind is object:
        frame["b"] = frame["b"].astype(object)
    with pytest.raises(ValueError, match="X holds dates or times"):
        unshuffle.GridLayout().fit(frame)


def test_an_array_whose_mask_is_empty_is_read():
    plain = unshuffle.GridLayout(random_state=0).fit(X).grid_
    found = unshuffle.GridLayout(random_state=0).fit(np.ma.masked_array(X, False)).grid_
    np.testing.assert_array_equal(found, plain)


OTHERS = {
    "Gram matrix": lambda: kernels.center(masked(GRAM)),
    "distances": lambda: kernels.median_gamma(masked(1 - GRAM / GRAM.max())),
    "cost": lambda: unshuffle.KernelizedSorting().fit(X, X, cost=masked(GRAM)),
    "frozen": lambda: unshuffle.KernelizedSorting().fit(X, X, frozen=masked([[0, 1], [1, 2]])),
    "prices": lambda: assignment.solve_assignment(GRAM, prices=masked(ORDER / 12)),
    "forbidden": lambda: assignment.solve_assignment(GRAM, forbidden=masked(GRAM < 0)),
    "permutation": lambda: metrics.matching_accuracy(masked(ORDER), ORDER),
    "grid": lambda: metrics.neighbor_distance(X, masked(GRID)),
    "positions": lambda: layout.Positions(masked(GRID), ["x"] * 12),
    "matches": lambda: Matches(masked(ORDER), np.ones(12), ["x"] * 12, ["y"] * 12),
    "confidence": lambda: Matches(ORDER, masked(np.ones(12)), ["x"] * 12, ["y"] * 12),
    "shape": lambda: unshuffle.GridLayout(shape=masked(np.ones((4, 4), bool))).fit(X),
    "labels": lambda: unshuffle.PermutationInvariantSVC().fit([X, 2 * X], masked([0, 1])),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_masked_arrays_are_refused(name):
    with pytest.raises(ValueError, match="masked"):
        OTHERS[name]()


def test_times_are_no_permutation():
    with pytest.raises(ValueError, match="`permutation` holds dates or times"):
        metrics.matching_accuracy(ORDER.astype("timedelta64[s]"), ORDER)


def test_what_is_reordered_keeps_its_mask():
    sorting = unshuffle.KernelizedSorting(random_state=0).fit(X, X)
    again = sorting.reorder(masked(X))
    assert np.ma.is_masked(again)
    assert again.mask.sum() == 1
