"""Sets described by one vector each, and features whose means describe them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.arrays import middle
from unshuffle._core.bags import Bags, canonical_order
from unshuffle._core.distances import median_gamma
from unshuffle._core.kernel_features import polynomial
from unshuffle._core.parameters import check_memory
from unshuffle._run.parallel import map_parallel
from unshuffle._run.types import Floats

# Waves with a smaller share of the kernel's largest value are left out of a grid.
NEGLIGIBLE = 1e-14
# How far new points may lie outside the fitted ones, as a share of their extent.
MARGIN = 0.1
# An exponential takes as long as this many products of features.
PRODUCTS_PER_EXPONENTIAL = 32
# Most numbers that the vectors of all sets may take together: 1 GB.
MAX_NUMBERS = 2**27
# Sets described by one thread at a time.
SETS_PER_TASK = 32
# Most numbers that the features of points may take at a time: 64 MB.
MAX_FEATURES = 2**23
# Medians and means over this many sets are within a few per cent of those over all.
TYPICAL = 500


def describe_sets(
    function: Callable[[Floats], Floats], sets: Bags, length: int, *, n_jobs: int | None
) -> Floats:
    """One vector of `length` numbers for each set, by a function of its points."""
    check_memory(
        8 * len(sets) * length,
        what=f"Describing {len(sets):,} sets by {length:,} numbers each",
        instead="Ask for fewer numbers per set, or pass fewer sets at a time.",
    )
    vectors = np.empty((len(sets), length))

    # One set at a time: in products over several, its last digits would depend on the others.
    def fill(start: int) -> None:
        for i in range(start, min(start + SETS_PER_TASK, len(sets))):
            vectors[i] = function(sets[i])

    map_parallel(fill, range(0, len(sets), SETS_PER_TASK), n_jobs=n_jobs)
    return vectors


def mean_in_pieces(mean: Callable[[Floats], Floats], length: int, points: Floats) -> Floats:
    """Mean of `length` features over points, in pieces that fit into memory."""
    step = max(1, MAX_FEATURES // length)
    if len(points) <= step:
        return mean(points)
    parts = [points[start : start + step] for start in range(0, len(points), step)]
    return np.asarray(sum(len(part) * mean(part) for part in parts) / len(points))


def extreme_in_pieces(
    compare: Callable[[Floats, Floats], Floats],
    extreme: np.ufunc,
    landmarks: Floats,
    points: Floats,
) -> Floats:
    """Smallest or largest comparison of points with each landmark, in pieces that fit."""
    step = max(1, MAX_FEATURES // len(landmarks))
    parts = (points[start : start + step] for start in range(0, len(points), step))
    found = [extreme.reduce(compare(part, landmarks), axis=0) for part in parts]
    return np.asarray(extreme.reduce(found, axis=0))


def typical_sets(sets: Bags) -> Bags:
    """At most `TYPICAL` sets, evenly spread by their means; independent of the order of sets."""
    if len(sets) <= TYPICAL:
        return sets
    means = np.add.reduceat(sets.points, sets.offsets[:-1], axis=0) / sets.sizes[:, None]
    return choose_sets(sets, canonical_order(means)[evenly_spaced(len(sets), TYPICAL)])


def evenly_spaced(n: int, most: int) -> NDArray[np.intp]:
    """At most `most` indices from 0 to n - 1, both ends included."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


def choose_sets(sets: Bags, indices: NDArray[np.intp]) -> Bags:
    """The sets at these indices."""
    offsets = np.concatenate([[0], np.cumsum(sets.sizes[indices])]).astype(np.intp)
    return Bags(np.concatenate([sets[i] for i in indices]), offsets)


def median_width(squared: Floats, parameter: str) -> float:
    """One over the median squared distance between different sets."""
    n_sets = len(squared)
    if n_sets < 2:
        raise ValueError(
            f"`{parameter}` is set by the distances between sets, but X holds {n_sets} set "
            f"(n_samples = {n_sets}). Pass at least two sets, or a number as {parameter}."
        )
    if not squared.max() >= np.finfo(float).tiny:
        raise ValueError(
            f"`{parameter}` is set by the distances between sets, but all {n_sets} sets are the "
            f"same. Check the sets, or pass a number as {parameter}."
        )
    return median_gamma(squared, name="X")


def unit_length(vectors: Floats) -> Floats:
    """Vectors scaled to length 1; zero vectors stay zero."""
    # Divide by the largest number first, whose square may overflow.
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    vectors = vectors / np.where(largest > 0, largest, 1.0)[:, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return vectors / np.where(lengths > 0, lengths, 1.0)[:, None]


def check_directions_memory(n_directions: int, width: int, n_points: int, parameter: str) -> None:
    """Refuse directions that do not fit into memory with the projections of the largest set."""
    check_memory(
        8 * n_directions * (2 * width + 2 * n_points),
        what=f"Projecting sets of up to {n_points:,} points onto {n_directions:,} directions",
        instead=f"Pass a smaller {parameter}.",
    )


@dataclass(frozen=True)
class MeanFeatures(ABC):
    """Features of points whose inner products are a kernel."""

    length: int  # number of features

    @abstractmethod
    def mean(self, points: Floats) -> Floats:
        """Mean features of points, shape (length,)."""

    def holds(self, points: Floats) -> bool:
        """Whether the inner products are the kernel for these points."""
        return True


@dataclass(frozen=True)
class Coordinates(MeanFeatures):
    """Features of the linear kernel."""

    center: Floats  # the origin, or the middle of the points if distances are needed

    def mean(self, points: Floats) -> Floats:
        return np.asarray((points - self.center).mean(axis=0))


@dataclass(frozen=True)
class Monomials(MeanFeatures):
    """Features of (gamma x'y + 1)^degree: all products of at most `degree` coordinates."""

    gamma: float
    degree: int
    powers: NDArray[np.intp]  # (length, width): exponents of the coordinates
    weights: Floats  # factor of each product

    @classmethod
    def of(cls, width: int, gamma: float, degree: int) -> "Monomials":
        """Features of points with `width` columns."""
        # The constant 1 is one more coordinate, so that all products have the same degree.
        terms = combinations_with_replacement(range(width + 1), degree)
        powers = np.array([np.bincount(term, minlength=width + 1) for term in terms])
        counts = [factorial(degree) / prod(factorial(int(p)) for p in row) for row in powers]
        powers = powers[:, :width]
        with np.errstate(over="ignore"):  # `mean` refuses points whose kernel overflows
            weights = np.sqrt(counts * gamma ** powers.sum(axis=1))
        return cls(len(powers), gamma, degree, powers, weights)

    def mean(self, points: Floats) -> Floats:
        largest = np.einsum("ij,ij->i", points, points).max(keepdims=True)
        polynomial(largest, self.gamma, self.degree)  # refuses points whose kernel overflows
        features = np.ones((len(points), self.length))
        for column in range(points.shape[1]):
            table = points[:, [column]] ** np.arange(self.degree + 1)
            features *= table[:, self.powers[:, column]]
        return np.asarray(features.mean(axis=0) * self.weights)


@dataclass(frozen=True)
class RandomWaves(MeanFeatures):
    """Cosines and sines at random frequencies: approximate features of exp(-gamma d^2)."""

    center: Floats  # median of the fitted points, so that phases keep their digits
    frequencies: Floats  # (width, n_frequencies), in radians per unit of each coordinate

    @classmethod
    def of(
        cls, points: Floats, gamma: float, n_features: int, rng: np.random.RandomState
    ) -> "RandomWaves":
        """Frequencies drawn from the kernel's spectrum, orthogonal within a block."""
        width, n_frequencies = points.shape[1], (n_features + 1) // 2
        directions = orthogonal_directions(n_frequencies, width, rng)
        lengths = np.sqrt(rng.chisquare(width, size=n_frequencies))
        frequencies = (np.sqrt(2.0) * np.sqrt(gamma) * lengths[:, None] * directions).T
        return cls(2 * n_frequencies, middle(points), frequencies)

    def mean(self, points: Floats) -> Floats:
        phases = (points - self.center) @ self.frequencies
        waves = np.concatenate([np.cos(phases).mean(axis=0), np.sin(phases).mean(axis=0)])
        return np.asarray(waves / np.sqrt(self.frequencies.shape[1]))


@dataclass(frozen=True)
class GridWaves(MeanFeatures):
    """Cosines and sines on a grid of frequencies: the features of exp(-gamma d^2), to rounding.

    The kernel is the integral of cos(w (x - y)) over frequencies w with a Gaussian weight. A sum
    over evenly spaced w repeats the kernel at every period 2 pi / step. If the period exceeds all
    differences by the reach of the kernel, the copies are below rounding, and so are frequencies
    of negligible weight. In a few dimensions this takes less time than all pairs of points.
    """

    center: Floats  # of the fitted points
    half_extent: Floats  # how far from the center points may be
    steps: Floats  # smallest frequency of each coordinate
    amplitudes: tuple[Floats, ...]  # of the constant, the cosines and the sines, by coordinate
    kept: NDArray[np.bool_]  # products of waves that are not negligible

    @classmethod
    def of(cls, points: Floats, gamma: float, most: float) -> "GridWaves | None":
        """Waves for points like these; None if there would be more than `most`."""
        low, high = points.min(axis=0), points.max(axis=0)
        half_extent = (0.5 + MARGIN) * (high - low)
        reach = np.sqrt(-np.log(NEGLIGIBLE))
        periods = 2.0 * half_extent + reach / np.sqrt(gamma)
        steps = 2.0 * np.pi / periods
        n_waves = np.ceil(2.0 * reach * np.sqrt(gamma) / steps)
        # Only the ball inside the box of frequencies is kept, a small part in many dimensions.
        with np.errstate(over="ignore"):
            n_products = np.prod(2.0 * n_waves + 1.0)
        if n_products > 8.0 * most:
            return None
        # The weight of a frequency w is exp(-|w|^2 / 4 gamma).
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
        center = low + 0.5 * (high - low)
        return cls(int(kept.sum()), center, half_extent, steps, amplitudes, kept)

    def mean(self, points: Floats) -> Floats:
        products = np.ones((len(points), 1))
        waves = [self._waves(points, column) for column in range(points.shape[1])]
        for each in waves[:-1]:
            products = (products[:, :, None] * each[:, None, :]).reshape(len(points), -1)
        means = products.T @ waves[-1] / len(points)
        return np.asarray(means.ravel()[self.kept])

    def holds(self, points: Floats) -> bool:
        return bool(np.all(np.abs(points - self.center) <= self.half_extent))

    def _waves(self, points: Floats, column: int) -> Floats:
        amplitudes = self.amplitudes[column]
        phases = (points[:, column] - self.center[column]) * self.steps[column]
        # Powers of one complex wave are ten times as fast as a cosine and a sine each.
        powers = np.empty((len(points), amplitudes.size // 2 + 1), dtype=np.complex128)
        powers[:, 0] = 1.0
        powers[:, 1:] = np.exp(1j * phases)[:, None]
        np.cumprod(powers, axis=1, out=powers)
        return np.asarray(np.hstack([powers.real, powers.imag[:, 1:]]) * amplitudes)


def orthogonal_directions(n_directions: int, width: int, rng: np.random.RandomState) -> Floats:
    """Random directions of length 1, orthogonal within blocks of `width`."""
    blocks = []
    for _ in range(0, n_directions, width):
        factor, triangle = np.linalg.qr(rng.normal(size=(width, width)))
        blocks.append(factor * np.where(np.diag(triangle) < 0, -1.0, 1.0))
    return np.concatenate([block.T for block in blocks])[:n_directions]


def most_features(sets: Bags) -> float:
    """Number of features beyond which all pairs of points are faster, or memory runs out."""
    return min(PRODUCTS_PER_EXPONENTIAL * float(sets.sizes.mean()) ** 2, MAX_NUMBERS / len(sets))
