"""Classify sets whose elements have no order."""

from unshuffle.svm._permutation_invariant_svc import PermutationInvariantSVC
from unshuffle.svm._set_aligner import SetAligner

__all__ = ["PermutationInvariantSVC", "SetAligner"]
