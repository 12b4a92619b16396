"""Checks for estimators of bags, including your own."""

from unshuffle.testing._run import BagCheckResult, check_bag_estimator, parametrize_with_bag_checks

__all__ = ["BagCheckResult", "check_bag_estimator", "parametrize_with_bag_checks"]
