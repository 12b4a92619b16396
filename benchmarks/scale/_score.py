"""How right a matching is, and how right one could be that knows more.

The oracle of rotated points assigns under the true rotation. The oracle of two networks fits the
map on the true pairs: kernel principal components of both sides, their canonical correlations, and
one assignment by likelihood. `kept` is what four further rounds, each fitted on the pairs of the
one before, leave of the truth: the best that a search without known pairs can hope for.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.neighbors import NearestNeighbors

from benchmarks.scale._problems import Array, Problem

RANKED = 4096  # rows whose rank error is measured
BLOCK = 256
N_LANDMARKS, RANK = 1024, 112
N_NEAREST = 32
PAIRS = 2**16  # distances computed at a time
LARGEST = 0.9999  # correlation; at 1, weights are infinite
N_FURTHER = 4

Partner = NDArray[np.intp]


def scores(problem: Problem, partner: Partner) -> dict[str, float | None]:
    """Share of right pairs, of pairs within one cluster, and the mean rank error."""
    clusters = None
    if problem.labels_x is not None and problem.labels_y is not None:
        clusters = float(np.mean(problem.labels_x == problem.labels_y[partner]))
    return {
        "right": float(np.mean(partner == problem.partner)),
        "clusters": clusters,
        "rank_error": rank_error(problem, partner),
    }


def rank_error(problem: Problem, partner: Partner) -> float:
    """Share of y that is closer to the partner found than the true one is; chance is 0.5."""
    y = np.asarray(problem.y if problem.common is None else problem.common, dtype=float)
    rows = np.random.default_rng(0).permutation(problem.n_items)[:RANKED]
    closer = []
    for block in np.array_split(rows, -(-len(rows) // BLOCK)):
        apart = cdist(y[partner[block]], y)
        wanted = apart[np.arange(len(block)), problem.partner[block]]
        # Equal distances may differ in their last digits; a tie is not closer.
        closer.append((apart < (1.0 - 1e-9) * wanted[:, None]).mean(axis=1))
    return float(np.concatenate(closer).mean())


def ceilings(problem: Problem) -> tuple[float, float | None]:
    """Share right of the oracle, and the share of the truth that is kept (networks only)."""
    if problem.rotation is not None:
        found = assign(problem.X @ problem.rotation, problem.y)
        return float(np.mean(found == problem.partner)), None
    U, V = components(problem.X), components(problem.y)
    pairs, right = problem.partner, []
    for _ in range(1 + N_FURTHER):
        pairs = by_likelihood(U, V, pairs)
        right.append(float(np.mean(pairs == problem.partner)))
    return right[0], right[-1]


def components(X: Array) -> Array:
    """Kernel principal components of unit variance, width at the median distance."""
    some = X[np.random.default_rng(0).permutation(len(X))[:N_LANDMARKS]].astype(float)
    median = np.median(cdist(some, some, "sqeuclidean")[np.triu_indices(len(some), 1)])
    n_landmarks = min(N_LANDMARKS, len(X))
    kernel = Nystroem(gamma=1.0 / median, n_components=n_landmarks, random_state=0)
    principal = PCA(min(RANK, n_landmarks - 1), whiten=True, random_state=0)
    return np.asarray(principal.fit_transform(kernel.fit_transform(X.astype(float))))


def by_likelihood(U: Array, V: Array, pairs: Partner) -> Partner:
    """Assignment by the likelihood of Gaussian views correlated as in the pairs given."""
    left, correlations, right = np.linalg.svd(U.T @ V[pairs] / len(U))
    correlations = correlations.clip(max=LARGEST)
    weights = correlations / (1.0 - correlations**2)
    # Completing the square turns the likelihood ratio into a squared distance.
    a = (U @ left) * np.sqrt(weights / correlations)
    b = (V @ right.T) * np.sqrt(weights * correlations)
    return assign(a, b)


def assign(a: Array, b: Array) -> Partner:
    """Assignment of least squared distance among the nearest of each item of both sides.

    Random pairs make sure that there is a full assignment. The true pairs would too, but items
    that are far from all others would then fall to their true partners.
    """
    n_nearest = min(N_NEAREST, len(b))
    forth = NearestNeighbors(n_neighbors=n_nearest).fit(b).kneighbors(a, return_distance=False)
    back = NearestNeighbors(n_neighbors=n_nearest).fit(a).kneighbors(b, return_distance=False)
    items = np.arange(len(a))
    rows = np.concatenate([np.repeat(items, n_nearest), back.ravel(), items])
    others = np.random.default_rng(0).permutation(len(b))
    columns = np.concatenate([forth.ravel(), np.repeat(items, n_nearest), others])
    rows, columns = np.divmod(np.unique(rows * len(b) + columns), len(b))
    costs = np.concatenate(
        [
            ((a[rows[i : i + PAIRS]] - b[columns[i : i + PAIRS]]) ** 2).sum(axis=1)
            for i in range(0, len(rows), PAIRS)
        ]
    )
    # Costs of zero would be taken for pairs that are not allowed.
    graph = csr_array((1e-6 + costs, (rows, columns)), shape=(len(a), len(b)))
    return np.asarray(min_weight_full_bipartite_matching(graph)[1])
