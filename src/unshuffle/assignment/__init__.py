"""Matching of rows to columns (exact, by auction, soft), and the ascents built on it."""

from unshuffle._assign import Assignment
from unshuffle.assignment._mean_field import (
    anneal,
    interaction_spread,
    mean_field,
    one_hot,
    soften,
)
from unshuffle.assignment._quadratic import (
    Climbed,
    QuadraticProblem,
    assign_free,
    climb,
    matched_sums,
    swap_ascent,
)
from unshuffle.assignment._soft import soft_assignment
from unshuffle.assignment._solve import solve_assignment

__all__ = [
    "Assignment",
    "Climbed",
    "QuadraticProblem",
    "anneal",
    "assign_free",
    "climb",
    "interaction_spread",
    "matched_sums",
    "mean_field",
    "one_hot",
    "soft_assignment",
    "soften",
    "solve_assignment",
    "swap_ascent",
]
