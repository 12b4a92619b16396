"""Make a wall of 100,000 pictures and one of 600,000 colors, and open both in Chromium.

Then serve 300 and 10,000 of the pictures and 5,000 of four million pixels by `unshuffle serve`.

Pictures are crops, flips and tints of real ones. Memory is proportional: what processes share is
divided among them (PSS). The longest tasks are of the page's main thread, by the clock; how much
of one is work, and how long the thread waited for a core in all, tells what a busy machine added.
Linux only.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.pages import _pictures
from benchmarks.pages._command import folder_size, run
from benchmarks.pages._memory import Watch
from benchmarks.pages._served import Served, make_large, visit_served
from benchmarks.pages._tour import Step, visit

PARTS = ("make", "layout", "open", "colors", "serve", "serve-many", "serve-large")
N_PICTURES, N_COLORS = 100_000, 600_000
N_FEW, N_MANY, N_LARGE = 300, 10_000, 5_000  # that are served
GIBIBYTE = 2**30 / 1e6  # megabytes
WORD = "truck"  # one of the kinds in the table


@dataclass(frozen=True)
class Line:
    """One measurement, and the most that it may be."""

    name: str
    value: float | str
    unit: str = ""
    limit: float | None = None
    more: str = ""

    @property
    def met(self) -> bool | None:
        """Whether it is within its limit; None without one."""
        return None if self.limit is None else float(self.value) <= self.limit


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    # Stopped from outside, it ends the command or the browser first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options.folder.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 120)
    measured: dict[str, list[Line]] = {}
    work: dict[str, Callable[[argparse.Namespace], Iterator[Line]]] = {
        "make": make,
        "layout": layout,
        "open": open_wall,
        "colors": colors,
        "serve": serve_few,
        "serve-many": serve_many,
        "serve-large": serve_large,
    }
    for part in options.only or PARTS:
        measured[part] = list(work[part](options))
        console.print(table(part, measured[part]))
    if options.json is not None:
        report = {part: [asdict(line) for line in lines] for part, lines in measured.items()}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    missed = [line.name for lines in measured.values() for line in lines if line.met is False]
    console.print(f"Missed: {', '.join(missed)}." if missed else "Every limit is met.")
    return 0


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks pages", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="default: all, in this order")
    parser.add_argument("--n", type=int, default=N_PICTURES, help="how many pictures")
    parser.add_argument("--n-colors", type=int, default=N_COLORS, help="how many colors")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "unshuffle-pages",
        help="where pictures and walls are made, and stay; default: %(default)s",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    return parser.parse_args(arguments)


def make(options: argparse.Namespace) -> Iterator[Line]:
    """Pictures and their table."""
    data = data_folder()
    start = time.perf_counter()
    n_written, n_damaged = _pictures.make(options.folder / "pictures", options.n, data=data)
    _pictures.write_table(options.folder / "table.csv", options.n, data=data)
    yield Line("written now", f"{n_written:,}")
    yield Line("damaged among all", f"{n_damaged:,}")
    yield Line("time", time.perf_counter() - start, "s")
    yield Line("size", folder_size(options.folder / "pictures")[1], "MB")


def data_folder() -> Path:
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("UNSHUFFLE_DATA", beside))


def layout(options: argparse.Namespace) -> Iterator[Line]:
    """The command, on a cache that holds nothing."""
    folder, cache = options.folder, options.folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    shutil.rmtree(folder / "wall", ignore_errors=True)
    done = run(
        [
            *("layout", str(folder / "pictures"), "-o", str(folder / "wall")),
            *("--data", str(folder / "table.csv")),
        ],
        {"XDG_CACHE_HOME": str(cache)},
    )
    print(*done.said, sep="\n")
    for stage, seconds in done.stages.items():
        yield Line(stage.lower(), seconds, "s")
    yield Line("all", done.seconds, "s")
    yield Line("peak memory of all its processes", done.megabytes, "MB", 2 * GIBIBYTE)
    n_files, megabytes = folder_size(folder / "wall")
    yield Line("files of the wall", f"{n_files:,}")
    yield Line("size of the wall", megabytes, "MB")


def open_wall(options: argparse.Namespace) -> Iterator[Line]:
    yield from visited(options.folder / "wall" / "index.html", word=WORD)


def colors(options: argparse.Namespace) -> Iterator[Line]:
    """A page of plain colors, sorted, and the same tour."""
    import unshuffle
    from unshuffle.images import write_page

    folder = options.folder / "colors"
    shutil.rmtree(folder, ignore_errors=True)
    plain = np.random.default_rng(0).integers(256, size=(options.n_colors, 3), dtype=np.uint8)
    names = [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in plain.tolist()]
    with Watch(lambda: [os.getpid()]) as watch:
        start = time.perf_counter()
        grid = unshuffle.GridLayout(quality="fast", random_state=0).fit(plain / 255.0).grid_
        sorted_at = time.perf_counter()
        write_page(folder, plain[:, None, None, :], grid, names, title="Colors", noun="color")
        written_at = time.perf_counter()
    yield Line("sorting", sorted_at - start, "s")
    yield Line("writing", written_at - sorted_at, "s")
    yield Line("peak memory", watch.peak, "MB")
    n_files, megabytes = folder_size(folder)
    yield Line("files of the page", f"{n_files:,}")
    yield Line("size of the page", megabytes, "MB")
    yield from visited(folder / "index.html", word="#ff")


def visited(page: Path, *, word: str) -> Iterator[Line]:
    """The tour of one page, first from the disk, then from the memory of the system."""
    picture = page.parent.with_name(f"{page.parent.name}.png")
    seen = visit(page, word=word, picture=picture)
    again = visit(page, word=word, evict=False, tour=False)
    drawn = f"{100 * seen.drawn:.0f} % of it drawn, see {picture.name}"
    yield Line("first screen, from disk", seen.ready, "s", 2.0, drawn)
    yield Line("first screen, opened again", again.ready, "s", 2.0)
    yield Line("names and columns, from disk", seen.loaded, "s")
    yield Line("names and columns, opened again", again.loaded, "s")
    yield Line("longest task while loading", seen.longest_at_start, "ms")
    yield Line("count", seen.count)
    yield Line(f"search for {word!r}", seen.found)
    yield from steps(seen.steps)
    yield Line("longest the page sees; 0: under 50", seen.observed, "ms")
    yield Line("memory of the tab at rest", seen.at_rest, "MB", 500.0)
    words = f"{seen.peak_whole:.0f} MB with all it shares (RSS)"
    yield Line("peak memory of the tab", seen.peak, "MB", 500.0, words)
    yield Line("peak memory of the whole browser", seen.browser, "MB")
    yield Line("live JavaScript objects", seen.heap, "MB")


def steps(taken: list[Step]) -> Iterator[Line]:
    for step in taken:
        words = f"{step.longest_work:.0f} ms of work, {step.rate:.0f} frames/s, "
        words += f"{step.megabytes:.0f} MB, waited {step.waited:.1f} s"
        yield Line(f"{step.name}: longest task", step.longest, "ms", 100.0, words)


def serve_few(options: argparse.Namespace) -> Iterator[Line]:
    """Photos as they are first dropped, and opened again."""
    folder = options.folder / "few"
    _pictures.make(folder, N_FEW, data=data_folder())
    yield from served(visit_served(folder, tour=True), first=1.0, settled=3.0)
    again = visit_served(folder, reload=True)
    yield Line("opened again: first thumbnail", again.first, "s", 1.0)
    yield Line("opened again: the wall", again.settled, "s", 3.0)


def serve_many(options: argparse.Namespace) -> Iterator[Line]:
    folder = options.folder / "many"
    _pictures.make(folder, N_MANY, data=data_folder())
    yield from served(visit_served(folder, tour=True))


def serve_large(options: argparse.Namespace) -> Iterator[Line]:
    folder = options.folder / "large"
    make_large(folder, N_LARGE, data=data_folder())
    yield from served(visit_served(folder))


def served(seen: Served, *, first: float = 1.0, settled: float | None = None) -> Iterator[Line]:
    yield Line("from the command to its address", seen.listening, "s")
    yield Line("first thumbnail after opening", seen.first, "s", first)
    yield Line("arranged after opening", seen.settled, "s", settled)
    yield Line("arranged after the command", seen.read, "s")
    yield from steps(seen.steps)
    yield Line("peak memory of the server and its readers", seen.server, "MB")
    yield Line("peak memory of the tab", seen.tab, "MB")


def table(title: str, lines: list[Line]) -> Table:
    result = Table(title=title)
    for heading in ("measured", "value", "limit", "met", ""):
        result.add_column(heading, justify="right" if heading in ("value", "limit") else "left")
    for line in lines:
        value = line.value if isinstance(line.value, str) else in_digits(line.value)
        result.add_row(
            line.name,
            f"{value} {line.unit}".strip(),
            "" if line.limit is None else f"{in_digits(line.limit)} {line.unit}",
            {None: "", True: "yes", False: "NO"}[line.met],
            line.more,
        )
    return result


def in_digits(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
