"""Alignment of bags: quality compared with coherent point drift, and time per sweep."""

import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pycpd import DeformableRegistration, RigidRegistration
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from benchmarks._measure import Row, timed
from unshuffle import MinimumVolumePCA
from unshuffle._color import draw_points
from unshuffle.datasets import digit_sets

TOPIC = "Aligning bags of points"
SWEEPS = "One sweep over all bags, one core"
FORMATS = {"for 95 %": ".0f", "peer's ": ".0f", "error": ".4f", "peer's  ": ".4f"}
SWEEP_FORMATS = {"growth": ".1f"}
MNIST = "mnist3000.npz"
KEPT = 10
ROUNDS = 10

Stack = NDArray[np.float64]
Aligner = Callable[[Stack], Stack]


def rows(*, quick: bool) -> Iterator[Row]:
    """Both methods against registration of each bag onto the first, on the same bags."""
    peers: dict[str, Aligner] = {
        "pycpd rigid, onto the first": by_registration(RigidRegistration),
        "pycpd deformable, onto the first": by_registration(DeformableRegistration),
    }
    for problem, train, new in problems(quick=quick):
        theirs = {peer: timed(partial(align, train)) for peer, align in peers.items()}
        for estimator in ("mean", "covariance"):
            ours, seconds = timed(partial(by_volume(estimator), train))
            for peer, (aligned, peer_seconds) in theirs.items():
                yield Row(
                    TOPIC,
                    f"{problem}, {estimator}",
                    f"MinimumVolumePCA, {estimator}",
                    seconds,
                    peer,
                    peer_seconds,
                    {
                        "bags": len(train),
                        "for 95 %": float(n_components(ours)),
                        "peer's ": float(n_components(aligned)),
                        "error": new_error(ours, new),
                        "peer's  ": new_error(aligned, new),
                    },
                )


def sweep_rows(*, quick: bool) -> Iterator[Row]:
    """Seconds per sweep as the number of bags, of points or the kernel rank doubles."""
    bags, points = 100, 70
    doubled = (1, 2) if quick else (1, 2, 4)
    for estimator in ("mean", "covariance"):
        for name, sizes in (
            ("bags", [(bags * k, points, None) for k in doubled]),
            ("points", [(bags, points * k, None) for k in doubled]),
            ("rank", [(bags, points, 15 * k) for k in doubled]),
        ):
            before = None
            for n_bags, n_points, rank in sizes:
                seconds = sweep_seconds(estimator, n_bags, n_points, rank)
                growth = None if before is None else seconds / before
                before = seconds
                yield Row(
                    SWEEPS,
                    f"{estimator}, more {name}",
                    f"MinimumVolumePCA, {estimator}",
                    seconds,
                    "-",
                    None,
                    {"bags": n_bags, "points": n_points, "rank": rank, "growth": growth},
                )


def sweep_seconds(estimator: str, n_bags: int, n_points: int, rank: int | None) -> float:
    """Shortest time between two progress reports of this method's own stage."""
    clouds = digit_sets(n_bags, digits=(0, 3, 6, 9), n_points=n_points).sets
    kernel = "linear" if rank is None else "rbf"
    seen: list[tuple[str, float]] = []

    def watch(state: object) -> None:
        seen.append((state.stage, time.perf_counter()))  # type: ignore[attr-defined]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few sweeps are enough, so the fit does not converge
        MinimumVolumePCA(
            method=estimator, kernel=kernel, n_landmarks=rank or 1, max_iter=4, callback=watch
        ).fit(clouds)
    last = [when for stage, when in seen if stage == seen[-1][0]]
    return float(np.diff(last).min())


def problems(*, quick: bool) -> Iterator[tuple[str, Stack, Stack]]:
    """Bags to align and new bags: scikit-learn's digits, and MNIST if available."""
    n_train, n_new = (40, 20) if quick else (100, 60)
    clouds = digit_sets(n_train + n_new).sets
    yield "digits 3 and 9", *standardized(clouds[:n_train], clouds[n_train:])
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("UNSHUFFLE_DATA", beside)) / MNIST
    if path.exists():
        clouds = mnist_clouds(path, n_train + n_new)
        yield "MNIST 3 and 9", *standardized(clouds[:n_train], clouds[n_train:])


def mnist_clouds(path: Path, n: int) -> Stack:
    """Digits as bags of points, from larger pictures than scikit-learn's."""
    data, rng = np.load(path), np.random.RandomState(0)
    kinds = [np.flatnonzero(data["labels"] == digit)[: n // 2] for digit in (3, 9)]
    images = data["images"][np.stack(kinds, axis=1).ravel()].astype(float)
    return np.stack([draw_points(each, 70, rng) for each in images])


def standardized(train: Stack, new: Stack) -> tuple[Stack, Stack]:
    middle, scale = train.mean(axis=(0, 1)), (train - train.mean(axis=(0, 1))).std()
    return (train - middle) / scale, (new - middle) / scale


def by_volume(estimator: str) -> Aligner:
    def align(bags: Stack) -> Stack:
        found = MinimumVolumePCA(method=estimator).fit(bags)
        return np.take_along_axis(bags, found.permutations_[:, :, np.newaxis], axis=1)

    return align


def by_registration(method: type) -> Aligner:
    """Register each bag onto the first, then assign closest points one to one."""

    def align(bags: Stack) -> Stack:
        moved = [bags[0], *(method(X=bags[0], Y=bag).register()[0] for bag in bags[1:])]
        return np.stack([bag[nearest(bags[0], on)] for bag, on in zip(bags, moved, strict=True)])

    return align


def nearest(targets: Stack, points: Stack) -> NDArray[np.intp]:
    return np.asarray(linear_sum_assignment(cdist(targets, points, "sqeuclidean"))[1])


def n_components(bags: Stack, share: float = 0.95) -> int:
    held = PCA().fit(bags.reshape(len(bags), -1)).explained_variance_ratio_
    return int(np.searchsorted(np.cumsum(held), share) + 1)


def new_error(bags: Stack, new: Stack) -> float:
    """Share of the variance of new bags that a few components of the aligned bags miss."""
    pca = PCA(KEPT).fit(bags.reshape(len(bags), -1))
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
