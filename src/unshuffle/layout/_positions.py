"""Where each item stands, as a table that can be saved and loaded."""

import csv
import io
import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._saving import csv_text, decode_text, encode_text, replace_file
from unshuffle._validation import (
    check_cell_points,
    check_grid,
    check_loaded_grid,
    check_match_file,
    check_names,
    check_output_path,
    check_position_records,
    check_suffix,
)

COLUMNS = ("item", "name", "row", "column", "cell")
SUFFIXES = (".csv", ".json")


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

    def rows(self) -> list[dict[str, Any]]:
        """One record for each place of each item, in the order of the items.

        Returns
        -------
        rows : list of dict
            With the keys item, name, row, column and cell, where cell counts row by row from 0.
            The last three are None for an item that stands nowhere. Records without an item
            follow: one for each point that is empty; of a rectangle only its last cell, so that
            its size is known.
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
            Its suffix chooses the format. An existing file is replaced, once the new one is
            complete.
        details : mapping or None, default=None
            What else to say at the top of a JSON file, ahead of the list "positions": the
            score, for one. A CSV file has no room for it.
        spreadsheet : bool, default=False
            Put an apostrophe ahead of names that begin with =, +, - or @ in a CSV file, so that
            no spreadsheet takes them for formulas. `load` keeps the apostrophes: save without
            this to get the same names back.

        Notes
        -----
        A name that is not valid Unicode, as file names may be, comes out of a CSV file as the
        bytes it was made from.
        """
        path = check_output_path(path, SUFFIXES)
        if path.suffix.lower() == ".json":
            text = json.dumps({**(details or {}), "positions": self.rows()}, indent=1) + "\n"
        else:
            text = csv_text(COLUMNS, self.rows(), spreadsheet=spreadsheet)
        replace_file(path, encode_text(text))

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
        """
        path = Path(path)
        check_suffix(path, SUFFIXES)
        text = decode_text(path.read_bytes())
        read = _from_json if path.suffix.lower() == ".json" else _from_csv
        rows = check_match_file(lambda: read(text), path, COLUMNS, what="positions")
        names = {row["item"]: row["name"] for row in rows if row["item"] is not None}
        placed = [row for row in rows if row["cell"] is not None]
        is_grid = all(isinstance(row[key], int) for row in placed for key in ("row", "column"))
        shape = _shape(placed) if is_grid else (len(placed),)
        check_position_records(rows, shape, path)
        check_loaded_grid(shape, path)
        grid = np.full(shape, -1, dtype=np.intp)
        for row in placed:
            if row["item"] is not None:
                grid.flat[row["cell"]] = row["item"]
        points = None
        if not is_grid:
            points = np.empty((len(placed), 2))
            for row in placed:
                points[row["cell"]] = row["row"], row["column"]
        return cls(grid, [names[item] for item in range(len(names))], points)

    def _record(self, item: int | None, cell: int) -> dict[str, Any]:
        name = None if item is None else self.names[item]
        place: tuple[Any, Any, Any] = (None, None, None)
        if cell >= 0 and self.points is not None:
            # Floats, also where they are whole: so a file tells points from a grid.
            place = (*self.points[cell].tolist(), cell)
        elif cell >= 0:
            place = (*divmod(cell, self.grid.shape[-1]), cell)
        return dict(zip(COLUMNS, (item, name, *place), strict=True))


def _shape(placed: list[dict[str, Any]]) -> tuple[int, ...]:
    return tuple(max((row[key] for row in placed), default=-1) + 1 for key in ("row", "column"))


def _from_json(text: str) -> Any:
    rows = json.loads(text)["positions"]
    for row in rows:
        for key in ("item", "cell"):
            row[key] = None if row[key] is None else operator.index(row[key])
        for key in ("row", "column"):
            row[key] = (
                row[key] if row[key] is None or isinstance(row[key], int) else float(row[key])
            )
    return rows


def _from_csv(text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(text, newline="")))
    for row in rows:
        for key in ("item", "cell"):
            row[key] = int(row[key]) if row[key] else None
        for key in ("row", "column"):
            row[key] = _number(row[key]) if row[key] else None
    return rows


def _number(cell: str) -> int | float:
    try:
        return int(cell)
    except ValueError:
        return float(cell)
