"""The two kernel matrices of a matching, at each spectral power, as problems to climb."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import eigh
from unshuffle._validation import check_similarities
from unshuffle.assignment import QuadraticProblem, matched_sums
from unshuffle.kernels import SpectralPower, center, zero_diagonal

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KernelPair:
    """Similarities inside two collections, the first no larger than the second.

    Attributes
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix of the smaller collection, as the user's kernel gave it.
    L : ndarray of shape (m, m)
        Kernel matrix of the larger, m >= n.
    cost : ndarray of shape (n, m) or None
        Linear term, in units of the gradient of the centred trace.
    frozen : ndarray of shape (n_frozen, 2)
        Fixed pairs.
    unit : float
        What the user's objective is a multiple of, where the kernels were scaled.
    """

    K: Array
    L: Array
    cost: Array | None
    frozen: NDArray[np.intp]
    unit: float = 1.0

    @classmethod
    def scaled(
        cls, K: Array, L: Array, cost: Array | None, frozen: NDArray[np.intp]
    ) -> "KernelPair":
        """Pair with entries of order one, so that products of huge or tiny kernels stay finite."""
        scale_K, scale_L = float(np.abs(K).max()), float(np.abs(L).max())
        if cost is not None:
            # Beyond what any other pairs can make up for, the size of a cost says no more than
            # "not this pair", and would only drown the similarities in rounding.
            limit = 4.0 * K.shape[0]
            cost = np.clip(cost / scale_K / scale_L, -limit, limit)
        return cls(K / scale_K, L / scale_L, cost, frozen, scale_K * scale_L)

    @property
    def same_size(self) -> bool:
        """Whether every item of both sides gets a partner."""
        return self.K.shape[0] == self.L.shape[0]

    @cached_property
    def spectra(self) -> tuple[SpectralPower, SpectralPower]:
        """Eigendecompositions of the centred kernels."""
        spectra = SpectralPower(self.K), SpectralPower(self.L)
        for spectrum in spectra:
            check_similarities(spectrum.eigenvalues_.size)
        return spectra

    @cached_property
    def _path_spectra(self) -> tuple[SpectralPower, SpectralPower]:
        if self.same_size:
            return self.spectra
        return SpectralPower(self.K, centered=False), SpectralPower(self.L, centered=False)

    @cached_property
    def plain_vectors(self) -> tuple[Array, Array]:
        """Last two eigenvectors of each kernel as it is, not centred; the leading one last."""
        return eigh(self.K)[1][:, -2:], eigh(self.L)[1][:, -2:]

    @property
    def centered(self) -> tuple[Array, Array]:
        """Both kernels centred, diagonals kept: the biased objective of the paper, eq. (5)."""
        return center(self.K), center(self.L)

    @cached_property
    def zeroed(self) -> tuple[Array, Array]:
        """Both kernels centred, then their diagonals zeroed; the other order costs a third."""
        return zero_diagonal(center(self.K)), zero_diagonal(center(self.L))

    def objective(self, permutation: NDArray[np.intp]) -> float:
        """Centred trace with zeroed diagonals over the matched pairs: `objective_`."""
        K, L = self.zeroed
        rows = np.flatnonzero(permutation >= 0)
        if rows.size < permutation.size:
            K, permutation = K[np.ix_(rows, rows)], permutation[rows]
        return self.unit * matched_sums(K, L, permutation)[0]

    def biased_problem(self) -> QuadraticProblem:
        """Problem of the paper, eq. (5); the squared form where the sizes differ."""
        if not self.same_size:
            return self.problem(1.0)
        return QuadraticProblem(*self.centered, self.cost, self.frozen)

    def problem(self, exponent: float = 1.0) -> QuadraticProblem:
        """Problem with zeroed diagonals and eigenvalues raised to `exponent`.

        Kernels of one size are centred. Where sizes differ they are not, since the mean of
        the items that will be matched is not known; they are brought to one scale instead,
        which the squared term needs.
        """
        full = self.zeroed if self.same_size else (zero_diagonal(self.K), zero_diagonal(self.L))
        if exponent == 1.0:
            K, L = full
        else:
            first, second = self._path_spectra
            K, L = zero_diagonal(first(exponent)), zero_diagonal(second(exponent))
        if not self.same_size or exponent != 1.0:
            K, L = _rescale(K, L, full, equal=not self.same_size)
        return QuadraticProblem(K, L, self.cost, self.frozen)


def root_mean_square(S: Array) -> float:
    """Size of an off-diagonal entry, of a matrix with zero diagonal; 1 if all are zero."""
    n_items = S.shape[0]
    return float(np.linalg.norm(S)) / np.sqrt(n_items * (n_items - 1)) or 1.0


def _rescale(
    K: Array, L: Array, reference: tuple[Array, Array], *, equal: bool
) -> tuple[Array, Array]:
    """Scale K and L so that their product is of the size of the reference's.

    So the user's linear cost weighs the same at every spectral power. With `equal`, both also
    get the same off-diagonal second moment.
    """
    target = root_mean_square(reference[0]), root_mean_square(reference[1])
    if equal:
        target = (float(np.sqrt(target[0] * target[1])),) * 2
    return K * (target[0] / root_mean_square(K)), L * (target[1] / root_mean_square(L))
