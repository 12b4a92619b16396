"""What all kernels between sets promise, and what each of them is tested for besides."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle._core.bags import Bags
from unshuffle.kernels import (
    FisherVectorKernel,
    MaxMapKernel,
    MeanMapKernel,
    SetKernelSum,
    SlicedWassersteinKernel,
)
from unshuffle.kernels.sets._models.set_vectors import TYPICAL, typical_sets
from unshuffle.testing import parametrize_with_bag_checks

KERNELS = [
    MeanMapKernel(),
    MeanMapKernel("linear", normalize=False),
    MeanMapKernel("poly", outer="rbf"),
    MeanMapKernel(n_features=40, random_state=0),
    SlicedWassersteinKernel(10, random_state=0),
    FisherVectorKernel(2, random_state=0),
    FisherVectorKernel(2, gamma=1.0, random_state=0),
    SetKernelSum([MeanMapKernel(), SlicedWassersteinKernel(5, random_state=0)]),
    MaxMapKernel(),
    MaxMapKernel(n_landmarks=20, outer="rbf"),
    SetKernelSum([MaxMapKernel(), MaxMapKernel("linear")]),
]


def name_of(kernel):
    return repr(kernel).replace("\n", "")[:50]


each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=name_of)


@parametrize_with_checks([each for i, each in enumerate(KERNELS) if i not in (1, 2, 6)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_bag_checks(KERNELS[2:])
def test_bag_checks(estimator, check):
    check(estimator)


@each_kernel
def test_gram_matrices_are_symmetric_and_positive_semi_definite(kernel, ragged):
    rng = np.random.default_rng(0)
    random = [rng.normal(size=(rng.integers(1, 20), 3)) for _ in range(80)]
    for bags in (ragged[0], random):
        K = clone(kernel).fit_transform(bags)
        np.testing.assert_array_equal(K, K.T)
        values = np.linalg.eigvalsh(K)
        assert values[0] > -1e-12 * values[-1]


@each_kernel
def test_gram_matrices_of_written_digits_are_positive_semi_definite(kernel, shared_data):
    images = np.load(shared_data("mnist3000.npz"))["images"][:100]
    bags = [np.argwhere(image > 127) / 28 for image in images]
    values = np.linalg.eigvalsh(clone(kernel).fit_transform(bags))
    assert values[0] > -1e-12 * values[-1]


@each_kernel
def test_the_order_of_points_changes_nothing(kernel, ragged, reordered):
    bags, _ = ragged
    one, other = clone(kernel), clone(kernel)
    np.testing.assert_array_equal(one.fit_transform(bags), other.fit_transform(reordered(bags)))
    np.testing.assert_array_equal(one.transform(bags[:7]), one.transform(reordered(bags[:7], 1)))


@each_kernel
def test_the_order_of_sets_only_reorders(kernel, ragged):
    bags, _ = ragged
    order = np.random.default_rng(0).permutation(len(bags))
    K = clone(kernel).fit_transform(bags)
    other = clone(kernel).fit_transform([bags[i] for i in order])
    np.testing.assert_allclose(other, K[np.ix_(order, order)], atol=1e-12 * np.abs(K).max())


@each_kernel
def test_threads_change_nothing(kernel, ragged):
    bags = [*ragged[0], *ragged[0]]  # more than one tile
    one, two = clone(kernel).set_params(n_jobs=1), clone(kernel).set_params(n_jobs=2)
    np.testing.assert_array_equal(one.fit_transform(bags), two.fit_transform(bags))


@each_kernel
def test_blocks_are_parts_of_the_whole(kernel, ragged):
    bags, _ = ragged
    fitted = clone(kernel).fit(bags)
    K = fitted.fit_transform(bags)
    within = {"atol": 1e-13 * np.abs(K).max()}
    np.testing.assert_allclose(fitted.transform(bags), K, **within)
    np.testing.assert_allclose(fitted.transform(bags[3:9]), K[3:9], **within)
    np.testing.assert_allclose(fitted.gram(bags[3:9], bags[:5]), K[3:9, :5], **within)
    np.testing.assert_allclose(fitted.gram(bags[3:9]), K[3:9, 3:9], **within)
    np.testing.assert_allclose(clone(kernel).gram(bags), K, **within)


@each_kernel
def test_the_description_of_a_set_does_not_depend_on_the_other_sets(kernel, ragged):
    bags, _ = ragged
    fitted = clone(kernel).fit(bags)
    alone = fitted.gram([bags[7]])
    np.testing.assert_array_equal(alone, fitted.gram(bags[7:8]))
    np.testing.assert_allclose(alone, fitted.gram(bags)[7:8, 7:8], rtol=1e-13)


@each_kernel
def test_a_kernel_that_is_not_fitted_takes_its_widths_from_both_sides(kernel, ragged):
    bags, _ = ragged
    K = clone(kernel).gram(bags)
    cross = clone(kernel).gram(bags[:20], bags[20:])
    np.testing.assert_allclose(cross, K[:20, 20:], atol=1e-12 * np.abs(K).max())


@each_kernel
def test_fitted_kernels_can_be_stored(kernel, ragged):
    bags, _ = ragged
    fitted = clone(kernel).fit(bags)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(bags[:4]), fitted.transform(bags[:4]))


@each_kernel
@pytest.mark.parametrize("form", ["list", "objects"])
def test_support_vector_machines_learn_from_ragged_sets(kernel, ragged, form):
    bags, labels = ragged[0][:40], ragged[1][:40]
    if form == "objects":
        bags = np.fromiter(bags, dtype=object, count=len(bags))
    model = Pipeline([("sets", clone(kernel)), ("svc", SVC(kernel="precomputed"))])
    search = GridSearchCV(model, {"svc__C": [1.0, 100.0]}, cv=2).fit(bags, labels)
    assert search.best_score_ > 0.7
    scores = cross_val_score(search.best_estimator_, bags, labels, cv=2)
    assert scores.mean() == pytest.approx(search.best_score_)


@each_kernel
@pytest.mark.parametrize(
    ("bags", "message"),
    [
        ([], "found 0 bags"),
        ([np.ones((3, 2)), np.empty((0, 2))], "Bag 1 of X is empty"),
        ([np.ones((3, 2)), np.ones((3, 3))], "bag 1 of X have 3 columns"),
        ([np.ones((3, 2)), np.full((3, 2), np.nan)], "bag 1 of X contains NaN"),
    ],
)
def test_input_that_is_not_sets_is_refused(kernel, bags, message):
    with pytest.raises(ValueError, match=message):
        clone(kernel).fit(bags)


@each_kernel
def test_new_sets_must_have_the_fitted_columns(kernel, ragged):
    bags, _ = ragged
    with pytest.raises(NotFittedError):
        clone(kernel).transform(bags)
    fitted = clone(kernel).fit(bags)
    with pytest.raises(ValueError, match="X has 3 features"):
        fitted.transform([np.ones((4, 3))])
    with pytest.raises(ValueError, match="For a single one pass"):
        fitted.transform(bags[0])
    with pytest.raises(ValueError, match="X has 3 features"):
        clone(kernel).gram(bags, [np.ones((4, 3))])


def test_typical_sets_are_spread_over_all_and_do_not_depend_on_their_order():
    points = np.arange(2 * TYPICAL + 100.0)[:, None]
    found = typical_sets(Bags.of([points[[i]] for i in range(len(points))]))
    assert len(found) == TYPICAL
    assert np.diff(found.points[:, 0]).max() <= 3
    other = typical_sets(Bags.of([points[[i]] for i in range(len(points))][::-1]))
    np.testing.assert_array_equal(found.points, other.points)


def test_sets_may_come_from_a_generator(ragged):
    bags, _ = ragged
    for kernel in (MeanMapKernel(), SetKernelSum([MeanMapKernel()])):
        whole = kernel.fit_transform(bags)
        np.testing.assert_array_equal(kernel.fit_transform(each for each in bags), whole)


@pytest.mark.parametrize(
    ("bags", "message"),
    [
        (1e-200 * np.random.default_rng(0).normal(size=(3, 4, 2)), "too small for a float"),
        (np.ones((3, 4, 2), dtype=complex), "Complex data not supported: bag 0"),
        (np.ones((3, 4, 2), dtype="M8[s]"), "dates or times"),
    ],
)
def test_numbers_that_cannot_be_compared_are_refused(bags, message):
    with pytest.raises(ValueError, match=message):
        MeanMapKernel("linear").fit(bags)
    with pytest.raises(ValueError, match=message):
        MeanMapKernel("linear").gram(bags)


def test_zero_jobs_are_refused(ragged):
    with pytest.raises(ValueError, match="`n_jobs` must not be 0"):
        MeanMapKernel(n_jobs=0).fit(ragged[0])


def test_a_gram_matrix_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("unshuffle._core.parameters.available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match=r"20 by 20 sets .* dask_gram"):
        MeanMapKernel("linear").gram(np.zeros((20, 1)))


def test_one_set_is_not_taken_for_many(ragged):
    bags, _ = ragged
    with pytest.raises(ValueError, match=r"Y is 2-D, .* but those of X have several"):
        MeanMapKernel().gram(bags, bags[0])
    with pytest.raises(ValueError, match=r"X is 2-D, .* but those of Y have several"):
        MeanMapKernel().gram(bags[0], bags)


@pytest.mark.parametrize(
    ("kernel", "changed"),
    [
        (MeanMapKernel(), {"normalize": False}),
        (MaxMapKernel(), {"outer": "rbf"}),
        (FisherVectorKernel(2, random_state=0), {"power": 1.0}),
        (SlicedWassersteinKernel(5), {"n_quantiles": 3}),
    ],
    ids=["mean map", "max map", "Fisher vectors", "sliced Wasserstein"],
)
def test_parameters_set_after_a_fit_wait_for_the_next(ragged, kernel, changed):
    bags = ragged[0][:10]
    kernel = clone(kernel)
    K = kernel.fit_transform(bags)
    kernel.set_params(**changed)
    np.testing.assert_allclose(kernel.transform(bags), K, atol=1e-12)
