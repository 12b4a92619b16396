"""Layouts that put similar items side by side, collages and summaries."""

from unshuffle.layout._collage import Collage
from unshuffle.layout._grid_layout import GridLayout
from unshuffle.layout._look_alikes import look_alikes
from unshuffle.layout._positions import Positions
from unshuffle.layout._shape import rectangle_for
from unshuffle.layout._sort_grid import sort_grid
from unshuffle.layout._summary import Summary, choose_representatives, summarize

__all__ = [
    "Collage",
    "GridLayout",
    "Positions",
    "Summary",
    "choose_representatives",
    "look_alikes",
    "rectangle_for",
    "sort_grid",
    "summarize",
]
