"""Matching of two or more collections by the similarities inside each."""

from unshuffle.matching._kernelized_sorting import AmbiguityWarning, KernelizedSorting
from unshuffle.matching._matches import Matches
from unshuffle.matching._multiway_sorting import MultiwaySorting

__all__ = ["AmbiguityWarning", "KernelizedSorting", "Matches", "MultiwaySorting"]
