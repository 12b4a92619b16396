"""Base classes and types for your own estimators and callbacks."""

from unshuffle._bags import BagEstimatorMixin
from unshuffle._progress import SearchState

__all__ = ["BagEstimatorMixin", "SearchState"]
