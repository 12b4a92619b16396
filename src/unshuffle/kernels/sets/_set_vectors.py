"""Sets that are described by one vector each: how vectors are made, and kernels between them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import middle
from unshuffle._bags import Bags, canonical_order
from unshuffle._distances import exponential_of, inner_products, median_gamma, squared_distances
from unshuffle._kernel_features import polynomial
from unshuffle._parallel import map_parallel
from unshuffle._parameters import check_memory

Array = NDArray[np.float64]

# What is left out of a grid of waves, as a share of the kernel's largest value.
NEGLIGIBLE = 1e-14
# Room that a grid of waves leaves for new points, as a share of the fitted points' extent.
ROOM = 0.1
# An exponential takes as long as this many products of features.
WORTH = 32
# Most numbers that the vectors of all sets may take together: 1 GB.
MOST_NUMBERS = 2**27
# Sets described by one thread at a time.
SHARE = 32
# Numbers that points may take before their mean is: 64 MB.
PIECE = 2**23
# Scales and widths are read off this many sets: their medians and means are within a few per
# cent of those of all.
TYPICAL = 500


@dataclass(frozen=True)
class SetVectors:
    """One vector for each set."""

    values: Array  # (n_sets, n_numbers)

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
    check_memory(
        8 * len(bags) * length,
        what=f"Describing {len(bags):,} sets by {length:,} numbers each",
        instead="Ask for fewer numbers per set, or pass fewer sets at a time.",
    )
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
    n_sets = len(squared)
    if n_sets < 2:
        raise ValueError(
            f"`{parameter}` is read off the distances between sets, but bags holds {n_sets} set "
            f"(n_samples = {n_sets}). Pass at least two sets, or a number as {parameter}."
        )
    if not squared.max() >= np.finfo(float).tiny:
        raise ValueError(
            f"`{parameter}` is read off the distances between sets, and all {n_sets} sets are "
            f"alike: every distance is 0. Check the sets, or pass a number as {parameter}."
        )
    return median_gamma(squared, name="the bags")


def unit_length(vectors: Array) -> Array:
    """Vectors scaled to length 1; those of length 0 stay."""
    # By the largest number first, whose square may not be a float.
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    vectors = vectors / np.where(largest > 0, largest, 1.0)[:, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return vectors / np.where(lengths > 0, lengths, 1.0)[:, None]


def check_directions_memory(n_directions: int, width: int, n_points: int, parameter: str) -> None:
    """Refuse directions that would not fit, nor what the largest set has along them."""
    check_memory(
        8 * n_directions * (2 * width + 2 * n_points),
        what=f"Looking at sets of up to {n_points:,} points in {n_directions:,} directions",
        instead=f"Pass a smaller {parameter}.",
    )


class MeanFeatures(ABC):
    """Features of points whose inner products are a kernel."""

    @property
    @abstractmethod
    def length(self) -> int:
        """Number of features."""

    @abstractmethod
    def mean(self, points: Array) -> Array:
        """Mean features of points, shape (length,)."""

    def holds(self, points: Array) -> bool:
        """Whether these are points for which the inner products are the kernel."""
        return True


@dataclass(frozen=True)
class Coordinates(MeanFeatures):
    """Features of the linear kernel."""

    center: Array  # the origin, or the middle of the points where distances are asked for

    @property
    def length(self) -> int:
        return self.center.size

    def mean(self, points: Array) -> Array:
        return np.asarray((points - self.center).mean(axis=0))


@dataclass(frozen=True)
class Monomials(MeanFeatures):
    """Features of (gamma x'y + 1)^degree: all products of at most `degree` coordinates."""

    gamma: float
    degree: int
    powers: NDArray[np.intp]  # (length, width): exponents of the coordinates
    weights: Array  # square roots of what each product counts

    @classmethod
    def of(cls, width: int, gamma: float, degree: int) -> "Monomials":
        """Features of points with so many columns."""
        # The constant 1 is one more coordinate, so that all products have the same degree.
        chosen = list(combinations_with_replacement(range(width + 1), degree))
        powers = np.array([np.bincount(each, minlength=width + 1) for each in chosen])
        counts = [
            factorial(degree) / prod(factorial(int(power)) for power in row) for row in powers
        ]
        powers = powers[:, :width]
        with np.errstate(over="ignore"):  # points are refused where the kernel overflows
            weights = np.sqrt(counts * gamma ** powers.sum(axis=1))
        return cls(gamma, degree, powers, weights)

    @property
    def length(self) -> int:
        return len(self.powers)

    def mean(self, points: Array) -> Array:
        largest = np.einsum("ij,ij->i", points, points).max(keepdims=True)
        polynomial(largest, self.gamma, self.degree)  # refuses points whose kernel overflows
        features = np.ones((len(points), self.length))
        for column in range(points.shape[1]):
            table = points[:, [column]] ** np.arange(self.degree + 1)
            features *= table[:, self.powers[:, column]]
        return np.asarray(features.mean(axis=0) * self.weights)


@dataclass(frozen=True)
class RandomWaves(MeanFeatures):
    """Cosines and sines at random frequencies: about the features of exp(-gamma d^2)."""

    center: Array  # middle of the fitted points, from which phases lose no digits
    frequencies: Array  # (width, n_frequencies), in radians per unit of each coordinate

    @classmethod
    def of(
        cls, points: Array, gamma: float, n_features: int, rng: np.random.RandomState
    ) -> "RandomWaves":
        """Frequencies as the kernel's spectrum has them, those of a block at right angles."""
        width, n_frequencies = points.shape[1], (n_features + 1) // 2
        directions = orthogonal_directions(n_frequencies, width, rng)
        lengths = np.sqrt(rng.chisquare(width, size=n_frequencies))
        return cls(
            middle(points), (np.sqrt(2.0) * np.sqrt(gamma) * lengths[:, None] * directions).T
        )

    @property
    def length(self) -> int:
        return 2 * self.frequencies.shape[1]

    def mean(self, points: Array) -> Array:
        phases = (points - self.center) @ self.frequencies
        waves = np.concatenate([np.cos(phases).mean(axis=0), np.sin(phases).mean(axis=0)])
        return np.asarray(waves / np.sqrt(self.frequencies.shape[1]))


@dataclass(frozen=True)
class GridWaves(MeanFeatures):
    """Cosines and sines on a grid of frequencies: the features of exp(-gamma d^2), to rounding.

    The kernel is the integral of cos(w (x - y)) over frequencies w with a Gaussian weight. A sum
    over evenly spaced w gives the kernel repeated at every period 2 pi / step: with a period
    longer than all differences by as far as the kernel reaches, the copies are below rounding,
    and so are frequencies beyond the weight's reach. In a few dimensions that takes fewer
    products than there are pairs of points in two sets.
    """

    center: Array  # middle of the fitted points
    half_extent: Array  # how far from it points may be
    steps: Array  # smallest frequency of each coordinate
    amplitudes: tuple[Array, ...]  # of the constant, the cosines and the sines, by coordinate
    kept: NDArray[np.bool_]  # products of waves that count

    @classmethod
    def of(cls, points: Array, gamma: float, most: float) -> "GridWaves | None":
        """Waves for points like these; None where they would be more than `most`."""
        low, high = points.min(axis=0), points.max(axis=0)
        half_extent = (0.5 + ROOM) * (high - low)
        reach = np.sqrt(-np.log(NEGLIGIBLE))
        periods = 2.0 * half_extent + reach / np.sqrt(gamma)
        steps = 2.0 * np.pi / periods
        n_waves = np.ceil(2.0 * reach * np.sqrt(gamma) / steps)
        # Of a box of frequencies the ball inside counts: the more coordinates, the less of it.
        with np.errstate(over="ignore"):
            n_products = np.prod(2.0 * n_waves + 1.0)
        if n_products > 8.0 * most:
            return None
        # |w|^2 / 4 gamma stands in the exponent of the weight of a frequency.
        exponents = [
            (step * np.arange(count + 1.0)) ** 2 / (4.0 * gamma)
            for step, count in zip(steps, n_waves, strict=True)
        ]
        both = [np.concatenate([each, each[1:]]) for each in exponents]
        kept = reduce(np.add.outer, both).ravel() <= -np.log(NEGLIGIBLE)
        if kept.sum() > most:
            return None
        amplitudes = tuple(
            np.exp(-0.5 * each) * np.sqrt(step / np.sqrt(np.pi * gamma))
            for each, step in zip(both, steps, strict=True)
        )
        for each in amplitudes:
            each[0] *= np.sqrt(0.5)  # other frequencies stand for themselves and their negatives
        return cls(low + 0.5 * (high - low), half_extent, steps, amplitudes, kept)

    @property
    def length(self) -> int:
        return int(self.kept.sum())

    def mean(self, points: Array) -> Array:
        products = np.ones((len(points), 1))
        waves = [self._waves(points, column) for column in range(points.shape[1])]
        for each in waves[:-1]:
            products = (products[:, :, None] * each[:, None, :]).reshape(len(points), -1)
        means = products.T @ waves[-1] / len(points)
        return np.asarray(means.ravel()[self.kept])

    def holds(self, points: Array) -> bool:
        return bool(np.all(np.abs(points - self.center) <= self.half_extent))

    def _waves(self, points: Array, column: int) -> Array:
        amplitudes = self.amplitudes[column]
        places = (points[:, column] - self.center[column]) * self.steps[column]
        # Powers of one complex wave: a product where a cosine and a sine take ten times as long.
        powers = np.empty((len(points), amplitudes.size // 2 + 1), dtype=np.complex128)
        powers[:, 0] = 1.0
        powers[:, 1:] = np.exp(1j * places)[:, None]
        np.cumprod(powers, axis=1, out=powers)
        return np.asarray(np.hstack([powers.real, powers.imag[:, 1:]]) * amplitudes)


def orthogonal_directions(n_directions: int, width: int, rng: np.random.RandomState) -> Array:
    """Directions of length 1, uniform each and at right angles within blocks of `width`."""
    blocks = []
    for _ in range(0, n_directions, width):
        factor, triangle = np.linalg.qr(rng.normal(size=(width, width)))
        blocks.append(factor * np.where(np.diag(triangle) < 0, -1.0, 1.0))
    return np.concatenate([block.T for block in blocks])[:n_directions]


def most_features(bags: Bags) -> float:
    """Features beyond which all pairs of points are quicker, or memory is too dear."""
    return min(WORTH * float(bags.sizes.mean()) ** 2, MOST_NUMBERS / len(bags))
