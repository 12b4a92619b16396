"""Sets that are described by one vector each, and kernels between such vectors."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags, canonical_order
from unshuffle._distances import exponential_of, inner_products, median_gamma, squared_distances
from unshuffle._parallel import map_parallel
from unshuffle.kernels._checks import (
    check_set_vectors_memory,
    check_sets_for_width,
    check_sets_vary,
)

Array = NDArray[np.float64]

# Sets described by one thread at a time.
SHARE = 32
# Numbers that points may take before their mean is: 64 MB.
PIECE = 2**23
# Scales and widths are read off this many sets: their medians and means are within a few per
# cent of those of all.
TYPICAL = 500


@dataclass(frozen=True)
class SetVectors:
    """One vector for each set.

    Attributes
    ----------
    values : ndarray of shape (n_sets, n_numbers)
        The vectors.
    """

    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> "SetVectors":
        """Vectors of the sets from `start` up to `stop`."""
        return SetVectors(self.values[start:stop])


def describe(
    function: Callable[[Array], Array], bags: Bags, length: int, *, n_jobs: int | None
) -> Array:
    """One vector of `length` numbers for each set, by a function of its points.

    Each set is described by itself: in products over many sets at once the last digits of one
    would depend on the others.
    """
    check_set_vectors_memory(len(bags), length)
    vectors = np.empty((len(bags), length))

    def fill(start: int) -> None:
        for i in range(start, min(start + SHARE, len(bags))):
            vectors[i] = function(bags[i])

    map_parallel(fill, range(0, len(bags), SHARE), n_jobs=n_jobs)
    return vectors


def mean_in_pieces(mean: Callable[[Array], Array], length: int, points: Array) -> Array:
    """Mean of `length` numbers of each point, never of so many that they would fill the memory."""
    step = max(1, PIECE // length)
    if len(points) <= step:
        return mean(points)
    parts = [points[start : start + step] for start in range(0, len(points), step)]
    return np.asarray(sum(len(part) * mean(part) for part in parts) / len(points))


def linear_block(a: SetVectors, b: SetVectors | None) -> Array:
    """Inner products of vectors; None compares `a` with itself."""
    return inner_products(a.values, None if b is None else b.values)


def rbf_block(a: SetVectors, b: SetVectors | None, gamma: float) -> Array:
    """exp(-gamma d^2) between vectors; None compares `a` with itself."""
    return exponential_of(squared_distances(a.values, None if b is None else b.values), gamma)


def typical_sets(bags: Bags) -> Bags:
    """At most `TYPICAL` sets, evenly spread in an order that is not that of the bags."""
    if len(bags) <= TYPICAL:
        return bags
    means = np.add.reduceat(bags.points, bags.offsets[:-1], axis=0) / bags.sizes[:, None]
    return chosen_bags(bags, canonical_order(means)[evenly_spaced(len(bags), TYPICAL)])


def evenly_spaced(n: int, most: int) -> NDArray[np.intp]:
    """Places from 0 to n - 1, both among them: all, or `most` of them."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


def chosen_bags(bags: Bags, chosen: NDArray[np.intp]) -> Bags:
    """Some of the bags, in the order named."""
    offsets = np.concatenate([[0], np.cumsum(bags.sizes[chosen])]).astype(np.intp)
    return Bags(np.concatenate([bags[i] for i in chosen]), offsets)


def median_width(squared: Array, parameter: str) -> float:
    """One over the median squared distance between different sets."""
    check_sets_for_width(len(squared), parameter)
    check_sets_vary(squared, parameter)
    return median_gamma(squared, name="the bags")


def unit_length(vectors: Array) -> Array:
    """Vectors scaled to length 1; those of length 0 stay."""
    # By the largest number first, whose square may not be a float.
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    vectors = vectors / np.where(largest > 0, largest, 1.0)[:, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return vectors / np.where(lengths > 0, lengths, 1.0)[:, None]
