"""What is where: the state that a layout climbs in."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import Workers
from unshuffle.layout._points import Scatter
from unshuffle.layout._shapes import Shape
from unshuffle.layout._surfaces import Planes, Raster, Surface

# Share of an average that comes from the mean of all, where there is hardly an item around.
_FAINT = 1e-3
# Frozen items together weigh as much as this share of the others, or as they are if that is
# more: so a few of them decide which way round the layout comes.
FROZEN_SHARE = 0.2


def make_surface(cells: Shape) -> Surface:
    """The surface that a shape asks for."""
    if cells.points is not None:
        return Scatter(cells.points)
    rows, columns = cells.cells.shape
    return Raster(rows, columns, cells.wrap)


@dataclass
class Board:
    """Items on the cells of a surface, with their features beside them.

    An item's benefit in a cell is the product of its planes and the field there. With features
    z and field g alone that is z.g, which is enough where all cells are full. Where some are
    empty, another plane makes it z.g - |g|^2 / 2 for an item and 0 for an empty cell, which
    comes to a squared distance: so empty cells go where no item fits well.

    Attributes
    ----------
    surface : Surface
        Where the cells lie.
    bits : int32 array of shape (n_planes + 1, n_cells)
        The planes as bits, and last the item of each cell, -1 where it is empty.
    n_features : int
        Planes that are features; there is one more if some cell is empty.
    free : int32 array of shape (n_cells,) or (0,)
        All bits set where a cell may change; empty if all may.
    weights : float32 array of shape (n_cells,) or None
        What the item of a cell counts in averages; None is 1 for all.
    """

    surface: Surface
    bits: NDArray[np.int32]
    n_features: int
    free: NDArray[np.int32]
    weights: Planes | None = None

    @classmethod
    def start(
        cls,
        surface: Surface,
        features: Planes,
        open_cells: NDArray[np.bool_],
        frozen: NDArray[np.intp],
        rng: np.random.Generator,
    ) -> "Board":
        """Items in random order on the open cells, but for the frozen ones.

        Parameters
        ----------
        surface : Surface
            Where the cells lie.
        features : float32 array of shape (n_items, n_features)
            Of the items; the row of an item has about length 1.
        open_cells : bool array of shape (n_cells,)
            Cells that items may be in.
        frozen : int array of shape (n_frozen, 2)
            Items and the cells they stay in.
        rng : Generator
            For the order.
        """
        n_items, n_features = features.shape
        has_empty = n_items < surface.n_cells
        free = open_cells.copy()
        free[frozen[:, 1]] = False
        moving = np.delete(np.arange(n_items), frozen[:, 0])
        items = np.full(surface.n_cells, -1, dtype=np.int32)
        items[frozen[:, 1]] = frozen[:, 0]
        items[rng.permutation(np.flatnonzero(free))[: moving.size]] = rng.permutation(moving)
        bits = np.zeros((n_features + has_empty + 1, surface.n_cells), dtype=np.int32)
        weights = None
        if len(frozen):
            weights = np.ones(surface.n_cells, dtype=np.float32)
            weights[frozen[:, 1]] = np.clip(FROZEN_SHARE * moving.size / len(frozen), 1, 100)
        locks = np.where(free, np.int32(-1), np.int32(0))
        board = cls(surface, bits, n_features, locks[:0] if free.all() else locks, weights)
        board.place(items, features)
        if has_empty:
            board.planes[n_features, items >= 0] = 1.0
        return board

    def cell_of_item(self) -> NDArray[np.intp]:
        """Cell of each item."""
        held = np.flatnonzero(self.items >= 0)
        cells = np.empty(held.size, dtype=np.intp)
        cells[self.items[held]] = held
        return cells

    def place(self, items: NDArray[np.int32], features: Planes) -> None:
        """Put items with these features into the cells, -1 for none."""
        held = items >= 0
        self.items[:] = items
        self.planes[: self.n_features, held] = features[items[held]].T

    def agreement(self, field: Planes) -> float:
        """Mean product of the items' features and the field where they are."""
        held = self.items >= 0
        both = self.planes[: self.n_features, held] * field[: self.n_features, held]
        return float(both.sum(dtype=np.float64) / max(int(held.sum()), 1))

    @property
    def planes(self) -> Planes:
        """All planes but the items, as numbers; a view."""
        return self.bits[:-1].view(np.float32)

    @property
    def items(self) -> NDArray[np.int32]:
        """Item of each cell, -1 where it is empty; a view."""
        return self.bits[-1]

    @property
    def has_empty(self) -> bool:
        """Whether there is a plane that tells items from empty cells."""
        return len(self.bits) > self.n_features + 1

    @property
    def n_movable(self) -> int:
        """Number of cells that may change."""
        return int(np.count_nonzero(self.free)) if self.free.size else self.surface.n_cells

    def field(self, bandwidth: float, workers: Workers) -> Planes:
        """What each cell asks for: the average of the items around it."""
        planes = self.planes
        if self.weights is not None:
            planes = planes * self.weights
        field = self.surface.average(planes, bandwidth, workers)
        if self.has_empty:
            present = field[-1] + np.float32(_FAINT)
            field[:-1] /= present
            np.einsum("ij,ij->j", field[:-1], field[:-1], out=field[-1])
            field[-1] *= np.float32(-0.5)
        elif self.weights is not None:
            field /= self.surface.average(self.weights[np.newaxis], bandwidth, workers)
        return field

    def typical_gain(self, field: Planes, bandwidth: float) -> float:
        """Scale of the gains of exchanges, in which heat and least raises are measured."""
        return self.surface.typical_gain(
            self.planes, field, self.n_features, self.items, bandwidth
        )
