"""Matching of rows to columns: exact, by auction, or soft."""

from unshuffle.assignment._result import Assignment
from unshuffle.assignment._solve import solve_assignment

__all__ = ["Assignment", "solve_assignment"]
