"""Checks that estimators of bags keep their promises, for tests of your own estimators too."""

from unshuffle.testing._run import (
    BagCheckResult,
    check_bag_estimator,
    parametrize_with_bag_checks,
)

__all__ = ["BagCheckResult", "check_bag_estimator", "parametrize_with_bag_checks"]
