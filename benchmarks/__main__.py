"""Print the benchmark tables and optionally write them as JSON."""

import argparse
import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._measure import Row

NAMES = (
    *("assignment", "matching", "layout", "growth", "alignment", "sweeps", "sets", "orbits"),
    "encoders",
)
PEERS = {"ot": "POT", "vc_flas": "FLAS", "pycpd": "pycpd", "torch": "PyTorch"}


def main() -> int:
    if sys.argv[1:2] == ["pages"]:
        from benchmarks.pages.__main__ import main as measure_pages

        return measure_pages(sys.argv[2:])
    options = parsed()
    try:
        from benchmarks import (
            alignment,
            assignment,
            encoders,
            growth,
            layout,
            matching,
            orbits,
            sets,
        )
    except ModuleNotFoundError as error:
        if error.name not in PEERS:
            raise
        print(
            f"The benchmarks compare with {PEERS[error.name]}, which is not installed. "
            "Run: pip install 'unshuffle[bench]'",
            file=sys.stderr,
        )
        return 2
    measured = {
        "assignment": (assignment.TOPIC, partial(assignment.rows, quick=options.quick), {}),
        "matching": (matching.TOPIC, partial(matching.rows, quick=options.quick), {}),
        "layout": (layout.TOPIC, partial(layout.rows, quick=options.quick), layout.FORMATS),
        "growth": (
            growth.TOPIC,
            partial(growth.rows, quick=options.quick, full=options.full),
            growth.FORMATS,
        ),
        "alignment": (
            alignment.TOPIC,
            partial(alignment.rows, quick=options.quick),
            alignment.FORMATS,
        ),
        "sweeps": (
            alignment.SWEEPS,
            partial(alignment.sweep_rows, quick=options.quick),
            alignment.SWEEP_FORMATS,
        ),
        "sets": (sets.TOPIC, partial(sets.rows, quick=options.quick), sets.FORMATS),
        "orbits": (orbits.TOPIC, partial(orbits.rows, quick=options.quick), orbits.FORMATS),
        "encoders": (
            encoders.TOPIC,
            partial(encoders.rows, quick=options.quick),
            encoders.FORMATS,
        ),
    }
    # files and pipes have no width; the widest row needs about 130 columns
    console = Console(width=None if sys.stdout.isatty() else 140)
    rows: list[Row] = []
    for name in options.names or NAMES:
        topic, measure, formats = measured[name]
        with console.status(f"{topic} ..."):
            found = list(measure())
        console.print(table(found, formats))
        rows += found
    if options.json is not None:
        options.json.write_text(json.dumps(report(rows), indent=2) + "\n")
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog="`python -m benchmarks pages --help`: large walls, and how they open in a browser.",
    )
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], help="default: all")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="smaller sizes: under two minutes")
    sizes.add_argument(
        "--full", action="store_true", help="a million items by every method: minutes longer"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    return parser.parse_args()


def table(rows: list[Row], formats: Mapping[str, str]) -> Table:
    """Table of the rows of one topic; the ratio is how many times faster than the peer."""
    result = Table(title=rows[0].topic)
    result.add_column("problem")
    result.add_column("peer")
    for name in ("ratio", "seconds", "peer's", *rows[0].details):
        result.add_column(name, justify="right")
    for row in rows:
        result.add_row(
            row.problem,
            row.peer,
            written(row.ratio, "" if row.ratio is None or row.ratio < 1 else ".1f"),
            written(row.seconds, ".3g"),
            written(row.peer_seconds, ".3g"),
            *(written(value, formats.get(name, "")) for name, value in row.details.items()),
        )
    return result


def written(value: float | int | str | None, specified: str = "") -> str:
    """Format as specified, else two digits if small and no decimals if large."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return format(value, specified or (".0f" if abs(value) >= 10 else ".2g"))


def report(rows: list[Row]) -> dict[str, object]:
    """Rows, and the Python version and processor they were measured with."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
    }


if __name__ == "__main__":
    sys.exit(main())
