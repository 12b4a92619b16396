"""Sheets of pictures: matched pairs side by side, items on a grid or at any positions."""

import io
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from scipy.spatial import cKDTree

from unshuffle._core.arrays import as_numbers
from unshuffle._core.color import MAX_SHEET_SIDE, PAPER, SHEET_SUFFIXES, Color
from unshuffle._core.grams import check_permutation
from unshuffle._core.grids import check_cell_points, check_grid, check_images, check_sheet_values
from unshuffle._core.parameters import check_count, check_memory
from unshuffle._files.paths import check_output_path
from unshuffle._files.saving import replace_file

# Longest side that each format can record.
_LONGEST_SIDE = {"JPEG": 65_535, "WEBP": 16_383}
# Common viewers open this many without trouble.
MAX_SHEET_PIXELS = 120_000_000
_FORMATS = {".png": "PNG", ".webp": "WEBP", ".jpg": "JPEG", ".jpeg": "JPEG"}
_EMPTY: Color = (226, 224, 218)
_RIGHT: Color = (46, 139, 87)
_WRONG: Color = (214, 40, 40)
_PLAIN: Color = (120, 118, 112)
# Unsure to sure; darker at both ends, also for gray print and color-blind readers.
_RAMP = np.array([[178, 24, 43], [239, 138, 98], [240, 214, 120], [102, 178, 130], [15, 105, 72]])


def matched_sheet(
    left: ArrayLike,
    right: ArrayLike,
    permutation: ArrayLike,
    *,
    confidence: ArrayLike | None = None,
    correct: ArrayLike | None = None,
    columns: int | None = None,
    height: int = 72,
    max_pairs: int = 2000,
) -> Image.Image:
    """Draw each item beside its partner, in a frame that shows the confidence.

    Parameters
    ----------
    left : array of shape (n, h, w, 3) or (n, h, w), uint8
        Pictures of the first collection.
    right : array of shape (m, h', w', 3) or (m, h', w'), uint8
        Pictures of the second collection.
    permutation : array of shape (n,)
        ``right[permutation[i]]`` is drawn beside ``left[i]``; -1 leaves the place empty.
    confidence : array of shape (n,) or None, default=None
        From 0 to 1; colors the frames from red through yellow to green.
    correct : array of bool of shape (n,) or None, default=None
        Whether each pair is right, if known: thin green frames for right pairs, thick red ones
        for wrong pairs. Overrides `confidence`.
    columns : int or None, default=None
        Pairs in a row. None makes the sheet about square.
    height : int, default=72
        Height of each picture in pixels. Larger values show more detail and make larger files.
    max_pairs : int, default=2000
        Only the first `max_pairs` pairs are drawn.

    Returns
    -------
    sheet : PIL.Image.Image
        Pairs in the order of `left`, row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import matched_sheet
    >>> left = right = np.zeros((3, 8, 8, 3), dtype=np.uint8)
    >>> sheet = matched_sheet(left, right, [2, 0, 1], correct=[True, False, True])
    >>> sheet.mode
    'RGB'
    """
    left, right = check_images(left, "left"), check_images(right, "right")
    partners = check_permutation(permutation, len(left), len(right))
    n = min(len(left), check_count(max_pairs, "max_pairs"))
    frames = _frame_colors(len(left), confidence, correct)
    height = check_count(height, "height", least=4, most=2000)
    widths = [max(1, round(height * each.shape[2] / each.shape[1])) for each in (left, right)]
    frame, gap = max(2, height // 16), max(4, height // 9)
    pair = (height + 2 * frame, sum(widths) + 2 * frame)
    if columns is None:
        columns = max(1, round(sqrt(n * pair[0] / pair[1])))
    columns = min(check_count(columns, "columns"), n)
    sheet = _blank_sheet(ceil(n / columns), columns, pair, gap)
    for i in range(n):
        top, start = gap + (i // columns) * (pair[0] + gap), gap + (i % columns) * (pair[1] + gap)
        cell = sheet[top : top + pair[0], start : start + pair[1]]
        cell[:] = frames[i]
        if correct is not None and np.asarray(correct)[i]:
            # Half as thick, so that errors stand out.
            half = frame // 2
            cell[:] = PAPER
            cell[half:-half, half:-half] = frames[i]
        inner = cell[frame:-frame, frame:-frame]
        inner[:, : widths[0]] = resize(left[i], height, widths[0])
        alone = partners[i] < 0
        inner[:, widths[0] :] = _EMPTY if alone else resize(right[partners[i]], height, widths[1])
    return Image.fromarray(sheet)


def grid_sheet(
    images: ArrayLike,
    grid: ArrayLike,
    *,
    tile: int = 32,
    gap: int = 2,
    background: Color = PAPER,
) -> Image.Image:
    """Draw pictures on a grid.

    Parameters
    ----------
    images : array of shape (n, h, w, 3) or (n, h, w), uint8
        The pictures.
    grid : array of int of shape (rows, columns)
        Index of the picture in each cell; -1 leaves it empty.
    tile : int, default=32
        Height of each picture in pixels. Larger values show more detail. Reduced where the sheet
        would exceed 120 million pixels, or 16,383 along a side.
    gap : int, default=2
        Pixels between pictures.
    background : (int, int, int), default=PAPER
        Color of gaps and empty cells.

    Returns
    -------
    sheet : PIL.Image.Image
        The drawn grid.

    Notes
    -----
    Takes 3 bytes per pixel of the sheet, checked before they are allocated.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import grid_sheet
    >>> images = np.zeros((3, 8, 8, 3), dtype=np.uint8)
    >>> grid_sheet(images, [[0, 1], [2, -1]], tile=8, gap=2).size
    (22, 22)
    """
    images = check_images(images)
    cells = check_grid(grid, len(images))
    tile = check_count(tile, "tile", most=2000)
    gap = check_count(gap, "gap", least=0)
    rows, columns = cells.shape
    tile, width, gap = _fit_tile(rows, columns, tile, gap, images.shape[2] / images.shape[1])
    sheet = _blank_sheet(rows, columns, (tile, width), gap, background)
    for (row, column), item in np.ndenumerate(cells):
        if item >= 0:
            top, start = gap + row * (tile + gap), gap + column * (width + gap)
            sheet[top : top + tile, start : start + width] = resize(images[item], tile, width)
    return Image.fromarray(sheet)


def points_sheet(
    images: ArrayLike,
    positions: ArrayLike,
    *,
    tile: int = 32,
    gap: int = 2,
    background: Color = PAPER,
) -> Image.Image:
    """Draw pictures at any positions, such as those of a layout on a circle.

    Parameters
    ----------
    images : array of shape (n, h, w, 3) or (n, h, w), uint8
        The pictures.
    positions : array of shape (n, 2)
        Row and column of the center of each picture, in any unit. They are scaled so that
        nearest neighbors typically touch.
    tile : int, default=32
        Height of each picture in pixels, limited as in `grid_sheet`. Larger shows more detail.
    gap : int, default=2
        Typical number of pixels between nearest neighbors.
    background : (int, int, int), default=PAPER
        Color between the pictures.

    Returns
    -------
    sheet : PIL.Image.Image
        The pictures; later ones cover earlier ones where positions are close.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import points_sheet
    >>> images = np.zeros((3, 8, 8, 3), dtype=np.uint8)
    >>> sheet = points_sheet(images, [[0.0, 0.0], [1.0, 0.0], [0.5, 1.0]], tile=8)
    >>> sheet.mode
    'RGB'
    """
    images = check_images(images)
    points = check_cell_points(positions, len(images), "positions")
    tile = check_count(tile, "tile", most=2000)
    gap = check_count(gap, "gap", least=0)
    # In units of the distance between neighbors the points are a grid with holes.
    points = (points - points.min(axis=0)) / _typical_distance(points)
    rows, columns = (ceil(each) + 1 for each in points.max(axis=0))
    tile, width, gap = _fit_tile(rows, columns, tile, gap, images.shape[2] / images.shape[1])
    pitch = np.array([tile + gap, width + gap])
    corners = np.rint(points * pitch).astype(int) + gap
    sheet = _fill((*(corners.max(axis=0) + pitch), 3), background)
    for image, (top, start) in zip(images, corners, strict=True):
        sheet[top : top + tile, start : start + width] = resize(image, tile, width)
    return Image.fromarray(sheet)


def save_sheet(sheet: Image.Image, path: str | Path) -> None:
    """Write a sheet to a file, without metadata.

    Parameters
    ----------
    sheet : PIL.Image.Image
        The sheet.
    path : str or Path
        A .png, .jpg, .jpeg or .webp file. An existing file is replaced when the new one is
        complete.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from unshuffle.images import grid_sheet, save_sheet
    >>> sheet = grid_sheet(np.zeros((2, 8, 8, 3), dtype=np.uint8), [[0, 1]])
    >>> with TemporaryDirectory() as folder:
    ...     save_sheet(sheet, Path(folder) / "sheet.png")
    """
    path = check_output_path(path, SHEET_SUFFIXES)
    format_name = _FORMATS[path.suffix.lower()]
    if not isinstance(sheet, Image.Image):
        raise TypeError(f"`sheet` must be a PIL image, got {type(sheet).__name__}.")
    longest = _LONGEST_SIDE.get(format_name, 2**31 - 1)
    if max(sheet.size) > longest:
        raise ValueError(
            f"Cannot write {path}: the sheet is {sheet.width:,} x {sheet.height:,} pixels, and a "
            f"{format_name} file holds at most {longest:,} along a side. Write a .png file, or "
            "draw smaller pictures."
        )
    # No location, camera, color profile or comment.
    plain = sheet.convert("RGB")
    plain.info.clear()
    out = io.BytesIO()
    if format_name == "PNG":
        plain.save(out, format="PNG", compress_level=3)
    else:
        # 4:4:4 for JPEG keeps the edges between pictures sharp in color.
        options = {"subsampling": 0} if format_name == "JPEG" else {}
        plain.save(out, format=format_name, quality=90, **options)
    replace_file(path, out.getvalue())


def _fit_tile(rows: int, columns: int, tile: int, gap: int, aspect: float) -> tuple[int, int, int]:
    """Largest height and width of a picture, and the gap, that keep a sheet within bounds."""
    for height in range(tile, 0, -1):
        space = gap if height == tile else min(gap, height // 5)
        width = max(1, round(height * aspect))
        sides = space + rows * (height + space), space + columns * (width + space)
        if sides[0] * sides[1] <= MAX_SHEET_PIXELS and max(sides) <= MAX_SHEET_SIDE:
            break
    else:
        raise ValueError(
            f"A grid of {rows:,} x {columns:,} cells is too large for a sheet, which has at most "
            f"{MAX_SHEET_SIDE:,} pixels along a side. Draw a part of it."
        )
    check_memory(
        # As an array and as an image.
        6 * sides[0] * sides[1],
        what=f"A sheet of {rows:,} x {columns:,} pictures of {height} pixels",
        instead="Choose a smaller `tile`.",
    )
    return height, width, space


def _typical_distance(points: NDArray[np.float64]) -> float:
    """Median distance between nearest neighbors, ignoring duplicates."""
    distinct = np.unique(points, axis=0)
    if len(distinct) < 2:
        return 1.0
    distances, _ = cKDTree(distinct).query(distinct, k=2)
    # At least a thousandth of the extent, or pictures would be too small to see.
    return max(float(np.median(distances[:, 1])), float(np.ptp(points, axis=0).max()) / 1000)


def _blank_sheet(
    rows: int, columns: int, cell: tuple[int, int], gap: int, color: Color = PAPER
) -> NDArray[np.uint8]:
    return _fill((gap + rows * (cell[0] + gap), gap + columns * (cell[1] + gap), 3), color)


def _fill(shape: tuple[int, ...], color: Color) -> NDArray[np.uint8]:
    # Rounded as one color: as floats, a whole sheet would take 16 times the memory.
    return np.full(shape, np.rint(check_colors(color, (3,), "background")), dtype=np.uint8)


def resize(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The picture resized."""
    if pixels.shape[:2] == (height, width):
        return pixels
    resized = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(resized, dtype=np.uint8)


def _frame_colors(
    n: int, confidence: ArrayLike | None, correct: ArrayLike | None
) -> NDArray[np.uint8]:
    if correct is not None:
        right = check_sheet_values(correct, n, "correct").astype(bool)
        return np.where(right[:, np.newaxis], _RIGHT, _WRONG).astype(np.uint8)
    if confidence is None:
        return np.tile(np.array(_PLAIN, dtype=np.uint8), (n, 1))
    sure = np.clip(check_sheet_values(confidence, n, "confidence"), 0.0, 1.0)
    stops = np.linspace(0.0, 1.0, len(_RAMP))
    channels = [np.interp(sure, stops, channel) for channel in _RAMP.T.astype(float)]
    return np.stack(channels, axis=1).astype(np.uint8)


def check_colors(colors: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """Colors from 0 to 255, broadcast to `shape`."""
    try:
        array = as_numbers(colors, f"`{name}`")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must be colors (red, green, blue) from 0 to 255, got {colors!r}."
        ) from error
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"`{name}` has shape {array.shape}, which does not fill {shape}. Give one color "
            "(red, green, blue), or one for each."
        ) from None
    # Blended colors may leave the range by a rounding error.
    if not (np.isfinite(array).all() and array.min() >= -1e-6 and array.max() <= 255 + 1e-6):
        raise ValueError(
            f"`{name}` must be colors (red, green, blue) from 0 to 255, got values from "
            f"{array.min():g} to {array.max():g}."
        )
    return np.clip(array, 0.0, 255.0)
