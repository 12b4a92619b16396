"""Matching of two collections by the similarities inside each."""

from unshuffle.matching._kernelized_sorting import AmbiguityWarning, KernelizedSorting
from unshuffle.matching._matches import Matches

__all__ = ["AmbiguityWarning", "KernelizedSorting", "Matches"]
