"""Tables of numbers from files, with the names of their rows."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._core.arrays import NAME_HEADINGS
from unshuffle._files.paths import BadInput, check_regular_file, load_array
from unshuffle._files.typed import Column, read_anndata, read_parquet

SUFFIXES = (".csv", ".tsv", ".npy", ".parquet")
ANNDATA = ".h5ad"
# Numbers that are checked at once, so that a mapped file is not copied whole.
_IN_BLOCK = 2**20
Line = tuple[int, list[str]]  # number and cells
# Thousands separators, or a decimal comma.
_SEPARATED = re.compile(
    r"[-+]?(\d{1,3}([,' \u00a0\u2009\u202f]\d{3})+(\.\d+)?|\d{1,3}(\.\d{3})*,\d+|\d+,\d+)"
)
_PERCENT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)\s*%")
_HEXADECIMAL = re.compile(r"[-+]?0x[0-9a-f]+", re.IGNORECASE)
# How to write numbers that float() cannot read.
_ODD_NUMBERS = {
    _SEPARATED: "Write numbers without thousands separators and with a decimal point, as 1000.5",
    _PERCENT: "Write shares without a percent sign, as in 0.1 for 10%",
    _HEXADECIMAL: "Write numbers in decimal, as in 16 for 0x10",
}
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-nan", "#n/a"}
_TRUTH = {"true": 1.0, "false": 0.0}
# Headings of an index that pandas wrote, or wrote and read back.
_NO_HEADINGS = {"", "Unnamed: 0"}
_ROWS = "Give one row for each item."
_COUNTS_UP = "it counts up by one"
_HOLDS_WORDS = "it holds words"


@dataclass(frozen=True)
class TableOptions:
    """How to read a table; None means to detect it."""

    header: bool | None = None
    # Heading or number, counted from 1, of the column with the names; False for none.
    names: str | bool | None = None
    key: str | None = None  # part of an AnnData file

    def check_unused(self, path: Path, kind: str) -> None:
        """Refuse these options for anything but a table."""
        if self != TableOptions():
            raise BadInput(f"--id, --no-id, --header and --key are for tables; {path} is {kind}.")


@dataclass(frozen=True)
class Table:
    """Numbers of a file, with the names of its rows and columns."""

    values: Any  # 2-D array, possibly mapped from a file and read-only, or CSR matrix
    names: list[str]  # "" for a row without a name
    columns: list[str]  # headings, or numbers counted from 1
    heading: bool = False
    names_from: str | None = None
    left_out: tuple[str, ...] = ()  # further columns of names
    note: str = ""  # one sentence for the console

    def describe(self) -> dict[str, Any]:
        """How the file was read, ready for JSON."""
        return {
            "heading": self.heading,
            "names": self.names_from,
            "left_out": list(self.left_out),
            "n_columns": len(self.columns),
        }


def counted(n: int, what: str) -> str:
    """A number with its noun: "1 row" or "2 rows"."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def read_table(path: Path, options: TableOptions | None = None, *, n_least: int = 1) -> Table:
    """Read a table; a column that may hold names is numbers if that is needed for `n_least`."""
    check_regular_file(path, "a table")
    options = options or TableOptions()
    suffix = path.suffix.lower()
    if suffix == ".npy":
        if options.header or isinstance(options.names, str):
            raise BadInput(
                f"{path} is an array, without headings or names for --header or --id. Leave "
                "these out, or save it as .csv."
            )
        return _check_finite(_from_array(read_array(path), path), path)
    if suffix == ANNDATA:
        return _check_finite(_from_anndata(path, options), path)
    columns: list[Column]
    if suffix == ".parquet":
        if options.header is False:
            raise BadInput(f"{path} is a Parquet file, which has headings. Leave out --no-header.")
        header: list[str] | None
        header, columns = read_parquet(path)
        lines: Sequence[int] = range(1, len(columns[0]) + 1)
    else:
        rows, lines = read_delimited(path)
        header = None
        if _has_header(rows) if options.header is None else options.header:
            header, rows, lines = rows[0], rows[1:], lines[1:]
        if not rows:
            raise BadInput(f"{path} has a header and no rows. {_ROWS}")
        columns = [list(cells) for cells in zip(*rows, strict=True)]
    table = _from_columns(header, columns, lines, path=path, options=options, n_least=n_least)
    return _check_finite(table, path)


def read_array(path: Path) -> NDArray[Any]:
    """Map a .npy file into memory, never a pickle, which could run code."""
    array = load_array(check_regular_file(path, "an array"))
    if array.ndim != 2:
        raise BadInput(
            f"{path} has {array.ndim} dimension(s), shape {array.shape}. Give a 2-D array with "
            "one row for each item."
        )
    return array


def blocks_of(values: Any) -> Iterator[Any]:
    """Some rows of a matrix at a time, in order; a sparse one at once."""
    if sparse.issparse(values):
        return iter([values])
    size = max(_IN_BLOCK // values.shape[1], 1)
    return (values[start : start + size] for start in range(0, values.shape[0], size))


def _check_finite(table: Table, path: Path) -> Table:
    """Refuse missing values, which no kernel can compare, and name the first."""
    n_bad, first, n_before = 0, None, 0
    for block in blocks_of(table.values):
        is_sparse = sparse.issparse(block)
        bad = ~np.isfinite(block.data if is_sparse else block)
        if bad.any():
            entries = block.tocoo() if is_sparse else None
            places = np.nonzero(bad) if entries is None else (entries.row[bad], entries.col[bad])
            n_bad += len(places[0])
            first = first or (n_before + int(places[0][0]), int(places[1][0]))
        n_before += block.shape[0]
    if first is not None:
        row, column = first
        name = f" ({table.names[row]})" if table.names[row] else ""
        raise BadInput(
            f"{path} has {n_bad} missing or infinite value(s); the first is in row {row + 1}"
            f"{name}, column {table.columns[column]!r}. Fill them in or drop those rows."
        )
    return table


def _from_array(values: Any, path: Path) -> Table:
    if 0 in values.shape:
        raise BadInput(f"{path} is empty: its shape is {values.shape}. Give at least two rows.")
    columns = [str(k + 1) for k in range(values.shape[1])]
    note = f"{path}: {counted(len(values), 'row')}, {counted(len(columns), 'column')}, no names."
    return Table(values, [""] * len(values), columns, note=note)


def _from_anndata(path: Path, options: TableOptions) -> Table:
    """Rows of a part of an AnnData file, with the names of its observations."""
    if options.header is not None or options.names is not None:
        raise BadInput(
            f"{path} is an AnnData file, whose rows are named by obs. Leave out --id, --no-id, "
            "--header and --no-header."
        )
    key = options.key or "X"
    values, names = read_anndata(path, key)
    if 0 in values.shape:
        raise BadInput(
            f"{key} of {path} is empty: its shape is {values.shape}. Give at least two rows."
        )
    columns = [str(k + 1) for k in range(values.shape[1])]
    form = "sparse" if sparse.issparse(values) else "dense"
    note = (
        f"{path}: {counted(len(names), 'row')}, named by obs; {counted(len(columns), 'column')} "
        f"of {key} ({form}) compared."
    )
    return Table(values, names, columns, names_from="obs", note=note)


def read_text_file(path: Path, advice: str = "") -> str:
    """Content of a text file in UTF-8, else in Latin-1; `advice` is for one that is neither."""
    data = path.read_bytes()
    if b"\0" in data:
        advice = advice or f"Give a table as {' or '.join(SUFFIXES)}."
        raise BadInput(f"{path} is not a text file. {advice}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def csv_lines(path: Path, text: str, expected: str, delimiter: str = ",") -> list[Line]:
    """Nonempty lines of CSV with their numbers; `expected` says what they should hold."""
    file = io.StringIO(text, newline="")
    # Some programs put spaces before quotation marks.
    reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True)
    try:
        lines = [(reader.line_num, list(map(str.strip, row))) for row in reader]
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: {error}.") from error
    lines = [(number, row) for number, row in lines if any(row)]
    if not lines:
        raise BadInput(f"{path} is empty. {expected}")
    return lines


def read_delimited(path: Path) -> tuple[list[list[str]], list[int]]:
    """Rows of cells of a .csv or .tsv file, all of one length, and the numbers of their lines."""
    text = read_text_file(path)
    lines = iter(io.StringIO(text, newline=None))
    first = next((line for line in lines if line.strip()), "")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
    numbered = csv_lines(path, text, _ROWS, delimiter)
    rows, numbers = [row for _, row in numbered], [number for number, _ in numbered]
    for row, number in zip(rows, numbers, strict=True):
        if len(row) != len(rows[0]):
            raise BadInput(
                f"{path}, line {number} has {len(row)} cells where line {numbers[0]} has "
                f"{len(rows[0])}. Give every row the same columns."
            )
    return rows, numbers


def _number(cell: str) -> float | None:
    if "_" in cell:
        # Python reads 1_2 as 12; in a table it is a name.
        return None
    try:
        return float(cell)
    except ValueError:
        return np.nan if cell.lower() in _MISSING else _TRUTH.get(cell.lower())


def _has_header(rows: list[list[str]]) -> bool:
    """Whether the first row names the columns rather than being an item."""
    head, below = rows[0], rows[1:]
    words = [_number(cell) is None for cell in head]
    if not below:
        return any(words)
    first = [row[0] for row in below]
    worded = [_number(cell) is None for cell in first]
    if head[0].lower() in NAME_HEADINGS and head[0] not in first:
        return True
    if len(head) > 1 and head[0] == "" and (any(words) or all(first)):
        # The heading of a pandas index. A data row with a gap would hardly be in order.
        return any(words) or any(worded) or _increases(head[1:])
    if any(word and _number(cell) is not None for word, cell in zip(words, below[0], strict=True)):
        # Words above numbers, unless the first cell names an item like others below it.
        return any(words[1:]) or len(head) == 1 or not any(worded)
    if any(words[1:]):
        return False
    if words[0]:
        rest = [row[1:] for row in below]
        return all(worded) and (_counts(head[1:], rest) or _are_years(head[1:], rest))
    # Numbers are a heading only if they count 0, 1, 2, as pandas does, and no number below is
    # an integer: on less evidence, a row of items would be lost.
    plain = any(_integers([cell]) for row in below for cell in row)
    return _is_numbering(head) and head[0] == "0" and len(below) > 1 and not plain


def _is_numbering(cells: list[str]) -> bool:
    """Whether cells count 0, 1, 2 or 1, 2, 3, as generated headings do."""
    numbers, n = _integers(cells), len(cells)
    return n > 1 and numbers in (list(range(n)), list(range(1, n + 1)))


def _increases(cells: list[str]) -> bool:
    numbers = [float(cell) if cell else np.nan for cell in cells]
    return bool(np.isfinite(numbers).all() and np.all(np.diff(numbers) > 0))


def _integers(cells: list[str], most_digits: int = 9) -> list[int] | None:
    # Digits only: "1.0" is a measurement, not a heading.
    plain = all(cell.isascii() and cell.isdigit() and len(cell) <= most_digits for cell in cells)
    return [int(cell) for cell in cells] if plain else None


def _counts(head: list[str], below: list[list[str]]) -> bool:
    """Whether `head` numbers its columns, and the rows below do not continue it."""
    numbers, n = _integers(head), len(head)
    if numbers is None or n < 2 or numbers != list(range(numbers[0], numbers[0] + n)):
        return False
    start = numbers[0]
    rows = [_integers(row) for row in below]
    if rows[0] == list(range(start + n, start + 2 * n)):
        # Numbers counted through the table.
        return False
    if all(row is not None and sorted(row) == numbers for row in rows):
        # Rankings.
        return False
    if n == 2:
        # Two consecutive integers may well be data if other cells are integers too.
        cells = [cell for row in below for cell in row]
        if start == 0:
            return not all(cell in ("0", "1") for cell in cells)
        return all(_integers([cell]) is None for cell in cells)
    return start in (0, 1) or not any(
        row is not None and row == list(range(row[0], row[0] + n)) and row[0] > 1 for row in rows
    )


def _are_years(head: list[str], below: list[list[str]]) -> bool:
    """Whether `head` holds years in order, and no row below does."""

    def years(cells: list[str]) -> bool:
        numbers = _integers(cells)
        return numbers is not None and all(1500 <= number <= 2100 for number in numbers)

    steps = np.diff([float(cell) for cell in head]) if years(head) else np.zeros(0)
    ordered = len(steps) > 0 and bool(np.all(steps > 0) or np.all(steps < 0))
    return ordered and not any(years(row) for row in below)


def _odd_number(cell: str) -> str | None:
    """How to write a number that float() cannot read; None for other text."""
    return next((advice for form, advice in _ODD_NUMBERS.items() if form.fullmatch(cell)), None)


def _has_words(column: Column) -> bool:
    return isinstance(column, list) and any(_number(cell) is None for cell in column)


def _counts_up(column: Column) -> bool:
    """Whether cells number the rows: at least three integers, each one more than the last."""
    if not isinstance(column, list):
        if column.dtype.kind not in "iu" or len(column) < 3 or column[0] < 0:
            return False
        # Differences of small integers could overflow.
        steps = int(column[-1]) - int(column[0])
        return steps == len(column) - 1 and bool((column[1:] > column[:-1]).all())
    numbers = _integers(column, 18) or []
    return len(numbers) > 2 and all(b - a == 1 for a, b in pairwise(numbers))


def _are_digits(column: Column) -> bool:
    if isinstance(column, list):
        return all(map(str.isdigit, column))
    return column.dtype.kind in "iu" and bool(column.min() >= 0)


def _repeats(column: Column) -> bool:
    n_different = len(set(column)) if isinstance(column, list) else np.unique(column).size
    return n_different < len(column)


def _name_columns(header: list[str] | None, columns: list[Column]) -> dict[int, str]:
    """Columns that hold names rather than numbers, and the reason for each."""
    found = {}
    if header is not None and header[0] in _NO_HEADINGS:
        found[0] = "it has no heading"
    elif header is not None and header[0].lower() in NAME_HEADINGS:
        found[0] = "by its heading"
    elif _has_words(columns[0]):
        found[0] = _HOLDS_WORDS
    elif _counts_up(columns[0]):
        found[0] = _COUNTS_UP
    for k, heading in enumerate(header or ()):
        if not k or heading.lower() not in NAME_HEADINGS:
            continue
        differ = _are_digits(columns[k]) and not _repeats(columns[k])
        # Beyond the first column the heading is not enough: the key of a song is a number.
        if differ or _has_words(columns[k]):
            found[k] = "by its heading"
    return found


def find_column(asked: str, header: list[str] | None, n_columns: int, path: Path) -> int:
    """Index of a column, by its heading or its number counted from 1."""
    places = [k for k, heading in enumerate(header or ()) if heading == asked]
    if len(places) > 1:
        raise BadInput(
            f"{path} has {len(places)} columns called {asked!r}. Give --id the number of the "
            "column, counted from 1."
        )
    if places:
        return places[0]
    if asked.isascii() and asked.isdigit() and 1 <= int(asked[:9]) <= n_columns:
        return int(asked[:9]) - 1
    listed = "its columns have no headings"
    if header is not None:
        shown = ", ".join(repr(heading) for heading in header[:8])
        listed = f"it has {shown}{', ...' if len(header) > 8 else ''}"
    raise BadInput(
        f"{path} has no column {asked!r} for --id: {listed}. Give a heading, or the number of the "
        "column counted from 1."
    )


def _from_columns(
    header: list[str] | None,
    columns: list[Column],
    lines: Sequence[int],
    *,
    path: Path,
    options: TableOptions,
    n_least: int,
) -> Table:
    """Table of the columns, with the names set apart."""
    n_columns = len(columns)
    headings = header or [str(k + 1) for k in range(n_columns)]
    chosen = None
    found = {} if options.names is False else _name_columns(header, columns)
    if isinstance(options.names, str):
        chosen = find_column(options.names, header, n_columns, path)
        found[chosen] = "as asked"
        if len(found) == n_columns:
            raise BadInput(
                f"{path} has no column of numbers beside the names in {headings[chosen]!r}. Give "
                "at least one."
            )
    elif n_columns - len(found) < n_least:
        worded = {k: why for k, why in found.items() if why == _HOLDS_WORDS}
        found = worded if len(worded) < n_columns else {}
    if found.get(0) == _HOLDS_WORDS:
        _check_words(columns[0], lines, headings[0], path)
    if chosen is None and found:
        # Prefer unique names over repeated ones, and given names over row numbers.
        chosen = min(found, key=lambda k: (_repeats(columns[k]), found[k] == _COUNTS_UP))
    kept = [k for k in range(n_columns) if k not in found]
    names = [""] * len(lines)
    if chosen is not None:
        cells = columns[chosen]
        names = cells if isinstance(cells, list) else [str(cell) for cell in cells.tolist()]
    return Table(
        _numbers({k: columns[k] for k in kept}, lines, headings, path),
        names,
        [headings[k] for k in kept],
        heading=header is not None,
        names_from=None if chosen is None else headings[chosen],
        left_out=tuple(headings[k] for k in found if k != chosen),
        note=_describe_reading(path, header, columns, chosen, found),
    )


def _numbers(
    columns: dict[int, Column], lines: Sequence[int], headings: list[str], path: Path
) -> NDArray[Any]:
    """Columns side by side, in single precision if all of them are."""
    single = all(
        not isinstance(each, list) and each.dtype == np.float32 for each in columns.values()
    )
    values = np.empty((len(lines), len(columns)), dtype=np.float32 if single else np.float64)
    wrong: list[tuple[int, int]] = []
    for position, (k, column) in enumerate(columns.items()):
        cells: Any = column
        if isinstance(column, list):
            cells = list(map(_number, column))
            if None in cells:
                wrong.append((cells.index(None), k))
                continue
        values[:, position] = cells
    if wrong:
        row, k = min(wrong)
        raise _not_a_number(str(columns[k][row]), lines[row], headings[k], path)
    return values


def _check_words(cells: Column, lines: Sequence[int], heading: str, path: Path) -> None:
    """Refuse a first column of numbers in an unknown notation."""
    words = [k for k, cell in enumerate(cells) if _number(cell) is None]
    if all(_odd_number(cells[k]) for k in words):
        raise _not_a_number(cells[words[0]], lines[words[0]], heading, path)


def _not_a_number(cell: str, line: int, column: str, path: Path) -> BadInput:
    """Error for a cell that is not a number."""
    # A Parquet file has no lines, and its rows are counted without a heading.
    unit = "row" if path.suffix.lower() == ".parquet" else "line"
    where = f"{path}, {unit} {line}: column {column!r} holds {cell[:40]!r}"
    advice = _odd_number(cell)
    if advice is not None:
        return BadInput(f"{where}. {advice}; if these are names, head their column id.")
    return BadInput(
        f"{where}, which is not a number. Only the first column, or one headed id, index, key or "
        "name, may hold words, as names of the rows. Drop or encode the others."
    )


def _describe_reading(
    path: Path,
    header: list[str] | None,
    columns: list[Column],
    chosen: int | None,
    found: dict[int, str],
) -> str:
    """One sentence for the console: how the file was read, and how to change that."""
    called = header or [str(k + 1) for k in range(len(columns))]
    first = [str(column[0]) for column in columns]
    kept = [heading for k, heading in enumerate(called) if k not in found]
    parts = [f"{path}: {counted(len(columns[0]), 'row')}"]
    if header is not None and all(_number(cell) is not None for cell in header):
        parts.append(f"heading {', '.join(header[:3])}, ... (--no-header to count it as a row)")
    elif header is None and _is_numbering(first):
        parts.append(f"no heading ({', '.join(first[:3])} is a row; --header to change that)")
    else:
        parts.append("no heading" if header is None else "first line is the heading")
    if chosen is None:
        parts.append("no names")
    else:
        label = f"column {called[chosen]!r}" if called[chosen] else "the first column"
        why = found[chosen] + (", and repeats" if _repeats(columns[chosen]) else "")
        hint = "" if why == "as asked" else "; --id or --no-id to change that"
        parts.append(f"{label} names the rows ({why}{hint})")
    others = [repr(called[k]) for k in found if k != chosen]
    if others:
        parts.append(f"{', '.join(others)} left out (also names)")
    listed = ", ".join(kept[:3]) + (f", ... {kept[-1]}" if len(kept) > 3 else "")
    what = f": {listed}" if header is not None else ""
    return f"{'; '.join(parts)}; {counted(len(kept), 'column')} compared{what}."
