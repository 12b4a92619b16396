"""Alignment of bags, compared with coherent point drift."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from benchmarks._measure import Method, Problem, data_folder
from unshuffle import MinimumVolumePCA
from unshuffle._core.color import draw_points
from unshuffle.datasets import digit_sets

TITLE = "Aligning bags of points"
ABOUT = (
    "One core. Handwritten 3s and 9s as bags of 70 points: those of scikit-learn, and of MNIST if "
    "the data folder has them. pycpd registers each bag onto the first, and closest points are "
    "then assigned one to one. Components are those that 95 % of the variance of the aligned bags "
    "need; the error is the share of the variance of 20 new bags that ten of them miss. Growth is "
    "that of the whole fit."
)
SIZE = "bags"
CORES = 1
KEPT = 10
ROUNDS = 10
N_NEW = 20

Stack = NDArray[np.float64]


class Bags(NamedTuple):
    """Bags to align, and new ones."""

    train: Stack
    new: Stack


def problems() -> Iterator[Problem]:
    methods = (
        Method("MinimumVolumePCA, mean", partial(by_volume, method="mean"), "ours"),
        Method("MinimumVolumePCA, covariance", partial(by_volume, method="covariance"), "ours"),
        Method("pycpd, rigid", partial(by_registration, method="Rigid"), needs="pycpd"),
        Method("pycpd, deformable", partial(by_registration, method="Deformable"), needs="pycpd"),
    )
    for n in (20, 40, 100, 200):
        yield Problem("digits", n, partial(digits, n), methods, judge, quick=n == 20)
    if data_folder() is not None:
        yield Problem("MNIST", 100, partial(mnist, 100), methods, judge)


def digits(n: int) -> Bags:
    return standardized(np.asarray(digit_sets(n + N_NEW).sets), n)


def mnist(n: int) -> Bags:
    """Bags of points from larger pictures than scikit-learn's."""
    folder = data_folder()
    assert folder is not None
    data, rng = np.load(folder / "mnist3000.npz"), np.random.RandomState(0)
    n_each = (n + N_NEW) // 2
    kinds = [np.flatnonzero(data["labels"] == digit)[:n_each] for digit in (3, 9)]
    images = data["images"][np.stack(kinds, axis=1).ravel()].astype(float)
    return standardized(np.stack([draw_points(each, 70, rng) for each in images]), n)


def standardized(clouds: Stack, n: int) -> Bags:
    train, new = clouds[:n], clouds[n:]
    middle, scale = train.mean(axis=(0, 1)), (train - train.mean(axis=(0, 1))).std()
    return Bags((train - middle) / scale, (new - middle) / scale)


def by_volume(bags: Bags, *, method: str) -> Callable[[], Stack]:
    MinimumVolumePCA(method=method).fit(bags.train[:3])  # compile

    def align() -> Stack:
        found = MinimumVolumePCA(method=method).fit(bags.train)
        return np.take_along_axis(bags.train, found.permutations_[:, :, np.newaxis], axis=1)

    return align


def by_registration(bags: Bags, *, method: str) -> Callable[[], Stack]:
    """Register each bag onto the first, then assign closest points one to one."""
    import pycpd

    register = getattr(pycpd, f"{method}Registration")
    first, *others = bags.train

    def align() -> Stack:
        moved = [first, *(register(X=first, Y=bag).register()[0] for bag in others)]
        pairs = zip(bags.train, moved, strict=True)
        return np.stack([bag[nearest(first, on)] for bag, on in pairs])

    return align


def nearest(targets: Stack, points: Stack) -> NDArray[np.intp]:
    return np.asarray(linear_sum_assignment(cdist(targets, points, "sqeuclidean"))[1])


def judge(bags: Bags, aligned: Stack) -> dict[str, float]:
    flat = aligned.reshape(len(aligned), -1)
    held = PCA().fit(flat).explained_variance_ratio_
    n_components = int(np.searchsorted(np.cumsum(held), 0.95) + 1)
    return {"error": new_error(flat, bags.new), "components": n_components}


def new_error(flat: Stack, new: Stack) -> float:
    """Share of the variance of new bags that a few components of the aligned bags miss."""
    pca = PCA(KEPT).fit(flat)
    missed = total = 0.0
    for bag in new:
        points = bag[nearest(pca.mean_.reshape(bag.shape), bag)]
        for _ in range(ROUNDS):
            order = nearest(rebuilt(pca, points), points)
            points = points[order]
            if np.array_equal(order, np.arange(len(order))):
                break
        missed += float(((points - rebuilt(pca, points)) ** 2).sum())
        total += float(((bag - bag.mean(axis=0)) ** 2).sum())
    return missed / total


def rebuilt(pca: PCA, points: Stack) -> Stack:
    flat = pca.inverse_transform(pca.transform(points.reshape(1, -1)))
    return np.asarray(flat.reshape(points.shape))
