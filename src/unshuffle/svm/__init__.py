"""Classify sets whose elements have no order."""

from unshuffle.svm._set_aligner import SetAligner

__all__ = ["SetAligner"]
