"""What is asked of Gaussian mixtures of sets, and what is said of those that had to give way."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from unshuffle._validation._memory import check_memory


def warn_fewer_components(n_distinct: NDArray[np.intp], n_components: int) -> None:
    """Say once how many sets have fewer different points than components were asked for."""
    short = int((n_distinct < n_components).sum())
    if short:
        warnings.warn(
            f"{short} of {n_distinct.size} sets have fewer than n_components={n_components} "
            f"different points (the smallest {int(n_distinct.min())}). Each of these is described "
            "by as many components as it has different points; pass a smaller n_components, or "
            '"bic".',
            UserWarning,
            stacklevel=2,
        )


def warn_unsettled(settled: NDArray[np.bool_], max_iter: int) -> None:
    """Say once how many mixtures were still changing when they were stopped."""
    moving = int(settled.size - settled.sum())
    if moving:
        warnings.warn(
            f"The mixtures of {moving} of {settled.size} sets were still changing after "
            f"max_iter={max_iter} rounds. They are used as they stand; pass a larger max_iter, "
            "or a larger tol.",
            ConvergenceWarning,
            stacklevel=2,
        )


def check_mixture_memory(n_sets: int, n_components: int, length: int) -> None:
    """Refuse mixtures that would not fit into the memory that is free now."""
    check_memory(
        2 * 8 * n_sets * n_components * length,
        what=f"Describing {n_sets:,} sets by {n_components} Gaussians of {length:,} numbers each",
        instead='Pass fewer sets or components, covariance_type="diag", or a smaller rank.',
    )


def check_log_products(logs: NDArray[np.float64]) -> None:
    """Refuse logarithms of integrals that come of covariances without an inverse."""
    if not logs.max() < np.inf:
        raise ValueError(
            "A covariance has no inverse in floating point: `regularization` (or `eta`, with a "
            "base kernel) is too small for sets that lie in fewer dimensions, or that differ so "
            "much in size. Pass a larger one, such as the default of 0.02."
        )


def check_log_lengths(logs: NDArray[np.float64]) -> None:
    """Refuse densities so thin that their own integral is lost."""
    thin = np.flatnonzero(~(logs > -np.inf))
    if thin.size:
        raise ValueError(
            f"Points of bag {thin[0]} lie so far apart, compared with the fitted ones, that their "
            f"covariance is too large for a float ({thin.size} such bag(s)). Check its units, or "
            "drop it."
        )


def check_likelihood_range(logs: NDArray[np.float64]) -> None:
    """Refuse integrals that no float can hold."""
    largest = float(logs.max())
    if largest > 700.0:
        raise ValueError(
            f"The integral of two densities is exp({largest:.0f}), more than a float can hold: "
            "there are many columns, or their units are tiny. Use normalize=True, which divides "
            "before it leaves the logarithms."
        )


def check_covariance_in_features(base_kernel: Any, covariance_type: str) -> None:
    """Refuse covariances along axes that the feature space of a kernel does not have."""
    if base_kernel is not None and covariance_type in ("diag", "spherical"):
        raise ValueError(
            f"covariance_type={covariance_type!r} has no meaning in the feature space of a "
            f"kernel, which has no axes of its own, got base_kernel={base_kernel!r}. Use "
            'covariance_type="full" or "tied", or base_kernel=None.'
        )


def check_input_space(base_kernel: Any) -> None:
    """Refuse to show mixtures of a space that has no coordinates to show them in."""
    if base_kernel is not None:
        raise ValueError(
            f"Mixtures in the feature space of base_kernel={base_kernel!r} have no means and "
            "covariances among the points. Fit with base_kernel=None to see mixtures."
        )
