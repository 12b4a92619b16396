"""Matching of rows to columns: exact, by auction, and soft."""

from unshuffle._assign import Assignment
from unshuffle.assignment._soft import soft_assignment
from unshuffle.assignment._solve import solve_assignment

__all__ = ["Assignment", "soft_assignment", "solve_assignment"]
