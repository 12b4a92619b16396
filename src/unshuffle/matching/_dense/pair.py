"""The kernel matrices of two collections, the problems they define, and first matchings."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from unshuffle._core.arrays import check_same_items
from unshuffle._core.grams import check_kernel_list, check_per_kernel, collection_for_each
from unshuffle._quadratic.mean_field import anneal_shares, soften
from unshuffle._quadratic.problem import (
    NOTHING_FROZEN,
    QuadraticProblem,
    assign_free,
    matched_sums,
)
from unshuffle._run.parallel import spans
from unshuffle._run.search import Callback, Search, Solution
from unshuffle._run.types import Floats, Permutation
from unshuffle.kernels import SpectralPower, center, combined_gram, unit_norm, zero_diagonal

Start = Callable[[], Permutation]  # computes a first matching

FEW_FROZEN = 10  # fewer count less than sorted profiles
# Up to this many items, kernels are kept at all spectral powers.
FEW_ITEMS = 300
LONGEST_PROFILE = 512  # longer profiles are resampled to limit the cost of a start
RESAMPLED_PROFILE = 192
EMBEDDING_RANK = 6  # eigenvectors that `match_embeddings` uses
SOFT_START = 0.3  # softness that annealing starts from, in deviations of the profile cost
# Kernels exp(-gamma d), and the factors of gamma that are summed if it is left open. Wide ones
# tell fine differences between distant items, narrow ones those between neighbors.
EXPONENTIAL = ("rbf", "laplacian", "chi2", "geodesic")
WIDTHS = (1.0, 0.3, 0.1)
ONE_WIDTH = (1.0,)  # of the paper's methods


class CountingSearch(Search[Solution]):
    """A search that counts assignments, from any thread."""

    def __init__(self, callback: Callback | None) -> None:
        super().__init__(callback)
        self.n_assignments = 0

    def count(self, n_assignments: int) -> None:
        """Add to the number of assignments solved."""
        if self._is_kept("count", n_assignments):
            return
        with self._lock:
            self.n_assignments += n_assignments


def compute_gram(collection: Any, kernel: Any, *, gamma: Any, name: str) -> Floats:
    """Kernel matrix of a collection whose similarities are not all equal; a list is summed."""
    K = combined_gram(collection, kernel, gamma=gamma, name=name, center=True)
    check_unequal(K, name)
    return K


def compute_views(
    collection: Any, kernel: Any, *, gamma: Any, name: str, widths: tuple[float, ...] = WIDTHS
) -> list[Floats]:
    """Kernel matrices of a collection, one for each kernel of a list, of unit centered norm.

    Kernels exp(-gamma d) with gamma None are means over several widths.
    """
    if not isinstance(kernel, list | tuple):
        K = _in_several_widths(collection, kernel, gamma, name, widths)
        check_unequal(K, name)
        return [K]
    kernels = check_kernel_list(kernel)
    parts = collection_for_each(collection, len(kernels), name)
    gammas = check_per_kernel(gamma, len(kernels))
    apart = len({id(part) for part in parts}) > 1
    names = [f"{name}[{k}]" if apart else name for k in range(len(kernels))]
    views: list[Floats] = []
    for part, spec, width, label in zip(parts, kernels, gammas, names, strict=True):
        K = _in_several_widths(part, spec, width, label, widths)
        views.append(unit_norm(K, name=label))
        check_same_items(len(views[0]), len(views[-1]), names[0], label)
    return views


def _in_several_widths(
    collection: Any, kernel: Any, gamma: Any, name: str, widths: tuple[float, ...]
) -> Floats:
    """Kernel matrix; a mean over widths if the kernel is exp(-gamma d) and gamma is left open."""
    K = combined_gram(collection, kernel, gamma=gamma, name=name, center=True)
    is_open = gamma is None and isinstance(kernel, str) and kernel in EXPONENTIAL
    if not is_open or len(widths) == 1:
        return K
    total = np.zeros_like(K)
    for width in widths:
        total += unit_norm(K**width, name=name)
    # Wide kernels have a large mean, which no two collections share exactly.
    total -= total.mean()
    total *= float(np.linalg.norm(center(K))) / len(widths)
    return total


def check_unequal(K: Floats, name: str) -> None:
    """Refuse a kernel matrix whose entries off the diagonal are all equal."""
    n_items = K.shape[0]
    compared = K
    if n_items > 2:
        # A view in rows of n + 1 numbers has the diagonal in one column.
        compared = K.ravel()[1:].reshape(n_items - 1, n_items + 1)[:, :-1]
    low, high = float(compared.min()), float(compared.max())
    if high - low <= 1e-12 * max(float(K.max()), -float(K.min())):
        raise ValueError(
            f"All items of {name} are equally similar to each other (similarity {low:.6g}), so "
            "they cannot be matched. Check that the right columns were passed, or choose another "
            "kernel."
        )


@dataclass(frozen=True, eq=False)
class KernelPair:
    """Similarities inside two collections, the first no larger than the second."""

    K: Floats  # kernel of the smaller collection, (n, n)
    L: Floats  # kernel of the larger, (m, m)
    cost: Floats | None  # linear term, (n, m), in units of the gradient of the centered trace
    frozen: NDArray[np.intp]  # fixed pairs, (n_frozen, 2)
    unit: float = 1.0  # factor to the user's objective
    swapped: bool = False  # whether the user's first collection is L
    linear: tuple[Floats, Floats] | None = None  # linear kernels of both, if they may teach a map
    views: "tuple[KernelPair, ...]" = ()  # kernels that K and L are sums of, if in equal numbers
    weights: Floats | None = None  # of the views, if the user passed them
    related: bool = True  # False if no item has its right partner, so that all agreement is chance

    @classmethod
    def of(
        cls,
        K: Floats,
        L: Floats,
        cost: Floats | None,
        frozen: NDArray[np.intp],
        linear: tuple[Floats, Floats] | None = None,
        views: "tuple[KernelPair, ...]" = (),
        weights: Floats | None = None,
    ) -> "KernelPair":
        """Pair of kernels with entries of order one, the larger collection second."""
        if swapped := K.shape[0] > L.shape[0]:
            K, L, frozen = L, K, frozen[:, ::-1]
            linear = None if linear is None else linear[::-1]
            cost = None if cost is None else np.ascontiguousarray(cost.T)
        scale_K, scale_L = float(np.abs(K).max()), float(np.abs(L).max())
        if cost is not None:
            # Larger costs rule a pair out just as well, but lose the similarities in rounding.
            limit = 4.0 * K.shape[0]
            with np.errstate(over="ignore"):
                cost = np.clip(cost / scale_K / scale_L, -limit, limit)
        if not 1e-300 < scale_K * scale_L < 1e300 / L.shape[0] ** 2:
            first, second = (scale_L, scale_K) if swapped else (scale_K, scale_L)
            raise ValueError(
                f"The kernels of X and y hold similarities of up to {first:.3g} and {second:.3g}, "
                "and sums of their products do not fit into a float. Divide each collection by "
                "its largest value first."
            )
        unit = scale_K * scale_L
        K, L = K / scale_K, L / scale_L
        return cls(K, L, cost, frozen, unit, swapped, linear, views, weights)

    @classmethod
    def of_views(
        cls,
        first: list[Floats],
        second: list[Floats],
        weights: tuple[Floats, Floats],
        cost: Floats | None = None,
        frozen: NDArray[np.intp] = NOTHING_FROZEN,
        linear: tuple[Floats, Floats] | None = None,
        *,
        fixed: bool = False,
    ) -> "KernelPair":
        """Pair of sums of kernels, which are kept as views if both sides have as many.

        `fixed` keeps the weights of the views as they are.
        """
        K, L = (_weighted_sum(*side) for side in zip((first, second), weights, strict=True))
        views: tuple[KernelPair, ...] = ()
        if len(first) == len(second) > 1:
            views = tuple(
                cls.of(own, other, None, NOTHING_FROZEN)
                for own, other, factor in zip(first, second, weights[0], strict=True)
                if factor > 0
            )
        kept = weights[0][weights[0] > 0] if fixed and views else None
        return cls.of(K, L, cost, frozen, linear, views, kept)

    def part(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp], *, related: bool = True
    ) -> "KernelPair":
        """Some items of both collections, with the frozen pairs among them.

        `rows` and `columns` are sorted, and no fewer columns than rows.
        """
        kept = np.isin(self.frozen[:, 0], rows) & np.isin(self.frozen[:, 1], columns)
        frozen = [
            np.searchsorted(items, side)
            for items, side in zip((rows, columns), self.frozen[kept].T, strict=True)
        ]
        cost = None if self.cost is None else self.cost[np.ix_(rows, columns)]
        K, L = self.K[np.ix_(rows, rows)], self.L[np.ix_(columns, columns)]
        linear = None
        if self.linear is not None:
            first, second = self.linear
            linear = first[np.ix_(rows, rows)], second[np.ix_(columns, columns)]
        return KernelPair(
            K,
            L,
            cost,
            np.column_stack(frozen),
            self.unit,
            self.swapped,
            linear,
            tuple(view.part(rows, columns) for view in self.views),
            self.weights,
            related,
        )

    def with_linear_term(self, cost: Floats | None, frozen: NDArray[np.intp]) -> "KernelPair":
        """The same kernels with another cost and other frozen pairs; keeps what was computed."""
        other = copy(self)
        other.__dict__.pop("full_problem", None)
        object.__setattr__(other, "cost", cost)
        object.__setattr__(other, "frozen", frozen)
        return other

    def to_user(self, permutation: Permutation) -> Permutation:
        """The matching as partners of the user's first collection."""
        if not self.swapped:
            return permutation
        inverse = np.full(self.L.shape[0], -1, dtype=np.intp)
        rows = np.flatnonzero(permutation >= 0)
        inverse[permutation[rows]] = rows
        return inverse

    @property
    def order(self) -> int:
        """Step through (first, second) that gives the user's order of collections."""
        return -1 if self.swapped else 1

    @property
    def same_size(self) -> bool:
        """Whether both collections have the same size."""
        return self.K.shape[0] == self.L.shape[0]

    @cached_property
    def spectra(self) -> tuple[SpectralPower, SpectralPower]:
        """Eigendecompositions of the centered kernels."""
        spectra = SpectralPower(self.K), SpectralPower(self.L)
        if any(spectrum.eigenvalues_.size == 0 for spectrum in spectra):
            raise ValueError(
                "The centered kernel matrix of X or y has no positive eigenvalue; its entries may "
                "be distances instead of similarities. Pass -distances or "
                "exp(-gamma * distances**2)."
            )
        return spectra

    @cached_property
    def zeroed(self) -> tuple[Floats, Floats]:
        """Both kernels centered, then with zeroed diagonals, in that order."""
        return zero_diagonal(center(self.K)), zero_diagonal(center(self.L))

    def objective(self, permutation: Permutation) -> float:
        """Centered trace with zeroed diagonals over the matched pairs, `objective_`."""
        K, L = self.zeroed
        rows = np.flatnonzero(permutation >= 0)
        if rows.size < permutation.size:
            K, permutation = K[np.ix_(rows, rows)], permutation[rows]
        return self.unit * matched_sums(K, L, permutation)[0]

    @property
    def _at_full_spectrum(self) -> tuple[Floats, Floats]:
        return self.zeroed if self.same_size else (zero_diagonal(self.K), zero_diagonal(self.L))

    @cached_property
    def _scales(self) -> tuple[float, float]:
        """Scales of the entries, the same at every spectral power for the sake of the cost."""
        first, second = (root_mean_square(each) for each in self._at_full_spectrum)
        return (first, second) if self.same_size else (float(np.sqrt(first * second)),) * 2

    @cached_property
    def full_problem(self) -> QuadraticProblem:
        """Problem with zeroed diagonals at the full spectrum.

        Kernels of different sizes are not centered, since the mean of the matched items is
        unknown; they get a common scale instead, which the squared term needs.
        """
        K, L = self._at_full_spectrum
        if not self.same_size:
            K, L = self._rescaled(K, L)
        return QuadraticProblem(K, L, self.cost, self.frozen)

    def problem(self, exponent: float) -> QuadraticProblem:
        """Problem of the centered kernels, with eigenvalues raised to `exponent`."""
        powers = self._powers.get(exponent)
        if powers is None:
            K, L = (spectrum(exponent) for spectrum in self.spectra)
            for S in (K, L):
                np.fill_diagonal(S, 0.0)
            powers = self._rescaled(K, L)
            if len(L) <= FEW_ITEMS:  # larger ones would take too much memory
                self._powers[exponent] = powers
        return QuadraticProblem(*powers, self.cost, self.frozen)

    @cached_property
    def _powers(self) -> dict[float, tuple[Floats, Floats]]:
        """Kernels at the spectral powers used so far, if there are few items."""
        return {}

    def _rescaled(self, K: Floats, L: Floats) -> tuple[Floats, Floats]:
        first, second = self._scales
        return K * (first / root_mean_square(K)), L * (second / root_mean_square(L))


def _weighted_sum(grams: list[Floats], weights: Floats) -> Floats:
    """Sum of kernel matrices; a single one is returned as it is."""
    if len(grams) == 1:
        return grams[0]
    total = np.zeros_like(grams[0])
    for K, weight in zip(grams, weights, strict=True):
        total += weight * K
    return total


def root_mean_square(S: Floats) -> float:
    """Root mean square of the off-diagonal entries; the diagonal is zero. 1 if all are zero."""
    n_items = S.shape[0]
    return float(np.linalg.norm(S)) / np.sqrt(n_items * (n_items - 1)) or 1.0


def list_starts(pair: KernelPair, n_init: int, rng: np.random.RandomState) -> list[Start]:
    """List `n_init` functions that compute a first matching, the most reliable first."""
    starts: list[Start] = [
        lambda: match_profiles(pair, (pair.K, pair.L), "sqeuclidean"),
        lambda: match_leading_eigenvectors(pair, 1.0),
        lambda: match_leading_eigenvectors(pair, -1.0),
        lambda: match_by_annealing(pair),
        lambda: match_profiles(pair, (pair.K, pair.L), "cityblock"),
        lambda: match_profiles(
            pair, pair.zeroed, "sqeuclidean"
        ),  # profiles leave the diagonal out
        lambda: match_profiles(pair, [_to_distances(S) for S in (pair.K, pair.L)], "sqeuclidean"),
        lambda: match_profiles(pair, [spectrum(0.5) for spectrum in pair.spectra], "cityblock"),
        lambda: match_embeddings(pair, None),
    ]
    cost = pair.cost
    if cost is not None:
        starts.insert(0, lambda: assign_free(pair.full_problem, -cost)[0])
    while len(starts) < n_init:
        signs = rng.choice([-1.0, 1.0], size=EMBEDDING_RANK)
        starts.append(lambda signs=signs: match_embeddings(pair, signs))  # type: ignore[misc]
    return starts[:n_init]


def match_profiles(pair: KernelPair, similarities: Sequence[Floats], metric: str) -> Permutation:
    """Match items by their sorted similarities to all others, which do not depend on order."""
    return assign_free(pair.full_problem, -profile_cost(pair, similarities, metric))[0]


def match_by_annealing(pair: KernelPair) -> Permutation:
    """Anneal soft shares, which start from sorted profiles."""
    problem = pair.full_problem
    cost = profile_cost(pair, (pair.K, pair.L), "cityblock")
    return anneal_shares(problem, soften(problem, -cost, temperature=SOFT_START))


def match_leading_eigenvectors(pair: KernelPair, sign: float) -> Permutation:
    """Match by rank along the first principal components, Lemma 3 of the paper."""
    first, second = (spectrum.eigenvectors_[:, 0] for spectrum in pair.spectra)
    return match_ranks(pair, first, sign * second)


def match_ranks(pair: KernelPair, first: Floats, second: Floats) -> Permutation:
    """Match by rank; a larger second collection is sampled at regular intervals."""
    order_x, order_y = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
    places = np.linspace(0, order_y.size - 1, order_x.size).round().astype(np.intp)
    permutation = np.empty(order_x.size, dtype=np.intp)
    permutation[order_x] = order_y[places]
    return pair.full_problem.keep_frozen(permutation)


def match_embeddings(pair: KernelPair, signs: Floats | None) -> Permutation:
    """Match by several principal components; without `signs`, skewness decides the signs."""
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


def profile_cost(pair: KernelPair, similarities: Sequence[Floats], metric: str) -> Floats:
    """Distances between the sorted similarities of the items, shape (n, m)."""
    K, L = similarities
    n_first, n_second = pair.full_problem.shape
    length = min(RESAMPLED_PROFILE, n_first - 1, n_second - 1)
    if pair.same_size and n_first <= LONGEST_PROFILE:
        length = n_first - 1
    cost: Floats = _distances(profiles(K, length), profiles(L, length), metric) / length
    if pair.frozen.size:
        # Similarities to the frozen items are comparable one by one; a few may mislead.
        known = [
            S[:, column] / root_mean_square(zero_diagonal(S))
            for S, column in zip((K, L), pair.frozen.T, strict=True)
        ]
        cost += _distances(known[0], known[1], metric) / max(len(pair.frozen), FEW_FROZEN)
    return cost


def profiles(S: Floats, length: int) -> Floats:
    """Sorted similarities of each item to the others, at `length` quantiles."""
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


def _distances(first: Floats, second: Floats, metric: str) -> Floats:
    """Distances between the rows of two tables, computed in blocks."""
    distances = np.empty((len(first), len(second)))
    for start, stop in spans(len(first), 1.0 * second.size):
        distances[start:stop] = cdist(first[start:stop], second, metric)
    return distances


def _to_distances(K: Floats) -> Floats:
    """Distances in the feature space of a kernel."""
    diagonal = np.diag(K)
    squared = diagonal[:, None] + diagonal[None, :] - 2.0 * K
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)))
