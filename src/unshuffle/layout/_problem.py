"""The problem of a layout: items, what they are compared by, and the cells to put them in."""

from dataclasses import dataclass
from math import ceil, floor, sqrt
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse
from sklearn.utils.extmath import randomized_svd

from unshuffle._arrays import (
    as_rows,
    check_documents,
    check_magnitude,
    check_plain,
    check_same_items,
    check_vectors,
    find_inliers,
    is_text,
    middle,
)
from unshuffle._grams import (
    check_frozen,
    check_gram,
    check_kernel_list,
    collection_for_each,
    count_items,
)
from unshuffle._grids import check_points_end
from unshuffle._parallel import one_blas_thread
from unshuffle._parameters import check_count, check_memory
from unshuffle.kernels import center, combined_gram, nystroem_factors

Index = NDArray[np.intp]
Vectors = NDArray[np.float32]
Random = np.random.RandomState

# Up to so many items (or features) all components are computed, beyond that the leading ones.
EXACT_UP_TO = 1500
N_LANDMARKS = 1000
SCORED_COMPONENTS = 256
# Single precision sees nothing of a number beside one so many times as large, both squared.
FARTHEST = 2.0**12
# From so many items on, kernels are replaced by thin factors.
DENSE_UP_TO = 6000
THIN_KERNELS = ("rbf", "laplacian", "chi2", "text")
# Matrices of n^2 numbers that are held at the peak: two kernels, one of them centred, its
# eigenvectors and what LAPACK takes to find them.
N_MATRICES = 6
_SHAPES = (
    "Give (rows, columns), a 2-D boolean mask, or the row and column of each cell as an array of "
    "shape (n_cells, 2)."
)
# Items for which all widths of a rectangle are tried in less than a second.
MOST_ITEMS = 10**12


@dataclass(frozen=True)
class Problem:
    """Items to lay out, how they are compared, and the cells to put them in."""

    items: Any
    kernel: Any
    gamma: Any
    cells: "Shape"
    frozen: Index  # (n_frozen, 2): items and the cells they stay in
    random_state: Any
    n_jobs: int | None


class Layout(NamedTuple):
    """One layout: what solvers return, and offer as they go."""

    grid: NDArray[Any]  # item in each cell, cells row by row; -1 for none
    vectors: Any  # what the items were compared by
    objective: float = -np.inf  # where there is one for the whole layout

    @property
    def cells(self) -> Index:
        """Cell of each item."""
        held = np.flatnonzero(self.grid >= 0)
        cells = np.empty(held.size, dtype=np.intp)
        cells[self.grid[held]] = held
        return cells


@dataclass(frozen=True)
class Shape:
    """Cells to be filled."""

    cells: NDArray[np.bool_]  # (rows, columns): which cells there are; (n_cells,) for points
    points: NDArray[np.float64] | None  # (n_cells, 2): row and column of cells not on a grid
    wrap: bool  # whether opposite edges of the grid meet

    @classmethod
    def asked_for(cls, shape: Any, n_items: int, *, wrap: bool) -> "Shape":
        """Shape with room for all items, from what the user gave."""
        found = rectangle_for(n_items) if shape is None else check_layout_shape(shape)
        if isinstance(found, tuple):
            check_memory(
                80 * found[0] * found[1],  # cells alone, with the least features
                what=f"Laying out {found[0]:,} x {found[1]:,} cells",
                instead="Give a smaller `shape`.",
            )
            result = cls(np.ones(found, dtype=bool), None, wrap)
        elif found.dtype == bool:
            result = cls(np.array(found, dtype=bool), None, wrap)
        else:
            check_points_end(wrap)
            result = cls(np.ones(len(found), dtype=bool), np.array(found), False)
        if n_items > result.n_open:
            raise ValueError(
                f"{n_items:,} items do not fit into the {result.n_open:,} cells of {result}. Give "
                "a larger `shape`, or fewer items (`unshuffle.layout.choose_representatives` "
                "chooses some that stand for all)."
            )
        return result

    def __str__(self) -> str:
        if self.points is not None:
            return f"`shape` ({len(self.points):,} points)"
        size = f"{self.cells.shape[0]} x {self.cells.shape[1]}"
        return f"a {size} rectangle" if self.cells.all() else f"a {size} mask"

    @property
    def n_open(self) -> int:
        """Number of cells that items may be put into."""
        return int(self.cells.sum())

    def positions(self, cells: Index) -> NDArray[Any]:
        """Row and column of each of the listed cells."""
        if self.points is not None:
            return self.points[cells]
        return np.stack(np.divmod(cells, self.cells.shape[1]), axis=1)


def rectangle_for(n_items: int) -> tuple[int, int]:
    """Rows and columns of a rectangle, no wider than 16:9, that leaves the fewest cells empty.

    Parameters
    ----------
    n_items : int
        Number of items, from 1 to a trillion.

    Returns
    -------
    shape : (int, int)
        At least as wide as tall, and nearest to a square among those with as few empty cells.

    Examples
    --------
    >>> rectangle_for(320)
    (16, 20)
    """
    n_items = check_count(n_items, "n_items", most=MOST_ITEMS)
    least = ceil(sqrt(n_items))
    most = max(least, floor(sqrt(n_items * 16 / 9)))
    columns = min(range(least, most + 1), key=lambda each: (-n_items % each, each))
    return -(-n_items // columns), columns


def check_layout_shape(shape: Any) -> tuple[int, int] | NDArray[Any]:
    """Rows and columns, a mask with at least one cell, or finite points."""
    one_axis = isinstance(shape, tuple | list) or getattr(shape, "ndim", 0) == 1
    if one_axis and len(shape) == 2 and _are_counts(shape):
        return check_rectangle(shape)
    check_plain(shape, "`shape`")
    try:
        cells = np.asarray(shape)
    except ValueError as error:
        raise ValueError(f"`shape` is not understood: {error}. {_SHAPES}") from error
    if cells.dtype == bool:
        return _check_mask(cells)
    if cells.ndim != 2 or cells.shape[1] != 2 or cells.dtype.kind not in "iuf":
        raise ValueError(
            f"`shape` must say where the cells are, got an array of shape {cells.shape} and "
            f"dtype {cells.dtype}. {_SHAPES}"
        )
    return _check_points(cells.astype(np.float64))


def check_rectangle(shape: Any) -> tuple[int, int]:
    """Rows and columns, at least one of each."""
    if len(np.shape(shape)) != 1 or len(shape) != 2 or not _are_counts(shape):
        raise ValueError(
            f"`shape` must be (rows, columns), two whole numbers, got {shape!r}. Pass e.g. "
            "(16, 20)."
        )
    rows, columns = int(shape[0]), int(shape[1])
    if rows < 1 or columns < 1:
        raise ValueError(
            f"`shape` has no cell: it is {rows} x {columns}. Give at least one row and one column."
        )
    return rows, columns


def _are_counts(shape: Any) -> bool:
    return all(isinstance(each, Integral) and not isinstance(each, bool) for each in shape)


def _check_mask(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if mask.ndim != 2:
        raise ValueError(
            f"`shape` is a mask with {mask.ndim} dimension(s), got shape {mask.shape}. {_SHAPES}"
        )
    if not mask.any():
        raise ValueError(
            f"`shape` is a mask of {mask.shape[0]} x {mask.shape[1]} without a single cell. Set "
            "it to True where items may be."
        )
    return mask


def _check_points(points: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(points) == 0:
        raise ValueError(f"`shape` holds no point. {_SHAPES}")
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        raise ValueError(
            f"`shape` contains NaN or infinity (in {bad.size} of {len(points)} points, the first "
            f"is point {bad[0]}). Drop these points."
        )
    check_magnitude(points, "`shape`")
    return points


def check_frozen_cells(frozen: ArrayLike | None, n_items: int, cells: NDArray[np.bool_]) -> Index:
    """Items and the cells they are fixed to, each item and each cell once, inside the shape."""
    if frozen is None:
        return np.empty((0, 2), dtype=np.intp)
    pairs = check_frozen(frozen, n_items, cells.size, first="X", second="the layout", other="cell")
    outside = np.flatnonzero(~cells.reshape(-1)[pairs[:, 1]])
    if outside.size:
        item, cell = pairs[outside[0]]
        place = f" (row {cell // cells.shape[1]}, column {cell % cells.shape[1]})"
        raise ValueError(
            f"`frozen` puts item {item} into cell {cell}{place if cells.ndim == 2 else ''}, "
            "which is outside the mask. Choose a cell where the mask is True; cells count row "
            "by row from 0."
        )
    return pairs


def has_columns(kernel: Any) -> bool:
    """Whether one kernel compares items by one table of numbers."""
    return not isinstance(kernel, list | tuple) and kernel != "text"


def check_items(X: Any, kernel: Any, name: str = "X") -> Any:
    """Items that the kernel can compare; with a list of kernels, a list of one for each."""
    if kernel != "linear" and whole_gram(kernel, n_items := count_items(X, kernel)):
        check_memory(
            8 * N_MATRICES * n_items**2,
            what=f"Laying out {n_items:,} items by the similarities of all pairs",
            instead="Lay out a sample of the items (unshuffle.layout.choose_representatives "
            'chooses some that stand for all), or use kernel="linear", which needs no such '
            "matrix.",
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
            check_same_items(len_of(found[0]), len_of(each), f"{name}[0]", f"{name}[{k}]")
        return found
    if kernel == "text":
        return [str(X[0])] if is_text(X) and len(X) == 1 else check_documents(X, name)
    if isinstance(X, str) or is_text(X):
        return check_vectors(X, name, kernel=getattr(kernel, "__name__", kernel))
    if kernel == "precomputed" and np.shape(X) != (1, 1):
        return check_gram(X, name)
    return as_rows(X, name).copy()  # which is kept, and must not change with the user's


def whole_gram(kernel: Any, n_items: int) -> bool:
    """Whether all similarities between items are computed, or thin factors do."""
    if not isinstance(kernel, str):
        return True
    return kernel != "linear" and not (kernel in THIN_KERNELS and n_items > DENSE_UP_TO)


def len_of(X: Any) -> int:
    """Number of items: rows or documents, or those of each where `check_items` gave a list."""
    if hasattr(X, "shape"):
        return int(X.shape[0])
    return len(X) if is_text(X) else len_of(X[0])


def joined(old: Any, new: Any, kernel: Any) -> Any:
    """Old items, as they were checked, followed by new ones; a kernel matrix holds both."""
    if isinstance(kernel, list | tuple):
        parts = collection_for_each(new, len(kernel), "X")
        return [
            joined(each, part, one) for each, part, one in zip(old, parts, kernel, strict=True)
        ]
    if kernel == "precomputed":
        return new
    if kernel == "text":
        return [*old, *check_items(new, kernel)]
    added = as_rows(new, "X")
    if added.shape[1] != old.shape[1]:
        raise ValueError(
            f"X has {added.shape[1]} columns, but the items that are laid out have "
            f"{old.shape[1]}. Describe new items by the same columns."
        )
    if sparse.issparse(old) or sparse.issparse(added):
        return sparse.vstack([old, added], format="csr")
    return np.concatenate([old, added])


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


def kernel_features(X: Any, kernel: Any, gamma: Any, random_state: Random) -> Vectors:
    """Vectors whose inner products are the kernel's, as far as its leading components go."""
    n_items = len_of(X)
    if n_items == 1:
        return np.zeros((1, 1), dtype=np.float32)
    if not whole_gram(kernel, n_items):
        factors = nystroem_factors(X, kernel, N_LANDMARKS, gamma=gamma, random_state=random_state)
        return leading_components(factors, SCORED_COMPONENTS, random_state)
    centred = center(combined_gram(X, kernel, gamma=gamma, center=True))
    with one_blas_thread():
        if n_items <= EXACT_UP_TO:
            values, vectors = _largest(centred, n_items)
        else:
            wanted = SCORED_COMPONENTS
            vectors, values, _ = randomized_svd(centred, wanted, random_state=random_state)
    # What is below rounding, or below zero, is no direction that items differ in.
    kept = values > 1e-9 * max(float(values[0]), np.finfo(float).tiny)
    if not kept.any():
        return np.zeros((n_items, 1), dtype=np.float32)
    # a power of two rounds nothing, and keeps any kernel within single precision
    unit = 4.0 ** np.floor(np.log2(float(values[0])) / 2)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept] / unit), dtype=np.float32)


def leading_components(X: Any, n_components: int, random_state: Random) -> Vectors:
    """Centered rows of X, turned and cut to the directions in which they differ most."""
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
    """Rows about their middle, those brought closer that are so far out as to hide all others."""
    lengths = np.abs(centred).max(axis=1).astype(np.float64)
    near = find_inliers(lengths, FARTHEST)
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
    centred: NDArray[Any], n_components: int, random_state: Random
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


def _sparse_components(X: Any, n_components: int, random_state: Random) -> Vectors:
    """Leading components of a sparse matrix, whose zeros are not filled to center it."""
    n, d = X.shape
    # Of what is mostly filled, the mean would take the digits: that is not centered first.
    if n_components < 1 or n_components >= min(n, d) or 2 * X.nnz > n * d:
        return leading_components(X.toarray(), max(1, n_components), random_state)
    lengths = np.asarray(abs(X).max(axis=1).toarray(), dtype=np.float64).ravel()
    near = find_inliers(lengths, FARTHEST)
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


def unit_scale(features: Vectors) -> Vectors:
    """Features with mean squared length 1, so that nothing depends on their unit."""
    size = float(np.sqrt(np.einsum("ij,ij->", features, features, dtype=np.float64)))
    size /= np.sqrt(max(len(features), 1))
    return np.ascontiguousarray(features / np.float32(size)) if size > 0 else features
