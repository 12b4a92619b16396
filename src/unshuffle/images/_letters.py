"""Letters drawn on a coarse grid, so that they stay legible."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

Coverage = NDArray[np.float64]

_SHIFTS = np.arange(8) / 8
# A serif or an overshoot that reaches this far into a row is no reason to add the row.
_SLIGHT = 0.3
# Letters so high are legible wherever they fall on the cells.
_FINE = 24
# A code point that never has a letter: fonts draw it as they draw any letter they lack.
_NO_LETTER = "\uffff"


@dataclass(frozen=True, eq=False)
class Glyph:
    """A letter in fine pixels.

    Attributes
    ----------
    picture : PIL.Image.Image
        The letter, white on black, with room on all sides.
    top, bottom : int
        Where its ink begins and ends.
    is_even : bool
        Whether its right half mirrors the left, as in O: then it may not lean to one side.
    """

    picture: Image.Image
    top: int
    bottom: int
    is_even: bool


def draw_letters(lines: list[str], height: int, weight: float) -> Coverage:
    """How far letters cover each cell of a grid, from 0 to 1.

    Capitals reach from the edge of one row of cells to the edge of another, and each letter is
    shifted sideways to where its strokes fill whole cells: a letter half in one cell and half
    in the next would be a blot.

    Parameters
    ----------
    lines : list of str
        What to write, line by line, centred. Each holds something other than spaces.
    height : int
        Height of a capital in cells.
    weight : float
        Thickness added on each side of a stroke, as a share of the height of a capital. Larger
        is bolder.

    Returns
    -------
    coverage : ndarray of shape (rows, columns)
        Share of each cell that is inside a letter.
    """
    rows = [_draw_line(line, height, weight) for line in lines]
    width = max(row.shape[1] for row in rows)
    between = np.zeros((max(1, round(height / 6)), width))
    stacked: list[Coverage] = []
    for row in rows:
        left = (width - row.shape[1]) // 2
        stacked += [np.pad(row, ((0, 0), (left, width - row.shape[1] - left))), between]
    return np.concatenate(stacked[:-1])


def sharpness(coverage: Coverage) -> float:
    """1 where strokes fill whole cells, 0 where they half cover them."""
    touched = coverage[coverage > 0.02]
    return float(np.abs(2 * touched - 1).mean())


def clumsiness(cells: NDArray[np.bool_], lines: list[str], height: int) -> float:
    """How much the cells spoil letters: holes filled, strokes broken, gaps between them clotted.

    Parameters
    ----------
    cells : ndarray of bool of shape (rows, columns)
        The letters as drawn.
    lines : list of str
        What they say.
    height : int
        Height of a capital in cells.

    Returns
    -------
    clumsiness : float
        Strokes and holes too many or too few, plus the cells for each letter that are so deep
        in the ink that no stroke is that thick. 0 for high letters, which nothing spoils.
    """
    if height > _FINE:
        return 0.0
    letters = "".join(lines).replace(" ", "")
    true = np.sum([_true_pieces(each) for each in letters], axis=0)
    side = 2 * max(1, round(height / 10)) + 1
    deep = int(ndimage.binary_erosion(cells, np.ones((side, side))).sum())
    return float(np.abs(_pieces(cells) - true).sum()) + deep / len(letters)


def without_font(letters: str) -> list[str]:
    """Those of `letters` that the built-in font does not have."""
    blank = _glyph(_NO_LETTER, 40, 0).picture
    return [each for each in dict.fromkeys(letters) if _glyph(each, 40, 0).picture == blank]


def plain_letters(text: str) -> str:
    """The text with accents taken off the letters that the built-in font lacks."""
    lacking = without_font(text.replace(" ", ""))
    return "".join(normalize("NFKD", each)[0] if each in lacking else each for each in text)


@lru_cache(maxsize=512)
def _true_pieces(letter: str) -> NDArray[np.intp]:
    return _pieces(np.asarray(_glyph(letter, 200, 0).picture) >= 128)


def _pieces(ink: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Number of strokes that hang together, and of holes."""
    ink = np.pad(ink, 1)
    corners = np.ones((3, 3), dtype=int)
    return np.array([ndimage.label(ink, corners)[1], ndimage.label(~ink)[1] - 1])


def _resolution(height: int, weight: float) -> tuple[int, int]:
    """Size of the font in fine pixels, and what is added on each side of its strokes."""
    size = 200 if height <= 50 else 4 * height
    return size, round(weight * size)


def _draw_line(line: str, height: int, weight: float) -> Coverage:
    resolution = _resolution(height, weight)
    letters = sorted(set(line) - {" "})
    glyphs = [_glyph(each, *resolution) for each in letters]
    capital = _glyph("H", *resolution)
    cell = (capital.bottom - capital.top) / height
    tops = [(capital.top - each.top) / cell for each in glyphs]
    bottoms = [(each.bottom - capital.bottom) / cell for each in glyphs]
    above, below = (max(0, ceil(max(each) - _SLIGHT)) for each in (tops, bottoms))
    n_rows = above + height + below
    first = capital.top - above * cell
    drawn = {
        each: _on_cells(glyph, cell, first, n_rows)
        for each, glyph in zip(letters, glyphs, strict=True)
    }
    gap = np.zeros((n_rows, max(1, round(height / 8))))
    space = np.zeros((n_rows, max(2, round(height / 4))))
    pieces: list[Coverage] = []
    for each in line:
        pieces += [space if each == " " else drawn[each], gap]
    return np.concatenate(pieces[:-1], axis=1)


@lru_cache(maxsize=4096)
def _on_cells(glyph: Glyph, cell: float, first: float, n_rows: int) -> Coverage:
    """Share of each cell that a letter covers, shifted to where that is sharpest."""
    n_columns = ceil(glyph.picture.width / cell) + 1
    shifts = _SHIFTS if n_rows <= _FINE else _SHIFTS[:1]
    drawn = []
    for left in shifts * cell:
        # The glyph has room for this on all sides.
        box = (left, first, left + n_columns * cell, first + n_rows * cell)
        part = glyph.picture.transform(
            (n_columns * 8, n_rows * 8), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR
        )
        fine = np.asarray(part, dtype=np.float64) / 255
        coverage = fine.reshape(n_rows, 8, n_columns, 8).mean(axis=(1, 3))
        inked = np.flatnonzero((coverage >= 0.35).any(axis=0))
        # A hyphen or a full stop may be too slight to cover a cell by a third.
        drawn.append(coverage[:, inked[0] : inked[-1] + 1] if inked.size else coverage)
    return max(drawn, key=lambda each: sharpness(each) - glyph.is_even * _leaning(each))


def _leaning(coverage: Coverage) -> float:
    """0 where the right half mirrors the left, 1 where it is the opposite."""
    return float(np.abs(coverage - coverage[:, ::-1]).mean())


@lru_cache(maxsize=512)
def _glyph(letter: str, size: int, stroke: int) -> Glyph:
    font = ImageFont.load_default(size=size)
    left, _, right, _ = font.getbbox(letter, stroke_width=stroke)
    room = size // 2
    picture = Image.new("L", (ceil(right - left) + room, 2 * size + 2 * room))
    ImageDraw.Draw(picture).text(
        (room // 2 - left, room), letter, fill=255, font=font, stroke_width=stroke
    )
    box = picture.getbbox() or (0, room, 1, room + 1)
    ink = np.asarray(picture.crop(box), dtype=np.float64) / 255
    return Glyph(picture, box[1], box[3], is_even=_leaning(ink) < 0.05)
