"""Compiled loop that keeps the nearest items of each row; imported when needed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.compile import compiled

_compiled: Any = compiled(error_model="numpy")


@_compiled
def keep_nearest(
    products: NDArray[np.float64],
    squares: NDArray[np.float64],
    first: int,
    own: int,
    apart: NDArray[np.float64],
    nearest: NDArray[np.intp],
) -> None:
    """Insert the columns of a tile of products into the sorted lists of its rows.

    The first column of the tile is item `first`, its first row item `own`. An item is not
    compared with itself. Of equally near ones, the one with the lower number comes first.
    """
    last = nearest.shape[1] - 1
    for i in range(products.shape[0]):
        farthest = apart[i, last]
        for j in range(products.shape[1]):
            distance = squares[j] - 2.0 * products[i, j]
            if distance >= farthest or first + j == own + i:
                continue
            place = last
            while place > 0 and apart[i, place - 1] > distance:
                apart[i, place] = apart[i, place - 1]
                nearest[i, place] = nearest[i, place - 1]
                place -= 1
            apart[i, place] = distance
            nearest[i, place] = first + j
            farthest = apart[i, last]
