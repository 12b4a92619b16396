"""Summaries of a collection by a few representative items (k-medoids)."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._core.arrays import (
    check_magnitude,
    check_nonnegative,
    check_resolved,
    check_vectors,
    middle,
)
from unshuffle._core.distances import DISTANCES, as_float64, exponential, sampled_gamma
from unshuffle._core.grams import Kernel, count_items, gram_copies
from unshuffle._core.parameters import check_count, check_memory, check_seed
from unshuffle._run.printing import short_repr
from unshuffle._run.types import Indices
from unshuffle.kernels import combined_gram, text_features
from unshuffle.layout._problem import DENSE_UP_TO, needs_gram

Distances = NDArray[np.float32] | NDArray[np.float64]

# Items that may be chosen, at most, and fewer for kernels that are slow to compute.
_MAX_CANDIDATES = 2000
_SLOW_CANDIDATES = 500
_BLOCK = 256
# Squared distances below this share of the squared norms are rounding: the items are equal.
_ROUNDING = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
_MATTERS = 1e-4  # largest rounding to accept, as a share of a typical squared distance
# Squares of distances above this, or below its inverse, need double precision.
_LARGEST_SINGLE = 1e15
# An exchange must lower the sum of distances by more than this share of it.
_LEAST_GAIN = 1e-6


@dataclass(frozen=True)
class Summary:
    """Representatives of a collection, the largest group first.

    Attributes
    ----------
    indices : ndarray of shape (k,)
        The representatives.
    counts : ndarray of shape (k,)
        Number of items in the group of each, itself included, in descending order.
    labels : ndarray of shape (n_items,)
        ``indices[labels[i]]`` is the representative of item i.
    mean_distance : float
        Mean distance of an item to its representative in the feature space of the kernel. It is
        what `summarize` minimizes.

    Examples
    --------
    >>> from unshuffle.layout import summarize
    >>> summary = summarize([[0.0], [0.1], [5.0]], 2, random_state=0)
    >>> sorted(summary.counts.tolist())
    [1, 2]
    """

    indices: NDArray[np.intp]
    counts: NDArray[np.intp]
    labels: NDArray[np.intp]
    mean_distance: float

    def __repr__(self) -> str:
        return short_repr(self)


def summarize(
    X: Any,
    k: int,
    *,
    kernel: Kernel | Sequence[Kernel] = "linear",
    gamma: float | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Summary:
    """Choose representatives of a collection, and the representative of each item.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_items, n_features), list of str, or Gram matrix
        The collection, as `unshuffle.kernels.combined_gram` takes it.
    k : int
        Number of representatives. With more, items are closer to theirs.
    kernel : str, callable or list of these, default="linear"
        Similarity of items; "linear" is Euclidean distance.
    gamma : float or None, default=None
        Inverse width of the kernel; larger values are narrower. None takes it from the median
        distance.
    random_state : int, RandomState or None, default=None
        Seed of the sample of candidates. It has no effect up to 2,000 items.

    Returns
    -------
    summary : Summary
        The representatives, their counts, and the representative of each item. At most one of
        several equal items is chosen, unless `k` exceeds the number of distinct items.

    Notes
    -----
    This is k-medoids, or facility location: a greedy choice, then exchanges until none lowers
    the mean distance. The result is a local optimum. With more than 2,000 items (or ``4 * k``),
    the candidates are first a sample and then the items nearest to the means of the groups.
    Memory is ``4 * n_items * min(n_items, max(2000, 4 * k))`` bytes, checked first;
    "geodesic", "precomputed", callables and lists of kernels also need the kernel matrix.
    20,000 items of 32 features take seconds.

    References
    ----------
    Schubert, Rousseeuw, "Fast and eager k-medoids clustering", Information Systems 101 (2021).

    Examples
    --------
    >>> summary = summarize([[0.0], [1.0], [2.0], [9.0], [10.0]], 2)
    >>> summary.indices, summary.counts, summary.labels
    (array([1, 3]), array([3, 2]), array([0, 0, 0, 1, 1]))
    """
    if not (isinstance(kernel, str | list | tuple) or callable(kernel)):
        raise ValueError(
            f"`kernel` must be a name, a callable or a list of these, got {kernel!r}."
        )
    if needs_gram(kernel, DENSE_UP_TO + 1):  # other kernels hold only the distances
        n_items = count_items(X, kernel)
        check_memory(
            int(8 * (gram_copies(kernel) + 0.5) * n_items**2 + 4 * 8 * _BLOCK * n_items),
            what=f"Choosing among {n_items:,} items by the similarities of all pairs",
            instead='Summarize a sample of the items, or use kernel="linear" or "rbf".',
        )
    items = _compared(X, kernel, gamma)
    n_items = items.squares.size
    k = check_count(k, "k")
    if k > n_items:
        raise ValueError(
            f"`k` is {k}, but there are only {n_items} item(s) to choose from. Choose at most "
            f"{n_items}."
        )
    limit = _SLOW_CANDIDATES if kernel in ("chi2", "laplacian") else _MAX_CANDIDATES
    candidates = _draw(items.vectors, n_items, k, limit, check_seed(random_state))
    indices, nearest, labels = _choose(items, candidates, k)
    if candidates.size < n_items and isinstance(items.vectors, np.ndarray):
        # Now that the groups are known, the candidates are the items near their means.
        candidates = np.union1d(indices, _central(items.vectors, labels, candidates.size))
        indices, nearest, labels = _choose(items, candidates, k, start=indices)
    # A representative represents itself, even if an equal item was chosen too.
    labels[indices] = np.arange(k)
    counts = np.bincount(labels, minlength=k)
    order = np.lexsort((indices, -counts))
    place = np.empty(k, dtype=np.intp)
    place[order] = np.arange(k)
    mean_distance = float(nearest.mean(dtype=np.float64))
    return Summary(indices[order], counts[order], place[labels], mean_distance)


def choose_representatives(
    X: Any,
    k: int,
    *,
    kernel: Kernel | Sequence[Kernel] = "linear",
    gamma: float | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.intp]:
    """Choose representatives of a collection, the largest group first.

    Parameters
    ----------
    X, k, kernel, gamma, random_state
        As in `summarize`, which also returns the groups.

    Returns
    -------
    indices : ndarray of shape (k,)
        The chosen items of X.

    Examples
    --------
    >>> choose_representatives([[0.0], [1.0], [2.0], [9.0], [10.0]], 2)
    array([1, 3])
    """
    return summarize(X, k, kernel=kernel, gamma=gamma, random_state=random_state).indices


class _ComparedRows(NamedTuple):
    """Items as their kernel compares them."""

    block: Callable[[Indices], NDArray[np.float64]]  # rows of the kernel matrix
    squares: NDArray[np.float64]  # its diagonal
    vectors: Any = None  # of the items, if there are any
    exact: Any = None  # the same if their distances are those in feature space


def _compared(X: Any, kernel: Kernel | Sequence[Kernel], gamma: float | None) -> _ComparedRows:
    """Check the items and prepare their comparison."""
    if kernel == "text":
        return _inner(text_features(X))
    if isinstance(kernel, str) and kernel in ("linear", *DISTANCES):
        X = check_vectors(X, "X", kernel=kernel)
        check_magnitude(X, "X")
        if kernel == "linear":
            check_resolved(X, "X")
            if sparse.issparse(X):
                return _inner(X)._replace(vectors=X)
            # Centering keeps the distances and more of their digits.
            centered = X - middle(X)
            if float(np.abs(centered).max()) > _LARGEST_SINGLE:
                centered = as_float64(centered)
            return _inner(centered)._replace(vectors=X, exact=X)
        if kernel == "chi2":
            check_nonnegative(X, "X", kernel=kernel)
        X = as_float64(X)
        width = sampled_gamma(X, kernel, name="X") if gamma is None else gamma
        ones = np.ones(X.shape[0])
        return _ComparedRows(lambda rows: exponential(kernel, X[rows], X, width), ones, X)
    K = combined_gram(X, kernel, gamma=gamma, center=True)
    return _ComparedRows(lambda rows: K[rows], K.diagonal().copy())


def _inner(X: Any) -> _ComparedRows:
    """Inner products of some rows with all, and of each with itself."""
    if sparse.issparse(X):
        norms = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
        return _ComparedRows(lambda rows: (X[rows] @ X.T).toarray(), norms)
    return _ComparedRows(lambda rows: X[rows] @ X.T, np.einsum("ij,ij->i", X, X))


def _choose(
    items: _ComparedRows, candidates: Indices, k: int, start: Indices | None = None
) -> tuple[Indices, Distances, Indices]:
    """The best k candidates, the distance of each item to the nearest, and its number."""
    D = _distances(items, candidates)
    known = None if start is None else np.searchsorted(candidates, start)
    chosen = find_medoids(D, k, start=known)
    nearest = D[chosen]
    return candidates[chosen], nearest.min(axis=0), nearest.argmin(axis=0)


def _draw(vectors: Any, n_items: int, k: int, limit: int, rng: np.random.RandomState) -> Indices:
    """Candidates: all items, or a sample of distinct ones."""
    if n_items <= max(_MAX_CANDIDATES, 4 * k):
        return np.arange(n_items)
    order = rng.permutation(n_items)
    if isinstance(vectors, np.ndarray):
        # Repeated rows come last, so that they do not displace others.
        hashes = np.array([hash(row.tobytes()) for row in vectors])
        _, first = np.unique(hashes, return_index=True)
        repeated = np.ones(n_items, dtype=bool)
        repeated[first] = False
        order = order[np.argsort(repeated[order], kind="stable")]
    return np.sort(order[: max(limit, 4 * k)])


def _central(vectors: NDArray[np.float64], labels: Indices, n_wanted: int) -> Indices:
    """Items nearest to the means of their groups, about equally many of each group."""
    rank = np.empty(len(vectors), dtype=np.intp)
    for group in np.unique(labels):
        members = np.flatnonzero(labels == group)
        apart = vectors[members] - vectors[members].mean(axis=0)
        away = np.einsum("ij,ij->i", apart, apart)
        rank[members[np.argsort(away, kind="stable")]] = np.arange(members.size)
    return np.argsort(rank, kind="stable")[:n_wanted]


def _distances(items: _ComparedRows, candidates: Indices) -> Distances:
    """Distance of each candidate (rows) to each item in the feature space of the kernel."""
    squares, n_items = items.squares, items.squares.size
    typical = float(middle(squares[:, None])[0]) or 1.0
    single = float(squares.max()) < _LARGEST_SINGLE**2 and typical > _LARGEST_SINGLE**-2
    dtype: Any = np.float32 if single else np.float64
    check_memory(
        np.dtype(dtype).itemsize * candidates.size * n_items + 4 * 8 * _BLOCK * n_items,
        what=f"The distances of {candidates.size:,} candidates to {n_items:,} items",
        instead="Summarize a sample of the items, or choose a smaller `k`.",
    )
    D = np.empty((candidates.size, n_items), dtype=dtype)
    for start in range(0, candidates.size, _BLOCK):
        rows = candidates[start : start + _BLOCK]
        products = items.block(rows)
        scale = squares[rows, np.newaxis] + squares
        squared = scale - 2.0 * products
        rounding = _ROUNDING[products.dtype] * scale
        lost = squared <= rounding
        squared[lost] = 0.0
        if items.exact is not None:
            # Far from the middle, rounding may be larger than other distances.
            pairs = np.nonzero(lost & (rounding > _MATTERS * typical))
            _measure(squared, items.exact, rows, *pairs)
        D[start : start + _BLOCK] = np.sqrt(squared)
    return D


def _measure(
    squared: NDArray[Any], X: NDArray[Any], rows: Indices, first: Indices, second: Indices
) -> None:
    """Compute the squared distances of some pairs from the differences of their vectors."""
    step = max(1, 2**22 // X.shape[1])
    for start in range(0, first.size, step):
        i, j = first[start : start + step], second[start : start + step]
        apart = as_float64(X[rows[i]]) - as_float64(X[j])
        squared[i, j] = np.einsum("ij,ij->i", apart, apart)


def find_medoids(D: Distances, k: int, *, start: Indices | None = None) -> Indices:
    """Choose k rows with a small sum of the distances of all columns to the nearest of them.

    No single exchange lowers the sum noticeably. `start` is a choice to improve; None starts
    from a greedy one.
    """
    if k == 1:
        return _choose_greedily(D, k)  # which tries all rows
    return _exchange(D, _choose_greedily(D, k) if start is None else start)


def _choose_greedily(D: Distances, k: int) -> Indices:
    """Choose k rows, each time the one that lowers the sum most."""
    sums = D.sum(axis=1, dtype=np.float64)
    chosen = [int(sums.argmin())]
    nearest = D[chosen[0]].copy()
    # Gains only shrink as rows are chosen. An earlier gain is a bound, so that most rows need
    # not be computed again.
    queue = [(-_gain(nearest, row), c) for c, row in enumerate(D) if c != chosen[0]]
    heapq.heapify(queue)
    while len(chosen) < k:
        _, best = heapq.heappop(queue)
        gain = _gain(nearest, D[best])
        if queue and -gain > queue[0][0]:
            heapq.heappush(queue, (-gain, best))
            continue
        chosen.append(best)
        np.minimum(nearest, D[best], out=nearest)
    return np.array(chosen, dtype=np.intp)


def _gain(nearest: Distances, row: Distances) -> float:
    return float(np.maximum(nearest - row, 0.0).sum(dtype=np.float64))


def _exchange(D: Distances, chosen: Indices) -> Indices:
    """Exchange a chosen row for another as soon as that lowers the sum, until none does."""
    state = _Nearest(D, chosen)
    taken = np.zeros(len(D), dtype=bool)
    taken[chosen] = True
    candidate, n_since = 0, 0
    while n_since < len(D):
        n_since += 1
        if not taken[candidate]:
            change, slot = state.best_exchange(D[candidate])
            before, old = state.total(), int(state.chosen[slot])
            if change < -_LEAST_GAIN * before:
                state.exchange(slot, candidate)
                if state.total() < before:
                    taken[old], taken[candidate] = False, True
                    n_since = 0
                else:  # the gain was rounding
                    state.exchange(slot, old)
        candidate = (candidate + 1) % len(D)
    return state.chosen


class _Nearest:
    """The two chosen rows nearest to each column, updated with each exchange."""

    def __init__(self, D: Distances, chosen: Indices) -> None:
        self.D = D
        self.chosen = chosen.copy()
        n_items = D.shape[1]
        self.slots = np.zeros((2, n_items), dtype=np.intp)
        self.distances = np.zeros((2, n_items), dtype=np.float64)
        self._find(np.arange(n_items))

    def total(self) -> float:
        """Sum of the distances to the nearest."""
        return float(self.distances[0].sum())

    def best_exchange(self, row: Distances) -> tuple[float, int]:
        """Change of the sum if `row` replaces the best choice, and the place of that one."""
        first, second = self.distances
        # Other columns keep their nearest, or move to their second.
        near = np.flatnonzero(row < second)
        to_row, to_first, to_second = row[near], first[near], second[near]
        gained = np.minimum(to_row - to_first, 0.0)
        # Columns whose nearest is replaced move to `row`, not to their second.
        kept = np.where(to_row < to_first, to_first, to_row) - to_second
        changes = self.losses + np.bincount(
            self.slots[0, near], weights=kept, minlength=len(self.chosen)
        )
        slot = int(changes.argmin())
        return float(changes[slot] + gained.sum()), slot

    def exchange(self, slot: int, candidate: int) -> None:
        """Put another row of D into `slot`."""
        self.chosen[slot] = candidate
        row = self.D[candidate]
        stale = (self.slots == slot).any(axis=0)
        nearest = ~stale & (row < self.distances[0])
        middle = ~stale & ~nearest & (row < self.distances[1])
        for two in (self.slots, self.distances):
            two[1, nearest] = two[0, nearest]
        for rank, where in ((0, nearest), (1, middle)):
            self.slots[rank, where], self.distances[rank, where] = slot, row[where]
        self._find(np.flatnonzero(stale))

    def _find(self, columns: Indices) -> None:
        """Find the two nearest of some columns again."""
        found = self.D[np.ix_(self.chosen, columns)]
        two = np.argpartition(found, 1, axis=0)[:2]
        self.slots[:, columns] = two
        self.distances[:, columns] = np.take_along_axis(found, two, axis=0)
        gap = self.distances[1] - self.distances[0]
        # Loss when a row is removed: its columns move to their second.
        self.losses = np.bincount(self.slots[0], weights=gap, minlength=len(self.chosen))
