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


def column_moments(
    X: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each column, wild entries left out.

    The deviation is 0 for a column that is constant but for rounding.
    """
    start = middle(X)
    means, deviations = np.empty_like(start), np.empty_like(start)
    for column, value in enumerate(start):
        apart = X[:, column] - value
        sizes = np.abs(apart)
        kept = apart[ordinary(sizes)]
        # By the largest first: squares of the largest and smallest floats do not exist.
        unit = float(np.abs(kept).max()) or 1.0
        mean = float((kept / unit).mean())
        means[column] = value + unit * mean
        deviation = unit * float(np.sqrt(((kept / unit - mean) ** 2).mean()))
        rounding = 4 * np.finfo(np.float64).eps * abs(float(value))
        deviations[column] = deviation if deviation > rounding else 0.0
    return means, deviations
