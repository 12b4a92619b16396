"""The two collections of a match: pictures or texts, a file each, or the rows of a table."""

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._files.documents import TEXT_SUFFIXES, read_document
from unshuffle._files.paths import list_files
from unshuffle._files.tables import ANNDATA, SUFFIXES, Table, read_table
from unshuffle._run.parallel import step_counter
from unshuffle.images import color_histogram, color_texture, describe, lab_pixels, visual_words
from unshuffle.web._http.refusal import Refused
from unshuffle.web._work.album import (
    FAILED,
    MOST_PICTURES,
    READY,
    WAITING,
    Album,
    Dropped,
    Slots,
    keep_file,
    tidy_name,
)
from unshuffle.web._work.jobs import Canceled

TABLES = (*SUFFIXES, ANNDATA)
# What the items of a kind are called.
NOUNS = {"pictures": "pictures", "texts": "texts", "table": "rows"}
# Features that pictures can be matched by, and those that are worth keeping.
PICTURE_FEATURES = ("pixels", "color", "texture", "words", "content")
_SLOW = ("texture", "words", "content")
_EXCERPT, _LONGEST_TEXT = 200, 20_000  # letters
_FEW_CELLS, _MOST_CELLS = 4, 200


class Side(Protocol):
    """A collection with its items in numbered slots; methods may be called from any thread."""

    kind: ClassVar[str]
    fixed: bool  # given on the command line, so that nothing can be added

    @property
    def names(self) -> list[str]:
        """Names by slot."""

    def __len__(self) -> int: ...
    def open(self, dropped: list[Dropped]) -> None:
        """List what is there, and what was dropped before."""

    async def add(self, name: str, pieces: AsyncIterator[bytes]) -> int:
        """Add a file; the slot of its first item."""

    def read(self, step: Callable[[int, int], None]) -> None:
        """Read what waits; `step` receives the number done and the number of all."""

    def give_up(self, reason: str) -> None:
        """Leave unread what waits."""

    def waiting(self) -> Slots:
        """Slots that are not read yet."""

    def ready(self) -> Slots:
        """Slots of items that were read."""

    def failures(self) -> list[tuple[str, str]]:
        """What could not be read, and why."""

    def kept(self) -> list[Dropped]:
        """Files that were dropped and can be read."""

    def clear(self) -> None:
        """Delete dropped files."""

    def describe(self, slots: Slots, features: Sequence[str]) -> tuple[Any, Any]:
        """Items for the estimator, and their kernel; `features` are for pictures alone."""

    def words(self) -> list[str] | None:
        """A few words about each item; None for pictures."""

    def item(self, slot: int) -> dict[str, Any]:
        """All words of an item."""


class PictureSide:
    """Pictures of a folder, or dropped ones."""

    kind: ClassVar[str] = "pictures"

    def __init__(self, album: Album) -> None:
        self.album = album
        self.fixed = album.folder is not None
        self._described: dict[str, tuple[Slots, NDArray[Any]]] = {}  # by features that take long

    def __len__(self) -> int:
        return len(self.album)

    @property
    def names(self) -> list[str]:
        """Names by slot."""
        return self.album.names

    def open(self, dropped: list[Dropped]) -> None:
        """List the folder, or files that were dropped before."""
        if self.fixed:
            self.album.list_folder()
        elif self.album.uploads.exists():
            self.album.restore(dropped)
            self.album.tidy_up({each.file for each in self.album.dropped})

    async def add(self, name: str, pieces: AsyncIterator[bytes]) -> int:
        """Add a file; its slot."""
        return await self.album.add(name, pieces)

    def read(self, step: Callable[[int, int], None]) -> None:
        """Read what waits."""
        slots = self.waiting()
        self.album.read(slots, step_counter(step, len(slots)))

    def give_up(self, reason: str) -> None:
        """Leave unread what waits."""
        self.album.give_up(reason)

    def waiting(self) -> Slots:
        """Slots that are not read yet."""
        return self.album.waiting()

    def ready(self) -> Slots:
        """Slots of items that were read."""
        return self.album.ready()

    def failures(self) -> list[tuple[str, str]]:
        """Files that could not be read, and why."""
        return self.album.failures()

    def kept(self) -> list[Dropped]:
        """Files that were dropped and can be read."""
        return self.album.kept()

    def clear(self) -> None:
        """Delete dropped files."""
        self.album.clear()
        self._described = {}

    def describe(self, slots: Slots, features: Sequence[str]) -> tuple[Any, Any]:
        """Each of the features on its own, as `unshuffle match` compares pictures."""
        pictures, known = self.album.collection(slots), self._described
        compute: dict[str, Callable[[], NDArray[Any]]] = {
            "pixels": lambda: lab_pixels(pictures.arrays),
            "color": lambda: color_histogram(pictures.arrays),
            "texture": lambda: color_texture(pictures.arrays),
            "words": lambda: visual_words(pictures.arrays, random_state=0, n_jobs=-1),
            "content": lambda: describe(pictures, "content", cache=self.album.cache, n_jobs=-1)[0],
        }
        found = {}
        for each in features:
            before, vectors = known.get(each, (slots[:0], None))
            if vectors is None or not np.array_equal(before, slots):
                vectors = compute[each]()
            found[each] = slots, vectors
        # An answer matches anew, and has nothing to do with what takes long to compute.
        self._described = {each: found[each] for each in features if each in _SLOW}
        return [found[each][1] for each in features], ["rbf" for _ in features]

    def words(self) -> list[str] | None:
        """Pictures speak for themselves."""
        return None

    def item(self, slot: int) -> dict[str, Any]:
        """The name of a picture."""
        self._check(slot)
        return {"name": self.names[slot], "text": None, "cells": None}

    def _check(self, slot: int) -> None:
        if not self.album.is_ready(slot):
            raise Refused("There is no such item.", status=404)


class _TextAlbum(Album):
    """Text files in place of pictures."""

    def __init__(self, folder: Path | None, uploads: Path, cache: Path) -> None:
        super().__init__(folder, uploads, cache)
        self.texts: dict[int, str] = {}  # by slot

    def read(self, slots: Slots, step: Callable[[], None]) -> None:
        """Read these slots; `step` is called after each, and what it raises ends the reading."""
        for slot in slots.tolist():
            text, reason = self._read_one(slot)
            with self._lock:
                # Otherwise it was cleared or given up meanwhile.
                if slot < len(self) and self._status[slot] == WAITING:
                    self._status[slot] = FAILED if reason else READY
                    if reason:
                        self.reasons[slot] = reason
                    else:
                        self.texts[slot] = text
            step()

    def _read_one(self, slot: int) -> tuple[str, str]:
        """The text of a slot, or why there is none."""
        with self._lock:
            if slot >= len(self):
                return "", "removed"
            path, name = Path(self._paths[slot]), self.names[slot]
        try:
            self._reader.check_inside(path)
            return read_document(path, name), ""
        except (ValueError, OSError) as error:
            return "", str(getattr(error, "strerror", None) or error).lower()

    def clear(self) -> None:
        """Forget the dropped texts and delete their copies."""
        with self._lock:
            super().clear()
            self.texts = {slot: text for slot, text in self.texts.items() if slot < len(self)}


class TextSide(PictureSide):
    """Text files of a folder, or dropped ones."""

    kind: ClassVar[str] = "texts"

    def __init__(self, album: _TextAlbum) -> None:
        super().__init__(album)
        self._texts = album

    def describe(self, slots: Slots, features: Sequence[str]) -> tuple[Any, Any]:
        """Texts are compared by their words."""
        return [self._texts.texts[slot] for slot in slots.tolist()], "text"

    def words(self) -> list[str] | None:
        """The beginning of each text."""
        return [_excerpt(self._texts.texts.get(slot, "")) for slot in range(len(self))]

    def item(self, slot: int) -> dict[str, Any]:
        """A text, unless it is very long."""
        self._check(slot)
        text = self._texts.texts[slot]
        more = " ..." if len(text) > _LONGEST_TEXT else ""
        return {"name": self.names[slot], "text": text[:_LONGEST_TEXT] + more, "cells": None}


class TableSide:
    """Rows of a table, given or dropped."""

    kind: ClassVar[str] = "table"

    def __init__(self, path: Path | None, uploads: Path) -> None:
        self.fixed = path is not None
        self.names: list[str] = []
        self._given = path
        self._uploads = uploads
        self._dropped: Dropped | None = None
        self._table: Table | None = None
        self._problem = ""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def _path(self) -> Path | None:
        if self._dropped is not None:
            return self._uploads / self._dropped.file
        return self._given

    @property
    def _name(self) -> str:
        if self._dropped is not None:
            return self._dropped.name
        return "" if self._given is None else self._given.name

    def open(self, dropped: list[Dropped]) -> None:
        """Take up a table that was dropped before."""
        there = [each for each in dropped if (self._uploads / each.file).is_file()]
        if there and not self.fixed:
            self._dropped = there[-1]

    async def add(self, name: str, pieces: AsyncIterator[bytes]) -> int:
        """Take a table in place of the one before."""
        file, _ = await keep_file(self._uploads, name, pieces, TABLES)
        new = Dropped(file, tidy_name(name))
        if self._dropped is not None and self._dropped.file != file:
            (self._uploads / self._dropped.file).unlink(missing_ok=True)
        self._dropped, self._table, self._problem, self.names = new, None, "", []
        return 0

    def read(self, step: Callable[[int, int], None]) -> None:
        """Read the table."""
        path = self._path
        if path is None or self._table is not None or self._problem:
            return
        step(0, 1)
        try:
            table = read_table(path)
            if len(table.names) > MOST_PICTURES:
                raise ValueError(f"it has {len(table.names):,} rows; at most {MOST_PICTURES:,}")
        except (ValueError, OSError, MemoryError, ImportError) as error:
            # Of the path, only the name is for the page.
            why = " ".join(str(error).split()).replace(str(path), self._name)
            self._problem = why
            return
        self._table = table
        self.names = [name or f"row {k + 1}" for k, name in enumerate(table.names)]
        step(1, 1)

    def give_up(self, reason: str) -> None:
        """A table is read at once."""

    def waiting(self) -> Slots:
        """One if the table is not read yet."""
        is_waiting = self._path is not None and self._table is None and not self._problem
        return np.arange(int(is_waiting))

    def ready(self) -> Slots:
        """All rows."""
        return np.arange(len(self.names))

    def failures(self) -> list[tuple[str, str]]:
        """The table, if it could not be read."""
        return [(self._name, self._problem)] if self._problem else []

    def kept(self) -> list[Dropped]:
        """The table that was dropped."""
        return [] if self._dropped is None else [self._dropped]

    def clear(self) -> None:
        """Forget a dropped table and delete its copy."""
        if self._dropped is not None:
            (self._uploads / self._dropped.file).unlink(missing_ok=True)
            self._dropped, self._table, self._problem, self.names = None, None, "", []

    def describe(self, slots: Slots, features: Sequence[str]) -> tuple[Any, Any]:
        """Numbers, whose scaling and kernel are chosen by the estimator."""
        table = self._table
        if table is None or len(slots) > len(table.names):
            raise Canceled  # another table was dropped meanwhile
        values = table.values
        return (values if len(slots) == len(self.names) else values[slots]), "auto"

    def words(self) -> list[str] | None:
        """The first cells of each row."""
        if self._table is None:
            return []
        return [
            ", ".join(f"{heading} {cell}" for heading, cell in self._cells(slot, _FEW_CELLS))
            for slot in range(len(self.names))
        ]

    def item(self, slot: int) -> dict[str, Any]:
        """The cells of a row, unless they are very many."""
        if not 0 <= slot < len(self.names):
            raise Refused("There is no such item.", status=404)
        cells = [list(cell) for cell in self._cells(slot, _MOST_CELLS)]
        return {"name": self.names[slot], "text": None, "cells": cells}

    def _cells(self, slot: int, most: int) -> list[tuple[str, str]]:
        table = self._table
        if table is None or slot >= len(table.names):
            raise Refused("There is no such item.", status=404)
        row = table.values[slot]
        if sparse.issparse(row):
            row = row.toarray()[0]
        headings = table.columns[:most]
        return [(heading, f"{value:.6g}") for heading, value in zip(headings, row, strict=False)]


def kind_of(path: Path) -> str:
    """What a path holds: pictures, texts or a table."""
    if not path.is_dir():
        if path.suffix.lower() not in TABLES:
            raise ValueError(
                f"{path} cannot be matched. Give two folders of pictures or of text files, or two "
                f"tables ({', '.join(TABLES)})."
            )
        return "table"
    listing = list_files(path, recursive=True)
    kinds = [kind_of_name(name) for name, _ in listing.files]
    return "texts" if kinds.count("texts") > kinds.count("pictures") else "pictures"


def kind_of_name(name: str) -> str:
    """What a dropped file is, by its name."""
    ending = Path(name).suffix.lower()
    if ending in TABLES:
        return "table"
    return "texts" if ending in TEXT_SUFFIXES else "pictures"


def make_side(kind: str, path: Path | None, uploads: Path, cache: Path) -> Side:
    """A collection of a kind, given by a path or to be dropped."""
    if kind == "table":
        return TableSide(path, uploads)
    if kind == "texts":
        return TextSide(_TextAlbum(path, uploads, cache))
    return PictureSide(Album(path, uploads, cache))


def _excerpt(text: str) -> str:
    plain = " ".join(text[: 4 * _EXCERPT].split())
    return plain if len(plain) <= _EXCERPT else f"{plain[:_EXCERPT].rpartition(' ')[0]} ..."
