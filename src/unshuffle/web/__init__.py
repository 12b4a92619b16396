"""A local page on which pictures fall into place."""

from unshuffle.web._serve import serve

__all__ = ["serve"]
