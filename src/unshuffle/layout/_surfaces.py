"""Where cells lie: on a grid or at any points; what is near what, smoothed at any width.

A surface knows nothing of items. It averages planes of values over its cells, finds disjoint
pairs to exchange, groups to reorder and neighbours to compare.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import Workers
from unshuffle.layout import _blur_loops, _swap_loops

Planes = NDArray[np.float32]
Bits = NDArray[np.int32]
Cells = NDArray[np.int64]

# An average is sampled this many times in a bandwidth, and interpolated between; at 2 the
# layouts came out as good as with every cell sampled.
SAMPLES_PER_BANDWIDTH = 2.0
# Cells along a side of what is swapped at once: 128 x 128 cells with three features and their
# field take 0.5 MB, which stays in the processor's cache.
TILE = 128
# Work is split in pieces of about this many cells, never by the number of threads.
PIECE = 32768
NOISE_CELLS = TILE * TILE
GROUP = 256


@dataclass(frozen=True)
class Passes:
    """How items are swapped at one width.

    Attributes
    ----------
    bandwidth : float
        Width of the field, in cells; exchanges reach a few times as far.
    heat : float
        Factor of the noise; larger accepts more exchanges that do not pay.
    n_passes : int
        Passes over all cells.
    noise : float32 array of shape (>= cells swapped at once + NOISE_OFFSETS,)
        Of zero mean.
    """

    bandwidth: float
    heat: float
    n_passes: int
    noise: Planes


class Surface(Protocol):
    """What the annealing needs to know of the cells."""

    n_cells: int
    extent: float

    def average(self, planes: Planes, bandwidth: float, workers: Workers) -> Planes:
        """Gaussian averages of planes (n_planes, n_cells) around each cell."""

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
        """Exchange items of cells up to a few bandwidths apart where it pays."""

    def typical_gain(
        self, planes: Planes, field: Planes, n_features: int, items: Bits, bandwidth: float
    ) -> float:
        """Scale of the gains of exchanges between cells about a bandwidth apart."""

    def tiles(self, side: float, rng: np.random.Generator) -> Cells:
        """Number of the tile that each cell lies in; tiles have the given side in cells."""

    def neighbors(self) -> tuple[NDArray[np.int32], Planes]:
        """Cells around each cell (-1 for none), and what they count."""


class Raster:
    """Cells of a rectangle, or of a torus where the edges meet.

    Parameters
    ----------
    rows, columns : int
        Its size.
    wrap : bool
        Whether the last row is beside the first, and the last column beside the first.
    """

    def __init__(self, rows: int, columns: int, wrap: bool) -> None:
        self.rows = rows
        self.columns = columns
        self.wrap = wrap
        self.n_cells = rows * columns
        self.extent = float(max(rows, columns))

    def average(self, planes: Planes, bandwidth: float, workers: Workers) -> Planes:
        """Average with mirrored edges, sampled more coarsely where the kernel is wide."""
        rows, columns, wrap = self.rows, self.columns, self.wrap
        spacing = max(1.0, bandwidth / SAMPLES_PER_BANDWIDTH)
        n_down, n_across = max(1, round(rows / spacing)), max(1, round(columns / spacing))
        if spacing < 2:
            n_down, n_across = rows, columns
        samples = np.empty((len(planes), n_down, n_across), dtype=np.float32)
        workers.each(
            _blur_loops.average,
            [
                (planes, rows, columns, bandwidth, wrap, samples, *piece)
                for piece in self._pieces(n_down)
            ],
        )
        if (n_down, n_across) == (rows, columns):
            return samples.reshape(len(planes), -1)
        full = np.empty((len(planes), rows, columns), dtype=np.float32)
        workers.each(
            _blur_loops.enlarge, [(samples, wrap, full, *piece) for piece in self._pieces(rows)]
        )
        return full.reshape(len(planes), -1)

    def _pieces(self, n: int) -> list[tuple[int, int]]:
        """`range(n)` in parts that are worth a thread each."""
        n_pieces = min(n, -(-self.n_cells // PIECE))
        bounds = [n * k // n_pieces for k in range(n_pieces + 1)]
        return list(pairwise(bounds))

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
        """Exchange along random shifts, in parts of the grid that do not touch each other."""
        # Of a wide kernel, every stride-th cell is a grid of its own on which the kernel is
        # narrower: so each part stays small, however far its cells are apart.
        n_strides = -(-max(self.rows, self.columns) // TILE)
        stride = max(1, min(n_strides, int(passes.bandwidth / 4)))
        tiles = list(self._swap_tiles(stride, rng))
        draws = rng.random((len(tiles), passes.n_passes, 3))
        flat = (board.reshape(-1), field.reshape(-1), free, self.rows, self.columns, n_features)
        how = passes.bandwidth, passes.noise, passes.heat
        if len(tiles) == 1 and not self.wrap:
            _swap_loops.swap_passes(*flat, draws[0], *how)
            return
        workers.each(
            _swap_loops.swap_tile,
            [(*flat, tile, part, *how) for tile, part in zip(tiles, draws, strict=True)],
        )

    def _swap_tiles(
        self, stride: int, rng: np.random.Generator
    ) -> Iterator[tuple[int, int, int, int, int]]:
        """Parts of the grid: (top, left, rows, columns, stride), each cell in one of them."""
        roll = rng.integers(0, (self.rows, self.columns)) if self.wrap else (0, 0)
        for down in range(min(stride, self.rows)):
            for across in range(min(stride, self.columns)):
                height = -(-(self.rows - down) // stride)
                width = -(-(self.columns - across) // stride)
                for top, n_rows in _cut(height, rng):
                    for left, n_columns in _cut(width, rng):
                        yield (
                            int(roll[0]) + down + stride * top,
                            int(roll[1]) + across + stride * left,
                            n_rows,
                            n_columns,
                            stride,
                        )

    def typical_gain(
        self, planes: Planes, field: Planes, n_features: int, items: Bits, bandwidth: float
    ) -> float:
        """Root mean squares over some hundred cells."""
        step = max(1, round(bandwidth))
        gain = _blur_loops.typical_gain(
            planes, field, n_features, items, self.rows, self.columns, step
        )
        return float(gain)

    def tiles(self, side: float, rng: np.random.Generator) -> Cells:
        """Squares of the given side, laid over the grid at a random offset."""
        length = max(1, int(side))
        down, right = rng.integers(0, length, 2)
        row = np.arange(self.rows) + down
        column = np.arange(self.columns) + right
        if self.wrap:
            row, column = row % self.rows, column % self.columns
        row, column = row // length, column // length
        return (row[:, np.newaxis] * (column.max() + 1) + column).ravel()

    def neighbors(self) -> tuple[NDArray[np.int32], Planes]:
        """The eight cells around each."""
        row, column = np.divmod(np.arange(self.n_cells, dtype=np.int32), np.int32(self.columns))
        found = np.empty((self.n_cells, 8), dtype=np.int32)
        weights = np.empty((self.n_cells, 8), dtype=np.float32)
        steps = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
        for k, (down, right) in enumerate(steps):
            y, x = row + down, column + right
            if self.wrap:
                y, x = y % self.rows, x % self.columns
            there = (y >= 0) & (y < self.rows) & (x >= 0) & (x < self.columns)
            there &= (y != row) | (x != column)  # round a torus of one row
            found[:, k] = np.where(there, y * self.columns + x, -1)
            weights[:, k] = np.exp(-0.5 * (down**2 + right**2) / NEIGHBOR_BANDWIDTH**2)
        return found, weights


NEIGHBOR_BANDWIDTH = 0.8


def _cut(size: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Starts and lengths of parts of at most TILE cells, cut at random places."""
    if size <= TILE:
        return [(0, size)]
    first = int(rng.integers(TILE // 4, TILE))
    starts = [0, *range(first, size, TILE)]
    return [(a, b - a) for a, b in zip(starts, [*starts[1:], size], strict=True)]
