"""What a page shows and changes: the pictures, their wall, its history, and the work under way.

Any number of tabs see the same session. Changes are made one at a time, each is a step that can
be undone, and each is saved before it is confirmed.
"""

import base64
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from unshuffle._run.parallel import step_counter
from unshuffle.web._http.refusal import Refused
from unshuffle.web._wall.arrangement import (
    EMPTY,
    OUTSIDE,
    Arrangement,
    Grid,
    Settings,
    describe_content,
    in_order,
)
from unshuffle.web._wall.arranger import Arranger
from unshuffle.web._wall.exports import N_ALIKE, WALL_MAKERS, Exports, WallPicture
from unshuffle.web._work.album import MOST_PICTURES, MOST_UPLOADED, Album, Slots
from unshuffle.web._work.history import History
from unshuffle.web._work.jobs import Canceled, Job
from unshuffle.web._work.state_file import Content, Saved, StateFile, wall_pieces
from unshuffle.web._work.workspace import Workspace, shown

# Seconds between two saves of new pictures, and without a new one after which all have come.
_BETWEEN_SAVES = 0.5
_PAUSE = 0.6


class Session(Workspace):
    """Pictures and their wall; every method may be called from any thread."""

    _file: StateFile

    def __init__(self, folder: Path | None, state: StateFile, cache: Path) -> None:
        super().__init__(("reading", "arranging", "exporting"), state)
        self.title = "Dropped pictures" if folder is None else folder.resolve().name or str(folder)
        self.album = Album(folder, state.pictures, cache)
        self.exports = Exports(state.pictures / ".exports", WALL_MAKERS)
        self.arranger = Arranger(self.album)
        self._history = History.of([Arrangement(Settings(), _nothing())])
        self._saved_at = self._added_at = -inf
        self._is_open = False

    # ---- beginning and end

    def open(self) -> None:
        """List the pictures, take up the wall of last time and begin to read."""
        self.album.list_folder()
        saved = self._file.load()
        if self._file.problem:
            self._tell(self._file.problem, "error")
        self.album.restore([] if saved is None else saved.dropped)
        if saved is None:
            self._start_over()
        else:
            self._take_up(saved)
        if not self._file.has_damaged:  # which may need them
            self.album.tidy_up(self._used())
        self._is_open = True
        self._read()

    def close(self) -> None:
        """End all work and save; a wall that could not be opened stays as it was."""
        was_open, self._is_open = self._is_open, False
        self._close(save=was_open)
        self.exports.close()
        self._file.close()

    def _start_over(self) -> None:
        self._history = History.of([Arrangement(Settings(), _nothing())])
        self._show_in_order()

    def _take_up(self, saved: Saved) -> None:
        """The history of last time, of the pictures that are still there."""
        place = {name: slot for slot, name in enumerate(self.album.names)}
        first = len(self.album) - len(self.album.dropped)
        dropped = {each.file: first + k for k, each in enumerate(self.album.dropped)}
        # The folder may hold a file by now that is called like a dropped one.
        place |= {each.name: dropped.get(each.file, -1) for each in saved.dropped}
        slots = np.array([place.get(name, -1) for name in saved.names], dtype=np.intp)
        self._history = History.of(
            [arrangement.renumbered(slots) for arrangement in saved.steps], saved.position
        )

    def _show_in_order(self) -> None:
        """Until the first arrangement, pictures are in the order of their names."""
        slots = np.arange(len(self.album))
        cells = np.ones((0, 0), dtype=bool)
        if slots.size:
            with suppress(Refused):
                cells = Settings().cells(len(slots), self._file.pictures)
        self._set(grid=in_order(slots, cells), settled=False, raw=True)

    # ---- what the page sees

    @property
    def now(self) -> Arrangement:
        """The arrangement that is shown."""
        return self._history.now

    def state(self) -> dict[str, Any]:
        """Everything small; `wall` and `pictures` have the rest."""
        with self._lock:
            now, history = self.now, self._history
            settled = not self.jobs.unfinished("arranging")
            return {
                "version": self._version,
                "title": self.title,
                "folder": self.album.folder is not None,
                "pictures": self.album.describe(),
                "wall": {
                    "version": self._history.version,
                    "rows": now.grid.shape[0],
                    "columns": now.grid.shape[1],
                    "wrap": now.settings.shape == "torus",
                    "nPlaced": int((now.grid >= 0).sum()),
                    "nFrozen": len(now.frozen),
                    "settled": settled,
                    "score": now.score if settled else None,
                },
                "settings": now.settings.describe(),
                "content": describe_content(),
                "limits": {"uploadBytes": MOST_UPLOADED, "pictures": MOST_PICTURES},
                "jobs": [job.describe() for job in self.jobs.unfinished()],
                "undo": history.undone,
                "redo": history.redone,
                "notice": self._notice_at(history.number),
                "unsaved": self.unsaved,
                "downloads": self.exports.describe(),
            }

    def pictures(self) -> dict[str, Any]:
        """Names by slot, and what could not be read."""
        with self._lock:
            return {
                "version": self.album.version,
                "names": [shown(name) for name in self.album.names],
                "failed": [
                    {"name": shown(name), "reason": shown(reason)}
                    for name, reason in self.album.failures()
                ],
            }

    def wall(self) -> dict[str, Any]:
        """Who is where."""
        with self._lock:
            now = self.now
            return {
                "version": self._history.version,
                "rows": now.grid.shape[0],
                "columns": now.grid.shape[1],
                "wrap": now.settings.shape == "torus",
                "cells": base64.b64encode(now.grid.astype("<i4").tobytes()).decode("ascii"),
                "frozen": sorted(now.frozen),
                "out": sorted(now.out),
            }

    def alike(self, slot: int) -> list[int]:
        """The nearest look-alikes of a picture among those on the wall."""
        working = self.jobs.unfinished("reading") or self.jobs.unfinished("arranging")
        if self.arranger.compared is None and not working:
            raise Refused("Comparing was canceled. Arrange again to see look-alikes.", status=409)
        return self.arranger.alike(slot, self.now.placed, N_ALIKE)

    # ---- what the page changes

    def change_settings(self, given: Any) -> None:
        """Choose another shape, other features or another quality, and arrange anew."""

        def choose(now: Arrangement) -> Arrangement:
            settings = now.settings.changed(given)
            return replace(
                now, settings=settings, label=f"changing {', '.join(given) or 'nothing'}"
            )

        self._arrange_anew(choose)

    def use_mask(self, name: str, file: str) -> None:
        """Use a picture that was kept as the shape of the wall."""

        def choose(now: Arrangement) -> Arrangement:
            shape = replace(now.settings, shape="mask", mask=name, mask_file=file)
            return replace(now, settings=shape, label=f"choosing {name}")

        try:
            # Whether it is a picture of a shape.
            choose(self.now).settings.cells(1, self._file.pictures)
            self._arrange_anew(choose)
        except Refused:
            if file not in self._used():
                self.album.discard(file)
            raise

    def arrange_again(self) -> None:
        """Arrange anew from another start."""
        again = "arranging again"
        self._arrange_anew(lambda now: replace(now, seed=now.seed + 1, label=again))

    def move(self, slot: Any, cell: Any, rows: Any, columns: Any) -> None:
        """Put a picture into a cell, where it stays, and the others around it."""
        with self._lock:
            now = self.now
            if (rows, columns) != now.grid.shape:
                raise Refused("The wall has changed. Please try again.", status=409)
            _check_slots([slot], now.placed)
            if (
                not isinstance(cell, int)
                or isinstance(cell, bool)
                or not 0 <= cell < now.grid.size
            ):
                raise Refused("There is no such cell.")
            held = int(now.grid.ravel()[cell])
            if held == OUTSIDE:
                raise Refused("That cell is outside the shape.", status=409)
            moved = now.swapped(slot, cell)
            # Unfreeze the picture that occupied the cell.
            frozen = (now.frozen - {held}) | {slot}
            label = f"moving {shown(self.album.names[slot])}"
            self._push(replace(moved, frozen=frozen, label=label))
        self._work()

    def freeze(self, slots: Any) -> None:
        """Keep pictures where they are."""
        with self._lock:
            some = _check_slots(slots, self.now.placed)
            label = f"freezing {self._named(some)}"
            now = self.now
            frozen = replace(now, frozen=now.frozen | some, label=label)
            self._push(frozen, settled=now.settled)
        if now.settled:
            self._save()
            self._compare_anew()
        else:  # the rest settles around it
            self._work()

    def unfreeze(self, slots: Any) -> None:
        """Let pictures move again; all if none are named."""
        with self._lock:
            some = _check_slots(slots, sorted(self.now.frozen)) or self.now.frozen
            if not some:
                raise Refused("No picture is frozen.")
            label = f"releasing {self._named(some)}"
            self._push(replace(self.now, frozen=self.now.frozen - some, label=label))
        self._work()

    def leave_out(self, slots: Any) -> None:
        """Take pictures off the wall."""
        with self._lock:
            some = _check_slots(slots, self.now.placed)
            label = f"leaving out {self._named(some)}"
            left = replace(self.now.without(some), out=self.now.out | some, label=label)
            self._push(left)
        self._work()

    def put_back(self, slots: Any) -> None:
        """Put pictures back that were left out; all if none are named."""
        with self._lock:
            some = _check_slots(slots, sorted(self.now.out)) or self.now.out
            if not some:
                raise Refused("No picture is left out.")
            label = f"putting back {self._named(some)}"
            back = replace(self.now, out=self.now.out - some, label=label)
            self._push(self._grown(back, sorted(some)))
        self._work()

    def _go(self, by: int, problem: str) -> None:
        with self._lock:
            moved = self._history.moved(by)
            if moved is None:
                raise Refused(problem, status=409)
            self.jobs.cancel("arranging")
            self._history = moved
            self._adopt()
            self.touch()
            settled = self.now.settled
        if not settled:
            self._work()  # it was left before it was arranged
            return
        self._save()
        self._compare_anew()

    def _adopt(self) -> None:
        """Let an earlier step know what came later: new pictures are left out, lost ones go."""
        now = self.now
        slots = np.setdiff1d(np.arange(len(self.album)), self.album.failed())
        gone = frozenset(np.setdiff1d(now.placed, slots).tolist())
        new = np.setdiff1d(slots, [*now.placed.tolist(), *now.out]).tolist()
        if gone or new:
            left = now.without(gone)
            out = left.out | frozenset(new)
            self._set(grid=left.grid, frozen=left.frozen, out=out)

    def added(self) -> None:
        """Show pictures that were dropped, and read them."""
        with self._lock:
            self._added_at = time.monotonic()
            if self._is_new():
                self.jobs.cancel("arranging")
                self._show_in_order()
            else:
                known = set(self.now.placed.tolist()) | self.now.out
                new = [slot for slot in self.album.waiting().tolist() if slot not in known]
                if new and self.now.label == _ADDING and not self.now.settled:
                    grown = self._grown(self.now, new)
                    self._set(grid=grown.grid, raw=grown.raw)
                elif new:
                    self._push(self._grown(replace(self.now, label=_ADDING), new))
        self._read()

    def _is_new(self) -> bool:
        """Whether the pictures were never arranged."""
        now = self.now
        return len(self._history.steps) == 1 and not (now.settled and now.placed.size)

    def clear(self) -> None:
        """Remove all dropped pictures and the history."""
        self.jobs.cancel()
        self.jobs.wait(timeout=30)
        with self._lock:
            copies = self.album.forget()
            self.arranger.compared = None
            self._start_over()
        self.album.delete(copies)
        self._save()
        self._read()

    def export(self, form: Any) -> Job:
        """Write the wall to a file to download."""
        make = self.exports.maker(form)
        with self._lock:
            now, slots = self.now, self.now.placed
            if not slots.size:
                raise Refused("The wall is empty; there is nothing to export.", "export", 409)
            missing = [slot for slot in slots.tolist() if not self.album.is_ready(slot)]
            grid = now.without(frozenset(missing)).grid
            slots = np.setdiff1d(slots, missing)
            number = np.full(len(self.album) + 2, EMPTY)
            number[slots] = np.arange(len(slots))
            names = [self.album.names[slot] for slot in slots]
            compared = self.arranger.compared
            vectors = None if compared is None else compared.take(slots)
        pictures = self.album.collection(slots)

        def work(job: Job) -> None:
            make(job, WallPicture(self.title, pictures, number[grid], names, vectors))

        return self._start("exporting", "Writing", work)

    # ---- history

    def _push(self, arrangement: Arrangement, *, settled: bool = False) -> None:
        """Show a new arrangement, after which the old one can come back."""
        with self._lock:
            self.jobs.cancel("arranging")
            self._history = self._history.pushed(arrangement, settled=settled)
            self.touch()

    def _set(self, number: int | None = None, **changes: Any) -> None:
        """Change the arrangement of a step, by default of the one that is shown."""
        with self._lock:
            self._history = self._history.changed(number, **changes)
            self.touch()

    def _kept(self) -> Content:
        history = self._history
        saved = Saved(list(self.album.names), self.album.kept(), history.steps, history.position)
        self._saved_at = time.monotonic()
        return lambda: wall_pieces(saved)

    def _used(self) -> set[str]:
        """Files of dropped pictures and masks that can still be shown."""
        with self._lock:
            masks = {each.settings.mask_file for each in self._history.steps}
            return masks | {each.file for each in self.album.dropped}

    def save_soon(self) -> None:
        """Save, unless that was done a moment ago."""
        if time.monotonic() - self._saved_at > _BETWEEN_SAVES:
            self._save()

    # ---- reading

    def _read(self) -> None:
        """Read all pictures that wait, then arrange."""
        with suppress(Refused):  # enough jobs are there, and read these too
            jobs = [job for job in self.jobs.unfinished("reading") if not job.canceled]
            if len(jobs) < 2:
                self._start("reading", "Reading", self._read_all, self._give_up)

    def _read_all(self, job: Job) -> None:
        try:
            while (slots := self.album.waiting()).size or self._more_may_come():
                if slots.size:
                    self._read_some(job, slots)
                else:
                    time.sleep(_PAUSE / 10)
        except Canceled:
            if not self._is_open:
                raise  # the server stops; next time it reads the rest
            if job.late:
                self._give_up()
        self._take_in()

    def _give_up(self) -> None:
        """Leave what waits unread, but not pictures that are dropped later."""
        if self._is_open:
            self.album.give_up("reading was canceled before it was read")

    def _read_some(self, job: Job, slots: Slots) -> None:
        self.album.read(slots, step_counter(job.count, len(slots)))
        self.save_soon()

    def _more_may_come(self) -> bool:
        """Whether pictures are being dropped, so that it is too early to arrange them."""
        return time.monotonic() - self._added_at < _PAUSE

    def _take_in(self) -> None:
        """Arrange if pictures came or went, or if it was never done."""
        with self._lock:
            now, ready = self.now, self.album.ready()
            gone = frozenset(np.setdiff1d(now.placed, ready).tolist())
            if gone:
                now = now.without(gone)
                self._set(grid=now.grid, frozen=now.frozen)
            new = np.setdiff1d(ready, [*now.placed.tolist(), *now.out])
            if new.size and now.settled:
                self._push(self._grown(replace(now, label=_ADDING), new.tolist()))
            elif new.size:
                grown = self._grown(now, new.tolist())
                self._set(grid=grown.grid, raw=grown.raw)
            done = now.settled and not new.size
        if not done:
            self._work()
            return
        self._save()
        self._compare_anew()

    def _grown(self, now: Arrangement, new: list[int]) -> Arrangement:
        """With more pictures: in empty cells if there are enough, else on a larger wall."""
        slots = np.union1d(now.placed, new).astype(np.intp)
        grown = now.extended(new)
        if now.frozen or len(slots) <= (now.grid != OUTSIDE).sum():
            return grown
        if now.settings.shape not in ("rectangle", "torus"):
            return replace(grown, raw=True)  # a larger shape takes time; the arranging finds it
        with suppress(Refused):  # the rows and columns that were chosen are too few
            return now.poured(slots, self._cells(now.settings, len(slots)))
        return grown

    # ---- arranging

    def _arrange_anew(self, choose: Callable[[Arrangement], Arrangement]) -> None:
        """Arrange all pictures, without regard to where they are, except for frozen ones.

        `choose` gives what is shown another shape, other features or another seed, and a label.
        """
        known: dict[tuple[Settings, int], Any] = {}
        while True:
            with self._lock:
                now = self.now
                chosen, slots, cells = choose(now), self._to_place(now), now.grid != OUTSIDE
                fits = cells.sum() >= len(slots)
                keeps = now.frozen and now.settings.has_shape_of(chosen.settings) and fits
                key = chosen.settings, len(slots)
                if keeps or key in known:
                    changed = replace(chosen, raw=True)
                    if not (keeps or np.array_equal(known[key], cells)):
                        changed = changed.poured(slots, known[key])
                    self._push(changed)
                    step = self._history.number
                    break
            # Without the lock, since it may read a mask; another tab may leave out a picture now.
            known[key] = self._cells(*key)
        if n_released := len(now.frozen - changed.frozen):
            who = _released_words(n_released, len(now.frozen))
            self._tell(f"{who} had no cell in the new shape, and can move again.", of_step=step)
        self._work()

    def _cells(self, settings: Settings, n: int) -> Any:
        if n == 0:
            return np.ones((0, 0), dtype=bool)
        return settings.cells(n, self._file.pictures)

    def _work(self) -> None:
        """Arrange the wall that is shown, in the background, from where the pictures are."""
        with self._lock:
            works = not self.now.settled  # another tab may have gone to another step
            if works:
                self.jobs.cancel("arranging")
                self._set(score=None)
                # After the reading, which takes in what is not settled.
                works = not (self.album.waiting().size and self.jobs.unfinished("reading"))
        self._save()
        if works:
            self._start("arranging", "Arranging", self._arrange, instead=True)

    def _to_place(self, now: Arrangement) -> Slots:
        """Slots that belong on the wall."""
        return np.setdiff1d(self.album.ready(), sorted(now.out)).astype(np.intp)

    def _arrange(self, job: Job) -> None:
        """Work on the step that is shown until it is settled or the job is canceled."""
        with self._lock:
            job.check()  # canceled to make way for another, it must not settle the step
            number, now = self._history.number, self.now
        if now.settled:
            return
        seen, score, slots = now, None, self._to_place(now)
        # Cells for another number of pictures than have been read.
        if (now.grid != OUTSIDE).sum() < len(slots) or (now.raw and not now.frozen):
            cells = self._cells(now.settings, len(slots))
            if not np.array_equal(cells, now.grid != OUTSIDE):
                now = now.poured(slots, cells)

        def show(grid: Grid, **changes: Any) -> None:
            nonlocal seen
            seen = self._show(number, seen, grid=grid, frozen=now.frozen, **changes)

        try:
            if not slots.size:
                show(now.grid)
                return
            layout, remarks = self.arranger.lay_out(
                job, now, slots, lambda grid: show(grid, raw=False)
            )
            score = float(layout.score_)
        finally:
            # Also after an error or when canceled: what there is, is kept. When the server stops,
            # the work goes on next time, and at once if two threads began it.
            if self._is_open and not job.replaced:
                self._settle(number, seen, score)
                self._save()
        for remark in remarks:
            self._tell(remark)

    def _show(self, number: int, seen: Arrangement, **changes: Any) -> Arrangement:
        """Change what a step holds and return it; `Canceled` if it was changed meanwhile."""
        with self._lock:
            if self._history.find(number) is not seen:
                raise Canceled
            self._set(number, **changes)
            shown = self._history.find(number)
        assert shown is not None
        return shown

    def _settle(self, number: int, seen: Arrangement, score: float | None) -> None:
        """Leave a step as it is, unless it was left before there was anything to show."""
        with self._lock:
            shown = number == self._history.number
            if self._history.find(number) is seen and (shown or not seen.raw):
                self._set(number, settled=True, score=score)

    def _compare_anew(self) -> None:
        """Compare the pictures of a settled wall, for look-alikes, unless that was done."""
        # What is being canceled may still drop what is known.
        if self.jobs.unfinished("arranging") or not self._is_compared():
            with suppress(Refused):
                self._start("arranging", "Comparing", self._compare)

    def _is_compared(self) -> bool:
        known, now = self.arranger.compared, self.now
        slots = self._to_place(now)
        return not slots.size or (known is not None and known.covers(now.settings.features, slots))

    def _compare(self, job: Job) -> None:
        if not self._is_compared():
            self.arranger.compare(job, self.now.settings.features, self._to_place(self.now))

    def _named(self, slots: Iterable[int]) -> str:
        some = list(slots)
        return shown(self.album.names[some[0]]) if len(some) == 1 else f"{len(some):,} pictures"


_ADDING = "adding pictures"


def _released_words(n: int, n_frozen: int) -> str:
    if n_frozen == 1:
        return "The frozen picture"
    return f"{f'All {n:,}' if n == n_frozen else f'{n:,} of {n_frozen:,}'} frozen pictures"


def _nothing() -> Grid:
    return np.zeros((0, 0), dtype=np.int32)


def _check_slots(slots: Any, known: Sequence[int] | Slots) -> frozenset[int]:
    if not isinstance(slots, list) or not all(type(each) is int for each in slots):
        raise Refused("Give the numbers of pictures.")
    if not np.isin(slots, known).all():
        raise Refused("That picture was removed meanwhile. Please try again.", status=409)
    return frozenset(slots)
