"""The files that the views are kept in, and the folder of dropped files beside them."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from unshuffle._files import check_regular_file
from unshuffle._saving import encode_text, replace_file
from unshuffle._user_folders import walls_folder
from unshuffle.web._album import Dropped, is_own_name
from unshuffle.web._arrangement import Arrangement

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
T = TypeVar("T")
_MOST_BYTES = 256 * 2**20


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


class StateFile:
    """The file of one wall, which one server at a time may use; other views have companions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pictures = path.with_suffix(".pictures")
        self.problem = ""  # why the wall of last time could not be read
        if path.exists():
            _check_own(path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.pictures.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self.pictures / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is not None:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(self._lock)
                raise ValueError(
                    f"The wall in {path} is open in another unshuffle serve. Use that one, stop "
                    "it, or give another file with --state."
                ) from error

    def companion(self, view: str) -> "Companion":
        """The file of another view, such as "match", with a folder inside that of this file."""
        return Companion(self.path.with_suffix(f".{view}.json"), self.pictures / view, view)

    def close(self) -> None:
        """Let another server use it."""
        with suppress(OSError):
            os.close(self._lock)

    def load(self) -> Saved | None:
        """The wall of last time; None if there is none, or for the reason in `problem`."""
        found, self.problem = _load(self.path, _parse, "wall")
        return found

    def save(self, saved: Saved) -> str:
        """Write the file at once; what went wrong, or nothing."""
        return _save(self.path, _pieces(saved), "wall")


class Companion:
    """The file of a view beside that of the wall, and its folder of dropped files."""

    def __init__(self, path: Path, files: Path, view: str) -> None:
        self.path, self.files, self._view = path, files, view
        self.problem = ""  # why what was kept could not be read

    def load(self, parse: Callable[[Any], T]) -> T | None:
        """What was kept last time; None if there is nothing, or for the reason in `problem`."""
        found, self.problem = _load(self.path, parse, self._view)
        return found

    def save(self, data: dict[str, Any]) -> str:
        """Write the file at once; what went wrong, or nothing."""
        mark = {f"unshuffle {self._view}": FORMAT}
        return _save(self.path, [encode_text(json.dumps({**mark, **data}) + "\n")], self._view)


def _load(path: Path, parse: Callable[[Any], T], view: str) -> tuple[T | None, str]:
    """What a file holds, or why it could not be read; such a file is put aside."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        data = json.loads(path.read_bytes())
        if data.get(f"unshuffle {view}") != FORMAT:
            raise ValueError(f"it is of another version, or not a {view}")
        return parse(data), ""
    except FileNotFoundError:
        return None, ""
    except Exception as error:  # a damaged file may hold anything
        aside = path.with_suffix(".damaged")
        with suppress(OSError):
            os.replace(path, aside)
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return None, (
            f"The {view} of last time could not be read ({why}), so a new one begins. The old "
            f"file is now called {aside.name}."
        )


def _save(path: Path, pieces: Iterable[bytes], view: str) -> str:
    try:
        replace_file(path, pieces)
    except OSError as error:
        return f"The {view} could not be saved: {error.strerror or error}."
    return ""


def _check_own(path: Path) -> None:
    """Refuse a file that was not written here, before it is moved aside or replaced."""
    with open(check_regular_file(path, "`state`"), "rb") as file:
        head = file.read(100)
    if head and not re.match(rb'\s*\{\s*"unshuffle wall"', head):
        raise ValueError(
            f"{path} (`state`) is not a wall of unshuffle serve. Give another name; a new file is "
            "made."
        )


def _pieces(saved: Saved) -> Iterator[bytes]:
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
