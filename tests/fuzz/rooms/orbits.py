"""Transformations that generate the data."""

from functools import cache
from typing import Any

import numpy as np
from tests.fuzz import scalars as s
from tests.fuzz import values as v
from tests.fuzz.subject import eight_rows, estimator, method, search
from tests.fuzz.values import Kind

import unshuffle

estimator(
    "orbits.OrbitLearner",
    {"X": v.table("n", "d"), "y": Kind(v.table("n", "d").ordinary, v.table("n", "d").hostile)},
    search(
        n_generators=s.count(None, 1, 2),
        loss=s.option("squared", "logtrace"),
        structure=s.option("general", "symmetric", "skew", "diagonal"),
        pairs=Kind(
            lambda case, rng: v.pick(rng, ["knn", "prototype", "all", [(0, 1), (1, 2), (2, 3)]]),
            v.pairs("n", "n").hostile,
        ),
        pattern=Kind(lambda case, rng: None, v.table("d", "d").hostile),
        constraints=Kind(lambda case, rng: None, v.pairs("n", "n").hostile),
        prototype=Kind(lambda case, rng: v.pick(rng, [None, 0]), v.table("n", "d").hostile),
        n_neighbors=s.count(2, 8),
        n_components=s.count(None, 1, 2),
        error_weight=s.real(1.0, 10.0),
        eps1=s.real(1e-3, 0.1),
        eps2=s.real(1e-3, 0.1),
        solver=s.option("lbfgs", "mm"),
        n_init=s.count(1, 2),
    ),
    loose={"objective_", "objective_path_"},
)


@cache
def _learner() -> Any:
    turn = np.linspace(0, 1.5, 12)
    X = np.stack([np.cos(turn), np.sin(turn), turn * 0 + 1], axis=1)
    return unshuffle.OrbitLearner(1, random_state=0).fit(X)


_three = eight_rows(v.table("n", "three"))
method("orbits.OrbitLearner.transform", _learner, {"X": _three})
method("orbits.OrbitLearner.score", _learner, {"X": _three, "y": _three})
method("orbits.OrbitLearner.flow", _learner, {"x": v.stack("three")}, words={"X"})
_ONE_COEFFICIENT = Kind(
    lambda case, rng: v.numbers(rng, (case.sizes["n"], 1)), v.table("n", "k").hostile, needed=True
)
method(
    "orbits.OrbitLearner.inverse_transform",
    _learner,
    {"c": _ONE_COEFFICIENT},
    words={"coefficients"},
)
method(
    "orbits.OrbitLearner.orbit",
    _learner,
    {"x": v.stack("three"), "c": _ONE_COEFFICIENT},
    words={"coefficients"},
)
method(
    "orbits.OrbitLearner.sample",
    _learner,
    {"n": s.count(1, 5), "random_state": s.seed()},
)
