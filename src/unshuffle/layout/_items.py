"""The items that a user gives: checked, counted, joined to those that are there."""

from typing import Any

import numpy as np
from scipy import sparse

from unshuffle import _validation as check
from unshuffle.kernels._gram import collection_for_each


def is_list(kernel: Any) -> bool:
    """Whether several kernels are summed."""
    return isinstance(kernel, list | tuple)


def has_columns(kernel: Any) -> bool:
    """Whether one kernel compares items by one table of numbers."""
    return not is_list(kernel) and kernel != "text"


def check_items(X: Any, kernel: Any, name: str = "X") -> Any:
    """Items that the kernel can compare; with a list of kernels, a list of one for each."""
    if is_list(kernel):
        kernels = check.check_kernel_list(kernel)
        given = collection_for_each(X, len(kernels), name)
        shared = all(each is given[0] for each in given)
        found = [
            check_items(each, one, name if shared else f"{name}[{k}]")
            for k, (each, one) in enumerate(zip(given, kernels, strict=True))
        ]
        for k, each in enumerate(found):
            check.check_same_items(len_of(found[0]), len_of(each), f"{name}[0]", f"{name}[{k}]")
        return found
    return check.check_items_of_layout(X, name, kernel=kernel)


def len_of(X: Any) -> int:
    """Number of items: rows or documents, or those of each where `check_items` gave a list."""
    if hasattr(X, "shape"):
        return int(X.shape[0])
    return len(X) if check.is_text(X) else len_of(X[0])


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
        return [*old, *check.check_items_of_layout(new, "X", kernel=kernel)]
    added = check.check_new_vectors(new, old.shape[1])
    if sparse.issparse(old) or sparse.issparse(added):
        return sparse.vstack([old, added], format="csr")
    return np.concatenate([old, added])
