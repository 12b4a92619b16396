"""Compiled loops of soft matchings; imported when needed, since numba loads slowly."""

from typing import Any

from unshuffle._run.compile import compiled

_compiled: Any = compiled(error_model="numpy", fastmath={"reassoc", "contract"})


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
