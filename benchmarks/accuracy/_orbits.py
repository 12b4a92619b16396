"""Extrapolation of orbits beyond the data, and interpolated views of a rotating object."""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm, subspace_angles
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from unshuffle import OrbitLearner

Array = NDArray[np.float64]
N_GIVEN, N_UNSEEN = 200, 100
N_STARTS = 1
STEP = 6  # every sixth of the 72 views is used: 30 degrees apart
SCALING = np.array([np.diag([1.0, 0, -1]) / 2**0.5, np.diag([0.5, -1, 0.5]) / 1.5**0.5])
SYMMETRIC = np.array(
    [
        [[0.3, 0.5, -0.2], [0.5, -0.4, 0.3], [-0.2, 0.3, 0.1]],
        [[-0.5, 0.1, 0.4], [0.1, 0.2, 0.2], [0.4, 0.2, 0.3]],
    ]
)
SYMMETRIC /= np.linalg.norm(SYMMETRIC, axis=(1, 2), keepdims=True)


@dataclass(frozen=True)
class Problem:
    """Points of an orbit, points of its unseen part, and a vector on the orbit."""

    given: Array
    unseen: Array
    prototype: Array


def circle(seed: int) -> Problem:
    """An arc of 70 degrees."""
    rng = np.random.default_rng(seed)

    def at(degrees: Any) -> Array:
        angle = np.radians(degrees)
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    return Problem(at(rng.uniform(10, 80, N_GIVEN)), at(rng.uniform(-135, 225, N_UNSEEN)), at(45))


def sphere(seed: int, noise: float = 0.0) -> Problem:
    """A patch of 50 by 50 degrees."""
    rng = np.random.default_rng(seed)

    def at(azimuth: Any, elevation: Any) -> Array:
        a, e = np.radians(azimuth), np.radians(elevation)
        return np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=-1)

    given = at(*rng.uniform(20, 70, (2, N_GIVEN)))
    unseen = at(*rng.uniform(-20, 110, (2, N_UNSEEN)))
    return Problem(given + noise * rng.normal(size=given.shape), unseen, at(45, 45))


def pair_of(generators: Array, seed: int) -> Problem:
    """Coefficients in a quarter of a disk; unseen ones in a square around the disk."""
    rng = np.random.default_rng(seed)
    start = np.array([1, 1.2, 0.9])
    radius, angle = 0.9 * np.sqrt(rng.random(N_GIVEN)), rng.uniform(0, np.pi / 2, N_GIVEN)
    given = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    unseen = rng.uniform(-1.35, 1.35, (N_UNSEEN, 2))

    def at(coefficients: Array) -> Array:
        return expm(np.tensordot(coefficients, generators, axes=1)) @ start

    return Problem(at(given), at(unseen), start)


def report(folder: Path, seeds: tuple[int, ...] = tuple(range(100, 110))) -> Iterator[str]:
    log_trace = {"loss": "logtrace", "structure": "diagonal", "pairs": "prototype"}
    symmetric = {"structure": "symmetric", "pairs": "prototype"}
    scaling = [pair_of(SCALING, seed) for seed in seeds]
    yield _extrapolation("scaling, diagonal log-trace", scaling, 2, truth=SCALING, **log_trace)
    closer = log_trace | {"error_weight": 1000.0}
    yield _extrapolation("the same, error_weight=1000", scaling, 2, truth=SCALING, **closer)
    yield _extrapolation("scaling, squared", scaling, 2, truth=SCALING)
    yield _extrapolation("circle", [circle(seed) for seed in seeds], 1)
    for noise in (0.0, 0.01, 0.03):
        wedges = [sphere(seed, noise) for seed in seeds]
        yield _extrapolation(f"sphere wedge, noise {noise}", wedges, 2)
    pairs = [pair_of(SYMMETRIC, seed) for seed in seeds]
    yield _extrapolation("symmetric pair", pairs, 2, **symmetric)
    for structure in ("symmetric", "general"):
        title = f"symmetric pair from neighbors, {structure}"
        yield _extrapolation(title, pairs, 2, structure=structure)
    yield _spiral()
    for noise in (0.0, 0.01, 0.03):
        yield _three_asked([sphere(seed, noise) for seed in seeds], noise)
        yield from _chosen_numbers(seeds, noise)
    for solver in ("mm", "lbfgs"):
        yield _papers_experiment("scaling", scaling[0], "diagonal", solver)
        yield _papers_experiment("sphere", sphere(seeds[0]), "symmetric", solver)
    yield from _views(folder)
    yield _long_vectors(folder)


def _extrapolation(
    title: str, problems: list[Problem], k: int, *, truth: Array | None = None, **options: Any
) -> str:
    errors, angles, seconds = [], [], []
    for seed, problem in enumerate(problems):
        start = time.process_time()
        learner = _fitted(problem.given, k, prototype=problem.prototype, seed=seed, **options)
        seconds.append(time.process_time() - start)
        errors.append(_error(learner, problem.unseen))
        if truth is not None:
            spans = truth.reshape(len(truth), -1), learner.generators_.reshape(k, -1)
            angles.append(subspace_angles(spans[0].T, spans[1].T).max())
    spread = np.mean([np.sqrt(np.sum(np.var(each.unseen, axis=0))) for each in problems])
    turned = f", generators off by {np.max(angles):.1e} rad" if angles else ""
    return (
        f"{title}: error beyond the data {np.mean(errors):.4f} (worst of {len(errors)} draws "
        f"{np.max(errors):.4f}, spread {spread:.2f}){turned}, {np.max(seconds):.1f} s of CPU"
    )


def _error(learner: OrbitLearner, X: Array) -> float:
    """Root mean squared distance of vectors from the orbit."""
    missed = X - learner.inverse_transform(learner.transform(X))
    return float(np.sqrt(np.mean(np.sum(missed**2, axis=1))))


def _spiral() -> str:
    def at(t: Array) -> Array:
        return np.exp(-0.15 * t)[:, None] * np.stack([np.cos(t), np.sin(t)], axis=1)

    learner = _fitted(at(np.linspace(0, 2, 80)), 1)
    errors = [_error(learner, at(np.linspace(0, last, 400))) for last in (8.0, 25.0)]
    return (
        f"spiral, learned for t up to 2: error {errors[0]:.1e} up to 8, {errors[1]:.1e} up to 25"
    )


def _three_asked(patches: list[Problem], noise: float) -> str:
    """Radius of orbits of three generators, moved by coefficients of length up to 3."""
    errors, named = [], 0
    for seed, patch in enumerate(patches):
        rng = np.random.default_rng(seed)
        c = rng.normal(size=(200, 3))
        c *= 3 * rng.random((200, 1)) / np.linalg.norm(c, axis=1, keepdims=True)
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            learner = OrbitLearner(3, random_state=seed).fit(patch.given)
        if any("Pass n_generators=2" in str(each.message) for each in issued):
            named += 1
        else:
            lengths = np.linalg.norm(learner.orbit(patch.prototype, c), axis=1)
            errors.append(np.abs(lengths - 1).max())
    worst = f"radius off by at most {np.max(errors):.1e} otherwise" if errors else "none completed"
    return f"sphere wedge, noise {noise}, three asked: {named} of {len(patches)} warn, {worst}"


def _chosen_numbers(seeds: tuple[int, ...], noise: float) -> Iterator[str]:
    """Numbers of generators that `score` chooses by threefold cross-validation."""
    makers: dict[str, tuple[int, Callable[[int], Problem]]] = {
        "circle": (1, circle),
        "sphere wedge": (2, sphere),
        "scaling": (2, lambda seed: pair_of(SCALING, seed)),
        "symmetric pair": (2, lambda seed: pair_of(SYMMETRIC, seed)),
    }
    for title, (number, make) in makers.items():
        chosen = []
        for seed in seeds:
            X = make(seed).given
            X = X + noise * np.random.default_rng(seed).normal(size=X.shape)
            grid = {"n_generators": [1, 2, 3][: X.shape[1]]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                learner = OrbitLearner(random_state=seed, n_init=2, tol=1e-4, max_iter=60)
                search = GridSearchCV(learner, grid, cv=3, refit=False).fit(X)
            chosen.append(search.best_params_["n_generators"])
        right = chosen.count(number)
        yield f"number by score, {title}, noise {noise}: right in {right} of {len(chosen)}"


def _papers_experiment(title: str, wedge: Problem, structure: str, solver: str) -> str:
    learner = OrbitLearner(
        2, "logtrace", structure, "prototype", prototype=wedge.prototype, solver=solver
    ).fit(wedge.given)
    rises = int((np.diff(learner.objective_path_) > 0).sum())
    moved = learner.inverse_transform(3 * learner.coefficients_)
    return (
        f"a positive wedge, {title}, {structure}, {solver}: {learner.n_iter_} steps, "
        f"{rises} of them up, converged {learner.converged_}, "
        f"spectrum {np.round(learner.spectrum_[:4], 5).tolist()}, "
        f"{(moved > 0).all(axis=1).mean():.2f} of the extrapolated orbit positive"
    )


def _views(folder: Path) -> Iterator[str]:
    data = np.load(folder / "coil20_obj1to12.npz")
    images = data["images"] / 255.0
    found = []
    for number in np.unique(data["object_id"]):
        own = data["object_id"] == number
        views = images[own][np.argsort(data["angle"][own])]
        start = time.process_time()
        errors = view_errors(views)
        found.append(errors)
        yield (
            f"coil20 object {number}, views between: orbit {errors[0]:.4f}, "
            f"linear {errors[1]:.4f}, nearest {errors[2]:.4f}, "
            f"{time.process_time() - start:.0f} s of CPU"
        )
    means, wins = np.mean(found, axis=0), np.array(found)
    yield (
        f"coil20, mean: orbit {means[0]:.4f}, linear {means[1]:.4f}, nearest {means[2]:.4f}; "
        f"orbit best on {(wins[:, 0] < wins[:, 1:].min(axis=1)).sum()} of {len(wins)}"
    )


def view_errors(views: Array) -> tuple[float, float, float]:
    """Mean error of intermediate views by orbits, by lines and by the nearest given view.

    A turntable moves pixels along rows, so the pairs are rows of one view and of the next. The
    given views determine one generator, with a separate coefficient for each row. An intermediate
    view is a weighted mean of the view before, moved forward, and of the next, moved back.
    """
    given = views[::STEP]
    n, height, width = given.shape
    X = given.reshape(-1, width)
    sources = np.arange(len(X))
    targets = (sources + height) % len(X)
    seen = np.minimum(np.abs(X[sources]).max(axis=1), np.abs(X[targets]).max(axis=1)) > 0
    band = np.abs(np.subtract.outer(np.arange(width), np.arange(width))) == 1
    pairs = np.stack([targets, sources], axis=1)[seen]
    learner = _fitted(X, 1, structure="skew", pattern=band, pairs=pairs, n_init=N_STARTS)
    errors: list[list[float]] = [[], [], []]
    for k in range(1, STEP):
        share = k / STEP
        between = (1 - share) * X + share * X[targets]
        nearest = X if share < 0.5 else X[targets]
        moved = between.copy()
        for (t, s), c in zip(pairs, learner.coefficients_, strict=True):
            on, back = learner.orbit(X[s], share * c), learner.orbit(X[t], (share - 1) * c)
            moved[s] = (1 - share) * on + share * back
        truth = views[k::STEP]
        for kept, guess in zip(errors, (moved, between, nearest), strict=True):
            missed = guess.reshape(n, height, width) - truth
            kept.append(float(np.sqrt(np.mean(missed**2, axis=(1, 2))).mean()))
    return tuple(float(np.mean(each)) for each in errors)  # type: ignore[return-value]


def _long_vectors(folder: Path) -> str:
    data = np.load(folder / "coil20_obj1to12.npz")
    views = data["images"][data["object_id"] == 1].reshape(72, -1) / 255.0
    pairs = np.stack([(np.arange(72) + 1) % 72, np.arange(72)], axis=1)
    start = time.process_time()
    learner = _fitted(views, 1, pairs=pairs, n_components=50)
    seconds = time.process_time() - start
    whole = np.sum((views - views.mean(axis=0)) ** 2)
    return (
        f"72 views in 50 dimensions, general matrices: {learner.objective_ / whole:.1e} of the "
        f"squares left, {seconds:.1f} s of CPU"
    )


def _fitted(X: Array, k: int, *, seed: int = 0, **options: Any) -> OrbitLearner:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return OrbitLearner(k, random_state=seed, **options).fit(X)
