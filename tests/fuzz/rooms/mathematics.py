"""Assignment and metrics."""

import numpy as np
from tests.fuzz import files
from tests.fuzz import scalars as s
from tests.fuzz import values as v
from tests.fuzz.subject import SUBJECTS, VECTOR_KERNELS, function, is_matching
from tests.fuzz.values import Kind

from unshuffle import assignment, metrics

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
    "quadratic_assignment",
    {
        "A": v.stack("n", "n"),
        "B": v.stack("m", "m"),
        "method": s.option(None, "faq", "2opt"),
        "cost": v.stack("n", "m"),
        "maximize": s.flag(),
        "frozen": v.pairs("n", "m"),
        "n_init": s.count(1, 3, huge=()),
        "max_time": s.real(None, 0.1),
        "random_state": s.seed(),
        "n_jobs": s.jobs(),
        "callback": s.callback(),
    },
    check=lambda result, arguments: (
        None
        if is_matching(result.col_ind, np.shape(arguments["B"])[1])
        else f"not a matching: {result.col_ind}"
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
