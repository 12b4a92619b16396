"""The items that a user gives: checked, counted, joined to those that are there."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils.extmath import randomized_svd

from unshuffle._arrays import as_rows, check_same_items, is_text
from unshuffle._grams import check_kernel_list, collection_for_each, count_items
from unshuffle._grids import check_items_of_layout
from unshuffle._middle import middle, ordinary
from unshuffle._parallel import one_blas_thread
from unshuffle._parameters import check_memory
from unshuffle.kernels import center, combined_gram, nystroem_factors

# Up to so many items (or features) all components are computed, beyond that the leading ones.
EXACT_UP_TO = 1500
N_LANDMARKS = 1000
SCORED_COMPONENTS = 256
FARTHEST = 2.0**12


# From so many items on, kernels are replaced by thin factors.
DENSE_UP_TO = 6000
THIN_KERNELS = ("rbf", "laplacian", "chi2", "text")
# Matrices of n^2 numbers that are held at the peak: two kernels, one of them centred, its
# eigenvectors and what LAPACK takes to find them.
N_MATRICES = 6


def is_list(kernel: Any) -> bool:
    """Whether several kernels are summed."""
    return isinstance(kernel, list | tuple)


def has_columns(kernel: Any) -> bool:
    """Whether one kernel compares items by one table of numbers."""
    return not is_list(kernel) and kernel != "text"


def check_items(X: Any, kernel: Any, name: str = "X") -> Any:
    """Items that the kernel can compare; with a list of kernels, a list of one for each."""
    if whole_gram(kernel, count_items(X, kernel)):
        check_gram_memory(count_items(X, kernel))
    if is_list(kernel):
        kernels = check_kernel_list(kernel)
        given = collection_for_each(X, len(kernels), name)
        shared = all(each is given[0] for each in given)
        found = [
            check_items(each, one, name if shared else f"{name}[{k}]")
            for k, (each, one) in enumerate(zip(given, kernels, strict=True))
        ]
        for k, each in enumerate(found):
            check_same_items(len_of(found[0]), len_of(each), f"{name}[0]", f"{name}[{k}]")
        return found
    return check_items_of_layout(X, name, kernel=kernel)


def whole_gram(kernel: Any, n_items: int) -> bool:
    """Whether all similarities between items are computed, or thin factors do."""
    if is_list(kernel) or not isinstance(kernel, str):
        return True
    return kernel != "linear" and not (kernel in THIN_KERNELS and n_items > DENSE_UP_TO)


def check_gram_memory(n_items: int) -> None:
    """Refuse similarities of all items that would not fit, with what is computed from them."""
    check_memory(
        8 * N_MATRICES * n_items**2,
        what=f"Laying out {n_items:,} items by the similarities of all pairs",
        instead="Lay out a sample of the items (unshuffle.layout.choose_representatives chooses "
        'some that stand for all), or use kernel="linear", which needs no such matrix.',
    )


def len_of(X: Any) -> int:
    """Number of items: rows or documents, or those of each where `check_items` gave a list."""
    if hasattr(X, "shape"):
        return int(X.shape[0])
    return len(X) if is_text(X) else len_of(X[0])


def joined(old: Any, new: Any, kernel: Any) -> Any:
    """Old items, as they were checked, followed by new ones; a kernel matrix holds both."""
    if is_list(kernel):
        parts = collection_for_each(new, len(kernel), "X")
        return [
            joined(each, part, one) for each, part, one in zip(old, parts, kernel, strict=True)
        ]
    if kernel == "precomputed":
        return new
    if kernel == "text":
        return [*old, *check_items_of_layout(new, "X", kernel=kernel)]
    added = check_new_vectors(new, old.shape[1])
    if sparse.issparse(old) or sparse.issparse(added):
        return sparse.vstack([old, added], format="csr")
    return np.concatenate([old, added])


def check_new_vectors(X: Any, n_columns: int) -> Any:
    """Finite vectors with the columns of those that are laid out already; one will do."""
    rows = as_rows(X, "X")
    if rows.shape[1] != n_columns:
        raise ValueError(
            f"X has {rows.shape[1]} columns, but the items that are laid out have {n_columns}. "
            "Describe new items by the same columns."
        )
    return rows


def check_added(n_new: int, *, n_empty: int) -> None:
    """Refuse more new items than there are empty cells, or none."""
    if n_new < 1:
        raise ValueError(
            f"X holds {'no more' if n_new == 0 else 'fewer'} items than are laid out. With "
            'kernel="precomputed" give the kernel matrix of all items, the old ones first.'
        )
    if n_new > n_empty:
        raise ValueError(
            f"{n_new:,} new items do not fit into the {n_empty:,} cells that are empty. Fit anew "
            "with a larger `shape`, or add fewer."
        )


def kernel_features(
    X: Any, kernel: Any, gamma: Any, random_state: np.random.RandomState
) -> NDArray[np.float32]:
    """Vectors whose inner products are the kernel's, as far as its leading components go."""
    n_items = len_of(X)
    if n_items == 1:
        return np.zeros((1, 1), dtype=np.float32)
    if not whole_gram(kernel, n_items):
        factors = nystroem_factors(X, kernel, N_LANDMARKS, gamma=gamma, random_state=random_state)
        return leading_components(factors, SCORED_COMPONENTS, random_state)
    return embedded(combined_gram(X, kernel, gamma=gamma, center=True), random_state)


def embedded(K: NDArray[np.float64], random_state: np.random.RandomState) -> NDArray[np.float32]:
    """Vectors whose inner products are the entries of a centred kernel matrix."""
    centred = center(K)
    n = len(centred)
    with one_blas_thread():
        if n <= EXACT_UP_TO:
            values, vectors = _largest(centred, n)
        else:
            vectors, values, _ = randomized_svd(
                centred, SCORED_COMPONENTS, random_state=random_state
            )
    # What is below rounding, or below zero, is no direction that items differ in.
    kept = values > 1e-9 * max(float(values[0]), np.finfo(float).tiny)
    if not kept.any():
        return np.zeros((n, 1), dtype=np.float32)
    # a power of two rounds nothing, and keeps any kernel within single precision
    unit = 4.0 ** np.floor(np.log2(float(values[0])) / 2)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept] / unit), dtype=np.float32)


def leading_components(
    X: Any, n_components: int, random_state: np.random.RandomState
) -> NDArray[np.float32]:
    """Centred rows of X, turned and cut to the directions in which they differ most.

    Up to `n_components` columns nothing is cut, and nothing need be turned.
    """
    n, d = X.shape
    if sparse.issparse(X):
        return _sparse_components(X, min(n_components, n - 1, d), random_state)
    with np.errstate(over="ignore", invalid="ignore"):
        centred = X - middle(X)
        largest = float(np.abs(centred).max())
    if not np.isfinite(largest):
        # differences of the largest floats overflow
        return leading_components(X * X.dtype.type(2.0**-64), n_components, random_state)
    # sums of the largest floats overflow; a power of two rounds nothing
    centred = _tamed(np.ldexp(centred, -int(np.frexp(largest)[1])))
    centred -= centred.mean(axis=0)
    largest = float(np.abs(centred).max())
    if largest > 0:
        centred /= largest  # the square of any float must not overflow
    if d <= n_components:
        return np.asarray(centred, dtype=np.float32)
    with one_blas_thread():
        return np.asarray(_dense_components(centred, n_components, random_state), dtype=np.float32)


def _tamed(centred: NDArray[Any]) -> NDArray[Any]:
    """Rows about their middle, those brought closer that are so far out as to hide all others.

    Items are compared in single precision, which sees nothing of a number beside one 4,096 times
    as large, once both are squared. The way they lie stays, and which of them is farther.
    """
    lengths = np.abs(centred).max(axis=1).astype(np.float64)
    near = ordinary(lengths, FARTHEST)
    if near.all():
        return centred
    return np.asarray(centred * _shortening(lengths, near)[:, None], dtype=centred.dtype)


def _shortening(lengths: NDArray[np.float64], near: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Factors that bring far rows close to the others, the farther ones less close."""
    most = float(lengths[near].max())
    factors = np.ones(lengths.size)
    factors[~near] = most / lengths[~near] * (1.0 + np.log10(lengths[~near] / most) / 50.0)
    return factors


def _dense_components(
    centred: NDArray[Any], n_components: int, random_state: np.random.RandomState
) -> NDArray[Any]:
    n, d = centred.shape
    if min(n, d) > EXACT_UP_TO:
        wanted = min(n_components, n, d)
        U, S, _ = randomized_svd(centred, wanted, n_iter=3, random_state=random_state)
        return U * S
    if n <= d:
        values, vectors = _largest(centred @ centred.T, n_components)
        return vectors * np.sqrt(np.maximum(values, 0.0))
    return centred @ _largest(centred.T @ centred, n_components)[1]


def _largest(A: NDArray[Any], n_wanted: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Largest eigenvalues of a symmetric matrix, and their vectors."""
    n = len(A)
    values, vectors = linalg.eigh(A, subset_by_index=(max(0, n - n_wanted), n - 1))
    return values[::-1], vectors[:, ::-1]


def _sparse_components(
    X: Any, n_components: int, random_state: np.random.RandomState
) -> NDArray[np.float32]:
    """Leading components of a sparse matrix, whose zeros are not filled to center it."""
    n, d = X.shape
    # Of what is mostly filled, the mean would take the digits: that is not centered first.
    if n_components < 1 or n_components >= min(n, d) or 2 * X.nnz > n * d:
        return leading_components(X.toarray(), max(1, n_components), random_state)
    lengths = np.asarray(abs(X).max(axis=1).toarray(), dtype=np.float64).ravel()
    near = ordinary(lengths, FARTHEST)
    if not near.all():
        X = sparse.diags(_shortening(lengths, near)) @ X
    mean = np.asarray(X.mean(axis=0)).ravel()
    centred = sparse.linalg.LinearOperator(
        (n, d),
        matvec=lambda v: X @ v.ravel() - mean @ v.ravel(),
        rmatvec=lambda v: X.T @ v.ravel() - mean * v.sum(),
        dtype=np.float64,
    )
    if not centred.matvec(np.random.RandomState(0).standard_normal(d)).any():
        return np.zeros((n, 1), dtype=np.float32)  # equal rows, which the solver cannot take
    start = random_state.standard_normal(min(n, d))
    U, S, _ = sparse.linalg.svds(centred, k=n_components, v0=start)
    return np.asarray(U * (S / S.max() if S.max() > 0 else S), dtype=np.float32)


def unit_scale(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Features with mean squared length 1, so that nothing depends on their unit."""
    size = float(np.sqrt(np.einsum("ij,ij->", features, features, dtype=np.float64)))
    size /= np.sqrt(max(len(features), 1))
    return np.ascontiguousarray(features / np.float32(size)) if size > 0 else features
