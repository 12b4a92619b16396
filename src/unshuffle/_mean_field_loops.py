"""Compiled loops of soft matchings; imported when needed, since numba loads slowly."""

from typing import Any

import numpy as np

from unshuffle._compile import compiled

_compiled: Any = compiled(error_model="numpy", fastmath={"reassoc", "contract"})


@_compiled
def measure_spread(benefit: Any, of_columns: Any) -> float:
    """Standard deviation of a matrix without its row and column means.

    `of_columns` is overwritten by the means of the columns. Entries must be of order one.
    """
    n_rows, n_columns = benefit.shape
    for j in range(n_columns):
        of_columns[j] = 0.0
    for i in range(n_rows):
        line = benefit[i]
        for j in range(n_columns):
            of_columns[j] += line[j]
    for j in range(n_columns):
        of_columns[j] /= n_rows
    # Deviations from the columns first: digits that all columns share do not matter.
    square = 0.0
    of_rows = 0.0
    for i in range(n_rows):
        line = benefit[i]
        total = 0.0
        for j in range(n_columns):
            apart = line[j] - of_columns[j]
            total += apart
            square += apart * apart
        of_rows += total * total
    return np.sqrt(max(0.0, square - of_rows / n_columns) / (n_rows * n_columns))


@_compiled
def scale(
    kernel: Any, columns: Any, mass: Any, square: bool, smallest: float, tol: float, n_rounds: int,
) -> bool:  # fmt: skip
    """Rescale columns so that rows, and columns if `square`, have mass 1; whether both do.

    The scaling of the columns is updated, and `mass` is overwritten. Each round reads the kernel
    once.
    """
    n_rows, n_columns = kernel.shape
    for _ in range(n_rounds):
        for j in range(n_columns):
            mass[j] = 0.0
        for i in range(n_rows):
            line = kernel[i]
            total = 0.0
            for j in range(n_columns):
                total += line[j] * columns[j]
            factor = 1.0 / max(total, smallest)
            for j in range(n_columns):
                mass[j] += factor * line[j]
        error = 0.0
        highest = 0.0
        for j in range(n_columns):
            updated = 1.0 / max(mass[j], smallest)
            if square:
                error += abs(columns[j] * mass[j] - 1.0)
                highest = max(highest, updated)
            else:
                updated = min(updated, 1.0)
                error += abs(updated - columns[j])
            columns[j] = updated
        if square:  # rows absorb the common factor
            for j in range(n_columns):
                columns[j] /= highest
        if error < tol * n_columns:
            return True
    return False
