"""Print tables of large matchings.

Medians of five draws; the worst draw is named. The draws are made with NumPy unless --folder has
files of the same names (see `benchmarks.scale._problems`). Every fit runs in its own process.
`python -m benchmarks matching` compares with other libraries and draws how time and memory grow.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.scale._problems import REAL, named
from benchmarks.scale._records import Bench, Record

N_DRAWS = 5
CLOUDS = (("cloud", 2000), ("cloud", 5000), ("cloud", 16384), ("cloud", 65536), ("ball", 16384))
NETWORKS = (("even", 0.1), ("even", 0.3), ("tree", 0.1))
N_NETWORK = 10_000
N_FROZEN, FAILS = 10, 0.99  # known pairs, given where fewer clusters are right
LARGEST = 65536

Row = list[str]


def main() -> int:
    options = parsed()
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    limits = {"seconds": options.seconds, "megabytes": options.megabytes}
    bench = Bench(
        folder=options.folder,
        real=Path(os.environ.get("UNSHUFFLE_DATA", beside)),
        file=options.records,
        jobs=options.jobs,
        **{name: value for name, value in limits.items() if value},
    )
    seeds = options.draws
    tables: dict[str, Callable[[], Iterator[str]]] = {
        "cloud": lambda: cloud_table(bench, seeds, options.largest),
        "networks": lambda: network_table(bench, seeds, min(N_NETWORK, options.largest)),
        "switch": lambda: switch_table(bench, options.largest),
    }
    for name in options.names or tables:
        for line in tables[name]():
            print(line, flush=True)
        print()
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    names = ["cloud", "networks", "switch"]
    parser.add_argument("names", nargs="*", choices=[*names, []], help="default: all")
    parser.add_argument("--draws", type=int, nargs="+", default=list(range(N_DRAWS)))
    parser.add_argument("--largest", type=int, default=LARGEST, help="leave out more items")
    parser.add_argument("--folder", type=Path, help="draws to prefer to new ones (.npz)")
    parser.add_argument(
        "--records", type=Path, help="file to add each fit to; those it has are not run again"
    )
    parser.add_argument("--jobs", type=int, help="threads of our method; default: as the library")
    parser.add_argument("--seconds", type=float, help="limit of one fit")
    parser.add_argument("--megabytes", type=float, help="limit of one process")
    return parser.parse_args()


def cloud_table(bench: Bench, seeds: list[int], largest: int) -> Iterator[str]:
    """The default call on rotated points."""
    yield from header(
        "data", "items", "right", "oracle", "rank error", "seconds", "GB", "believed", "warned"
    )
    for kind, n_items in CLOUDS:
        if n_items > largest:
            continue
        names = [named(kind, n_items, 0.1, seed) for seed in seeds]
        found = [bench.fit(name, "default") for name in names]
        oracle = [bench.ceiling(name) for name in names]
        yield line(
            kind,
            f"{n_items:,}",
            spread(found, "right"),
            share(median(oracle, "right")),
            share(median(found, "rank_error")),
            *costs(found),
            share(median(found, "believed")),
            warnings_of(found),
        )


def network_table(bench: Bench, seeds: list[int], n_items: int) -> Iterator[str]:
    """The default call on two views of clusters, and with known pairs where it fails."""
    yield from header(
        *("data", "items", "right", "oracle / kept", "right - kept", "clusters", "rank error"),
        *("seconds", "GB", "believed", "warned"),
    )
    failures: list[Record] = []
    for kind, noise in NETWORKS:
        names = [named(kind, n_items, noise, seed) for seed in seeds]
        found = [bench.fit(name, "default") for name in names]
        ceilings = [bench.ceiling(name) for name in names]
        yield line(f"{kind}, noise {noise}, medians", *network_cells(found, ceilings, n_items))
        for seed, one, ceiling in zip(seeds, found, ceilings, strict=True):
            yield line(f"... draw {seed}", *network_cells([one], [ceiling], n_items))
        if (kind, noise) != ("even", 0.1):
            failures += [one for one in found if (one.clusters or 0.0) < FAILS]
    for failure in failures:
        kind, _, noise, seed = failure.problem.split("_")
        helped = bench.fit(failure.problem, "default", N_FROZEN)
        ceiling = bench.ceiling(failure.problem)
        title = f"{kind}, noise {noise}, draw {seed}, {N_FROZEN} known pairs"
        yield line(title, *network_cells([helped], [ceiling], n_items))


def network_cells(found: list[Record], ceilings: list[Record], n_items: int) -> Row:
    pairs = zip(found, ceilings, strict=True)
    behind = [a.right - b.kept for a, b in pairs if a.right is not None and b.kept is not None]
    return [
        f"{n_items:,}",
        spread(found, "right"),
        f"{share(median(ceilings, 'right'))} / {share(median(ceilings, 'kept'))}",
        f"{np.median(behind):+.4f}" if behind else "-",
        spread(found, "clusters"),
        share(median(found, "rank_error")),
        *costs(found),
        share(median(found, "believed")),
        warnings_of(found),
    ]


def switch_table(bench: Bench, largest: int) -> Iterator[str]:
    """The dense search beside the low-rank one where both run."""
    yield from header(
        *("data", "items", "right, refined", "low rank", "rank error, refined", "low rank"),
        *("seconds, refined", "low rank", "GB, refined", "low rank"),
    )
    for name in (*REAL, named("cloud", 2000, 0.1, 0)):
        n_items = bench.problem(name).n_items
        if n_items > largest:
            continue
        both = [bench.fit(name, method) for method in ("refined", "low_rank")]
        seconds, gigabytes = zip(*(costs([one]) for one in both), strict=True)
        yield line(
            name.replace("_", " "),
            f"{n_items:,}",
            *(spread([one], "right") for one in both),
            *(share(median([one], "rank_error")) for one in both),
            *seconds,
            *gigabytes,
        )


def header(*titles: str) -> Iterator[str]:
    yield line(*titles)
    yield "|" + "---|" * len(titles)


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def median(records: Iterable[Record], name: str) -> float | None:
    values = [value for one in records if (value := getattr(one, name)) is not None]
    return float(np.median(values)) if values else None


def spread(records: list[Record], name: str) -> str:
    """Median, and the worst draw if there are several; why there is none if all failed."""
    measured = [one for one in records if getattr(one, name) is not None]
    if not measured:
        return records[0].failed or "-"
    worst = min(measured, key=lambda one: getattr(one, name))
    text = share(median(measured, name))
    if len(records) > 1:
        text += f" (worst {share(getattr(worst, name))}, draw {worst.problem.split('_')[-1]})"
    failed = len(records) - len(measured)
    return text + (f", {failed} failed" if failed else "")


def share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def costs(records: list[Record]) -> Row:
    """Median seconds and gigabytes."""
    seconds, megabytes = median(records, "seconds"), median(records, "megabytes")
    return [
        "-" if seconds is None else f"{seconds:.3g}",
        "-" if megabytes is None else f"{megabytes / 1000:.2f}",
    ]


def warnings_of(records: list[Record]) -> str:
    """How many fits issued a warning."""
    return f"{sum('DoubtWarning' in one.warned for one in records)} of {len(records)}"


if __name__ == "__main__":
    sys.exit(main())
