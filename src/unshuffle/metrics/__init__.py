"""Dependence between collections, and quality of matchings and layouts."""

from unshuffle.metrics._dependence import cka, hsic
from unshuffle.metrics._layout import distance_preservation_quality, neighbor_distance
from unshuffle.metrics._matching import foscttm, matching_accuracy

__all__ = [
    "cka",
    "distance_preservation_quality",
    "foscttm",
    "hsic",
    "matching_accuracy",
    "neighbor_distance",
]
