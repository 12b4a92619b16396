"""Checks of the files that are read and written."""

import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_path(path: Any, name: str) -> Path:
    """A path from a str or a Path; `name` says what it is, as the user calls it."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"{name} must be a str or a Path, got {type(path).__name__}.")
    text = os.fspath(path)
    if not text:
        raise ValueError(f"{name} is empty. Give the name of a file or folder.")
    if "\0" in text:
        raise ValueError(f"{name} is {text!r}, but no file has a NUL character in its name.")
    return Path(text)


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Existing folder that may be listed, as a path."""
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
        raise ValueError(f"{path} is a file, not a folder. Give the folder that holds the items.")
    if not os.access(path, os.R_OK | os.X_OK):
        raise ValueError(f"The folder {path} may not be read. Check its permissions.")
    return path


def check_regular_file(path: str | os.PathLike[str], name: str) -> Path:
    """Existing plain file, links followed: a device or a pipe may never end.

    `name` says what the file is for, as the user calls it: "`path`", "--frozen", "A".
    """
    file = as_path(path, name)
    try:
        mode = os.stat(file).st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(f"There is no file {file} ({name}). Check the name.") from error
    except OSError as error:
        # A circle of links, a folder that may not be searched, a name that is too long.
        raise ValueError(
            f"{file} ({name}) cannot be opened: {error.strerror or error}. Give another file."
        ) from error
    except ValueError as error:
        raise ValueError(f"{str(file)!r} ({name}) cannot name a file: {error}.") from error
    if stat.S_ISDIR(mode):
        raise ValueError(f"{file} ({name}) is a folder. Give a file.")
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"{file} ({name}) leads to a device or a pipe, which may never end. Copy what it "
            "holds into a file and give that."
        )
    return file


def check_array_file(path: Path) -> NDArray[Any]:
    """Array of real numbers, mapped from a .npy file; never a pickle, which could run anything."""
    try:
        # Mapped: a header that promises more than the file holds is refused before memory is
        # taken for it.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError, SyntaxError) as error:
        # NumPy's own words would have the user load what may run anything.
        objects = "pickle" in str(error) or "Python objects" in str(error)
        why = "it is not a .npy file, or it holds Python objects, which are never loaded"
        raise ValueError(
            f"{path} cannot be read as an array of numbers: "
            f"{why if objects else str(error).rstrip('.')}. Write it with numpy.save."
        ) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError(
            f"{path} holds several arrays. Write the one to be used to a .npy file with "
            "numpy.save."
        )
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{path} holds {array.dtype} values. Give real numbers.")
    return array


def check_output_path(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    """Path that a file with one of `suffixes` can be written to, found out by trying."""
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
    if target.is_dir():
        raise ValueError(f"Cannot write {target}: it is a folder. Give a file name in it.")
    if target.suffix.lower() not in suffixes:
        ending = f"ends in {target.suffix!r}" if target.suffix else "has no ending"
        raise ValueError(
            f"Cannot write {target}: its name {ending}. Give a name that ends in {listed}."
        )
    place = Path(os.path.realpath(target))
    if os.path.islink(place):
        raise ValueError(
            f"Cannot write {target}: it is a link that leads in a circle. Give another name."
        )
    for folder in (target.parent, place.parent):
        if not folder.is_dir():
            raise ValueError(
                f"Cannot write {target}: there is no folder {folder}. Create it first."
            )
    if target.exists() and not target.is_file():
        # A finished file is moved into place, which would put it where the device was.
        raise ValueError(
            f"Cannot write {target}: it leads to a device or a pipe. Give another name."
        )
    if target.exists() and not os.access(target, os.W_OK):
        raise ValueError(f"Cannot write {target}: the file is read-only. Give another name.")
    try:
        # Only an attempt tells about read-only disks, quotas and network shares.
        with tempfile.TemporaryFile(dir=place.parent):
            pass
    except OSError as error:
        raise ValueError(
            f"Cannot write {target}: {error.strerror or error}. Choose another folder."
        ) from error
    return target


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file whose suffix does not say which of the known formats it has."""
    if path.suffix.lower() not in suffixes:
        listed = " or ".join(suffixes)
        raise ValueError(f"The suffix of {str(path)!r} names no known format. Use {listed}.")
