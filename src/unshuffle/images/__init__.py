"""Pictures: safe reading, features, masks, sheets, morphs and web pages."""

from unshuffle._core.color import rgb_to_lab
from unshuffle._pictures.cache import default_cache
from unshuffle.images._describe import describe, read_features
from unshuffle.images._features import color_histogram, color_texture, lab_pixels
from unshuffle.images._masks import read_mask, text_mask
from unshuffle.images._morphs import Drawing, morph_frames, morph_strip, picture_points, save_gif
from unshuffle.images._reading import ImageCollection, read_folder, read_image, visible_files
from unshuffle.images._sheets import grid_sheet, matched_sheet, points_sheet, save_sheet
from unshuffle.images._visual_words import visual_words
from unshuffle.images._wall.text_tiles import text_tiles
from unshuffle.images._wall.writer import write_page

__all__ = [
    "Drawing",
    "ImageCollection",
    "color_histogram",
    "color_texture",
    "default_cache",
    "describe",
    "grid_sheet",
    "lab_pixels",
    "matched_sheet",
    "morph_frames",
    "morph_strip",
    "picture_points",
    "points_sheet",
    "read_features",
    "read_folder",
    "read_image",
    "read_mask",
    "rgb_to_lab",
    "save_gif",
    "save_sheet",
    "text_mask",
    "text_tiles",
    "visible_files",
    "visual_words",
    "write_page",
]
