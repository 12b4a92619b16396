"""Layouts: like beside like on a grid, a shape or any points."""

from unshuffle.layout._positions import Positions

__all__ = ["Positions"]
