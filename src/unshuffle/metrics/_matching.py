"""Accuracy of matchings whose truth is known."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import (
    as_array,
    check_magnitude,
    check_partner_vectors,
    check_same_items,
    check_vectors,
)
from unshuffle._core.distances import squared_distances

_BLOCK = 512


def matching_accuracy(
    permutation: ArrayLike, truth: ArrayLike, *, duplicates: ArrayLike | None = None
) -> float:
    """Share of the items that are matched correctly.

    Parameters
    ----------
    permutation : array-like of int, shape (n,)
        `y[permutation[i]]` is matched to item i of X; -1 if unmatched.
    truth : array-like of int, shape (n,)
        The same for the true matching. An unmatched item is correct only if the truth leaves it
        unmatched too.
    duplicates : array-like of shape (n_y,), default=None
        Label of each item of y, equal for exact duplicates, any of which is then correct. Class
        labels give the share matched within the right class.

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
        labels = as_array(duplicates, "`duplicates`")
        n_items = int(max(found.max(), right.max())) + 1
        if labels.ndim != 1 or labels.size < n_items:
            raise ValueError(
                f"`duplicates` must hold one label for each item of y, at least {n_items} here, "
                f"got shape {labels.shape}."
            )
        matched = (found >= 0) & (right >= 0)
        correct[matched] = labels[found[matched]] == labels[right[matched]]
    return float(correct.mean())


def foscttm(X: Any, y: Any) -> float:
    """Fraction of samples closer than the true match, averaged over all items of both sides.

    Parameters
    ----------
    X, y : array-like or sparse matrix of shape (n, d)
        Items in one common space; row i of y is the true match of row i of X. For a matching onto
        y, pass `y[permutation]` and y.

    Returns
    -------
    float
        0 if every item is nearest to its true match, about 0.5 at random; smaller is better. The
        mean of both directions, from X to y and from y to X.

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
    blocks = [slice(start, start + _BLOCK) for start in range(0, n_items, _BLOCK)]
    true = [squared_distances(X[rows], y[rows]).diagonal() for rows in blocks]
    # Equal distances may differ in their last digits; a tie is not closer.
    limit = np.concatenate(true) * (1 - 1e-9)
    closer = 0.0
    for rows in blocks:
        distances = squared_distances(X[rows], y)
        closer += float(np.sum(distances < limit[rows, None]))
        closer += float(np.sum(distances < limit))
    return closer / (2 * n_items**2)


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
