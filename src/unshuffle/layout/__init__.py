"""Layouts: like beside like on a grid, a shape or any points."""

from unshuffle.layout._grid_layout import GridLayout
from unshuffle.layout._positions import Positions
from unshuffle.layout._summary import Summary, choose_representatives, summarize

__all__ = ["GridLayout", "Positions", "Summary", "choose_representatives", "summarize"]
