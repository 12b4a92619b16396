"""Display classes that hold results and draw them. They never fit."""

from unshuffle.plotting._alignment_display import AlignmentDisplay
from unshuffle.plotting._collage_display import CollageDisplay
from unshuffle.plotting._gram_display import GramDisplay
from unshuffle.plotting._layout_display import LayoutDisplay
from unshuffle.plotting._match_display import MatchDisplay
from unshuffle.plotting._mixture_display import MixtureDisplay
from unshuffle.plotting._orbit_display import OrbitDisplay
from unshuffle.plotting._template_display import TemplateDisplay

__all__ = [
    "AlignmentDisplay",
    "CollageDisplay",
    "GramDisplay",
    "LayoutDisplay",
    "MatchDisplay",
    "MixtureDisplay",
    "OrbitDisplay",
    "TemplateDisplay",
]
