"""Pairs that the user fixes, from a file."""

import csv
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unshuffle._files import check_regular_file
from unshuffle._grams import check_frozen
from unshuffle.cli._console import BadInput
from unshuffle.cli._tables import read_text_file


def read_frozen(path: Path, names_a: list[str], names_b: list[str]) -> NDArray[np.intp]:
    """Index pairs named in a CSV file.

    Parameters
    ----------
    path : Path
        Two columns, an item of A and its partner in B, each by name or by position counted
        from 0, with or without a heading; or a file that `unshuffle match` wrote, cut
        down to the pairs to keep.
    names_a, names_b : list of str
        Names of the items on each side.

    Returns
    -------
    frozen : ndarray of shape (n_frozen, 2)
        Positions on both sides.
    """
    rows = read_rows(path, "Give one line for each pair: item of A, item of B.")
    columns = _columns(rows[0][1])
    if columns is not None or (len(rows) > 1 and _is_heading(rows[0][1], names_a, names_b)):
        rows = rows[1:]
    pairs: list[list[int]] = []
    seen: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for line, row in rows:
        cells = _cells(row, columns, (names_a, names_b))
        if cells is None:
            raise BadInput(
                f"{path}, line {line} has {len(row)} cell(s). Give an item of A and an item of B."
            )
        if columns is not None and "" in cells:
            # Our own output lists what is unmatched with an empty partner.
            continue
        where = f"{path}, line {line}"
        pair = []
        for cell, names, side, lines in zip(cells, (names_a, names_b), "AB", seen, strict=True):
            position = find_position(cell, names, side, where)
            if position in lines:
                raise BadInput(
                    f"{where}: item {cell!r} of {side} is frozen already, in line "
                    f"{lines[position]}. Each item may be frozen once; drop one of the two lines."
                )
            lines[position] = line
            pair.append(position)
        pairs.append(pair)
    return check_frozen(
        np.array(pairs, dtype=np.intp), len(names_a), len(names_b), first="A", second="B"
    )


def read_rows(path: Path, expected: str) -> list[tuple[int, list[str]]]:
    """Lines of a CSV file that hold anything, with their numbers; `expected` says what should."""
    check_regular_file(path, "--frozen")
    reader = csv.reader(io.StringIO(read_text_file(path), newline=""))
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: {error}.") from error
    rows = [(line, row) for line, row in rows if any(row)]
    if not rows:
        raise BadInput(f"{path} is empty. {expected}")
    return rows


def _is_heading(row: list[str], names_a: list[str], names_b: list[str]) -> bool:
    """Tell whether two cells are words that name no item: what the columns are called."""
    return len(row) == 2 and all(
        cell not in names and not is_integer(cell)
        for cell, names in zip(row, (names_a, names_b), strict=True)
    )


def is_integer(cell: str) -> bool:
    """Tell whether a cell holds a whole number."""
    try:
        int(cell)
    except ValueError:
        return False
    return True


def _columns(header: list[str]) -> dict[str, int] | None:
    """Where our own columns stand, if the first row is our heading."""
    found = {name: k for k, name in enumerate(header) if name[:-1] in ("index_", "name_")}
    complete = any({f"{what}_x", f"{what}_y"} <= found.keys() for what in ("index", "name"))
    return found if complete else None


def _cells(
    row: list[str], columns: dict[str, int] | None, names: tuple[list[str], list[str]]
) -> tuple[str, str] | None:
    if columns is None:
        return (row[0], row[1]) if len(row) == 2 else None
    if len(row) <= max(columns.values()):
        return None

    def cell(side: str, known: list[str]) -> str:
        name, index = (
            row[columns[key]] if key in columns else ""
            for key in (f"name_{side}", f"index_{side}")
        )
        # A name outlives a change of the folder, a position does not; but it must be unique.
        return name if name and (known.count(name) == 1 or not index) else index

    return cell("x", names[0]), cell("y", names[1])


def find_position(cell: str, names: list[str], side: str, where: str) -> int:
    """Item named or numbered in a cell of the file."""
    matches = [k for k, name in enumerate(names) if name == cell and cell]
    if len(matches) == 1:
        return matches[0]
    if len(matches) > 1:
        raise BadInput(
            f"{where}: {len(matches)} items of {side} are called {cell!r}. "
            "Give its position, counted from 0."
        )
    if not is_integer(cell):
        raise BadInput(
            f"{where}: {side} has no item {cell!r}. Give a name as it stands in {side}, or a "
            "position counted from 0."
        )
    position = int(cell)
    if not 0 <= position < len(names):
        raise BadInput(
            f"{where}: {side} has no item {position}; it has {len(names)} items. Use positions "
            f"from 0 to {len(names) - 1}."
        )
    return position
