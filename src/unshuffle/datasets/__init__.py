"""Example data: generators, and pictures and digits that ship with scikit-learn."""

from unshuffle.datasets._paired import (
    Paired,
    digits_views,
    grid_points,
    make_paired_views,
    photo_halves,
    sample_digits,
)
from unshuffle.datasets._sets import LabeledSets, digit_sets, mixture_sets

__all__ = [
    "LabeledSets",
    "Paired",
    "digit_sets",
    "digits_views",
    "grid_points",
    "make_paired_views",
    "mixture_sets",
    "photo_halves",
    "sample_digits",
]
