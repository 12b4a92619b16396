"""The items that a user gives: checked, counted, joined to those that are there."""

from typing import Any

import numpy as np
from scipy import sparse

from unshuffle._arrays import check_same_items, is_text
from unshuffle._grams import check_kernel_list, collection_for_each, count_items
from unshuffle._grids import check_items_of_layout
from unshuffle._parameters import check_memory
from unshuffle.layout._checks import check_new_vectors

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
