"""Orbit learning: growth of time with points, dimensions and generators."""

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm
from sklearn.exceptions import ConvergenceWarning

from benchmarks._measure import Row, timed
from unshuffle import OrbitLearner

TOPIC = "Learning orbits, one core"
FORMATS = {"left": ".1e"}


def rows(*, quick: bool) -> Iterator[Row]:
    """Points of a noisy sphere, and long vectors that rotate in separate planes."""
    for n in (100, 200) if quick else (100, 200, 400, 800):
        for noise in (0.0, 0.01):
            yield _row(f"sphere in 3-D, noise {noise}", sphere(n, noise), 2, pairs="knn")
    for d in (10, 20) if quick else (10, 20, 50):
        views = turning(72, d)
        pairs = np.stack([np.arange(1, 72), np.arange(71)], axis=1)
        for k in (1, 2):
            yield _row(f"72 turns in {d}-D, {k} generator(s)", views, k, pairs=pairs)


def sphere(n: int, noise: float) -> NDArray[np.float64]:
    """Points of a patch of 50 by 50 degrees."""
    rng = np.random.default_rng(0)
    a, e = np.radians(rng.uniform(20, 70, (2, n)))
    points = np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=1)
    return points + noise * rng.normal(size=points.shape)


def turning(n: int, d: int) -> NDArray[np.float64]:
    """A vector that rotates in many planes at once, with a little noise."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(d, d)) / np.sqrt(d)
    step = expm(0.1 * (A - A.T))
    vectors = [rng.normal(size=d)]
    for _ in range(n - 1):
        vectors.append(step @ vectors[-1])
    return np.array(vectors) + 1e-3 * rng.normal(size=(n, d))


def _row(problem: str, X: NDArray[np.float64], k: int, **options: object) -> Row:
    def fit() -> OrbitLearner:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return OrbitLearner(k, random_state=0, **options).fit(X)

    learner, seconds = timed(fit)
    return Row(
        TOPIC,
        problem,
        "OrbitLearner",
        seconds,
        "-",
        None,
        {
            "points": len(X),
            "pairs": len(learner.pairs_),
            "steps": learner.n_iter_,
            "left": learner.objective_ / float(np.sum(X**2)),
        },
    )
