"""Cross-validation by scikit-learn on two workers: the same scores as in one process."""

import os
import pickle

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from tests.cluster.marked import Marked

from unshuffle import PermutationInvariantSVC, SetAligner
from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    FisherVectorKernel,
    MaxMapKernel,
    MeanMapKernel,
    SetKernelSum,
    SlicedWassersteinKernel,
)
from unshuffle.preprocessing import SetNormalizer

pytest.importorskip("distributed")
pytestmark = pytest.mark.xdist_group("cluster")

KERNELS = {
    "mean map": MeanMapKernel(),
    "mean map of means": MeanMapKernel("poly", outer="rbf"),
    "random features": MeanMapKernel(n_features=512, random_state=0),
    "max map": MaxMapKernel(),
    "sliced Wasserstein": SlicedWassersteinKernel(random_state=0),
    "Fisher vectors": FisherVectorKernel(random_state=0),
    "mixtures": ExpectedLikelihoodKernel(2, random_state=0),
    "mixtures in feature space": ExpectedLikelihoodKernel(2, base_kernel="rbf", random_state=0),
    "Gaussians": BhattacharyyaKernel(),
    "sum": SetKernelSum([MeanMapKernel(), SlicedWassersteinKernel(5, random_state=0)]),
}


def labeled_sets(n_sets=40, width=2):
    """Sets of two classes that overlap, of 10 to 29 points."""
    rng = np.random.default_rng(0)
    labels = np.arange(n_sets) % 2
    sets = [
        rng.normal(size=(rng.integers(10, 30), width)) * (1.0 + 0.3 * label) for label in labels
    ]
    return sets, labels


def model(kernel):
    return make_pipeline(SetNormalizer(scale=None), kernel, SVC(kernel="precomputed"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mean map", "sliced Wasserstein", "mixtures", "sum"])
def test_scores_of_set_kernels_are_the_same(cluster, name):
    sets, labels = labeled_sets()
    expected = cross_val_predict(
        model(KERNELS[name]), sets, labels, cv=4, method="decision_function"
    )
    with parallel_config("dask"):
        found = cross_val_predict(
            model(KERNELS[name]), sets, labels, cv=4, method="decision_function"
        )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [PermutationInvariantSVC(random_state=0), SetAligner(random_state=0)]
)
def test_scores_of_templates_are_the_same(cluster, estimator):
    sets, labels = labeled_sets()
    if isinstance(estimator, SetAligner):
        estimator = make_pipeline(estimator, SVC())
    expected = cross_val_score(estimator, sets, labels, cv=4)
    with parallel_config("dask"):
        found = cross_val_score(estimator, sets, labels, cv=4)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_a_grid_search_finds_the_same(cluster):
    sets, labels = labeled_sets()
    grid = {"meanmapkernel__gamma": [0.1, 1.0, 10.0], "svc__C": [1.0, 10.0]}
    searches = [GridSearchCV(model(MeanMapKernel()), grid, cv=3) for _ in range(2)]
    searches[0].fit(sets, labels)
    with parallel_config("dask"):
        searches[1].fit(sets, labels)
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_array_equal(*scores)
    assert searches[0].best_params_ == searches[1].best_params_
    assert len(set(scores[0])) > 1


@pytest.mark.slow
def test_a_gram_matrix_of_blocks_is_searched_like_any_other(cluster):
    sets, labels = labeled_sets(150)
    kernel = MeanMapKernel(gamma=1.0)
    expected = cross_val_score(SVC(kernel="precomputed"), kernel.gram(sets), labels, cv=4)
    gram = kernel.dask_gram(sets, block_size=64).compute()
    with parallel_config("dask"):
        found = cross_val_score(SVC(kernel="precomputed"), gram, labels, cv=4)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_a_worker_killed_midway_changes_nothing(cluster, processes, tmp_path):
    sets, labels = labeled_sets(20)
    before = processes()
    deadly = model(MeanMapKernel(Marked(tmp_path / "marks", 8)))
    with parallel_config("dask"):
        found = cross_val_score(deadly, sets, labels, cv=4)
    assert (tmp_path / "marks.killed").exists()
    assert processes() != before
    harmless = model(MeanMapKernel(Marked(tmp_path / "harmless", 10**9)))
    np.testing.assert_array_equal(found, cross_val_score(harmless, sets, labels, cv=4))
    assert len(os.listdir(tmp_path / "harmless")) > 8  # the deadly call was not the last


@pytest.mark.parametrize("width", [2, 3, 5, 166])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.filterwarnings("ignore")  # few points for so many columns
def test_a_fitted_kernel_takes_little_more_than_its_sets(name, width):
    sets, _ = labeled_sets(60, width)
    fitted = KERNELS[name].fit(sets)
    # Mixtures in feature space keep similarities of landmarks, however many sets there are.
    beside = 8 * fitted.n_landmarks**2 if "feature space" in name else 0
    assert len(pickle.dumps(fitted)) <= 3 * sum(points.nbytes for points in sets) + beside
