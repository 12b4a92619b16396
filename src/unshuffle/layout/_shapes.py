"""What a user may ask a layout to fill: a rectangle, a torus, a mask or any points."""

from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._grids import check_points_end
from unshuffle._parameters import check_count
from unshuffle.layout._checks import check_cells_memory, check_layout_shape, check_room

# Items for which all widths of a rectangle are tried in less than a second.
MOST_ITEMS = 10**12


@dataclass(frozen=True)
class Shape:
    """Cells to be filled.

    Attributes
    ----------
    cells : ndarray of bool of shape (rows, columns) or (n_cells,)
        Which cells there are; one-dimensional where they are points.
    points : ndarray of shape (n_cells, 2) or None
        Row and column of each cell that is not one of a grid.
    wrap : bool
        Whether the edges of the grid meet.
    """

    cells: NDArray[np.bool_]
    points: NDArray[np.float64] | None
    wrap: bool

    @classmethod
    def asked_for(cls, shape: Any, n_items: int, *, wrap: bool) -> "Shape":
        """Shape with room for all items, from what the user gave."""
        found = rectangle_for(n_items) if shape is None else check_layout_shape(shape)
        if isinstance(found, tuple):
            check_cells_memory(*found)
            result = cls(np.ones(found, dtype=bool), None, wrap)
        elif found.dtype == bool:
            result = cls(np.array(found, dtype=bool), None, wrap)
        else:
            check_points_end(wrap)
            result = cls(np.ones(len(found), dtype=bool), np.array(found), False)
        check_room(n_items, result.n_open, str(result))
        return result

    def __str__(self) -> str:
        if self.points is not None:
            return f"`shape` ({len(self.points):,} points)"
        size = f"{self.cells.shape[0]} x {self.cells.shape[1]}"
        return f"a {size} rectangle" if self.cells.all() else f"a {size} mask"

    @property
    def n_open(self) -> int:
        """Number of cells that items may be put into."""
        return int(self.cells.sum())

    def positions(self, cells: NDArray[np.intp]) -> NDArray[Any]:
        """Row and column of each of the listed cells."""
        if self.points is not None:
            return self.points[cells]
        return np.stack(np.divmod(cells, self.cells.shape[1]), axis=1)

    def squared_distances(self, cells: NDArray[np.intp]) -> NDArray[np.float64]:
        """Between each two of the listed cells, the short way round where the edges meet."""
        places = self.positions(cells).astype(np.float64)
        total = np.zeros((cells.size, cells.size))
        for axis in (0, 1):
            apart = np.abs(places[:, np.newaxis, axis] - places[:, axis])
            if self.wrap:
                apart = np.minimum(apart, self.cells.shape[axis] - apart)
            total += apart**2
        return total


def rectangle_for(n_items: int) -> tuple[int, int]:
    """Rows and columns of a rectangle, no wider than 16:9, that leaves the fewest cells empty.

    Parameters
    ----------
    n_items : int
        Number of items, from 1 to a trillion.

    Returns
    -------
    shape : (int, int)
        At least as wide as tall, and nearest to a square among those with as few empty cells.

    Examples
    --------
    >>> rectangle_for(320)
    (16, 20)
    """
    n_items = check_count(n_items, "n_items", most=MOST_ITEMS)
    least = ceil(sqrt(n_items))
    most = max(least, floor(sqrt(n_items * 16 / 9)))
    columns = min(range(least, most + 1), key=lambda each: (-n_items % each, each))
    return -(-n_items // columns), columns
