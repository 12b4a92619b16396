"""Tables from files: numbers, and a name for each row where the file has one."""

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle.cli._console import BadInput

SUFFIXES = (".csv", ".tsv", ".npy", ".parquet")
# Thousands set apart, or a comma for the decimal point.
_SEPARATED = re.compile(
    r"[-+]?(\d{1,3}([,' \u00a0\u2009\u202f]\d{3})+(\.\d+)?|\d{1,3}(\.\d{3})*,\d+|\d+,\d+)"
)
_PLAIN_NUMBERS = (
    "Write numbers without thousands separators and with a point for decimals, as in 1000 or 0.5"
)
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-nan", "#n/a"}


@dataclass(frozen=True)
class Table:
    """Numbers of a file, with what its rows and columns are called."""

    values: NDArray[np.float64]
    names: list[str]
    columns: list[str]


def read_table(path: Path) -> Table:
    """Read a table of numbers, whatever its format, or say what is wrong with it."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return check_finite(_from_array(read_array(path), path), path)
    if suffix == ".parquet":
        return check_finite(_from_rows(*_read_parquet(path), path=path), path)
    rows, lines = _read_delimited(path)
    header = None
    if _has_header(rows):
        header, rows, lines = rows[0], rows[1:], lines[1:]
    if not rows:
        raise BadInput(f"{path} has a header and no rows. Give one row for each item.")
    return check_finite(_from_rows(header, rows, path=path, lines=lines), path)


def read_array(path: Path) -> NDArray[Any]:
    """Read a .npy file; never a pickle, which could run anything."""
    try:
        # Mapped first: a header that promises more than the file holds is then refused
        # before memory is taken for it.
        array = np.array(np.load(path, mmap_mode="r", allow_pickle=False))
    except (ValueError, EOFError, OSError, MemoryError, SyntaxError) as error:
        # NumPy's own words would have the user load what may run anything.
        objects = "pickle" in str(error) or "Python objects" in str(error)
        why = "it is no .npy file, or holds objects" if objects else str(error).rstrip(".")
        raise BadInput(
            f"{path} cannot be read as an array of numbers: {why}. Write it with numpy.save."
        ) from error
    if array.dtype.kind not in "biuf":
        raise BadInput(f"{path} holds {array.dtype} values. Give real numbers.")
    if array.ndim != 2:
        raise BadInput(
            f"{path} has {array.ndim} dimension(s), shape {array.shape}. Give a 2-D array with "
            "one row for each item."
        )
    return array.astype(np.float64)


def check_finite(table: Table, path: Path) -> Table:
    """Refuse gaps, naming the first: no kernel can be computed over them."""
    bad = np.argwhere(~np.isfinite(table.values))
    if len(bad):
        row, column = bad[0]
        name = f" ({table.names[row]})" if table.names[row] else ""
        raise BadInput(
            f"{path} has {len(bad)} missing or infinite value(s); the first is in row {row + 1}"
            f"{name}, column {table.columns[column]!r}. Fill them in or drop those rows."
        )
    return table


def _from_array(values: NDArray[np.float64], path: Path) -> Table:
    if 0 in values.shape:
        raise BadInput(f"{path} is empty: its shape is {values.shape}. Give at least two rows.")
    return Table(values, [""] * len(values), [str(k + 1) for k in range(values.shape[1])])


def read_text_file(path: Path) -> str:
    """Content of a text file in UTF-8 or, failing that, Latin-1."""
    data = path.read_bytes()
    if b"\0" in data:
        raise BadInput(f"{path} is not a text file. Give a table as {' or '.join(SUFFIXES)}.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _read_delimited(path: Path) -> tuple[list[list[str]], list[int]]:
    text = read_text_file(path)
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    rows, numbers = [], []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append([cell.strip() for cell in row])
                numbers.append(reader.line_num)
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: {error}.") from error
    if not rows:
        raise BadInput(f"{path} is empty. Give one row for each item.")
    for row, number in zip(rows, numbers, strict=True):
        if len(row) != len(rows[0]):
            raise BadInput(
                f"{path}, line {number} has {len(row)} cells where line {numbers[0]} has "
                f"{len(rows[0])}. Give every row the same columns."
            )
    return rows, numbers


def _read_parquet(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        import pandas as pd
    except ImportError as error:
        raise BadInput(
            f"Reading {path} needs pandas and pyarrow: pip install 'unshuffle[tables]'"
        ) from error
    try:
        frame = pd.read_parquet(path)
    except ImportError as error:
        raise BadInput(
            f"Reading {path} needs pandas and pyarrow: pip install 'unshuffle[tables]'"
        ) from error
    except Exception as error:
        # The readers behind pandas raise errors of their own.
        raise BadInput(f"{path} cannot be read as Parquet: {error}") from error
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise BadInput(f"{path} is empty: its shape is {frame.shape}. Give at least two rows.")
    columns = [str(column) for column in frame.columns]
    if not isinstance(frame.index, pd.RangeIndex):
        frame, columns = frame.reset_index(), ["", *columns]
    # None becomes an empty cell, like a gap in a CSV file.
    cells = frame.astype(object).where(frame.notna(), "")
    return columns, [[str(cell) for cell in row] for row in cells.itertuples(index=False)]


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return np.nan if cell.lower() in _MISSING else None


def _has_header(rows: list[list[str]]) -> bool:
    """Tell whether the first row names the columns rather than being an item."""
    head, below = rows[0], rows[1:]
    words = [_number(cell) is None for cell in head]
    if not below:
        return any(words)
    first = [row[0] for row in below]
    worded = [_number(cell) is None for cell in first]
    if len(head) > 1 and head[0] == "" and (any(words) or all(first)):
        # How pandas heads its index. Data with a gap there would hardly go on in order.
        return any(words) or any(worded) or _increases(head[1:])
    if any(word and _number(cell) is not None for word, cell in zip(words, below[0], strict=True)):
        # Words above numbers. A name for the first item, numbers for some others: no heading.
        return any(words[1:]) or len(head) == 1 or not any(worded)
    if any(words[1:]):
        return False
    if words[0]:
        rest = [row[1:] for row in below]
        return all(worded) and (_counts(head[1:], rest) or _are_years(head[1:], rest))
    return _counts(head, below, starts=(0,))


def _increases(cells: list[str]) -> bool:
    numbers = [float(cell) if cell else np.nan for cell in cells]
    return bool(np.isfinite(numbers).all() and np.all(np.diff(numbers) > 0))


def _integers(cells: list[str]) -> list[int] | None:
    # Digits alone: "1.0" is written for a measured value, not for a heading.
    plain = all(cell.isascii() and cell.isdigit() and len(cell) < 10 for cell in cells)
    return [int(cell) for cell in cells] if plain else None


def _counts(head: list[str], below: list[list[str]], starts: tuple[int, ...] = ()) -> bool:
    """Tell whether `head` numbers its columns, and what is below does not go on like it."""
    numbers, n = _integers(head), len(head)
    if numbers is None or n < 2 or numbers != list(range(numbers[0], numbers[0] + n)):
        return False
    start = numbers[0]
    if starts and start not in starts:
        return False
    rows = [_integers(row) for row in below]
    if rows[0] == list(range(start + n, start + 2 * n)):
        # Numbers counted through the table.
        return False
    if all(row is not None and sorted(row) == numbers for row in rows):
        # Rankings.
        return False
    if n == 2:
        # Two integers in order are easily data where other cells are integers too.
        cells = [cell for row in below for cell in row]
        if start == 0:
            return not all(cell in ("0", "1") for cell in cells)
        return all(_integers([cell]) is None for cell in cells)
    return start in (0, 1) or not any(
        row is not None and row == list(range(row[0], row[0] + n)) and row[0] > 1 for row in rows
    )


def _are_years(head: list[str], below: list[list[str]]) -> bool:
    """Tell whether `head` names years in order, and what is below holds something else."""

    def years(cells: list[str]) -> bool:
        numbers = _integers(cells)
        return numbers is not None and all(1500 <= number <= 2100 for number in numbers)

    steps = np.diff([float(cell) for cell in head]) if years(head) else np.zeros(0)
    ordered = len(steps) > 0 and bool(np.all(steps > 0) or np.all(steps < 0))
    return ordered and not any(years(row) for row in below)


def _is_separated_number(cell: str) -> bool:
    """Tell numbers like 1,000 or 1.000,5 or 0,5, which float() does not read."""
    return _SEPARATED.fullmatch(cell) is not None


def _from_rows(
    header: list[str] | None,
    rows: list[list[str]],
    *,
    path: Path,
    lines: list[int] | None = None,
) -> Table:
    """Table of the cells; a first column of words, or one without a heading, names the rows."""
    numbers = lines or list(range(1, len(rows) + 1))
    columns = header or [str(k + 1) for k in range(len(rows[0]))]
    # What pandas calls an index that was written and read back.
    unnamed = header is not None and header[0] in ("", "Unnamed: 0")
    words = [k for k, row in enumerate(rows) if _number(row[0]) is None]
    worded = len(words) > 0
    if worded and not unnamed and all(_is_separated_number(rows[k][0]) for k in words):
        raise BadInput(
            f"{path}, line {numbers[words[0]]}: the first column holds "
            f"{rows[words[0]][0][:40]!r}. {_PLAIN_NUMBERS}; if they are names, add a heading and "
            "leave its first cell empty."
        )
    skip = 1 if len(rows[0]) > 1 and (unnamed or worded) else 0
    names = [row[0] for row in rows] if skip else [""] * len(rows)
    values = np.empty((len(rows), len(rows[0]) - skip))
    for i, row in enumerate(rows):
        for k, cell in enumerate(row[skip:]):
            number = _number(cell)
            if number is None and _is_separated_number(cell):
                raise BadInput(
                    f"{path}, line {numbers[i]}: column {columns[k + skip]!r} holds "
                    f"{cell[:40]!r}. {_PLAIN_NUMBERS}."
                )
            if number is None:
                raise BadInput(
                    f"{path}, line {numbers[i]}: column {columns[k + skip]!r} holds "
                    f"{cell[:40]!r}, which is no number. Only the first column may hold words "
                    "(the names); drop or encode the others."
                )
            values[i, k] = number
    return Table(values, names, columns[skip:])
