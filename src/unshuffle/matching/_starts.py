"""Where the search starts: sorted similarity profiles, leading eigenvectors, the user's cost."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from unshuffle._parallel import spans
from unshuffle.assignment import QuadraticProblem, anneal, assign_free, soften
from unshuffle.kernels import zero_diagonal
from unshuffle.matching._kernel_pair import Array, KernelPair, root_mean_square

Permutation = NDArray[np.intp]

# Profiles longer than this are resampled; the cost of a start grows with their length.
LONGEST_PROFILE = 512
RESAMPLED_PROFILE = 192
# Eigenvectors in the starts that match several at once.
EMBEDDING_RANK = 6
# Softness of the shares that annealing starts from, in standard deviations of the profile cost.
SOFT_START = 0.3


def spectral_starts(pair: KernelPair) -> list[Callable[[], Permutation]]:
    """Return the starts of the paper's methods: leading eigenvectors, with both signs of each.

    The paper's text centres the kernels and takes the first eigenvector; which one is luckiest
    differs between collections, so the objective chooses among three.
    """
    return [
        lambda: by_leading_eigenvector(pair, 1.0),
        lambda: by_leading_eigenvector(pair, -1.0),
        lambda: by_plain_eigenvector(pair, 2, 1.0),
        lambda: by_plain_eigenvector(pair, 2, -1.0),
        lambda: by_plain_eigenvector(pair, 1, 1.0),
        lambda: by_plain_eigenvector(pair, 1, -1.0),
    ]


def starts(
    pair: KernelPair, n_init: int, rng: np.random.RandomState
) -> Iterator[Callable[[], Permutation]]:
    """Yield `n_init` functions that make a first matching, the most reliable first.

    A function each, not a matching, so that they can be computed in parallel.
    """
    makers: list[Callable[[], Permutation]] = [
        lambda: by_profile(pair, _kernel, "sqeuclidean"),
        lambda: by_leading_eigenvector(pair, 1.0),
        lambda: by_leading_eigenvector(pair, -1.0),
        lambda: by_annealing(pair),
        lambda: by_profile(pair, _kernel, "cityblock"),
        lambda: by_profile(pair, _centered, "sqeuclidean"),
        lambda: by_profile(pair, _distance, "sqeuclidean"),
        lambda: by_profile(pair, _square_root, "cityblock"),
        lambda: by_embedding(pair, None),
    ]
    if pair.cost is not None:
        makers.insert(1, lambda: by_cost(pair))
    while len(makers) < n_init:
        signs = rng.choice([-1.0, 1.0], size=EMBEDDING_RANK)
        makers.append(lambda signs=signs: by_embedding(pair, signs))  # type: ignore[misc]
    yield from makers[:n_init]


def by_profile(
    pair: KernelPair, similarity: Callable[[KernelPair], tuple[Array, Array]], metric: str
) -> Permutation:
    """Match items whose similarities to all others, sorted, look alike.

    A sorted row does not depend on the order of the collection, so it is comparable between
    two that share no features.
    """
    return _assign(pair, -profile_cost(pair, similarity, metric))


def by_annealing(pair: KernelPair) -> Permutation:
    """Let soft shares by sorted profiles cool down into a matching."""
    problem = pair.full_problem
    cost = profile_cost(pair, _kernel, "cityblock")
    return anneal(problem, soften(problem, -cost, temperature=SOFT_START))


def by_leading_eigenvector(pair: KernelPair, sign: float) -> Permutation:
    """Sort both collections along their first principal component, Lemma 3 of the paper."""
    first, second = (spectrum.eigenvectors_[:, 0] for spectrum in pair.spectra)
    return _by_order(pair, first, sign * second)


def by_plain_eigenvector(pair: KernelPair, number: int, sign: float) -> Permutation:
    """Sort both collections along an eigenvector of the kernels as they are, not centred.

    The first of these follows the mean, the second is near the first principal component.
    """
    first, second = (vectors[:, -number] for vectors in pair.plain_vectors)
    return _by_order(pair, first, sign * second)


def _by_order(pair: KernelPair, first: Array, second: Array) -> Permutation:
    """Match by rank; where the second collection is larger, at even distances."""
    order_x, order_y = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
    places = np.linspace(0, order_y.size - 1, order_x.size).round().astype(np.intp)
    permutation = np.empty(order_x.size, dtype=np.intp)
    permutation[order_x] = order_y[places]
    return QuadraticProblem(pair.K, pair.L, None, pair.frozen).keep_frozen(permutation)


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
    return _assign(pair, -_distances(first, second, "sqeuclidean"))


def by_cost(pair: KernelPair) -> Permutation:
    """Match by the user's linear cost alone."""
    if pair.cost is None:
        raise ValueError("There is no linear cost to start from.")
    return _assign(pair, -pair.cost)


def profile_cost(
    pair: KernelPair, similarity: Callable[[KernelPair], tuple[Array, Array]], metric: str
) -> Array:
    """Distance between the sorted similarities of each two items, shape (n, m)."""
    K, L = similarity(pair)
    length = profile_length(K.shape[0], L.shape[0])
    cost: Array = _distances(profiles(K, length), profiles(L, length), metric) / length
    if pair.frozen.size:
        # Similarities to the frozen items are comparable one by one, not just when sorted.
        known = [
            S[:, column] / root_mean_square(zero_diagonal(S))
            for S, column in zip((K, L), pair.frozen.T, strict=True)
        ]
        cost += _distances(known[0], known[1], metric) / pair.frozen.shape[0]
    return cost


def _distances(first: Array, second: Array, metric: str) -> Array:
    """Distances between all rows of two tables, some rows to a call."""
    distances = np.empty((len(first), len(second)))
    for start, stop in spans(len(first), 1.0 * second.size):
        distances[start:stop] = cdist(first[start:stop], second, metric)
    return distances


def profile_length(n_first: int, n_second: int) -> int:
    """Number of sorted similarities to compare for each item."""
    if n_first == n_second and n_first <= LONGEST_PROFILE:
        return n_first - 1
    return min(RESAMPLED_PROFILE, n_first - 1, n_second - 1)


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


def _assign(pair: KernelPair, benefit: Array) -> Permutation:
    problem = QuadraticProblem(pair.K, pair.L, None, pair.frozen)
    return assign_free(problem, np.ascontiguousarray(benefit))[0]


def _kernel(pair: KernelPair) -> tuple[Array, Array]:
    return pair.K, pair.L


def _centered(pair: KernelPair) -> tuple[Array, Array]:
    return pair.zeroed  # profiles leave the diagonal out


def _square_root(pair: KernelPair) -> tuple[Array, Array]:
    first, second = pair.spectra
    return first(0.5), second(0.5)


def _distance(pair: KernelPair) -> tuple[Array, Array]:
    return _kernel_distance(pair.K), _kernel_distance(pair.L)


def _kernel_distance(K: Array) -> Array:
    diagonal = np.diag(K)
    squared = diagonal[:, None] + diagonal[None, :] - 2.0 * K
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)))
