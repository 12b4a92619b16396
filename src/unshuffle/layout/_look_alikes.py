"""look_alikes: the items most similar to each item of a collection."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from unshuffle._core.arrays import (
    as_rows,
    check_resolved,
    check_vectors,
    find_inliers,
    is_text,
    middle,
)
from unshuffle._core.grams import Kernel
from unshuffle._core.parameters import (
    check_count,
    check_memory,
    check_positive,
    check_progress,
    check_seed,
)
from unshuffle._run.device import to_host
from unshuffle._run.parallel import (
    Workers,
    check_n_jobs,
    one_blas_thread,
    per_call,
    product,
    wait_for,
)
from unshuffle._run.types import Floats, Indices
from unshuffle.kernels import combined_gram
from unshuffle.layout._problem import (
    FARTHEST,
    Random,
    check_items,
    count_checked,
    kernel_features,
    leading_components,
    needs_gram,
)

# Products of numbers that two cores form in about half a minute. Items are compared by so many
# components that there are no more, and by at least LEAST_COMPONENTS.
MOST_PRODUCTS = 64 * 10**10
LEAST_COMPONENTS = 64
# Candidates besides the k wanted. Their order is corrected by exact distances: by rounding alone,
# or after 64 of 1,280 components, which then find 99 of 100 nearest items.
MORE, MORE_BY_COMPONENTS = 8, 24
# Above so many columns their covariance is large, and components are found without it.
MOST_COVARIED = 4096
ROWS, COLUMNS = 512, 512  # of a tile of products, which a core's cache holds
COVARIED_ROWS = 8000  # enough to find the leading components
IN_BLOCK = 2**20  # numbers that are converted at a time


class _Scaled(NamedTuple):
    """Rows in double precision, with entries of at most 1, so that no square overflows."""

    X: Any  # real numbers in any precision, possibly of a file
    exponent: int  # a power of two rounds nothing

    @classmethod
    def of(cls, X: Any) -> "_Scaled":
        """Rows of X with their scale."""
        largest = max(float(X.max()), -float(X.min()))
        return cls(X, int(np.frexp(largest)[1]))

    def rows(self, which: slice | Indices) -> Floats:
        """Some rows."""
        return np.ldexp(self.X[which].astype(np.float64), -self.exponent)

    def middle(self) -> Floats:
        """Median of each column, some columns at a time."""
        n_rows, n_columns = self.X.shape
        step = max(1, IN_BLOCK // n_rows)
        parts = [middle(self.X[:, k : k + step]) for k in range(0, n_columns, step)]
        return np.ldexp(np.concatenate(parts).astype(np.float64), -self.exponent)


class _ComparedItems(NamedTuple):
    """Items as they are compared: by inner products of vectors, or by a kernel matrix."""

    squares: Floats  # products of each item with itself
    vectors: Floats | None = None
    gram: Floats | None = None
    exact: _Scaled | None = None  # rows of which the distances are meant
    n_more: int = 0  # candidates that these may replace others by

    @classmethod
    def by_vectors(
        cls, vectors: Floats, exact: _Scaled | None = None, n_more: int = 0
    ) -> "_ComparedItems":
        """Items compared by the distances of vectors."""
        return cls(np.einsum("ij,ij->i", vectors, vectors), vectors, None, exact, n_more)


def look_alikes(
    X: Any,
    k: int = 8,
    *,
    kernel: Kernel | Sequence[Kernel] = "linear",
    gamma: Any = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> NDArray[np.intp]:
    """Find the most similar other items of each item, the nearest first.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_items, n_features), or list of str
        Features of the items, as `unshuffle.GridLayout` takes them; with kernel="precomputed"
        their kernel matrix. With a list of kernels also a list of these, one for each.
    k : int, default=8
        Number of items to find for each. There are at most n_items - 1.
    kernel : str, callable or list of these, default="linear"
        Similarity of items, as in `unshuffle.GridLayout`; "linear" is Euclidean distance.
    gamma : float, list of these, or None, default=None
        Inverse width of the kernel; larger values are narrower. None takes it from the median
        distance.
    random_state : int, RandomState or None, default=None
        Seed. It has an effect only where components of many items are approximated: for "text",
        "laplacian" and "chi2" above 6,000 items, and for wide sparse matrices.
    n_jobs : int or None, default=None
        Number of threads. More are faster. The result is the same.
    on_progress : callable or None, default=None
        Called with the number of items done and of all items.

    Returns
    -------
    neighbors : ndarray of int, shape (n_items, min(k, n_items - 1))
        The nearest other items of each item, nearest first, and equally near ones in their
        order. If more items are equal than fit, some of them are returned, always the same ones.

    Notes
    -----
    All pairs are compared. Time grows with the square of n_items: 100,000 items of 64 features
    take about half a minute on two cores. Memory grows with the number of items, and with its
    square for kernels that need their matrix, as in `unshuffle.GridLayout`.

    Wide collections are compared by their leading components, at least 64, if comparing all
    columns would take longer than that; the nearest 24 + k are then sorted by their true
    distances. Up to 20,000 items of 1,600 columns, distances are exact.

    Examples
    --------
    >>> from unshuffle.layout import look_alikes
    >>> look_alikes([[0.0], [1.0], [3.0], [7.0]], 2)
    array([[1, 2],
           [0, 2],
           [1, 0],
           [2, 1]])
    """
    k = check_count(k, "k")
    check_n_jobs(n_jobs)
    check_progress(on_progress)
    if not (isinstance(kernel, str | list | tuple) or callable(kernel)):
        raise ValueError(
            f"`kernel` must be a name, a callable or a list of these, got {kernel!r}."
        )
    items = _compare(to_host(X), kernel, gamma, check_seed(random_state))
    n_items = items.squares.size
    k = min(k, n_items - 1)
    n_kept = min(k + items.n_more, n_items - 1)
    check_memory(
        16 * n_items * n_kept + 8 * n_items * k,
        what=f"Finding {k:,} items for each of {n_items:,}",
        instead="Choose a smaller `k`.",
    )
    if k == 0:
        return np.empty((n_items, 0), dtype=np.intp)
    return _find_nearest(items, k, n_kept, n_jobs, on_progress)


def _compare(X: Any, kernel: Any, gamma: Any, random: Random) -> _ComparedItems:
    """Check the items and prepare their comparison."""
    if isinstance(kernel, str) and kernel in ("linear", "rbf"):
        # The nearest items of "rbf", of any width, are those of Euclidean distance.
        if kernel == "rbf" and gamma is not None:
            check_positive(gamma, "gamma")
        return _compare_rows(X, kernel, random)
    items = check_items(X, kernel)
    n_items = count_checked(items)
    if n_items > 1 and needs_gram(kernel, n_items):
        K = combined_gram(items, kernel, gamma=gamma, center=True)
        return _ComparedItems(np.ascontiguousarray(K.diagonal()), gram=K)
    features = kernel_features(items, kernel, gamma, random)
    return _ComparedItems.by_vectors(features.astype(np.float64))


def _compare_rows(X: Any, kernel: str, random: Random) -> _ComparedItems:
    """Euclidean distances, of all columns or of their leading components."""
    if isinstance(X, str) or is_text(X):
        check_vectors(X, "X", kernel=kernel)  # raises the error
    # Not converted at once: in double precision, a wide collection takes much memory.
    X = as_rows(X, "X", in_place=getattr(X, "dtype", None) != np.longdouble)
    if X.dtype.kind == "f" and X.dtype.itemsize == 8:
        check_resolved(X, "X")
    n_items, n_columns = X.shape
    n_components = max(LEAST_COMPONENTS, MOST_PRODUCTS // n_items**2)
    if n_columns <= n_components:
        scaled = _Scaled.of(X.toarray() if sparse.issparse(X) else X)
        centered = scaled.rows(slice(None))
        centered -= scaled.middle()  # products near the origin keep more digits
        return _ComparedItems.by_vectors(centered, scaled, MORE)
    if not sparse.issparse(X) and n_columns <= MOST_COVARIED:
        scaled = _Scaled.of(X)
        found = _principal_components(scaled, n_components)
        return _ComparedItems.by_vectors(found, scaled, MORE_BY_COMPONENTS)
    leading = wait_for(leading_components, X.astype(np.float64), n_components, random)
    found = leading.astype(np.float64)
    if sparse.issparse(X):
        return _ComparedItems.by_vectors(found)
    return _ComparedItems.by_vectors(found, _Scaled.of(X), MORE_BY_COMPONENTS)


def _principal_components(X: _Scaled, n_components: int) -> Floats:
    """Rows in the directions in which a fixed sample of them varies most."""
    n_items, n_columns = X.X.shape
    center = X.middle()
    drawn = np.random.default_rng(0).permutation(n_items)[:COVARIED_ROWS]
    sample = X.rows(np.sort(drawn)) - center
    # One row far from all others would hide every other direction.
    near = find_inliers(np.abs(sample).max(axis=1), FARTHEST)
    with one_blas_thread():
        sample = sample[near]
        covariance = product(sample.T, sample)
        wanted = (n_columns - n_components, n_columns - 1)
        directions = wait_for(partial(linalg.eigh, covariance, subset_by_index=wanted))[1]
        found = np.empty((n_items, n_components))
        step = max(1, IN_BLOCK // n_columns)
        for start in range(0, n_items, step):
            some = slice(start, start + step)
            found[some] = (X.rows(some) - center) @ directions
    return found


def _find_nearest(
    items: _ComparedItems,
    k: int,
    n_kept: int,
    n_jobs: int | None,
    on_progress: Callable[[int, int], object] | None,
) -> Indices:
    """The k nearest items of each, some rows at a time."""
    from unshuffle.layout._nearest_loops import keep_nearest  # numba is slow to load

    n_items, squares, gram = items.squares.size, items.squares, items.gram
    vectors = np.empty((0, 0)) if items.vectors is None else items.vectors
    across = np.ascontiguousarray(vectors.T)
    found = np.empty((n_items, k), dtype=np.intp)

    def run(begin: int, end: int) -> None:
        apart = np.full((end - begin, n_kept), np.inf)
        nearest = np.zeros((end - begin, n_kept), dtype=np.intp)
        buffer = np.empty((end - begin) * COLUMNS)
        for first in range(0, n_items, COLUMNS):
            last = min(first + COLUMNS, n_items)
            if gram is None:
                tile = buffer[: (end - begin) * (last - first)].reshape(end - begin, last - first)
                np.matmul(vectors[begin:end], across[:, first:last], out=tile)
            else:
                tile = gram[begin:end, first:last]
            keep_nearest(tile, squares[first:last], first, begin, apart, nearest)
        if items.exact is not None:
            nearest = _sort_exactly(items.exact, begin, nearest)
        found[begin:end] = nearest[:, :k]

    # Rows that a thread compares in a tenth of a second, so that Ctrl-C works.
    n_rows = min(ROWS, per_call((1.0 + vectors.shape[1] / 20) * n_items))
    pieces = [(begin, min(begin + n_rows, n_items)) for begin in range(0, n_items, n_rows)]
    with one_blas_thread(), Workers(n_jobs) as workers:
        step = 4 * workers.n_threads
        for start in range(0, len(pieces), step):
            some = pieces[start : start + step]
            workers.each(run, some)
            if on_progress is not None:
                on_progress(some[-1][1], n_items)
    return found


def _sort_exactly(X: _Scaled, begin: int, nearest: Indices) -> Indices:
    """Candidates of some rows by their true distances, equal ones by their numbers."""
    n_rows, n_kept = nearest.shape
    nearest = np.sort(nearest, axis=1)
    squared = np.empty(nearest.shape)
    step = max(1, IN_BLOCK // (n_kept * X.X.shape[1]))
    for start in range(0, n_rows, step):
        some = nearest[start : start + step]
        own = X.rows(slice(begin + start, begin + start + len(some)))
        apart = X.rows(some.ravel()).reshape(*some.shape, -1) - own[:, None]
        squared[start : start + step] = np.einsum("ijk,ijk->ij", apart, apart)
    order = np.argsort(squared, axis=1, kind="stable")
    return np.take_along_axis(nearest, order, axis=1)
