"""Match two shapes so that neighboring points move together."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from unshuffle._core.arrays import as_numbers, as_rows, check_magnitude
from unshuffle._core.distances import squared_distances
from unshuffle._core.parameters import check_memory, check_positive
from unshuffle._run.types import Points
from unshuffle.assignment import solve_assignment
from unshuffle.kernels import rbf_kernel

# Widths of the smooth motion in units of the shape's size: first the whole moves, then its parts.
_WIDTHS = (1.0, 0.7, 0.5, 0.35, 0.25)
_ROUNDS = 3


def match_shapes(
    first: ArrayLike, second: ArrayLike, *, stiffness: float = 1.0
) -> NDArray[np.intp]:
    """Match the points of two shapes so that neighbors move together from one to the other.

    Parameters
    ----------
    first, second : array of shape (n_points, n_features)
        Two bags of as many points. Neither position nor size matters.
    stiffness : float, default=1.0
        How strongly neighbors are kept together. Larger values bend the first shape less, so that
        fewer points stray but some travel further; smaller values let neighbors separate.

    Returns
    -------
    permutation : ndarray of shape (n_points,)
        ``second[permutation[i]]`` is matched to ``first[i]``.

    Notes
    -----
    With two bags, `MinimumVolumePCA` is a single assignment: there are no other bags to learn the
    motion of the points from. This function assumes a smooth motion instead. For widths w from
    wide to narrow, it lowers ``sum |second[p_i] - first_i - f(first_i)|^2 + stiffness |f|^2``
    alternately over p (assignment) and f (ridge regression), where f is a displacement field with
    the norm of a Gaussian kernel of width w. Finds a local optimum; the reverse direction may give
    another. Time is cubic in the number of points, memory quadratic.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.alignment import match_shapes
    >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    >>> match_shapes(square, 5 + 2 * square[::-1])
    array([3, 2, 1, 0])
    """
    here, there = (_standardized(each) for each in _check_two_shapes(first, second))
    stiffness = check_positive(stiffness, "stiffness")
    n_points = len(here)
    check_memory(
        5 * 8 * n_points**2,  # kernel, its factor, distances and the assignment
        what=f"Matching shapes of {n_points:,} points",
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
    """Center the points, and scale them to a mean squared length of 1."""
    centered = points - points.mean(axis=0)
    centered = centered / np.abs(centered).max()  # squares of tiny numbers underflow
    return np.asarray(centered / np.sqrt((centered**2).sum(axis=1).mean()))


def _check_two_shapes(first: Any, second: Any) -> list[Points]:
    """Two bags of the same shape (n_points, n_features), each with two distinct points."""
    both = []
    for points, name in ((first, "first"), (second, "second")):
        array = as_rows(as_numbers(points, f"`{name}`"), f"`{name}`")
        check_magnitude(array, name)
        if not np.ptp(array, axis=0).any():
            raise ValueError(
                f"All {len(array)} points of `{name}` are equal. Pass at least two distinct ones."
            )
        both.append(array)
    if both[0].shape != both[1].shape:
        raise ValueError(
            f"`first` has shape {both[0].shape} and `second` {both[1].shape}. Points are matched "
            "one to one: pass as many of each, with the same coordinates."
        )
    return both
