"""The climb: from wide averages to narrow ones, by swaps, then assignments, then exchanges."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from unshuffle._parallel import Workers
from unshuffle.layout import _group_loops
from unshuffle.layout._board import Board
from unshuffle.layout._surfaces import GROUP, NOISE_CELLS, PIECE, Passes, Planes, Surface
from unshuffle.layout._swap_loops import NOISE_OFFSETS

Report = Callable[[str, float, Callable[[], float]], None]

WIDEST = 0.375  # of the longer side
NARROWEST_SWAPS = 0.8
NARROWEST_GROUPS = 1.0
# Heat and least raises, as shares of the typical gain, at the widest and at the narrowest.
HEAT = (0.2, 0.04)
RAISE = (0.3, 0.05)
# Tiles that groups are drawn from have sides of so many bandwidths, and at least so many cells.
# On a large board the field is smooth over many cells, and auctions over more than a few of
# them take long for little: at 512 x 512, 16 instead of 8 takes twice as long and brings
# neighbours 2 % closer.
SIDE = 6.0
LEAST_SIDE, LEAST_SIDE_LARGE, LARGE = 16, 8, 160
GROUPS_FROM = 12.0  # bandwidth below which assignments take over from swaps
SMALL = 1024
# Up to so many features, averages find the neighbours as well as their distances do: after
# swaps alone, exchanges gain .0004 of quality on colours and .01 to .03 on photos and digits. On
# small boards they cost nothing.
FEW_FEATURES = 8
N_STEPS = 3
REGION_SIDE = 96.0
GROUPS_PER_PIECE = 4


@dataclass(frozen=True)
class Schedule:
    """How much work is done.

    Attributes
    ----------
    n_features : int
        Principal components that items are compared by while they move.
    swap_widths : int
        Widths at which items are swapped, for each factor of e between the widest and the
        narrowest; more cool more slowly.
    least_widths : int
        Such widths at least.
    n_passes : int
        Passes at each of them.
    n_averages : int
        Averages at each of them; more keep the field closer to the items.
    group_widths : int
        Widths at which groups are reordered by assignment; 0 goes on with swaps to the end.
    n_sweeps : int
        Sweeps of exchanges between near cells at the end.
    n_tries : int
        Exchanges tried for each cell in a sweep.
    """

    n_features: int
    swap_widths: int
    least_widths: int
    n_passes: int
    n_averages: int = 1
    group_widths: int = 0
    n_sweeps: int = 0
    n_tries: int = 10

    def exchanges(self, board: Board) -> bool:
        """Whether exchanges between near cells come at the end."""
        pays = board.n_features > FEW_FEATURES or board.surface.n_cells < SMALL
        return self.n_sweeps > 0 and (self.group_widths > 0 or pays)

    def shares(self, board: Board) -> tuple[float, float, float]:
        """Rough shares of swaps, assignments and exchanges in the time it takes."""
        times = (
            0.05 * self.least_widths * self.n_passes / 40,
            0.5 * self.group_widths,
            0.3 * self.n_sweeps * self.exchanges(board),
        )
        return times[0] / sum(times), times[1] / sum(times), times[2] / sum(times)


SCHEDULES = {
    "fast": Schedule(16, 10, 12, 40, n_sweeps=2, n_tries=6),
    "balanced": Schedule(32, 12, 20, 40, group_widths=16, n_sweeps=3),
    "best": Schedule(48, 40, 60, 80, 2, group_widths=150, n_sweeps=8),
}


def anneal(
    board: Board,
    features: Planes,
    schedule: Schedule,
    *,
    rng: np.random.Generator,
    workers: Workers,
    report: Report,
) -> None:
    """Move the items of a board so that like comes beside like.

    Parameters
    ----------
    board : Board
        With items in any order; changed. At any moment between two reports it holds each item
        once.
    features : float32 array of shape (n_items, n_features)
        What neighbours are compared by in the end.
    schedule : Schedule
        How much work is done.
    rng : Generator
        For shifts, tiles and noise.
    workers : Workers
        The result does not depend on how many.
    report : callable
        Called after each step with what is being done, the share of the work that is done, and a
        function that tells how well the items agree with what is around them.
    """
    if board.n_movable < 2:
        field = board.field(NARROWEST_GROUPS, workers)
        report("swapping", 1.0, partial(board.agreement, field))
        return
    widest = max(WIDEST * board.surface.extent, NARROWEST_GROUPS)
    turn = NARROWEST_SWAPS if schedule.group_widths == 0 else min(GROUPS_FROM, widest)
    shares = schedule.shares(board)
    parts = np.cumsum([0.0, *shares])

    def part(number: int) -> Report:
        def report_part(stage: str, done: float, agreement: Callable[[], float]) -> None:
            report(stage, parts[number] + done * shares[number], agreement)

        return report_part

    n_widths = round(schedule.swap_widths * np.log(widest / turn)) if widest > turn else 0
    widths = _widths(widest, turn, max(n_widths, schedule.least_widths))
    _swap(board, widths, schedule, rng, workers, part(0))
    if schedule.group_widths:
        widths = _widths(turn, NARROWEST_GROUPS, schedule.group_widths)
        _reorder(board, widths, len(features), rng, workers, part(1))
    if schedule.exchanges(board):
        _polish(board, features, schedule, rng, workers, part(2))


def _widths(first: float, last: float, n: int) -> NDArray[np.float64]:
    return np.geomspace(first, min(first, last), n)


def _swap(
    board: Board,
    widths: NDArray[np.float64],
    schedule: Schedule,
    rng: np.random.Generator,
    workers: Workers,
    report: Report,
) -> None:
    n_noise = min(board.surface.n_cells, NOISE_CELLS) + NOISE_OFFSETS
    noise = rng.logistic(size=n_noise).astype(np.float32)
    heats = np.geomspace(*HEAT, len(widths))
    # On small boards passes cost next to nothing, and chance matters more.
    more = max(1.0, np.sqrt(SMALL / board.surface.n_cells))
    n_passes = -(-round(more * schedule.n_passes) // schedule.n_averages)
    for step, (width, heat) in enumerate(zip(widths, heats, strict=True)):
        for _ in range(schedule.n_averages):
            field = board.field(width, workers)
            hot = heat * board.typical_gain(field, width)
            board.surface.swap(
                board.bits,
                field,
                board.free,
                # An item that moves into an empty cell would take its own share for a gain.
                0 if board.has_empty else board.n_features,
                Passes(width, hot, n_passes, noise),
                rng,
                workers,
            )
        report("swapping", (step + 1) / len(widths), partial(board.agreement, field))


def _reorder(
    board: Board,
    widths: NDArray[np.float64],
    n_items: int,
    rng: np.random.Generator,
    workers: Workers,
    report: Report,
) -> None:
    prices = np.zeros(n_items + 1)
    raises = np.geomspace(*RAISE, len(widths))
    movable = np.flatnonzero(board.free) if board.free.size else None
    least_side = LEAST_SIDE if board.surface.extent <= LARGE else LEAST_SIDE_LARGE
    for step, (width, share) in enumerate(zip(widths, raises, strict=True)):
        field = board.field(width, workers)
        # Equal items leave no scale; any raise will do then, but there must be one.
        least = share * board.typical_gain(field, width) or 1e-6
        cells, starts = draw_groups(board.surface, max(least_side, SIDE * width), movable, rng)
        assign_all(board.bits, field, cells, starts, prices, least, workers)
        report("assigning", (step + 1) / len(widths), partial(board.agreement, field))


def assign_all(
    bits: NDArray[np.int32],
    field: Planes,
    cells: NDArray[np.int64],
    starts: NDArray[np.int64],
    prices: NDArray[np.float64],
    raise_by: float,
    workers: Workers,
) -> None:
    """Give each group of cells the best order of its items, some groups to a thread."""
    flat = bits.reshape(-1), field.reshape(-1), bits.shape[1], cells
    pieces = [
        (*flat, starts[k : k + GROUPS_PER_PIECE + 1], prices, raise_by)
        for k in range(0, len(starts) - 1, GROUPS_PER_PIECE)
    ]
    workers.each(_group_loops.assign_groups, pieces)


def draw_groups(
    surface: Surface,
    side: float,
    movable: NDArray[np.intp] | None,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Random groups of at most GROUP cells from the same tile: cells, and where groups start."""
    tiles = surface.tiles(side, rng)
    if movable is not None:
        tiles = tiles[movable]
    shuffled = rng.permutation(len(tiles))
    order = shuffled[np.argsort(tiles[shuffled], kind="stable")]
    sizes = np.bincount(tiles)
    sizes = sizes[sizes > 0]
    # each tile in groups of equal size
    n_groups = -(-sizes // GROUP)
    tile = np.repeat(np.arange(len(sizes)), n_groups)
    number = np.arange(len(tile)) - np.repeat(np.cumsum(n_groups) - n_groups, n_groups)
    begins = (np.cumsum(sizes) - sizes)[tile]
    starts = np.append(begins + number * sizes[tile] // n_groups[tile], len(order))
    cells = order if movable is None else movable[order]
    return cells.astype(np.int64), starts.astype(np.int64)


def _polish(
    board: Board,
    features: Planes,
    schedule: Schedule,
    rng: np.random.Generator,
    workers: Workers,
    report: Report,
) -> None:
    neighbors, weights = board.surface.neighbors()
    items = board.items.copy()
    fixed = items < 0
    if board.free.size:
        fixed |= board.free == 0
    for sweep in range(schedule.n_sweeps):
        regions = _regions(board.surface, neighbors, rng)
        order = np.argsort(regions, kind="stable")
        bounds = np.searchsorted(regions[order], np.arange(regions.max() + 2))
        regions[fixed] = -1
        pieces = [
            (items, features, neighbors, weights, regions, order[a:b], schedule.n_tries, N_STEPS,
             int(rng.integers(1, 2**31)))
            for a, b in pairwise(bounds)
        ]  # fmt: skip
        workers.each(_group_loops.exchange_neighbors, pieces)
        board.place(items, features)
        report(
            "exchanging",
            (sweep + 1) / schedule.n_sweeps,
            lambda: board.agreement(board.field(NARROWEST_GROUPS, workers)),
        )


def _regions(
    surface: Surface, neighbors: NDArray[np.int32], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Regions that can be worked on at the same time: nobody reads what another writes.

    A cell with a neighbour in another region is in none, -1; the next draw has other borders.
    """
    if surface.n_cells <= PIECE:
        return np.zeros(surface.n_cells, dtype=np.int64)
    tiles = surface.tiles(REGION_SIDE, rng)
    regions = tiles.copy()
    for around in neighbors.T:
        regions[(around >= 0) & (tiles[around] != tiles)] = -1
    return regions
