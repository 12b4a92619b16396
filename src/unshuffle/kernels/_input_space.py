"""Points as they are, standardised: where mixtures are fitted and multiplied with each other."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._bags import Bags
from unshuffle._middle import column_moments
from unshuffle.kernels._mixtures import Climb, Fits, Mixture, Mixtures, fit_mixtures, offsets_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class InputSpace:
    """Space of the points, each column with mean 0 and variance 1 over all fitted points.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
        Mean and standard deviation of each column, wild entries left out. Of a column that is
        always the same, the scale is that of the others: one that the new sets of `transform` may
        be measured by.
    """

    center: Array
    scale: Array

    @classmethod
    def of(cls, points: Array) -> "InputSpace":
        """Space for points like these."""
        center, scale = column_moments(points)
        varied = scale > 0.0
        usual = np.sqrt((scale[varied] ** 2).mean()) if varied.any() else 1.0
        return cls(center, np.where(varied, scale, usual))

    def fits(self, bags: Bags, climb: Climb, *, n_jobs: int | None) -> Fits:
        """Mixtures of sets in canonical order, in standard units."""
        standard = Bags((bags.points - self.center) / self.scale, bags.offsets)
        return fit_mixtures(standard, climb, n_jobs=n_jobs)

    def likelihoods(self, fits: Fits) -> Mixtures:
        """Mixtures whose products are integrals of the densities, in units of the points."""
        used = _used(fits)
        d = self.center.size
        constant = -0.25 * d * np.log(2.0 * np.pi) - 0.5 * np.log(self.scale).sum()
        return Mixtures(
            np.log(fits.weights[used]) + constant,
            fits.means[used],
            fits.covariances[used],
            offsets_of(fits.n_components),
        )

    def affinities(self, fits: Fits) -> Mixtures:
        """Single Gaussians whose products are integrals of the roots of the densities."""
        covariances = fits.covariances[:, 0]
        d = self.center.size
        # The root of a Gaussian of covariance C is one of covariance 2 C but for a factor; with
        # C in place of 2 C and means closer by a root of 2 the exponents come out the same.
        return Mixtures(
            0.25 * np.linalg.slogdet(unpacked(covariances, d))[1] + 0.25 * d * np.log(2.0),
            np.sqrt(0.5) * fits.means[:, 0],
            covariances,
            np.arange(len(covariances) + 1),
        )

    def mixtures(self, fits: Fits) -> list[Mixture]:
        """The mixtures one by one, in the units of the points."""
        return [
            Mixture(
                fits.weights[s, :m],
                fits.means[s, :m] * self.scale + self.center,
                unpacked(fits.covariances[s, :m], self.center.size)
                * np.outer(self.scale, self.scale),
            )
            for s, m in enumerate(fits.n_components)
        ]


def unpacked(covariances: Array, d: int) -> Array:
    """Whole matrices from their lower triangles or diagonals."""
    whole = np.zeros((*covariances.shape[:-1], d, d))
    if covariances.shape[-1] == d:
        whole[..., np.arange(d), np.arange(d)] = covariances
        return whole
    rows, columns = np.tril_indices(d)
    whole[..., rows, columns] = covariances
    whole[..., columns, rows] = covariances
    return whole


def _used(fits: Fits) -> NDArray[np.bool_]:
    return np.arange(fits.weights.shape[1]) < fits.n_components[:, np.newaxis]
