"""Where the user wants items: the shape of a wall, and what is fixed on it."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unshuffle.cli._console import BadInput
from unshuffle.cli._frozen import find_position, is_integer, read_rows

_SHAPE = re.compile(r"\s*(\d{1,9})\s*[x×*,]\s*(\d{1,9})\s*", re.IGNORECASE)
FROZEN_LINES = "Give one line for each item: name, row, column."
MOST_CELLS = 100_000_000
_OWN = ("item", "name", "row", "column")


def parse_shape(text: str) -> tuple[int, int]:
    """Rows and columns from a text like "16x20"."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise BadInput(f"--shape {text!r} is not understood. Give rows x columns, as in 16x20.")
    rows, columns = int(found[1]), int(found[2])
    if rows < 1 or columns < 1:
        raise BadInput(f"--shape {text} has no cell. Give at least one row and one column.")
    if rows * columns > MOST_CELLS:
        raise BadInput(
            f"--shape {text} has {rows * columns:,} cells, more than the {MOST_CELLS:,} that can "
            "be laid out. Give a smaller one."
        )
    return rows, columns


def read_cells(path: Path, names: list[str], cells: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Items and the cells they are fixed to, from a CSV file.

    Parameters
    ----------
    path : Path
        Three columns: an item by name or by position, its row and its column, all counted
        from 0, with or without a heading; or positions that `unshuffle layout` wrote, cut down
        to those to keep.
    names : list of str
        Names of the items.
    cells : ndarray of bool of shape (rows, columns)
        Which cells there are.

    Returns
    -------
    frozen : ndarray of shape (n_frozen, 2)
        Item and flat cell of each.
    """
    rows = read_rows(path, FROZEN_LINES)
    columns = _columns(rows[0][1])
    if columns is not None or _is_heading(rows[0][1], names):
        rows = rows[1:]
    frozen: list[tuple[int, int]] = []
    lines: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for line, row in rows:
        where = f"{path}, line {line}"
        found = _parts(row, columns, names)
        if found is None:
            raise BadInput(
                f"{where} has {len(row)} cell(s). Give an item, its row and its column."
            )
        if columns is not None and (not found[0] or not found[1]):
            # Our own output ends with the last cell, which may be empty.
            continue
        item = find_position(found[0], names, "the collection", where)
        cell = _cell(found[1], found[2], cells, where)
        for number, seen, what in ((item, lines[0], f"item {found[0]!r}"), (cell, lines[1], "")):
            if number in seen:
                what = what or f"the cell in row {found[1]}, column {found[2]}"
                raise BadInput(
                    f"{where}: {what} is taken already, in line {seen[number]}. Each item and "
                    "each cell may be frozen once; drop one of the two lines."
                )
            seen[number] = line
        frozen.append((item, cell))
    return np.array(frozen, dtype=np.intp).reshape(-1, 2)


def _columns(header: list[str]) -> dict[str, int] | None:
    """Where our own columns stand, if the first row is our heading."""
    found = {name.lower(): k for k, name in enumerate(header) if name.lower() in _OWN}
    named = "item" in found or "name" in found
    return found if named and {"row", "column"} <= found.keys() else None


def _is_heading(row: list[str], names: list[str]) -> bool:
    return len(row) == 3 and row[0] not in names and not any(is_integer(cell) for cell in row)


def _parts(
    row: list[str], columns: dict[str, int] | None, names: list[str]
) -> tuple[str, str, str] | None:
    if columns is None:
        return (row[0], row[1], row[2]) if len(row) == 3 else None
    if len(row) <= max(columns.values()):
        return None
    name, index = (row[columns[key]] if key in columns else "" for key in ("name", "item"))
    # A name outlives a change of the folder, a position does not; but it must be unique.
    item = name if name and (names.count(name) == 1 or not index) else index
    return item, row[columns["row"]], row[columns["column"]]


def _cell(row: str, column: str, cells: NDArray[np.bool_], where: str) -> int:
    n_rows, n_columns = cells.shape
    if not is_integer(row) or not is_integer(column):
        odd = column if is_integer(row) else row
        raise BadInput(f"{where}: {odd!r} is no whole number. Give row and column, from 0 on.")
    place = int(row), int(column)
    if not (0 <= place[0] < n_rows and 0 <= place[1] < n_columns):
        raise BadInput(
            f"{where}: row {row}, column {column} is outside the grid, which has {n_rows} rows "
            f"and {n_columns} columns, counted from 0."
        )
    if not cells[place]:
        raise BadInput(
            f"{where}: row {row}, column {column} is outside the mask. Choose a cell inside it."
        )
    return place[0] * n_columns + place[1]
