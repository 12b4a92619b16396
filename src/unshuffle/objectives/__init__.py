"""Objectives over permutations and orbits: values and gradients, as pure functions."""

from unshuffle._motion import (
    exponential_action,
    exponential_jacobian,
    exponential_pullback,
    matrix_exponentials,
)
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
from unshuffle.objectives._orbits import (
    combined,
    log_trace_errors,
    log_trace_errors_diagonal,
    matrix_volume,
    squared_orbit_cost,
    squared_orbit_gradient,
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
    "combined",
    "covariance_spectrum",
    "entropy_gradient",
    "entropy_swap_changes",
    "entropy_value",
    "entropy_weights",
    "expected_trace",
    "exponential_action",
    "exponential_jacobian",
    "exponential_pullback",
    "hsic_biased",
    "hsic_unbiased",
    "hsic_zeroed",
    "log_trace_errors",
    "log_trace_errors_diagonal",
    "log_volume",
    "matrix_exponentials",
    "matrix_volume",
    "multiway_entropy",
    "multiway_gradient",
    "multiway_hsic",
    "multiway_weights",
    "squared_gradient",
    "squared_orbit_cost",
    "squared_orbit_gradient",
    "squared_value",
    "trace_gradient",
    "trace_of_bags",
    "trace_value",
]
