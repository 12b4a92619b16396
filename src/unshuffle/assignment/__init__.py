"""Matching of rows to columns (exact, by auction, soft), and the ascents built on it."""

from unshuffle._assign import Assignment
from unshuffle.assignment._climb import Climbed, assign_free, climb
from unshuffle.assignment._mean_field import (
    anneal,
    interaction_spread,
    mean_field,
    one_hot,
    soften,
)
from unshuffle.assignment._quadratic import QuadraticProblem, matched_sums
from unshuffle.assignment._soft import soft_assignment
from unshuffle.assignment._solve import solve_assignment
from unshuffle.assignment._swaps import swap_ascent

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
