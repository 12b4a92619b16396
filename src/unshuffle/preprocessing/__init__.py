"""Sets made comparable before they are compared: moments removed, neighbourhoods described."""

from unshuffle.preprocessing._neighborhoods import NeighborhoodShape
from unshuffle.preprocessing._normalizer import SetNormalizer

__all__ = ["NeighborhoodShape", "SetNormalizer"]
