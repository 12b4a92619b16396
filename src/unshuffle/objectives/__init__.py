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
from unshuffle.objectives._multiway import (
    entropy_swap_changes,
    multiway_entropy,
    multiway_gradient,
    multiway_hsic,
    multiway_weights,
)
from unshuffle.objectives._volume import (
    LeaveOneOut,
    covariance_spectrum,
    expected_trace,
    log_volume,
    trace_of_bags,
)

__all__ = [
    "LeaveOneOut",
    "covariance_spectrum",
    "entropy_gradient",
    "entropy_swap_changes",
    "entropy_value",
    "entropy_weights",
    "expected_trace",
    "hsic_biased",
    "hsic_unbiased",
    "hsic_zeroed",
    "log_volume",
    "multiway_entropy",
    "multiway_gradient",
    "multiway_hsic",
    "multiway_weights",
    "squared_gradient",
    "squared_value",
    "trace_gradient",
    "trace_of_bags",
    "trace_value",
]
