"""What is asked of sets that are drawn: their kernels, templates, mixtures and columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._validation._collections import as_array, as_numbers, check_finite


def check_set_kernel(estimator: Any) -> None:
    """Refuse what cannot compare sets."""
    if not callable(getattr(type(estimator), "kernel", None)):
        raise TypeError(
            f"`estimator` is a {type(estimator).__name__}, which has no method `kernel`. Pass a "
            "kernel between sets, such as unshuffle.kernels.MeanMapKernel()."
        )


def check_set_mixtures(estimator: Any) -> None:
    """Refuse what does not describe sets by mixtures."""
    if not callable(getattr(estimator, "mixtures", None)):
        raise TypeError(
            f"`estimator` is a {type(estimator).__name__}, which has no method `mixtures`. Pass a "
            "fitted unshuffle.kernels.ExpectedLikelihoodKernel or BhattacharyyaKernel."
        )


def check_set_template(estimator: Any) -> None:
    """Refuse what does not align sets to a template."""
    if not callable(getattr(estimator, "align", None)):
        raise TypeError(
            f"`estimator` is a {type(estimator).__name__}, which has no method `align`. Pass a "
            "fitted SetAligner, PermutationInvariantSVC or MinimumVolumePCA."
        )
    if np.ndim(getattr(estimator, "template_", ())) == 3:
        raise ValueError(
            f"`estimator` has {len(estimator.template_)} templates, one for each class, since "
            "lam > 0. Pass one of them to from_predictions, with a set of `permutations_`."
        )


def check_order(order: Any, n_items: int) -> NDArray[np.intp]:
    """Each of the items once."""
    array = as_array(order, "`order`")
    whole = array.shape == (n_items,) and array.dtype.kind in "iu"
    if not whole or not np.array_equal(np.sort(array), np.arange(n_items)):
        raise ValueError(
            f"`order` must hold each number from 0 to {n_items - 1} once, got shape {array.shape} "
            f"and dtype {array.dtype}. Leave it out to have an order found."
        )
    return array.astype(np.intp)


def check_template(template: Any, width: int, n_points: int) -> NDArray[np.float64]:
    """One point for each slot, with the columns of the sets."""
    array = as_numbers(template, "`template`")
    if array.shape != (n_points, width):
        raise ValueError(
            f"`template` has shape {array.shape}; sets of {n_points} ordered points with {width} "
            f"columns need ({n_points}, {width}). Pass `template_` of the estimator that aligned "
            "them."
        )
    check_finite(array, "template")
    return array


def check_mixture(
    mixture: Any, width: int, i: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Weights, means and covariances of one mixture that fit points of this width."""
    try:
        weights, means, covariances = (as_numbers(each, f"Mixture {i}") for each in mixture)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Mixture {i} of `mixtures` must be weights, means and covariances, got "
            f"{type(mixture).__name__}. Pass what `mixtures` of a set kernel returns."
        ) from error
    n = weights.size
    shapes = (weights.shape, means.shape, covariances.shape)
    if shapes != ((n,), (n, width), (n, width, width)) or n == 0:
        raise ValueError(
            f"Mixture {i} has weights, means and covariances of shapes {shapes}; for points of "
            f"{width} columns and m components they are (m,), (m, {width}), (m, {width}, {width})."
        )
    for array, name in ((weights[:, None], "weights"), (means, "means")):
        check_finite(array, f"{name} of mixture {i}")
    check_finite(covariances.reshape(n, -1), f"covariances of mixture {i}")
    if weights.min() < 0.0 or weights.max() == 0.0:
        raise ValueError(
            f"Mixture {i} has weights from {weights.min():.3g} to {weights.max():.3g}. Weights "
            "are shares: none is below 0, and one at least is above."
        )
    return weights, means, covariances


def check_same_number(n: int, n_sets: int, name: str) -> None:
    """Refuse a list that does not go with the sets."""
    if n != n_sets:
        raise ValueError(f"`{name}` has {n} entries for {n_sets} sets. Give one for each set.")


def check_drawn_columns(columns: Any, width: int, *, allowed: Sequence[int]) -> tuple[int, ...]:
    """Different columns of a point that are drawn, as many as `allowed` says."""
    listed = tuple(columns) if isinstance(columns, Sequence | np.ndarray) else (columns,)
    inside = all(
        isinstance(each, int | np.integer)
        and not isinstance(each, bool | np.bool_)
        and 0 <= each < width
        for each in listed
    )
    if not inside or len(listed) not in allowed or len(set(listed)) < len(listed):
        counts = " or ".join(str(each) for each in allowed)
        raise ValueError(
            f"`columns` must be {counts} different columns from 0 to {width - 1}, got {columns!r}."
        )
    return tuple(int(each) for each in listed)
