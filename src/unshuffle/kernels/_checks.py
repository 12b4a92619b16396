"""Checks of kernels and of the sets they compare."""

import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from unshuffle._arrays import as_numbers
from unshuffle._grams import check_gram
from unshuffle._parameters import check_memory


def check_words(n_words: int, name: str) -> None:
    """Refuse a collection of documents in which nothing can be compared."""
    if n_words == 0:
        raise ValueError(
            f"The documents of {name} hold no word of two letters or more. "
            "Check that they were read as text and are not empty."
        )


def check_rows_vary(
    norms: NDArray[np.float64], largest: NDArray[np.float64], name: str, *, metric: str
) -> None:
    """Refuse rows that have no direction to compare."""
    flat = np.flatnonzero(~(norms > 8 * np.finfo(float).eps * largest))
    if flat.size:
        what = "constant" if metric == "correlation" else "zero"
        raise ValueError(
            f"Row {flat[0]} of {name} is {what} ({flat.size} such row(s)), so its {metric} with "
            'others is undefined. Drop these rows, or use metric="euclidean".'
        )


def check_same_argument(X: Any, Y: Any, function: str) -> None:
    """Refuse a second collection where a kernel exists inside one collection only."""
    if Y is not None and Y is not X:
        raise ValueError(
            f"{function} compares the items of one collection with each other, but a second one "
            "was passed. Leave Y out; stack the two collections to compare across them."
        )


def check_exponent(exponent: float, largest: float) -> None:
    """Refuse a power that takes the largest eigenvalue out of the floats."""
    power = exponent * float(np.log10(largest))
    if not -300.0 < power < 300.0:
        raise ValueError(
            f"`exponent` is {exponent:.6g}: no float holds the largest eigenvalue, {largest:.6g}, "
            "raised to it. Pass a smaller exponent, or divide the kernel matrix by its largest "
            "eigenvalue first."
        )


def check_kernel_output(K: Any, n_items: int, kernel: Any, name: str) -> NDArray[np.float64]:
    """What a user's kernel function returned, as a Gram matrix."""
    label = getattr(kernel, "__name__", type(kernel).__name__)
    shape = np.shape(K)
    if shape != (n_items, n_items):
        raise ValueError(
            f"The kernel {label} returned shape {shape} for {name}, which has {n_items} items. "
            f"Return a ({n_items}, {n_items}) matrix from kernel({name}, {name}), or one number "
            "from kernel(x, y) on two rows."
        )
    return check_gram(K, f"{label}({name}, {name})")


def check_per_kernel(values: Any, n_kernels: int, name: str) -> list[Any]:
    """One entry for each kernel: a list of that length, or one value for all."""
    if isinstance(values, list | tuple | np.ndarray) and np.ndim(values) > 0:
        if len(values) != n_kernels:
            raise ValueError(
                f"`{name}` has {len(values)} entries for {n_kernels} kernel(s). "
                "Give one for each kernel, or a single value for all."
            )
        return list(values)
    return [values] * n_kernels


def check_kernel_weights(weights: ArrayLike | None, n_kernels: int) -> NDArray[np.float64]:
    """Non-negative weights, one for each kernel, not all zero; all one by default."""
    if weights is None:
        return np.ones(n_kernels)
    try:
        values = as_numbers(weights, "Kernel weights")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Kernel weights must be numbers, got {weights!r}. Give one for each kernel."
        ) from error
    if values.shape != (n_kernels,):
        raise ValueError(
            f"Kernel weights have shape {values.shape} for {n_kernels} kernel(s). "
            "Give one number for each kernel."
        )
    if not np.all(np.isfinite(values)) or values.min() < 0 or values.max() == 0:
        raise ValueError(
            f"Kernel weights must be finite, at least 0 and not all 0, got {values.tolist()}. "
            "Leave them out to weigh all kernels alike."
        )
    return values


def check_weights_need_list(weights: Any) -> None:
    """Refuse weights where there is one kernel and so nothing to weigh."""
    if weights is not None:
        raise ValueError(
            "Kernel weights were given for a single kernel. Pass a list of kernels to weigh them "
            "against each other, or leave the weights out."
        )


def check_feature_variance(variance: float, square: float, kernel: Any) -> None:
    """Refuse a kernel by which different points are the same but for rounding."""
    # Landmarks explain points to 1e-12 of the largest, so what differs by less is not seen.
    if not variance > 3e-12 * square:
        label = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "callable")
        raise ValueError(
            f"By the kernel {label} all points are equal but for rounding: their variance is "
            f"{variance / square if square else 0.0:.1e} of their mean square. Subtract the mean "
            "of all points first where they lie far from the origin, or pass a larger gamma."
        )


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


def check_set_vectors_memory(n_sets: int, length: int) -> None:
    """Refuse descriptions of sets that would not fit into the memory that is free now."""
    check_memory(
        8 * n_sets * length,
        what=f"Describing {n_sets:,} sets by {length:,} numbers each",
        instead="Ask for fewer numbers per set, or pass fewer sets at a time.",
    )


def check_set_gram_memory(n_rows: int, n_columns: int) -> None:
    """Refuse a Gram matrix of sets that would not fit into the memory that is free now."""
    check_memory(
        8 * n_rows * n_columns,
        what=f"The kernel matrix of {n_rows:,} by {n_columns:,} sets",
        instead="Pass fewer sets at a time, or use dask_gram, which gives it block by block.",
    )


def check_directions_memory(n_directions: int, width: int, n_points: int, parameter: str) -> None:
    """Refuse directions that would not fit, nor what the largest set has along them."""
    check_memory(
        8 * n_directions * (2 * width + 2 * n_points),
        what=f"Looking at sets of up to {n_points:,} points in {n_directions:,} directions",
        instead=f"Pass a smaller {parameter}.",
    )


def check_sets_for_width(n_sets: int, parameter: str) -> None:
    """Refuse to read a width off the distances between sets where there is one set."""
    if n_sets < 2:
        raise ValueError(
            f"`{parameter}` is read off the distances between sets, but bags holds {n_sets} set "
            f"(n_samples = {n_sets}). Pass at least two sets, or a number as {parameter}."
        )


def check_random_features(n_features: Any, base_kernel: Any) -> None:
    """Refuse random features of a kernel that has no spectrum to draw them from."""
    if n_features is not None and base_kernel != "rbf":
        raise ValueError(
            f"`n_features` draws waves for the kernel 'rbf', got base_kernel={base_kernel!r}. "
            "Leave n_features out, or use base_kernel='rbf'."
        )


def check_sets_vary(squared: NDArray[np.float64], parameter: str) -> None:
    """Refuse to read a width off the distances between sets that are all alike."""
    if not squared.max() >= np.finfo(float).tiny:
        raise ValueError(
            f"`{parameter}` is read off the distances between sets, and all {len(squared)} sets "
            f"are alike: every distance is 0. Check the sets, or pass a number as {parameter}."
        )


def check_set_kernels(kernels: Sequence[Any], kind: type) -> None:
    """Refuse what cannot be summed: nothing, other things than set kernels, names used twice."""
    if len(kernels) == 0:
        raise ValueError("`kernels` is empty. Pass at least one set kernel.")
    named = [isinstance(each, tuple) and len(each) == 2 for each in kernels]
    if any(named) and not all(named):
        raise ValueError(
            "`kernels` mixes set kernels and (name, kernel) pairs. Give all of them a name, or "
            "none."
        )
    for i, each in enumerate(kernels):
        kernel = each[1] if named[i] else each
        if not isinstance(kernel, kind):
            raise TypeError(
                f"Entry {i} of `kernels` is {kernel!r}, which is no kernel between sets. Pass "
                "estimators such as MeanMapKernel(), or (name, kernel) pairs of these."
            )
    names = [each[0] for each in kernels] if all(named) else []
    for name in names:
        if not isinstance(name, str) or "__" in name or name in ("kernels", "weights", "n_jobs"):
            raise ValueError(
                f"{name!r} cannot name a kernel of the sum: a name is a string without a double "
                "underscore, other than 'kernels', 'weights' and 'n_jobs'. Choose another."
            )
        if names.count(name) > 1:
            raise ValueError(
                f"`kernels` holds the name {name!r} {names.count(name)} times. Give each kernel a "
                "name of its own."
            )


def check_kernel_spread(spread: float, scale: float, n_sets: int, name: str) -> float:
    """Refuse to scale a kernel by which all sets are the same."""
    if n_sets < 2:
        raise ValueError(
            f"Kernels of a sum are scaled by how much the fitted sets differ, but bags holds "
            f"{n_sets} set (n_samples = {n_sets}). Pass at least two."
        )
    if not spread > 1e-13 * scale:
        raise ValueError(
            f"By the kernel {name!r} all {n_sets} sets are the same, so it cannot be scaled. Drop "
            "it from the sum, or change its parameters."
        )
    return spread


def warn_small_vocabulary(n_different: int, n_components: int) -> None:
    """Say that there are fewer different points than components were asked for."""
    if n_different < n_components:
        warnings.warn(
            f"n_components={n_components} is more than the {n_different} different point(s) of "
            f"the bags, so {n_different} are used. Pass fewer, or more points.",
            UserWarning,
            stacklevel=2,
        )


def warn_vocabulary_unsettled(settled: bool, max_iter: int) -> None:
    """Say that the vocabulary was still changing when its fit was stopped."""
    if not settled:
        warnings.warn(
            f"The vocabulary was still changing after max_iter={max_iter} steps. It is used as "
            "it stands; pass a larger max_iter, or a larger tol.",
            ConvergenceWarning,
            stacklevel=2,
        )


def raise_no_dask(error: Exception) -> NoReturn:
    """Say how to get Dask."""
    raise ImportError(
        "Gram matrices in blocks on a cluster need Dask: pip install 'unshuffle[dask]'"
    ) from error
