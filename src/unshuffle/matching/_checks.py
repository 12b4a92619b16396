"""Checks of collections that are matched."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._arrays import as_numbers, as_rows, is_text
from unshuffle._bags import listed
from unshuffle._grams import _check_shape


def check_two_collections(X: Any, y: Any) -> None:
    """Refuse a missing second collection before scikit-learn's words for labels get there."""
    if X is None:
        raise ValueError("`X` is None. Call fit(X, y) with both collections.")
    if y is None:
        # scikit-learn's checks look for these words.
        raise ValueError(
            "Matching requires y to be passed, but the target y is None. It is the second "
            "collection, like X: call fit(X, y) with both."
        )


def check_equal_sizes(n_first: int, n_second: int, *, method: str) -> None:
    """Refuse collections of different sizes where the method has no meaning for them."""
    if n_first != n_second:
        raise ValueError(
            f"method={method!r} needs collections of one size, got {n_first} and {n_second} "
            'items. Use method="refined", which matches all items of the smaller one.'
        )


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


def check_several_collections(collections: Any, *, name: str = "X") -> list[Any]:
    """Two or more collections as a list; what is in them is the kernels' to check."""
    ask = "Pass a list with one collection in each place: fit([X1, X2, ...])."
    if collections is None:
        raise ValueError(f"`{name}` is None. {ask}")
    collections = listed(collections)
    if isinstance(collections, dict) or not (
        hasattr(collections, "__iter__") or hasattr(collections, "__getitem__")
    ):
        raise TypeError(f"`{name}` must be a list, got {type(collections).__name__}. {ask}")
    if isinstance(collections, str) or is_text(collections):
        raise ValueError(f"`{name}` is one collection of texts, and needs a partner. {ask}")
    if any(hasattr(collections, part) for part in ("iloc", "obs_names", "tocsr")):
        raise ValueError(
            f"`{name}` is one table of shape {collections.shape}, and needs a partner. {ask}"
        )
    of_objects = isinstance(collections, np.ndarray) and collections.dtype == object
    if isinstance(collections, np.ndarray) and collections.ndim != (1 if of_objects else 3):
        raise ValueError(f"`{name}` is one array of shape {collections.shape}. {ask}")
    several = list(collections)
    if len(several) < 2:
        raise ValueError(
            f"`{name}` holds {len(several)} collection(s), and needs at least two. {ask}"
        )
    single = [t for t, each in enumerate(several) if not hasattr(each, "__len__")]
    if len(single) == len(several):
        raise ValueError(f"`{name}` is a list of {len(several)} single values. {ask}")
    if single:
        t = single[0]
        raise ValueError(f"`{name}[{t}]` is {several[t]!r}, which is no collection. {ask}")
    return several


def check_common_size(sizes: Sequence[int], *, name: str = "X") -> int:
    """Refuse collections of different sizes: every item needs one partner in each."""
    if len(set(sizes)) > 1:
        named = ", ".join(str(size) for size in sizes)
        raise ValueError(
            f"The collections in `{name}` have {named} items. Each item gets one partner in "
            "every other collection, so all must have one size: draw samples of the smallest "
            "size, or match two at a time by KernelizedSorting, which takes any sizes."
        )
    return int(sizes[0])


def check_n_collections(n_collections: int, expected: int, *, name: str) -> None:
    """Refuse a list that is not in the order of the fitted collections."""
    if n_collections != expected:
        raise ValueError(
            f"`{name}` holds {n_collections} collection(s); {expected} were fitted. "
            "Pass one for each of them, in the same order."
        )


def check_per_collection(values: Any, n_collections: int, name: str) -> list[Any]:
    """One entry for each collection: a list of that length, or one value for all."""
    if isinstance(values, list | tuple):
        if len(values) != n_collections:
            raise ValueError(
                f"`{name}` has {len(values)} entries for {n_collections} collections. "
                "Give one for each collection, or a single value for all."
            )
        return list(values)
    return [values] * n_collections


def check_entropy_size(n_items: int, most: int) -> None:
    """Refuse an exact search that would take minutes."""
    if n_items > most:
        raise ValueError(
            f'objective="entropy" tries every exchange of two items, and takes minutes for more '
            f"than {most} items; got {n_items}. Align a sample of the items, or use "
            'objective="hsic".'
        )


def raise_entropy_undefined(error: Exception) -> NoReturn:
    """Say that a product of kernels has no volume."""
    raise ValueError(
        'objective="entropy" needs positive semi-definite kernels, and the product of these is '
        'not. Choose kernel="rbf" or "linear", or objective="hsic", which takes any kernel.'
    ) from error


def check_all_matched(permutation: NDArray[np.intp]) -> None:
    """Refuse to reorder where an item has no partner to put in its place."""
    alone = np.flatnonzero(permutation < 0)
    if alone.size:
        raise ValueError(
            f"{alone.size} of {permutation.size} items of X have no partner (the first is item "
            f"{alone[0]}), so y cannot be put in the order of X. Use `pairs_` to select the "
            "matched items of both."
        )


def check_cost(cost: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Finite matrix of the given shape."""
    values: NDArray[np.float64] = as_rows(as_numbers(cost, "cost"), "cost")
    _check_shape(values, shape, "cost", "items of X by items of y")
    return values
