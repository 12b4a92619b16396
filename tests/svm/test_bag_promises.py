from unshuffle import PermutationInvariantSVC, SetAligner
from unshuffle.testing import parametrize_with_bag_checks


@parametrize_with_bag_checks(
    [SetAligner(), PermutationInvariantSVC(margin_weight=0.03, kernel="rbf")]
)
def test_bag_checks(estimator, check):
    check(estimator)
