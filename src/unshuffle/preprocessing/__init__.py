"""Transformers of sets of points: normalization and descriptions of neighborhoods."""

from unshuffle.preprocessing._neighborhood_shape import NeighborhoodShape
from unshuffle.preprocessing._set_normalizer import SetNormalizer

__all__ = ["NeighborhoodShape", "SetNormalizer"]
