"""The file that a wall is kept in, and the folder of dropped pictures beside it."""

import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unshuffle._files import check_regular_file
from unshuffle._saving import encode_text, replace_file
from unshuffle.web._album import Dropped, is_own_name
from unshuffle.web._arrangement import Arrangement

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
_MOST_BYTES = 256 * 2**20


def default_state(folder: Path | None) -> Path:
    """Where the wall of a folder is kept: with the data of the user, not in the folder."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        if not base.is_absolute():
            base = home / ".local" / "share"
    if folder is None:
        return base / "unshuffle" / "walls" / "dropped.json"
    place = os.path.realpath(folder)
    digest = hashlib.sha256(os.fsencode(place)).hexdigest()[:12]
    name = re.sub(r"[^A-Za-z0-9-]+", "-", os.path.basename(place))[:40].strip("-") or "folder"
    return base / "unshuffle" / "walls" / f"{name}-{digest}.json"


@dataclass(frozen=True)
class Saved:
    """All that is kept: names by slot, dropped pictures, and the history."""

    names: list[str]
    dropped: list[Dropped]
    steps: list[Arrangement]
    position: int


class StateFile:
    """The file of one wall, which one server at a time may use."""

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

    def close(self) -> None:
        """Let another server use it."""
        with suppress(OSError):
            os.close(self._lock)

    def load(self) -> Saved | None:
        """The wall of last time; None if there is none, or for the reason in `problem`."""
        try:
            if self.path.stat().st_size > _MOST_BYTES:
                raise ValueError("it is too large")
            return _parse(json.loads(self.path.read_bytes()))
        except FileNotFoundError:
            return None
        except Exception as error:  # a damaged file may hold anything
            aside = self.path.with_suffix(".damaged")
            with suppress(OSError):
                os.replace(self.path, aside)
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            self.problem = (
                f"The wall of last time could not be read ({why}), so a new one begins. The old "
                f"file is now called {aside.name}."
            )
            return None

    def save(self, saved: Saved) -> str:
        """Write the file at once; what went wrong, or nothing."""
        try:
            replace_file(self.path, _pieces(saved))
        except OSError as error:
            return f"The wall could not be saved: {error.strerror or error}."
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
    if data.get("unshuffle wall") != FORMAT:
        raise ValueError("it is of another version, or not a wall")
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
