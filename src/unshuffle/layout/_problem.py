"""The problem of a layout: its items, and the vectors that they are compared by."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.utils.extmath import randomized_svd

from unshuffle._core.arrays import (
    as_rows,
    check_documents,
    check_same_items,
    check_vectors,
    find_inliers,
    is_text,
    middle,
)
from unshuffle._core.grams import check_gram, check_kernel_list, collection_for_each, count_items
from unshuffle._core.parameters import check_memory
from unshuffle._run.parallel import one_blas_thread
from unshuffle._run.types import Indices
from unshuffle.kernels import center, combined_gram, nystroem_factors
from unshuffle.layout._shape import Shape

Vectors = NDArray[np.float32]
Random = np.random.RandomState

# Above so many items (or features) only the leading components are computed.
EXACT_UP_TO = 1500
N_LANDMARKS = 1000
SCORED_COMPONENTS = 256
# Rows farther out than so many typical ones would hide all others in single precision.
FARTHEST = 2.0**12
# Above so many items, thin factors replace these kernels.
DENSE_UP_TO = 6000
THIN_KERNELS = ("rbf", "laplacian", "chi2", "text")
# Matrices of n^2 numbers at the peak: two kernels, one of them centered, its eigenvectors and
# the workspace of LAPACK.
N_MATRICES = 6
# Frozen items together weigh at least this share of the others, so that a few of them decide the
# orientation of the layout. Each weighs at most so many times as much as another item.
FROZEN_SHARE, HEAVIEST = 0.2, 100.0
# Items settle if they start from an existing layout, which has its orientation. There, each frozen
# item gathers similar ones around it, however many are frozen. If they weigh more, they gather
# more, but the layout gets worse.
FROZEN_SHARE_SETTLING, HEAVIEST_SETTLING = 1.0, 40.0
# Averages are at most so wide where items settle, in cells: items around one that was moved find
# new cells. With 3.0, a fifth more of the items move.
WIDEST_SETTLING = 2.0
# Share of the work in which items that a start leaves out find cells.
ADDING = 0.8


@dataclass(frozen=True)
class LayoutProblem:
    """Items to lay out, how they are compared, and the cells to put them in."""

    items: Any
    kernel: Any
    gamma: Any
    cells: Shape
    frozen: Indices  # (n_frozen, 2): items and the cells they stay in
    random_state: Any
    n_jobs: int | None
    start: Indices | None = None  # item in each cell to begin with, -1 for none; None is any order

    def frozen_weight(self) -> float:
        """Weight of each frozen item in averages; that of others is 1."""
        share, most = FROZEN_SHARE, HEAVIEST
        if self.start is not None:
            share, most = FROZEN_SHARE_SETTLING, HEAVIEST_SETTLING
        n_moving = count_checked(self.items) - len(self.frozen)
        return float(np.clip(share * n_moving / max(len(self.frozen), 1), 1.0, most))

    def adding(self) -> "LayoutProblem | None":
        """The problem of items that the start leaves out, with all others in place, if any."""
        if self.start is None:
            return None
        held = np.flatnonzero(self.start >= 0)
        if held.size == count_checked(self.items):
            return None
        pairs = np.stack([self.start[held], held], axis=1)
        return replace(self, frozen=pairs, start=None)


class Layout(NamedTuple):
    """One layout, as solvers return it and offer it on the way."""

    grid: Any  # item in each cell, cells row by row; -1 for none; a tensor if found on a GPU
    vectors: Any  # what the items were compared by
    objective: float = -np.inf  # of the whole layout, if there is one

    @property
    def cells(self) -> Indices:
        """Cell of each item."""
        held = np.flatnonzero(self.grid >= 0)
        cells = np.empty(held.size, dtype=np.intp)
        cells[self.grid[held]] = held
        return cells


def is_tabular(kernel: Any) -> bool:
    """Whether the kernel compares the rows of one table of numbers."""
    return not isinstance(kernel, list | tuple) and kernel != "text"


def needs_gram(kernel: Any, n_items: int) -> bool:
    """Whether the kernel matrix of all pairs of items is computed."""
    if not isinstance(kernel, str):
        return True
    return kernel != "linear" and not (kernel in THIN_KERNELS and n_items > DENSE_UP_TO)


def check_items(X: Any, kernel: Any, name: str = "X") -> Any:
    """Items that the kernel can compare; for a list of kernels, a list of one for each."""
    if kernel != "linear" and needs_gram(kernel, n_items := count_items(X, kernel)):
        check_memory(
            8 * N_MATRICES * n_items**2,
            what=f"Laying out {n_items:,} items by the similarities of all pairs",
            instead="Lay out a sample, such as unshuffle.layout.choose_representatives chooses, "
            'or use kernel="linear", which needs no such matrix.',
        )
    if isinstance(kernel, list | tuple):
        kernels = check_kernel_list(kernel)
        given = collection_for_each(X, len(kernels), name)
        shared = all(each is given[0] for each in given)
        found = [
            check_items(each, one, name if shared else f"{name}[{k}]")
            for k, (each, one) in enumerate(zip(given, kernels, strict=True))
        ]
        for k, each in enumerate(found):
            check_same_items(
                count_checked(found[0]), count_checked(each), f"{name}[0]", f"{name}[{k}]"
            )
        return found
    if kernel == "text":
        return [str(X[0])] if is_text(X) and len(X) == 1 else check_documents(X, name)
    if isinstance(X, str) or is_text(X):
        return check_vectors(X, name, kernel=getattr(kernel, "__name__", kernel))
    if kernel == "precomputed" and np.shape(X) != (1, 1):
        return check_gram(X, name)
    rows = as_rows(X, name)
    if isinstance(X, np.ndarray) and not np.may_share_memory(rows, X):
        return rows
    return rows.copy()  # the estimator keeps it


def count_checked(items: Any) -> int:
    """Number of items that `check_items` returned."""
    if hasattr(items, "shape"):
        return int(items.shape[0])
    return len(items) if is_text(items) else count_checked(items[0])


def append_items(old: Any, new: Any, kernel: Any) -> Any:
    """Checked items followed by new ones; a kernel matrix already holds both."""
    if isinstance(kernel, list | tuple):
        parts = zip(old, collection_for_each(new, len(kernel), "X"), kernel, strict=True)
        return [append_items(*part) for part in parts]
    if kernel == "precomputed":
        return new
    if kernel == "text":
        return [*old, *check_items(new, kernel)]
    added = as_rows(new, "X")
    if added.shape[1] != old.shape[1]:
        raise ValueError(
            f"X has {added.shape[1]} columns, but the fitted items have {old.shape[1]}. Describe "
            "new items by the same columns."
        )
    if sparse.issparse(old) or sparse.issparse(added):
        return sparse.vstack([old, added], format="csr")
    return np.concatenate([old, added])


def kernel_features(X: Any, kernel: Any, gamma: Any, random_state: Random) -> Vectors:
    """Vectors whose inner products approximate the kernel: its leading components."""
    n_items = count_checked(X)
    if n_items == 1:
        return np.zeros((1, 1), dtype=np.float32)
    if not needs_gram(kernel, n_items):
        factors = nystroem_factors(X, kernel, N_LANDMARKS, gamma=gamma, random_state=random_state)
        return leading_components(factors, SCORED_COMPONENTS, random_state)
    centered = center(combined_gram(X, kernel, gamma=gamma, center=True))
    with one_blas_thread():
        if n_items <= EXACT_UP_TO:
            values, vectors = _leading_eigenpairs(centered, n_items)
        else:
            wanted = SCORED_COMPONENTS
            vectors, values, _ = randomized_svd(centered, wanted, random_state=random_state)
    # Eigenvalues below rounding, or below zero, carry no information.
    kept = values > 1e-9 * max(float(values[0]), np.finfo(float).tiny)
    if not kept.any():
        return np.zeros((n_items, 1), dtype=np.float32)
    # A power of two rounds nothing, and keeps any kernel within single precision.
    unit = 4.0 ** np.floor(np.log2(float(values[0])) / 2)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept] / unit), dtype=np.float32)


def leading_components(X: Any, n_components: int, random_state: Random) -> Vectors:
    """Leading principal components of the rows of X, up to a common scale."""
    n, d = X.shape
    if sparse.issparse(X):
        return _sparse_components(X, min(n_components, n - 1, d), random_state)
    with np.errstate(over="ignore", invalid="ignore"):
        centered = X - middle(X)
        largest = _largest(centered)
    if not np.isfinite(largest):
        # differences of the largest floats overflow
        return leading_components(X * X.dtype.type(2.0**-64), n_components, random_state)
    # sums of the largest floats overflow; a power of two rounds nothing
    np.ldexp(centered, -int(np.frexp(largest)[1]), out=centered)
    centered = _pull_in_outliers(centered)
    centered -= centered.mean(axis=0)
    largest = _largest(centered)
    if largest > 0:
        centered /= largest  # the square of any float must not overflow
    if d > n_components:
        with one_blas_thread():
            centered = _dense_components(centered, n_components, random_state)
    return np.asarray(centered, dtype=np.float32)


def _largest(values: NDArray[Any]) -> float:
    # The maximum of np.abs(values) would take their memory again.
    return max(float(values.max()), -float(values.min()))


def _pull_in_outliers(centered: NDArray[Any]) -> NDArray[Any]:
    lengths = np.maximum(centered.max(axis=1), -centered.min(axis=1)).astype(np.float64)
    near = find_inliers(lengths, FARTHEST)
    if near.all():
        return centered
    return np.asarray(centered * _outlier_factors(lengths, near)[:, None], dtype=centered.dtype)


def _outlier_factors(lengths: NDArray[np.float64], near: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Factors that move far rows close to the others and keep the order of their lengths."""
    most = float(lengths[near].max())
    factors = np.ones(lengths.size)
    factors[~near] = most / lengths[~near] * (1.0 + np.log10(lengths[~near] / most) / 50.0)
    return factors


def _dense_components(
    centered: NDArray[Any], n_components: int, random_state: Random
) -> NDArray[Any]:
    n, d = centered.shape
    if min(n, d) > EXACT_UP_TO:
        wanted = min(n_components, n, d)
        U, S, _ = randomized_svd(centered, wanted, n_iter=3, random_state=random_state)
        return U * S
    if n <= d:
        values, vectors = _leading_eigenpairs(centered @ centered.T, n_components)
        return vectors * np.sqrt(np.maximum(values, 0.0))
    return centered @ _leading_eigenpairs(centered.T @ centered, n_components)[1]


def _leading_eigenpairs(A: NDArray[Any], n_wanted: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Largest eigenvalues of a symmetric matrix, and their vectors."""
    n = len(A)
    values, vectors = linalg.eigh(A, subset_by_index=(max(0, n - n_wanted), n - 1))
    return values[::-1], vectors[:, ::-1]


def _sparse_components(X: Any, n_components: int, random_state: Random) -> Vectors:
    """Leading components of a sparse matrix, centered without filling its zeros."""
    n, d = X.shape
    # A matrix that is mostly filled is made dense: subtracting its mean late loses digits.
    if n_components < 1 or n_components >= min(n, d) or 2 * X.nnz > n * d:
        return leading_components(X.toarray(), max(1, n_components), random_state)
    lengths = np.asarray(abs(X).max(axis=1).toarray(), dtype=np.float64).ravel()
    near = find_inliers(lengths, FARTHEST)
    if not near.all():
        X = sparse.diags(_outlier_factors(lengths, near)) @ X
    mean = np.asarray(X.mean(axis=0)).ravel()
    centered = sparse.linalg.LinearOperator(
        (n, d),
        matvec=lambda v: X @ v.ravel() - mean @ v.ravel(),
        rmatvec=lambda v: X.T @ v.ravel() - mean * v.sum(),
        dtype=np.float64,
    )
    if not centered.matvec(np.random.RandomState(0).standard_normal(d)).any():
        return np.zeros((n, 1), dtype=np.float32)  # the solver fails on equal rows
    start = random_state.standard_normal(min(n, d))
    U, S, _ = sparse.linalg.svds(centered, k=n_components, v0=start)
    return np.asarray(U * (S / S.max() if S.max() > 0 else S), dtype=np.float32)


def unit_scale(features: Vectors) -> Vectors:
    """Features with mean squared length 1, so that their unit does not matter."""
    size = float(np.sqrt(np.einsum("ij,ij->", features, features, dtype=np.float64)))
    size /= np.sqrt(max(len(features), 1))
    return np.ascontiguousarray(features / np.float32(size)) if size > 0 else features
