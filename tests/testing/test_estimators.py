"""Every estimator of bags passes the checks."""

import inspect

import unshuffle
from unshuffle import (
    MinimumVolumePCA,
    PermutationInvariantSVC,
    SetAligner,
    alignment,
    kernels,
    preprocessing,
    svm,
)
from unshuffle._bags import BagEstimatorMixin
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
from unshuffle.testing import parametrize_with_bag_checks

# At least one of each; rooms check more of theirs.
ESTIMATORS = [
    MinimumVolumePCA(2),
    MinimumVolumePCA(2, "covariance", "rbf", n_init=2),
    MinimumVolumePCA(1, unequal="missing"),
    SetAligner("ball", kernel="rbf", unequal="rectangular"),
    PermutationInvariantSVC(margin_weight=0.1, template="mean", unequal="rectangular"),
    PermutationInvariantSVC(probability=True, max_iter=2),
    MeanMapKernel(),
    MaxMapKernel(),
    MaxMapKernel("linear", outer="rbf"),
    SlicedWassersteinKernel(10),
    FisherVectorKernel(3),
    SetKernelSum([MeanMapKernel(), SlicedWassersteinKernel(10)]),
    ExpectedLikelihoodKernel(),
    ExpectedLikelihoodKernel("bic", covariance_type="diag", normalize=False),
    ExpectedLikelihoodKernel(2, base_kernel="rbf"),
    BhattacharyyaKernel(),
    BhattacharyyaKernel(base_kernel="rbf"),
    SetNormalizer(shear=True),
    NeighborhoodShape(4),
]


@parametrize_with_bag_checks(ESTIMATORS)
def test_bag_checks(estimator, check):
    check(estimator)


def test_no_estimator_of_bags_is_left_out():
    public = {
        value
        for room in (unshuffle, alignment, kernels, preprocessing, svm)
        for name in room.__all__
        if inspect.isclass(value := getattr(room, name))
        and issubclass(value, BagEstimatorMixin)
        and value is not kernels.SetKernel  # a base class
    }
    assert public == {type(estimator) for estimator in ESTIMATORS}
