"""Cells at any points of the plane."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import cKDTree

from unshuffle._parallel import Workers
from unshuffle.layout import _swap_loops
from unshuffle.layout._surfaces import (
    NEIGHBOR_BANDWIDTH,
    SAMPLES_PER_BANDWIDTH,
    Bits,
    Cells,
    Passes,
    Planes,
    Raster,
)
from unshuffle.layout._swap_loops import LONGEST_SHIFT

N_NEIGHBORS = 8
# An average goes by way of a grid if that has at most so many cells for each point.
GRID_CELLS_PER_POINT = 16
_LEAST_GRID = 4096


class Scatter:
    """Cells at given points; the unit of length is the median distance to the nearest other.

    Parameters
    ----------
    points : ndarray of shape (n_cells, 2)
        Where they are.
    """

    def __init__(self, points: NDArray[np.float64]) -> None:
        self.n_cells = len(points)
        origin = points.min(axis=0)
        nearest = np.ones(1)
        if self.n_cells > 1:
            nearest = cKDTree(points).query(points, k=2)[0][:, 1]
        unit = float(np.median(nearest[nearest > 0])) if (nearest > 0).any() else 1.0
        self.points = (points - origin) / unit
        self.extent = float(self.points.max()) + 1.0
        self._tree = cKDTree(self.points)

    def average(self, planes: Planes, bandwidth: float, workers: Workers) -> Planes:
        """Gaussian average, over a grid in between or from point to point, what is cheaper."""
        spacing = bandwidth / SAMPLES_PER_BANDWIDTH
        rows, columns = np.floor(self.points.max(axis=0) / spacing) + 2
        if rows * columns > GRID_CELLS_PER_POINT * self.n_cells + _LEAST_GRID:
            weights = self._between_points(bandwidth)
            result = weights @ planes.T / np.asarray(weights.sum(axis=1)).reshape(-1, 1)
            return np.ascontiguousarray(result.T, dtype=np.float32)
        spread = _onto_grid(self.points / spacing, int(rows), int(columns))
        stacked = np.vstack([planes, np.ones((1, self.n_cells), dtype=np.float32)])
        on_grid = np.ascontiguousarray((spread.T @ stacked.T).T, dtype=np.float32)
        grid = Raster(int(rows), int(columns), wrap=False)
        smooth = grid.average(on_grid, SAMPLES_PER_BANDWIDTH, workers)
        result = spread @ smooth.T
        return np.ascontiguousarray((result[:, :-1] / result[:, -1:]).T, dtype=np.float32)

    def _between_points(self, bandwidth: float) -> sparse.csr_array:
        pairs = self._tree.query_pairs(3 * bandwidth, output_type="ndarray")
        apart = self.points[pairs[:, 0]] - self.points[pairs[:, 1]]
        weight = np.exp(-0.5 * np.einsum("ij,ij->i", apart, apart) / bandwidth**2)
        size = (self.n_cells, self.n_cells)
        half = sparse.csr_array((weight, (pairs[:, 0], pairs[:, 1])), shape=size)
        return sparse.csr_array(half + half.T + sparse.eye_array(self.n_cells))

    def swap(
        self,
        board: Bits,
        field: Planes,
        free: Bits,
        n_features: int,
        passes: Passes,
        rng: np.random.Generator,
        workers: Workers,
    ) -> None:
        """Exchange random pairs from the same tile."""
        flat, flat_field = board.reshape(-1), field.reshape(-1)
        for _ in range(passes.n_passes):
            first, second = self._pairs(LONGEST_SHIFT * passes.bandwidth, rng)
            if free.size:
                both = (free[first] & free[second]) != 0
                first, second = first[both], second[both]
            pick = rng.integers(0, len(passes.noise), len(first))
            _swap_loops.swap_pairs(
                flat, flat_field, self.n_cells, first, second, passes.noise[pick], passes.heat
            )

    def _pairs(self, side: float, rng: np.random.Generator) -> tuple[Cells, Cells]:
        """Random disjoint pairs of cells that lie in the same tile."""
        tiles = self.tiles(max(side, 1.5), rng)
        shuffled = rng.permutation(self.n_cells)
        order = shuffled[np.argsort(tiles[shuffled], kind="stable")]
        sizes = np.bincount(tiles[order])
        starts = np.cumsum(sizes) - sizes
        rank = np.arange(self.n_cells) - starts[tiles[order]]
        first = np.flatnonzero((rank[:-1] % 2 == 0) & (rank[1:] == rank[:-1] + 1))
        return order[first], order[first + 1]

    def typical_gain(
        self, planes: Planes, field: Planes, n_features: int, items: Bits, bandwidth: float
    ) -> float:
        """Root mean squares over pairs from tiles of about a bandwidth."""
        first, second = self._pairs(2 * bandwidth, np.random.default_rng(0))
        apart = field[:n_features, first] - field[:n_features, second]
        held = items >= 0
        stray = planes[:n_features, held] - field[:n_features, held]
        n_pairs, n_held = max(len(first), 1), max(int(held.sum()), 1)
        return float(np.sqrt((apart**2).sum() / n_pairs) * np.sqrt((stray**2).sum() / n_held))

    def tiles(self, side: float, rng: np.random.Generator) -> Cells:
        """Squares of the given side, laid over the points at a random offset."""
        # what lies farther out than that shares a tile, or products would overflow
        place = np.minimum(np.floor(self.points / side + rng.random(2)), 2.0**31).astype(np.int64)
        key = place[:, 0] * (place[:, 1].max() + 1) + place[:, 1]
        return np.unique(key, return_inverse=True)[1].astype(np.int64)

    def neighbors(self) -> tuple[NDArray[np.int32], Planes]:
        """Up to eight nearest cells, as far as both count each other among theirs."""
        k = min(N_NEIGHBORS, self.n_cells - 1)
        if k < 1:
            none = np.full((self.n_cells, 1), -1, dtype=np.int32)
            return none, np.zeros(none.shape, dtype=np.float32)
        distance, found = self._tree.query(self.points, k=k + 1)
        own = found == np.arange(self.n_cells)[:, np.newaxis]
        # Coincident points may list each other before themselves.
        own[~own.any(axis=1), -1] = True
        found, distance = found[~own].reshape(-1, k), distance[~own].reshape(-1, k)
        cells = np.arange(self.n_cells)[:, np.newaxis]
        mutual = (found[found] == cells[..., np.newaxis]).any(axis=2)
        weights = np.exp(-0.5 * (distance / NEIGHBOR_BANDWIDTH) ** 2)
        return (
            np.where(mutual, found, -1).astype(np.int32),
            np.where(mutual, weights, 0.0).astype(np.float32),
        )


def _onto_grid(places: NDArray[np.float64], rows: int, columns: int) -> sparse.csr_array:
    """Shares of each point in the four cells of a grid around it."""
    n = len(places)
    corner = np.floor(places).astype(np.int64)
    part = places - corner
    index, share = [], []
    for down in (0, 1):
        for right in (0, 1):
            index.append((corner[:, 0] + down) * columns + corner[:, 1] + right)
            share.append(
                np.where(down, part[:, 0], 1 - part[:, 0])
                * np.where(right, part[:, 1], 1 - part[:, 1])
            )
    item = np.tile(np.arange(n), 4)
    shape = (n, rows * columns)
    return sparse.csr_array((np.concatenate(share), (item, np.concatenate(index))), shape=shape)
