"""What is asked of kernel matrices, of distances, and of what names a kernel."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._validation._collections import (
    as_array,
    as_numbers,
    as_rows,
    check_magnitude,
    check_n_items,
    table_shape,
)
from unshuffle._validation._memory import check_kernel_memory


def check_gram(gram: ArrayLike, name: str) -> NDArray[np.float64]:
    """Square, symmetric, finite kernel matrix as float64."""
    check_gram_memory(gram)
    K = as_rows(as_numbers(gram, name), name)
    check_magnitude(K, name)
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"{name} must be a square kernel matrix, got shape {K.shape}. "
            "Pass similarities between all items of one collection, or choose a kernel "
            'other than "precomputed" to pass features.'
        )
    check_n_items(K.shape[0], name)
    # A few rows at a time: whole differences would take several times the memory of K.
    worst, i, j = 0.0, 0, 0
    for start in range(0, K.shape[0], 256):
        gaps = np.abs(K[start : start + 256] - K[:, start : start + 256].T)
        row, column = np.unravel_index(int(gaps.argmax()), gaps.shape)
        if gaps[row, column] > worst:
            worst, i, j = float(gaps[row, column]), start + int(row), int(column)
    if worst > 1e-6 * max(float(K.max()), -float(K.min()), np.finfo(float).tiny):
        raise ValueError(
            f"{name} is not symmetric: entry ({i}, {j}) is {K[i, j]:.6g} and ({j}, {i}) is "
            f"{K[j, i]:.6g}. Pass ({name} + {name}.T) / 2 if the difference means nothing."
        )
    symmetric: NDArray[np.float64] = K + K.T
    symmetric *= 0.5
    return symmetric


def check_gram_memory(gram: Any) -> None:
    """Refuse a kernel matrix whose symmetric copy would not fit into the memory that is free."""
    n_items, n_columns = table_shape(gram)
    ready = isinstance(gram, np.ndarray) and gram.dtype == np.float64 and gram.flags.carray
    check_kernel_memory(n_items, n_columns, n_copies=1.0 if ready else 2.0)


def check_varied(K: NDArray[np.float64], name: str) -> None:
    """Refuse a kernel matrix that tells no item from another."""
    n_items = K.shape[0]
    compared = K
    if n_items > 2:
        # A view: cut into rows one longer than K's, the diagonal stands in one column.
        compared = K.ravel()[1:].reshape(n_items - 1, n_items + 1)[:, :-1]
    low, high = float(compared.min()), float(compared.max())
    if high - low <= 1e-12 * max(float(K.max()), -float(K.min())):
        raise ValueError(
            f"All items of {name} are equally similar to each other (similarity {low:.6g}), so "
            "nothing tells one from another. Check that the right columns were passed, or choose "
            "another kernel."
        )


def check_similarities(n_positive: int) -> None:
    """Refuse a kernel matrix without positive eigenvalues: distances, most likely."""
    if n_positive == 0:
        raise ValueError(
            "The kernel matrix of X or y has no positive eigenvalue once centered, as if its "
            "entries were distances: they must be larger the more alike two items are. Pass "
            "-distances or exp(-gamma * distances**2) in their place."
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


def check_centred_norm(norm: float, scale: float, name: str) -> float:
    """Refuse to scale a kernel matrix that is constant, and so zero once centred."""
    if not norm > 1e-13 * scale:
        raise ValueError(
            f"The kernel matrix of {name} is zero after centring: its items are all equally "
            "similar, so it cannot be scaled. Drop this kernel, or check its columns."
        )
    return norm


def check_distances(distances: ArrayLike, name: str) -> NDArray[np.float64]:
    """Distances as a 1-D array, or as a square matrix, without NaN or negative entries."""
    values = as_numbers(distances, name)
    if values.ndim not in (1, 2) or (values.ndim == 2 and values.shape[0] != values.shape[1]):
        raise ValueError(
            f"{name} must be 1-D or a square matrix, got shape {values.shape}. Pass the distances "
            "between all items of one collection, or a flat array of any distances."
        )
    if values.size == 0 or values.shape == (1, 1):
        raise ValueError(f"{name} holds no distance between two items. Pass at least two items.")
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high < np.inf):
        raise ValueError(
            f"{name} must be finite and at least 0, got values from {low:.6g} to {high:.6g}. "
            "Pass distances, not similarities."
        )
    return values


def raise_all_equal(name: str) -> NoReturn:
    """Say that no two items differ, so that no width can be read off their distances."""
    raise ValueError(
        f"All items of {name} are equal (every distance is 0, or too small for a float), so "
        "nothing tells one from another. Check that the right columns were passed."
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


def raise_kernel_failed(kernel: Any, name: str, error: Exception) -> NoReturn:
    """Say that a user's kernel function works neither on matrices nor on rows."""
    label = getattr(kernel, "__name__", type(kernel).__name__)
    raise ValueError(
        f"The kernel {label} failed on {name}: {type(error).__name__}: {error}. "
        f"It is called as kernel({name}, {name}) first and, where that does not give a square "
        "matrix, as kernel(x, y) on pairs of rows."
    ) from error


def check_kernel_list(kernels: Sequence[Any]) -> list[Any]:
    """List of kernels that holds at least one."""
    if len(kernels) == 0:
        raise ValueError('`kernel` is an empty list. Name at least one kernel, such as ["rbf"].')
    return list(kernels)


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


def check_one_collection_per_kernel(n_collections: int, n_kernels: int, name: str) -> None:
    """Refuse a list of collections that does not go with the list of kernels."""
    if n_collections != n_kernels:
        raise ValueError(
            f"{name} is a list of {n_collections} collections, but there are {n_kernels} kernels. "
            "Pass one collection for each kernel, or a single one for all of them."
        )


def check_kernel_block(block: Any, shape: tuple[int, int], kernel: Any) -> NDArray[np.float64]:
    """Similarities that a user's kernel gave for two sets of points."""
    label = getattr(kernel, "__name__", type(kernel).__name__)
    given = as_array(block, f"What the kernel {label} returned")
    try:
        if given.dtype.kind not in "buifO":
            raise TypeError("text or complex numbers")
        values = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The kernel {label} returned values of dtype {given.dtype}. Return similarities as "
            "real numbers."
        ) from error
    if values.shape != shape:
        raise ValueError(
            f"The kernel {label} returned shape {values.shape} for {shape[0]} and {shape[1]} "
            "points. Return one row for each point of the first and one column for each of the "
            "second, or one number for two single points."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"The kernel {label} returned NaN or infinity. Return finite similarities, or check "
            "the points passed to it."
        )
    return values


def check_kernel_overflow(
    block: NDArray[np.float64], gamma: float, degree: int
) -> NDArray[np.float64]:
    """Similarities by the polynomial kernel, refused where their squares leave the floats."""
    if not np.all(np.abs(block) < 1e150):
        raise ValueError(
            f"The kernel poly with degree={degree} and gamma={gamma:.3g} gives similarities too "
            "large for a float. Pass a smaller degree or gamma, or divide the points by a common "
            "number."
        )
    return block


def check_kernel_positive(largest: float, smallest: float, kernel: Any) -> None:
    """Refuse a kernel by which points have no length: it has no feature space."""
    if not (largest > 0 and smallest >= -1e-8 * largest):
        label = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "callable")
        raise ValueError(
            f"The kernel {label} is not positive definite: of the similarity of a point with "
            f"itself (at most {largest:.3g}), {smallest:.3g} is left once other points are "
            "accounted for, and it may not be below 0. Pass a kernel such as rbf, or "
            "exp(-distance) in place of a distance."
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


def check_features_vary(features: NDArray[np.float64], kernel: Any) -> None:
    """Refuse a kernel by which all points are the same."""
    gap = float(np.ptp(features, axis=0).max())
    if not gap > 1e-12 * float(np.abs(features).max()):
        label = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "callable")
        raise ValueError(
            f"By the kernel {label} all points are equal, so nothing tells one from another. Pass "
            "a larger gamma, or another kernel."
        )
