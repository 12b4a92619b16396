"""Bags of points put into a common order, and the few components that then describe them."""

from unshuffle.alignment._minimum_volume_pca import MinimumVolumePCA
from unshuffle.alignment._shapes import match_shapes

__all__ = ["MinimumVolumePCA", "match_shapes"]
