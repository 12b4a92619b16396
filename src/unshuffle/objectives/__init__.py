"""Objectives over permutations: values and gradients, as pure functions of kernel matrices."""

from unshuffle.objectives._entropy import entropy_gradient, entropy_value, entropy_weights
from unshuffle.objectives._hsic import (
    hsic_biased,
    hsic_unbiased,
    hsic_zeroed,
    squared_gradient,
    squared_value,
    trace_gradient,
    trace_value,
)

__all__ = [
    "entropy_gradient",
    "entropy_value",
    "entropy_weights",
    "hsic_biased",
    "hsic_unbiased",
    "hsic_zeroed",
    "squared_gradient",
    "squared_value",
    "trace_gradient",
    "trace_value",
]
