"""How much collections depend on each other, and how right a matching is."""

from unshuffle.metrics._dependence import cka, hsic
from unshuffle.metrics._matching import foscttm, matching_accuracy

__all__ = ["cka", "foscttm", "hsic", "matching_accuracy"]
