"""Bags of points of several kinds, whose points have no order."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from unshuffle._color import draw_points
from unshuffle._parameters import check_count, check_memory, check_real, check_seed
from unshuffle._printing import short_repr
from unshuffle.datasets._paired import Seed


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
    n: int = 100, *, digits: Sequence[int] = (3, 9), n_points: int = 70, random_state: Seed = 0
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
    digits = _check_digits(digits)
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
    bags = [draw_points(ink, n_points, rng) for ink in table.images[chosen]]
    return Clouds(np.stack(bags), table.target[chosen].astype(np.intp))


class LabelledSets(NamedTuple):
    """Sets of points and the class of each.

    Attributes
    ----------
    bags : list of ndarray of shape (n_i, n_features)
        Points of each set; their order means nothing.
    labels : ndarray of shape (n_bags,)
        Class of each set.
    """

    bags: list[NDArray[np.float64]]
    labels: NDArray[np.intp]

    def __repr__(self) -> str:
        return short_repr(self)


def mixture_sets(
    n: int = 400,
    *,
    n_classes: int = 4,
    n_components: int = 5,
    n_features: int = 5,
    least_points: int = 80,
    most_points: int = 250,
    difference: float = 0.03,
    random_state: Seed = 0,
) -> LabelledSets:
    """Sets drawn from Gaussian mixtures that differ little: single points say next to nothing.

    The components of all classes lie about the same means, each moved a little in every class;
    their covariances are the same.

    Parameters
    ----------
    n : int, default=400
        Number of sets. The classes take turns, so that leading sets are mixed evenly.
    n_classes : int, default=4
        Number of classes; more are harder to tell apart.
    n_components : int, default=5
        Gaussians in the mixture of each class.
    n_features : int, default=5
        Columns of a point.
    least_points, most_points : int, default=80 and 250
        Range of the sizes of sets. Larger sets are easier.
    difference : float, default=0.03
        Standard deviation of the moves, where the means have 1. Larger is easier.
    random_state : int, RandomState or None, default=0
        Draws the mixtures, the sizes and the points.

    Returns
    -------
    sets : LabelledSets
        `bags` and `labels`.

    Notes
    -----
    How hard a draw is depends on the mixtures, so try several.

    Examples
    --------
    >>> from unshuffle.datasets import mixture_sets
    >>> bags, labels = mixture_sets(6, n_classes=3)
    >>> len(bags), bags[0].shape[1], labels.tolist()
    (6, 5, [0, 1, 2, 0, 1, 2])
    """
    n, n_classes = check_count(n, "n"), check_count(n_classes, "n_classes")
    n_components = check_count(n_components, "n_components")
    n_features = check_count(n_features, "n_features")
    least_points = check_count(least_points, "least_points")
    most_points = check_count(most_points, "most_points", least=least_points)
    difference = check_real(difference, "difference", least=0)
    check_memory(
        8 * n_features * (n * most_points + n_components * (n_classes + n_features)),
        what=f"Drawing {n:,} sets of up to {most_points:,} points",
        instead="Pass a smaller n or most_points.",
    )
    rng = check_seed(random_state)
    means = rng.standard_normal((n_components, n_features))
    moves = difference * rng.standard_normal((n_classes, n_components, n_features))
    # Half as wide as the means are apart: components touch, and each has a direction of its own.
    spreads = rng.standard_normal((n_components, n_features, n_features))
    spreads *= 0.5 / np.sqrt(n_features)
    labels = np.arange(n) % n_classes
    bags = []
    for label in labels:
        size = rng.randint(least_points, most_points + 1)
        held = rng.randint(n_components, size=size)
        noise = np.einsum("nij,nj->ni", spreads[held], rng.standard_normal((size, n_features)))
        bags.append((means + moves[label])[held] + noise)
    return LabelledSets(bags, labels)


def _check_digits(digits: Any) -> list[int]:
    """Different digits from 0 to 9, at least one."""
    listed = list(np.atleast_1d(digits)) if isinstance(digits, np.ndarray) else digits
    listed = list(listed) if isinstance(listed, Sequence) else [listed]
    whole = all(isinstance(each, int | np.integer) and 0 <= each <= 9 for each in listed)
    if not listed or not whole or isinstance(digits, str) or len(set(listed)) < len(listed):
        raise ValueError(
            f"`digits` must be different whole numbers from 0 to 9, got {digits!r}. Pass e.g. "
            "(3, 9)."
        )
    return [int(each) for each in listed]
