"""Which pairs to ask about: doubtful ones that stand for many other doubtful ones.

What the partners of items look like is taken for a Gaussian process over the items. Its covariance
is the square of their centered kernel, since partners follow the leading principal components
more closely than the others. An answer tells one partner, and something about those of similar
items. The best question removes the most variance of all items, weighted by the doubt about them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.types import Floats

Items = NDArray[np.intp]

# Leading principal components of the kernel that are used; the square leaves little of others.
RANK = 64
# Variance of a partner around what similar items tell, relative to the mean variance.
NOISE = 0.03
# Gains closer than this share are equal but for rounding; the first item is then taken.
ROUNDING = 1e-6
LEAST_DOUBT = 0.01  # no pair is certain; of pairs that are nearly so, typical ones come first
BLOCK = 8192  # items at a time, to limit memory


def choose_questions(
    vectors: NDArray[np.float32], free: Items, doubts: Floats, known: Items, k: int
) -> Items:
    """The k of the free items whose answers help most, the best first.

    `vectors` is (n, r), and its inner products are the covariance. `doubts` is about the free
    items; answers about `known` were given before. Time grows as k n r^2.
    """
    n_items, rank = vectors.shape
    scale = np.sqrt(np.einsum("ij,ij->", vectors, vectors, dtype=np.float64) / n_items) or 1.0
    ends = range(BLOCK, free.size, BLOCK)
    parts = np.split(free, ends)

    def read(items: Any) -> Floats:
        return np.asarray(vectors[items], dtype=np.float64) / float(scale)

    doubted = np.zeros((rank, rank))  # F' W F
    for part, weights in zip(parts, np.split(np.maximum(doubts, LEAST_DOUBT), ends), strict=True):
        F = read(part)
        doubted += F.T @ (weights[:, None] * F)
    posterior = np.eye(rank)
    for item in known:
        posterior = after_answer(posterior, read(item))
    asked: list[int] = []  # places among the free items
    for _ in range(k):
        gains = np.concatenate([compute_gains(read(part), posterior, doubted) for part in parts])
        gains[asked] = -np.inf
        best = gains.max()
        asked.append(int(np.argmax(gains >= best - ROUNDING * abs(best))))
        posterior = after_answer(posterior, read(free[asked[-1]]))
    return free[asked]


def compute_gains(F: Floats, posterior: Floats, doubted: Floats) -> Floats:
    """Variance that an answer about each item removes, summed over all items by their doubt.

    With C = F S F' the covariance after the earlier answers (S is `posterior`), it is
    sum_j w_j C[j, i]^2 / (C[i, i] + noise) for item i.
    """
    G = F @ posterior
    removed = np.einsum("ij,ij->i", G @ doubted, G)
    return np.asarray(removed / (np.einsum("ij,ij->i", G, F) + NOISE))


def after_answer(posterior: Floats, f: Floats) -> Floats:
    """Covariance of the components after an answer about the item with the vector f."""
    g = posterior @ f
    return np.asarray(posterior - np.outer(g, g) / (f @ g + NOISE))
