"""Checks of what is measured."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._arrays import as_array


def check_enough_items(n_items: int, least: int, what: str) -> None:
    """Refuse a sample too small for an estimator."""
    if n_items < least:
        raise ValueError(f"{what} needs at least {least} items, got {n_items}.")


def check_labels(labels: ArrayLike, n_items: int, name: str) -> NDArray[Any]:
    """One label for each item, of which there are at least `n_items`."""
    values = as_array(labels, f"`{name}`")
    if values.ndim != 1 or values.size < n_items:
        raise ValueError(
            f"`{name}` must hold one label for each item of y, at least {n_items} here, "
            f"got shape {values.shape}."
        )
    return values


def check_enough_placed(n_placed: int) -> None:
    """Refuse a grid on which no two items can be compared."""
    if n_placed < 2:
        raise ValueError(
            f"`grid` holds {n_placed} item(s). A layout is judged by pairs, so place at least two."
        )


def check_any_neighbors(n_pairs: int) -> None:
    """Refuse a grid on which no item has another beside it."""
    if n_pairs == 0:
        raise ValueError(
            "No two items of `grid` are side by side or one above the other. "
            "Use distance_preservation_quality, which compares items at any distance."
        )


def check_matches(matches: ArrayLike, name: str) -> NDArray[np.intp]:
    """Positions in y, one for each item of X, -1 for unmatched."""
    values = as_array(matches, f"`{name}`")
    if values.ndim != 1 or values.size == 0 or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"`{name}` must be a list of whole numbers, one for each item of X, got shape "
            f"{values.shape} and dtype {values.dtype}."
        )
    if values.min() < -1:
        raise ValueError(
            f"`{name}` holds {values.min()}. Use positions counted from 0, and -1 for unmatched."
        )
    return values.astype(np.intp)
