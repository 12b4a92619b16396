"""Files for --frozen and --hints: known or likely pairs of a match, fixed cells of a layout."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unshuffle._files.paths import BadInput, check_regular_file
from unshuffle._files.tables import Line, csv_lines, read_text_file

PAIRS_EXPECTED = "Give one line for each pair: item of A, item of B."
HINTS_EXPECTED = "Give one line for each likely pair: item of A, item of B, probability."
CELLS_EXPECTED = "Give one line for each item: name, row, column."
# Columns of our own output that hold each field: a name where it is unique, else a number.
_PAIR_COLUMNS = (("name_x", "index_x"), ("name_y", "index_y"))
_HINT_COLUMNS = (*_PAIR_COLUMNS, ("probability",))
_INTEGER = re.compile(r"[-+]?\d{1,18}")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_CELL_COLUMNS = (("name", "item"), ("row",), ("column",))


class _Items:
    """Positions of the items of a collection, by name."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.n_items = len(names)
        self.n_called = Counter(names)
        self.n_called.pop("", None)
        self._last = {name: position for position, name in enumerate(names)}

    def lost(self, cells: list[str]) -> bool:
        """Whether no item has the name in our own output; its number would be that of another."""
        return len(cells) > 1 and bool(self.n_called and cells[0] and not self.n_called[cells[0]])

    def plain(self, cell: str) -> str:
        """The name, without the apostrophe that --spreadsheet puts before a formula."""
        return cell[1:] if cell[:1] == "'" and self.n_called[cell[1:]] else cell

    def find(self, cell: str, side: str, where: str) -> int:
        """Position of the item that a cell names or numbers."""
        if self.n_called[cell] == 1:
            return self._last[cell]
        if self.n_called[cell] > 1:
            raise BadInput(
                f"{where}: {self.n_called[cell]} items of {side} are called {cell!r}. "
                "Give its position, counted from 0."
            )
        if not _INTEGER.fullmatch(cell):
            raise BadInput(
                f"{where}: {side} has no item {cell!r}. Give the name of an item, or its position "
                "counted from 0."
            )
        position = int(cell)
        if not 0 <= position < self.n_items:
            raise BadInput(
                f"{where}: {side} has no item {position}; it has {self.n_items} items. Use "
                f"positions from 0 to {self.n_items - 1}."
            )
        return position


def read_frozen_lines(path: Path, expected: str, option: str = "--frozen") -> list[Line]:
    """Nonempty lines of a file, each with its number."""
    check_regular_file(path, option)
    text = read_text_file(path, f"{option} reads .csv files. {expected}")
    return csv_lines(path, text, expected)


def read_frozen_pairs(path: Path, names_a: list[str], names_b: list[str]) -> NDArray[np.intp]:
    """Known pairs, as positions in A and B: by name or number, or from `unshuffle match`."""
    items = _Items(names_a), _Items(names_b)
    pairs = []
    seen: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for line, where, cells in _read_fields(path, PAIRS_EXPECTED, _PAIR_COLUMNS, items):
        pair = []
        for cell, known, side, lines in zip(cells, items, "AB", seen, strict=True):
            position = known.find(cell, side, where)
            _check_new(position, lines, f"item {cell!r} of {side}", line, where)
            pair.append(position)
        pairs.append(pair)
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def read_hints(path: Path, names_a: list[str], names_b: list[str]) -> NDArray[np.float64]:
    """Likely pairs as rows (position in A, position in B, probability)."""
    items_a, items_b = _Items(names_a), _Items(names_b)
    hints = []
    seen: dict[tuple[int, int], int] = {}
    items = items_a, items_b, _Items()
    fields = _read_fields(path, HINTS_EXPECTED, _HINT_COLUMNS, items, "--hints")
    for line, where, (first, second, share) in fields:
        pair = items_a.find(first, "A", where), items_b.find(second, "B", where)
        if not _NUMBER.fullmatch(share) or not 0 < float(share) <= 1:
            raise BadInput(
                f"{where}: {share!r} is not a probability. Give a number above 0 and at most 1; "
                "leave out pairs that are ruled out."
            )
        if pair in seen:
            raise BadInput(
                f"{where}: {first!r} and {second!r} are a pair in line {seen[pair]} already. Give "
                "each pair once."
            )
        seen[pair] = line
        hints.append((*pair, float(share)))
    return np.array(hints, dtype=np.float64).reshape(-1, 3)


def read_frozen_cells(
    path: Path, names: list[str], cells: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], list[str]]:
    """Items and their fixed flat cells: by name or number, or from `unshuffle layout`.

    Also returns the names in such an output that no item has any more, whose cells are free.
    """
    frozen = []
    gone: list[str] = []
    known = _Items(names)
    seen: dict[int, int] = {}
    taken: dict[int, int] = {}
    items = (known, _Items(), _Items())
    fields = _read_fields(path, CELLS_EXPECTED, _CELL_COLUMNS, items, gone=gone)
    for line, where, (name, row, column) in fields:
        item = known.find(name, "the collection", where)
        cell = _find_cell(row, column, cells, where)
        _check_new(item, seen, f"item {name!r}", line, where)
        _check_new(cell, taken, f"the cell in row {row}, column {column}", line, where)
        frozen.append((item, cell))
    return np.array(frozen, dtype=np.intp).reshape(-1, 2), gone


def _read_fields(
    path: Path,
    expected: str,
    columns: Sequence[Sequence[str]],
    items: Sequence[_Items],
    option: str = "--frozen",
    gone: list[str] | None = None,
) -> Iterator[tuple[int, str, list[str]]]:
    """Number, place and fields of each line, without a heading or unmatched entries.

    Lines of our own output about names that no item has any more are left out and listed in
    `gone`, or refused without it.
    """
    rows = read_frozen_lines(path, expected, option)
    head = rows[0][1]
    places = {heading.lower(): k for k, heading in enumerate(head)}
    found = [[places[each] for each in some if each in places] for some in columns]
    is_own = all(found)
    worded = len(head) == len(columns) and not any(
        known.n_called[cell] or _NUMBER.fullmatch(cell)
        for cell, known in zip(head, items, strict=True)
    )
    for line, row in rows[1:] if is_own or (worded and len(rows) > 1) else rows:
        where = f"{path}, line {line}"
        if len(row) <= max(map(max, found)) if is_own else len(row) != len(columns):
            raise BadInput(f"{where} has {len(row)} cell(s). {expected}")
        if is_own:
            cells = [
                [known.plain(row[some[0]]), *(row[k] for k in some[1:])]
                for some, known in zip(found, items, strict=True)
            ]
            missing = [
                each[0] for each, known in zip(cells, items, strict=True) if known.lost(each)
            ]
            if missing and gone is not None:
                gone += missing
                continue
            if missing:
                raise BadInput(f"{where}: no item is called {missing[0]!r} now. Drop the line.")
            row = [_unique(each, known) for each, known in zip(cells, items, strict=True)]
        # Our own output also lists items without a partner, and empty cells.
        if not is_own or "" not in row:
            yield line, where, row


def _unique(cells: list[str], items: _Items) -> str:
    """The name if it is unique, else the number: names outlive a change of the folder."""
    name, number = cells[0], cells[-1]
    return name if name and (items.n_called[name] == 1 or not number) else number


def _check_new(key: int, lines: dict[int, int], what: str, line: int, where: str) -> None:
    """Refuse an item or a cell that an earlier line froze."""
    if key in lines:
        raise BadInput(
            f"{where}: {what} is frozen already, in line {lines[key]}. Items and cells may be "
            "frozen once; drop one of the two lines."
        )
    lines[key] = line


def _find_cell(row: str, column: str, cells: NDArray[np.bool_], where: str) -> int:
    n_rows, n_columns = cells.shape
    for each in (row, column):
        if not _INTEGER.fullmatch(each):
            raise BadInput(
                f"{where}: {each!r} is not an integer. Give row and column, counted from 0."
            )
    place = int(row), int(column)
    if not (0 <= place[0] < n_rows and 0 <= place[1] < n_columns):
        raise BadInput(
            f"{where}: row {row}, column {column} is outside the grid, which has {n_rows} rows "
            f"and {n_columns} columns, counted from 0. Give a larger --shape."
        )
    if not cells[place]:
        raise BadInput(
            f"{where}: row {row}, column {column} is outside the mask. Choose a cell inside it."
        )
    return place[0] * n_columns + place[1]
