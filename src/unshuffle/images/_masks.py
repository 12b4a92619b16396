"""Shapes to lay items out on: letters of a text, or the dark parts of a picture."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, sqrt
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, ImageOps
from scipy import ndimage

from unshuffle._decoding import FORMATS, MAX_PIXELS, explain, file_size
from unshuffle._files import as_path
from unshuffle._parameters import check_count, check_flag

Coverage = NDArray[np.float64]
Cells = NDArray[np.bool_]
_SHIFTS = np.arange(8) / 8
# A serif or an overshoot that reaches this far into a row does not add the row.
_SLIGHT = 0.3
# Letters so high are legible wherever they fall on the cells.
_FINE = 24
# A code point that never has a letter: fonts draw it as they draw any letter they lack.
_NO_LETTER = "\uffff"
# Below five cells an E has no room for its bars and the gaps between them.
LEAST_HEIGHT = 5
DEFAULT_HEIGHT = 12
MOST_CELLS = 4_000_000
# Cells may be taken or left where the letter covers about half of them: that turns "about n"
# into "exactly n". Further from half, letters fray.
_NEAR_HALF = 0.15
# Thickness added to the strokes on each side, as a share of the height of a capital: the
# plain font is too thin for a cell to be more than half covered.
_WEIGHTS = (0.02, 0.03, 0.04, 0.05, 0.065, 0.08)
_WEIGHT = 0.045
# Around the scale at which areas agree; thin shapes need more to have cells half covered at all.
_SCALES = np.concatenate([np.linspace(0.8, 1.3, 51), np.geomspace(1.35, 30.0, 30)])


def text_mask(
    text: str, n_cells: int | None = None, *, height: int | None = None, margin: int = 1
) -> Cells:
    """Letters as cells of a grid, with room for a given number of items.

    Parameters
    ----------
    text : str
        What to write; a line break starts a new line.
    n_cells : int or None, default=None
        How many cells the letters have. More makes finer letters. Letters are at least five
        cells high, so a small number gives more cells than asked for, never fewer.
    height : int or None, default=None
        Height of a capital letter in cells; None chooses it to suit `n_cells`, or takes 12
        if that is None too. Taller gives more cells.
    margin : int, default=1
        Empty cells on all sides. More leaves the letters more room.

    Returns
    -------
    mask : ndarray of bool of shape (rows, columns)
        True where an item may stand, for `shape` of `GridLayout`.

    Examples
    --------
    >>> from unshuffle.images import text_mask
    >>> for row in text_mask("OH", height=7, margin=0):
    ...     print("".join("#" if cell else "." for cell in row))
    ..####..##..##
    .##.##..##..##
    ##...##.##..##
    ##...##.######
    ##...##.##..##
    .##.##..##..##
    ..####..##..##
    """
    lines = [plain_letters(line) for line in check_mask_text(text)]
    lacking = without_font("".join(lines).replace(" ", ""))
    if lacking:
        raise ValueError(
            f"`text` holds {lacking[0]!r}, which the built-in font cannot draw. Draw the text "
            "yourself, black on white, and use the picture as a mask."
        )
    margin = check_count(margin, "margin", least=0, most=1000)
    if height is not None:
        height = check_count(height, "height", least=LEAST_HEIGHT, most=1000)
    if n_cells is None:
        cells = _most_legible(lines, None, iter([height or DEFAULT_HEIGHT]))
    else:
        n_cells = check_count(n_cells, "n_cells", most=MOST_CELLS)
        heights = _heights(lines, n_cells) if height is None else iter([height])
        smallest = _most_legible(lines, None, iter([height or LEAST_HEIGHT]))
        few = height is None and n_cells <= smallest.sum()
        cells = smallest if few else _most_legible(lines, n_cells, heights)
        if height is not None and cells.sum() < n_cells:
            raise ValueError(
                f"Letters of height {height} have {cells.sum()} cells, fewer than the {n_cells} "
                "asked for. Raise `height`, or leave it out."
            )
    return np.pad(_trimmed(cells), margin)


def read_mask(path: str | Path, n_cells: int | None = None, *, invert: bool = False) -> Cells:
    """Shape drawn in a picture, with room for a given number of items.

    Parameters
    ----------
    path : str or Path
        A picture. If parts of it are transparent, the opaque parts are the shape, otherwise
        those darker than mid-grey.
    n_cells : int or None, default=None
        How many cells the shape has: the picture is scaled to suit. Where its own pixels
        already give that many, and no more than twice as many, each pixel stays one cell,
        as it does with None.
    invert : bool, default=False
        Take the light or transparent parts instead.

    Returns
    -------
    mask : ndarray of bool of shape (rows, columns)
        True where an item may stand, for `shape` of `GridLayout`; without empty rows and
        columns at its sides.
    """
    ink = _ink(as_path(path, "`path`"), exact=n_cells is None)
    ink = 1.0 - ink if check_flag(invert, "invert") else ink
    inside = ink >= 0.5
    if not inside.any():
        raise ValueError(
            f"{path} has no cell: no pixel is dark, or opaque in a picture that is partly clear. "
            "Draw the shape in black on white, or on a transparent ground."
        )
    if n_cells is None:
        return _trimmed(inside)
    n_cells = check_count(n_cells, "n_cells", most=MOST_CELLS)
    if n_cells <= inside.sum() <= 2 * n_cells:
        return _trimmed(inside)
    return _trimmed(_scaled_to(ink, n_cells))


def check_mask_text(text: Any) -> list[str]:
    """Lines of a text that can be drawn, without spaces around them."""
    if not isinstance(text, str):
        raise ValueError(f"`text` must be a string, got {type(text).__name__}.")
    # Some keyboards and file systems give a letter and its accent apart.
    lines = [" ".join(line.split()) for line in normalize("NFC", text).splitlines()]
    lines = ["".join(letter for letter in line if letter.isprintable()) for line in lines]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise ValueError(f"`text` has no letter to draw: {text!r}. Give at least one.")
    longest = max(lines, key=len)
    if len(longest) > 200 or len(lines) > 50:
        raise ValueError(
            f"`text` has {len(lines)} line(s) of up to {len(longest)} letters. Give at most 50 "
            "lines of 200 letters."
        )
    return lines


def _trimmed(cells: Cells) -> Cells:
    """The cells without empty rows and columns at the sides."""
    rows, columns = np.flatnonzero(cells.any(axis=1)), np.flatnonzero(cells.any(axis=0))
    return cells[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].copy()


def _most_legible(lines: list[str], n_cells: int | None, heights: Iterator[int]) -> Cells:
    """Letters with `n_cells` cells, or as few more as can be; of those the most legible."""
    best: tuple[tuple[float, float], Cells] | None = None
    for height in heights:
        for weight in _WEIGHTS if height <= 2 * DEFAULT_HEIGHT else (_WEIGHT,):
            coverage = draw_letters(lines, height, weight)
            cells = coverage >= 0.5 if n_cells is None else _take(coverage, n_cells)
            if not cells.any():
                # An apostrophe may be too slight for any cell: those that it covers most, then.
                cells = coverage >= coverage.max()
            excess = 0 if n_cells is None else int(cells.sum()) - n_cells
            # Letters with too few cells for all items are the last resort.
            excess = excess if excess >= 0 else MOST_CELLS - excess
            blur = _blur(cells, coverage, lines, height) + 4 * abs(weight - _WEIGHT)
            if best is None or (excess, blur) < best[0]:
                best = (excess, blur), cells
    assert best is not None
    return best[1]


def _heights(lines: list[str], n_cells: int) -> Iterator[int]:
    """Heights of letters that may give about `n_cells` cells."""
    trial = 20
    n_trial = int((draw_letters(lines, trial, _WEIGHT) >= 0.5).sum())
    likely = trial * sqrt(n_cells / n_trial)
    # Of high letters so many cells are half covered that a few rows more or less are enough.
    spread = min(0.2 * likely, 3.0)
    least = max(LEAST_HEIGHT, floor(likely - spread))
    yield from range(least, max(least, ceil(likely + spread)) + 2)


def _blur(cells: Cells, coverage: Coverage, lines: list[str], height: int) -> float:
    """How hard letters are to read: half covered cells, cells taken against their cover, clots."""
    against = float((cells != (coverage >= 0.5)).sum() / cells.sum())
    return 1.0 - sharpness(coverage) + against + clumsiness(cells, lines, height)


def _take(coverage: Coverage, n_cells: int) -> Cells:
    """The `n_cells` cells covered most; more or fewer where that would go far from half."""
    order = np.argsort(-coverage, axis=None, kind="stable")
    least, most = (int((coverage > 0.5 + each).sum()) for each in (_NEAR_HALF, -_NEAR_HALF))
    mask = np.zeros(coverage.size, dtype=bool)
    mask[order[: min(max(n_cells, least), most)]] = True
    return mask.reshape(coverage.shape)


def _scaled_to(ink: Coverage, n_cells: int) -> Cells:
    """Cells of a shape scaled to have `n_cells` of them, or as few more as can be."""
    rows, columns = (np.flatnonzero((ink >= 0.5).any(axis=axis)) for axis in (1, 0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    picture = Image.fromarray(ink.astype(np.float32))
    likely = sqrt(n_cells / float((ink >= 0.5).sum()))
    best: tuple[tuple[float, float], Cells] | None = None
    for scale in likely * _SCALES:
        n_rows, n_columns = (max(1, round(side * scale)) for side in ink.shape)
        small = picture.resize((n_columns, n_rows), Image.Resampling.BOX)
        coverage = np.asarray(small, dtype=np.float64)
        cells = _take(coverage, n_cells)
        if cells.sum() < n_cells:
            continue
        changed = (cells != (coverage >= 0.5)).sum()
        rank = (float(cells.sum()), float(changed) / n_cells)
        if best is None or rank < best[0]:
            best = rank, cells
        if scale > likely and rank[0] > 1.5 * n_cells:
            break
    # Fine dots fade when scaled down: as many cells as pixels are better than none.
    return ink >= 0.5 if best is None else best[1]


def _ink(path: Path, *, exact: bool) -> Coverage:
    """How dark each pixel is, from 0 to 1; or how opaque, where a picture is partly clear."""
    try:
        file_size(path)
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"more than the {MAX_PIXELS // 10**6} million pixels decoded")
            # Coverage takes many bytes for each pixel, and cells are few.
            step = ceil(sqrt(image.width * image.height / MOST_CELLS))
            if exact and step > 1:
                raise ValueError(
                    f"{image.width} x {image.height} pixels, too many for one cell each; ask for "
                    "a number of cells"
                )
            upright = ImageOps.exif_transpose(image).convert("RGBA").reduce(step)
    except Exception as error:
        # Decoders fail in any way they like on damaged data.
        raise ValueError(
            f"{path} cannot be read as a mask: {explain(error)}. Give a picture with the shape in "
            "black on white, or on a transparent ground."
        ) from error
    opacity = np.asarray(upright.getchannel("A"), dtype=np.float64) / 255
    if opacity.min() < 0.5:
        return opacity
    return 1.0 - np.asarray(upright.convert("L"), dtype=np.float64) / 255


@dataclass(frozen=True, eq=False)
class Glyph:
    """A letter in fine pixels, white on black, with room on all sides."""

    picture: Image.Image
    top: int  # where its ink begins
    bottom: int
    is_even: bool  # its right half mirrors the left, as in O: it may not lean to one side


def draw_letters(lines: list[str], height: int, weight: float) -> Coverage:
    """How far letters cover each cell of a grid, from 0 to 1.

    Capitals reach from the edge of one row of cells to the edge of another, and each letter is
    shifted sideways to where its strokes fill whole cells: a letter half in one cell and half
    in the next would be a blot. `height` is that of a capital in cells, `weight` the thickness
    added on each side of a stroke, as a share of that height.
    """
    rows = [_draw_line(line, height, weight) for line in lines]
    width = max(row.shape[1] for row in rows)
    between = np.zeros((max(1, round(height / 6)), width))
    stacked: list[Coverage] = []
    for row in rows:
        left = (width - row.shape[1]) // 2
        stacked += [np.pad(row, ((0, 0), (left, width - row.shape[1] - left))), between]
    return np.concatenate(stacked[:-1])


def _draw_line(line: str, height: int, weight: float) -> Coverage:
    size = 200 if height <= 50 else 4 * height
    resolution = size, round(weight * size)
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


def _leaning(coverage: Coverage) -> float:
    """0 where the right half mirrors the left, 1 where it is the opposite."""
    return float(np.abs(coverage - coverage[:, ::-1]).mean())


def sharpness(coverage: Coverage) -> float:
    """1 where strokes fill whole cells, 0 where they half cover them."""
    touched = coverage[coverage > 0.02]
    return float(np.abs(2 * touched - 1).mean())


def clumsiness(cells: Cells, lines: list[str], height: int) -> float:
    """How much the cells spoil letters: holes filled, strokes broken, gaps between them clotted.

    Strokes and holes too many or too few, plus the cells for each letter that are so deep in the
    ink that no stroke is that thick. 0 for high letters, which nothing spoils.
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


def _pieces(ink: Cells) -> NDArray[np.intp]:
    """Number of strokes that hang together, and of holes."""
    ink = np.pad(ink, 1)
    corners = np.ones((3, 3), dtype=int)
    return np.array([ndimage.label(ink, corners)[1], ndimage.label(~ink)[1] - 1])
