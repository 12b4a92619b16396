"""Put bags of points into a common order, and describe them by few components."""

from unshuffle.alignment._match_shapes import match_shapes
from unshuffle.alignment._minimum_volume_pca import MinimumVolumePCA

__all__ = ["MinimumVolumePCA", "match_shapes"]
