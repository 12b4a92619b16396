"""Items that the symmetries of a matrix map onto each other."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.types import Floats, Indices

# Items tried per item in the search of a symmetry; beyond, it counts as absent.
MOST_TRIED = 10


def representatives(M: Floats, costs: Floats, free: Indices, done: Indices) -> NDArray[np.bool_]:
    """Mask of one free item per orbit of the symmetries of M that keep the costs and `done`."""
    seen = np.hstack([costs, M[np.ix_(free, done)], M[np.ix_(done, free)].T])
    M = M[np.ix_(free, free)]
    labels = _refine(M, np.unique(seen, axis=0, return_inverse=True)[1].reshape(-1))
    first = np.ones(free.size, dtype=bool)
    for a in range(free.size):
        alike = np.flatnonzero(first[:a] & (labels[:a] == labels[a]))
        first[a] = not any(_is_symmetric(M, labels, int(b), a) for b in alike)
    return first


def _refine(M: Floats, labels: Indices) -> Indices:
    """Split items with equal labels by the entries they have with others, until none differ."""
    n_labels = 0
    while n_labels < labels.max() + 1:
        n_labels = labels.max() + 1
        entries = np.stack(np.broadcast_arrays(M, M.T, labels.astype(float)), axis=2)
        entries[np.diag_indices_from(M)] = 0.0
        kinds = np.unique(entries.reshape(-1, 3), axis=0, return_inverse=True)[1].reshape(M.shape)
        kinds = np.column_stack([labels, np.sort(kinds, axis=1)])
        labels = np.unique(kinds, axis=0, return_inverse=True)[1].reshape(-1)
    return labels


def _is_symmetric(M: Floats, labels: Indices, a: int, b: int) -> bool:
    """Whether a symmetry of M maps a to b; also False if the search would take long."""
    n = M.shape[0]
    items = [a, *np.delete(np.arange(n), a)]
    images = [b]
    n_tried = 0

    def extend() -> bool:
        nonlocal n_tried
        k = len(images)
        if k == n:
            return True
        x = items[k]
        for y in np.setdiff1d(np.flatnonzero(labels == labels[x]), images):
            n_tried += 1
            if n_tried > MOST_TRIED * n:
                return False
            same = np.array_equal(M[x, items[:k]], M[y, images])
            if same and np.array_equal(M[items[:k], x], M[images, y]):
                images.append(y)
                if extend():
                    return True
                images.pop()
        return False

    return extend()
