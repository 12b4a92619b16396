"""Groups of cells that exchange their items at the same time, and sizes of coarse grids."""

from dataclasses import dataclass
from math import floor

import numpy as np

# Planes of a board whose groups are held in registers with all features; fewer are padded.
FEW = 3
N_SAMPLED = 512  # cells by which gains are scaled
# Cells in a group with few features, and with many.
FEW_CELLS, MANY_CELLS = 16, 8
REACH = 3.0  # bandwidths after which an average is cut off, with 0.3 % of its mass
# An average is sampled at least so often per bandwidth.
SAMPLES_PER_BANDWIDTH = 2.0
# Cells of a group lie at most so many bandwidths apart along each axis.
LONGEST = 2.5
# Part of an item's own weight in the field that a gain counts; see `_surface_loops`.
OWN_SHARE = 0.5
# Factor by which one step makes a grid coarser, at most: each step reads so many cells in turn.
MOST_POOLED = 8


@dataclass(frozen=True)
class Groups:
    """Lattices that cover the grid once: cell (i, j) of a group is i spacings down, j right."""

    size: tuple[int, int]  # rows and columns of the grid
    lattice: tuple[int, int]  # rows and columns of a group
    spacing: tuple[int, int]  # between its cells, down and right
    corner: tuple[int, int]  # how far the first group begins above and left of the grid
    roll: tuple[int, int]  # how far cells are moved on around a torus
    own: float  # weight of an item in its own field that gains leave out
    heat: float  # standard deviation of the noise, in units of `typical`
    seed: int  # of the noise

    @property
    def n(self) -> int:
        """Cells in a group."""
        return self.lattice[0] * self.lattice[1]

    @property
    def counts(self) -> tuple[int, int]:
        """Number of groups down and across; those at the edges lie partly outside."""
        down, across = (
            -(-(size + corner) // (n * apart)) * apart
            for size, corner, n, apart in zip(
                self.size, self.corner, self.lattice, self.spacing, strict=True
            )
        )
        return down, across


def draw_groups(
    size: tuple[int, int], n_cells: int, bandwidth: float, own: float, heat: float, wrap: bool,
    rng: np.random.Generator,
) -> Groups:  # fmt: skip
    """Random groups of n_cells (a power of two) that reach as far as the field is smooth."""
    lattice = _lattice(size, n_cells, rng)
    spacing, corner = [], []
    for length, n in zip(size, lattice, strict=True):
        most = min(LONGEST * bandwidth, length - 1) / max(n - 1, 1)
        spacing.append(int(rng.integers(1, max(1, floor(most)) + 1)))
        corner.append(int(rng.integers(0, n * spacing[-1])))
    roll = rng.integers(0, size) if wrap else (0, 0)
    return Groups(
        size,
        lattice,
        (spacing[0], spacing[1]),
        (corner[0], corner[1]),
        (int(roll[0]), int(roll[1])),
        own,
        heat,
        int(rng.integers(2**31)),
    )


def _lattice(size: tuple[int, int], n_cells: int, rng: np.random.Generator) -> tuple[int, int]:
    """Rows and columns of a group, nearly square, but not larger than the grid."""
    rows = 1 << (n_cells.bit_length() // 2)  # of 8 cells, 4 x 2 or 2 x 4
    if rows * rows != n_cells and rng.random() < 0.5:
        rows = n_cells // rows
    while rows > 1 and rows > size[0]:
        rows //= 2
    while n_cells // rows > max(size[1], 1) and rows < size[0]:
        rows *= 2
    return rows, n_cells // rows


def own_weight(size: tuple[int, int], bandwidth: float) -> float:
    """Part of an item's weight in the average around its own cell that gains leave out."""
    steps = np.arange(-np.ceil(REACH * bandwidth), np.ceil(REACH * bandwidth) + 1)
    peak = 1.0 / float(np.exp(-0.5 * (steps / bandwidth) ** 2).sum())
    return OWN_SHARE * max(peak, 1.0 / size[0]) * max(peak, 1.0 / size[1])


def coarse_sizes(rows: int, columns: int, bandwidth: float) -> list[tuple[int, int]]:
    """Sizes of coarser and coarser grids, the last one fit for this bandwidth; none if narrow."""
    factor, steps = 1, []
    while bandwidth / (2 * factor) >= SAMPLES_PER_BANDWIDTH:
        factor *= 2
    done = 1
    while done < factor:
        done = min(done * MOST_POOLED, factor)
        steps.append((max(1, round(rows / done)), max(1, round(columns / done))))
    return steps
