"""How right a matching is, where the truth is known."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._arrays import (
    as_array,
    check_magnitude,
    check_partner_vectors,
    check_same_items,
    check_vectors,
)
from unshuffle._distances import squared_distances

_BLOCK = 512


def matching_accuracy(
    permutation: ArrayLike, truth: ArrayLike, *, duplicates: ArrayLike | None = None
) -> float:
    """Share of the items that are matched as they should be.

    Parameters
    ----------
    permutation : array-like of int, shape (n,)
        `y[permutation[i]]` is matched to item i of X; -1 where it is unmatched.
    truth : array-like of int, shape (n,)
        The same for the right matching. An item left unmatched counts as right only where the
        truth leaves it unmatched too.
    duplicates : array-like of shape (n_y,), default=None
        Label of each item of y, equal where items are exact duplicates of each other; then either
        of them counts as right. Class labels give the share matched within the right class.

    Returns
    -------
    float
        From 0 to 1; larger is better.

    Examples
    --------
    >>> matching_accuracy([0, 2, 1, 3], [0, 1, 2, 3])
    0.5
    >>> matching_accuracy([0, 2, 1, 3], [0, 1, 2, 3], duplicates=["a", "b", "b", "c"])
    1.0
    """
    found = check_matches(permutation, "permutation")
    right = check_matches(truth, "truth")
    check_same_items(found.size, right.size, "permutation", "truth")
    correct = found == right
    if duplicates is not None:
        labels = check_labels(duplicates, int(max(found.max(), right.max())) + 1, "duplicates")
        matched = (found >= 0) & (right >= 0)
        correct[matched] = labels[found[matched]] == labels[right[matched]]
    return float(correct.mean())


def foscttm(X: Any, y: Any) -> float:
    """Fraction of samples closer than the true match, averaged over all items of both sides.

    Parameters
    ----------
    X, y : array-like or sparse matrix of shape (n, d)
        Items in one common space; row i of X truly belongs to row i of y. For a matching of a
        collection onto y, pass `y[permutation]` and y.

    Returns
    -------
    float
        0 where every item is nearest to its true match, about 0.5 at random; smaller is better.
        Of the n squared distances from an item of X to those of y, the fraction below that to its
        match; the same from y to X; the mean of both.

    Notes
    -----
    O(n^2 d) time, O(n) memory beyond X and y. Equally distant items do not count as closer.

    References
    ----------
    Liu et al., "Jointly embedding multiple single-cell omics measurements", WABI (2019).

    Examples
    --------
    >>> foscttm([[0.0], [1.0]], [[0.1], [1.2]])
    0.0
    >>> foscttm([[0.0], [1.0]], [[1.0], [0.0]])
    0.5
    """
    X = check_vectors(X, "X")
    y = check_partner_vectors(y, X, "y")
    check_same_items(X.shape[0], y.shape[0], "X", "y")
    check_magnitude(X, "X")
    check_magnitude(y, "y")
    n_items = X.shape[0]
    true = [
        squared_distances(X[start : start + _BLOCK], y[start : start + _BLOCK]).diagonal()
        for start in _starts(n_items)
    ]
    # Equal distances may differ in their last digits; a tie is not closer.
    limit = np.concatenate(true) * (1 - 1e-9)
    closer = 0.0
    for start in _starts(n_items):
        distances = squared_distances(X[start : start + _BLOCK], y)
        closer += float(np.sum(distances < limit[start : start + _BLOCK, None]))
        closer += float(np.sum(distances < limit))
    return closer / (2 * n_items**2)


def _starts(n_items: int) -> range:
    return range(0, n_items, _BLOCK)


def check_labels(labels: ArrayLike, n_items: int, name: str) -> NDArray[Any]:
    """One label for each item, of which there are at least `n_items`."""
    values = as_array(labels, f"`{name}`")
    if values.ndim != 1 or values.size < n_items:
        raise ValueError(
            f"`{name}` must hold one label for each item of y, at least {n_items} here, "
            f"got shape {values.shape}."
        )
    return values


def check_matches(matches: ArrayLike, name: str) -> NDArray[np.intp]:
    """Positions in y, one for each item of X, -1 for unmatched."""
    values = as_array(matches, f"`{name}`")
    if values.ndim != 1 or values.size == 0 or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"`{name}` must be a list of whole numbers, one for each item of X, got shape "
            f"{values.shape} and dtype {values.dtype}."
        )
    if values.min() < -1:
        raise ValueError(
            f"`{name}` holds {values.min()}. Use positions counted from 0, and -1 for unmatched."
        )
    return values.astype(np.intp)
