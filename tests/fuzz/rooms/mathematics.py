"""Assignment, objectives and metrics."""

from functools import partial
from typing import Any

import numpy as np
from tests.fuzz import files
from tests.fuzz import scalars as s
from tests.fuzz import values as v
from tests.fuzz.subject import SUBJECTS, VECTOR_KERNELS, add, function, is_matching
from tests.fuzz.values import Kind, needed

from unshuffle import assignment, metrics, objectives

function(
    assignment,
    "solve_assignment",
    {
        "cost": v.stack("n", "m"),
        "maximize": s.flag(),
        "solver": s.option("auto", "exact", "auction"),
        "prices": Kind(v.stack("m").ordinary, v.stack("m").hostile),
        "frozen": v.pairs("n", "m"),
        "forbidden": v.pairs("n", "m"),
    },
    check=lambda result, arguments: (
        None
        if is_matching(result.columns, np.shape(arguments["cost"])[1])
        else f"not an assignment: {result.columns}"
    ),
)
function(
    assignment,
    "soft_assignment",
    {
        "cost": v.stack("n", "m"),
        "epsilon": s.real(None, 0.1, 1),
        "maximize": s.flag(),
        "frozen": v.pairs("n", "m"),
        "forbidden": v.pairs("n", "m"),
        "max_iter": s.count(10, 1000),
        "tol": s.real(1e-6, 1e-3),
    },
)


def _problem(K: Any, L: Any, cost: Any = None, frozen: Any = None) -> Any:
    more = {} if frozen is None else {"frozen": frozen}
    return assignment.QuadraticProblem(K, L, cost, **more)


def _on_problem(function: Any, K: Any, L: Any, **more: Any) -> Any:
    return function(_problem(K, L), **more)


_PROBLEM = {
    "K": v.gram("n"),
    "L": v.gram("m"),
    "cost": Kind(v.stack("n", "m").ordinary, v.stack("n", "m").hostile),
    "frozen": v.pairs("n", "m"),
}
add("assignment.QuadraticProblem", _problem, _PROBLEM)
for _name, _more in {
    "climb": {
        "permutation": v.permutation("n", "m"),
        "max_iter": s.count(1, 100),
        "tol": s.real(0.0, 1e-3),
        "swaps": s.flag(),
    },
    "swap_ascent": {"permutation": v.permutation("n", "m"), "max_sweeps": s.count(1, 100)},
    "mean_field": {
        "shares": v.shares("n", "m"),
        "temperature": s.real(0.1, 0.2),
        "max_iter": s.count(1, 12),
        "tol": s.real(0.01, 0.1),
    },
    "anneal": {"shares": v.shares("n", "m")},
    "assign_free": {"benefit": v.stack("n", "m")},
    "soften": {"benefit": v.stack("n", "m"), "temperature": needed(s.real(0.1, 0.2))},
}.items():
    add(
        f"assignment.{_name}",
        partial(_on_problem, getattr(assignment, _name)),
        {"K": v.gram("n"), "L": v.gram("m"), **_more},
    )
function(
    assignment,
    "matched_sums",
    {"K": v.gram("n"), "L": v.gram("m"), "permutation": v.permutation("n", "m")},
)
function(assignment, "interaction_spread", {"benefit": v.stack("n", "m")})
function(
    assignment,
    "one_hot",
    {
        "permutation": v.permutation("n"),
        "n_partners": Kind(lambda case, rng: case.sizes["n"], s.count(1).hostile, needed=True),
    },
)

_PAIR = {"K": v.gram("n"), "L": v.gram("n")}
_ORDERED = {**_PAIR, "permutation": v.permutation("n")}
for _name in ("hsic_biased", "hsic_unbiased", "hsic_zeroed"):
    function(objectives, _name, _PAIR)
for _name in ("trace_value", "trace_gradient", "squared_value"):
    function(objectives, _name, _ORDERED)
function(objectives, "squared_gradient", {**_ORDERED, "squared_L": v.gram("n")})
for _name in ("entropy_value", "entropy_gradient", "entropy_weights"):
    function(objectives, _name, {**_ORDERED, "ridge": needed(s.real(0.1, 1.0))})
function(
    objectives,
    "entropy_swap_changes",
    {"others": v.gram("n"), "K": v.gram("n"), "ridge": needed(s.real(0.1, 1.0))},
    gaps={""},
)
function(objectives, "multiway_hsic", {"kernels": v.grams("n")})
function(objectives, "multiway_weights", {"kernels": v.grams("n")})
function(objectives, "multiway_entropy", {"kernels": v.grams("n"), "ridge": needed(s.real(0.1))})
function(
    objectives,
    "multiway_gradient",
    {"kernels": v.grams("n"), "K": v.gram("n"), "permutation": v.permutation("n")},
)
_MOTIONS = v.stack("n", "d", "d", scale=0.3)
_VECTORS = v.table("n", "d")
function(objectives, "matrix_exponentials", {"A": _MOTIONS})
function(objectives, "exponential_action", {"A": _MOTIONS, "z": _VECTORS})
function(
    objectives,
    "exponential_jacobian",
    {"A": _MOTIONS, "z": _VECTORS, "directions": v.stack("k", "d", "d")},
)
function(objectives, "exponential_pullback", {"A": _MOTIONS, "z": _VECTORS, "w": _VECTORS})
function(
    objectives,
    "combined",
    {"generators": v.stack("k", "d", "d"), "coefficients": v.table("n", "k")},
)
function(
    objectives,
    "log_trace_errors",
    {
        "A": _MOTIONS,
        "targets": v.table("n", "d", positive=True),
        "sources": v.table("n", "d", positive=True),
    },
)
function(
    objectives,
    "log_trace_errors_diagonal",
    {
        "diagonals": v.table("n", "d"),
        "targets": v.table("n", "d", positive=True),
        "sources": v.table("n", "d", positive=True),
    },
)
function(
    objectives,
    "matrix_volume",
    {
        "vectors": v.table("n", "d"),
        "eps1": needed(s.real(1e-3, 0.1)),
        "eps2": needed(s.real(1e-3, 0.1)),
    },
)
for _name in ("squared_orbit_cost", "squared_orbit_gradient"):
    function(
        objectives,
        _name,
        {
            "generators": v.stack("k", "d", "d", scale=0.3),
            "coefficients": v.table("n", "k"),
            "targets": _VECTORS,
            "sources": _VECTORS,
        },
        words={"A"},  # the motions that generators and coefficients make
    )
for _name in ("covariance_spectrum", "expected_trace", "trace_of_bags"):
    function(objectives, _name, {"points": v.stack("b", "n", "two")})
function(
    objectives, "log_volume", {"points": v.stack("b", "n", "two"), "ridge": needed(s.real(0.1))}
)
add(
    "objectives.LeaveOneOut",
    lambda gram, ridge: objectives.LeaveOneOut.of(gram, ridge=ridge),
    {"gram": v.gram("n"), "ridge": needed(s.real(0.1, 1.0))},
)

_KERNEL_PAIR = {
    "X": v.table("n", "d"),
    "y": v.table("n", "e"),
    "kernel": s.kernel(*VECTOR_KERNELS),
    "kernel_y": s.kernel(*VECTOR_KERNELS, None),
    "gamma": s.real(None, 0.5),
}
function(metrics, "cka", {**_KERNEL_PAIR, "debiased": s.flag()})
function(metrics, "hsic", {**_KERNEL_PAIR, "estimator": s.option("biased", "unbiased")})
function(metrics, "foscttm", {"X": v.table("n", "d"), "y": v.table("n", "d")})
function(
    metrics,
    "matching_accuracy",
    {"permutation": v.permutation("n"), "truth": v.permutation("n"), "duplicates": v.labels("n")},
)
SUBJECTS["metrics.matching_accuracy"].arguments["duplicates"] = Kind(
    v.labels("n").ordinary, v.labels("n").hostile
)
function(
    metrics,
    "distance_preservation_quality",
    {
        "X": v.table("n", "d"),
        "grid": files.grid("n"),
        "p": s.real(1, 16),
        "wrap": s.flag(),
        "n_rows": s.count(None, 4),
        "random_state": s.seed(),
    },
)
function(
    metrics,
    "neighbor_distance",
    {"X": v.table("n", "d"), "grid": files.grid("n"), "wrap": s.flag()},
)
