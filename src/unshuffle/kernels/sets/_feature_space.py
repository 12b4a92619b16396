"""Mixtures in the feature space of a kernel: a few directions each, and a floor in all others."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import distances_from_median, find_inliers
from unshuffle._bags import Bags, canonical_order
from unshuffle._distances import mirror_upper
from unshuffle._grams import check_points_for_width
from unshuffle._kernel_features import PointFeatures, kernel_name
from unshuffle.kernels.sets._mixtures import (
    Climb,
    Components,
    chosen_numbers,
    fit_in_chunks,
    fitted,
    offsets_of,
    unpacked,
)

Array = NDArray[np.float64]

# Numbers of a table of inner products that is held at a time: it should stay near the processor.
TABLE = 2**18
# Points among which landmarks are chosen: more take longer and hardly come closer.
POOL = 5000
# Directions whose variance is below this share of the floor are lost in it.
LOST = 1e-10


class FeatureMixtures(Components):
    """Components with covariances of few directions and a floor, ready to be compared.

    `spreads` are those directions, (n_components_in_all, rank, n_dims). All lengths are divided
    by the root of 2 eta, so that the floors of two components add up to the identity.
    """

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
        spreads = 1.0 + (self.spreads**2).sum(axis=2)
        shortened = self.spreads / np.sqrt(spreads)[:, :, np.newaxis]
        rows = np.concatenate([shortened, self.means[:, np.newaxis]], axis=1)
        own = np.matmul(rows, self.means[:, :, np.newaxis])[:, :, 0]
        return rows, self.logs - 0.5 * np.log(spreads).sum(axis=1), own

    def _laned(self) -> tuple[Array, Array, Array]:
        """First directions of all components, then second ones, the means last; inner products."""
        rows = np.concatenate([self.spreads, self.means[:, np.newaxis]], axis=1)
        own = np.matmul(rows, self.means[:, :, np.newaxis])[:, :, 0]
        columns = np.ascontiguousarray(rows.transpose(1, 0, 2)).reshape(-1, rows.shape[2])
        spreads = np.ascontiguousarray((self.spreads**2).sum(axis=2).T)
        return columns, np.ascontiguousarray(own.T), spreads


class FeatureFits(NamedTuple):
    """Mixtures of several sets in feature space."""

    n_components: NDArray[np.intp]  # of each set
    weights: Array  # (n_components_in_all,)
    means: Array  # (n_components_in_all, n_dims)
    factors: Array  # orthogonal directions, as long as their standard deviations, or 0
    rounds: NDArray[np.intp]  # of each climb
    settled: NDArray[np.bool_]  # whether each ended before `max_iter`


@dataclass(frozen=True)
class FeatureSpace:
    """Feature space of a kernel, in coordinates that landmarks span.

    Covariances are C_k + eta I. Without eta nothing would be left to compare: where the kernel is
    strictly positive definite, the points of a set are linearly independent in feature space, and
    every one of them has the same Mahalanobis distance from the mean of its component, 1/w - 1
    for the weight w it has there.
    """

    features: PointFeatures  # map from points to coordinates
    center: Array  # middle of the fitted points there, from which means lose no digits
    eta: float  # variance added in all directions
    rank: int  # directions kept of each component
    constant: float  # added to logarithms of products, where the dimensions are finite

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
        mapped = mapped[find_inliers(distances_from_median(mapped))]
        center, square = mapped.mean(axis=0), float((mapped**2).sum(axis=1).mean())
        variance = float(((mapped - center) ** 2).sum(axis=1).mean())
        if (pool == pool[0]).all():
            # Points that are all the same leave no scale but that of the features themselves.
            variance = square or 1.0
        # Landmarks explain points to 1e-12 of the largest, so what differs by less is not seen.
        elif not variance > 3e-12 * square:
            raise ValueError(
                f"By the kernel {kernel_name(kernel)} all points are equal but for rounding: "
                f"their variance is {variance / square if square else 0.0:.1e} of their mean "
                "square. Subtract the mean of all points first where they lie far from the "
                "origin, or pass a larger gamma."
            )
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

        def fit(start: int, stop: int, distinct: NDArray[np.intp]) -> list[Any]:
            return [self._fit(bags[i], distinct[[i]], climb) for i in range(start, stop)]

        length = (self.rank + 1) * self.center.size + 1
        chunks = fit_in_chunks(fit, bags, climb, length, n_jobs)
        weights, means, factors, rounds, settled = zip(
            *(each for chunk in chunks for each in chunk), strict=True
        )
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
        logs, unit = np.log(fits.weights) + 0.5 * self.constant, np.sqrt(2.0 * self.eta)
        offsets = offsets_of(fits.n_components)
        return FeatureMixtures(logs, fits.means / unit, fits.factors / unit, offsets)

    def affinities(self, fits: FeatureFits) -> FeatureMixtures:
        """Single Gaussians whose products are integrals of the roots of the densities."""
        spreads = (fits.factors**2).sum(axis=2)
        logs = 0.25 * np.log1p(spreads / self.eta).sum(axis=1)
        means, unit = np.sqrt(0.5) * fits.means, np.sqrt(2.0 * self.eta)
        offsets = np.arange(len(logs) + 1)
        return FeatureMixtures(logs, means / unit, fits.factors / unit, offsets)

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
