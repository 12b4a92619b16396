"""Composing a collage from the pictures of a page, and drawing it for the screen."""

import io
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle._pictures.decoding import decode, explain
from unshuffle._pictures.templates import CLEAR, measure_likeness, read_template
from unshuffle._run.search import Stopped
from unshuffle._run.types import Pixels
from unshuffle.base import SearchState
from unshuffle.layout import Collage
from unshuffle.web._collage.sketch import (
    MOST_REPEAT,
    MOST_TRIED,
    CollageSettings,
    Plan,
    Template,
    plan,
)
from unshuffle.web._http.refusal import Refused
from unshuffle.web._work.album import LARGE_SIDE, Album, Slots
from unshuffle.web._work.jobs import Canceled, Job
from unshuffle.web._work.thumbnails import ACROSS, IN_SHEET, central_square

# At which pictures are compared with the template; the finest parts have whole pixels.
COMPARED_SIDE = 30
PREVIEW_SIDE, _SHEET_SIDE = 1600, 64
_QUALITY = 85
_MOST_TEMPLATES = 3
# Share of the work from which a collage looks nearly as it will, and seconds between two looks.
_FROM, _BETWEEN_LOOKS = 0.25, 0.3


@dataclass(frozen=True)
class Read:
    """A template that was read."""

    pixels: Pixels  # as it is compared
    picture: bytes  # as it is shown
    size: tuple[int, int]  # height and width in its file

    @property
    def aspect(self) -> float:
        """Height to width."""
        return self.pixels.shape[0] / self.pixels.shape[1]


@dataclass(frozen=True, eq=False)
class Composition:
    """A collage: the slot in each cell, and what can be said of it."""

    grid: NDArray[np.int32]
    planned: Plan
    share: float | None  # of the template's variation; None if it is not finished
    poor: bool
    n_tried: int

    def describe(self, settings: CollageSettings, usual: Plan | None) -> dict[str, Any]:
        """What the page says of it."""
        times = np.unique(self.grid, return_counts=True)[1]
        most = int(times.max())
        return {
            "rows": self.grid.shape[0],
            "columns": self.grid.shape[1],
            "nUsed": len(times),
            "mostUsed": most,
            "nTried": self.n_tried,
            "likeness": self.share,
            "poor": self.poor,
            "words": self._words(settings, usual, most),
        }

    def _words(self, settings: CollageSettings, usual: Plan | None, most: int) -> str:
        """How well the template can be seen, and what helps."""
        if self.share is None:
            return ""
        if not self.poor:
            if self.share >= CLEAR:
                return "The template is easy to recognize."
            return "The template can be recognized."
        helps = []
        if most == self.planned.repeat < self.grid.size:
            often = max(2 * most, 5, 0 if usual is None else usual.repeat)
            helps.append(f"use each picture up to {min(often, MOST_REPEAT):,} times")
        if settings.smoothness > 0.3:
            helps.append("choose less smoothness")
        helps.append("add pictures in its colors")
        first = f"The template is hard to see: {max(self.share, 0):.0%} of its variation is left."
        return f"{first} To come closer, {' or '.join(helps)}."


class Composer:
    """Keeps what several collages share: pictures as they are compared, and templates."""

    def __init__(self, album: Album, templates: Path) -> None:
        self._album, self._folder = album, templates
        self._lock = threading.Lock()
        self._tiles: tuple[tuple[int, bytes], Pixels] | None = None
        self._templates: dict[str, Read] = {}

    def template(self, template: Template) -> Read:
        """A template, decoded safely."""
        with self._lock:
            if template.file not in self._templates:
                found = self._read(template)
                while len(self._templates) >= _MOST_TEMPLATES:
                    del self._templates[next(iter(self._templates))]
                self._templates[template.file] = found
            return self._templates[template.file]

    def _read(self, template: Template) -> Read:
        path = self._folder / template.file
        try:
            shown = decode(path, size=(1, 1), preview=LARGE_SIDE)
            assert shown.preview is not None
            return Read(read_template(path), shown.preview, shown.original)
        except Exception as error:  # decoders raise nearly anything on a damaged file
            why = str(error).replace(str(path), template.name)
            if not why.startswith(template.name):
                why = f"{template.name} cannot be read as a picture: {explain(error)}."
            raise Refused(why, "template") from error

    def tiles(self, slots: Slots) -> Pixels:
        """The largest central square of each picture, small."""
        key = self._album.version, slots.tobytes()
        known = self._tiles
        if known is None or known[0] != key:
            try:
                found = self._album.collection(slots)
            except IndexError:  # the wall was cleared meanwhile
                raise Canceled from None
            pairs = zip(found.arrays, found.sizes, strict=True)
            squares = [central_square(*pair, COMPARED_SIDE) for pair in pairs]
            self._tiles = known = key, np.array(squares, dtype=np.uint8)
        return known[1]

    def compose(
        self,
        job: Job,
        template: Pixels,
        settings: CollageSettings,
        slots: Slots,
        show: Callable[[Composition], None],
    ) -> Composition:
        """Draw the template with pictures, and show the collage on the way."""
        if len(slots) > MOST_TRIED:
            rng = np.random.default_rng(0)
            slots = np.sort(rng.choice(slots, MOST_TRIED, replace=False))
        tiles = self.tiles(slots)
        planned = plan(settings, len(slots), template.shape[0] / template.shape[1])
        shape = planned.rows, planned.columns
        looked = 0.0

        def found(
            grid: NDArray[np.intp], share: float | None = None, poor: bool = False
        ) -> Composition:
            return Composition(slots[grid].astype(np.int32), planned, share, poor, len(slots))

        def follow(state: SearchState) -> bool:
            nonlocal looked
            job.fraction = state.fraction
            due = _FROM <= state.fraction < 1 and monotonic() - looked > _BETWEEN_LOOKS
            if due and not job.canceled:
                show(found(state.permutation.reshape(shape)))
                looked = monotonic()
            return job.canceled

        collage = Collage(
            template,
            shape=shape,
            smoothness=settings.smoothness,
            repeat=planned.repeat,
            detail=settings.detail,
            neighbors=settings.neighbors,
            random_state=0,
            n_jobs=-1,
            callback=follow,
        )
        try:
            collage.fit(tiles)
        except Stopped:
            raise Canceled from None
        job.check()
        return found(collage.grid_, *measure_likeness(template, tiles, collage.grid_))

    def draw(self, composition: Composition) -> bytes:
        """The collage as a JPEG for the screen."""
        grid = composition.grid
        side = max(1, min(_SHEET_SIDE, PREVIEW_SIDE // max(grid.shape)))
        slots, number = np.unique(grid, return_inverse=True)
        tiles = np.empty((len(slots), side, side, 3), dtype=np.uint8)
        for k in np.unique(slots // IN_SHEET).tolist():
            across = ACROSS * side
            with Image.open(
                io.BytesIO(self._album.sheet(_SHEET_SIDE, k)), formats=("JPEG",)
            ) as sheet:
                # Each pixel of the result lies within one picture.
                small = np.asarray(sheet.resize((across, across), Image.Resampling.BOX))
            cut = small.reshape(ACROSS, side, ACROSS, side, 3).swapaxes(1, 2)
            mine = slots // IN_SHEET == k
            tiles[mine] = cut.reshape(IN_SHEET, side, side, 3)[slots[mine] % IN_SHEET]
        rows, columns = grid.shape
        drawn = tiles[number.reshape(rows, columns)].swapaxes(1, 2)
        out = io.BytesIO()
        picture = Image.fromarray(drawn.reshape(rows * side, columns * side, 3))
        picture.save(out, format="JPEG", quality=_QUALITY, subsampling=0)
        return out.getvalue()
