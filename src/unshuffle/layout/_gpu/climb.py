"""The layout on a GPU: exchanges within groups of cells, with averages wide to narrow.

As on the CPU, an item belongs where its features agree with the average of those around it. But
here each pass tries all exchanges within groups of 8 or 16 cells, all over the grid at once, and
a few passes at each width do what many passes over pairs do there, or assignments within groups.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from unshuffle._run.device import check_device_memory, has_triton
from unshuffle._run.search import Search
from unshuffle.layout._gpu.features import device_features
from unshuffle.layout._gpu.groups import (
    FEW,
    FEW_CELLS,
    MANY_CELLS,
    Groups,
    draw_groups,
)
from unshuffle.layout._problem import (
    ADDING,
    WIDEST_SETTLING,
    Layout,
    LayoutProblem,
    count_checked,
    kernel_features,
)

MOST_CELLS = 2**30  # their numbers have 32 bits
WIDEST, NARROWEST = 0.375, 0.8  # of the longer side; in cells
# Up to so many cells, passes cost almost nothing and chance matters more.
SMALL, HOTTER = 4096, 4.0
# Small groups, as with many features, need so many times the widths and the passes, an average
# that is not older than so many passes, and less heat at the end. With the average of each width
# for all its passes, photos were laid out worse the longer it took.
MORE_FOR_MANY, FRESH, COOLER = 2, 2, 0.3
# Share of the mean of all items in an average, for cells with almost no items around them.
_FAINT = 1e-3


@dataclass(frozen=True)
class DeviceSchedule:
    """Amount of work."""

    n_features: int  # principal components that items are compared by
    widths: float  # for each factor of e in width
    n_passes: int  # passes at each width
    heat: tuple[float, float]  # at the widest and the narrowest; more pays if there is more time


SCHEDULES = {
    "fast": DeviceSchedule(16, 6.5, 5, (0.01, 0.01)),
    "balanced": DeviceSchedule(32, 26.0, 12, (0.02, 0.02)),
    "best": DeviceSchedule(48, 65.0, 12, (0.03, 0.03)),
}


@dataclass
class DeviceBoard:
    """Items on the cells of a grid, with their features, on a device."""

    size: tuple[int, int]
    wrap: bool
    values: Any  # (n_planes, n_cells): features of the item in each cell, 0 where it is empty
    items: Any  # (n_cells,): -1 where a cell is empty
    locked: Any  # (n_cells,): cells that may not change; None if all may
    weights: Any  # (n_cells,): weight of each cell in averages; None is 1 for all
    has_gaps: bool  # whether some cell is empty or outside the mask
    has_empty: bool  # whether some cell that may change is empty
    settles: bool  # whether the items begin in a layout that is to change little

    def __post_init__(self) -> None:
        if has_triton(self.items.device):
            from unshuffle.layout._gpu import triton_kernels

            self.loops: Any = triton_kernels
        else:
            from unshuffle.layout._gpu import plain

            self.loops = plain

    @classmethod
    def start(cls, problem: LayoutProblem, features: Any, seed: int) -> "DeviceBoard":
        """Items where the problem has them, or in random order around the frozen ones."""
        import torch

        device, (n_items, n_features) = features.device, features.shape
        cells, frozen = problem.cells.cells, problem.frozen
        generator = torch.Generator(device).manual_seed(seed)
        has_gaps = n_items < cells.size

        def shuffled(n: int) -> Any:
            return torch.randperm(n, generator=generator, device=device)

        items = torch.full((cells.size,), -1, dtype=torch.int32, device=device)
        locked = weights = None
        if len(frozen) or not cells.all():
            is_free = cells.flatten()
            is_free[frozen[:, 1]] = False
            locked = torch.as_tensor(~is_free, device=device)
        if problem.start is not None:
            items = torch.as_tensor(problem.start.astype(np.int32), device=device)
        elif locked is None:
            items[shuffled(cells.size)[:n_items]] = shuffled(n_items).int()
        else:
            free = torch.as_tensor(np.flatnonzero(is_free), device=device)
            moving = np.delete(np.arange(n_items, dtype=np.int32), frozen[:, 0])
            chosen = free[shuffled(len(free))[: moving.size]]
            items[chosen] = torch.as_tensor(moving, device=device)[shuffled(moving.size)]
            items[torch.as_tensor(frozen[:, 1], device=device)] = torch.as_tensor(
                frozen[:, 0].astype(np.int32), device=device
            )
        if len(frozen):
            weights = torch.ones(cells.size, device=device)
            weights[torch.as_tensor(frozen[:, 1], device=device)] = problem.frozen_weight()
        values = torch.zeros((max(n_features, FEW), cells.size), device=device)
        for plane, feature in zip(values, features.T, strict=False):
            torch.index_select(feature, 0, items.clamp(min=0), out=plane)
            if has_gaps:
                plane *= items >= 0
        size = cells.shape
        has_empty = n_items < problem.cells.n_open
        return cls(
            size, problem.cells.wrap, values, items, locked, weights, has_gaps, has_empty,
            settles=problem.start is not None,
        )  # fmt: skip

    def field(self, bandwidth: float) -> Any:
        """Average of the items around each cell, (n_planes, n_cells); NaN where it is locked."""
        import torch

        planes = self.values
        if self.has_gaps or self.weights is not None:
            present = (self.items >= 0).float()
            if self.weights is not None:
                present *= self.weights
            planes = torch.cat([planes * present, present[None]])
        shape = (len(planes), *self.size)
        field = self.loops.average(planes.reshape(shape), bandwidth, wrap=self.wrap)
        field = field.reshape(len(planes), -1)
        if len(planes) > len(self.values):
            mass = field[-1] + _FAINT if self.has_gaps else field[-1]
            field = field[:-1].div_(mass)
        if self.locked is not None:
            field[0].masked_fill_(self.locked, torch.nan)
        return field

    def typical(self, field: Any, bandwidth: float) -> Any:
        """Scales of the field and of gains, the units of heat."""
        step = max(1, round(bandwidth))
        return self.loops.typical(self.values, self.items, field, self.size, step)

    def exchange(self, field: Any, scale: Any, groups: Groups, number: int) -> None:
        """Exchange items within the groups of a pass where that gains."""
        board = self.values, self.items, field, scale
        self.loops.exchange(*board, groups, number, has_empty=self.has_empty)

    def agreement(self, field: Any) -> float:
        """Mean product of the items' features and the field where they are."""
        products = (self.values * field.nan_to_num()).sum(dim=0)
        return float(products.double().sum() / max(int((self.items >= 0).sum()), 1))


def solve_on_device(
    problem: LayoutProblem, quality: str, search: Search[Layout], device: Any
) -> Layout:
    """Lay out the items by annealing on a device."""
    schedule = SCHEDULES[quality]
    n_items, n_cells = count_checked(problem.items), problem.cells.cells.size
    random = check_random_state(problem.random_state)
    vectors = problem.items
    if problem.kernel != "linear":
        vectors = kernel_features(vectors, problem.kernel, problem.gamma, random)
    n_planes = max(min(schedule.n_features, vectors.shape[1]), FEW)
    if n_cells > MOST_CELLS:
        raise ValueError(
            f"`shape` has {n_cells:,} cells; on a GPU there may be {MOST_CELLS:,}. Give a smaller "
            "`shape`."
        )
    check_device_memory(
        device,
        device_bytes(n_items, vectors.shape[1], n_cells, n_planes),
        what=f"Laying out {n_items:,} items on {n_cells:,} cells",
        instead="Lay out fewer items, or leave `device` out to use the CPU.",
    )
    features = device_features(vectors, schedule.n_features, device, random)
    seed = random.randint(2**31)
    adding = problem.adding()
    if adding is not None:
        board = DeviceBoard.start(adding, features, seed)
        layout = _climb_to_the_end(board, schedule, seed, search, vectors, (0.0, ADDING))
        problem = replace(problem, start=layout.grid.cpu().numpy())
    board = DeviceBoard.start(problem, features, seed)
    del features
    return _climb_to_the_end(
        board, schedule, seed, search, vectors, (0.0 if adding is None else ADDING, 1.0)
    )


def _climb_to_the_end(
    board: DeviceBoard, schedule: DeviceSchedule, seed: int, search: Search[Layout], vectors: Any,
    part: tuple[float, float],
) -> Layout:  # fmt: skip
    """Layout of a board after its climb, which is a part of all work."""
    report = _reporter(board, vectors, search, part)
    try:
        climb(board, schedule, np.random.default_rng(seed), report)
    finally:
        # Between two passes the board is a whole layout, also when Ctrl-C ends the work.
        layout = Layout(board.items, vectors)
        search.offer(layout, rank=(0, search.iteration + 1))
    return layout


def device_bytes(n_items: int, n_columns: int, n_cells: int, n_planes: int) -> int:
    """Bytes taken at the peak: items in double precision, or the board and its averages."""
    before = n_items * (8 * 2 * n_columns + 8 * n_planes)
    planes = 4 * n_cells * (n_planes + 1)
    return max(before, 4 * n_items * n_planes + 5 * planes + 32 * n_cells)


def _reporter(
    board: DeviceBoard, vectors: Any, search: Search[Layout], part: tuple[float, float]
) -> Callable[[float, Any], None]:
    """Report of each width. Without a callback it does not wait for the device."""

    def report(done: float, field: Any) -> None:
        if search.callback is None:
            search.iteration += 1
            return
        cells = Layout(board.items.cpu().numpy(), vectors).cells
        fraction = part[0] + done * (part[1] - part[0])
        search.step(board.agreement(field), cells, stage="exchanging", fraction=fraction)

    return report


def climb(
    board: DeviceBoard,
    schedule: DeviceSchedule,
    rng: np.random.Generator,
    report: Callable[[float, Any], None],
) -> None:
    """Move the items of a board so that similar ones come side by side."""
    n_cells, is_few = board.items.numel(), len(board.values) == FEW
    more = 1 if is_few else MORE_FOR_MANY
    widest = max(WIDEST * max(board.size), NARROWEST)
    n_widths = max(8, round(more * schedule.widths * np.log(widest / NARROWEST)))
    widths = np.geomspace(widest, NARROWEST, n_widths)
    first, last = schedule.heat
    first, last = first * (HOTTER if n_cells <= SMALL else 1.0), last * (1.0 if is_few else COOLER)
    heats = np.geomspace(first, last, n_widths)
    if board.settles:
        heats, widths = (each[widths <= WIDEST_SETTLING] for each in (heats, widths))
    n_passes = round(more * schedule.n_passes * np.clip(np.sqrt(SMALL / n_cells), 1.0, 4.0))
    groups = draw_groups(
        board.size,
        FEW_CELLS if is_few else MANY_CELLS,
        np.repeat(widths, n_passes),
        np.repeat(heats, n_passes),
        wrap=board.wrap,
        # An item that moves into an empty cell would count its own share as a gain. Where items
        # of few features settle, that share lets them stay.
        own=not (board.has_empty or (board.settles and is_few)),
        rng=rng,
        device=board.items.device,
    )
    fresh = n_passes if is_few else FRESH
    for step, width in enumerate(widths):
        field = board.field(width)
        scale = board.typical(field, width)
        for number in range(n_passes):
            if number and number % fresh == 0:
                field = board.field(width)
            board.exchange(field, scale, groups, step * n_passes + number)
        report((step + 1) / len(widths), field)
