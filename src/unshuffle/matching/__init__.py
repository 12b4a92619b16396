"""Matching of two or more collections by the similarities inside each."""

from unshuffle.matching._kernelized_sorting import KernelizedSorting
from unshuffle.matching._matches import Matches
from unshuffle.matching._multiway_sorting import MultiwaySorting
from unshuffle.matching._trust.evidence import DoubtWarning

__all__ = ["DoubtWarning", "KernelizedSorting", "Matches", "MultiwaySorting"]
