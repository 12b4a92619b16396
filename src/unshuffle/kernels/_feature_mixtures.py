"""Mixtures in feature space, compared by the integrals of their products."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._distances import mirror_upper

Array = NDArray[np.float64]

# Numbers of a table of inner products that is held at a time: it should stay near the processor.
TABLE = 2**18


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
        from unshuffle.kernels import _feature_loops, _pair_loops  # numba is slow to load

        beside = self if other is None else other
        rows, logs, own_inner = self._eliminated()
        columns, other_inner, spreads = beside._laned()
        n, r, n_others = len(self.logs), spreads.shape[0], len(beside.logs)
        terms = np.empty((n, n_others))
        step = max(1, TABLE // ((r + 1) * len(columns)))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            inner = rows[part].reshape(-1, rows.shape[2]) @ columns.T
            _feature_loops.log_terms(
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
