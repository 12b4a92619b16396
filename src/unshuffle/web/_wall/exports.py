"""Files to download, and those of a wall: a picture, a page, a table."""

import io
import os
import shutil
import threading
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle._pictures.decoding import central_part
from unshuffle._run.parallel import map_parallel, step_counter
from unshuffle.images import ImageCollection, grid_sheet, save_sheet, write_page
from unshuffle.layout import Positions, look_alikes
from unshuffle.web._http.refusal import Refused
from unshuffle.web._work.jobs import Job

MOST_KEPT = 4
MOST_IN_FILE = 4000  # pictures for which the page is one file; beyond, a folder in an archive
N_ALIKE = 8
SHEET_SIDE, LEAST_SIDE = 96, 16
SHEET_PIXELS = 60_000_000
GAP = 2


@dataclass(frozen=True)
class WallPicture:
    """What is exported."""

    title: str
    pictures: ImageCollection
    grid: NDArray[np.intp]  # picture in each cell, -1 for none
    names: list[str]
    vectors: tuple[NDArray[Any], str] | None  # and their kernel, for look-alikes


@dataclass(frozen=True)
class Download:
    """A finished file."""

    id: str
    name: str
    path: Path
    kind: str


# Makes a file in a folder from what is exported, and returns it with its media type.
Maker = Callable[[Job, Path, Any], tuple[Path, str]]


class Exports:
    """The last few files that were made, in a folder that is emptied first and last."""

    def __init__(self, folder: Path, makers: Mapping[str, Maker]) -> None:
        self._folder, self._makers = folder, makers
        self.close()  # what a killed server left
        self._lock = threading.Lock()
        self._done: list[Download] = []

    def close(self) -> None:
        """Remove them."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def describe(self) -> list[dict[str, Any]]:
        """What the page offers."""
        with self._lock:
            return [
                {"id": each.id, "name": each.name, "bytes": each.path.stat().st_size}
                for each in self._done
                if each.path.exists()
            ]

    def find(self, name: str) -> Download:
        """The file of an id."""
        with self._lock:
            found = next((each for each in self._done if each.id == name), None)
        if found is None or not found.path.exists():
            raise Refused("That file is gone. Export it again.", status=404)
        return found

    def maker(self, form: Any) -> Callable[[Job, Any], None]:
        """Function that makes a file of this form."""
        makers = self._makers
        if not isinstance(form, str) or form not in makers:
            *some, last = makers
            raise Refused(f"Choose {', '.join(some)} or {last}.", "export")

        def make(job: Job, what: Any) -> None:
            name = token_hex(8)
            folder = self._folder / name
            folder.mkdir(parents=True)
            try:
                path, kind = makers[form](job, folder, what)
                job.check()
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            with self._lock:
                self._done.append(Download(name, path.name, path, kind))
                while len(self._done) > MOST_KEPT:
                    shutil.rmtree(self._done.pop(0).path.parent, ignore_errors=True)

        return make


def _make_picture(job: Job, folder: Path, wall: WallPicture) -> tuple[Path, str]:
    """The wall as a PNG, as sharp as 60 million pixels allow."""
    side, gap = min(int((SHEET_PIXELS / wall.grid.size) ** 0.5) - GAP, SHEET_SIDE), GAP
    if side < LEAST_SIDE:  # on a wall of many empty cells
        side, gap = max(side + GAP, 1), 0
    tiles = np.zeros((len(wall.names), side, side, 3), dtype=np.uint8)

    def draw(i: int) -> None:
        content = io.BytesIO(wall.pictures.previews[i])  # type: ignore[index]
        with Image.open(content, formats=("JPEG", "PNG")) as image:
            tiles[i] = central_part(image, side, side)

    step = step_counter(job.count, len(wall.names))
    map_parallel(draw, range(len(wall.names)), n_jobs=-1, done=step)
    path = folder / "wall.png"
    save_sheet(grid_sheet(tiles, wall.grid, tile=side, gap=gap), path)
    return path, "image/png"


def _make_page(job: Job, folder: Path, wall: WallPicture) -> tuple[Path, str]:
    """The wall as a page that works without a server."""
    neighbors = None
    if wall.vectors is not None and len(wall.names) > 1:
        job.say("Finding look-alikes")
        neighbors = look_alikes(
            wall.vectors[0], N_ALIKE, kernel=wall.vectors[1], n_jobs=-1, on_progress=job.count
        )
    job.say("Writing")
    in_file = len(wall.names) <= MOST_IN_FILE
    page = folder / ("wall.html" if in_file else "wall")
    write_page(
        page,
        wall.pictures,
        wall.grid,
        wall.names,
        title=wall.title,
        neighbors=neighbors,
        n_jobs=-1,
        on_progress=job.count,
    )
    if in_file:
        return page, "text/html; charset=utf-8"
    archive = folder / "wall.zip"
    with zipfile.ZipFile(archive, "w") as out:  # pictures do not get smaller
        for path in sorted(page.rglob("*")):
            job.check()
            if path.is_file():
                out.write(path, os.path.join("wall", path.relative_to(page)))
    shutil.rmtree(page)
    return archive, "application/zip"


def _make_table(job: Job, folder: Path, wall: WallPicture) -> tuple[Path, str]:
    """Names with rows and columns."""
    path = folder / "wall.csv"
    Positions(wall.grid, wall.names).save(path)
    return path, "text/csv; charset=utf-8"


WALL_MAKERS: dict[str, Maker] = {"png": _make_picture, "page": _make_page, "csv": _make_table}
