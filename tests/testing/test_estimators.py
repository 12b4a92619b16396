"""Every estimator of bags passes the checks."""

import inspect
from operator import attrgetter

from tests.registry import BAG_ESTIMATORS, NAMES

import unshuffle
from unshuffle import kernels
from unshuffle._core.bags import BagEstimatorMixin
from unshuffle.testing import parametrize_with_bag_checks


@parametrize_with_bag_checks(BAG_ESTIMATORS)
def test_bag_checks(estimator, check):
    check(estimator)


def test_no_estimator_of_bags_is_left_out():
    values = {attrgetter(name)(unshuffle) for name in NAMES if name.split(".")[1][0].isupper()}
    public = {
        value
        for value in values
        if inspect.isclass(value)
        and issubclass(value, BagEstimatorMixin)
        and value not in (kernels.SetKernel, BagEstimatorMixin)  # base classes
    }
    assert public == {type(estimator) for estimator in BAG_ESTIMATORS}
