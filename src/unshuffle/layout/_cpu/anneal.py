"""The default layout: swaps, then assignments, then exchanges, with averages wide to narrow."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from unshuffle._run.parallel import Workers, one_blas_thread
from unshuffle._run.search import Search
from unshuffle._run.types import Floats, Planes
from unshuffle.layout._cpu import group_loops
from unshuffle.layout._cpu.surface_loops import NOISE_OFFSETS
from unshuffle.layout._cpu.surfaces import (
    NOISE_CELLS,
    PIECE,
    Bits,
    Cells,
    Passes,
    Rng,
    Surface,
    make_surface,
)
from unshuffle.layout._problem import (
    ADDING,
    WIDEST_SETTLING,
    Layout,
    LayoutProblem,
    kernel_features,
    leading_components,
    unit_scale,
)

Groups = tuple[Cells, Cells]  # cells of one group after another, and where each starts
Report = Callable[[str, float, Callable[[], float]], None]

WIDEST = 0.375  # of the longer side
NARROWEST_SWAPS = 0.8
NARROWEST_GROUPS = 1.0
# Heat and least raises, as shares of the typical gain, at the widest and at the narrowest.
HEAT = (0.2, 0.04)
RAISE = (0.3, 0.05)
# Sides of the tiles that groups are drawn from, in bandwidths, and at least, in cells. On large
# boards the field is smooth: at 512 x 512, 16 cells instead of 8 take twice as long and bring
# neighbors 2 % closer.
SIDE = 6.0
LEAST_SIDE, LEAST_SIDE_LARGE, LARGE = 16, 8, 160
GROUPS_FROM = 12.0  # bandwidth below which assignments replace swaps
SMALL = 512
# With so few features, exchanges after swaps alone gain almost nothing: .0004 of quality on
# colors, but .01 to .03 on photos and digits.
FEW_FEATURES = 8
N_STEPS = 3
REGION_SIDE = 96.0
GROUPS_PER_PIECE = 4
GROUP = 256  # cells in a group, at most
# Items that settle move only for a gain above this share of the typical one: on photos, a quarter
# of them instead of three quarters, for a layout as good.
STAY = 0.2
# Share of the mean of all items in an average, for cells with almost no items around them.
_FAINT = 1e-3


@dataclass
class Board:
    """Items on the cells of a surface, with their features.

    The benefit of an item in a cell is the product of its planes and the field there: z.g for
    features z and field g. If some cells are empty, one more plane makes it z.g - |g|^2 / 2 for
    an item and 0 for an empty cell, which amounts to a squared distance: cells stay empty where
    no item fits well.
    """

    surface: Surface
    features: Planes  # (n_items, n_features), rows of about length 1
    bits: Bits  # (n_planes + 1, n_cells): planes as bits, last the item of each cell
    free: Bits  # all bits set where a cell may change; empty if all may
    weights: Planes | None  # weight of each cell in averages; None is 1 for all
    rng: Rng
    workers: Workers
    settles: bool  # whether the items begin in a layout that is to change little

    def __post_init__(self) -> None:
        self.planes: Planes = self.bits[:-1].view(np.float32)
        self.items = self.bits[-1]  # -1 where a cell is empty
        self.n_features = self.features.shape[1]
        self.has_empty = len(self.bits) > self.n_features + 1

    @classmethod
    def start(
        cls, problem: LayoutProblem, features: Planes, rng: Rng, workers: Workers
    ) -> "Board":
        """Items where the problem has them, or in random order around the frozen ones."""
        surface, frozen = make_surface(problem.cells), problem.frozen
        n_items, n_features = features.shape
        has_empty = n_items < surface.n_cells
        free = problem.cells.cells.flatten()
        free[frozen[:, 1]] = False
        if problem.start is not None:
            items = problem.start.astype(np.int32)
        else:
            moving = np.delete(np.arange(n_items), frozen[:, 0])
            items = np.full(surface.n_cells, -1, dtype=np.int32)
            items[frozen[:, 1]] = frozen[:, 0]
            items[rng.permutation(np.flatnonzero(free))[: moving.size]] = rng.permutation(moving)
        bits = np.zeros((n_features + has_empty + 1, surface.n_cells), dtype=np.int32)
        weights = None
        if len(frozen):
            weights = np.ones(surface.n_cells, dtype=np.float32)
            weights[frozen[:, 1]] = problem.frozen_weight()
        locks = np.where(free, np.int32(-1), np.int32(0))[: 0 if free.all() else None]
        settles = problem.start is not None
        board = cls(surface, features, bits, locks, weights, rng, workers, settles)
        board.place(items)
        if has_empty:
            board.planes[n_features, items >= 0] = 1.0
        return board

    def place(self, items: Bits) -> None:
        """Put these items into the cells, -1 for none."""
        held = items >= 0
        self.items[:] = items
        self.planes[: self.n_features, held] = self.features[items[held]].T

    def agreement(self, field: Planes) -> float:
        """Mean product of the items' features and the field where they are."""
        held = self.items >= 0
        both = self.planes[: self.n_features, held] * field[: self.n_features, held]
        return float(both.sum(dtype=np.float64) / max(int(held.sum()), 1))

    def field(self, bandwidth: float) -> Planes:
        """Average of the items around each cell."""
        planes = self.planes
        if self.weights is not None:
            planes = planes * self.weights
        field = self.surface.average(planes, bandwidth, self.workers)
        if self.has_empty:
            present = field[-1] + np.float32(_FAINT)
            field[:-1] /= present
            np.einsum("ij,ij->j", field[:-1], field[:-1], out=field[-1])
            field[-1] *= np.float32(-0.5)
        elif self.weights is not None:
            field /= self.surface.average(self.weights[np.newaxis], bandwidth, self.workers)
        return field

    def typical_gain(self, field: Planes, bandwidth: float) -> float:
        """Scale of the gains of exchanges: the unit of heat and of least raises."""
        return self.surface.typical_gain(
            self.planes, field, self.n_features, self.items, bandwidth
        )


@dataclass(frozen=True)
class Schedule:
    """Amount of work."""

    n_features: int  # principal components that items are compared by
    swap_widths: int  # widths of swaps for each factor of e in width; more cool more slowly
    least_widths: int  # widths of swaps, at least
    n_passes: int  # passes at each width
    n_averages: int = 1  # averages at each width; more keep the field closer to the items
    group_widths: int = 0  # widths of assignments in groups; 0 swaps to the end
    n_sweeps: int = 0  # sweeps of exchanges between near cells at the end
    n_tries: int = 10  # exchanges tried for each cell in a sweep

    def ends_with_exchanges(self, board: Board) -> bool:
        """Whether exchanges between near cells pay."""
        pays = board.n_features > FEW_FEATURES or board.surface.n_cells < SMALL
        return self.n_sweeps > 0 and (self.group_widths > 0 or pays)

    def shares(self, board: Board) -> tuple[float, float, float]:
        """Rough shares of swaps, assignments and exchanges in the running time."""
        swaps, groups = 0.05 * self.least_widths * self.n_passes / 40, 0.5 * self.group_widths
        sweeps = 0.3 * self.n_sweeps * self.ends_with_exchanges(board)
        total = swaps + groups + sweeps
        return swaps / total, groups / total, sweeps / total


SCHEDULES = {
    "fast": Schedule(16, 10, 12, 40, n_sweeps=2, n_tries=6),
    "balanced": Schedule(32, 12, 20, 40, group_widths=16, n_sweeps=3),
    "best": Schedule(48, 40, 60, 80, 2, group_widths=150, n_sweeps=8),
}


def solve_annealed(
    problem: LayoutProblem, quality: str, search: Search[Layout], *, share: float = 1.0
) -> Layout:
    """Lay out the items by annealing, as the given share of all the work."""
    schedule = SCHEDULES[quality]
    random = check_random_state(problem.random_state)
    vectors = problem.items
    if problem.kernel != "linear":
        vectors = kernel_features(vectors, problem.kernel, problem.gamma, random)
    features = unit_scale(leading_components(vectors, schedule.n_features, random))
    rng = np.random.default_rng(random.randint(2**31))

    def report(stage: str, fraction: float, agreement: Callable[[], float]) -> None:
        layout = Layout(board.items.copy(), vectors)
        search.offer(layout, rank=(0, search.iteration + 1))
        if search.callback is None:
            search.iteration += 1
        else:
            search.step(agreement(), layout.cells, stage=stage, fraction=share * fraction)

    with Workers(problem.n_jobs) as workers, one_blas_thread():
        adding = problem.adding()
        if adding is not None:
            board = Board.start(adding, features, rng, workers)
            search.offer(Layout(board.items.copy(), vectors), rank=(0, 0))
            anneal(board, schedule, _part(report, 0.0, ADDING))
            problem = replace(problem, start=board.items)
        board = Board.start(problem, features, rng, workers)
        search.offer(Layout(board.items.copy(), vectors), rank=(0, search.iteration))
        anneal(board, schedule, _part(report, 0.0 if adding is None else ADDING, 1.0))
    return Layout(board.items, vectors)


def anneal(board: Board, schedule: Schedule, report: Report) -> None:
    """Move the items of a board so that similar ones come side by side.

    After each step, `report` receives the stage, the share of the work done and a function that
    measures how well the items agree with their surroundings. Where items settle, only the narrow
    steps at the end are taken.
    """
    n_movable = np.count_nonzero(board.free) if board.free.size else board.surface.n_cells
    if n_movable < 2:
        field = board.field(NARROWEST_GROUPS)
        report("swapping", 1.0, partial(board.agreement, field))
        return
    widest = max(WIDEST * board.surface.extent, NARROWEST_GROUPS)
    turn = NARROWEST_SWAPS if schedule.group_widths == 0 else min(GROUPS_FROM, widest)
    ends = np.cumsum(schedule.shares(board))
    n_widths = round(schedule.swap_widths * np.log(widest / turn))
    widths = _geometric(widest, turn, max(n_widths, schedule.least_widths))
    if not (board.settles and schedule.group_widths):
        _swap(board, _cooling(board, widths, HEAT), schedule, _part(report, 0.0, ends[0]))
    if schedule.group_widths:
        widths = _geometric(turn, NARROWEST_GROUPS, schedule.group_widths)
        _reorder(board, _cooling(board, widths, RAISE), _part(report, ends[0], ends[1]))
    if schedule.ends_with_exchanges(board):
        _exchange(board, schedule, _part(report, ends[1], 1.0))


def _part(report: Report, first: float, last: float) -> Report:
    """Report of work that is a part of all work."""
    return lambda stage, done, agreement: report(stage, first + done * (last - first), agreement)


def _geometric(first: float, last: float, n: int) -> Floats:
    """Geometric sequence; np.geomspace takes ten times as long."""
    return np.exp(np.linspace(np.log(first), np.log(last), n))


def _cooling(board: Board, widths: Floats, ends: tuple[float, float]) -> Floats:
    """Width and heat, or least raise, of each step; only the narrow ones where items settle."""
    steps = np.stack([widths, _geometric(*ends, len(widths))], axis=1)
    return steps[widths <= WIDEST_SETTLING] if board.settles else steps


def _swap(board: Board, steps: Floats, schedule: Schedule, report: Report) -> None:
    """Swap items far apart at first, then ever nearer."""
    n_noise = min(board.surface.n_cells, NOISE_CELLS) + NOISE_OFFSETS
    noise = board.rng.logistic(size=n_noise).astype(np.float32)
    # On small boards, passes cost almost nothing and chance matters more.
    more = max(1.0, (SMALL / board.surface.n_cells) ** 0.6)
    n_passes = -(-round(more * schedule.n_passes) // schedule.n_averages)
    # An item that moves into an empty cell would count its own share as a gain.
    n_features = 0 if board.has_empty else board.n_features
    for step, (width, heat) in enumerate(steps):
        # Noise is added to gains, so that its mean is a threshold.
        biased = noise - np.float32(STAY / heat) if board.settles else noise
        for _ in range(schedule.n_averages):
            field = board.field(width)
            hot = heat * board.typical_gain(field, width)
            passes = Passes(width, hot, n_passes, biased, board.free, n_features)
            board.surface.swap(board.bits, field, passes, board.rng, board.workers)
        report("swapping", (step + 1) / len(steps), partial(board.agreement, field))


def _reorder(board: Board, steps: Floats, report: Report) -> None:
    """Reassign items within groups of cells that lie close together."""
    prices = np.zeros(len(board.features) + 1)
    movable = np.flatnonzero(board.free) if board.free.size else None
    least_side = LEAST_SIDE if board.surface.extent <= LARGE else LEAST_SIDE_LARGE
    for step, (width, share) in enumerate(steps):
        field = board.field(width)
        typical = board.typical_gain(field, width)
        # Equal items have no scale, but the raise must be above zero.
        least = share * typical or 1e-6
        stay = STAY * typical if board.settles else 0.0
        side = max(least_side, SIDE * width)
        groups = draw_groups(board.surface, side, movable, board.rng)
        assign_all(board.bits, field, groups, prices, least, board.workers, stay=stay)
        report("assigning", (step + 1) / len(steps), partial(board.agreement, field))


def assign_all(
    bits: Bits, field: Planes, groups: Groups, prices: Floats, raise_by: float, workers: Workers,
    *, stay: float = 0.0,
) -> None:  # fmt: skip
    """Assign the items of each group to its cells, some groups to a thread."""
    cells, starts = groups
    board = bits.reshape(-1)
    flat = board, board.view(np.float32), field.reshape(-1), bits.shape[1], cells
    pieces = [
        (*flat, starts[k : k + GROUPS_PER_PIECE + 1], prices, raise_by, stay)
        for k in range(0, len(starts) - 1, GROUPS_PER_PIECE)
    ]
    workers.each(group_loops.assign_groups, pieces)


def draw_groups(
    surface: Surface, side: float, movable: NDArray[np.intp] | None, rng: Rng
) -> Groups:
    """Random groups of at most GROUP cells of the same tile: cells, and starts of the groups."""
    tiles = surface.tiles(side, rng)
    if movable is not None:
        tiles = tiles[movable]
    shuffled = rng.permutation(len(tiles))
    order = shuffled[np.argsort(tiles[shuffled], kind="stable")]
    sizes = np.bincount(tiles)
    sizes = sizes[sizes > 0]
    begins = sizes.cumsum() - sizes
    if sizes.max(initial=0) > GROUP:  # split the tile into groups of equal size
        n_groups = -(-sizes // GROUP)
        tile = np.repeat(np.arange(len(sizes)), n_groups)
        number = np.arange(len(tile)) - np.repeat(np.cumsum(n_groups) - n_groups, n_groups)
        begins = begins[tile] + number * sizes[tile] // n_groups[tile]
    cells = order if movable is None else movable[order]
    return cells.astype(np.int64), np.append(begins, len(order)).astype(np.int64)


def _exchange(board: Board, schedule: Schedule, report: Report) -> None:
    """Exchange items of near cells where that brings neighbors closer."""
    neighbors, weights = board.surface.neighbors()
    items = board.items.copy()
    fixed = items < 0
    if board.free.size:
        fixed |= board.free == 0
    for sweep in range(schedule.n_sweeps):
        regions = _regions(board.surface, neighbors, board.rng)
        order = np.argsort(regions, kind="stable")
        bounds = np.searchsorted(regions[order], np.arange(regions.max() + 2))
        regions[fixed] = -1
        pieces = [
            (items, board.features, neighbors, weights, regions, order[a:b], schedule.n_tries,
             N_STEPS, int(board.rng.integers(1, 2**31)))
            for a, b in pairwise(bounds)
        ]  # fmt: skip
        board.workers.each(group_loops.exchange_neighbors, pieces)
        board.place(items)
        report(
            "exchanging",
            (sweep + 1) / schedule.n_sweeps,
            lambda: board.agreement(board.field(NARROWEST_GROUPS)),
        )


def _regions(surface: Surface, neighbors: Bits, rng: Rng) -> Cells:
    """Regions that threads work on at the same time; -1 for cells beside another region."""
    if surface.n_cells <= PIECE:
        return np.zeros(surface.n_cells, dtype=np.int64)
    tiles = surface.tiles(REGION_SIDE, rng)
    regions = tiles.copy()
    for around in neighbors.T:
        regions[(around >= 0) & (tiles[around] != tiles)] = -1
    return regions
