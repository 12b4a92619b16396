"""Labeled sets of points: handwritten digits, and draws from Gaussian mixtures."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from unshuffle._core.color import draw_points
from unshuffle._core.parameters import check_count, check_memory, check_real, check_seed
from unshuffle._run.printing import short_repr
from unshuffle.datasets._paired import Seed


class LabeledSets(NamedTuple):
    """Sets of points and the class of each set.

    Attributes
    ----------
    sets : list of ndarray of shape (n_i, n_features)
        Points of each set, in no particular order. One array of shape
        (n_sets, n_points, n_features) where all sets have the same size by construction.
    labels : ndarray of shape (n_sets,)
        Class of each set.

    Examples
    --------
    >>> from unshuffle.datasets import digit_sets
    >>> sets, labels = digit_sets(20, digits=(3, 9))
    >>> sets.shape, labels.shape
    ((20, 70, 2), (20,))
    """

    sets: list[NDArray[np.float64]] | NDArray[np.float64]
    labels: NDArray[np.intp]

    def __repr__(self) -> str:
        return short_repr(self)


def digit_sets(
    n: int = 100, *, digits: Sequence[int] = (3, 9), n_points: int = 70, random_state: Seed = 0
) -> LabeledSets:
    """Handwritten digits as sets of points in the plane, denser where there is more ink.

    Parameters
    ----------
    n : int, default=100
        Number of sets. The digits alternate, so that any leading part is balanced: train on
        ``sets[:100]`` and test on ``sets[100:]``.
    digits : sequence of int, default=(3, 9)
        Which digits to draw, 0 to 9. There are at least 174 pictures of each.
    n_points : int, default=70
        Points in each set. More points show finer detail and take longer to align.
    random_state : int, RandomState or None, default=0
        Seed for the points. The pictures are always the same.

    Returns
    -------
    data : LabeledSets
        `sets` of shape (n, n_points, 2), x to the right and y up, and the digits as `labels`.

    Notes
    -----
    Pixels of the 8 x 8 pictures are drawn with probability proportional to their ink and moved
    by up to half a pixel in each direction. Coordinates are in pixels; the center of the lower
    left pixel is (0, 0).

    Examples
    --------
    >>> from unshuffle.datasets import digit_sets
    >>> sets, labels = digit_sets(4, n_points=50)
    >>> sets.shape, labels.tolist()
    ((4, 50, 2), [3, 9, 3, 9])
    """
    table = load_digits()
    digits = _check_digits(digits)
    least = min(int((table.target == digit).sum()) for digit in digits)
    n = check_count(n, "n", most=least * len(digits))
    n_points = check_count(n_points, "n_points")
    check_memory(
        # x and y of all points, twice while they are stacked; pixels and jitter of one set
        8 * n_points * (4 * n + 8),
        what=f"Drawing {n:,} sets of {n_points:,} points",
        instead="Pass a smaller n or n_points.",
    )
    rng = check_seed(random_state)
    in_turn = np.stack([np.flatnonzero(table.target == digit)[:least] for digit in digits], axis=1)
    chosen = in_turn.ravel()[:n]
    sets = [draw_points(ink, n_points, rng) for ink in table.images[chosen]]
    return LabeledSets(np.stack(sets), table.target[chosen].astype(np.intp))


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
) -> LabeledSets:
    """Sets drawn from similar Gaussian mixtures; a single point hardly reveals the class.

    The mixtures of all classes have the same covariances. Their means differ by small random
    shifts.

    Parameters
    ----------
    n : int, default=400
        Number of sets. The classes alternate, so that any leading part is balanced.
    n_classes : int, default=4
        Number of classes. More classes are harder to separate.
    n_components : int, default=5
        Number of Gaussians in each mixture. More make the classes harder to separate.
    n_features : int, default=5
        Number of coordinates of a point.
    least_points, most_points : int, default=80 and 250
        Range of the set sizes. Larger sets are easier to classify.
    difference : float, default=0.03
        Standard deviation of the shifts between classes; that of the means is 1. Larger
        differences are easier.
    random_state : int, RandomState or None, default=0
        Seed for the mixtures, the sizes and the points.

    Returns
    -------
    data : LabeledSets
        `sets`, a list of arrays, and `labels`.

    Notes
    -----
    The difficulty varies with the mixtures drawn, so try several seeds.

    Examples
    --------
    >>> from unshuffle.datasets import mixture_sets
    >>> sets, labels = mixture_sets(6, n_classes=3)
    >>> len(sets), sets[0].shape[1], labels.tolist()
    (6, 5, [0, 1, 2, 0, 1, 2])
    """
    n, n_classes = check_count(n, "n"), check_count(n_classes, "n_classes")
    n_components = check_count(n_components, "n_components")
    n_features = check_count(n_features, "n_features")
    least_points = check_count(least_points, "least_points")
    most_points = check_count(most_points, "most_points", least=least_points)
    difference = check_real(difference, "difference", least=0, most=1e100)
    check_memory(
        8 * n_features * (n * most_points + n_components * (n_classes + n_features)),
        what=f"Drawing {n:,} sets of up to {most_points:,} points",
        instead="Pass a smaller n or most_points.",
    )
    rng = check_seed(random_state)
    means = rng.standard_normal((n_components, n_features))
    shifts = difference * rng.standard_normal((n_classes, n_components, n_features))
    # Half as wide as the means are apart: components touch, each with its own orientation.
    spreads = rng.standard_normal((n_components, n_features, n_features))
    spreads *= 0.5 / np.sqrt(n_features)
    labels = np.arange(n) % n_classes
    sets = []
    for label in labels:
        size = rng.randint(least_points, most_points + 1)
        component = rng.randint(n_components, size=size)
        noise = rng.standard_normal((size, n_features))
        noise = np.einsum("nij,nj->ni", spreads[component], noise)
        sets.append((means + shifts[label])[component] + noise)
    return LabeledSets(sets, labels)


def _check_digits(digits: Any) -> list[int]:
    """Distinct digits from 0 to 9, at least one."""
    listed = list(np.atleast_1d(digits)) if isinstance(digits, np.ndarray) else digits
    listed = list(listed) if isinstance(listed, Sequence) else [listed]
    valid = all(isinstance(each, int | np.integer) and 0 <= each <= 9 for each in listed)
    if not listed or not valid or isinstance(digits, str) or len(set(listed)) < len(listed):
        raise ValueError(
            f"`digits` must be distinct integers from 0 to 9, got {digits!r}. Pass e.g. (3, 9)."
        )
    return [int(each) for each in listed]
