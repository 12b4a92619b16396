import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from unshuffle import OrbitLearner

# The data of the checks are no orbits.
pytestmark = pytest.mark.filterwarnings("ignore::unshuffle.base.DoubtWarning")
# Checks that cannot hold by the nature of the method, each with its reason.
EXPECTED_FAILED_CHECKS = {
    "check_estimators_dtypes": "rounded to whole numbers a row is zero, which no matrix moves"
}


@parametrize_with_checks([OrbitLearner(1, n_components=1, n_neighbors=2, n_init=1, tol=0.1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [OrbitLearner(n_init=1, tol=0.1)], expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS
)
def test_scikit_learn_checks_with_all_components(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["generators_", "coefficients_", "prototype_"])
def test_there_is_nothing_before_a_fit(name):
    assert not hasattr(OrbitLearner(), name)
