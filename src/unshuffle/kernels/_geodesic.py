"""Kernels from nearest neighbors: shortest paths between items, and widths that follow density."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from unshuffle._core.arrays import check_magnitude, check_resolved, check_vectors, middle
from unshuffle._core.distances import (
    as_float64,
    exponential_of,
    manhattan,
    median_gamma,
    mirror_upper,
    squared_distances,
)
from unshuffle._core.neighbors import spanning_tree, symmetric_graph
from unshuffle._core.parameters import (
    check_count,
    check_kernel_memory,
    check_option,
    check_positive,
)
from unshuffle._run.parallel import spans

METRICS = ("euclidean", "correlation", "cosine", "manhattan")


def geodesic_distances(
    X: Any, *, n_neighbors: int | None = None, metric: str = "euclidean", name: str = "X"
) -> NDArray[np.float64]:
    """Lengths of the shortest paths between items in a graph of nearest neighbors.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    n_neighbors : int, default=None
        Neighbors that each item is joined to, in both directions; ties with the last one are
        joined too. A larger value gives shorter paths that may cut across gaps; a smaller one
        follows the surface more closely. None is the square root of n, from 5 to n - 1.
    metric : {"euclidean", "correlation", "cosine", "manhattan"}, default="euclidean"
        Distance between neighbors. "correlation" is 1 minus the correlation of two rows, "cosine"
        1 minus their cosine.
    name : str
        Name of the collection in error messages.

    Returns
    -------
    ndarray of shape (n, n)
        Exactly symmetric, zero on the diagonal, finite.

    Notes
    -----
    If the graph is not connected, its parts are joined by a minimum spanning tree of the shortest
    edges between parts.

    O(n^2 d) time for the graph and O(n^2 (k + log n)) for the paths, with k neighbors. Memory for
    two n x n matrices, more if k is a large share of n, is checked first.

    Examples
    --------
    The path along the corners of a square is longer than the straight line:

    >>> corners = [[0, 0], [0, 1], [1, 1], [1, 0.5]]
    >>> geodesic_distances(corners, n_neighbors=1)[0]
    array([0. , 1. , 2. , 2.5])
    """
    X = check_vectors(X, name, kernel="geodesic")
    check_option(metric, "metric", METRICS)
    n_items = X.shape[0]
    if n_neighbors is None:
        n_neighbors = min(max(5, round(n_items**0.5)), n_items - 1)
    n_neighbors = check_count(n_neighbors, "n_neighbors", least=1, most=n_items - 1)
    # distances and paths, and the edges of the graph with what sorts them
    check_kernel_memory(n_items, n_items, n_copies=2.5 + 9.0 * n_neighbors / n_items)
    D = step_lengths(X, metric, name)
    graph = _join_parts(_neighbor_graph(D, n_neighbors), D)
    del D
    # The graph is symmetric already, so the directed search suffices.
    lengths = np.empty((n_items, n_items))
    # a step to a neighbor takes about a tenth of a microsecond
    for start, stop in spans(n_items, 100.0 * graph.nnz):
        lengths[start:stop] = dijkstra(graph, directed=True, indices=range(start, stop))
    return mirror_upper(lengths)


def geodesic_kernel(
    X: Any,
    Y: Any = None,
    *,
    n_neighbors: int | None = None,
    metric: str = "euclidean",
    gamma: float | None = None,
    name: str = "X",
) -> NDArray[np.float64]:
    """Similarities exp(-gamma d^2) with the geodesic distance d between items.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    Y : None or X itself
        Accepted so that `functools.partial(geodesic_kernel, metric="correlation")` can be passed
        as a kernel. Another collection is refused: paths exist only inside one.
    n_neighbors, metric, name
        Passed to `geodesic_distances`.
    gamma : float, default=None
        A larger value makes the kernel narrower. None takes one over the median of d^2 between
        different items.

    Returns
    -------
    ndarray of shape (n, n)
        Exactly symmetric, ones on the diagonal; not always positive definite.

    See Also
    --------
    geodesic_distances : The distances, and how unconnected parts are joined.

    Examples
    --------
    >>> corners = [[0, 0], [0, 1], [1, 1], [1, 0]]
    >>> geodesic_kernel(corners, n_neighbors=2, gamma=0.25).round(3)[0]
    array([1.   , 0.779, 0.368, 0.779])
    """
    if Y is not None and Y is not X:
        raise ValueError(
            "geodesic_kernel compares the items of one collection, but got a second one. Leave Y "
            "out, or stack the two collections to compare across them."
        )
    D = geodesic_distances(X, n_neighbors=n_neighbors, metric=metric, name=name)
    if gamma is None:
        # A power of two keeps squares finite without rounding; the median width scales with it.
        D = np.ldexp(D, -int(np.frexp(D.max())[1]))
    with np.errstate(over="ignore"):  # an infinite distance gives a similarity of 0
        D *= D
    gamma = median_gamma(D, name=name) if gamma is None else check_positive(gamma, "gamma")
    return exponential_of(D, gamma)


def local_kernel(
    X: Any, Y: Any = None, *, n_neighbors: int | None = None, name: str = "X"
) -> NDArray[np.float64]:
    """Similarities exp(-d^2 / (s t)), with s and t the distances of both items to a neighbor.

    Items in sparse regions get wider kernels, so that regions of different density compare.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    Y : None or X itself
        Accepted so that the function can be passed as a kernel. Another collection is refused.
    n_neighbors : int, default=None
        The neighbor whose distance is the width of an item. A larger value makes the kernel wider.
        None is 10, at most n - 1.
    name : str
        Name of the collection in error messages.

    Returns
    -------
    ndarray of shape (n, n)
        Exactly symmetric, ones on the diagonal; not always positive definite.

    Notes
    -----
    O(n^2 d) time and O(n^2) memory, which is checked first. Distances to exact duplicates do not
    count as widths.

    Examples
    --------
    >>> local_kernel([[0.0], [1.0], [4.0]], n_neighbors=1).round(3)
    array([[1.   , 0.368, 0.005],
           [0.368, 1.   , 0.05 ],
           [0.005, 0.05 , 1.   ]])
    """
    if Y is not None and Y is not X:
        raise ValueError(
            "local_kernel compares the items of one collection, but got a second one. Leave Y "
            "out, or stack the two collections to compare across them."
        )
    X = check_vectors(X, name, kernel="local")
    n_items = X.shape[0]
    check_magnitude(X, name)
    check_resolved(X, name)
    check_kernel_memory(n_items, n_items, n_copies=2.6)
    if n_neighbors is None:
        n_neighbors = min(10, n_items - 1)
    n_neighbors = check_count(n_neighbors, "n_neighbors", most=n_items - 1)
    D = squared_distances(X)
    D = np.ldexp(D, -int(np.frexp(D.max())[1]))  # exact, and keeps products of widths finite
    widths = np.empty(n_items)
    for i in range(n_items):
        apart = D[i][D[i] > 0]
        near = min(n_neighbors, apart.size)
        widths[i] = np.sqrt(np.partition(apart, near - 1)[near - 1]) if near else 1.0
    D /= widths[:, None]
    D /= widths[None, :]
    return exponential_of(mirror_upper(D), 1.0)


def step_lengths(X: Any, metric: str, name: str = "X") -> NDArray[np.float64]:
    """Distances between all pairs of rows in the chosen metric."""
    check_magnitude(X, name)
    if metric in ("euclidean", "manhattan"):
        check_resolved(X, name)
    if metric == "euclidean":
        return np.sqrt(squared_distances(X))
    if metric == "manhattan":
        return manhattan(X)
    rows = as_float64(X.toarray() if sparse.issparse(X) else X)
    largest = np.abs(rows).max(axis=1)
    # Both ignore the length of a row; dividing by a power of two is exact.
    rows = np.ldexp(rows, -np.frexp(largest)[1][:, None])
    if metric == "correlation":
        rows = rows - middle(rows.T)[:, None]
        rows -= rows.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(rows, axis=1)
    flat = np.flatnonzero(~((largest > 0) & (norms > 8 * np.finfo(float).eps)))
    if flat.size:
        what = "constant" if metric == "correlation" else "zero"
        raise ValueError(
            f"Row {flat[0]} of {name} is {what} ({flat.size} row(s) in all), so its {metric} with "
            'others is undefined. Drop these rows, or use metric="euclidean".'
        )
    # For unit vectors 1 - cos is half the squared distance, which is accurate near 0.
    D = squared_distances(rows / norms[:, None])
    D *= 0.5
    return D


def _neighbor_graph(D: NDArray[np.float64], n_neighbors: int) -> sparse.csr_matrix:
    """Symmetric graph of nearest neighbors, including ties and edges of length 0."""
    n_items = D.shape[0]
    sources, targets = [], []
    for i in range(n_items):
        row = D[i].copy()
        row[i] = np.inf
        near = np.flatnonzero(row <= np.partition(row, n_neighbors - 1)[n_neighbors - 1])
        sources.append(np.full(near.size, i))
        targets.append(near)
    edges = np.concatenate(sources), np.concatenate(targets)
    return symmetric_graph(edges, lambda rows, columns: D[rows, columns], n_items)


def _join_parts(graph: sparse.csr_matrix, D: NDArray[np.float64]) -> sparse.csr_matrix:
    """Add the shortest edges that make the graph connected."""
    n_parts, part = connected_components(graph, directed=False)
    if n_parts == 1:
        return graph
    order = np.argsort(part, kind="stable")
    starts = np.searchsorted(part[order], np.arange(n_parts))
    gap = np.empty((n_parts, n_parts))
    nearest = np.empty((n_parts, D.shape[0]))
    for k, members in enumerate(np.split(order, starts[1:])):
        nearest[k] = D[members].min(axis=0)
        gap[k] = np.minimum.reduceat(nearest[k][order], starts)
    rows, columns = [], []
    for first, second in spanning_tree(gap):
        inside = np.flatnonzero(part == second)
        end = inside[nearest[first][inside].argmin()]
        begin = np.flatnonzero(part == first)
        rows.append(begin[D[begin, end].argmin()])
        columns.append(end)
    known = graph.tocoo()
    edges = np.append(known.row, rows), np.append(known.col, columns)
    return symmetric_graph(edges, lambda rows, columns: D[rows, columns], D.shape[0])
