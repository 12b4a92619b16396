"""The pictures of a wall as sheets at several sizes, of which a viewer loads those in sight."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle._pictures.decoding import central_part
from unshuffle._run.parallel import map_parallel
from unshuffle._run.types import Pixels

# Side of a sheet: few to load for a screen, each decoded in a few milliseconds.
SHEET_PIXELS = 512
# Drawn by one thread each, with all finer ones under them; the rest is drawn from their halves.
_MOST_ROOTS = 256
_EMPTY = 128


@dataclass(frozen=True)
class Level:
    """The whole wall at one size, cut into sheets."""

    width: float  # of a cell, in pixels
    height: float
    rows: int  # cells in a sheet
    columns: int


class Pictures:
    """Pictures in memory, of one size or of many, or encoded as `read_folder` keeps them."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def open(self, item: int) -> Image.Image:
        """A picture in RGB; encoded ones are decoded when pixels are needed."""
        found = self._source[item]
        if isinstance(found, bytes):
            return Image.open(io.BytesIO(found), formats=("JPEG", "PNG"))
        return Image.fromarray(found)

    def encode(self, item: int, suffix: str) -> bytes:
        """A picture as the content of a file, without metadata."""
        found = self._source[item]
        if isinstance(found, bytes):
            kind = "png" if found.startswith(b"\x89PNG") else "jpg"
            if kind == suffix:
                return found
        return encode(np.asarray(self.open(item).convert("RGB")), suffix)

    def sizes(self, items: Sequence[int]) -> NDArray[np.intp]:
        """Height and width of each of some pictures."""
        return np.array([self.open(item).size[::-1] for item in items], dtype=np.intp)

    def are_png(self, items: Sequence[int]) -> bool:
        """Whether all of some pictures are kept without loss."""
        found = (self._source[item] for item in items)
        return all(isinstance(each, bytes) and each.startswith(b"\x89PNG") for each in found)

    def draw(self, part: NDArray[np.intp], height: int, width: int) -> Pixels:
        """Some cells of a grid, each filled by the largest central part of its picture."""
        down, across = part.shape
        source = self._source
        if isinstance(source, np.ndarray) and source.shape[1:3] == (height, width):
            tiles = source[part]
            tiles[part < 0] = _EMPTY
        else:
            tiles = np.full((down, across, height, width, 3), _EMPTY, dtype=np.uint8)
            for place, item in np.ndenumerate(part):
                if item >= 0:
                    with self.open(int(item)) as image:
                        tiles[place] = central_part(image, height, width)
        return tiles.swapaxes(1, 2).reshape(down * height, across * width, 3)


def encode(pixels: Pixels, suffix: str) -> bytes:
    """Content of a .jpg or .png file."""
    out = io.BytesIO()
    if suffix == "png":
        Image.fromarray(pixels).save(out, format="PNG")
    else:
        # Colors at full resolution, so that they do not bleed from one picture into the next.
        Image.fromarray(pixels).save(out, format="JPEG", quality=84, subsampling=0)
    return out.getvalue()


def plan_levels(shape: tuple[int, ...], height: int, width: int) -> list[Level]:
    """Levels from cells of the given size to the whole wall on one sheet, each half as large."""
    down, across = max(1, SHEET_PIXELS // height), max(1, SHEET_PIXELS // width)
    levels = [Level(width, height, down, across)]
    while levels[-1].rows < shape[0] or levels[-1].columns < shape[1]:
        last = levels[-1]
        levels.append(Level(last.width / 2, last.height / 2, 2 * last.rows, 2 * last.columns))
    return levels


def count_sheets(shape: tuple[int, ...], level: Level) -> tuple[int, int]:
    """Sheets of a level from top to bottom and from left to right."""
    return ceil(shape[0] / level.rows), ceil(shape[1] / level.columns)


@dataclass(frozen=True)
class Pyramid:
    """A wall at several sizes; `save` takes every sheet, from several threads."""

    pictures: Pictures
    cells: NDArray[np.intp]
    levels: list[Level]
    suffix: str
    save: Callable[[int, int, int, bytes], object]  # level, row, column, content of a file

    def draw(self, n_jobs: int | None) -> None:
        """Draw and save all sheets."""
        counts = [count_sheets(self.cells.shape, level) for level in self.levels]
        root = next(k for k, (down, across) in enumerate(counts) if down * across <= _MOST_ROOTS)
        roots = list(np.ndindex(counts[root]))
        drawn = map_parallel(lambda place: self._draw(root, *place), roots, n_jobs=n_jobs)
        halves = dict(zip(roots, drawn, strict=True))
        for level in range(root + 1, len(self.levels)):
            finer = halves
            halves = {
                place: self._join(level, place, [finer.get(each) for each in _under(*place)])
                for place in np.ndindex(counts[level])
            }

    def _draw(self, level: int, row: int, column: int) -> Pixels | None:
        """Draw a sheet from all finer ones under it, and return it at half its size."""
        down, across = count_sheets(self.cells.shape, self.levels[level])
        if row >= down or column >= across:
            return None
        if level > 0:
            halves = [self._draw(level - 1, *each) for each in _under(row, column)]
            return self._join(level, (row, column), halves)
        finest = self.levels[0]
        top, left = row * finest.rows, column * finest.columns
        part = self.cells[top : top + finest.rows, left : left + finest.columns]
        pixels = self._blank()
        drawn = self.pictures.draw(part, int(finest.height), int(finest.width))
        pixels[: drawn.shape[0], : drawn.shape[1]] = drawn
        return self._finish(0, row, column, pixels)

    def _join(self, level: int, place: tuple[int, ...], halves: list[Pixels | None]) -> Pixels:
        pixels = self._blank()
        down, across = pixels.shape[0] // 2, pixels.shape[1] // 2
        for k, half in enumerate(halves):
            if half is not None:
                top, left = k // 2 * down, k % 2 * across
                pixels[top : top + down, left : left + across] = half
        return self._finish(level, place[0], place[1], pixels)

    def _blank(self) -> Pixels:
        finest = self.levels[0]
        height, width = finest.rows * int(finest.height), finest.columns * int(finest.width)
        return np.full((height, width, 3), _EMPTY, dtype=np.uint8)

    def _finish(self, level: int, row: int, column: int, pixels: Pixels) -> Pixels:
        """Save a sheet, cut off at the edges of the wall, and return it at half its size."""
        each = self.levels[level]
        down = min(each.rows, self.cells.shape[0] - row * each.rows) * each.height
        across = min(each.columns, self.cells.shape[1] - column * each.columns) * each.width
        content = encode(pixels[: ceil(down), : ceil(across)], self.suffix)
        self.save(level, row, column, content)
        return np.asarray(Image.fromarray(pixels).reduce(2))


def _under(row: int, column: int) -> list[tuple[int, int]]:
    """Places of the four finer sheets under one."""
    return [(2 * row + k // 2, 2 * column + k % 2) for k in range(4)]
