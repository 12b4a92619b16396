"""Matching of rows to columns: linear and quadratic, exact, by search, and soft."""

from unshuffle._assign.linear import Assignment
from unshuffle.assignment._quadratic_assignment import quadratic_assignment
from unshuffle.assignment._soft import soft_assignment
from unshuffle.assignment._solve import solve_assignment

__all__ = ["Assignment", "quadratic_assignment", "soft_assignment", "solve_assignment"]
