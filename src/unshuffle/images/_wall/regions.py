"""Regions of a wall in which one label prevails, and where to write it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from unshuffle._core.grids import check_grid, check_names
from unshuffle._run.types import Indices

Map = NDArray[np.float32]

# Standard deviation of the surroundings of a cell, in cells, over the fourth root of the number of
# items: 1.2 cells of 300, 2.2 of 3,000, 5.3 of 100,000. Wider ones miss small regions, narrower
# ones break large ones into many. If labels have few items, it is at most this share of the side
# of a square that all items of one would fill; and never below LEAST_WIDTH.
WIDTH, OF_SIDE, LEAST_WIDTH = 0.3, 0.28, 1.0
# How much more common a label is in its region than on the whole wall: 0 is as common, 1 is every
# item. The difference is also so many standard errors, which in small regions is more.
LEAST_LIFT, LEAST_ERRORS = 0.3, 4.5
# Least number of items: so many squares of the width, and shares of the wall and of the label.
LEAST_AREA, OF_WALL, OF_LABEL = 6.0, 0.0005, 0.02
# Where fewer of the cells around hold labeled items, as a share, is outside of the wall.
LEAST_FILLED = 0.2
MOST_LABELS = 200
IN_MEMORY = 2**22  # numbers in maps of several labels


@dataclass(frozen=True)
class Region:
    """A part of a wall where one label prevails."""

    text: str
    row: float  # of a point well inside, in cells: the middle of the first cell is at .5
    column: float
    size: float  # square root of the number of its cells


def find_regions(
    grid: Any, labels: Sequence[str], *, most: int = 400, most_labels: int = MOST_LABELS
) -> list[Region]:
    """Connected regions in which a label is the most common one, largest first, at most `most`.

    `grid` holds the item in each cell, -1 for none; `labels` one text for each item, "" for none.
    Of more than `most_labels` different labels the most frequent are used. Labels that are
    scattered over the wall have no regions.
    """
    texts = check_names(labels, "labels")
    wall = _Wall.of(check_grid(grid, len(texts)), texts, most_labels)
    if not wall.texts:
        return []
    prevailing, share = _find_prevailing(wall)
    n_labeled = wall.blocks.size
    usual = np.bincount(wall.labels[wall.labels >= 0], minlength=len(wall.texts)) / n_labeled
    least_share = usual + LEAST_LIFT * (1.0 - usual)
    # Items of the label that prevails around them.
    own = wall.labels == prevailing.ravel()[wall.blocks]
    n_own = np.bincount(wall.blocks[own], minlength=wall.filled.size).reshape(wall.filled.shape)
    found = []
    for label, text in enumerate(wall.texts):
        parts, n_parts = ndimage.label((prevailing == label) & (share >= least_share[label]))
        each = np.arange(1, n_parts + 1)
        n_items = ndimage.sum_labels(wall.filled, parts, each)
        more = ndimage.sum_labels(n_own, parts, each) - usual[label] * n_items
        errors = np.sqrt(usual[label] * (1.0 - usual[label]) * n_items)
        large = n_items >= max(
            LEAST_AREA * wall.width**2, OF_WALL * n_labeled, OF_LABEL * usual[label] * n_labeled
        )
        common = (more >= LEAST_LIFT * (1.0 - usual[label]) * n_items) & (
            more >= LEAST_ERRORS * errors
        )
        for part in np.flatnonzero(large & common):
            mask = parts == part + 1
            size = float(wall.n_cells[mask].sum()) ** 0.5
            found.append(Region(text, *wall.place(_middle(mask)), size))
    return sorted(found, key=lambda region: -region.size)[:most]


@dataclass(frozen=True)
class _Wall:
    """Labeled items in square blocks of cells, small enough to resolve the width."""

    texts: list[str]  # different labels, the most frequent first
    labels: Indices  # label of each labeled item, -1 for a rare one
    blocks: Indices  # block of each labeled item
    filled: Map  # number of labeled items in each block
    n_cells: Map  # number of cells in each block
    width: float  # in cells
    step: int  # side of a block, in cells
    shape: tuple[int, int]  # in cells

    @classmethod
    def of(cls, cells: Indices, texts: list[str], most_labels: int) -> "_Wall":
        # Other items say nothing, as if their cells were empty.
        is_labeled = np.array([*map(bool, texts), False])  # the last is that of -1
        rows, columns = np.nonzero(is_labeled[cells])
        placed = [texts[item] for item in cells[rows, columns].tolist()]
        often = Counter(placed)
        width = _choose_width(rows.size, np.array([*often.values()]))
        step = max(1, int(width / 2))
        shape = -(-cells.shape[0] // step), -(-cells.shape[1] // step)
        blocks = rows // step * shape[1] + columns // step
        filled = np.bincount(blocks, minlength=shape[0] * shape[1]).astype(np.float32)
        sides = [
            np.minimum(step, length - step * np.arange(n, dtype=np.float32))
            for length, n in zip(cells.shape, shape, strict=True)
        ]
        # Rarer labels cannot be common in a region that is large enough.
        least = LEAST_LIFT * LEAST_AREA * width**2
        frequent = [text for text, n in often.most_common(most_labels) if n >= least]
        number = {text: k for k, text in enumerate(frequent)}
        labels = np.array([number.get(text, -1) for text in placed], dtype=np.intp)
        return cls(
            texts=frequent,
            labels=labels,
            blocks=blocks,
            filled=filled.reshape(shape),
            n_cells=np.outer(*sides),
            width=width,
            step=step,
            shape=cells.shape[:2],
        )

    def smooth(self, maps: Map) -> Map:
        """Averages around each block, over the last two axes; beyond the edges is nothing."""
        widths = (0.0,) * (maps.ndim - 2) + (self.width / self.step,) * 2
        return np.asarray(ndimage.gaussian_filter(maps, widths, mode="constant", truncate=3.0))

    def place(self, block: tuple[float, float]) -> tuple[float, float]:
        """A point in cells, from one in blocks."""
        row, column = (
            min(self.step * at, length - 0.5) for at, length in zip(block, self.shape, strict=True)
        )
        return row, column


def _choose_width(n_labeled: int, counts: Indices) -> float:
    """Width for so many items, from the numbers of items of the labels."""
    sizes = np.sort(counts)[::-1]
    # of the label of a typical item
    typical = sizes[np.searchsorted(np.cumsum(sizes), sizes.sum() / 2)] if sizes.size else 0
    return float(max(LEAST_WIDTH, min(WIDTH * n_labeled**0.25, OF_SIDE * typical**0.5)))


def _find_prevailing(wall: _Wall) -> tuple[Indices, Map]:
    """The most common label around each block, -1 outside of the wall, and its share."""
    n_labels, n_blocks = len(wall.texts), wall.filled.size
    around = wall.smooth(wall.filled)
    prevailing = np.full(wall.filled.shape, -1, dtype=np.intp)
    highest = np.zeros(wall.filled.shape, dtype=np.float32)
    n_together = max(1, IN_MEMORY // n_blocks)
    for start in range(0, n_labels, n_together):
        n_here = min(n_together, n_labels - start)
        these = (wall.labels >= start) & (wall.labels < start + n_here)
        places = (wall.labels[these] - start) * n_blocks + wall.blocks[these]
        counts = np.bincount(places, minlength=n_here * n_blocks).astype(np.float32)
        maps = wall.smooth(counts.reshape(n_here, *wall.filled.shape))
        top = maps.max(axis=0)
        better = top > highest
        prevailing[better] = start + maps.argmax(axis=0)[better]
        highest[better] = top[better]
    inside = around >= LEAST_FILLED * wall.smooth(wall.n_cells)
    share = np.divide(highest, around, out=np.zeros_like(highest), where=inside)
    return np.where(inside, prevailing, -1), share


def _middle(mask: NDArray[np.bool_]) -> tuple[float, float]:
    """The point of a region farthest from its edge, in blocks; of several the most central."""
    rows, columns = ndimage.find_objects(mask.astype(np.int8))[0]
    part = mask[rows, columns]
    depth = ndimage.distance_transform_edt(np.pad(part, 1))[1:-1, 1:-1]
    deepest = np.argwhere(depth >= depth.max() - 0.5)
    apart = deepest - np.argwhere(part).mean(axis=0)
    row, column = deepest[(apart**2).sum(axis=1).argmin()]
    return float(row + rows.start + 0.5), float(column + columns.start + 0.5)
