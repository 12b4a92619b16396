"""Handwritten digits as clouds of points: bags whose points have no order."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from unshuffle._color import as_points, draw_pixels
from unshuffle._parameters import check_count, check_memory, check_seed
from unshuffle._printing import short_repr
from unshuffle.datasets._checks import check_digits


class Clouds(NamedTuple):
    """Bags of points and what each shows.

    Attributes
    ----------
    bags : ndarray of shape (n_bags, n_points, 2)
        Points as x to the right and y up; their order means nothing.
    labels : ndarray of shape (n_bags,)
        The digit that each bag was drawn from.
    """

    bags: NDArray[np.float64]
    labels: NDArray[np.intp]

    def __repr__(self) -> str:
        return short_repr(self)


def digit_clouds(
    n: int = 100,
    *,
    digits: Sequence[int] = (3, 9),
    n_points: int = 70,
    random_state: int | np.random.RandomState | None = 0,
) -> Clouds:
    """Handwritten digits as clouds of points, many where there is much ink.

    Parameters
    ----------
    n : int, default=100
        Number of bags. The kinds of `digits` take turns, each from its first picture on, so that
        leading bags are mixed evenly: ``bags[:100]`` to learn from and ``bags[100:]`` to test on.
    digits : sequence of int, default=(3, 9)
        Kinds of digits, 0 to 9. scikit-learn has 174 or more of each.
    n_points : int, default=70
        Points in each bag. More show finer detail and take longer to align.
    random_state : int, RandomState or None, default=0
        Draws the points. The pictures are always the same.

    Returns
    -------
    clouds : Clouds
        `bags` and `labels`.

    Notes
    -----
    Pixels of the 8 x 8 pictures are drawn with probability proportional to their ink, and moved
    by up to half a pixel each way. Coordinates are in pixels, with the middle of the lower left
    one at (0, 0).

    Examples
    --------
    >>> from unshuffle.datasets import digit_clouds
    >>> bags, labels = digit_clouds(4, n_points=50)
    >>> bags.shape, labels.tolist()
    ((4, 50, 2), [3, 9, 3, 9])
    """
    table = load_digits()
    digits = check_digits(digits)
    least = min(int((table.target == digit).sum()) for digit in digits)
    n = check_count(n, "n", most=least * len(digits))
    n_points = check_count(n_points, "n_points")
    check_memory(
        # x and y of all points, twice while they are stacked; pixels and jitter of one bag
        8 * n_points * (4 * n + 8),
        what=f"Drawing {n:,} bags of {n_points:,} points",
        instead="Pass a smaller n or n_points.",
    )
    rng = check_seed(random_state)
    in_turn = np.stack([np.flatnonzero(table.target == digit)[:least] for digit in digits], axis=1)
    chosen = in_turn.ravel()[:n]
    bags = [_cloud(table.images[i], n_points, rng) for i in chosen]
    return Clouds(np.stack(bags), table.target[chosen].astype(np.intp))


def _cloud(
    ink: NDArray[np.float64], n_points: int, rng: np.random.RandomState
) -> NDArray[np.float64]:
    return as_points(draw_pixels(ink, n_points, rng), len(ink), rng)
