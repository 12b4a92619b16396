"""Files of a collage to download: pictures at the size they are printed, and a table."""

import threading
from dataclasses import dataclass
from io import FileIO, UnsupportedOperation
from math import floor, isfinite, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle._core.parameters import check_memory
from unshuffle._run.parallel import map_parallel, step_counter
from unshuffle.layout import Positions
from unshuffle.web._http.refusal import Refused
from unshuffle.web._wall.exports import Maker
from unshuffle.web._work.album import Album
from unshuffle.web._work.jobs import Job

CM_PER_INCH = 2.54
DPI_LIMITS = (72, 600)
MOST_PIXELS = 200_000_000
_MOST_CM = 10_000.0
_LONGEST_JPEG = 65_535
_QUALITY = 92
# Originals that are decoded at the same time; each may take 0.5 GB.
_AT_ONCE = 4
_BYTES = 4  # of a pixel in Pillow


@dataclass(frozen=True)
class Size:
    """Pixels of a printed collage, and how many make an inch."""

    width: int
    height: int
    dpi: int


@dataclass(frozen=True)
class Print:
    """What is exported."""

    album: Album
    grid: NDArray[np.int32]  # slot in each cell
    names: dict[int, str]  # of the slots in it
    size: Size | None


def check_size(width: Any, dpi: Any, shape: tuple[int, int], form: str) -> Size:
    """Pixels of a collage of so many centimeters, refused if they are too many or too few."""
    is_number = isinstance(width, int | float) and not isinstance(width, bool)
    if not is_number or not isfinite(width) or not 0 < width <= _MOST_CM:
        raise Refused("Enter a width above 0.", "width")
    least, most = DPI_LIMITS
    if not isinstance(dpi, int) or isinstance(dpi, bool) or not least <= dpi <= most:
        raise Refused(f"Enter {least} to {most} pixels per inch.", "dpi")
    rows, columns = shape
    across = floor(width / CM_PER_INCH * dpi + 0.5)
    down = floor(across * rows / columns + 0.5)
    if across < columns or down < rows:
        needed = columns / dpi * CM_PER_INCH
        raise Refused(
            f"{across:,} x {down:,} pixels are fewer than the {rows:,} x {columns:,} pictures. "
            f"Enter a width of at least {needed + 0.1:.1f} cm.",
            "width",
        )
    if across * down > MOST_PIXELS:
        widest = sqrt(MOST_PIXELS * columns / rows) / dpi * CM_PER_INCH
        raise Refused(
            f"{across:,} x {down:,} are {across * down / 1e6:,.0f} million pixels; at most "
            f"{MOST_PIXELS // 10**6} million are written. Enter a width of at most "
            f"{floor(widest)} cm, or fewer pixels per inch.",
            "width",
        )
    if form == "jpg" and max(across, down) > _LONGEST_JPEG:
        raise Refused(
            f"A JPEG has at most {_LONGEST_JPEG:,} pixels along a side; this one would have "
            f"{max(across, down):,}. Export a PNG, or enter a smaller width.",
            "width",
        )
    return Size(across, down, dpi)


def _draw(job: Job, what: Print) -> Image.Image:
    """The collage, each picture as sharp as its file."""
    assert what.size is not None
    size, (rows, columns) = what.size, what.grid.shape
    check_memory(
        _BYTES * size.width * size.height,
        what=f"A picture of {size.width:,} x {size.height:,} pixels",
        instead="Enter a smaller width, or fewer pixels per inch.",
    )
    drawn = Image.new("RGB", (size.width, size.height))
    # Edges on whole pixels, so that cells meet without seams.
    left = np.arange(columns + 1) * size.width // columns
    top = np.arange(rows + 1) * size.height // rows
    side = int(max(np.diff(left).max(), np.diff(top).max()))
    slots = list(what.names)
    lock, step = threading.Lock(), step_counter(job.count, len(slots))

    def put(slot: int) -> None:
        tile = Image.fromarray(what.album.square(slot, side))
        with lock:
            for row, column in np.argwhere(what.grid == slot).tolist():
                box = (0, 0, left[column + 1] - left[column], top[row + 1] - top[row])
                drawn.paste(tile.crop(box), (left[column], top[row]))
            step()

    map_parallel(put, slots, n_jobs=_AT_ONCE)
    return drawn


class _Cancelable(FileIO):
    """A file that can be canceled while it is written."""

    def __init__(self, path: Path, job: Job) -> None:
        super().__init__(path, "xb")
        self._job = job

    def write(self, piece: Any) -> int:
        """Write some bytes, unless the job is to end."""
        self._job.check()
        return super().write(piece)

    def fileno(self) -> int:
        """None, so that Pillow does not write past it."""
        raise UnsupportedOperation


def _make(form: str, **options: Any) -> Maker:
    def make(job: Job, folder: Path, what: Print) -> tuple[Path, str]:
        drawn = _draw(job, what)
        assert what.size is not None
        path = folder / f"collage.{form}"
        job.say("Writing")
        kind = "jpeg" if form == "jpg" else form
        with _Cancelable(path, job) as out:
            # Other programs print it at its size by the pixels of an inch.
            drawn.save(out, format=kind, dpi=(what.size.dpi, what.size.dpi), **options)
        return path, f"image/{kind}"

    return make


def _make_table(job: Job, folder: Path, what: Print) -> tuple[Path, str]:
    """Names with rows and columns, each cell once."""
    path = folder / "collage.csv"
    slots = sorted(what.names)
    names = [what.names[slot] for slot in slots]
    Positions(np.searchsorted(slots, what.grid), names).save(path)
    return path, "text/csv; charset=utf-8"


COLLAGE_MAKERS: dict[str, Maker] = {
    "png": _make("png", compress_level=3),
    "jpg": _make("jpg", quality=_QUALITY, subsampling=0),
    "csv": _make_table,
}
