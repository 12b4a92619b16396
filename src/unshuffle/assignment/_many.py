"""Many small assignments of one size, solved exactly one after the other."""

import numpy as np
from numpy.typing import NDArray

from unshuffle.assignment._solve import assign

Array = NDArray[np.float64]

# From this size on, an auction is the faster way to prices that a path can start from.
LARGE = 250


def assign_many(costs: Array, prices: Array) -> NDArray[np.intp]:
    """Match each row of each problem to a column of its own so that the total cost is least.

    Twice as fast as SciPy's solver on the squared distances of 20 to 180 points; from the prices
    of a similar problem, seven to twelve times.

    Parameters
    ----------
    costs : ndarray of shape (n_problems, n, n), C-contiguous
        Cost of each row and column; finite.
    prices : ndarray of shape (n_problems, n), C-contiguous
        Prices of columns to start from, such as those of a similar problem, or zeros. Replaced by
        those of the solution.

    Returns
    -------
    columns : ndarray of shape (n_problems, n)
        The column of each row. Any start leads to an optimum, though where there are several, not
        to the same.

    Examples
    --------
    >>> import numpy as np
    >>> costs = np.array([[[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]]])
    >>> assign_many(costs, np.zeros((1, 3)))
    array([[1, 0, 2]])
    """
    from unshuffle.assignment._many_loops import assign_each

    if costs.shape[1] >= LARGE:
        for cost, price in zip(costs, prices, strict=True):
            if not price.any():
                found = assign(-cost).prices
                price[:] = 0.0 if found is None else found
    columns = np.empty(costs.shape[:2], dtype=np.intp)
    assign_each(costs, prices, columns)
    return columns
