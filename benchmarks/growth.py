"""Growth of time and memory of layouts with the number of items, compared with default FLAS.

The floor is a lower bound on the time of the same steps: the bytes that any implementation of the
schedule must read, divided by the rate at which all cores together copy data in their caches. A
pass of swaps reads the features of every item and of the field around it. An assignment reads
every benefit within a group. An attempted exchange reads the features around two cells.
"""

import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import numpy as np
from joblib import effective_n_jobs

from benchmarks._flas import Grid, Items, Method, compiled_layouts, flas, grid_layout, warm_up
from benchmarks._measure import PEAK, Row, timed, with_memory
from unshuffle import GridLayout
from unshuffle.layout import _anneal
from unshuffle.metrics import neighbor_distance

TOPIC = "Growth of layouts: random colors from 0 to 255"
FORMATS = {"ND": ".3f", "FLAS's ND": ".3f", "floor us": ".3f", "us/item": ".2f"}
SIDES = (32, 64, 128, 256, 512, 1024)
QUICK_SIDES = SIDES[:3]
# Above this side, only a full run measures "balanced" and FLAS, half a minute each.
LARGEST = 512
N_FEATURES = 3
NUMBER = 4  # bytes
NEIGHBORS = 8
CACHED = 2**18  # bytes that fit into the cache of any core


def rows(*, quick: bool, full: bool) -> Iterator[Row]:
    """One row for each size and quality."""
    methods = compiled_layouts(("fast", "balanced"))
    rate = copying_rate() * effective_n_jobs(-1)
    for side in QUICK_SIDES if quick else SIDES:
        X = draw(side)
        with_peer = full or side <= LARGEST
        peer = Measured(flas(), "FLAS", X) if with_peer else None
        ours = [
            Measured(method, quality, X)
            for quality, method in methods.items()
            if quality == "fast" or with_peer
        ]
        # memory needs extra runs: measure it after all times, which are taken close together
        for each in ours:
            yield against(peer, each, rate, memory=not quick)


class Measured:
    """One method on one draw of colors.

    Attributes
    ----------
    name : str
        A quality, or FLAS.
    side : int
        Rows and columns.
    seconds, distance : float
        Wall-clock time and neighbor distance.
    """

    def __init__(self, method: Method, name: str, X: Items) -> None:
        self.name = name
        self.side = round(len(X) ** 0.5)
        grid, self.seconds = run(method, X)
        self.distance = neighbor_distance(X, grid)


def run(method: Method, X: Items) -> tuple[Grid, float]:
    side = round(len(X) ** 0.5)
    return method(X, (side, side), 0, 3 if len(X) < 50_000 else 1)


def draw(side: int) -> Items:
    return np.random.default_rng(0).random((side * side, N_FEATURES), dtype=np.float32) * 255


def against(peer: Measured | None, ours: Measured, rate: float, *, memory: bool) -> Row:
    n_items = ours.side**2
    floor = bytes_per_item(ours.name, ours.side) * n_items / rate
    above, in_all = memory_in_child(ours.name, ours.side) if memory else (None, None)
    peer_above = memory_in_child(peer.name, peer.side)[0] if memory and peer else None
    return Row(
        TOPIC,
        f"{n_items:,}, {ours.name}",
        f"GridLayout, {ours.name}",
        ours.seconds,
        "FLAS" if peer else "not run",
        peer.seconds if peer else None,
        {
            "ND": ours.distance,
            "FLAS's ND": peer.distance if peer else None,
            "us/item": 1e6 * ours.seconds / n_items,
            "floor us": 1e6 * floor / n_items,
            "x floor": ours.seconds / floor,
            "MB": above,
            "in all": in_all,
            "FLAS's MB": peer_above,
        },
    )


def bytes_per_item(quality: str, side: int) -> float:
    """Bytes that the steps of a schedule must read per item."""
    schedule = _anneal.SCHEDULES[quality]
    with_groups = schedule.group_widths > 0
    n_groups, n_sweeps = schedule.group_widths, schedule.n_sweeps if with_groups else 0
    n_passes = (n_steps(quality, side) - n_groups - n_sweeps) * schedule.n_passes
    least_side = _anneal.LEAST_SIDE if side <= _anneal.LARGE else _anneal.LEAST_SIDE_LARGE
    return NUMBER * (
        n_passes * 2 * N_FEATURES
        + n_groups * min(_anneal.GROUP, least_side**2)
        + n_sweeps * schedule.n_tries * 2 * NEIGHBORS * N_FEATURES
    )


def n_steps(quality: str, side: int) -> int:
    """Steps of a layout, counted on a narrow one: only the longer side matters."""
    rows = SIDES[0]
    narrow = GridLayout((rows, side), quality=quality, random_state=0)
    return int(narrow.fit(draw(side)[: rows * side]).n_iter_)


def copying_rate() -> float:
    """Bytes per second that one core copies within its cache."""
    source, target = np.ones(CACHED // 2, np.uint8), np.empty(CACHED // 2, np.uint8)
    times = 200

    def copy() -> None:
        for _ in range(times):
            np.copyto(target, source)

    _, seconds = timed(copy, repeats=20)
    return times * source.size / seconds


@cache
def memory_in_child(name: str, side: int) -> tuple[float | None, float | None]:
    """Peak memory in megabytes, added by the layout and in total; None outside Linux.

    Runs in a separate process, because memory freed earlier would be reused.
    """
    if not PEAK.exists():
        return None, None
    command = [sys.executable, "-m", "benchmarks.growth", name, str(side)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    above, in_all = map(float, output.split())
    return above, in_all


def main(name: str, side: int) -> None:
    """Print the peak memory of one layout for `memory_in_child`."""
    method = flas() if name == "FLAS" else grid_layout(name)
    if name != "FLAS":
        # compile on a small layout: memory freed by a large one would be reused and not counted
        warm_up(name, side=12, n_features=N_FEATURES)
    X = draw(side)
    _, above, in_all = with_memory(lambda: method(X, (side, side), 0, 1))
    print(above, in_all)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
