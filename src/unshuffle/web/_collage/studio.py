"""The collage of a page: one picture drawn with the pictures of the wall."""

import asyncio
import base64
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from unshuffle._pictures.decoding import SUFFIXES
from unshuffle.web._collage.composer import Composer, Composition
from unshuffle.web._collage.prints import (
    COLLAGE_MAKERS,
    DPI_LIMITS,
    MOST_PIXELS,
    Print,
    check_size,
)
from unshuffle.web._collage.sketch import MOST_TRIED, CollageSettings, Plan, Sketch, Template, plan
from unshuffle.web._http.refusal import Refused
from unshuffle.web._wall.exports import Exports
from unshuffle.web._wall.session import Session
from unshuffle.web._work.album import MOST_UPLOADED, Slots, is_own_name, keep_file, tidy_name
from unshuffle.web._work.history import MOST_STEPS, History
from unshuffle.web._work.jobs import Canceled, Job, Work
from unshuffle.web._work.state_file import Companion, Content
from unshuffle.web._work.workspace import Workspace, shown

_CANCELED = "Composing was canceled. It starts again with the next change."


class Studio(Workspace):
    """A collage of the pictures of a wall; every method may be called from any thread."""

    _file: Companion

    def __init__(self, wall: Session, companion: Companion) -> None:
        super().__init__(("composing", "exporting"), companion)
        self._wall = wall
        self._composer = Composer(wall.album, companion.files)
        self.exports = Exports(companion.files / ".exports", COLLAGE_MAKERS)
        self._history = self._opened = History.of([Sketch()])
        self._collage: Composition | None = None
        self._done: OrderedDict[Any, Composition] = OrderedDict()  # by what they are made of
        self._drawn: tuple[int, bytes] = (0, b"")  # the last preview, and its version
        self._collage_version = 0
        self._request = 0  # number of the collage that was asked for last
        self._problem: dict[str, Any] | None = None
        self._seen: Any = None  # the pictures that are known
        self._drawing = threading.Lock()
        self._is_open = False
        self._forget = lambda: None

    # ---- beginning and end

    def open(self) -> None:
        """Take up the collage of last time, and follow the wall."""
        saved = self._file.read(_parse)
        if self._file.problem:
            self._tell(self._file.problem, "error")
        if saved is not None:
            self._history = self._opened = History.of(*saved)
        if not self._file.has_damaged:  # which may need them
            self._tidy_up()
        self._is_open = True
        self._forget = self._wall.listen(self._follow)
        self._follow()

    def close(self) -> None:
        """End all work and save."""
        was_open, self._is_open = self._is_open, False
        self._forget()
        self._close(save=was_open)
        self.exports.close()

    def _tidy_up(self) -> None:
        """Delete templates without a use, and parts of uploads that a killed server left."""
        used = {each.template.file for each in self._history.steps if each.template}
        with suppress(OSError):
            for path in self._file.files.iterdir():
                is_part = re.fullmatch(r"\.[0-9a-f]{32}\.part", path.name)
                if is_part or (is_own_name(path.name) and path.name not in used):
                    path.unlink(missing_ok=True)

    # ---- what the page sees

    @property
    def now(self) -> Sketch:
        """The template and the settings that are chosen."""
        return self._history.now

    def state(self) -> dict[str, Any]:
        """Everything small; `cells` and `preview` have the rest."""
        n_pictures, chosen = len(self._slots()), self.now
        template, usual = self._describe_template(chosen, n_pictures)
        with self._lock:
            now, collage, described = self.now, self._collage, None
            if collage is not None:
                described = collage.describe(now.settings, usual)
            reading = self._is_reading
            return {
                "version": self._version,
                "title": self._wall.title,
                "pictures": self._wall.album.describe(),
                "nPictures": n_pictures,
                "reading": reading,
                "template": template,
                "settings": asdict(now.settings),
                "usual": None if usual is None else asdict(usual),
                "collage": described,
                "collageVersion": self._collage_version,
                "problem": self._problem,
                "settled": not reading and not self.jobs.unfinished("composing"),
                "limits": {
                    "uploadBytes": MOST_UPLOADED,
                    "pixels": MOST_PIXELS,
                    "dpi": list(DPI_LIMITS),
                },
                "jobs": [job.describe() for job in self.jobs.unfinished()],
                "undo": self._history.undone,
                "redo": self._history.redone,
                "notice": self._notice_at(self._history.number),
                "unsaved": self.unsaved,
                "downloads": self.exports.describe(),
            }

    def _describe_template(
        self, now: Sketch, n_pictures: int
    ) -> tuple[dict[str, Any] | None, Plan | None]:
        """The template, and what is taken for each setting that is left open."""
        chosen = now.template
        if chosen is None:
            return None, None
        try:
            read = self._composer.template(chosen)
        except Refused:  # the composing says why
            return {"name": chosen.name, "key": chosen.key, "height": 0, "width": 0}, None
        height, width = read.size
        found = {"name": chosen.name, "key": chosen.key, "height": height, "width": width}
        if not n_pictures:
            return found, None
        n_tried = min(n_pictures, MOST_TRIED)
        free = plan(replace(now.settings, rows=None), n_tried, read.aspect)
        with suppress(Refused):  # the rows do not suit the template
            often = plan(replace(now.settings, repeat=None), n_tried, read.aspect)
            free = replace(free, repeat=often.repeat)
        return found, free

    def template(self) -> bytes:
        """The template for the screen."""
        chosen = self.now.template
        if chosen is None:
            raise Refused("There is no template.", status=404)
        return self._composer.template(chosen).picture

    def cells(self) -> dict[str, Any]:
        """The slot in each cell."""
        with self._lock:
            grid, version = self._shown().grid, self._collage_version
        packed = base64.b64encode(grid.astype("<i4").tobytes()).decode("ascii")
        rows, columns = grid.shape
        return {"version": version, "rows": rows, "columns": columns, "cells": packed}

    def preview(self) -> bytes:
        """The collage for the screen."""
        with self._drawing:
            with self._lock:
                collage, version = self._shown(), self._collage_version
            if self._drawn[0] != version:
                self._drawn = version, self._composer.draw(collage)
            return self._drawn[1]

    def _shown(self) -> Composition:
        if self._collage is None:
            raise Refused("There is no collage yet.", status=404)
        return self._collage

    # ---- what the page changes

    def change_settings(self, given: Any) -> None:
        """Change some settings; with "merge", as part of the step before, if it changed them."""
        given = dict(given) if isinstance(given, dict) else given
        merge = isinstance(given, dict) and given.pop("merge", False) is True
        while not self._change_settings(self._history, given, merge=merge):
            pass  # another tab was faster
        self._changed()

    def _change_settings(self, seen: History[Sketch], given: Any, *, merge: bool) -> bool:
        """Change settings of a history, unless it was left while they were checked."""
        before = seen.now
        settings = before.settings.changed(given)
        self._check(settings, before.template)  # without the lock: it may read the template
        label = f"changing {', '.join(given) or 'nothing'}"
        if merge and seen.undone == label and seen.redone is None:
            after = seen.changed(settings=settings)
        elif settings != before.settings:
            after = seen.pushed(replace(before, settings=settings, label=label))
        else:
            return True
        with self._lock:
            if self._history is not seen:
                return False
            self._history = after
        return True

    def _check(self, settings: CollageSettings, template: Template | None) -> None:
        """Refuse a grid that the pictures do not fill."""
        n_pictures = len(self._slots())
        if template is None or not n_pictures:
            return
        try:
            aspect = self._composer.template(template).aspect
        except Refused:  # the composing says why
            return
        plan(settings, min(n_pictures, MOST_TRIED), aspect)

    async def keep_template(self, name: str, pieces: AsyncIterator[bytes]) -> Template:
        """Write a picture that was sent to the folder of templates."""
        file, _ = await keep_file(self._file.files, name, pieces, SUFFIXES)
        return Template(file, tidy_name(name))

    def use_template(self, template: Template) -> None:
        """Draw another picture, which was kept."""
        try:
            self._composer.template(template)  # whether it is a picture
        except Refused:
            used = {each.template.file for each in self._history.steps if each.template}
            if template.file not in used:
                (self._file.files / template.file).unlink(missing_ok=True)
            raise
        with self._lock:
            if template != self.now.template:
                label = f"choosing {template.name}"
                changed = replace(self.now, template=template, label=label)
                self._history = self._history.pushed(changed)
        self._changed()

    def use_item(self, slot: Any) -> None:
        """Draw a picture of the wall, of which a copy is kept."""
        if not isinstance(slot, int) or isinstance(slot, bool):
            raise Refused("Give the number of a picture.", "template")
        album = self._wall.album
        content, name = album.large(slot), shown(album.names[slot])

        async def pieces() -> AsyncIterator[bytes]:
            yield content

        ending = ".png" if content.startswith(b"\x89PNG") else ".jpg"
        template = asyncio.run(self.keep_template(f"copy{ending}", pieces()))
        self.use_template(replace(template, name=tidy_name(name)))

    def _go(self, by: int, problem: str) -> None:
        with self._lock:
            moved = self._history.moved(by)
            if moved is None:
                raise Refused(problem, status=409)
            self._history = moved
        self._changed()

    def export(self, form: Any, width: Any = None, dpi: Any = None) -> Job:
        """Write the collage to a file to download, at the size it is printed."""
        make = self.exports.maker(form)
        with self._lock:
            if self._collage is None:
                raise Refused("There is no collage to export.", "export", 409)
            if self.jobs.unfinished("composing"):
                raise Refused("The collage is being composed. Try again soon.", "export", 409)
            grid = self._collage.grid
        size = None
        if form != "csv":
            rows, columns = grid.shape
            size = check_size(width, dpi, (rows, columns), form)
        album, slots = self._wall.album, np.unique(grid).tolist()
        if not all(map(album.is_ready, slots)):
            raise Refused("The pictures have changed. Try again soon.", "export", 409)
        names = {slot: album.names[slot] for slot in slots}

        def work(job: Job) -> None:
            make(job, Print(album, grid, names, size))

        return self._start("exporting", "Drawing" if size else "Writing", work)

    # ---- composing

    def _slots(self) -> Slots:
        """Pictures of the wall, in slots."""
        ready, out = self._wall.album.ready(), self._wall.now.out
        return np.setdiff1d(ready, sorted(out)).astype(np.intp) if out else ready

    @property
    def _is_reading(self) -> bool:
        return bool(self._wall.jobs.unfinished("reading"))

    def _follow(self) -> None:
        """Compose anew when pictures came or went; called after each change of the wall."""
        with self._lock:
            if not self._is_open:
                return
            if not self._is_reading:
                seen = self._wall.album.version, self._slots().tobytes()
                if seen == self._seen:
                    return
                self._seen = seen
                self._compose()
        self.touch()

    def _changed(self) -> None:
        self._save()
        self._compose()

    def _compose(self) -> None:
        """Make the collage that is chosen, in the background, or take the one that is known."""
        with self._lock:
            # Read with the lock held: of two calls, the later one knows the newest pictures.
            slots, now, key = self._slots(), self.now, None
            self.jobs.cancel("composing")
            if now.template is not None and len(slots):
                key = now.template.file, now.settings, self._wall.album.version, slots.tobytes()
            self._request, self._problem = self._request + 1, None
            number = self._request
            if key is None or key in self._done:
                self._show(number, None if key is None else self._done[key])
            else:

                def work(job: Job) -> None:
                    made = self._make(job, number, now, slots)
                    with self._lock:
                        self._done[key] = made
                        while len(self._done) > MOST_STEPS:
                            self._done.popitem(last=False)
                        self._show(number, made)

                guarded = partial(self._guard, number=number, work=work)
                self._start("composing", "Composing", guarded, instead=True)
        self.touch()

    def _make(self, job: Job, number: int, now: Sketch, slots: Slots) -> Composition:
        assert now.template is not None
        template = self._composer.template(now.template).pixels
        return self._composer.compose(
            job, template, now.settings, slots, lambda each: self._show(number, each)
        )

    def _guard(self, job: Job, *, number: int, work: Work) -> None:
        """Work, and say beside the settings what goes wrong."""
        try:
            work(job)
        except Refused as error:
            self._fail(number, str(error), error.field)
        except Canceled:
            if self._is_open:
                self._fail(number, _CANCELED, None)
            raise
        except (ValueError, MemoryError) as error:
            self._fail(number, " ".join(str(error).split()), "rows")

    def _show(self, number: int, made: Composition | None) -> None:
        with self._lock:
            if number != self._request or made is self._collage:
                return
            self._collage, self._collage_version = made, self._collage_version + 1
        self.touch()

    def _fail(self, number: int, message: str, field: str | None) -> None:
        with self._lock:
            if number == self._request:
                self._problem = {"message": message, "field": field}
        self.touch()

    def _kept(self) -> Content | None:
        if self._history is self._opened:
            return None
        steps, position = self._history.steps, self._history.position
        return lambda: self._file.pieces(
            {"position": position, "steps": [each.to_json() for each in steps]}
        )


def _parse(data: Any) -> tuple[list[Sketch], int]:
    steps = [Sketch.from_json(each) for each in data["steps"]]
    position = int(data["position"])
    if not 0 <= position < len(steps):
        raise ValueError("its history is incomplete")
    return steps, position
