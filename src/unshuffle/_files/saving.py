"""Atomic writing of result files, and reading of CSV and JSON records with checks."""

import csv
import errno
import io
import json
import math
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

from unshuffle._files.paths import check_regular_file
from unshuffle._run.versions import is_older

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    # Windows, where leftovers are recognized by their age.
    fcntl = None

_PART_NAME = re.compile(r"\.unshuffle-[0-9a-f]{32}\.part")
# Age from which an unlocked part counts as abandoned; writing takes seconds.
_ABANDONED_SECONDS = 24 * 3600.0
# First characters of formulas in Excel, LibreOffice and Google Sheets, including wide forms.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
SUFFIXES = (".csv", ".json")
# Older ones run code that a .parquet file holds (CVE-2023-47248).
_SAFE_PYARROW = "14.0.1"
# Records that are turned into text at once, so that files of any length take little memory, and
# in a block of a Parquet file.
_AT_ONCE, _IN_BLOCK = 4_000, 100_000
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_REAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?", re.IGNORECASE)


def replace_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file atomically: to a temporary part in the same folder, then moved into place.

    `data` may come in pieces, written one by one. An existing file, or the target of a link,
    keeps its permissions; a new one gets those of the umask. Parts left in the folder by killed
    runs are removed.
    """
    target = Path(os.path.realpath(path))
    try:
        remove_leftovers(target.parent)
        _write_and_move(target, data)
    except OSError as error:
        if error.errno is None:
            raise
        # Name the file the user asked for, not the part.
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_and_move(target: Path, data: bytes | Iterable[bytes]) -> None:
    before = os.stat(target) if target.exists() else None
    # A replaced file may be private, so its part must be private too.
    part, handle = _open_part(target.parent, 0o666 if before is None else 0o600)
    try:
        with open(handle, "wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            file.flush()
            _sync(handle)
            if before is not None:
                _give_mode(part, before)
            if fcntl is not None:
                # While locked, so that no other run takes it for a leftover.
                os.replace(part, target)
        if fcntl is None:
            # Windows cannot move an open file.
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _sync(handle: int) -> None:
    """Flush to disk, where some full disks and quotas are first noticed."""
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems do not support it.
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise


def _give_mode(part: Path, before: os.stat_result) -> None:
    """Give a part the owner and permissions of the file it replaces, if allowed."""
    now = os.stat(part)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with suppress(OSError):
            os.chown(part, before.st_uid, before.st_gid)
    with suppress(OSError):
        # Some network shares have no permissions.
        os.chmod(part, stat.S_IMODE(before.st_mode))


def _open_part(folder: Path, mode: int) -> tuple[Path, int]:
    """New file in `folder`, locked while it is open."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        part = _part_path(folder)
        handle = os.open(part, flags, mode)
        if _lock(handle) is not False and os.fstat(handle).st_nlink > 0:
            return part, handle
        # Another run removed it as a leftover before it was locked.
        os.close(handle)


@contextmanager
def part_folder(folder: Path) -> Iterator[Path]:
    """New folder in `folder`, locked as long as it is filled; removed unless it was moved."""
    part, is_whole = _part_path(folder), False
    while not is_whole:
        part.mkdir()
        with locked(part) as found:
            # Another run may remove it as a leftover before it is locked.
            is_whole = found is not False and part.exists()
            if is_whole:
                try:
                    yield part
                finally:
                    shutil.rmtree(part, ignore_errors=True)


@contextmanager
def locked(folder: Path) -> Iterator[bool | None]:
    """Lock a folder: False if another run holds it, None if folders cannot be locked."""
    if fcntl is None:
        yield None
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    try:
        yield _lock(handle)
    finally:
        os.close(handle)


def is_part(name: str) -> bool:
    """Whether a file or folder of this name is written by a run, or left by a killed one."""
    return _PART_NAME.fullmatch(name) is not None


def _part_path(folder: Path) -> Path:
    return folder / f".unshuffle-{uuid.uuid4().hex}.part"


def _lock(handle: int) -> bool | None:
    """Lock a file: False if another run holds it, None if files cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def remove_leftovers(folder: Path) -> None:
    """Remove parts of killed runs; those of running ones are locked."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_part(entry.name) and not entry.is_symlink():
                with suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(part: str) -> None:
    if os.path.isdir(part):
        _remove_folder_if_abandoned(Path(part))
        return
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


def _remove_folder_if_abandoned(part: Path) -> None:
    with locked(part) as abandoned:
        if is_old(part) if abandoned is None else abandoned:
            shutil.rmtree(part)


def is_old(path: Path) -> bool:
    """Whether nothing changed for longer than writing takes, where locks cannot tell."""
    return time.time() - os.stat(path).st_mtime > _ABANDONED_SECONDS


def encode_text(text: str) -> bytes:
    """UTF-8; file names that are not valid Unicode become their original bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    """Inverse of `encode_text`; a byte order mark is dropped."""
    return data.decode("utf-8-sig", "surrogateescape")


def csv_pieces(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, spreadsheet: bool = False
) -> Iterator[bytes]:
    """Rows as CSV with a heading, in pieces to write one by one; None is an empty cell.

    With `spreadsheet`, an apostrophe is put before text that would run as a formula.
    """
    yield _csv([columns])
    for some in _some_at_once(rows):
        yield _csv([[_escaped(cell) for cell in row] for row in some] if spreadsheet else some)


def _csv(rows: list[Any]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    if "\r" in out.getvalue():
        # Python 3.11 does not quote a lone carriage return, and then cannot read it.
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    return encode_text(out.getvalue())


def json_pieces(
    details: Mapping[str, Any], key: str, records: Iterable[Mapping[str, Any]]
) -> Iterator[bytes]:
    """JSON of `details` and, under `key`, the records, one in a line, in pieces to write."""
    others = {name: value for name, value in details.items() if name != key}
    head = json.dumps({**others, key: []}, indent=1)
    yield head.removesuffix("]\n}").encode()
    between = "\n  "
    for some in _some_at_once(records):
        yield (between + ",\n  ".join(map(json.dumps, some))).encode()
        between = ",\n  "
    yield b"\n ]\n}\n"


def parquet_bytes(columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Rows as a Parquet file, whose columns have the given Arrow types; None is null."""
    pa, parquet = import_parquet("Writing a .parquet file")
    schema = pa.schema(list(columns.items()))
    out = io.BytesIO()
    with parquet.ParquetWriter(out, schema) as writer:
        for some in _some_at_once(rows, _IN_BLOCK):
            try:
                arrays = list(map(pa.array, zip(*some, strict=True), schema.types))
            except UnicodeEncodeError:
                # File names may hold bytes that are not valid Unicode; Parquet may not.
                valid = [[_as_unicode(cell) for cell in row] for row in some]
                arrays = list(map(pa.array, zip(*valid, strict=True), schema.types))
            writer.write_table(pa.table(arrays, schema=schema))
    return out.getvalue()


def _as_unicode(cell: Any) -> Any:
    return encode_text(cell).decode("utf-8", "replace") if isinstance(cell, str) else cell


def import_parquet(what: str) -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet, which `what` needs."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(f"{what} needs pyarrow: pip install 'unshuffle[tables]'") from error
    if is_older(pyarrow, _SAFE_PYARROW):
        raise ImportError(
            f"{what} needs pyarrow {_SAFE_PYARROW} or newer, not {pyarrow.__version__}, which "
            "runs code that a .parquet file holds: pip install 'unshuffle[tables]'"
        )
    return pyarrow, parquet


def _some_at_once(records: Iterable[Any], most: int = _AT_ONCE) -> Iterator[list[Any]]:
    left = iter(records)
    while some := list(islice(left, most)):
        yield some


def _escaped(cell: Any) -> Any:
    formula = isinstance(cell, str) and cell.lstrip().startswith(_FORMULA)
    return f"'{cell}" if formula else cell


@dataclass(frozen=True)
class Record:
    """One line of a CSV file, or one object of a JSON file."""

    path: Path
    place: str  # "line 3" or "record 2", for error messages
    cells: dict[str, Any]
    written: bool  # from CSV, where numbers are text and None is an empty cell

    def wrong(self, why: str) -> ValueError:
        """Error with the place of this record."""
        return ValueError(f"{str(self.path)!r}, {self.place}: {why}")

    def real(self, key: str) -> int | float | None:
        """Finite number, an int if written as one; None if missing."""
        cell = self.cells.get(key)
        if cell is None or (self.written and cell == ""):
            return None
        if type(cell) is int or (self.written and _WHOLE.fullmatch(cell)):
            return int(cell)
        if type(cell) is float or (self.written and _REAL.fullmatch(cell)):
            number = float(cell)
            if math.isfinite(number):
                return number
        raise self.wrong(f"{key} is {_shown(cell)}. Give a finite number.")

    def index(self, key: str) -> int | None:
        """Whole number from 0, or None if missing."""
        number = self.real(key)
        if number is None or (isinstance(number, int) and number >= 0):
            return number
        cell = _shown(self.cells.get(key))
        raise self.wrong(f"{key} is {cell}. Give a whole number, counted from 0.")

    def share(self, key: str) -> float:
        """Number from 0 to 1."""
        number = self.real(key)
        if number is None or not 0 <= number <= 1:
            raise self.wrong(f"{key} is {_shown(self.cells.get(key))}. Give a number from 0 to 1.")
        return float(number)

    def item(self, index_key: str, name_key: str) -> tuple[int, str] | None:
        """Index and name of an item, both or neither."""
        index, name = self.index(index_key), self.cells.get(name_key)
        if index is None and name in (None, ""):
            return None
        if index is None or not isinstance(name, str):
            raise self.wrong(
                f"{index_key} is {_shown(self.cells.get(index_key))} and {name_key} is "
                f"{_shown(name)}. Give a number and a name, or neither."
            )
        return index, name


def read_records(
    path: Path, key: str, columns: Sequence[str], suffixes: Sequence[str] = SUFFIXES
) -> list[Record]:
    """Records of a file, each with all `columns`; in JSON, the list under `key`."""
    _check_suffix(path, suffixes)
    check_regular_file(path, "`path`")
    expected = f"{str(path)!r} is not a file of {key}: expected records with {', '.join(columns)}"
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            records = _from_parquet(path)
        else:
            text = decode_text(path.read_bytes())
            records = _from_json(text, path, key) if suffix == ".json" else _from_csv(text, path)
    except (json.JSONDecodeError, RecursionError, csv.Error, _NotParquet) as error:
        raise ValueError(f"{expected}; it could not be read ({error}).") from error
    if not records:
        raise ValueError(f"{expected}, found none.")
    for record in records:
        missing = [name for name in columns if name not in record.cells]
        if missing:
            raise ValueError(f"{expected}; {record.place} lacks {', '.join(missing)}.")
    return records


def _from_json(text: str, path: Path, key: str) -> list[Record]:
    # Python refuses integers of thousands of digits with an obscure message.
    content = json.loads(
        text, parse_int=lambda digits: int(digits) if len(digits) < 20 else digits
    )
    rows = content.get(key) if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise ValueError(f"{str(path)!r} holds no list {key!r}. Load the file as it was saved.")
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"{str(path)!r}, record {number}: it is not an object with fields.")
    return [Record(path, f"record {number}", row, False) for number, row in enumerate(rows)]


def _from_csv(text: str, path: Path) -> list[Record]:
    reader = csv.reader(io.StringIO(text, newline=""))
    heading = next(reader, [])
    records = []
    repeated = next((name for name in heading if heading.count(name) > 1 and name), None)
    if repeated is not None:
        raise ValueError(f"{str(path)!r}, line 1: two columns are called {repeated!r}. Drop one.")
    for row in reader:
        if not row:
            continue
        place = f"line {reader.line_num}"
        if len(row) != len(heading):
            raise ValueError(
                f"{str(path)!r}, {place}: it has {len(row)} cells, and the heading has "
                f"{len(heading)}. Give every line the same columns."
            )
        records.append(Record(path, place, dict(zip(heading, row, strict=True)), True))
    return records


class _NotParquet(Exception):
    """Any of the errors that pyarrow raises for a file it cannot read."""


def _from_parquet(path: Path) -> list[Record]:
    _, parquet = import_parquet(f"Reading {path}")
    try:
        with parquet.ParquetFile(path) as file:
            rows = file.read().to_pylist()
    except Exception as error:
        raise _NotParquet(error) from error
    return [Record(path, f"record {number}", row, False) for number, row in enumerate(rows)]


def names_in_order(
    found: Iterable[tuple[int, str, Record]], column: str, *, once: bool
) -> list[str]:
    """Names of items 0, 1, 2, ...; refused if one is missing or has two names."""
    seen: dict[int, tuple[str, Record]] = {}
    for index, name, record in found:
        before = seen.setdefault(index, (name, record))
        if before[1] is not record and (once or before[0] != name):
            raise record.wrong(
                f"{column} is {index}, as in {before[1].place}"
                f"{'' if once else ' under another name'}. Load the file as it was saved."
            )
    # A file shortened by hand would renumber the remaining items.
    missing = next((index for index in range(len(seen)) if index not in seen), None)
    if missing is not None:
        last = max(seen)
        raise seen[last][1].wrong(
            f"{column} is {last}, but no record has {missing}. Items are counted from 0; load "
            "the file as it was saved."
        )
    return [seen[index][0] for index in range(len(seen))]


def _shown(cell: Any) -> str:
    text = "missing" if cell is None else repr(cell)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse a file whose suffix is not a known format."""
    if path.suffix.lower() not in suffixes:
        listed = " or ".join(suffixes)
        raise ValueError(f"The suffix of {str(path)!r} is not a known format. Use {listed}.")
