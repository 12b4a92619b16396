"""Kernels between vectors, and Gram matrices by one kernel or a sum of several."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unshuffle._core.arrays import (
    check_magnitude,
    check_nonnegative,
    check_outliers,
    check_partner_vectors,
    check_resolved,
    check_same_items,
    check_vectors,
    table_shape,
)
from unshuffle._core.distances import exponential, inner_products, products_about_middle
from unshuffle._core.grams import (
    KERNELS,
    Kernel,
    check_gram,
    check_kernel_list,
    check_kernel_weights,
    check_no_weights,
    check_per_kernel,
    collection_for_each,
    gram_copies,
)
from unshuffle._core.kernel_features import call_kernel, kernel_name
from unshuffle._core.parameters import (
    check_flag,
    check_kernel_memory,
    check_option,
    check_positive,
)
from unshuffle.kernels._centering import scale_to_unit_norm
from unshuffle.kernels._geodesic import geodesic_kernel, local_kernel
from unshuffle.kernels._text import text_kernel


def linear_kernel(X: Any, Y: Any = None) -> NDArray[np.float64]:
    """Inner products between items.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    Y : array-like or sparse matrix of shape (m, d), default=None
        None compares X with itself.

    Returns
    -------
    ndarray of shape (n, m)
        Exactly symmetric if Y is None.

    Notes
    -----
    O(n m d) time and O(n m) memory, which is checked first.

    Examples
    --------
    >>> linear_kernel([[1, 0], [1, 2]])
    array([[1., 1.],
           [1., 5.]])
    """
    X, Y = check_pair(X, Y, "linear")
    return inner_products(X, Y)


def rbf_kernel(X: Any, Y: Any = None, *, gamma: float | None = None) -> NDArray[np.float64]:
    """Similarities exp(-gamma d^2) with the Euclidean distance d.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    Y : array-like or sparse matrix of shape (m, d), default=None
        None compares X with itself.
    gamma : float, default=None
        A larger value makes the kernel narrower: only closer items are similar. None takes one
        over the median squared distance between different items of X; Y does not affect it.

    Returns
    -------
    ndarray of shape (n, m)
        If Y is None exactly symmetric, with ones on the diagonal.

    Notes
    -----
    O(n m d) time and O(n m) memory, which is checked first. Sparse input stays sparse.

    Examples
    --------
    >>> rbf_kernel([[0.0], [1.0], [2.0]], gamma=1.0).round(3)
    array([[1.   , 0.368, 0.018],
           [0.368, 1.   , 0.368],
           [0.018, 0.368, 1.   ]])
    """
    X, Y = check_pair(X, Y, "rbf")
    return exponential("rbf", X, Y, gamma)


def laplacian_kernel(X: Any, Y: Any = None, *, gamma: float | None = None) -> NDArray[np.float64]:
    """Similarities exp(-gamma d) with the sum d of absolute differences.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    Y, gamma
        As in `rbf_kernel`. If `gamma` is None, it is one over the median of d.

    Returns
    -------
    ndarray of shape (n, m)
        If Y is None exactly symmetric, with ones on the diagonal.

    Notes
    -----
    O(n m d) time and O(n m) memory, which is checked first. Sparse input stays sparse.

    Examples
    --------
    >>> laplacian_kernel([[0.0, 0.0], [1.0, 1.0]], gamma=0.5).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    X, Y = check_pair(X, Y, "laplacian")
    return exponential("laplacian", X, Y, gamma)


def chi2_kernel(X: Any, Y: Any = None, *, gamma: float | None = None) -> NDArray[np.float64]:
    """Similarities exp(-gamma d) between histograms, with d the sum of (x - y)^2 / (x + y).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Counts or shares, not negative. Sparse input is made dense.
    Y, gamma
        As in `rbf_kernel`. If `gamma` is None, it is one over the median of d.

    Returns
    -------
    ndarray of shape (n, m)
        If Y is None exactly symmetric, with ones on the diagonal.

    Notes
    -----
    O(n m d) time and O(n m) memory, which is checked first.

    Examples
    --------
    >>> chi2_kernel([[1, 0], [0, 1]], gamma=0.5).round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    X, Y = check_pair(X, Y, "chi2")
    return exponential("chi2", X, Y, gamma)


def check_pair(X: Any, Y: Any, kernel: str, name: str = "X") -> tuple[Any, Any]:
    """Both arguments of a kernel, with numbers, shapes and memory checked."""
    X = check_vectors(X, name, kernel=kernel)
    if Y is not None:
        Y = check_partner_vectors(Y, X, "Y")
    for values, label in ((X, name),) if Y is None else ((X, name), (Y, "Y")):
        check_magnitude(values, label)
        if kernel == "chi2":
            check_nonnegative(values, label, kernel=kernel)
    if kernel != "linear":
        check_resolved(X, name)
    # Peak number of matrices: the median sorts a copy of the distances above the diagonal, twice
    # if many are zero; products of sparse matrices are sparse first.
    n_copies = 3.0 if sparse.issparse(X) else 1.5 if kernel == "linear" else 2.6
    check_kernel_memory(X.shape[0], (X if Y is None else Y).shape[0], n_copies=n_copies)
    return X, Y


def gram_matrix(
    X: Any, kernel: Kernel = "rbf", *, gamma: float | None = None, name: str = "X"
) -> NDArray[np.float64]:
    """Similarities between all items of one collection, by one kernel.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), list of str, or Gram matrix
        Vectors; documents if `kernel` is "text"; similarities if it is "precomputed".
    kernel : str or callable, default="rbf"
        "linear", "rbf", "laplacian", "chi2", "geodesic", "local", "text" or "precomputed". A
        callable is called as `kernel(X, X)` and should return an (n, n) matrix; if it does not, it
        is called as `kernel(x, y)` on every pair of rows and should return a number.
    gamma : float, default=None
        Width of "rbf", "laplacian", "chi2" and "geodesic"; the others do not use it. A larger
        value makes the kernel narrower. None takes one over the median distance (squared for
        "rbf" and "geodesic") between different items.
    name : str
        Name of the collection in error messages.

    Returns
    -------
    ndarray of shape (n, n)
        Exactly symmetric, float64, finite.

    Notes
    -----
    O(n^2) memory, which is checked first. `kernel(x, y)` is called n (n + 1) / 2 times.

    Examples
    --------
    >>> gram_matrix([[1.0, 2.0], [3.0, 4.0]], "linear")
    array([[ 5., 11.],
           [11., 25.]])
    >>> gram_matrix([[1.0, 2.0], [3.0, 4.0]], lambda x, y: min(x[0], y[0]))
    array([[1., 1.],
           [1., 3.]])
    """
    return _gram(X, kernel, gamma, name)


def _gram(
    X: Any, kernel: Kernel, gamma: float | None, name: str, center: bool = False
) -> NDArray[np.float64]:
    if callable(kernel):
        return _call(kernel, X, name)
    check_option(kernel, "kernel", KERNELS)
    if gamma is not None:
        gamma = check_positive(gamma, "gamma")
    if kernel == "precomputed":
        return check_gram(X, name)
    if kernel == "text":
        return text_kernel(X, name=name)
    if kernel == "geodesic":
        return geodesic_kernel(X, gamma=gamma, name=name)
    if kernel == "local":
        return local_kernel(X, name=name)
    vectors, _ = check_pair(X, None, kernel, name)
    if kernel == "linear" and center:
        check_resolved(vectors, name)
        if not sparse.issparse(vectors):
            check_outliers(vectors, lambda row: f"Row {row} of {name}")
        return products_about_middle(vectors)
    if kernel == "linear":
        return inner_products(vectors)
    return exponential(kernel, vectors, gamma=gamma, name=name)


def combined_gram(
    X: Any,
    kernel: Kernel | Sequence[Kernel] = "rbf",
    *,
    gamma: float | Sequence[float | None] | None = None,
    weights: ArrayLike | None = None,
    center: bool = False,
    name: str = "X",
) -> NDArray[np.float64]:
    """Similarities between all items of one collection, by one kernel or a sum of several.

    Parameters
    ----------
    X : collection, or list of collections
        As in `gram_matrix`. A list of kernels takes one collection for all of them, or a list (or
        a 3-D array) with one collection for each.
    kernel : str, callable, or list of these, default="rbf"
        The Gram matrices of a list are scaled to unit centered norm, then summed.
    gamma : float or list, default=None
        Width, for all kernels or one for each. A larger value makes a kernel narrower.
    weights : array-like of shape (n_kernels,), default=None
        Factor of each kernel in the sum, at least 0. A larger value makes its kernel count more.
        None is 1 for all.
    center : bool, default=False
        Whether to subtract the median of each column before "linear" products. This keeps the
        digits of differences between items that lie far from the origin.
    name : str
        Name of the collection in error messages.

    Returns
    -------
    ndarray of shape (n, n)
        Exactly symmetric.

    Examples
    --------
    >>> K = combined_gram([[0.0], [1.0], [3.0]], ["linear", "rbf"])
    >>> K.shape
    (3, 3)
    """
    check_flag(center, "center")
    if not isinstance(kernel, list | tuple):
        check_no_weights(weights)
        # A list of widths is refused here: one kernel has one width.
        return _gram(X, kernel, gamma, name, center)  # type: ignore[arg-type]
    kernels = check_kernel_list(kernel)
    collections = collection_for_each(X, len(kernels), name)
    gammas = check_per_kernel(gamma, len(kernels))
    factors = check_kernel_weights(weights, len(kernels))
    apart = len({id(collection) for collection in collections}) > 1
    n_items = max(table_shape(collection)[0] for collection in collections)
    check_kernel_memory(n_items, n_items, n_copies=gram_copies(kernels))
    total: NDArray[np.float64] | None = None
    first = ""
    for k, (collection, spec) in enumerate(zip(collections, kernels, strict=True)):
        label = f"{name}[{k}]" if apart else name
        K = _gram(collection, spec, gammas[k], label, center)
        if total is None:
            total, first = np.zeros_like(K), label
        check_same_items(total.shape[0], K.shape[0], first, label)
        if factors[k] > 0:
            named = repr(spec) if isinstance(spec, str) else kernel_name(spec)
            scale_to_unit_norm(K, f"{label} (kernel {k}, {named})")
            K *= factors[k]
            total += K
    return total if total is not None else np.empty((0, 0))


def _call(kernel: Callable[..., Any], X: Any, name: str) -> NDArray[np.float64]:
    """Gram matrix by a user's function."""
    X = check_vectors(X, name, kernel=getattr(kernel, "__name__", kernel))
    check_kernel_memory(X.shape[0], X.shape[0], n_copies=gram_copies(kernel))
    K = call_kernel(kernel, X, name=name)
    if isinstance(K, list) and isinstance(K[0][0], str):
        raise ValueError(
            f"The kernel {kernel_name(kernel)} failed on {name}: it returns text such as "
            f"{K[0][0]!r:.40}. Return a number from kernel(x, y) on two rows."
        )
    if isinstance(K, np.ndarray) and K.dtype.kind == "f" and not np.all(np.isfinite(K)):
        raise ValueError(
            f"The kernel {kernel_name(kernel)} failed on {name}: it returns NaN or infinity, "
            f"although all values of {name} are finite. Return finite numbers."
        )
    return check_gram(K, f"{kernel_name(kernel)}({name}, {name})")
