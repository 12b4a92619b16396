"""Orbit learning: growth of time with points, dimensions and generators."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm, logm

from benchmarks._measure import Method, Problem
from unshuffle import OrbitLearner

TITLE = "Learning orbits"
ABOUT = (
    "One core. Points of a patch of a sphere, paired by nearest neighbors, with and without "
    "noise; and 72 vectors, each the one before rotated in many planes at once, of growing "
    "length. Where each vector is paired with the one before, a single generator is also the "
    "matrix logarithm of the least squares map, by SciPy. Error left is the sum of squares that "
    "the generators miss over that of the points."
)
SIZE = "points or dimensions"
CORES = 1

Array = NDArray[np.float64]


class Snapshots(NamedTuple):
    """Points, and which of them are pairs."""

    X: Array
    pairs: Any


def problems() -> Iterator[Problem]:
    for noise in (0.0, 0.01):
        for n in (100, 200, 400, 800):
            make = partial(sphere, n, noise)
            methods = (Method("OrbitLearner, 2 generators", partial(learn, k=2), "ours"),)
            name = f"sphere, noise {noise}" if noise else "sphere"
            yield Problem(name, n, make, methods, left, quick=n == 200)
    for d in (10, 20, 50):
        methods = tuple(
            Method(name, partial(learn, k=k), "ours", quick=k == 1)
            for k, name in ((1, "OrbitLearner"), (2, "OrbitLearner, 2 generators"))
        )
        methods += (Method("SciPy, least squares and logm", by_logarithm),)
        yield Problem("72 turns", d, partial(turning, 72, d), methods, left, quick=d == 10)


def sphere(n: int, noise: float) -> Snapshots:
    """Points of a patch of 50 by 50 degrees."""
    rng = np.random.default_rng(0)
    a, e = np.radians(rng.uniform(20, 70, (2, n)))
    points = np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=1)
    return Snapshots(points + noise * rng.normal(size=points.shape), "knn")


def turning(n: int, d: int) -> Snapshots:
    """A vector that rotates in many planes at once, with a little noise."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(d, d)) / np.sqrt(d)
    step = expm(0.1 * (A - A.T))
    vectors = [rng.normal(size=d)]
    for _ in range(n - 1):
        vectors.append(step @ vectors[-1])
    X = np.array(vectors) + 1e-3 * rng.normal(size=(n, d))
    return Snapshots(X, np.stack([np.arange(1, n), np.arange(n - 1)], axis=1))


def learn(data: Snapshots, *, k: int) -> Callable[[], OrbitLearner]:
    OrbitLearner(k, random_state=0).fit(sphere(30, 0.0).X)  # compile
    learner = OrbitLearner(k, pairs=data.pairs, random_state=0)
    return lambda: learner.fit(data.X)


def by_logarithm(data: Snapshots) -> Callable[[], Array]:
    after, before = data.X[data.pairs[:, 0]], data.X[data.pairs[:, 1]]
    return lambda: logm(np.linalg.lstsq(before, after)[0].T).real


def left(data: Snapshots, found: Any) -> dict[str, float]:
    total = float(np.sum(data.X**2))
    if isinstance(found, np.ndarray):
        after, before = data.X[data.pairs[:, 0]], data.X[data.pairs[:, 1]]
        return {"error left": float(np.sum((after - before @ expm(found).T) ** 2)) / total}
    return {
        "error left": found.objective_ / total,
        "pairs": len(found.pairs_),
        "steps": int(found.n_iter_),
    }
