"""Masks for layouts: the letters of a text, or the dark parts of a picture."""

from collections.abc import Iterable
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

from unshuffle._core.parameters import check_count, check_flag
from unshuffle._files.paths import as_path, file_size
from unshuffle._pictures.decoding import FORMATS, MAX_PIXELS, explain

Coverage = NDArray[np.float64]
Cells = NDArray[np.bool_]
_SHIFTS = np.arange(8) / 8
# A serif or a round letter that reaches this far into a row does not add the row.
_OVERSHOOT = 0.3
# Letters this high are legible wherever they fall on the cells.
_HIGH = 24
# Not a character: fonts draw it as they draw any letter they lack.
_NO_LETTER = "\uffff"
# With fewer than five cells an E has no room for its bars and gaps.
LEAST_HEIGHT = 5
DEFAULT_HEIGHT = 12
MOST_CELLS = 4_000_000
# Cells this close to half covered may be used or not; further from half, letters fray.
_NEAR_HALF = 0.15
# Thickness added on each side of a stroke, which is too thin, as a share of the height.
_WEIGHTS = (0.02, 0.03, 0.04, 0.05, 0.065, 0.08)
_WEIGHT = 0.045
# Relative to the scale at which areas agree; thin shapes need more to cover half of any cell.
_SCALES = np.concatenate([np.linspace(0.8, 1.3, 51), np.geomspace(1.35, 30.0, 30)])


def text_mask(
    text: str, n_cells: int | None = None, *, height: int | None = None, margin: int = 1
) -> Cells:
    """Mask in the shape of letters, with a given number of cells.

    Parameters
    ----------
    text : str
        The letters; a line break starts a new line.
    n_cells : int or None, default=None
        Number of cells of the letters. More cells make finer letters. Letters are at least five
        cells high, so a small number may give more cells than asked for, never fewer.
    height : int or None, default=None
        Height of a capital letter in cells. Taller letters have more cells. None suits `n_cells`,
        or is 12 if that is None too.
    margin : int, default=1
        Empty cells on all sides. A larger margin leaves more space around the letters.

    Returns
    -------
    mask : ndarray of bool of shape (rows, columns)
        True for cells of the letters, for `shape` of `GridLayout`.

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
    lines = [_replace_missing(line) for line in _split_lines(text)]
    lacking = _missing_letters("".join(lines).replace(" ", ""))
    if lacking:
        raise ValueError(
            f"`text` holds {lacking[0]!r}, which the built-in font cannot draw. Use a picture of "
            "the text, black on white, as a mask."
        )
    margin = check_count(margin, "margin", least=0, most=1000)
    if height is not None:
        height = check_count(height, "height", least=LEAST_HEIGHT, most=1000)
    if n_cells is None:
        cells = _most_legible(lines, None, [height or DEFAULT_HEIGHT])
    else:
        n_cells = check_count(n_cells, "n_cells", most=MOST_CELLS)
        cells = _most_legible(lines, None, [LEAST_HEIGHT])
        if height is not None or n_cells > cells.sum():
            heights = _likely_heights(lines, n_cells) if height is None else [height]
            cells = _most_legible(lines, n_cells, heights)
        if height is not None and cells.sum() < n_cells:
            raise ValueError(
                f"Letters of height {height} have {cells.sum()} cells, fewer than the {n_cells} "
                "asked for. Raise `height`, or leave it out."
            )
    return np.pad(_trim(cells), margin)


def read_mask(path: str | Path, n_cells: int | None = None, *, invert: bool = False) -> Cells:
    """Mask in the shape drawn in a picture, with a given number of cells.

    Parameters
    ----------
    path : str or Path
        A picture. The shape is its opaque parts if some are transparent, else the parts darker
        than mid-gray.
    n_cells : int or None, default=None
        Number of cells of the shape, to which the picture is scaled. Each pixel is one cell with
        None, or if the shape has `n_cells` to ``2 * n_cells`` pixels.
    invert : bool, default=False
        Use the light or transparent parts instead.

    Returns
    -------
    mask : ndarray of bool of shape (rows, columns)
        True for cells of the shape, for `shape` of `GridLayout`; empty rows and columns at the
        sides are removed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from unshuffle.images import read_mask
    >>> with TemporaryDirectory() as folder:
    ...     picture = Image.new("L", (30, 20), 255)
    ...     picture.paste(0, (0, 0, 15, 20))  # its left half is dark
    ...     picture.save(Path(folder) / "half.png")
    ...     mask = read_mask(Path(folder) / "half.png", 50)
    >>> bool(mask.sum() >= 50)
    True
    """
    ink = _read_ink(as_path(path, "`path`"), exact=n_cells is None)
    ink = 1.0 - ink if check_flag(invert, "invert") else ink
    inside = ink >= 0.5
    if not inside.any():
        raise ValueError(
            f"{path} has no cell: no pixel is dark, or opaque if parts are transparent. Draw the "
            "shape in black on white, or on a transparent background."
        )
    if n_cells is None:
        return _trim(inside)
    n_cells = check_count(n_cells, "n_cells", most=MOST_CELLS)
    if n_cells <= inside.sum() <= 2 * n_cells:
        return _trim(inside)
    return _trim(_scale_to(ink, n_cells))


def _split_lines(text: Any) -> list[str]:
    """Nonempty lines of printable letters, without surrounding spaces."""
    if not isinstance(text, str):
        raise ValueError(f"`text` must be a string, got {type(text).__name__}.")
    # Some keyboards and file systems separate a letter from its accent.
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


def _trim(cells: Cells) -> Cells:
    """Remove empty rows and columns at the sides."""
    rows, columns = np.flatnonzero(cells.any(axis=1)), np.flatnonzero(cells.any(axis=0))
    return cells[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].copy()


def _most_legible(lines: list[str], n_cells: int | None, heights: Iterable[int]) -> Cells:
    """The most legible letters among those closest to `n_cells` cells, rather more than fewer."""
    best: tuple[tuple[float, float], Cells] | None = None
    for height in heights:
        for weight in _WEIGHTS if height <= 2 * DEFAULT_HEIGHT else (_WEIGHT,):
            coverage = _draw_lines(lines, height, weight)
            cells = coverage >= 0.5 if n_cells is None else _choose_cells(coverage, n_cells)
            if not cells.any():
                # An apostrophe may be too thin for any cell: use those it covers most.
                cells = coverage >= coverage.max()
            excess = 0 if n_cells is None else int(cells.sum()) - n_cells
            # Too few cells for all items are the last resort.
            excess = excess if excess >= 0 else MOST_CELLS - excess
            blur = _illegibility(cells, coverage, lines, height) + 4 * abs(weight - _WEIGHT)
            if best is None or (excess, blur) < best[0]:
                best = (excess, blur), cells
    assert best is not None
    return best[1]


def _likely_heights(lines: list[str], n_cells: int) -> Iterable[int]:
    """Heights at which letters may have about `n_cells` cells."""
    trial = 20
    n_trial = int((_draw_lines(lines, trial, _WEIGHT) >= 0.5).sum())
    likely = trial * sqrt(n_cells / n_trial)
    # High letters have enough half covered cells to need few heights.
    spread = min(0.2 * likely, 3.0)
    least = max(LEAST_HEIGHT, floor(likely - spread))
    return range(least, max(least, ceil(likely + spread)) + 2)


def _illegibility(cells: Cells, coverage: Coverage, lines: list[str], height: int) -> float:
    """How hard letters are to read: blurred edges, cells against their coverage, defects."""
    against = float((cells != (coverage >= 0.5)).sum() / cells.sum())
    return 1.0 - _sharpness(coverage) + against + _count_defects(cells, lines, height)


def _choose_cells(coverage: Coverage, n_cells: int) -> Cells:
    """The `n_cells` most covered cells; more or fewer rather than cells far from half."""
    order = np.argsort(-coverage, axis=None, kind="stable")
    least, most = (int((coverage > 0.5 + each).sum()) for each in (_NEAR_HALF, -_NEAR_HALF))
    mask = np.zeros(coverage.size, dtype=bool)
    mask[order[: min(max(n_cells, least), most)]] = True
    return mask.reshape(coverage.shape)


def _scale_to(ink: Coverage, n_cells: int) -> Cells:
    """A shape scaled to `n_cells` cells, or as few more as possible."""
    rows, columns = (np.flatnonzero((ink >= 0.5).any(axis=axis)) for axis in (1, 0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    picture = Image.fromarray(ink.astype(np.float32))
    likely = sqrt(n_cells / float((ink >= 0.5).sum()))
    best: tuple[tuple[float, float], Cells] | None = None
    for scale in likely * _SCALES:
        n_rows, n_columns = (max(1, round(side * scale)) for side in ink.shape)
        small = picture.resize((n_columns, n_rows), Image.Resampling.BOX)
        coverage = np.asarray(small, dtype=np.float64)
        cells = _choose_cells(coverage, n_cells)
        if cells.sum() < n_cells:
            continue
        changed = (cells != (coverage >= 0.5)).sum()
        rank = (float(cells.sum()), float(changed) / n_cells)
        if best is None or rank < best[0]:
            best = rank, cells
        if scale > likely and rank[0] > 1.5 * n_cells:
            break
    # Fine dots fade when scaled down; then one cell for each pixel.
    return ink >= 0.5 if best is None else best[1]


def _read_ink(path: Path, *, exact: bool) -> Coverage:
    """Darkness of each pixel from 0 to 1, or its opacity if parts are transparent."""
    try:
        file_size(path)
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"more than the {MAX_PIXELS // 10**6} million pixels decoded")
            # Coverage takes many bytes per pixel, and cells are few.
            step = ceil(sqrt(image.width * image.height / MOST_CELLS))
            if exact and step > 1:
                raise ValueError(
                    f"{image.width} x {image.height} pixels, too many for one cell each; ask for "
                    "a number of cells"
                )
            upright = ImageOps.exif_transpose(image).convert("RGBA").reduce(step)
    except Exception as error:
        # Decoders raise almost anything on damaged data.
        raise ValueError(
            f"{path} cannot be read as a mask: {explain(error)}. Give a picture with the shape in "
            "black on white, or on a transparent background."
        ) from error
    opacity = np.asarray(upright.getchannel("A"), dtype=np.float64) / 255
    if opacity.min() < 0.5:
        return opacity
    return 1.0 - np.asarray(upright.convert("L"), dtype=np.float64) / 255


@dataclass(frozen=True, eq=False)
class Glyph:
    """A letter in fine pixels, white on black, with a margin."""

    picture: Image.Image
    top: int  # where its ink begins
    bottom: int
    is_symmetric: bool  # left and right, like O


def _draw_lines(lines: list[str], height: int, weight: float) -> Coverage:
    """Share of each cell that letters cover; capitals fill `height` whole rows of cells."""
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
    glyphs = [_draw_glyph(each, *resolution) for each in letters]
    capital = _draw_glyph("H", *resolution)
    cell = (capital.bottom - capital.top) / height
    tops = [(capital.top - each.top) / cell for each in glyphs]
    bottoms = [(each.bottom - capital.bottom) / cell for each in glyphs]
    above, below = (max(0, ceil(max(each) - _OVERSHOOT)) for each in (tops, bottoms))
    n_rows = above + height + below
    first = capital.top - above * cell
    drawn = {
        each: _rasterize(glyph, cell, first, n_rows)
        for each, glyph in zip(letters, glyphs, strict=True)
    }
    gap = np.zeros((n_rows, max(1, round(height / 8))))
    space = np.zeros((n_rows, max(2, round(height / 4))))
    pieces: list[Coverage] = []
    for each in line:
        pieces += [space if each == " " else drawn[each], gap]
    return np.concatenate(pieces[:-1], axis=1)


@lru_cache(maxsize=4096)
def _rasterize(glyph: Glyph, cell: float, first: float, n_rows: int) -> Coverage:
    """Share of each cell that a letter covers, at the sharpest shift."""
    n_columns = ceil(glyph.picture.width / cell) + 1
    shifts = _SHIFTS if n_rows <= _HIGH else _SHIFTS[:1]
    drawn = []
    for left in shifts * cell:
        # Within the margin of the glyph.
        box = (left, first, left + n_columns * cell, first + n_rows * cell)
        part = glyph.picture.transform(
            (n_columns * 8, n_rows * 8), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR
        )
        fine = np.asarray(part, dtype=np.float64) / 255
        coverage = fine.reshape(n_rows, 8, n_columns, 8).mean(axis=(1, 3))
        inked = np.flatnonzero((coverage >= 0.35).any(axis=0))
        # A hyphen or a period may not cover any cell by a third.
        drawn.append(coverage[:, inked[0] : inked[-1] + 1] if inked.size else coverage)
    return max(drawn, key=lambda each: _sharpness(each) - glyph.is_symmetric * _asymmetry(each))


@lru_cache(maxsize=512)
def _draw_glyph(letter: str, size: int, stroke: int) -> Glyph:
    font = ImageFont.load_default(size=size)
    left, _, right, _ = font.getbbox(letter, stroke_width=stroke)
    room = size // 2
    picture = Image.new("L", (ceil(right - left) + room, 2 * size + 2 * room))
    ImageDraw.Draw(picture).text(
        (room // 2 - left, room), letter, fill=255, font=font, stroke_width=stroke
    )
    box = picture.getbbox() or (0, room, 1, room + 1)
    ink = np.asarray(picture.crop(box), dtype=np.float64) / 255
    return Glyph(picture, box[1], box[3], is_symmetric=_asymmetry(ink) < 0.05)


def _asymmetry(coverage: Coverage) -> float:
    """0 if the right half mirrors the left, 1 if it is its negative."""
    return float(np.abs(coverage - coverage[:, ::-1]).mean())


def _sharpness(coverage: Coverage) -> float:
    """1 if strokes fill whole cells, 0 if they cover half of each."""
    touched = coverage[coverage > 0.02]
    return float(np.abs(2 * touched - 1).mean())


def _count_defects(cells: Cells, lines: list[str], height: int) -> float:
    """Strokes and holes too many or too few, plus cells per letter deeper than any stroke."""
    if height > _HIGH:
        return 0.0
    letters = "".join(lines).replace(" ", "")
    true = np.sum([_count_letter_pieces(each) for each in letters], axis=0)
    side = 2 * max(1, round(height / 10)) + 1
    deep = int(ndimage.binary_erosion(cells, np.ones((side, side))).sum())
    return float(np.abs(_count_pieces(cells) - true).sum()) + deep / len(letters)


def _missing_letters(letters: str) -> list[str]:
    """Letters that the built-in font lacks."""
    blank = _draw_glyph(_NO_LETTER, 40, 0).picture
    return [each for each in dict.fromkeys(letters) if _draw_glyph(each, 40, 0).picture == blank]


def _replace_missing(text: str) -> str:
    """Remove the accents of letters that the built-in font lacks."""
    lacking = _missing_letters(text.replace(" ", ""))
    return "".join(normalize("NFKD", each)[0] if each in lacking else each for each in text)


@lru_cache(maxsize=512)
def _count_letter_pieces(letter: str) -> NDArray[np.intp]:
    return _count_pieces(np.asarray(_draw_glyph(letter, 200, 0).picture) >= 128)


def _count_pieces(ink: Cells) -> NDArray[np.intp]:
    """Number of connected strokes, and of holes."""
    ink = np.pad(ink, 1)
    corners = np.ones((3, 3), dtype=int)
    return np.array([ndimage.label(ink, corners)[1], ndimage.label(~ink)[1] - 1])
