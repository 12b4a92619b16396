"""Data to try things on: generators, and what ships with scikit-learn."""

from unshuffle.datasets._bags import Clouds, LabelledSets, digit_clouds, mixture_sets
from unshuffle.datasets._paired import (
    Paired,
    digits_views,
    grid_points,
    make_paired_views,
    photo_halves,
    sample_digits,
)

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
