"""What is asked of sets and of kernels between them."""

import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from unshuffle._validation._collections import as_array
from unshuffle._validation._memory import check_memory


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


def check_points_for_width(n_points: int, parameter: str) -> None:
    """Refuse to read a width off the distances between points where there is one point."""
    if n_points < 2:
        raise ValueError(
            f"`{parameter}` is read off the distances between points, but the bags hold "
            f"{n_points} point (n_samples = 1). Pass more points, or a number as {parameter}."
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


def check_columns(columns: Any, width: int) -> NDArray[np.intp]:
    """Columns that are coordinates, as indices from 0; None is all of them."""
    if columns is None:
        return np.arange(width)
    chosen = as_array(columns, "`columns`")
    if chosen.ndim != 1 or not chosen.size or not np.issubdtype(chosen.dtype, np.integer):
        raise ValueError(
            f"`columns` must be a list of whole numbers, one for each column that is a "
            f"coordinate, got {columns!r}."
        )
    beyond = chosen[(chosen < -width) | (chosen >= width)]
    if beyond.size:
        raise ValueError(
            f"`columns` names column {beyond[0]}, but points have {width} columns. Count them "
            "from 0."
        )
    chosen = chosen.astype(np.intp) % width
    if np.unique(chosen).size < chosen.size:
        raise ValueError(f"`columns` names a column twice: {columns!r}. Name each once.")
    return chosen
