"""Print each measurement as soon as it is made."""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.accuracy import (
    _cells,
    _content,
    _hard_kinds,
    _known_pairs,
    _multi_instance,
    _orbits,
    _photos,
    _quadratic,
    _questions,
    _set_regression,
    _trust,
    _unseen,
    _zeros,
)
from unshuffle.matching import DoubtWarning

REPORTS = {
    "photos": _photos.report,
    "kernel-weights": _photos.weigh,
    "cells": _cells.report,
    "multi-instance": _multi_instance.report,
    "set-regression": _set_regression.report,
    "generators": _orbits.report,
    "trust": _trust.report,
    "calibration": _trust.calibrate,
    "hard-kinds": _hard_kinds.report,
    "ten-known-pairs": _hard_kinds.report_known,
    "known-pairs": _known_pairs.report,
    "questions": _questions.report,
    "unseen": _unseen.report,
    "zeros": _zeros.report,
    "content": _content.report,
    "qaplib": _quadratic.report,
    "qaplib-10s": partial(_quadratic.report, seconds=10.0),
    "qaplib-proofs": _quadratic.prove,
    "graphs": _quadratic.graphs,
}
LAYOUTS = ("layouts", "layouts-held-out")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*REPORTS, *LAYOUTS, []], help="default: all")
    parser.add_argument(
        "--tuned", action="store_true", help="layouts: beside slow FLAS too, minutes longer"
    )
    options = parser.parse_args()
    names = options.names or [*REPORTS, *LAYOUTS]
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("UNSHUFFLE_DATA", beside))
    if not folder.is_dir():
        print(f"No data at {folder}. Set UNSHUFFLE_DATA to the folder.", file=sys.stderr)
        return 2
    if find_spec("vc_flas") is None and not set(names).isdisjoint(LAYOUTS):
        print(
            "Layouts are compared with FLAS, which is not installed. "
            "Run: pip install 'unshuffle[bench]'",
            file=sys.stderr,
        )
        return 2
    warnings.simplefilter("ignore", DoubtWarning)  # counted where needed
    reports = REPORTS | {name: partial(layouts, name, tuned=options.tuned) for name in LAYOUTS}
    for name in names:
        start = time.perf_counter()
        for line in reports[name](folder):
            print(f"{time.perf_counter() - start:6.1f} s  {line}", flush=True)
            start = time.perf_counter()
    return 0


def layouts(name: str, folder: Path, *, tuned: bool) -> Iterator[str]:
    from benchmarks.accuracy import _layouts  # needs FLAS, which is optional

    report = _layouts.report if name == "layouts" else _layouts.report_held_out
    return report(folder, tuned=tuned)


if __name__ == "__main__":
    raise SystemExit(main())
