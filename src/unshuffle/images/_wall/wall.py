"""A wall of pictures as the files of a page: sheets, larger pictures and data."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.parallel import map_parallel, step_counter
from unshuffle._run.types import Progress
from unshuffle.images._wall.pyramid import Level, Pictures, Pyramid, count_sheets, plan_levels
from unshuffle.images._wall.regions import find_regions
from unshuffle.images._wall.viewer import (
    bundle_script,
    data_element,
    data_script,
    escape_json,
    fill_frame,
    style_sheet,
)

# Of the finest sheets in a single file; browsers open this many without trouble.
MAX_PAGE_PIXELS = 64_000_000
# Of the larger pictures in a single file; beyond, it holds the sheets alone.
MAX_PAGE_BYTES = 48 * 2**20
# JPEG works on blocks of eight pixels; tiles aligned with them do not bleed into each other.
_STEP = 8
_LEAST_TILE, _MOST_TILE = 32, 128
_CHUNK = 20_000  # items in one part of the data
_IN_FOLDER = 1000  # pictures in each sub-folder, as the viewer expects
_SAMPLED = 500  # pictures whose sizes are looked at


@dataclass(frozen=True)
class _Plan:
    """How the pictures are kept."""

    levels: list[Level]
    suffix: str  # of sheets
    picture_suffix: str = ""  # of larger pictures; "" for none
    picture_side: int = 0  # usual height of what a cell shows of them


@dataclass(frozen=True)
class Wall:
    """What a page shows, in the numbering of the caller."""

    pictures: Pictures
    size: tuple[int, int] | None  # of pictures of one size
    grid: NDArray[np.intp]
    names: list[str]
    columns: dict[str, list[str]]
    labels: str | None
    neighbors: NDArray[np.intp] | None
    links: list[str] | None
    title: str
    noun: str
    tile: int | None
    in_file: bool

    @cached_property
    def items(self) -> NDArray[np.intp]:
        """Those on the grid; the page numbers them in this order and knows no others."""
        return np.unique(self.grid[self.grid >= 0])

    @cached_property
    def number(self) -> NDArray[np.intp]:
        """On the page, of each item; -1 if it is not there. The last is that of item -1."""
        number = np.full(len(self.names) + 1, -1, dtype=np.intp)
        number[self.items] = np.arange(len(self.items))
        return number

    @cached_property
    def plan(self) -> _Plan:
        """Sizes of cells and of larger pictures."""
        shape = self.grid.shape
        if self.size == (1, 1) and self.tile is None:
            return _Plan(plan_levels(shape, 1, 1), "png")
        some = self.items[:: max(1, len(self.items) // _SAMPLED)].tolist()
        sizes = self.pictures.sizes(some) if self.size is None else np.array([self.size])
        if not len(sizes):  # every cell is empty
            sizes = np.array([(_LEAST_TILE, _LEAST_TILE)])
        aspect = 1.0 if self.size is None else self.size[1] / self.size[0]
        usual = float(np.median(sizes.min(axis=1) if self.size is None else sizes[:, 0]))
        height = self.tile or min(max(usual, _LEAST_TILE), _MOST_TILE)
        if self.in_file:
            most = sqrt(MAX_PAGE_PIXELS / (self.grid.size * aspect))
            height = min(height, max(_STEP, int(most) // _STEP * _STEP))
        rounded = _round_up(height)
        levels = plan_levels(shape, rounded, _round_up(rounded * aspect))
        longest = float(np.quantile(sizes.max(axis=1), 0.9))
        if longest <= 1.1 * max(levels[0].width, levels[0].height) or not self._has_room():
            return _Plan(levels, "jpg")
        suffix = "png" if self.pictures.are_png(some) else "jpg"
        return _Plan(levels, "jpg", suffix, int(usual))

    def _has_room(self) -> bool:
        """Whether the page can hold the larger pictures."""
        n_bytes = 0
        for item in self.items.tolist() if self.in_file else ():
            n_bytes += len(self.pictures.encode(item, "jpg"))
            if n_bytes > MAX_PAGE_BYTES:
                return False
        return True

    def write_file(self, n_jobs: int | None, report: Progress | None) -> Iterator[bytes]:
        """The page of a single file in pieces; data come before the script that reads them."""
        step, sheets = self._count_steps(report), {}

        def keep(level: int, row: int, column: int, content: bytes) -> None:
            sheets[f"sheet-{level}-{row}-{column}"] = content
            step()

        plan = self.plan
        Pyramid(self.pictures, self.grid, plan.levels, plan.suffix, keep).draw(n_jobs)
        before, after = fill_frame(self.title, self.noun, self._describe(), in_file=True)
        yield before
        for name in sorted(sheets):
            yield _encoded_element(name, sheets[name])
        for name, value in self._parts():
            yield data_element("application/json", f"data-{name}", escape_json(value))
        if plan.picture_suffix:
            for number, item in enumerate(self.items.tolist()):
                content = self.pictures.encode(item, plan.picture_suffix)
                yield _encoded_element(f"picture-{number}", content)
                step()
        yield after

    def write_folder(self, folder: Path, n_jobs: int | None, report: Progress | None) -> bytes:
        """Write the files of a page into an empty folder and return the page."""
        step, plan = self._count_steps(report), self.plan
        for level in range(len(plan.levels)):
            (folder / "sheets" / str(level)).mkdir(parents=True)

        def save(level: int, row: int, column: int, content: bytes) -> None:
            name = f"{row}-{column}.{plan.suffix}"
            (folder / "sheets" / str(level) / name).write_bytes(content)
            step()

        def write_pictures(start: int) -> None:
            part = folder / "pictures" / str(start // _IN_FOLDER)
            part.mkdir(parents=True)
            for k, item in enumerate(self.items[start : start + _IN_FOLDER].tolist()):
                content = self.pictures.encode(item, plan.picture_suffix)
                (part / f"{k}.{plan.picture_suffix}").write_bytes(content)
                step()

        Pyramid(self.pictures, self.grid, plan.levels, plan.suffix, save).draw(n_jobs)
        if plan.picture_suffix:
            starts = range(0, len(self.items), _IN_FOLDER)
            map_parallel(write_pictures, starts, n_jobs=n_jobs)
        (folder / "data").mkdir()
        for name, value in self._parts():
            (folder / "data" / f"{name}.js").write_bytes(data_script(name, value))
        (folder / "viewer.js").write_text(bundle_script(), "utf-8")
        (folder / "viewer.css").write_text(style_sheet(), "utf-8")
        return b"".join(fill_frame(self.title, self.noun, self._describe(), in_file=False))

    def _count_steps(self, report: Progress | None) -> Callable[[], None]:
        """Function that reports one more sheet or larger picture."""
        sheets = [count_sheets(self.grid.shape, level) for level in self.plan.levels]
        n_pictures = len(self.items) if self.plan.picture_suffix else 0
        return step_counter(report, sum(down * across for down, across in sheets) + n_pictures)

    def _describe(self) -> dict[str, Any]:
        """What the viewer needs before anything else."""
        regions = []
        if self.labels is not None:
            regions = find_regions(self.grid, self.columns[self.labels])
        return {
            "form": "page" if self.in_file else "folder",
            "n": len(self.items),
            "rows": self.grid.shape[0],
            "columns": self.grid.shape[1],
            "noun": [self.noun, f"{self.noun}s"],
            "headings": list(self.columns),
            "chunk": _CHUNK,
            "levels": [asdict(level) for level in self.plan.levels],
            "suffix": self.plan.suffix,
            "pictureSuffix": self.plan.picture_suffix,
            "pictureSide": self.plan.picture_side,
            "exact": self.plan.suffix == "png",
            "neighbors": 0 if self.neighbors is None else self.neighbors.shape[1],
            "links": self.links is not None,
            "regions": [asdict(each) for each in regions],
        }

    def _parts(self) -> Iterator[tuple[str, Any]]:
        """The data in named parts: items of the cells, then what is known of some items each."""
        yield "cells", _encode_numbers(self.number[self.grid])
        for k, start in enumerate(range(0, len(self.items), _CHUNK)):
            some = self.items[start : start + _CHUNK]
            chosen = some.tolist()
            columns = [
                _number_texts([texts[i] for i in chosen]) for texts in self.columns.values()
            ]
            yield f"items-{k}", {"names": [self.names[i] for i in chosen], "columns": columns}
            if self.neighbors is not None:
                yield f"neighbors-{k}", _encode_numbers(self.number[self.neighbors[some]])
            if self.links is not None:
                yield f"links-{k}", [self.links[i] for i in chosen]


def _round_up(pixels: float) -> int:
    return max(1, -int(-pixels // _STEP)) * _STEP


def _number_texts(texts: list[str]) -> dict[str, Any]:
    """Different texts, and the number of the text of each item."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for text in texts]
    return {"values": list(numbers), "codes": _encode_numbers(np.array(codes, dtype=np.intp))}


def _encode_numbers(numbers: NDArray[np.intp]) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<i4").tobytes()).decode("ascii")


def _encoded_element(name: str, content: bytes) -> bytes:
    return data_element("text/plain", name, base64.b64encode(content).decode("ascii"))
