"""Checks of files and folders before they are read or written, and folder listings."""

import os
import re
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEADS_OUT = "a link that leads out of the folder"


class BadInput(ValueError):
    """Input that the user can fix; the message is one line."""


class MissingFile(FileNotFoundError, BadInput):
    """A file that is not there; the message is one line."""


def as_path(path: Any, name: str) -> Path:
    """Path from a str or a Path; `name` is used in error messages."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"{name} must be a str or a Path, got {type(path).__name__}.")
    text = os.fspath(path)
    if not text:
        raise ValueError(f"{name} is empty. Give the name of a file or folder.")
    if "\0" in text:
        raise ValueError(f"{name} is {text!r}, but file names cannot contain NUL characters.")
    return Path(text)


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Path of an existing, readable folder."""
    path = as_path(folder, "`folder`")
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ValueError(
            f"The folder {path} cannot be opened: {error.strerror or error}. Give another one."
        ) from error
    if not path.exists():
        raise ValueError(f"There is no folder {path}. Check the name.")
    if not path.is_dir():
        raise ValueError(
            f"{path} is a file, not a folder. Give the folder that holds the items, such as "
            f"{path.parent}."
        )
    if not os.access(path, os.R_OK | os.X_OK):
        raise ValueError(f"The folder {path} cannot be read. Check its permissions.")
    return path


def check_regular_file(path: str | os.PathLike[str], name: str) -> Path:
    """Path of an existing regular file; reading a device or a pipe may never end.

    `name` is the user's name for the argument: "`path`", "--frozen", "A".
    """
    file = as_path(path, name)
    try:
        mode = os.stat(file).st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFile(f"There is no file {file} ({name}). Check the name.") from error
    except OSError as error:
        # Circular links, missing permissions, a name that is too long.
        raise ValueError(
            f"{file} ({name}) cannot be opened: {error.strerror or error}. Give another file."
        ) from error
    except ValueError as error:
        raise ValueError(f"{str(file)!r} ({name}) cannot name a file: {error}.") from error
    if stat.S_ISDIR(mode):
        raise ValueError(f"{file} ({name}) is a folder. Give a file.")
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"{file} ({name}) leads to a device or a pipe, which may never end. Copy its "
            "content to a file and give that."
        )
    return file


def load_array(path: Path) -> NDArray[Any]:
    """Memory-mapped array of real numbers from a .npy file; never a pickle, which runs code."""
    try:
        # Mapped, so that a header that claims more than the file holds allocates nothing.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError, SyntaxError) as error:
        # NumPy's own message advises allow_pickle=True, which can run any code.
        objects = "pickle" in str(error) or "Python objects" in str(error)
        why = "it is not a .npy file, or it holds Python objects, which are never loaded"
        raise ValueError(
            f"{path} cannot be read as an array of numbers: "
            f"{why if objects else str(error).rstrip('.')}. Write it with numpy.save."
        ) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(
            f"{path} holds several arrays. Write the one to use to a .npy file with numpy.save."
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{path} holds {array.dtype} values. Give real numbers.")
    return array


def check_output_path(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    """Path that can be written to and ends in one of `suffixes`, tested with a temporary file."""
    target = as_path(path, "`path`")
    listed = " or ".join(suffixes)
    try:
        os.lstat(target)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # a name that is too long
        raise ValueError(
            f"Cannot write {target}: {error.strerror or error}. Give another name."
        ) from error
    mode = 0  # looked up once: another run may be creating it
    with suppress(OSError):
        mode = os.stat(target).st_mode
    if stat.S_ISDIR(mode):
        raise ValueError(f"Cannot write {target}: it is a folder. Give a file name in it.")
    if target.suffix.lower() not in suffixes:
        ending = f"ends in {target.suffix!r}" if target.suffix else "has no ending"
        raise ValueError(
            f"Cannot write {target}: its name {ending}. Give a name that ends in {listed}."
        )
    place = Path(os.path.realpath(target))
    if os.path.islink(place):
        raise ValueError(f"Cannot write {target}: it is a circular link. Give another name.")
    for folder in (target.parent, place.parent):
        if not folder.is_dir():
            raise ValueError(
                f"Cannot write {target}: there is no folder {folder}. Create it first."
            )
    if mode and not stat.S_ISREG(mode):
        # Writing moves a finished file into place and would replace the device.
        raise ValueError(
            f"Cannot write {target}: it leads to a device or a pipe. Give another name."
        )
    if mode and not os.access(target, os.W_OK):
        raise ValueError(f"Cannot write {target}: the file is read-only. Give another name.")
    try:
        # Only an attempt detects read-only disks, quotas and network shares.
        with tempfile.TemporaryFile(dir=place.parent):
            pass
    except OSError as error:
        raise ValueError(
            f"Cannot write {target}: {error.strerror or error}. Choose another folder."
        ) from error
    return target


def file_size(path: Path) -> int:
    """Bytes of a regular, non-empty file; otherwise a ValueError with the reason."""
    if not path.exists():
        raise ValueError("a broken link" if path.is_symlink() else "no such file")
    if not path.is_file():
        # Reading a pipe or a device may never end.
        raise ValueError("not a regular file")
    n_bytes = path.stat().st_size
    if n_bytes == 0:
        raise ValueError("empty file")
    return n_bytes


@dataclass
class Listing:
    """Files of a folder in natural order, and skipped entries with reasons.

    Names are relative to the folder, with ``/`` between their parts.
    """

    files: list[tuple[str, Path]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def natural_key(name: str) -> tuple[list[tuple[int, int | str]], str]:
    """Natural sort key: "2.png" comes before "10.png", case-insensitive where possible."""
    pieces: list[tuple[int, int | str]] = [
        (0, int(piece)) if piece.isdecimal() else (1, piece)
        for piece in re.split("([0-9]+)", name.casefold())
        if piece
    ]
    return pieces, name


def path_key(name: str) -> list[tuple[list[tuple[int, int | str]], str]]:
    """Natural sort key of a path, folder by folder."""
    return [natural_key(part) for part in name.split("/")]


def by_reason(skipped: list[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Skipped files grouped by reason; reasons that an installation fixes come first.

    Details in brackets at the end of a reason are dropped if they differ within a group.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, why in skipped:
        groups.setdefault(why.split(" (")[0], []).append((name, why))
    reasons = []
    for short, entries in groups.items():
        whole = {why for _, why in entries}
        names = [name for name, _ in entries]
        reasons.append((whole.pop() if len(whole) == 1 else short, names))
    return sorted(reasons, key=lambda each: ("pip install" not in each[0], -len(each[1])))


def list_files(folder: Path, *, recursive: bool = False, leave_out: Path | None = None) -> Listing:
    """Visible files of a folder; links that lead out of it are skipped.

    With `recursive`, visible sub-folders except `leave_out` are listed too. Links to sub-folders
    are not followed, so that nothing is listed twice and circular links do no harm.
    """
    root = os.path.realpath(folder)
    avoided = None if leave_out is None else os.path.realpath(leave_out)
    listing = Listing()
    pending = [("", root)]
    while pending:
        prefix, place = pending.pop()
        try:
            names = [name for name in os.listdir(place) if not name.startswith(".")]
        except OSError as error:
            listing.skipped.append((prefix.rstrip("/"), (error.strerror or "unreadable").lower()))
            continue
        for name in names:
            path = os.path.join(place, name)
            is_folder = os.path.isdir(path)
            # Not islink alone: it is False for junctions on Windows.
            real = os.path.realpath(path) if is_folder or os.path.islink(path) else path
            if not is_inside(real, root):
                listing.skipped.append((prefix + name, LEADS_OUT))
            elif not is_folder:
                listing.files.append((prefix + name, Path(path)))
            elif recursive and real == path and real != avoided:
                pending.append((f"{prefix}{name}/", path))
    listing.files.sort(key=lambda file: path_key(file[0]))
    listing.skipped.sort(key=lambda entry: path_key(entry[0]))
    return listing


def is_inside(path: str, root: str) -> bool:
    """Whether a path, without links, is a folder or something in it."""
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def split_kinds(features: str) -> list[str]:
    """Kinds of features joined by "+", unless that is the name of a file."""
    return [features] if Path(features).is_file() else features.split("+")
