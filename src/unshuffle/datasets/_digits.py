"""The handwritten digits that ship with scikit-learn, as two views and as a grid to fill."""

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from unshuffle._parameters import check_count, check_memory, check_seed
from unshuffle.datasets._paired import Paired, shuffle_second


def digits_views(n: int = 400, *, random_state: int | np.random.RandomState | None = 0) -> Paired:
    """Upper and lower halves of handwritten digits, the lower ones shuffled.

    Parameters
    ----------
    n : int, default=400
        Number of digits, up to 1,797.
    random_state : int, RandomState or None, default=0
        Which digits are drawn, their order, and the order of the lower halves.

    Returns
    -------
    halves : Paired
        `X` and `y` of shape (n, 32): ``y[truth[i]]`` is the lower half of the digit
        whose upper half is ``X[i]``.

    Notes
    -----
    A hard case: the halves of a digit depend on each other only weakly, so expect the
    right kind of digit more often than the very digit.
    """
    images, _ = sample_digits(n, random_state=random_state)
    flat = images.reshape(len(images), 64).astype(float)
    return shuffle_second(flat[:, :32], flat[:, 32:], check_seed(random_state))


def sample_digits(
    n: int = 400, *, random_state: int | np.random.RandomState | None = 0
) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Pictures of handwritten digits and what each shows.

    Parameters
    ----------
    n : int, default=400
        Number of digits, up to 1,797, drawn without replacement.
    random_state : int, RandomState or None, default=0
        Which digits are drawn, and their order.

    Returns
    -------
    images : ndarray of shape (n, 8, 8), uint8
        White ink (255) on black (0).
    labels : ndarray of shape (n,)
        The digit, 0 to 9.
    """
    digits = load_digits()
    n = check_count(n, "n", least=2, most=len(digits.target))
    chosen = check_seed(random_state).permutation(len(digits.target))[:n]
    ink = np.round(digits.images[chosen] * (255 / 16)).astype(np.uint8)
    return ink, digits.target[chosen].astype(np.intp)


def grid_points(rows: int, columns: int) -> NDArray[np.float64]:
    """Row and column of each cell of a grid, as a collection to match other things onto.

    Parameters
    ----------
    rows, columns : int
        Number of cells down and across.

    Returns
    -------
    points : ndarray of shape (rows * columns, 2)
        Cells in reading order.

    Examples
    --------
    >>> from unshuffle.datasets import grid_points
    >>> grid_points(2, 2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    rows, columns = check_count(rows, "rows"), check_count(columns, "columns")
    check_memory(
        40 * rows * columns,
        what=f"A grid of {rows:,} by {columns:,} cells",
        instead="Ask for fewer `rows` or `columns`.",
    )
    return np.stack(np.divmod(np.arange(rows * columns), columns), axis=1).astype(float)
