"""Sets drawn from Gaussian mixtures that are hard to tell apart."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle._parameters import check_count, check_memory, check_real, check_seed
from unshuffle._printing import short_repr


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
    random_state: int | np.random.RandomState | None = 0,
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
    n = check_count(n, "n")
    n_classes, n_components = (
        check_count(n_classes, "n_classes"),
        check_count(n_components, "n_components"),
    )
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
