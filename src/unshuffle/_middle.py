"""Centers and scales that neither a far-off origin nor a wild value can spoil."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Beside a number so many times larger, the square of another is below rounding in their sum.
WILD = 2.0**26


def middle(X: NDArray[Any]) -> NDArray[Any]:
    """Lower median of each column: a value of the column itself.

    Unlike the mean it has no rounding error, so differences from it are those the data hold
    however far the origin is, and a wild value does not move it.
    """
    place = (len(X) - 1) // 2
    return np.ascontiguousarray(np.partition(X.T, place, axis=1)[:, place])


def distances_from_middle(X: NDArray[Any]) -> NDArray[np.float64]:
    """Largest difference of each row from the middle in any column; it never overflows."""
    return np.asarray(np.abs(X - middle(X)).max(axis=1, initial=0.0), dtype=np.float64)


def ordinary(sizes: NDArray[np.float64], factor: float = WILD) -> NDArray[np.bool_]:
    """Which of several sizes are at most `factor` times the typical one; all if most are zero."""
    typical = float(middle(sizes[:, None])[0])
    if typical == 0.0:
        positive = sizes[sizes > 0.0]
        typical = float(middle(positive[:, None])[0]) if positive.size else 1.0
    return np.asarray(sizes <= factor * typical)


def column_scales(X: NDArray[np.float64], center: NDArray[np.float64]) -> NDArray[np.float64]:
    """Root mean square of each column about its center, wild entries left out."""
    scales = np.empty(X.shape[1])
    for column, start in enumerate(center):
        away = np.abs(X[:, column] - start)
        kept = away[ordinary(away)]
        # Scaled first: the squares of the largest and smallest floats do not exist.
        largest = float(kept.max(initial=0.0)) or 1.0
        scales[column] = largest * np.sqrt(np.mean((kept / largest) ** 2))
    return scales
