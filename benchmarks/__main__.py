"""Print the tables, and write them as JSON where asked to."""

import argparse
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks._measure import Row


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes: under two minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows here")
    options = parser.parse_args()
    try:
        from benchmarks import assignment, matching
    except ModuleNotFoundError as error:
        if error.name != "ot":
            raise
        print(
            "The benchmarks compare with POT, which is not installed. "
            "Run: pip install 'unshuffle[bench]'",
            file=sys.stderr,
        )
        return 2
    # a file or a pipe has no width of its own; the widest row needs about 110 columns
    console = Console(width=None if sys.stdout.isatty() else 120)
    rows: list[Row] = []
    for module in (assignment, matching):
        with console.status(f"{module.TOPIC} ..."):
            found = list(module.rows(quick=options.quick))
        console.print(table(found))
        rows += found
    if options.json is not None:
        options.json.write_text(json.dumps(report(rows), indent=2) + "\n")
    return 0


def table(rows: list[Row]) -> Table:
    """Table of rows on one topic; the ratio says how many times faster than the peer."""
    result = Table(title=rows[0].topic)
    result.add_column("problem")
    result.add_column("peer")
    for name in ("ratio", "seconds", "peer's", *rows[0].details):
        result.add_column(name, justify="right")
    for row in rows:
        result.add_row(
            row.problem,
            row.peer,
            f"{row.ratio:.2g}" if row.ratio < 1 else f"{row.ratio:.1f}",
            f"{row.seconds:.3g}",
            f"{row.peer_seconds:.3g}",
            *map(written, row.details.values()),
        )
    return result


def written(value: float | int | str) -> str:
    """Two digits of a small number, all digits before the point of a larger one."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"


def report(rows: list[Row]) -> dict[str, object]:
    """The rows, and what they were measured on."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
    }


if __name__ == "__main__":
    sys.exit(main())
