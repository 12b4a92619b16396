"""Groups of cells that exchange their items at the same time, and sizes of coarse grids."""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._run.types import Floats

# Planes of a board whose groups are held in registers with all features; fewer are padded.
FEW = 3
N_PARAMS, N_FACTORS = 11, 2
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
    """Groups of all passes: lattices that cover the grid once, one kind for each pass.

    `table` has a row of N_PARAMS whole numbers for each pass: how many groups there are, how many
    of them across; rows and columns of a group; spacings down and right between its cells; how far
    the first group begins above and left of the grid; how far cells are moved down and right
    around a torus; and the seed of the noise.

    `factors` are the weight of an item in its own field that gains leave out, and the heat.
    """

    size: tuple[int, int]  # rows and columns of the grid
    n: int  # cells of a group
    table: NDArray[np.int32]
    factors: NDArray[np.float32]
    on_device: tuple[Any, Any]  # both as tensors

    def count(self, number: int) -> int:
        """Number of groups in a pass; those at the edges lie partly outside."""
        return int(self.table[number, 0])


def draw_groups(
    size: tuple[int, int], n: int, widths: Floats, heats: Floats, *, wrap: bool, own: bool,
    rng: np.random.Generator, device: Any,
) -> Groups:  # fmt: skip
    """Random groups of n cells, a power of two, that reach as far as the field is smooth."""
    import torch

    lattices = _lattices(size, n, len(widths), rng)
    columns, counts = [], []
    for length, n_along in zip(size, lattices.T, strict=True):
        most = np.minimum(LONGEST * widths, length - 1) / np.maximum(n_along - 1, 1)
        apart = rng.integers(1, np.maximum(1, most).astype(np.int64) + 1)
        corner = rng.integers(0, n_along * apart)
        counts.append(-(-(length + corner) // (n_along * apart)) * apart)
        columns.append([apart, corner, rng.integers(0, length if wrap else 1, len(widths))])
    seeds = rng.integers(0, 2**31, len(widths))
    table = np.stack(
        [
            counts[0] * counts[1],
            counts[1],
            *lattices.T,
            *chain(*zip(*columns, strict=True)),
            seeds,
        ],
        axis=1,
    ).astype(np.int32)
    weights = {width: own_weight(size, width) if own else 0.0 for width in np.unique(widths)}
    factors = np.stack([[weights[width] for width in widths], heats], axis=1).astype(np.float32)
    tensors = tuple(torch.as_tensor(each, device=device) for each in (table, factors))
    return Groups(size, n, table, factors, (tensors[0], tensors[1]))


def _lattices(size: tuple[int, int], n: int, count: int, rng: np.random.Generator) -> NDArray[Any]:
    """Rows and columns of groups, nearly square, but not larger than the grid if possible."""
    rows = 1 << (n.bit_length() // 2)  # of 8 cells, 4 x 2 or 2 x 4 in turn
    choices = []
    for tall in (rows, n // rows):
        while tall > 1 and tall > size[0]:
            tall //= 2
        while n // tall > size[1] and 2 * tall <= size[0]:
            tall *= 2
        choices.append((tall, n // tall))
    return np.array(choices)[rng.integers(0, 2, count)]


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
