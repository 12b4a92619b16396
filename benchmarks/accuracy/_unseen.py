"""How often does a map learned from a blind matching find the partners of items never seen?

Features of the same photos by two encoders. The first 400 photos are matched without a known
pair; the partner of each of the next 200 is looked for among their 200 partners.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from unshuffle import KernelizedSorting
from unshuffle.matching import Matches

Array = NDArray[np.float64]
N_FITTED, N_UNSEEN, N_KNOWN = 400, 200, 30


def report(folder: Path) -> Iterator[str]:
    """Blindly, with 30 known pairs, and with all pairs known."""
    features = np.load(folder / "encoder_features.npz")
    n_items = N_FITTED + N_UNSEEN
    X, y = (features[f"cifar10_1000_lite{k}"][:n_items].astype(float) for k in (0, 2))
    new_x, new_y = X[N_FITTED:], y[N_FITTED:]
    order = np.random.RandomState(0).permutation(N_FITTED)
    place = np.argsort(order)
    for name, n_known in (("blind", 0), ("30 known", N_KNOWN), ("all known", N_FITTED)):
        known = np.random.RandomState(1).permutation(N_FITTED)[:n_known]
        sorting = KernelizedSorting(random_state=0)
        frozen = np.column_stack([known, place[known]])
        sorting.fit(X[:N_FITTED], y[order], frozen=frozen if n_known else None)
        n_right = int((order[sorting.permutation_] == np.arange(N_FITTED)).sum())
        yield (
            f"encoders, {name}: {n_right} of {N_FITTED} right ({sorting.scaling_}, "
            f"{sorting.kernel_}); {_unseen(sorting.match(new_x, new_y))}; nearest expected "
            f"features {_nearest(sorting.transform(new_x), new_y):.3f}"
        )


def _unseen(matches: Matches) -> str:
    assert matches.candidates is not None
    right = np.arange(N_UNSEEN)
    return (
        f"unseen: best of {N_UNSEEN} {(matches.candidates[:, 0] == right).mean():.3f}, matched "
        f"{(matches.permutation == right).mean():.3f}, mean confidence "
        f"{matches.confidence.mean():.3f}"
    )


def _nearest(placed: Array, y: Array) -> float:
    return float((cdist(placed, y).argmin(axis=1) == np.arange(len(y))).mean())
