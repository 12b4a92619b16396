"""Displays: they hold what was found and draw it, and never fit."""

from unshuffle.plotting._match_display import MatchDisplay

__all__ = ["MatchDisplay"]
