"""Collages: tiles near to the template, and like beside like (sections 5.2 and 5.4)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._parallel import Workers
from unshuffle.assignment import interaction_spread
from unshuffle.layout._anneal import assign_all, draw_groups
from unshuffle.layout._surfaces import Planes, Raster

Report = Callable[[NDArray[np.intp], float, float], None]

WIDTHS = np.geomspace(3.0, 1.0, 24)
# Least raises, as shares of the spread of benefits in a group.
RAISES = np.geomspace(0.1, 0.0005, WIDTHS.size)
DESCENT_RAISES = np.geomspace(0.0005, 0.00001, 20)
SIDE = 24.0
DESCENT_SIDE = 64.0
NARROW = 1.5  # bandwidth below which neighbours are weighed one by one


@dataclass(frozen=True)
class Mosaic:
    """The objective of a collage: mean squared differences of colour, to be made small.

    Of item i in cell p it is (1 - s) |a_i - b_p|^2 + s / 2 sum_q W_pq |x_i - x_q|^2, with x_q
    the look of the item in cell q.

    Attributes
    ----------
    colors : float32 array of shape (n_items, m)
        a: colours that are compared with the template.
    wanted : float32 array of shape (n_cells, m)
        b: colours of the template.
    looks : float32 array of shape (n_items, r)
        x: what neighbours are compared by.
    near : sparse array of shape (n_cells, n_cells)
        W: symmetric weights of neighbours, on average 1 for a cell together.
    smoothness : float
        s, from 0 to 1.
    """

    colors: Planes
    wanted: Planes
    looks: Planes
    near: sparse.csr_array
    smoothness: float

    def template_cost(self, items: NDArray[np.intp]) -> float:
        """Mean squared difference from the template, of the item in each cell."""
        apart = self.colors[items] - self.wanted
        return float(np.einsum("ij,ij->", apart, apart, dtype=np.float64) / len(items))

    def roughness(self, items: NDArray[np.intp]) -> float:
        """Mean squared difference between neighbours."""
        looks = self.looks[items].astype(np.float64)
        degrees = np.asarray(self.near.sum(axis=1)).ravel()
        squares = np.einsum("ij,ij->i", looks, looks)
        # eq. (19): sum W_pq |x_p - x_q|^2 / 2 = tr K (D - W)
        total = degrees @ squares - np.einsum("ij,ij->", looks, self.near @ looks)
        return float(2.0 * total / len(items))

    def value(self, items: NDArray[np.intp]) -> float:
        """The objective."""
        share = self.smoothness
        return (1 - share) * self.template_cost(items) + share / 2 * self.roughness(items)


def kernel_neighbors(shape: tuple[int, int]) -> sparse.csr_array:
    """Gaussian weights of the cells around each, section 5.4 with a kernel on the grid."""
    return _on_grid(shape, [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)], None)


def template_neighbors(shape: tuple[int, int], wanted: Planes) -> sparse.csr_array:
    """Weights of the four cells that touch, section 5.2: small where the template has an edge."""
    return _on_grid(shape, [(-1, 0), (1, 0), (0, -1), (0, 1)], wanted)


def _on_grid(
    shape: tuple[int, int], steps: list[tuple[int, int]], wanted: Planes | None
) -> sparse.csr_array:
    rows, columns = shape
    n_cells = rows * columns
    row, column = np.divmod(np.arange(n_cells), columns)
    first, second, weight = [], [], []
    for down, right in steps:
        if (down, right) == (0, 0):
            continue
        y, x = row + down, column + right
        there = np.flatnonzero((y >= 0) & (y < rows) & (x >= 0) & (x < columns))
        first.append(there)
        second.append(y[there] * columns + x[there])
        weight.append(np.full(there.size, np.exp(-0.5 * (down**2 + right**2))))
    a, b, values = np.concatenate(first), np.concatenate(second), np.concatenate(weight)
    if wanted is not None and a.size:
        apart = np.square(wanted[a] - wanted[b]).sum(axis=1)
        scale = float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0
        values = np.exp(-apart / scale)
    near = sparse.csr_array((values, (a, b)), shape=(n_cells, n_cells))
    total = float(near.sum())
    return near * (n_cells / total) if total > 0 else near


def smooth(
    mosaic: Mosaic,
    items: NDArray[np.intp],
    shape: tuple[int, int],
    *,
    rng: np.random.Generator,
    workers: Workers,
    report: Report,
) -> None:
    """Reorder the items of the cells to make the objective smaller.

    Neighbours are averaged over wide surroundings first, then over narrow ones, by which like
    tiles find each other over some distance. Then the best so far goes downhill. `report` is
    called with the best items so far, their objective, and the share of the work that is done.
    """
    tray = _Tray(mosaic, items, shape, rng, workers)
    best, lowest = items, mosaic.value(items)
    n_steps = WIDTHS.size + DESCENT_RAISES.size
    for step in range(n_steps):
        if step < WIDTHS.size:
            tray.anneal(WIDTHS[step], RAISES[step])
        else:
            tray.put(best)
            tray.descend(DESCENT_RAISES[step - WIDTHS.size])
        value = mosaic.value(tray.items)
        if value < lowest:
            best, lowest = tray.items, value
        report(best, lowest, (step + 1) / n_steps)


class _Tray:
    """The cells of a collage, with what their items look like and what they ask for."""

    def __init__(
        self,
        mosaic: Mosaic,
        items: NDArray[np.intp],
        shape: tuple[int, int],
        rng: np.random.Generator,
        workers: Workers,
    ) -> None:
        self.mosaic, self.rng, self.workers = mosaic, rng, workers
        self.surface = Raster(*shape, wrap=False)
        self.shape = shape
        self.degrees = np.asarray(mosaic.near.sum(axis=1)).ravel().astype(np.float32)
        squares = np.einsum("ij,ij->i", mosaic.looks, mosaic.looks)[:, np.newaxis]
        self.features = np.hstack([mosaic.looks, squares, mosaic.colors]).astype(np.float32)
        n_planes, n_looks = self.features.shape[1], mosaic.looks.shape[1]
        self.bits = np.empty((n_planes + 1, items.size), dtype=np.int32)
        self.planes = self.bits[:-1].view(np.float32)
        self.field = np.empty((n_planes, items.size), dtype=np.float32)
        share = np.float32(mosaic.smoothness)
        self.field[n_looks] = -0.5 * share * self.degrees
        self.field[n_looks + 1 :] = (1 - share) * mosaic.wanted.T
        self.prices = np.zeros(len(self.features) + 1)
        self.put(items)

    @property
    def items(self) -> NDArray[np.intp]:
        """Item of each cell; a copy."""
        return self.bits[-1].astype(np.intp)

    def put(self, items: NDArray[np.intp]) -> None:
        """Put these items into the cells."""
        self.planes[:] = self.features[items].T
        self.bits[-1] = items

    def anneal(self, width: float, raise_by: float) -> None:
        """Reorder all cells at once, given what was around them before."""
        looks = self.planes[: self.mosaic.looks.shape[1]]
        if width > NARROW:
            around = self.surface.average(looks, width, self.workers) * self.degrees
        else:
            around = (self.mosaic.near @ looks.T).T
        self._reorder(around, None, SIDE, raise_by)

    def descend(self, raise_by: float) -> None:
        """Reorder cells that are no neighbours, while theirs stay: that lowers the objective."""
        looks = self.planes[: self.mosaic.looks.shape[1]]
        for cells in _strangers(self.shape, self.rng):
            around = (self.mosaic.near @ looks.T).T
            self._reorder(around, cells, DESCENT_SIDE, raise_by)

    def _reorder(
        self, around: Planes, some: NDArray[np.intp] | None, side: float, raise_by: float
    ) -> None:
        """Assign groups of items to their cells, given what is around them."""
        self.field[: len(around)] = np.float32(self.mosaic.smoothness) * around
        cells, starts = draw_groups(self.surface, side, some, self.rng)
        first = cells[: starts[1]]
        benefit = (self.planes[:, first].T @ self.field[:, first]).astype(np.float64)
        least = raise_by * interaction_spread(benefit)
        assign_all(self.bits, self.field, cells, starts, self.prices, least, self.workers)


def _strangers(shape: tuple[int, int], rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """The cells in up to four kinds; none touches another of its kind, even at a corner."""
    line, place = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    if rng.random() < 0.5:
        line, place = place, line
    # Every second line, and every second cell of it. The lines are shifted at random, so that
    # cells which are apart now may trade places later.
    shift = rng.integers(2, size=line.max() + 1)[line]
    kind = 2 * (line % 2) + (place + shift) % 2
    kinds = [np.flatnonzero(kind == k) for k in rng.permutation(4)]
    return [cells for cells in kinds if cells.size]
