"""The files that the views are kept in, and the folder of dropped files beside them."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from unshuffle._files.paths import check_regular_file
from unshuffle._files.saving import encode_text, replace_file
from unshuffle._run.user_folders import walls_folder
from unshuffle.web._wall.arrangement import Arrangement
from unshuffle.web._work.album import Dropped, is_own_name

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
T = TypeVar("T")
# Makes what a file is to hold, in pieces.
Content = Callable[[], Iterable[bytes]]
_MOST_BYTES = 256 * 2**20
_HEAD = 100  # bytes at the start of a file, in which it says what it is and of which version
_LOCK = ".lock"


def default_state(folder: Path | None = None, other: Path | None = None) -> Path:
    """Where the work on a folder or two is kept: with the data of the user, not in the folder."""
    walls = walls_folder()
    if folder is None:
        return walls / "dropped.json"
    place = os.path.realpath(folder)
    both = place if other is None else f"{place}\0{os.path.realpath(other)}"
    digest = hashlib.sha256(os.fsencode(both)).hexdigest()[:12]
    name = re.sub(r"[^A-Za-z0-9-]+", "-", os.path.basename(place))[:40].strip("-") or "folder"
    return walls / f"{name}-{digest}.json"


@dataclass(frozen=True)
class Saved:
    """All that is kept: names by slot, dropped pictures, and the history."""

    names: list[str]
    dropped: list[Dropped]
    steps: list[Arrangement]
    position: int


class _NewerError(ValueError):
    """A file that a later version wrote."""


class KeptFile:
    """The file that one view is kept in. What cannot be read is put aside, never replaced."""

    def __init__(self, path: Path, view: str) -> None:
        self.path, self.view = path, view
        self.problem = ""  # why what was kept could not be read
        with suppress(FileNotFoundError), open(path, "rb") as file:
            mark = rb'\s*\{\s*"unshuffle %s"\s*:\s*([0-9]{1,9})\s*[,}]' % view.encode()
            if found := re.match(mark, file.read(_HEAD)):
                self._check_version(int(found[1]))

    def _check_version(self, version: int) -> None:
        """Refuse what a later version wrote: this one would lose what it does not know."""
        if version > FORMAT:
            raise _NewerError(
                f"{self.path} was written by a newer version of unshuffle (format {version}; this "
                f"one reads {FORMAT}). It was left as it is. Update with pip install -U "
                "unshuffle, or give another file with --state."
            )

    @property
    def has_damaged(self) -> bool:
        """Whether files that could not be read lie beside it, and may need what it does not."""
        start = f"{self.path.stem}.damaged"
        return any(name.startswith(start) for name in os.listdir(self.path.parent))

    def read(self, parse: Callable[[Any], T]) -> T | None:
        """What was kept last time; None if there is nothing, or for the reason in `problem`."""
        self.problem = ""
        try:
            with open(self.path, "rb") as file:
                content = file.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            return None
        try:
            return self._parsed(content, parse)
        except (MemoryError, _NewerError):
            raise
        except Exception as error:  # a damaged file may hold anything
            self._put_aside(error)
            return None

    def _parsed(self, content: bytes, parse: Callable[[Any], T]) -> T:
        if len(content) > _MOST_BYTES:
            raise ValueError("it is too large")
        data = json.loads(content)
        version = data.get(f"unshuffle {self.view}") if isinstance(data, dict) else None
        if type(version) is int:
            self._check_version(version)
        if version != FORMAT:
            raise ValueError(f"it is not a {self.view}")
        return parse(data)

    def _put_aside(self, error: Exception) -> None:
        """Rename the file to a name that is free, and say so in `problem`."""
        names = (self.path.with_suffix(f".damaged-{number}") for number in count(1))
        aside = next(name for name in names if not os.path.lexists(name))
        why = str(error) or type(error).__name__
        try:
            os.rename(self.path, aside)
        except OSError as failure:
            raise ValueError(
                f"{self.path} cannot be read ({why}) and could not be put aside: "
                f"{failure.strerror or failure}. Move it away, or give another file with --state."
            ) from failure
        self.problem = (
            f"The {self.view} of last time could not be read ({why}), so a new one begins. The "
            f"old file is now called {aside.name}."
        )

    def write(self, content: Content) -> str:
        """Replace the file at once; what went wrong, or nothing if it holds this content."""
        try:
            replace_file(self.path, content())
        except (OSError, MemoryError) as error:
            if self._holds(content):
                return ""
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            return f"The {self.view} could not be saved: {why}."
        return ""

    def _holds(self, content: Content) -> bool:
        with suppress(OSError, MemoryError), open(self.path, "rb") as file:
            return all(file.read(len(piece)) == piece for piece in content()) and not file.read(1)
        return False

    def rescue(self, content: Content) -> Path | None:
        """Write a copy to the temporary folder; where it is, None if that fails too."""
        try:
            place = Path(tempfile.mkdtemp(prefix="unshuffle-"), self.path.name)
        except OSError:
            return None
        try:
            replace_file(place, content())
        except (OSError, MemoryError):
            with suppress(OSError):
                place.parent.rmdir()
            return None
        return place


class StateFile(KeptFile):
    """The file of one wall, which one server at a time may use; other views have companions."""

    def __init__(self, path: Path) -> None:
        self.pictures = path.with_suffix(".pictures")
        if path.exists():
            _check_own(path, self.pictures / _LOCK)
        super().__init__(path, "wall")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.pictures.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.pictures / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        self._lock: int | None = handle
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self.close()
                raise ValueError(
                    f"The wall in {path} is open in another unshuffle serve. Use that one, stop "
                    "it, or give another file with --state."
                ) from error

    def companion(self, view: str) -> "Companion":
        """The file of another view, such as "match", with a folder inside that of this file."""
        return Companion(self.path.with_suffix(f".{view}.json"), self.pictures / view, view)

    def close(self) -> None:
        """Let another server use it."""
        handle, self._lock = self._lock, None
        if handle is not None:
            os.close(handle)

    def load(self) -> Saved | None:
        """The wall of last time; None if there is none, or for the reason in `problem`."""
        return self.read(_parse)


class Companion(KeptFile):
    """The file of a view beside that of the wall, and its folder of dropped files."""

    def __init__(self, path: Path, files: Path, view: str) -> None:
        super().__init__(path, view)
        self.files = files

    def pieces(self, data: dict[str, Any]) -> Iterator[bytes]:
        """The content of the file, from what it is to keep."""
        yield encode_text(json.dumps({f"unshuffle {self.view}": FORMAT, **data}) + "\n")


def _check_own(path: Path, lock: Path) -> None:
    """Refuse a file that was not written here, before it is put aside or replaced.

    A file in our own folder, or with the pictures of a wall beside it, is ours however damaged it
    is; so is one that says nothing, such as the zeros that a crash of the machine leaves.
    """
    with open(check_regular_file(path, "`state`"), "rb") as file:
        head = file.read(_HEAD)
    if (
        not re.match(rb'\s*\{\s*"unshuffle wall"', head)
        and head.strip(b"\0 \t\r\n") not in (b"", b"[]", b"{}", b"null")
        and not lock.exists()
        and path.parent.resolve() != walls_folder().resolve()
    ):
        raise ValueError(
            f"{path} (`state`) is not a wall of unshuffle serve. Give another name; a new file is "
            "made."
        )


def wall_pieces(saved: Saved) -> Iterator[bytes]:
    """The content of the file of a wall."""
    data: dict[str, Any] = {
        "unshuffle wall": FORMAT,
        "position": saved.position,
        "dropped": [asdict(each) for each in saved.dropped],
        "names": saved.names,
    }
    yield encode_text(json.dumps(data)[:-1] + ', "steps": [')
    for k, step in enumerate(saved.steps):
        yield encode_text((",\n" if k else "\n") + json.dumps(step.to_json()))
    yield b"\n]}\n"


def _parse(data: Any) -> Saved:
    names = [str(name) for name in data["names"]]
    dropped = [Dropped(str(each["file"]), str(each["name"])) for each in data["dropped"]]
    steps = [Arrangement.from_json(each) for each in data["steps"]]
    position = int(data["position"])
    if not 0 <= position < len(steps):
        raise ValueError("its history is incomplete")
    masks = [step.settings.mask_file for step in steps if step.settings.mask_file]
    if not all(is_own_name(name) for name in [*masks, *(each.file for each in dropped)]):
        raise ValueError("it names a file that is not one of its own")
    return Saved(names, dropped, steps, position)
