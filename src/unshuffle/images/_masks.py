"""Shapes to lay items out on: letters of a text, or the dark parts of a picture."""

from collections.abc import Iterator
from math import ceil, floor, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from unshuffle._decoding import FORMATS, MAX_PIXELS, explain, file_size
from unshuffle._files import as_path
from unshuffle._parameters import check_count, check_flag
from unshuffle.images._checks import (
    check_letters,
    check_mask_cells,
    check_mask_text,
    check_tall_enough,
    raise_no_mask,
)
from unshuffle.images._letters import (
    Coverage,
    clumsiness,
    draw_letters,
    plain_letters,
    sharpness,
    without_font,
)

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
) -> NDArray[np.bool_]:
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
    check_letters(without_font("".join(lines).replace(" ", "")))
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
        if height is not None:
            check_tall_enough(int(cells.sum()), n_cells, height)
    return np.pad(_trimmed(cells), margin)


def read_mask(
    path: str | Path, n_cells: int | None = None, *, invert: bool = False
) -> NDArray[np.bool_]:
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
    check_mask_cells(int(inside.sum()), path)
    if n_cells is None:
        return _trimmed(inside)
    n_cells = check_count(n_cells, "n_cells", most=MOST_CELLS)
    if n_cells <= inside.sum() <= 2 * n_cells:
        return _trimmed(inside)
    return _trimmed(_scaled_to(ink, n_cells))


def _trimmed(cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The cells without empty rows and columns at the sides."""
    rows, columns = np.flatnonzero(cells.any(axis=1)), np.flatnonzero(cells.any(axis=0))
    return cells[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].copy()


def _scaled_to(ink: Coverage, n_cells: int) -> NDArray[np.bool_]:
    """Cells of a shape scaled to have `n_cells` of them, or as few more as can be."""
    rows, columns = (np.flatnonzero((ink >= 0.5).any(axis=axis)) for axis in (1, 0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    picture = Image.fromarray(ink.astype(np.float32))
    likely = sqrt(n_cells / float((ink >= 0.5).sum()))
    best: tuple[tuple[float, float], NDArray[np.bool_]] | None = None
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


def _blur(cells: NDArray[np.bool_], coverage: Coverage, lines: list[str], height: int) -> float:
    """How hard letters are to read: half covered cells, cells taken against their cover, clots."""
    against = float((cells != (coverage >= 0.5)).sum() / cells.sum())
    return 1.0 - sharpness(coverage) + against + clumsiness(cells, lines, height)


def _take(coverage: Coverage, n_cells: int) -> NDArray[np.bool_]:
    """The `n_cells` cells covered most; more or fewer where that would go far from half."""
    order = np.argsort(-coverage, axis=None, kind="stable")
    least, most = (int((coverage > 0.5 + each).sum()) for each in (_NEAR_HALF, -_NEAR_HALF))
    mask = np.zeros(coverage.size, dtype=bool)
    mask[order[: min(max(n_cells, least), most)]] = True
    return mask.reshape(coverage.shape)


def _heights(lines: list[str], n_cells: int) -> Iterator[int]:
    """Heights of letters that may give about `n_cells` cells."""
    trial = 20
    n_trial = int((draw_letters(lines, trial, _WEIGHT) >= 0.5).sum())
    likely = trial * sqrt(n_cells / n_trial)
    # Of high letters so many cells are half covered that a few rows more or less are enough.
    spread = min(0.2 * likely, 3.0)
    least = max(LEAST_HEIGHT, floor(likely - spread))
    yield from range(least, max(least, ceil(likely + spread)) + 2)


def _most_legible(
    lines: list[str], n_cells: int | None, heights: Iterator[int]
) -> NDArray[np.bool_]:
    """Letters with `n_cells` cells, or as few more as can be; of those the most legible."""
    best: tuple[tuple[float, float], NDArray[np.bool_]] | None = None
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
        raise_no_mask(path, explain(error), error)
    opacity = np.asarray(upright.getchannel("A"), dtype=np.float64) / 255
    if opacity.min() < 0.5:
        return opacity
    return 1.0 - np.asarray(upright.convert("L"), dtype=np.float64) / 255
