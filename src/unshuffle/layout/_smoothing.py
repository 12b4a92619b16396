"""Collages: tiles near to the template, and like beside like (sections 5.2 and 5.4)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unshuffle._parallel import Workers
from unshuffle.assignment import interaction_spread
from unshuffle.layout import _group_loops
from unshuffle.layout._anneal import GROUPS_PER_PIECE, draw_groups
from unshuffle.layout._surfaces import Planes, Raster

Report = Callable[[float, float], None]

WIDTHS = np.geomspace(3.0, 1.0, 24)
# Least raises, as shares of the spread of benefits in a group.
RAISES = np.geomspace(0.1, 0.003, WIDTHS.size)
SIDE = 24.0


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
    report: Callable[[NDArray[np.intp], float, float], None],
) -> None:
    """Reorder the items of the cells to make the objective smaller.

    Neighbours are averaged over wide surroundings first, then over narrow ones, by which like
    tiles find each other over some distance. `report` is called with the best items so far,
    their objective, and the share of the work that is done; the first time with what is given.
    """
    n_cells = items.size
    surface = Raster(*shape, wrap=False)
    share = np.float32(mosaic.smoothness)
    degrees = np.asarray(mosaic.near.sum(axis=1)).ravel().astype(np.float32)
    squares = np.einsum("ij,ij->i", mosaic.looks, mosaic.looks)[:, np.newaxis]
    features = np.hstack([mosaic.looks, squares, mosaic.colors]).astype(np.float32)
    n_looks, n_planes = mosaic.looks.shape[1], features.shape[1]
    bits = np.empty((n_planes + 1, n_cells), dtype=np.int32)
    planes = bits[:-1].view(np.float32)
    planes[:] = features[items].T
    bits[-1] = items
    field = np.empty((n_planes, n_cells), dtype=np.float32)
    field[n_looks + 1 :] = (1 - share) * mosaic.wanted.T
    field[n_looks] = -0.5 * share * degrees
    prices = np.zeros(int(items.max()) + 2)
    best, lowest = items, mosaic.value(items)
    report(best, lowest, 0.0)
    for step, (width, raise_by) in enumerate(zip(WIDTHS, RAISES, strict=True)):
        around = planes[:n_looks]
        if width > 1.5:
            around = surface.average(np.ascontiguousarray(around), width, workers) * degrees
        else:
            around = (mosaic.near @ around.T).T
        field[:n_looks] = share * around
        cells, starts = draw_groups(surface, SIDE, None, rng)
        some = cells[: starts[1]]
        scale = interaction_spread((planes[:, some].T @ field[:, some]).astype(np.float64))
        workers.each(
            _group_loops.assign_groups,
            [
                (
                    bits.reshape(-1),
                    field.reshape(-1),
                    n_cells,
                    cells,
                    starts[k : k + GROUPS_PER_PIECE + 1],
                    prices,
                    raise_by * scale or 1e-6,
                )
                for k in range(0, len(starts) - 1, GROUPS_PER_PIECE)
            ],
        )
        now = bits[-1].astype(np.intp)
        value = mosaic.value(now)
        if value < lowest:
            best, lowest = now, value
        report(best, lowest, (step + 1) / WIDTHS.size)
