"""Print one line for each measurement as it is made."""

import argparse
import os
import sys
import time
import warnings
from functools import partial
from pathlib import Path

from benchmarks.accuracy import _attributes, _cells, _documents, _photos
from unshuffle.matching import AmbiguityWarning

REPORTS = {
    "photos": _photos.report,
    "documents": _documents.report,
    "cells": _cells.report,
    "attributes": _attributes.report,
    "attributes-halved": partial(_attributes.report, in_turn=False),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*REPORTS, []], help="default: all")
    names = parser.parse_args().names or list(REPORTS)
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("UNSHUFFLE_DATA", beside))
    if not folder.is_dir():
        print(f"No data at {folder}. Set UNSHUFFLE_DATA to the folder.", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore", AmbiguityWarning)  # counted where it matters
    for name in names:
        start = time.perf_counter()
        for line in REPORTS[name](folder):
            print(f"{time.perf_counter() - start:6.1f} s  {line}", flush=True)
            start = time.perf_counter()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
