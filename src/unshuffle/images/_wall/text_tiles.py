"""Beginnings of texts drawn on tiles, so that texts can hang on a wall like pictures."""

import textwrap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from unshuffle._core.arrays import check_documents
from unshuffle._core.parameters import check_count, check_memory

# Fonts with many alphabets, where they are installed; Pillow's own has the Latin one.
_FONTS = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "Arial Unicode.ttf", "arial.ttf")
_SHEET, _INK, _LIGHT_INK = (255, 255, 255), (32, 30, 28), (128, 126, 120)
_LINES = 8  # of a tile


def text_tiles(texts: Sequence[str], *, side: int = 64) -> NDArray[np.uint8]:
    """Draw the beginning of each text on a square tile.

    Parameters
    ----------
    texts : sequence of str
        The texts, of which the first hundred letters or so are shown.
    side : int, default=64
        Side of the tiles in pixels. A larger one is easier to read.

    Returns
    -------
    tiles : ndarray of shape (n_texts, side, side, 3), uint8
        Dark letters on white, lighter after the first line, for `write_page` and `grid_sheet`.

    Examples
    --------
    >>> from unshuffle.images import text_tiles
    >>> text_tiles(["Once upon a time", "In the beginning"], side=48).shape
    (2, 48, 48, 3)
    """
    documents = check_documents(texts, "texts")
    side = check_count(side, "side", least=8, most=1024)
    check_memory(
        len(documents) * side**2 * 3,
        what=f"Drawing {len(documents):,} texts at {side} x {side} pixels",
        instead="Choose a smaller `side`.",
    )
    margin = max(1, side // 20)
    font = _find_font(max(4, (side - 2 * margin) * 4 // (5 * _LINES)))
    letters = max(1, int((side - 2 * margin) / font.getlength("n")))
    tiles = np.empty((len(documents), side, side, 3), dtype=np.uint8)
    height = font.size + font.size // 4
    for tile, text in zip(tiles, documents, strict=True):
        picture = Image.new("RGB", (side, side), _SHEET)
        pen = ImageDraw.Draw(picture)
        for number, (line, is_first) in enumerate(_lines(text, letters)):
            place = margin, margin + number * height
            pen.text(place, line, fill=_INK if is_first else _LIGHT_INK, font=font)
        tile[...] = np.asarray(picture)
    return tiles


def _lines(text: str, letters: int) -> list[tuple[str, bool]]:
    """Lines that fit on a tile, and whether they belong to the first line of the text."""
    start = text.strip()[: 4 * _LINES * letters]
    first, _, rest = start.partition("\n")
    title = textwrap.wrap(" ".join(first.split()), letters, max_lines=_LINES, placeholder="…")
    body = []
    if len(title) < _LINES:
        left = _LINES - len(title)
        body = textwrap.wrap(" ".join(rest.split()), letters, max_lines=left, placeholder="…")
    return [(line, True) for line in title] + [(line, False) for line in body]


def _find_font(size: int) -> ImageFont.FreeTypeFont:
    for name in _FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size=size)  # type: ignore[return-value]
