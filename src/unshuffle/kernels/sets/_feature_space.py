"""The feature space of a kernel: where mixtures have few directions and a floor in all others."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags, canonical_order
from unshuffle._distances import mirror_upper
from unshuffle._grams import check_points_for_width
from unshuffle._middle import distances_from_middle, ordinary
from unshuffle._parallel import map_parallel
from unshuffle._points import PointFeatures
from unshuffle.kernels.sets._mixtures import (
    CHUNK,
    Climb,
    check_mixture_memory,
    chosen_numbers,
    fitted,
    n_distinct,
    offsets_of,
    unpacked,
    warn_fewer_components,
    warn_unsettled,
)

Array = NDArray[np.float64]

# Numbers of a table of inner products that is held at a time: it should stay near the processor.
TABLE = 2**18
# Points among which landmarks are chosen: more take longer and hardly come closer.
POOL = 5000
# Directions whose variance is below this share of the floor are lost in it.
LOST = 1e-10


@dataclass(frozen=True)
class FeatureMixtures:
    """Components with covariances of few directions and a floor, ready to be compared.

    All lengths are divided by the root of 2 eta, so that the floors of two components add up to
    the identity.

    Attributes
    ----------
    logs : ndarray of shape (n_components_in_all,)
        Added to the logarithm of every product that a component is part of.
    means : ndarray of shape (n_components_in_all, n_dims)
    factors : ndarray of shape (n_components_in_all, rank, n_dims)
        Orthogonal directions, each as long as its standard deviation.
    offsets : ndarray of shape (n_sets + 1,)
        Where the components of each set begin.
    """

    logs: Array
    means: Array
    factors: Array
    offsets: NDArray[np.intp]

    @classmethod
    def of(
        cls, logs: Array, means: Array, factors: Array, offsets: NDArray[np.intp], eta: float
    ) -> "FeatureMixtures":
        """Components with lengths in units of the features."""
        unit = np.sqrt(2.0 * eta)
        return cls(logs, means / unit, factors / unit, offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def part(self, start: int, stop: int) -> "FeatureMixtures":
        """Mixtures of the sets from `start` up to `stop`."""
        rows = slice(self.offsets[start], self.offsets[stop])
        offsets = self.offsets[start : stop + 1] - self.offsets[start]
        return FeatureMixtures(self.logs[rows], self.means[rows], self.factors[rows], offsets)

    def log_products(self, other: "FeatureMixtures | None") -> Array:
        """Logarithms of the integrals of products, exactly symmetric where `other` is None."""
        from unshuffle.kernels.sets import _pair_loops  # numba is slow to load

        beside = self if other is None else other
        rows, logs, own_inner = self._eliminated()
        columns, other_inner, spreads = beside._laned()
        n, r, n_others = len(self.logs), spreads.shape[0], len(beside.logs)
        terms = np.empty((n, n_others))
        step = max(1, TABLE // ((r + 1) * len(columns)))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            inner = rows[part].reshape(-1, rows.shape[2]) @ columns.T
            _pair_loops.log_terms(
                inner.reshape(-1, r + 1, r + 1, n_others),
                logs[part],
                own_inner[part],
                beside.logs.copy(),
                other_inner,
                spreads,
                terms[part],
            )
        found = np.empty((len(self), len(beside)))
        _pair_loops.log_sums(terms, self.offsets.copy(), beside.offsets.copy(), found)
        return mirror_upper(found) if other is None else found

    def _eliminated(self) -> tuple[Array, Array, Array]:
        """Directions shortened by their own spread, with the means below; logs; inner products."""
        spreads = 1.0 + (self.factors**2).sum(axis=2)
        shortened = self.factors / np.sqrt(spreads)[:, :, np.newaxis]
        rows = np.concatenate([shortened, self.means[:, np.newaxis]], axis=1)
        own = np.matmul(rows, self.means[:, :, np.newaxis])[:, :, 0]
        return rows, self.logs - 0.5 * np.log(spreads).sum(axis=1), own

    def _laned(self) -> tuple[Array, Array, Array]:
        """First directions of all components, then second ones, the means last; inner products."""
        rows = np.concatenate([self.factors, self.means[:, np.newaxis]], axis=1)
        own = np.matmul(rows, self.means[:, :, np.newaxis])[:, :, 0]
        columns = np.ascontiguousarray(rows.transpose(1, 0, 2)).reshape(-1, rows.shape[2])
        spreads = np.ascontiguousarray((self.factors**2).sum(axis=2).T)
        return columns, np.ascontiguousarray(own.T), spreads


class FeatureFits(NamedTuple):
    """Mixtures of several sets in feature space.

    Attributes
    ----------
    n_components : ndarray of shape (n_sets,)
    weights : ndarray of shape (n_components_in_all,)
    means : ndarray of shape (n_components_in_all, n_dims)
    factors : ndarray of shape (n_components_in_all, rank, n_dims)
        Orthogonal directions of most variance, each as long as its standard deviation; zeros
        where there are fewer.
    rounds, settled : ndarray of shape (n_sets,)
        Rounds that each climb took, and whether it ended before `max_iter`.
    """

    n_components: NDArray[np.intp]
    weights: Array
    means: Array
    factors: Array
    rounds: NDArray[np.intp]
    settled: NDArray[np.bool_]


@dataclass(frozen=True)
class FeatureSpace:
    """Feature space of a kernel, in coordinates that landmarks span.

    Covariances are C_k + eta I. Without eta nothing would be left to compare: where the kernel is
    strictly positive definite, the points of a set are linearly independent in feature space, and
    every one of them has the same Mahalanobis distance from the mean of its component, 1/w - 1
    for the weight w it has there.

    Attributes
    ----------
    features : PointFeatures
        Map from points to coordinates.
    center : ndarray of shape (n_dims,)
        Middle of the fitted points in these coordinates, from which means lose no digits.
    eta : float
        Variance added in all directions.
    rank : int
        Directions kept of each component.
    constant : float
        Added to logarithms of products, where the space has a finite number of dimensions.
    """

    features: PointFeatures
    center: Array
    eta: float
    rank: int
    constant: float

    @classmethod
    def of(
        cls,
        points: Array,
        kernel: Any,
        *,
        gamma: float | None,
        degree: int,
        eta: float,
        rank: int,
        n_landmarks: int,
    ) -> "FeatureSpace":
        """Space for points like these; eta is given as a share of their mean variance in it."""
        pool = points[canonical_order(points)]
        if len(pool) > POOL:
            drawn = np.random.default_rng(0).choice(len(pool), POOL, replace=False)
            pool = pool[np.sort(drawn)]
        if kernel == "rbf" and gamma is None:
            check_points_for_width(len(pool), "gamma")
        features = PointFeatures.of(pool, kernel, gamma=gamma, degree=degree, rank=n_landmarks)
        mapped = features.map(pool)
        # One wild point would set the scale for all.
        mapped = mapped[ordinary(distances_from_middle(mapped))]
        center, square = mapped.mean(axis=0), float((mapped**2).sum(axis=1).mean())
        variance = float(((mapped - center) ** 2).sum(axis=1).mean())
        if (pool == pool[0]).all():
            # Points that are all the same leave no scale but that of the features themselves.
            variance = square or 1.0
        else:
            check_feature_variance(variance, square, kernel)
        floor = eta * variance
        dims = points.shape[1] if kernel == "linear" else 0
        constant = -0.5 * dims * float(np.log(4.0 * np.pi * floor))
        return cls(features, center, floor, min(rank, mapped.shape[1]), constant)

    @property
    def gamma(self) -> float:
        """Width or scale of the kernel; 1 where it has none."""
        kernel = self.features.kernel
        return kernel.gamma if kernel is not None and isinstance(kernel.kind, str) else 1.0

    def fits(self, bags: Bags, climb: Climb, *, n_jobs: int | None) -> FeatureFits:
        """Mixtures of sets in canonical order."""
        distinct = n_distinct(bags)
        if isinstance(climb.n_components, int):
            warn_fewer_components(distinct, climb.n_components)
        length = (self.rank + 1) * self.center.size + 1
        check_mixture_memory(len(bags), climb.most, length)

        def fit(start: int) -> list[tuple[Array, Array, Array, int, bool]]:
            stop = min(start + CHUNK, len(bags))
            return [self._fit(bags[i], distinct[[i]], climb) for i in range(start, stop)]

        chunks = map_parallel(fit, range(0, len(bags), CHUNK), n_jobs=n_jobs)
        weights, means, factors, rounds, settled = zip(
            *(each for chunk in chunks for each in chunk), strict=True
        )
        warn_unsettled(np.array(settled), climb.max_iter)
        return FeatureFits(
            np.array([each.size for each in weights], dtype=np.intp),
            np.concatenate(weights),
            np.concatenate(means),
            np.concatenate(factors),
            np.array(rounds, dtype=np.intp),
            np.array(settled),
        )

    def likelihoods(self, fits: FeatureFits) -> FeatureMixtures:
        """Mixtures whose products are integrals of the densities, but for a constant factor."""
        logs = np.log(fits.weights) + 0.5 * self.constant
        return FeatureMixtures.of(
            logs, fits.means, fits.factors, offsets_of(fits.n_components), self.eta
        )

    def affinities(self, fits: FeatureFits) -> FeatureMixtures:
        """Single Gaussians whose products are integrals of the roots of the densities."""
        spreads = (fits.factors**2).sum(axis=2)
        logs = 0.25 * np.log1p(spreads / self.eta).sum(axis=1)
        means = np.sqrt(0.5) * fits.means
        offsets = np.arange(len(logs) + 1)
        return FeatureMixtures.of(logs, means, fits.factors, offsets, self.eta)

    def _fit(
        self, points: Array, distinct: NDArray[np.intp], climb: Climb
    ) -> tuple[Array, Array, Array, int, bool]:
        """Weights, means and directions of one set; rounds, and whether the climb had settled.

        The points of a set span few dimensions, in which the climb with whole covariances is the
        climb in feature space.
        """
        mapped = self.features.map(points) - self.center
        mean = mapped.mean(axis=0)
        coordinates, basis = spanned(mapped - mean, LOST * self.eta)
        own = Bags(coordinates, np.array([0, len(points)], dtype=np.intp))
        if climb.n_components == 1:
            spread = (coordinates**2).mean(axis=0)[: self.rank]
            directions = np.sqrt(spread)[:, np.newaxis] * basis[: self.rank]
            return np.ones(1), mean[np.newaxis], self._padded(directions[np.newaxis]), 1, True
        found = fitted(own, chosen_numbers(own, distinct, climb), climb)
        m = found.n_components[0]
        covariances = unpacked(found.covariances[0, :m], own.width)
        covariances -= climb.floor * np.eye(own.width)
        values, vectors = np.linalg.eigh(covariances)
        values = np.maximum(values[:, ::-1][:, : self.rank], 0.0)
        vectors = vectors[:, :, ::-1][:, :, : self.rank]
        directions = np.sqrt(values)[:, :, np.newaxis] * (vectors.transpose(0, 2, 1) @ basis)
        means = mean + found.means[0, :m] @ basis
        ended = int(found.rounds[0]), bool(found.settled[0])
        return found.weights[0, :m], means, self._padded(directions), *ended

    def _padded(self, directions: Array) -> Array:
        short = self.rank - directions.shape[1]
        return np.pad(directions, ((0, 0), (0, short), (0, 0)))


def spanned(centered: Array, least: float) -> tuple[Array, Array]:
    """Coordinates in an orthonormal basis of what the rows span, most variance first.

    Directions with less variance than `least` are left out, all but the first.
    """
    n, dims = centered.shape
    if n <= dims:
        values, vectors = np.linalg.eigh(centered @ centered.T)
        values = np.maximum(values[::-1], 0.0)
        kept = max(1, int((values > n * least).sum()))
        lengths = np.sqrt(np.maximum(values[:kept], np.finfo(float).tiny))
        coordinates = vectors[:, ::-1][:, :kept] * lengths
        return coordinates, coordinates.T @ centered / (lengths**2)[:, np.newaxis]
    values, vectors = np.linalg.eigh(centered.T @ centered)
    kept = max(1, int((values > n * least).sum()))
    basis = vectors[:, ::-1][:, :kept].T
    return centered @ basis.T, basis


def check_feature_variance(variance: float, square: float, kernel: Any) -> None:
    """Refuse a kernel by which different points are the same but for rounding."""
    # Landmarks explain points to 1e-12 of the largest, so what differs by less is not seen.
    if not variance > 3e-12 * square:
        label = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "callable")
        raise ValueError(
            f"By the kernel {label} all points are equal but for rounding: their variance is "
            f"{variance / square if square else 0.0:.1e} of their mean square. Subtract the mean "
            "of all points first where they lie far from the origin, or pass a larger gamma."
        )
