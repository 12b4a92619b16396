"""Two clouds of points, paired so that neighbours stay together on the way."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from unshuffle._arrays import as_numbers, check_finite, check_magnitude
from unshuffle._distances import squared_distances
from unshuffle._parameters import check_memory, check_positive
from unshuffle.assignment import solve_assignment
from unshuffle.kernels import rbf_kernel

Points = NDArray[np.float64]

# How far a point takes others along, wide to narrow, in units of the size of a cloud: first the
# shape as a whole is moved, then its strokes.
_WIDTHS = (1.0, 0.7, 0.5, 0.35, 0.25)
_ROUNDS = 3


def match_shapes(
    first: ArrayLike, second: ArrayLike, *, stiffness: float = 1.0
) -> NDArray[np.intp]:
    """Pair the points of two clouds so that neighbours move together from one to the other.

    Parameters
    ----------
    first, second : array of shape (n_points, n_features)
        The clouds. Neither their position nor their size matters.
    stiffness : float, default=1.0
        How much neighbours are kept together. Larger bends the first cloud less on its way, so
        that fewer points stray and some travel further; smaller lets neighbours part.

    Returns
    -------
    permutation : ndarray of shape (n_points,)
        ``second[permutation[i]]`` is where ``first[i]`` goes.

    Notes
    -----
    With two bags, minimum-volume PCA is a single assignment: it has no other bags to learn from
    how the points move. Here a smooth motion takes their place. For a width w, from wide to
    narrow, two steps lower ``sum |second[p_i] - first_i - f(first_i)|^2 + stiffness |f|^2`` in
    turn, f a field of displacements with the norm of a Gaussian kernel of width w: assignment
    over p, ridge regression over f. A local optimum; the other direction may give another.

    Time grows with the cube of the number of points, memory with its square.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.alignment import match_shapes
    >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    >>> match_shapes(square, 5 + 2 * square[::-1])
    array([3, 2, 1, 0])
    """
    here, there = (_standardized(each) for each in _two_clouds(first, second))
    stiffness = check_positive(stiffness, "stiffness")
    n_points = len(here)
    check_memory(
        # kernel, its factor, distances and what the assignment takes
        5 * 8 * n_points**2,
        what=f"Pairing clouds of {n_points:,} points",
        instead="Draw fewer points.",
    )
    moved = here
    for width in _WIDTHS:
        kernel = rbf_kernel(here, gamma=1 / (2 * width**2))
        factor = cho_factor(kernel + stiffness * np.eye(n_points), lower=True)
        for _ in range(_ROUNDS):
            target = there[_nearest(moved, there)]
            moved = here + kernel @ cho_solve(factor, target - here)
    return _nearest(moved, there)


def _nearest(points: Points, targets: Points) -> NDArray[np.intp]:
    return solve_assignment(squared_distances(points, targets)).columns


def _standardized(points: Points) -> Points:
    """Middle at the origin, mean squared distance from it 1."""
    centred = points - points.mean(axis=0)
    centred = centred / np.abs(centred).max()  # squares of tiny numbers would be 0
    scaled: Points = centred / np.sqrt((centred**2).sum(axis=1).mean())
    return scaled


def _two_clouds(first: Any, second: Any) -> tuple[Points, Points]:
    """Two clouds with as many points each, of the same dimension, that have some extent."""
    both = []
    for points, name in ((first, "first"), (second, "second")):
        array = as_numbers(points, f"`{name}`")
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(
                f"`{name}` must be a cloud of points of shape (n_points, n_features), got shape "
                f"{array.shape}."
            )
        check_finite(array, name)
        check_magnitude(array, name)
        if not np.ptp(array, axis=0).any():
            raise ValueError(
                f"All {len(array)} points of `{name}` are equal, so it has no shape. Give a cloud "
                "with at least two different points."
            )
        both.append(array)
    if both[0].shape != both[1].shape:
        raise ValueError(
            f"`first` has shape {both[0].shape} and `second` {both[1].shape}. Points are paired "
            "one to one: draw as many from each, with the same coordinates."
        )
    return both[0], both[1]
