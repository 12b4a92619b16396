"""Surfaces: the cells of a layout on a grid (Raster) or at any points (Scatter).

A surface averages planes of values over its cells at any width, exchanges disjoint pairs of
cells, and finds tiles and neighbors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import cKDTree

from unshuffle._run.parallel import Workers
from unshuffle._run.types import Planes
from unshuffle.layout._cpu import surface_loops
from unshuffle.layout._shape import Shape

Rng = np.random.Generator
Bits = NDArray[np.int32]
Cells = NDArray[np.int64]

# Samples of an average per bandwidth, with interpolation between them. With 2, layouts are as
# good as with a sample for each cell.
SAMPLES_PER_BANDWIDTH = 2.0
# Side of a tile that is swapped at once: 128 x 128 cells with three features and their field
# take 0.5 MB, which fits into the processor's cache.
TILE = 128
# Work is split into pieces of about this many cells, whatever the number of threads.
PIECE = 32768
NOISE_CELLS = TILE * TILE
N_NEIGHBORS, NEIGHBOR_BANDWIDTH = 8, 0.8
# An average over points uses a grid if that has at most so many cells for each point.
GRID_CELLS_PER_POINT, LEAST_GRID = 16, 4096
# Taps along an axis, and taps for each of its cells, above which those of one cell are summed: a
# wide kernel wraps around a short side many times.
MANY_TAPS, MANY_LAPS = 4096, 8
REACH = 3.0  # bandwidths after which the kernel is cut off, with 0.3 % of its mass
# A shift is at most this many bandwidths along each axis.
LONGEST_SHIFT = 2.5
# Part of an item's own weight in the field that the gain of an exchange counts.
OWN_SHARE = 0.5
# Up to this side, averages are products with matrices, which are kept: nothing to compile, and
# most of the time would go into setting up the taps.
SMALL_SIDE = 64
N_SAMPLED = 128  # cells of a raster that tell the scale of gains


@dataclass(frozen=True)
class Passes:
    """Settings of the swaps at one width."""

    bandwidth: float  # of the field, in cells; exchanges reach a few times as far
    heat: float  # factor of the noise; larger values accept more exchanges that lose
    n_passes: int
    # of zero mean, or less if items tend to stay; for the cells swapped at once and NOISE_OFFSETS
    # more
    noise: Planes
    free: Bits  # all bits set where a cell may change; empty if all may
    n_features: int  # planes from here on have no share in the field of their own cell


class Raster:
    """Cells of a rectangle, or with `wrap` of a torus, where opposite edges meet."""

    def __init__(self, rows: int, columns: int, wrap: bool) -> None:
        self.rows, self.columns, self.wrap = rows, columns, wrap
        self.n_cells = rows * columns
        self.extent = float(max(rows, columns))

    def average(self, planes: Planes, bandwidth: float, workers: Workers) -> Planes:
        """Gaussian averages of planes (n_planes, n_cells), sampled coarsely if wide."""
        rows, columns, wrap = self.rows, self.columns, self.wrap
        if self.extent <= SMALL_SIDE:
            lines = planes.reshape(-1, rows, columns) @ _averages(columns, bandwidth, wrap).T
            smooth: Planes = _averages(rows, bandwidth, wrap) @ lines
            return smooth.reshape(len(planes), -1)
        spacing = max(1.0, bandwidth / SAMPLES_PER_BANDWIDTH)
        n_down, n_across = max(1, round(rows / spacing)), max(1, round(columns / spacing))
        if spacing < 2:
            n_down, n_across = rows, columns
        samples = np.empty((len(planes), n_down, n_across), dtype=np.float32)
        across = gaussian_taps(columns, bandwidth, n_across, wrap)
        down = gaussian_taps(rows, bandwidth, n_down, wrap)
        if down[0].shape[1] > max(MANY_TAPS, MANY_LAPS * rows):
            every = np.arange(rows, dtype=np.int32)
            down = np.tile(every, (n_down, 1)), _sum_taps(*down, rows)
        task = planes, columns, *down, *across, samples
        workers.each(surface_loops.average, [(*task, *piece) for piece in self._pieces(n_down)])
        if (n_down, n_across) == (rows, columns):
            return samples.reshape(len(planes), -1)
        full = np.empty((len(planes), rows, columns), dtype=np.float32)
        between = *_between(rows, n_down, wrap), *_between(columns, n_across, wrap)
        pieces = [(samples, *between, full, *piece) for piece in self._pieces(rows)]
        workers.each(surface_loops.enlarge, pieces)
        return full.reshape(len(planes), -1)

    def _pieces(self, n: int) -> list[tuple[int, int]]:
        """Parts of `range(n)` that are each worth a thread."""
        n_pieces = min(n, -(-self.n_cells // PIECE))
        return list(pairwise(n * k // n_pieces for k in range(n_pieces + 1)))

    def swap(self, board: Bits, field: Planes, passes: Passes, rng: Rng, workers: Workers) -> None:
        """Exchange along random shifts, in tiles of the grid that do not share cells."""
        # Every stride-th cell forms a coarser grid on which a wide kernel is narrower, so that
        # tiles stay small even if their cells are far apart.
        n_strides = -(-max(self.rows, self.columns) // TILE)
        stride = max(1, min(n_strides, int(passes.bandwidth / 4)))
        tiles = list(self._swap_tiles(stride, rng))
        draws = rng.random((len(tiles), passes.n_passes, 3))
        shape = self.rows, self.columns, passes.n_features
        flat, task = board.reshape(-1), (field.reshape(-1), passes.free, *shape)
        width = passes.bandwidth / stride
        longest = max(1, int(LONGEST_SHIFT * width))
        reach, how = (longest, own_share(width)), (passes.noise, passes.heat)
        if len(tiles) == 1 and not self.wrap:
            whole: Any = flat, flat.view(np.float32), *task, draws[0], *reach, *how
            surface_loops.swap_passes(*whole)
            return
        pieces = [
            (flat, *task, tile, *surface_loops.shifts_of(draw, *tile[2:4], *reach), *how)
            for tile, draw in zip(tiles, draws, strict=True)
        ]
        workers.each(surface_loops.swap_tile, pieces)

    def _swap_tiles(self, stride: int, rng: Rng) -> Iterator[tuple[int, int, int, int, int]]:
        """Tiles of the grid: (top, left, rows, columns, stride), each cell in one of them."""
        roll = rng.integers(0, (self.rows, self.columns)) if self.wrap else (0, 0)
        for down in range(min(stride, self.rows)):
            for across in range(min(stride, self.columns)):
                height = -(-(self.rows - down) // stride)
                width = -(-(self.columns - across) // stride)
                for y, n_rows in _cut(height, rng):
                    for x, n_columns in _cut(width, rng):
                        top, left = int(roll[0]) + down, int(roll[1]) + across
                        yield top + stride * y, left + stride * x, n_rows, n_columns, stride

    def typical_gain(
        self, planes: Planes, field: Planes, n_features: int, items: Bits, bandwidth: float
    ) -> float:
        """Scale of the gains of exchanges a bandwidth apart: root mean squares over some cells."""
        cells, others = _sampled_cells(self.rows, self.columns, max(1, round(bandwidth)))
        held = items[cells] >= 0
        if not held.all():
            cells, others = cells[held], others[held]
        here = field[:n_features].take(cells, axis=1)
        slope = here - field[:n_features].take(others, axis=1)
        stray = planes[:n_features].take(cells, axis=1) - here
        product = float(np.vdot(slope, slope)) * float(np.vdot(stray, stray))
        return float(np.sqrt(product)) / max(cells.size, 1)

    def tiles(self, side: float, rng: Rng) -> Cells:
        """Tile of each cell: squares of the given side at a random offset."""
        length = max(1, int(side))
        down, right = rng.integers(0, length, 2)
        row = np.arange(self.rows) + down
        column = np.arange(self.columns) + right
        if self.wrap:
            row, column = row % self.rows, column % self.columns
        row, column = row // length, column // length
        return (row[:, np.newaxis] * (column.max() + 1) + column).ravel()

    def neighbors(self) -> tuple[Bits, Planes]:
        """The eight cells around each, -1 for none, and their weights."""
        row, column = np.divmod(np.arange(self.n_cells, dtype=np.int32), np.int32(self.columns))
        found = np.empty((self.n_cells, 8), dtype=np.int32)
        weights = np.empty((self.n_cells, 8), dtype=np.float32)
        steps = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
        for k, (down, right) in enumerate(steps):
            y, x = row + down, column + right
            if self.wrap:
                y, x = y % self.rows, x % self.columns
            there = (y >= 0) & (y < self.rows) & (x >= 0) & (x < self.columns)
            there &= (y != row) | (x != column)  # on a torus of one row
            found[:, k] = np.where(there, y * self.columns + x, -1)
            weights[:, k] = np.exp(-0.5 * (down**2 + right**2) / NEIGHBOR_BANDWIDTH**2)
        return found, weights


@lru_cache(maxsize=256)
def _sampled_cells(rows: int, columns: int, step: int) -> tuple[Cells, Cells]:
    """Some cells of a raster, and for each the cell `step` further down and right."""
    n_cells = rows * columns
    cells = np.arange(0, n_cells, n_cells // N_SAMPLED | 1)  # odd: visits all rows and columns
    y, x = np.divmod(cells, columns)
    down = np.where(y + step < rows, y + step, np.maximum(y - step, 0))
    right = np.where(x + step < columns, x + step, np.maximum(x - step, 0))
    return cells, down * columns + right


def gaussian_taps(size: int, bandwidth: float, n_samples: int, wrap: bool) -> tuple[Bits, Planes]:
    """Cells that each evenly spaced sample of an axis averages over, and their weights.

    Both have shape (n_samples, n_taps). Cells are mirrored at the ends, or with `wrap` repeated.
    """
    every_cell = n_samples == size
    reach = ceil(REACH * bandwidth) + (0 if every_cell else 1)
    taps = np.arange(-reach, reach + 1)
    centers = (np.arange(n_samples) + 0.5) * (size / n_samples) - 0.5
    nearest = np.floor(centers + 0.5)
    # All samples have the same weights if there is one for each cell.
    apart = (nearest - centers)[: 1 if every_cell else None, np.newaxis] + taps
    weights = np.exp(-0.5 * (apart / bandwidth) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    cells = nearest[:, np.newaxis].astype(np.int32) + taps.astype(np.int32)
    cells %= size if wrap else 2 * size
    if not wrap:
        np.minimum(cells, 2 * size - 1 - cells, out=cells)
    shares = weights.astype(np.float32)
    return cells, np.repeat(shares, n_samples, axis=0) if every_cell else shares


@lru_cache(maxsize=256)
def _averages(size: int, bandwidth: float, wrap: bool) -> Planes:
    """Weights of all cells of a short axis in the average around each, shape (size, size)."""
    return _sum_taps(*gaussian_taps(size, bandwidth, size, wrap), size)


def _sum_taps(cells: Bits, weights: Planes, size: int) -> Planes:
    """Weights of `size` cells, shape (n_samples, size), each the sum of its taps."""
    sums = np.zeros((len(cells), size), dtype=np.float32)
    np.add.at(sums, (np.arange(len(cells))[:, np.newaxis], cells), weights)
    return sums


def _between(size: int, n_samples: int, wrap: bool) -> tuple[Bits, Bits, Planes]:
    """Samples on both sides of each cell of an axis, and its position between them, 0 to 1."""
    places = (np.arange(size) + 0.5) * n_samples / size - 0.5
    first = np.floor(places)
    share = (places - first).astype(np.float32)
    near = first.astype(np.int32)
    if wrap:
        return near % n_samples, (near + 1) % n_samples, share
    return np.maximum(near, 0), np.minimum(near + 1, n_samples - 1), share


@lru_cache(maxsize=256)
def own_share(bandwidth: float) -> Planes:
    """Weight of a cell in the average of the cell 0, 1, 2, ... away, along one axis; the last 0.

    The share of an item in the field moves with it. The exact gain of one exchange counts it in
    full, but then many exchanges at once overshoot.
    """
    own = np.exp(-0.5 * (np.arange(ceil(REACH * bandwidth) + 2) / bandwidth) ** 2)
    own[-1] = 0.0
    return np.asarray(own * (np.sqrt(OWN_SHARE) / (2.0 * own.sum() - own[0])), dtype=np.float32)


def _cut(size: int, rng: Rng) -> list[tuple[int, int]]:
    """Starts and lengths of parts of at most TILE cells, cut at random."""
    if size <= TILE:
        return [(0, size)]
    first = int(rng.integers(TILE // 4, TILE))
    starts = [0, *range(first, size, TILE)]
    return [(a, b - a) for a, b in zip(starts, [*starts[1:], size], strict=True)]


class Scatter:
    """Cells at given points; the unit of length is the median distance to the nearest other."""

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
        """Gaussian average, by way of a grid or from point to point, whichever is cheaper."""
        spacing = bandwidth / SAMPLES_PER_BANDWIDTH
        rows, columns = np.floor(self.points.max(axis=0) / spacing) + 2
        if rows * columns > GRID_CELLS_PER_POINT * self.n_cells + LEAST_GRID:
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

    def swap(self, board: Bits, field: Planes, passes: Passes, rng: Rng, workers: Workers) -> None:
        """Exchange random pairs from the same tile."""
        flat, flat_field = board.reshape(-1), field.reshape(-1)
        for _ in range(passes.n_passes):
            first, second = self._pairs(LONGEST_SHIFT * passes.bandwidth, rng)
            if passes.free.size:
                both = (passes.free[first] & passes.free[second]) != 0
                first, second = first[both], second[both]
            pick = rng.integers(0, len(passes.noise), len(first))
            surface_loops.swap_pairs(
                flat, flat_field, self.n_cells, first, second, passes.noise[pick], passes.heat
            )

    def _pairs(self, side: float, rng: Rng) -> tuple[Cells, Cells]:
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

    def tiles(self, side: float, rng: Rng) -> Cells:
        """Squares of the given side, laid over the points at a random offset."""
        # Points beyond the limit share a tile, since products would overflow.
        place = np.minimum(np.floor(self.points / side + rng.random(2)), 2.0**31).astype(np.int64)
        key = place[:, 0] * (place[:, 1].max() + 1) + place[:, 1]
        return np.unique(key, return_inverse=True)[1].astype(np.int64)

    def neighbors(self) -> tuple[Bits, Planes]:
        """Up to eight nearest cells, if both are among the nearest of each other."""
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
        near, weights = np.where(mutual, found, -1), np.where(mutual, weights, 0.0)
        return near.astype(np.int32), weights.astype(np.float32)


def _onto_grid(places: NDArray[np.float64], rows: int, columns: int) -> sparse.csr_array:
    """Shares of each point in the four cells of a grid around it."""
    n = len(places)
    corner = np.floor(places).astype(np.int64)
    part = places - corner
    index, share = [], []
    for down in (0, 1):
        for right in (0, 1):
            index.append((corner[:, 0] + down) * columns + corner[:, 1] + right)
            above = part[:, 0] if down else 1 - part[:, 0]
            share.append(above * (part[:, 1] if right else 1 - part[:, 1]))
    item = np.tile(np.arange(n), 4)
    shape = (n, rows * columns)
    return sparse.csr_array((np.concatenate(share), (item, np.concatenate(index))), shape=shape)


Surface = Raster | Scatter


def make_surface(cells: Shape) -> Surface:
    """The surface of a shape."""
    if cells.points is not None:
        return Scatter(cells.points)
    rows, columns = cells.cells.shape
    return Raster(rows, columns, cells.wrap)
