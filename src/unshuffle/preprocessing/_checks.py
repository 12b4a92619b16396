"""Checks of sets that are normalised."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import as_array


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
