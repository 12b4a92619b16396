"""Data to try things on: generators, and what ships with scikit-learn."""

from unshuffle.datasets._clouds import Clouds, digit_clouds
from unshuffle.datasets._digits import digits_views, grid_points, sample_digits
from unshuffle.datasets._mixtures import LabelledSets, mixture_sets
from unshuffle.datasets._paired import Paired
from unshuffle.datasets._photos import photo_halves
from unshuffle.datasets._synthetic import make_paired_views

__all__ = [
    "Clouds",
    "LabelledSets",
    "Paired",
    "digit_clouds",
    "digits_views",
    "grid_points",
    "make_paired_views",
    "mixture_sets",
    "photo_halves",
    "sample_digits",
]
