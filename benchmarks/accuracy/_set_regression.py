"""Regression on sets: a number for each set, by kernel ridge or by aligned vectors.

Parameters are chosen by cross-validation on the training sets.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from unshuffle import SetAligner
from unshuffle.kernels import MaxMapKernel, MeanMapKernel, SetKernelSum, SlicedWassersteinKernel

Draw = Callable[[np.random.Generator], tuple[NDArray[np.float64], float]]
N_TRAIN, N_TEST = 150, 150
PENALTIES = (1e-3, 1e-2, 1e-1)


def report(folder: Path, *, n_draws: int = 5, first_seed: int = 0) -> Iterator[str]:
    """R^2 on new sets; other seeds are for experiments."""
    for title, draw in TASKS.items():
        for name, model in models().items():
            scores = [_score(model, draw, first_seed + seed) for seed in range(n_draws)]
            error = np.std(scores, ddof=1) / np.sqrt(n_draws)
            yield (
                f"{title}: {name}, R^2 {np.mean(scores):.2f} (standard error {error:.2f}, "
                f"{n_draws} draws)"
            )


def bend(rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
    """How bent an arc of 60 points is."""
    amount, along = rng.uniform(-1, 1), rng.uniform(-1, 1, 60)
    points = np.column_stack([along, amount * along**2])
    return points + 0.05 * rng.normal(size=(60, 2)), amount


def share(rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
    """The share of one kind among 30 to 80 points of five kinds in three dimensions."""
    kinds = np.random.default_rng(0).normal(size=(5, 3))
    shares = rng.dirichlet(np.ones(5))
    drawn = rng.choice(5, int(rng.integers(30, 81)), p=shares)
    return kinds[drawn] + 0.6 * rng.normal(size=(len(drawn), 3)), float(shares[0])


def spread(rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
    """The logarithm of the ratio of two standard deviations, of 30 to 80 points in the plane."""
    width, height = rng.uniform(0.5, 1.5, 2)
    points = rng.normal(size=(int(rng.integers(30, 81)), 2)) * [width, height]
    return points, float(np.log(width / height))


def nearest(rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
    """How far the nearest of 50 points in five dimensions is from a place that is not told."""
    place = np.random.default_rng(0).normal(size=5)
    points = rng.normal(size=(50, 5))
    return points, float(np.linalg.norm(points - place, axis=1).min())


TASKS: dict[str, Draw] = {
    "how bent": bend,
    "share of a kind": share,
    "ratio of spreads": spread,
    "nearest point": nearest,
}


def models() -> dict[str, Any]:
    """Regressors of sets with their searches."""
    widths = {"sets__gamma": (0.3, 1.0, 3.0)}
    return {
        "SetAligner, RidgeCV": make_pipeline(SetAligner(random_state=0), RidgeCV()),
        "mean map, kernel ridge": _ridge(MeanMapKernel(), widths),
        "max map, kernel ridge": _ridge(MaxMapKernel(n_landmarks=500), widths),
        "sliced Wasserstein, kernel ridge": _ridge(SlicedWassersteinKernel(random_state=0), {}),
        "sum of mean and max map, kernel ridge": _ridge(
            SetKernelSum([MeanMapKernel(outer="rbf"), MaxMapKernel(n_landmarks=500)]), {}
        ),
    }


def _ridge(kernel: Any, grid: dict[str, Any]) -> GridSearchCV:
    pipeline = Pipeline([("sets", kernel), ("ridge", KernelRidge(kernel="precomputed"))])
    # Kernel ridge has no intercept, so the target is centered.
    model = TransformedTargetRegressor(pipeline, transformer=StandardScaler())
    grid = {**grid, "ridge__alpha": PENALTIES}
    return GridSearchCV(model, {f"regressor__{key}": value for key, value in grid.items()}, cv=3)


def _score(model: Any, draw: Draw, seed: int) -> float:
    rng = np.random.default_rng(seed)
    sets, targets = map(list, zip(*(draw(rng) for _ in range(N_TRAIN + N_TEST)), strict=True))
    model.fit(sets[:N_TRAIN], np.array(targets[:N_TRAIN]))
    return float(model.score(sets[N_TRAIN:], np.array(targets[N_TRAIN:])))
