"""Names, columns and reordering of the collections a user may pass."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._arrays import check_length, is_text


def item_names(collection: Any, n_items: int) -> list[str]:
    """Name of each item: the index of a data frame, obs_names of AnnData, else its position."""
    parts = [collection]
    if isinstance(collection, list | tuple) and not is_text(collection):
        parts = list(collection)  # one table for each kernel: the first that has names gives them
    for part in parts:
        names = part.index if hasattr(part, "iloc") else getattr(part, "obs_names", None)
        if names is not None and len(names) == n_items:
            return [str(name) for name in names]
    return [str(number) for number in range(n_items)]


def feature_names(collection: Any) -> tuple[int | None, NDArray[Any] | None]:
    """Number of columns of a table, and their names where they are strings."""
    shape: tuple[int, ...] | None = getattr(collection, "shape", None)
    if shape is None:
        if is_text(collection):
            return None, None
        shape = np.shape(collection) if _is_flat(collection) else ()
    if len(shape) != 2:
        return None, None
    columns = getattr(collection, "columns", getattr(collection, "var_names", None))
    if columns is not None and all(isinstance(name, str) for name in columns):
        return int(shape[1]), np.asarray(columns, dtype=object)
    return int(shape[1]), None


def take(collection: Any, indices: NDArray[np.intp], n_items: int, *, name: str = "y") -> Any:
    """Items of a collection in another order, as the same kind of collection."""
    if hasattr(collection, "iloc"):
        check_length(len(collection), n_items, name=name)
        return collection.iloc[indices]
    if sparse.issparse(collection):
        check_length(collection.shape[0], n_items, name=name)
        return collection.tocsr()[indices]
    if not isinstance(collection, Sequence) and getattr(collection, "shape", ()) == ():
        kind = type(collection).__name__
        raise TypeError(f"`{name}` must be a collection of {n_items} items, got {kind}.")
    check_length(len(collection), n_items, name=name)
    if hasattr(collection, "obs_names"):
        return collection[indices]
    if isinstance(collection, list | tuple):
        return type(collection)(collection[index] for index in indices)
    # A masked array stays one.
    return np.asanyarray(collection)[indices]


def _is_flat(collection: Any) -> bool:
    """Whether a list of lists is one table, rather than one table for each kernel."""
    try:
        return np.ndim(collection) == 2
    except ValueError:
        return False
