"""The two kernel matrices of a matching, at each spectral power, as problems to climb."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import eigh
from unshuffle.assignment import QuadraticProblem, matched_sums
from unshuffle.kernels import SpectralPower, center, zero_diagonal
from unshuffle.matching._checks import check_similarities

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
            with np.errstate(over="ignore"):
                cost = np.clip(cost / scale_K / scale_L, -limit, limit)
        _check_unit(scale_K, scale_L, L.shape[0])
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
            return self.full_problem
        return QuadraticProblem(*self.centered, self.cost, self.frozen)

    @property
    def _at_full_spectrum(self) -> tuple[Array, Array]:
        return self.zeroed if self.same_size else (zero_diagonal(self.K), zero_diagonal(self.L))

    @cached_property
    def _sizes(self) -> tuple[float, float]:
        """Sizes of an entry at the full spectrum, which those at other powers are brought to.

        So the user's linear cost weighs the same at every power. Where the collections differ in
        size, both get the same.
        """
        first, second = (root_mean_square(each) for each in self._at_full_spectrum)
        return (first, second) if self.same_size else (float(np.sqrt(first * second)),) * 2

    @cached_property
    def full_problem(self) -> QuadraticProblem:
        """Problem with zeroed diagonals at the full spectrum.

        Kernels of one size are centered. Where sizes differ they are not, since the mean of
        the items that will be matched is not known; they are brought to one scale instead,
        which the squared term needs.
        """
        K, L = self._at_full_spectrum
        if not self.same_size:
            K, L = self._rescaled(K, L)
        return QuadraticProblem(K, L, self.cost, self.frozen)

    def problem(self, exponent: float) -> QuadraticProblem:
        """Like `full_problem`, eigenvalues raised to `exponent`; computed anew at each call."""
        first, second = self._path_spectra
        K, L = zero_diagonal(first(exponent)), zero_diagonal(second(exponent))
        return QuadraticProblem(*self._rescaled(K, L), self.cost, self.frozen)

    def _rescaled(self, K: Array, L: Array) -> tuple[Array, Array]:
        first, second = self._sizes
        return K * (first / root_mean_square(K)), L * (second / root_mean_square(L))


def root_mean_square(S: Array) -> float:
    """Size of an off-diagonal entry, of a matrix with zero diagonal; 1 if all are zero."""
    n_items = S.shape[0]
    return float(np.linalg.norm(S)) / np.sqrt(n_items * (n_items - 1)) or 1.0


def _check_unit(first: float, second: float, n_items: int) -> None:
    """Refuse kernels whose objective, a sum of products, does not fit into a float."""
    if not 1e-300 < first * second < 1e300 / n_items**2:
        raise ValueError(
            f"The kernels of X and y hold similarities of up to {first:.3g} and {second:.3g}, and "
            "the objective, a sum of their products, does not fit into a float. Divide each "
            "collection by its largest value first."
        )
