"""Numbers of generators: too many asked for, and those that cross-validation chooses."""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV

from benchmarks.papers._orbit_learning import SYMMETRIC, Problem, circle, pair_of, scaling, sphere
from unshuffle import OrbitLearner


def report(folder: Path, seeds: tuple[int, ...] = tuple(range(100, 110))) -> Iterator[str]:
    del folder
    for noise in (0.0, 0.01, 0.03):
        yield _three_asked([sphere(seed, noise) for seed in seeds], noise)
        yield from _chosen_numbers(seeds, noise)


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
        "scaling": (2, scaling),
        "symmetric pair": (2, partial(pair_of, SYMMETRIC)),
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
