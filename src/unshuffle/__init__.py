"""Find the order your data lost: match and learn from collections with unknown correspondences."""

from unshuffle.matching import KernelizedSorting

__version__ = "0.1.0"
__all__ = ["KernelizedSorting", "__version__"]
