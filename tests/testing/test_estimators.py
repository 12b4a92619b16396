"""Every estimator of bags keeps the promises of such estimators."""

from unshuffle import MinimumVolumePCA, SetAligner
from unshuffle.kernels import (
    BhattacharyyaKernel,
    ExpectedLikelihoodKernel,
    FisherVectorKernel,
    MeanMapKernel,
    SetKernelSum,
    SlicedWassersteinKernel,
)
from unshuffle.preprocessing import NeighborhoodShape, SetNormalizer
from unshuffle.testing import parametrize_with_bag_checks


@parametrize_with_bag_checks(
    [
        MinimumVolumePCA(2),
        MinimumVolumePCA(2, "covariance", "rbf", n_init=2),
        MinimumVolumePCA(1, unequal="missing"),
        SetAligner(),
        SetAligner("ball", kernel="rbf", unequal="rectangular"),
    ]
)
def test_alignments(estimator, check):
    check(estimator)


@parametrize_with_bag_checks(
    [
        MeanMapKernel(),
        MeanMapKernel(n_features=50, outer="rbf"),
        SlicedWassersteinKernel(10),
        FisherVectorKernel(3),
        SetKernelSum([MeanMapKernel(), SlicedWassersteinKernel(10)]),
        ExpectedLikelihoodKernel(),
        ExpectedLikelihoodKernel("bic", covariance_type="diag", normalize=False),
        ExpectedLikelihoodKernel(2, base_kernel="rbf"),
        BhattacharyyaKernel(),
        BhattacharyyaKernel(base_kernel="rbf"),
    ]
)
def test_set_kernels(estimator, check):
    check(estimator)


@parametrize_with_bag_checks(
    [SetNormalizer(), SetNormalizer(scale="columns", shear=True), NeighborhoodShape(4)]
)
def test_preprocessing(estimator, check):
    check(estimator)
