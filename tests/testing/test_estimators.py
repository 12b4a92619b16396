"""Every estimator of bags keeps the promises of such estimators."""

from unshuffle import MinimumVolumePCA
from unshuffle.testing import parametrize_with_bag_checks


@parametrize_with_bag_checks(
    [
        MinimumVolumePCA(2),
        MinimumVolumePCA(2, "covariance", "rbf", n_init=2),
        MinimumVolumePCA(1, unequal="missing"),
    ]
)
def test_alignments(estimator, check):
    check(estimator)
