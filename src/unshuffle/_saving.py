"""Files written whole or not at all, and text that may hold any file name."""

import csv
import errno
import io
import os
import re
import stat
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    # Windows, where leftovers are told by their age alone.
    fcntl = None

_PART_NAME = re.compile(r"\.unshuffle-[0-9a-f]{32}\.part")
# Where no lock tells whether its writer lives: a part is written in one go, not for a day.
_ABANDONED_SECONDS = 24 * 3600.0


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that is complete or not there: beside its place first, then moved.

    Parts that a killed run left in the same folder are removed.

    Parameters
    ----------
    path : Path
        The file. An existing one is replaced once the new one is complete, and its permissions
        are kept; through a link, the file it points to. A new one gets the permissions that
        the umask leaves.
    data : bytes
        What it will hold.
    """
    target = Path(os.path.realpath(path))
    try:
        _remove_leftovers(target.parent)
        _write_and_move(target, data)
    except OSError as error:
        if error.errno is None:
            raise
        # The part is nothing to the user, and a write that failed names no file at all.
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_and_move(target: Path, data: bytes) -> None:
    before = os.stat(target) if target.exists() else None
    # What only some may read may not be read by others while it is being written either.
    part, handle = _open_part(target.parent, 0o666 if before is None else 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            _sync(handle)
            if before is not None:
                _give_mode(part, before)
            if fcntl is not None:
                # Before the lock is released: until then nobody takes it for a leftover.
                os.replace(part, target)
        if fcntl is None:
            # Windows moves no file that is open.
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _sync(handle: int) -> None:
    """Have the data written: some full disks and quotas are only noticed here."""
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems cannot be asked to.
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise


def _give_mode(part: Path, before: os.stat_result) -> None:
    """Give a part the owner and permissions of the file it replaces, where that is allowed."""
    now = os.stat(part)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with suppress(OSError):
            os.chown(part, before.st_uid, before.st_gid)
    with suppress(OSError):
        # Some shares know no permissions.
        os.chmod(part, stat.S_IMODE(before.st_mode))


def _open_part(folder: Path, mode: int) -> tuple[Path, int]:
    """New file in `folder`, locked as long as it is open."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        part = folder / f".unshuffle-{uuid.uuid4().hex}.part"
        handle = os.open(part, flags, mode)
        if _lock(handle) is not False and os.fstat(handle).st_nlink > 0:
            return part, handle
        # Another run took it for a leftover in the moment before it was locked.
        os.close(handle)


def _lock(handle: int) -> bool | None:
    """Lock a file: False if another run holds it, None where files cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def _remove_leftovers(folder: Path) -> None:
    """Remove parts whose run was killed; those of a run that is alive are locked."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _PART_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(part: str) -> None:
    handle = os.open(part, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        locked = _lock(handle)
        old = time.time() - os.fstat(handle).st_mtime > _ABANDONED_SECONDS
        abandoned = old if locked is None else locked
        if abandoned and fcntl is not None:
            os.unlink(part)
    finally:
        os.close(handle)
    if abandoned and fcntl is None:
        os.unlink(part)


def encode_text(text: str) -> bytes:
    """UTF-8; a file name that is not valid Unicode comes out as the bytes it was made from."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    """What `encode_text` was given, with or without a byte order mark ahead."""
    return data.decode("utf-8-sig", "surrogateescape")


# What makes a cell a formula in Excel, LibreOffice and Google Sheets; wide forms count too.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def csv_text(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], *, spreadsheet: bool = False
) -> str:
    """Records as CSV with a heading; None is an empty cell.

    With `spreadsheet`, text that a spreadsheet would run as a formula gets an apostrophe ahead.
    """
    if spreadsheet:
        rows = [{key: _escaped(cell) for key, cell in row.items()} for row in rows]
    # Python 3.11 leaves a lone carriage return unquoted, and then cannot read it.
    odd = any(isinstance(cell, str) and "\r" in cell for row in rows for cell in row.values())
    out = io.StringIO(newline="")
    writer = csv.DictWriter(
        out,
        columns,
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if odd else csv.QUOTE_MINIMAL,
    )
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _escaped(cell: Any) -> Any:
    formula = isinstance(cell, str) and cell.lstrip().startswith(_FORMULA)
    return f"'{cell}" if formula else cell
