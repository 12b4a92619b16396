import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle import MinimumVolumePCA

# Checks that cannot hold by the nature of the method, each with its reason. There are none: the
# rows of a table are bags of one point.
EXPECTED_FAILED_CHECKS: dict[str, str] = {}


@parametrize_with_checks(
    [
        MinimumVolumePCA(),
        MinimumVolumePCA(2, method="covariance", kernel="rbf"),
        MinimumVolumePCA(1, method="variational", kernel="poly"),
        MinimumVolumePCA(1, unequal="missing"),
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["permutations_", "components_", "mean_"])
def test_there_is_nothing_before_a_fit(name):
    assert not hasattr(MinimumVolumePCA(), name)
