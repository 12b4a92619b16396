"""The pictures of a page, each in a numbered slot: those of a folder, then dropped ones."""

import base64
import hashlib
import json
import os
import re
import shutil
import threading
import unicodedata
import warnings
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle._core.parameters import check_memory
from unshuffle._files.paths import list_files, path_key
from unshuffle._files.saving import replace_file
from unshuffle._pictures.decoding import SUFFIXES, central_part, decode, explain
from unshuffle._pictures.previews import Previews
from unshuffle._pictures.reading import PictureReader, Reading, ReadingTask
from unshuffle._pictures.workers import read_pictures
from unshuffle.images import ImageCollection
from unshuffle.web._http.refusal import Refused
from unshuffle.web._work.thumbnails import IN_SHEET, Sheet

Slots = NDArray[np.intp]

COMPARED_SIDE = 40  # at which pictures are compared, as on the command line
PREVIEW_SIDE, LARGE_SIDE = 320, 1600
MOST_PICTURES = 100_000
MOST_UPLOADED = 64 * 2**20  # bytes of one dropped picture
# Bytes of disk that dropped pictures leave free.
LEFT_FREE = 256 * 2**20
# Sheets of thumbnails in memory, some 60 kB each.
MOST_SHEETS = 400
_LONGEST_NAME = 200
_NOTES = ".names"  # of dropped pictures, a line each
WAITING, READY, FAILED = 0, 1, 2


@dataclass(frozen=True)
class Dropped:
    """A dropped picture: the name of its file, made from its content, and what it was called."""

    file: str
    name: str


class Album:
    """Pictures by slot; every method may be called from any thread.

    Nothing outside `folder` and `uploads` is ever opened.
    """

    def __init__(self, folder: Path | None, uploads: Path, cache: Path) -> None:
        self.folder, self.uploads, self.cache = folder, uploads, cache
        self.names: list[str] = []
        self.dropped: list[Dropped] = []  # in the last slots
        self.left: list[tuple[str, str]] = []  # files that never got a slot, and why
        self.reasons: dict[int, str] = {}  # why slots failed
        self.version = 0  # of names
        self._n_clears = 0
        self._numbers: dict[str, int] = {}  # of names: 1, or the last that was added to one
        self._paths: list[str] = []
        self._lock = threading.RLock()
        self._status = np.zeros(0, dtype=np.uint8)
        self._arrays = np.zeros((0, COMPARED_SIDE, COMPARED_SIDE, 3), dtype=np.uint8)
        self._sizes = np.zeros((0, 2), dtype=np.intp)
        self._keys: list[str] = []
        self._sheets: OrderedDict[tuple[int, int], Sheet] = OrderedDict()
        roots = (str(uploads),) if folder is None else (str(folder), str(uploads))
        size = COMPARED_SIDE, COMPARED_SIDE
        task = ReadingTask(size, "stretch", PREVIEW_SIDE, os.path.abspath(cache), roots=roots)
        self._reader = PictureReader(task)

    def __len__(self) -> int:
        return len(self.names)

    def list_folder(self) -> None:
        """Give a slot to every file of the folder."""
        if self.folder is None:
            return
        listing = list_files(self.folder, recursive=True, leave_out=self.uploads)
        if len(listing.files) > MOST_PICTURES:
            raise ValueError(
                f"{self.folder} holds {len(listing.files):,} files; the page shows at most "
                f"{MOST_PICTURES:,}. Give a sub-folder, or lay it out with unshuffle layout."
            )
        self.left = listing.skipped
        self._append([name for name, _ in listing.files], [str(path) for _, path in listing.files])

    def restore(self, dropped: Sequence[Dropped]) -> None:
        """Give slots to pictures that were dropped before; those that are gone are listed."""
        found = []
        known = {each.file for each in dropped}
        noted = [each for each in self._notes() if each.file not in known]
        for each in [*dropped, *noted]:
            if (self.uploads / each.file).is_file():
                found.append(Dropped(each.file, self._unique(each.name)))
            elif each.file in known:
                self.left.append((each.name, "its copy was deleted"))
        self.dropped = found
        with suppress(OSError):
            replace_file(self.uploads / _NOTES, map(_note, found))
        self._append([each.name for each in found], [str(self.uploads / e.file) for e in found])

    def _append(self, names: list[str], paths: list[str]) -> None:
        with self._lock:
            n = len(self.names) + len(names)
            if n > len(self._status):
                # Half as many again, so that single ones are added fast.
                room = max(n, min(len(self._status) * 3 // 2, MOST_PICTURES))
                check_memory(
                    room * (self._arrays[:0].itemsize * COMPARED_SIDE**2 * 3 + 64),
                    what=f"Reading {n:,} pictures",
                    instead="Give a folder with fewer.",
                )
                self._status = _grown(self._status, room)
                self._arrays = _grown(self._arrays, room)
                self._sizes = _grown(self._sizes, room)
            self.names += names
            self._numbers |= {name: max(self._numbers.get(name, 0), 1) for name in names}
            self._paths += paths
            self._keys += [""] * len(names)
            self.version += 1

    async def add(self, name: str, pieces: AsyncIterator[bytes]) -> int:
        """Keep a dropped picture, unless it is there already; its slot."""
        if len(self) >= MOST_PICTURES:
            raise Refused(f"The wall is full: it holds {MOST_PICTURES:,} pictures.", "upload", 507)
        file, _ = await self.keep(name, pieces)
        with self._lock:
            first = len(self) - len(self.dropped)
            for k, each in enumerate(self.dropped):
                if each.file == file:
                    return first + k
            if not (self.uploads / file).is_file():
                raise Refused("The pictures were removed meanwhile. Add it again.", "upload", 409)
            shown = self._unique(tidy_name(name))
            new = Dropped(file, shown)
            try:
                self._write_note(new)
            except OSError as error:
                why = error.strerror or error
                raise Refused(f"This file could not be added: {why}.", "upload", 507) from error
            self.dropped.append(new)
            self._append([shown], [str(self.uploads / file)])
            return len(self) - 1

    def _write_note(self, dropped: Dropped) -> None:
        """Note a name: the state is saved some time later, and a killed server would not know."""
        with open(self.uploads / _NOTES, "ab") as notes:
            notes.write(_note(dropped))

    def _unique(self, name: str) -> str:
        """The name, numbered if it is taken."""
        stem, dot, ending = name.rpartition(".")
        before, after = (stem, f".{ending}") if dot and stem else (name, "")
        shown = name
        while shown in self._numbers:
            self._numbers[name] = self._numbers.get(name, 1) + 1
            shown = f"{before} ({self._numbers[name]}){after}"
        self._numbers[shown] = 1
        return shown

    async def keep(self, name: str, pieces: AsyncIterator[bytes]) -> tuple[str, int]:
        """Write a file under a name made from its content; that name, and its bytes."""
        return await keep_file(self.uploads, name, pieces, SUFFIXES)

    def _notes(self) -> list[Dropped]:
        """Pictures that were dropped, each once, whether they are still there or not."""
        found = {}
        with suppress(OSError):
            for line in (self.uploads / _NOTES).read_bytes().splitlines():
                with suppress(ValueError, KeyError, TypeError):  # the last may be cut off
                    data = json.loads(line)
                    each = Dropped(data["file"], tidy_name(data["name"]))
                    if is_own_name(each.file):
                        found[each.file] = each
        return list(found.values())

    def discard(self, file: str) -> None:
        """Delete a file that was kept."""
        with suppress(OSError):
            (self.uploads / file).unlink()

    def tidy_up(self, used: Collection[str]) -> None:
        """Delete parts of uploads that a killed server left, and files without a use."""
        with suppress(OSError):
            for path in self.uploads.iterdir():
                is_part = re.fullmatch(r"\.[0-9a-f]{32}\.part", path.name)
                if is_part or (is_own_name(path.name) and path.name not in used):
                    self.discard(path.name)

    def kept(self) -> list[Dropped]:
        """Dropped pictures that can be read, as far as that is known."""
        with self._lock:
            first = len(self) - len(self.dropped)
            return [each for k, each in enumerate(self.dropped) if first + k not in self.reasons]

    def clear(self) -> None:
        """Forget the dropped pictures and delete their copies."""
        self.delete(self.forget())

    def delete(self, files: Iterable[str]) -> None:
        """Delete copies of pictures, except for those that were dropped again meanwhile."""
        for file in files:
            with self._lock:
                if all(each.file != file for each in self.dropped):
                    self.discard(file)
        with self._lock:
            self.discard(_NOTES)
            with suppress(OSError):  # the state is saved too
                for each in self.dropped:
                    self._write_note(each)

    def forget(self) -> list[str]:
        """Forget the dropped pictures; the files of their copies, which are still there."""
        with self._lock:
            n = len(self) - len(self.dropped)
            files = [each.file for each in self.dropped]
            self.dropped = []
            del self.names[n:], self._paths[n:], self._keys[n:]
            self._numbers = dict.fromkeys(self.names, 1)
            self._status[n:] = WAITING
            # Files of the folder get another chance: their reading may just have been canceled.
            self._status[self._status == FAILED] = WAITING
            self.reasons = {}
            self._sheets.clear()
            self.version += 1
            self._n_clears += 1
            return files

    def give_up(self, reason: str) -> None:
        """Do not read the slots that wait."""
        with self._lock:
            waiting = self.waiting()
            self._status[waiting] = FAILED
            self.reasons |= dict.fromkeys(waiting.tolist(), reason)

    def waiting(self) -> Slots:
        """Slots that are not read yet."""
        return self._with_status(WAITING)

    def ready(self) -> Slots:
        """Slots of pictures that were read."""
        return self._with_status(READY)

    def failed(self) -> Slots:
        """Slots of files that could not be read."""
        return self._with_status(FAILED)

    def _with_status(self, status: int) -> Slots:
        with self._lock:
            return np.flatnonzero(self._status[: len(self)] == status)

    def is_ready(self, slot: int) -> bool:
        """Whether a slot holds a picture that was read."""
        with self._lock:
            return 0 <= slot < len(self) and self._status[slot] == READY

    def read(self, slots: Slots, step: Callable[[], None]) -> None:
        """Read these slots; `step` is called after each, and what it raises ends the reading."""
        with self._lock:
            slots = slots[slots < len(self)]  # dropped pictures may be cleared meanwhile
            paths, n_clears = [Path(self._paths[slot]) for slot in slots], self._n_clears

        def take(i: int, reading: Reading) -> None:
            with self._lock:
                # Otherwise the slots are those of others by now, or were given up.
                if n_clears == self._n_clears and self._status[slots[i]] == WAITING:
                    self._take(int(slots[i]), reading)

        read_pictures(paths, self._reader, take, step, n_jobs=-1)
        if self._reader.cache is not None:
            self._reader.cache.prune()

    def _take(self, slot: int, reading: Reading) -> None:
        if reading.picture is None:
            self._status[slot] = FAILED
            self.reasons[slot] = reading.reason
            if slot >= len(self) - len(self.dropped):
                Path(self._paths[slot]).unlink(missing_ok=True)
        else:
            self._arrays[slot], self._sizes[slot], _ = reading.picture
            self._keys[slot] = reading.key
            self._status[slot] = READY

    def collection(self, slots: Slots) -> ImageCollection:
        """Pictures that were read, by the paths of their files."""
        with self._lock:
            paths = [self._paths[slot] for slot in slots]
            keys = [self._keys[slot] for slot in slots]
            arrays, sizes = self._arrays[slots], self._sizes[slots]
        root = Path(os.path.abspath(os.sep))  # under which absolute names are themselves
        previews = Previews(root, paths, keys, self._reader)
        return ImageCollection(paths, arrays, sizes, [], root, "stretch", previews)

    def describe(self) -> dict[str, Any]:
        """What the page shows of the reading."""
        with self._lock:
            status = self._status[: len(self)]
            bits = np.packbits(status == READY, bitorder="little").tobytes()
            return {
                "version": self.version,
                "total": len(self),
                "nReady": int((status == READY).sum()),
                "nFailed": len(self.left) + len(self.reasons),
                "ready": base64.b64encode(bits).decode("ascii"),
                "inSheet": IN_SHEET,
            }

    def failures(self) -> list[tuple[str, str]]:
        """Files that could not be read, and why."""
        with self._lock:
            failed = [(self.names[slot], why) for slot, why in self.reasons.items()]
            return sorted(self.left + failed, key=lambda entry: path_key(entry[0]))

    def sheet(self, side: int, k: int) -> bytes:
        """Thumbnails of the k-th slots as a JPEG."""
        with self._lock:
            if not 0 <= k * IN_SHEET < max(len(self), 1):
                raise Refused("There is no such sheet.", status=404)
            sheet = self._sheets.setdefault((side, k), Sheet(side))
            self._sheets.move_to_end((side, k))
            while len(self._sheets) > MOST_SHEETS:
                self._sheets.popitem(last=False)
            slots = range(k * IN_SHEET, min((k + 1) * IN_SHEET, len(self)))
            status = self._status[slots.start : slots.stop]
            ready = {k: slots[k] for k in np.flatnonzero(status == READY).tolist()}
            complete = bool((status != WAITING).all())
        return sheet.draw(ready, self._thumbnail, complete=complete)

    def _thumbnail(self, slot: int) -> tuple[NDArray[np.uint8], Any, Callable[[], bytes]]:
        """Pixels at which a picture is compared, its size, and its preview."""
        with self._lock:
            return self._arrays[slot], self._sizes[slot], lambda: self.preview(slot)

    def preview(self, slot: int) -> bytes:
        """A copy of a picture of at most 320 pixels a side."""
        self._check_ready(slot)
        try:
            return self.collection(np.array([slot])).previews[0]  # type: ignore[index]
        except ValueError as error:
            raise Refused(f"{self.names[slot]} is gone.", status=410) from error

    def large(self, slot: int) -> bytes:
        """A copy of a picture of at most 1,600 pixels a side."""
        self._check_ready(slot)
        path = Path(self._paths[slot])
        try:
            self._reader.check_inside(path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = decode(path, size=(1, 1), preview=LARGE_SIDE).preview
        except Exception as error:  # decoders raise nearly anything on a damaged file
            why = f"{self.names[slot]} can no longer be read: {explain(error)}."
            raise Refused(why, status=410) from error
        assert found is not None
        return found

    def square(self, slot: int, side: int) -> NDArray[np.uint8]:
        """The largest central square of a picture at a size, from its file if that is sharper."""
        preview = self.preview(slot)
        with Image.open(BytesIO(preview), formats=("JPEG", "PNG")) as image:
            with self._lock:
                path, original = Path(self._paths[slot]), int(self._sizes[slot].min())
            if min(image.size) >= min(side, original):
                return central_part(image, side, side)
            with suppress(Exception), warnings.catch_warnings():  # gone or damaged meanwhile
                warnings.simplefilter("ignore")
                self._reader.check_inside(path)
                return decode(path, size=(side, side), fit="crop").pixels
            return central_part(image, side, side)

    def _check_ready(self, slot: int) -> None:
        if not self.is_ready(slot):
            raise Refused("There is no such picture.", status=404)


async def keep_file(
    folder: Path, name: str, pieces: AsyncIterator[bytes], endings: Collection[str]
) -> tuple[str, int]:
    """Write a file under a name made from its content; that name, and its bytes.

    Of the name it had, only an ending of the given ones is kept.
    """
    part = folder / f".{uuid4().hex}.part"
    digest, n_bytes = hashlib.sha256(), 0
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(part, "xb") as out:
            async for piece in pieces:
                if shutil.disk_usage(folder).free < LEFT_FREE + len(piece):
                    raise Refused("The disk is full; the file was not added.", "upload", 507)
                digest.update(piece)
                n_bytes += len(piece)
                out.write(piece)
        if not n_bytes:
            raise Refused(f"{tidy_name(name)} is empty.", "upload")
        ending = Path(name).suffix.lower()
        file = digest.hexdigest()[:40] + (ending if ending in endings else "")
        os.replace(part, folder / file)
    except OSError as error:
        why = error.strerror or error
        raise Refused(f"This file could not be added: {why}.", "upload", 507) from error
    finally:
        part.unlink(missing_ok=True)
    return file, n_bytes


def _note(dropped: Dropped) -> bytes:
    return json.dumps(asdict(dropped)).encode() + b"\n"


def is_own_name(name: str) -> bool:
    """Whether a file was named here after its content; anything else might lead elsewhere."""
    return re.fullmatch(r"[0-9a-f]{40}(\.[a-z0-9]{1,7})?", name) is not None


def tidy_name(name: str) -> str:
    """A name to show, of a file that somebody else named: one line, not too long."""
    unseen = ("Cc", "Cf", "Cs", "Zl", "Zp")  # controls, and what breaks lines
    plain = "".join(c for c in name if unicodedata.category(c) not in unseen)
    parts = [part for part in plain.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return "/".join(parts)[-_LONGEST_NAME:] or "picture"


def _grown(array: NDArray[Any], n: int) -> NDArray[Any]:
    larger = np.zeros((n, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
