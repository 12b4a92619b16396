"""The two kernel matrices of a matching, as problems to climb, and where to start climbing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from unshuffle._mean_field import anneal, soften
from unshuffle._parallel import spans
from unshuffle._progress import Callback, Search, Solution
from unshuffle._quadratic import QuadraticProblem, assign_free, matched_sums
from unshuffle.kernels import SpectralPower, center, combined_gram, zero_diagonal

Array = NDArray[np.float64]
Permutation = NDArray[np.intp]
Maker = Callable[[], Permutation]

# Profiles longer than this are resampled; the cost of a start grows with their length.
LONGEST_PROFILE = 512
RESAMPLED_PROFILE = 192
# Eigenvectors in the starts that match several at once.
EMBEDDING_RANK = 6
# Softness of the shares that annealing starts from, in standard deviations of the profile cost.
SOFT_START = 0.3


class CountingSearch(Search[Solution]):
    """A search that counts the assignments its ascents solve, in any thread."""

    def __init__(self, callback: Callback | None) -> None:
        super().__init__(callback)
        self.n_assignments = 0

    def count(self, n_assignments: int) -> None:
        """Add to the number of assignments solved."""
        with self._lock:
            self.n_assignments += n_assignments


def varied_gram(
    collection: Any, kernel: Any, *, gamma: Any, name: str, weights: Any = None
) -> Array:
    """Kernel matrix of a collection; refuses one that tells no item from another."""
    K = combined_gram(collection, kernel, gamma=gamma, weights=weights, name=name, center=True)
    n_items = K.shape[0]
    compared = K
    if n_items > 2:
        # A view: cut into rows one longer than K's, the diagonal stands in one column.
        compared = K.ravel()[1:].reshape(n_items - 1, n_items + 1)[:, :-1]
    low, high = float(compared.min()), float(compared.max())
    if high - low <= 1e-12 * max(float(K.max()), -float(K.min())):
        raise ValueError(
            f"All items of {name} are equally similar to each other (similarity {low:.6g}), so "
            "nothing tells one from another. Check that the right columns were passed, or choose "
            "another kernel."
        )
    return K


@dataclass(frozen=True, eq=False)
class KernelPair:
    """Similarities inside two collections, the first no larger than the second."""

    K: Array  # kernel of the smaller collection, (n, n)
    L: Array  # kernel of the larger, (m, m)
    cost: Array | None  # linear term, (n, m), in units of the gradient of the centred trace
    frozen: NDArray[np.intp]  # fixed pairs, (n_frozen, 2)
    unit: float = 1.0  # what the user's objective is a multiple of
    swapped: bool = False  # whether the user's first collection is the second here

    @classmethod
    def of(cls, K: Array, L: Array, cost: Array | None, frozen: NDArray[np.intp]) -> "KernelPair":
        """Pair of kernels with entries of order one, the larger collection second."""
        if swapped := K.shape[0] > L.shape[0]:
            K, L, frozen = L, K, frozen[:, ::-1]
            cost = None if cost is None else np.ascontiguousarray(cost.T)
        scale_K, scale_L = float(np.abs(K).max()), float(np.abs(L).max())
        if cost is not None:
            # Beyond what any other pairs can make up for, the size of a cost says no more than
            # "not this pair", and would only drown the similarities in rounding.
            limit = 4.0 * K.shape[0]
            with np.errstate(over="ignore"):
                cost = np.clip(cost / scale_K / scale_L, -limit, limit)
        if not 1e-300 < scale_K * scale_L < 1e300 / L.shape[0] ** 2:
            first, second = (scale_L, scale_K) if swapped else (scale_K, scale_L)
            raise ValueError(
                f"The kernels of X and y hold similarities of up to {first:.3g} and {second:.3g}, "
                "and the objective, a sum of their products, does not fit into a float. Divide "
                "each collection by its largest value first."
            )
        return cls(K / scale_K, L / scale_L, cost, frozen, scale_K * scale_L, swapped)

    def to_user(self, permutation: Permutation) -> Permutation:
        """Partner of each item of the user's first collection."""
        if not self.swapped:
            return permutation
        inverse = np.full(self.L.shape[0], -1, dtype=np.intp)
        rows = np.flatnonzero(permutation >= 0)
        inverse[permutation[rows]] = rows
        return inverse

    @property
    def same_size(self) -> bool:
        """Whether every item of both sides gets a partner."""
        return self.K.shape[0] == self.L.shape[0]

    @cached_property
    def spectra(self) -> tuple[SpectralPower, SpectralPower]:
        """Eigendecompositions of the centred kernels; refuses distances in place of kernels."""
        spectra = SpectralPower(self.K), SpectralPower(self.L)
        if any(spectrum.eigenvalues_.size == 0 for spectrum in spectra):
            raise ValueError(
                "The kernel matrix of X or y has no positive eigenvalue once centered, as if its "
                "entries were distances: they must be larger the more alike two items are. Pass "
                "-distances or exp(-gamma * distances**2) in their place."
            )
        return spectra

    @cached_property
    def _path_spectra(self) -> tuple[SpectralPower, SpectralPower]:
        if self.same_size:
            return self.spectra
        return SpectralPower(self.K, centered=False), SpectralPower(self.L, centered=False)

    @cached_property
    def zeroed(self) -> tuple[Array, Array]:
        """Both kernels centred, then their diagonals zeroed; the other order costs a third."""
        return zero_diagonal(center(self.K)), zero_diagonal(center(self.L))

    def objective(self, permutation: Permutation) -> float:
        """Centred trace with zeroed diagonals over the matched pairs: `objective_`."""
        K, L = self.zeroed
        rows = np.flatnonzero(permutation >= 0)
        if rows.size < permutation.size:
            K, permutation = K[np.ix_(rows, rows)], permutation[rows]
        return self.unit * matched_sums(K, L, permutation)[0]

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


def starts(pair: KernelPair, n_init: int, rng: np.random.RandomState) -> list[Maker]:
    """Make `n_init` functions that give a first matching, the most reliable first.

    A function each, not a matching, so that they can be computed in parallel.
    """
    makers: list[Maker] = [
        lambda: by_profile(pair, (pair.K, pair.L), "sqeuclidean"),
        lambda: by_leading_eigenvector(pair, 1.0),
        lambda: by_leading_eigenvector(pair, -1.0),
        lambda: by_annealing(pair),
        lambda: by_profile(pair, (pair.K, pair.L), "cityblock"),
        lambda: by_profile(pair, pair.zeroed, "sqeuclidean"),  # profiles leave the diagonal out
        lambda: by_profile(pair, [_to_distances(S) for S in (pair.K, pair.L)], "sqeuclidean"),
        lambda: by_profile(pair, [spectrum(0.5) for spectrum in pair.spectra], "cityblock"),
        lambda: by_embedding(pair, None),
    ]
    cost = pair.cost
    if cost is not None:
        makers.insert(1, lambda: assign_free(pair.full_problem, -cost)[0])
    while len(makers) < n_init:
        signs = rng.choice([-1.0, 1.0], size=EMBEDDING_RANK)
        makers.append(lambda signs=signs: by_embedding(pair, signs))  # type: ignore[misc]
    return makers[:n_init]


def by_profile(pair: KernelPair, similarities: Sequence[Array], metric: str) -> Permutation:
    """Match items whose similarities to all others, sorted, look alike.

    A sorted row does not depend on the order of the collection, so it is comparable between
    two that share no features.
    """
    return assign_free(pair.full_problem, -profile_cost(pair, similarities, metric))[0]


def by_annealing(pair: KernelPair) -> Permutation:
    """Let soft shares by sorted profiles cool down into a matching."""
    problem = pair.full_problem
    cost = profile_cost(pair, (pair.K, pair.L), "cityblock")
    return anneal(problem, soften(problem, -cost, temperature=SOFT_START))


def by_leading_eigenvector(pair: KernelPair, sign: float) -> Permutation:
    """Sort both collections along their first principal component, Lemma 3 of the paper."""
    first, second = (spectrum.eigenvectors_[:, 0] for spectrum in pair.spectra)
    return by_order(pair, first, sign * second)


def by_order(pair: KernelPair, first: Array, second: Array) -> Permutation:
    """Match by rank; where the second collection is larger, at even distances."""
    order_x, order_y = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
    places = np.linspace(0, order_y.size - 1, order_x.size).round().astype(np.intp)
    permutation = np.empty(order_x.size, dtype=np.intp)
    permutation[order_x] = order_y[places]
    return pair.full_problem.keep_frozen(permutation)


def by_embedding(pair: KernelPair, signs: Array | None) -> Permutation:
    """Match several principal components at once; None lets skewness choose their signs."""
    rank = min(EMBEDDING_RANK, *(spectrum.eigenvalues_.size for spectrum in pair.spectra))
    coordinates = []
    for spectrum in pair.spectra:
        vectors = spectrum.eigenvectors_[:, :rank] * np.sqrt(spectrum.eigenvalues_[:rank])
        vectors = vectors / np.linalg.norm(vectors) * np.sqrt(vectors.shape[0])
        coordinates.append(vectors * np.where((vectors**3).sum(axis=0) < 0, -1.0, 1.0))
    first, second = coordinates
    if signs is not None:
        second = second * signs[:rank]
    return assign_free(pair.full_problem, -_distances(first, second, "sqeuclidean"))[0]


def profile_cost(pair: KernelPair, similarities: Sequence[Array], metric: str) -> Array:
    """Distance between the sorted similarities of each two items, shape (n, m)."""
    K, L = similarities
    n_first, n_second = pair.full_problem.shape
    length = min(RESAMPLED_PROFILE, n_first - 1, n_second - 1)
    if pair.same_size and n_first <= LONGEST_PROFILE:
        length = n_first - 1
    cost: Array = _distances(profiles(K, length), profiles(L, length), metric) / length
    if pair.frozen.size:
        # Similarities to the frozen items are comparable one by one, not just when sorted.
        known = [
            S[:, column] / root_mean_square(zero_diagonal(S))
            for S, column in zip((K, L), pair.frozen.T, strict=True)
        ]
        cost += _distances(known[0], known[1], metric) / pair.frozen.shape[0]
    return cost


def profiles(S: Array, length: int) -> Array:
    """Each item's similarities to the others in ascending order, at `length` quantiles."""
    n_items = S.shape[0]
    others = S[~np.eye(n_items, dtype=bool)].reshape(n_items, n_items - 1)
    ordered = np.sort(others, axis=1)
    if length != n_items - 1:
        places = np.linspace(0, n_items - 2, length)
        below = np.floor(places).astype(np.intp)
        above = np.minimum(below + 1, n_items - 2)
        share = places - below
        ordered = ordered[:, below] * (1 - share) + ordered[:, above] * share
    return ordered / (np.sqrt(np.mean(ordered**2)) or 1.0)


def _distances(first: Array, second: Array, metric: str) -> Array:
    """Distances between all rows of two tables, some rows to a call."""
    distances = np.empty((len(first), len(second)))
    for start, stop in spans(len(first), 1.0 * second.size):
        distances[start:stop] = cdist(first[start:stop], second, metric)
    return distances


def _to_distances(K: Array) -> Array:
    """Distances in the feature space of a kernel."""
    diagonal = np.diag(K)
    squared = diagonal[:, None] + diagonal[None, :] - 2.0 * K
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)))
