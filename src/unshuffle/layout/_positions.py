"""Positions: the cell of each item, as a table that can be saved and loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.grids import check_cell_points, check_grid, check_names
from unshuffle._files.paths import as_path, check_output_path
from unshuffle._files.saving import (
    SUFFIXES,
    Record,
    csv_pieces,
    json_pieces,
    names_in_order,
    read_records,
    replace_file,
)

COLUMNS = ("item", "name", "row", "column", "cell")
# A rectangle is saved without its empty cells, so a short file could claim a huge one. These are
# the cells allowed to any file (128 MB), and to each of its records.
FREE_CELLS = 2**24
CELLS_PER_RECORD = 1000


@dataclass(frozen=True, eq=False)
class Positions:
    """A layout with the names of its items, as saved to CSV or JSON.

    Attributes
    ----------
    grid : ndarray of shape (rows, columns) or (n_cells,)
        Item in each cell; -1 is empty or outside a mask. One-dimensional where the cells are
        points.
    names : list of str
        Name of each item.
    points : ndarray of shape (n_cells, 2) or None, default=None
        Row and column of each cell of a one-dimensional grid.

    Examples
    --------
    >>> import numpy as np
    >>> positions = Positions(np.array([[1, 0]]), ["a.png", "b.png"])
    >>> positions.rows()[0]
    {'item': 0, 'name': 'a.png', 'row': 0, 'column': 1, 'cell': 1}
    """

    grid: NDArray[np.intp]
    names: list[str]
    points: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        names = check_names(self.names)
        grid = check_grid(self.grid, len(names), n_axes=2 if self.points is None else 1)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "grid", grid)
        if self.points is not None:
            object.__setattr__(self, "points", check_cell_points(self.points, grid.size))

    def __repr__(self) -> str:
        cells = self.grid
        where = f"{cells.size:,} points"
        if self.points is None:
            where = f"{cells.shape[0]:,} x {cells.shape[1]:,} cells"
        n_empty = int((cells < 0).sum())
        left = f", {n_empty:,} of them empty" if n_empty else ""
        return f"Positions({len(self.names):,} items on {where}{left})"

    def rows(self) -> list[dict[str, Any]]:
        """One record for each cell of each item, in the order of the items.

        Returns
        -------
        rows : list of dict
            With the keys item, name, row, column and cell, where cell counts row by row from 0.
            The last three are None for an item without a cell. Records of empty cells follow:
            all empty points, or the last cell of a rectangle, which tells its size.
        """
        cells = self.grid.ravel()
        order = np.argsort(cells, kind="stable")
        taken = order[cells[order] >= 0]
        places = list(zip(cells[taken].tolist(), taken.tolist(), strict=True))
        missing = np.setdiff1d(np.arange(len(self.names)), cells)
        records = sorted([*places, *((item, -1) for item in missing.tolist())])
        rows = [self._record(item, cell) for item, cell in records]
        empty = np.flatnonzero(cells < 0)
        if self.points is None:
            empty = empty[empty == cells.size - 1]
        return rows + [self._record(None, cell) for cell in empty.tolist()]

    def save(
        self,
        path: str | Path,
        *,
        details: Mapping[str, Any] | None = None,
        spreadsheet: bool = False,
    ) -> None:
        """Write the table to a .csv or .json file.

        Parameters
        ----------
        path : str or Path
            The suffix chooses the format. An existing file is replaced once the new one is
            complete.
        details : mapping or None, default=None
            Other entries of a JSON file, such as the score, before the list "positions". A CSV
            file ignores them.
        spreadsheet : bool, default=False
            Put an apostrophe before names in a CSV file that begin with =, +, - or @, so that
            spreadsheets do not read them as formulas. `load` keeps the apostrophes.

        Notes
        -----
        A file name that is not valid Unicode is written to a CSV file as its original bytes.
        """
        path = check_output_path(path, SUFFIXES)
        rows = self.rows()
        if path.suffix.lower() == ".json":
            replace_file(path, json_pieces(details or {}, "positions", rows))
        else:
            cells = (list(row.values()) for row in rows)
            replace_file(path, csv_pieces(COLUMNS, cells, spreadsheet=spreadsheet))

    @classmethod
    def load(cls, path: str | Path) -> "Positions":
        """Read a table written by `save`.

        Parameters
        ----------
        path : str or Path
            A .csv or .json file.

        Returns
        -------
        positions : Positions
            Equal to the one saved.

        Raises
        ------
        ValueError
            If a field is not what `save` writes; the message names the line or record. Also if a
            rectangle has more than 16 million cells and more than a thousand for each record.
        """
        records = read_records(as_path(path, "`path`"), "positions", COLUMNS)
        found, places = [], []
        for record in records:
            item = record.item("item", "name")
            cell, row, column = _place(record)
            if item is None and cell is None:
                raise record.wrong("it names neither an item nor a cell. Drop it.")
            if item is not None:
                found.append((*item, record))
            if cell is not None:
                places.append((record, -1 if item is None else item[0], cell, row, column))
        names = names_in_order(found, "item", once=False)
        if not places:
            raise ValueError(
                f"{str(path)!r} puts no item into a cell. Load the file as it was saved."
            )
        is_grid = _are_whole(places)
        shape = _shape(places, len(records)) if is_grid else (len(places),)
        grid = np.full(shape, -1, dtype=np.intp)
        points = None if is_grid else np.empty((len(places), 2))
        seen: dict[int, Record] = {}
        for record, number, cell, row, column in places:
            _check_cell(record, cell, row, column, shape)
            if cell in seen:
                raise record.wrong(
                    f"cell {cell} is already taken by {seen[cell].place}. List each cell once."
                )
            seen[cell] = record
            grid.flat[cell] = number
            if points is not None:
                points[cell] = row, column
        return cls(grid, names, points)

    def _record(self, item: int | None, cell: int) -> dict[str, Any]:
        name = None if item is None else self.names[item]
        place: tuple[Any, Any, Any] = (None, None, None)
        if cell >= 0 and self.points is not None:
            # Whole numbers are written as floats too: this tells points from a grid.
            place = (*self.points[cell].tolist(), cell)
        elif cell >= 0:
            place = (*divmod(cell, self.grid.shape[-1]), cell)
        return dict(zip(COLUMNS, (item, name, *place), strict=True))


def _place(record: Record) -> tuple[Any, Any, Any]:
    """Cell, row and column of a record: all three, or none."""
    cell, row, column = record.index("cell"), record.real("row"), record.real("column")
    if len({each is None for each in (cell, row, column)}) > 1:
        raise record.wrong("it has some of row, column and cell. Give all three, or none.")
    return cell, row, column


def _are_whole(places: list[tuple[Any, ...]]) -> bool:
    """Whether rows and columns are whole numbers, as in a grid, and not floats of points."""
    first = isinstance(places[0][3], int)
    for record, _, _, row, column in places:
        if isinstance(row, int) != first or isinstance(column, int) != first:
            raise record.wrong(
                f"row is {row} and column is {column}. Write whole numbers for a grid, and "
                "decimals for points, such as 1.0."
            )
        if first and min(row, column) < 0:
            raise record.wrong(f"row is {row} and column is {column}. Count both from 0.")
    return first


def _shape(places: list[tuple[Any, ...]], n_records: int) -> tuple[int, int]:
    """Rows and columns, refused if they are too many for so few records."""
    last = max(places, key=lambda each: max(each[3], each[4]))[0]
    n_rows = max(each[3] for each in places) + 1
    n_columns = max(each[4] for each in places) + 1
    if n_rows * n_columns > max(FREE_CELLS, CELLS_PER_RECORD * n_records):
        raise last.wrong(
            f"with it the grid has {n_rows:,} x {n_columns:,} cells for {n_records:,} records, "
            "too many to be loaded. Load the file as it was saved."
        )
    return n_rows, n_columns


def _check_cell(
    record: Record, cell: int, row: float, column: float, shape: tuple[int, ...]
) -> None:
    """Refuse a cell that does not exist, or whose row or column is wrong."""
    n_cells = shape[0] if len(shape) == 1 else shape[0] * shape[1]
    if cell >= n_cells:
        raise record.wrong(f"cell is {cell}, and there are {n_cells}, counted from 0.")
    if len(shape) == 2 and cell != row * shape[1] + column:
        raise record.wrong(
            f"it puts cell {cell} at row {row}, column {column} of {shape[0]} x {shape[1]}, which "
            "is another cell. Load the file as it was saved."
        )
