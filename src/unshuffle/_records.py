"""Tables that were saved as CSV or JSON, read back with every field checked."""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unshuffle._files import check_regular_file, check_suffix
from unshuffle._saving import decode_text

SUFFIXES = (".csv", ".json")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_REAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Record:
    """One line of a CSV file, or one object of a JSON file.

    Attributes
    ----------
    path : Path
        The file.
    place : str
        Which one it is, to be named where something is wrong with it.
    cells : dict
        Its fields: text from CSV, anything from JSON.
    written : bool
        Whether it comes from CSV, where numbers are text and nothing is an empty cell.
    """

    path: Path
    place: str
    cells: dict[str, Any]
    written: bool

    def wrong(self, why: str) -> ValueError:
        """Error that says what is wrong, and where."""
        return ValueError(f"{str(self.path)!r}, {self.place}: {why}")

    def real(self, key: str) -> int | float | None:
        """Finite number, an int where it is written so, or None where there is none."""
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
        """Whole number from 0 on, or None where there is none."""
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


def read_records(path: Path, key: str, columns: Sequence[str]) -> list[Record]:
    """Records of a file, each with all of `columns`; in JSON they are the list under `key`."""
    check_suffix(path, SUFFIXES)
    check_regular_file(path, "`path`")
    expected = f"{str(path)!r} is not a file of {key}: expected records with {', '.join(columns)}"
    text = decode_text(path.read_bytes())
    try:
        records = (
            _from_json(text, path, key)
            if path.suffix.lower() == ".json"
            else _from_csv(text, path)
        )
    except (json.JSONDecodeError, RecursionError, csv.Error) as error:
        raise ValueError(f"{expected}; it could not be read ({error}).") from error
    if not records:
        raise ValueError(f"{expected}, found none.")
    for record in records:
        missing = [name for name in columns if name not in record.cells]
        if missing:
            raise ValueError(f"{expected}; {record.place} lacks {', '.join(missing)}.")
    return records


def _from_json(text: str, path: Path, key: str) -> list[Record]:
    # Whole numbers of thousands of digits are refused by Python itself, in words of its own.
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


def names_in_order(
    found: Iterable[tuple[int, str, Record]], column: str, *, once: bool
) -> list[str]:
    """Names of items 0, 1, 2 and so on, refused where one is missing or named in two ways."""
    seen: dict[int, tuple[str, Record]] = {}
    for index, name, record in found:
        before = seen.setdefault(index, (name, record))
        if before[1] is not record and (once or before[0] != name):
            raise record.wrong(
                f"{column} is {index}, as in {before[1].place}"
                f"{'' if once else ' under another name'}. Load the file as it was saved."
            )
    # A file cut down by hand has lost items: what is left would be numbered anew.
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
