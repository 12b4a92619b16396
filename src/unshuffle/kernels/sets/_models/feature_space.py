"""Gaussian mixtures in the feature space of a kernel, with low-rank covariances."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from unshuffle._core.arrays import distances_from_median, find_inliers
from unshuffle._core.bags import Bags, canonical_order
from unshuffle._core.distances import mirror_upper
from unshuffle._core.grams import check_points_for_width
from unshuffle._core.kernel_features import PointFeatures, kernel_name
from unshuffle._run.types import Floats, Indices
from unshuffle.kernels.sets._models.mixtures import (
    Fits,
    FitSettings,
    Gaussians,
    choose_n_components,
    fit_all,
    fit_sets,
    join_fits,
    offsets_of,
    unpack,
)

# Most inner products held at a time, so that they stay in a processor's cache.
TABLE = 2**18
# Points among which landmarks are chosen: more take longer and hardly help.
POOL = 5000
# Directions whose variance is below this share of the floor are dropped.
NEGLIGIBLE = 1e-10


class FeatureMixtures(Gaussians):
    """Components with covariances of low rank plus a floor, ready to be compared.

    `spreads` are their directions, (n_components_in_all, rank, n_dims). All lengths are divided
    by the root of 2 eta, so that the floors of two components add up to the identity.
    """

    def log_products(self, other: "FeatureMixtures | None") -> Floats:
        """Logarithms of the integrals of products, exactly symmetric if `other` is None."""
        from unshuffle.kernels.sets._models import pair_loops

        beside = self if other is None else other
        rows, logs, own_inner = self._shorten_directions()
        columns, other_inner, spreads = beside._stack_directions()
        n, r, n_others = len(self.logs), spreads.shape[0], len(beside.logs)
        terms = np.empty((n, n_others))
        step = max(1, TABLE // ((r + 1) * len(columns)))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            inner = rows[part].reshape(-1, rows.shape[2]) @ columns.T
            pair_loops.low_rank_log_terms(
                inner.reshape(-1, r + 1, r + 1, n_others),
                logs[part],
                own_inner[part],
                beside.logs.copy(),
                other_inner,
                spreads,
                terms[part],
            )
        found = np.empty((len(self), len(beside)))
        firsts, lasts = (np.full(len(self), each, dtype=np.intp) for each in (0, len(beside)))
        offsets, other_offsets = self.offsets.copy(), beside.offsets.copy()
        pair_loops.log_sums(terms, offsets, other_offsets, firsts, lasts, found)
        return mirror_upper(found) if other is None else found

    def own_log_products(self) -> Floats:
        """Logarithms of the integrals of the squares."""
        own = (self[i : i + 1].log_products(None)[0, 0] for i in range(len(self)))
        return np.fromiter(own, dtype=np.float64, count=len(self))

    def _shorten_directions(self) -> tuple[Floats, Floats, Floats]:
        """Directions over the root of 1 + length^2, means last; logs; products with means."""
        spreads = 1.0 + (self.spreads**2).sum(axis=2)
        shortened = self.spreads / np.sqrt(spreads)[:, :, np.newaxis]
        rows = np.concatenate([shortened, self.means[:, np.newaxis]], axis=1)
        own = np.matmul(rows, self.means[:, :, np.newaxis])[:, :, 0]
        return rows, self.logs - 0.5 * np.log(spreads).sum(axis=1), own

    def _stack_directions(self) -> tuple[Floats, Floats, Floats]:
        """First directions of all components, then second ones, means last; products; spreads."""
        rows = np.concatenate([self.spreads, self.means[:, np.newaxis]], axis=1)
        own = np.matmul(rows, self.means[:, :, np.newaxis])[:, :, 0]
        columns = np.ascontiguousarray(rows.transpose(1, 0, 2)).reshape(-1, rows.shape[2])
        spreads = np.ascontiguousarray((self.spreads**2).sum(axis=2).T)
        return columns, np.ascontiguousarray(own.T), spreads


@dataclass(frozen=True)
class FeatureSpace:
    """Feature space of a kernel, in coordinates that landmarks span.

    Covariances are C_k + eta I. Without eta nothing would be left to compare: for a strictly
    positive definite kernel, the points of a set are linearly independent in feature space, and
    all have the Mahalanobis distance 1/w - 1 from the mean of their component, w their weight.
    """

    features: PointFeatures  # map from points to coordinates
    center: Floats  # mean of the fitted points there, so that means keep their digits
    eta: float  # variance added in all directions
    rank: int  # directions kept of each component
    constant: float  # added to logarithms of products; 0 in infinite dimensions

    @classmethod
    def of(
        cls,
        points: Floats,
        kernel: Any,
        *,
        gamma: float | None,
        degree: int,
        eta: float,
        rank: int,
        n_landmarks: int,
    ) -> "FeatureSpace":
        """Space for points like these, with eta as a share of their mean variance in it."""
        pool = points[canonical_order(points)]
        if len(pool) > POOL:
            drawn = np.random.default_rng(0).choice(len(pool), POOL, replace=False)
            pool = pool[np.sort(drawn)]
        if kernel == "rbf" and gamma is None:
            check_points_for_width(len(pool), "gamma")
        features = PointFeatures.of(pool, kernel, gamma=gamma, degree=degree, rank=n_landmarks)
        mapped = features.map(pool)
        # An outlier would set the scale for all.
        mapped = mapped[find_inliers(distances_from_median(mapped))]
        center, square = mapped.mean(axis=0), float((mapped**2).sum(axis=1).mean())
        variance = float(((mapped - center) ** 2).sum(axis=1).mean())
        if (pool == pool[0]).all():
            # If all points are the same, only the features themselves have a scale.
            variance = square or 1.0
        # Landmarks explain points to 1e-12 of the largest.
        elif not variance > 3e-12 * square:
            raise ValueError(
                f"All points are the same to the kernel {kernel_name(kernel)}, up to rounding: "
                f"their variance is {variance / square if square else 0.0:.1e} of their mean "
                "square. Subtract the mean of all points if they lie far from the origin, or pass "
                "a larger gamma."
            )
        floor = eta * variance
        dims = points.shape[1] if kernel == "linear" else 0
        constant = -0.5 * dims * float(np.log(4.0 * np.pi * floor))
        return cls(features, center, floor, min(rank, mapped.shape[1]), constant)

    @property
    def gamma(self) -> float:
        """Width or scale of the kernel; 1 if it has none."""
        kernel = self.features.kernel
        return kernel.gamma if kernel is not None and isinstance(kernel.kind, str) else 1.0

    def fit_mixtures(self, sets: Bags, settings: FitSettings, *, n_jobs: int | None) -> Fits:
        """Mixtures of sorted sets."""
        length = (self.rank + 1) * self.center.size + 1
        return fit_all(partial(self._fit, settings), sets, settings, length, n_jobs)

    def likelihoods(self, fits: Fits) -> FeatureMixtures:
        """Mixtures whose products are integrals of the densities, up to a constant factor."""
        logs, unit = np.log(fits.weights) + 0.5 * self.constant, np.sqrt(2.0 * self.eta)
        offsets = offsets_of(fits.n_components)
        return FeatureMixtures(logs, fits.means / unit, fits.spreads / unit, offsets)

    def affinities(self, fits: Fits) -> FeatureMixtures:
        """Single Gaussians whose products are integrals of the roots of the densities."""
        spreads = (fits.spreads**2).sum(axis=2)
        logs = 0.25 * np.log1p(spreads / self.eta).sum(axis=1)
        means, unit = np.sqrt(0.5) * fits.means, np.sqrt(2.0 * self.eta)
        offsets = np.arange(len(logs) + 1)
        return FeatureMixtures(logs, means / unit, fits.spreads / unit, offsets)

    def _fit(self, settings: FitSettings, sets: Bags, distinct: Indices) -> Fits:
        """Mixtures of sets, one after the other."""
        pairs = zip(sets, distinct, strict=True)
        return join_fits([self._fit_one(settings, *pair) for pair in pairs])

    def _fit_one(self, settings: FitSettings, points: Floats, n_distinct: int) -> Fits:
        """Mixture of one set, fitted in the few dimensions that its points span."""
        mapped = self.features.map(points) - self.center
        mean = mapped.mean(axis=0)
        coordinates, basis = span(mapped - mean, NEGLIGIBLE * self.eta)
        width = coordinates.shape[1]
        if settings.n_components == 1:
            spread = (coordinates**2).mean(axis=0)[: self.rank]
            directions = (np.sqrt(spread)[:, np.newaxis] * basis[: self.rank])[np.newaxis]
            number, done = np.ones(1, dtype=np.intp), np.ones(1, dtype=np.bool_)
            parts = np.ones(1), mean[np.newaxis], directions
            found = Fits(number, *parts, np.zeros(1), number, done)
        else:
            one = Bags(coordinates, np.array([0, len(coordinates)]))
            m = choose_n_components(one, np.array([n_distinct]), settings)
            found = fit_sets(one, m, settings)
            covariances = unpack(found.spreads, width)
            covariances -= settings.floor * np.eye(width)
            values, vectors = np.linalg.eigh(covariances)
            values = np.maximum(values[:, ::-1][:, : self.rank], 0.0)
            vectors = vectors[:, :, ::-1][:, :, : self.rank]
            directions = np.sqrt(values)[:, :, np.newaxis] * (vectors.transpose(0, 2, 1) @ basis)
            found = found._replace(means=mean + found.means @ basis)
        n_missing = self.rank - directions.shape[1]
        return found._replace(spreads=np.pad(directions, ((0, 0), (0, n_missing), (0, 0))))


def span(centered: Floats, least: float) -> tuple[Floats, Floats]:
    """Coordinates in an orthonormal basis of the span of the rows, most variance first.

    Directions with less variance than `least` are dropped, all but the first.
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
