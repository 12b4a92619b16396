"""Sets made comparable before they are compared: moments removed, neighbourhoods described."""

from unshuffle.preprocessing._neighborhood_shape import NeighborhoodShape
from unshuffle.preprocessing._set_normalizer import SetNormalizer

__all__ = ["NeighborhoodShape", "SetNormalizer"]
