"""Graphs of nearest neighbors: their construction, paths in them, and widths from them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from sklearn.neighbors import NearestNeighbors

from unshuffle._core.distances import row_distances, squared_distances
from unshuffle._run.parallel import spans, wait_for
from unshuffle._run.types import Floats

Integers = NDArray[np.intp]
Nearest = tuple[Floats, Integers]  # distances and indices, (n, k) each, nearest first

# Items by which parts of a graph that are not connected find each other.
N_REPRESENTATIVES = 2000


def find_neighbors(X: Any, n_neighbors: int) -> Nearest:
    """Distances and indices of the nearest other items of each row, in blocks of memory."""
    tree = NearestNeighbors(n_neighbors=n_neighbors).fit(X)
    distances, indices = wait_for(tree.kneighbors)
    return distances.astype(np.float64, copy=False), indices.astype(np.intp, copy=False)


def symmetric_graph(
    edges: tuple[Integers, Integers],
    lengths: Callable[[Integers, Integers], Floats],
    n_items: int,
) -> sparse.csr_matrix:
    """Graph of edges whose lengths are a function of their ends, each in both directions."""
    # By their numbers, since sparse arithmetic would drop edges of length 0.
    both = np.concatenate([edges[0] * n_items + edges[1], edges[1] * n_items + edges[0]])
    rows, columns = np.divmod(np.unique(both), n_items)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_items))])
    return sparse.csr_matrix((lengths(rows, columns), columns, indptr), shape=(n_items, n_items))


def paths_from(X: Any, origins: Integers, n_neighbors: int) -> NDArray[np.float32]:
    """Lengths (n_origins, n) of the shortest paths from some items to all, along neighbors.

    Parts of the graph that are not connected are joined by the shortest edges between a sample
    of their items.
    """
    n_items = X.shape[0]

    def lengths(rows: Integers, columns: Integers) -> Floats:
        return row_distances(X, rows, columns)

    nearest = find_neighbors(X, n_neighbors)[1]
    sources = np.repeat(np.arange(n_items), n_neighbors)
    graph = symmetric_graph((sources, nearest.ravel()), lengths, n_items)
    n_parts, part = connected_components(graph, directed=False)
    if n_parts > 1:
        known, added = graph.tocoo(), _shortest_bridges(part, X)
        edges = np.append(known.row, added[0]), np.append(known.col, added[1])
        graph = symmetric_graph(edges, lengths, n_items)
    paths = np.empty((len(origins), n_items), dtype=np.float32)
    # a step to a neighbor takes about a fiftieth of a microsecond
    for start, stop in spans(len(origins), 20.0 * graph.nnz):
        paths[start:stop] = dijkstra(graph, directed=True, indices=origins[start:stop])
    return paths


def _shortest_bridges(part: Integers, X: Any) -> tuple[Integers, Integers]:
    """Ends of short edges that join all parts, between a sample of their items."""
    n_parts = int(part.max()) + 1
    order = np.argsort(part, kind="stable")
    members = np.split(order, np.searchsorted(part[order], np.arange(1, n_parts)))
    most = max(1, N_REPRESENTATIVES // n_parts)
    some = [items[:: -(-len(items) // most)] for items in members]
    starts = np.cumsum([0, *map(len, some)])
    D = squared_distances(X[np.concatenate(some)])
    gap = np.minimum.reduceat(D, starts[:-1], axis=0)
    gap = np.minimum.reduceat(gap, starts[:-1], axis=1)
    rows, columns = [], []
    for first, second in spanning_tree(gap):
        between = D[starts[first] : starts[first + 1], starts[second] : starts[second + 1]]
        i, j = np.unravel_index(int(between.argmin()), between.shape)
        rows.append(some[first][i])
        columns.append(some[second][j])
    return np.array(rows), np.array(columns)


def spanning_tree(gap: Floats) -> list[tuple[int, int]]:
    """Edges of the minimum spanning tree of a complete graph (Prim); lengths may be 0."""
    n_parts = gap.shape[0]
    best, origin = gap[0].copy(), np.zeros(n_parts, dtype=np.intp)
    inside = np.zeros(n_parts, dtype=bool)
    inside[0] = True
    edges = []
    for _ in range(n_parts - 1):
        new = int(np.where(inside, np.inf, best).argmin())
        edges.append((int(origin[new]), new))
        inside[new] = True
        closer = gap[new] < best
        best[closer], origin[closer] = gap[new][closer], new
    return edges


def neighbor_widths(X: Any, n_neighbors: int) -> Floats:
    """Distance of each row to its k-th nearest among the rows that differ from it."""
    distances, _ = find_neighbors(X, n_neighbors)
    if distances[:, 0].all():
        return np.ascontiguousarray(distances[:, -1])
    group, first = group_equal(X)
    counts = np.bincount(group)
    if len(first) == 1:
        return np.ones(len(group))
    # The k nearest distinct rows hold the k-th nearest row, however often each is repeated.
    distances, nearest = find_neighbors(X[first], min(n_neighbors, len(first) - 1))
    reached = np.cumsum(counts[nearest], axis=1) >= n_neighbors
    reached[:, -1] = True
    widths = distances[np.arange(len(first)), reached.argmax(axis=1)]
    return np.asarray(widths[group])


def group_equal(X: Any) -> tuple[Integers, Integers]:
    """Number of the group of equal rows that each row belongs to, and one row of each."""
    if sparse.issparse(X):
        cuts = X.indptr[1:-1]
        parts = zip(np.split(X.indices, cuts), np.split(X.data, cuts), strict=True)
        keys = [indices.tobytes() + data.tobytes() for indices, data in parts]
    else:
        keys = [row.tobytes() for row in X]
    known: dict[bytes, int] = {}
    group = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.intp)
    return group, np.unique(group, return_index=True)[1]
