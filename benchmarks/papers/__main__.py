"""Measure the claims of the five papers, and write docs/papers.

A full run writes what was measured, figures and pages. A quick run compares its verdicts with the
recorded ones, and ends with 1 if one is worse. Finished claims are kept if you stop a run.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.__main__ import described
from benchmarks.papers import (
    _kernelized_sorting,
    _minimum_volume_pca,
    _orbit_learning,
    _pages,
    _permutation_invariant_svm,
    _set_kernel,
)
from benchmarks.papers._claims import VERDICTS, Claim, Paper, Result, Results, Setting, rounded

PAPERS = [
    Paper.of(module)
    for module in (
        _kernelized_sorting,
        _minimum_volume_pca,
        _permutation_invariant_svm,
        _set_kernel,
        _orbit_learning,
    )
]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    if options.pages:
        judge_again(options.output or _pages.FOLDER)
        return write_pages(options.output or _pages.FOLDER)
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("UNSHUFFLE_DATA", beside))
    if not folder.is_dir():
        say(f"No data at {folder}. Set UNSHUFFLE_DATA to the folder.")
        return 2
    chosen = choose(options.names)
    output = options.output or (None if options.quick else _pages.FOLDER)
    figures = None if output is None else output / "figures"
    setting = Setting(folder, options.quick, figures)
    start = time.perf_counter()
    try:
        worse = [
            line for paper, claims in chosen for line in measure(paper, claims, setting, output)
        ]
    except KeyboardInterrupt:
        say("Stopped. Finished claims are kept." if output else "Stopped.")
        return 130
    say(f"{sum(len(claims) for _, claims in chosen)} claims, {time.perf_counter() - start:.0f} s")
    if output is not None:
        write_pages(output)
    if options.quick:
        for line in worse:
            print(line)
        return 1 if worse else 0
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    names = ", ".join(paper.name for paper in PAPERS)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{names}, or the name of a claim; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="smaller and fewer, compared only")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="default: docs/papers")
    parser.add_argument("--pages", action="store_true", help="judge and write, measure nothing")
    options = parser.parse_args(arguments)
    known = {name for paper in PAPERS for name in (paper.name, *(c.id for c in paper.claims))}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown name {unknown[0]!r}: choose from {', '.join(sorted(known))}")
    return options


def choose(names: Sequence[str]) -> list[tuple[Paper, list[Claim]]]:
    """Papers with the claims that were named, or all."""
    chosen = []
    for paper in PAPERS:
        whole = not names or paper.name in names
        claims = [claim for claim in paper.claims if whole or claim.id in names]
        if claims:
            chosen.append((paper, claims))
    return chosen


def measure(
    paper: Paper, claims: Sequence[Claim], setting: Setting, output: Path | None
) -> list[str]:
    """Measure claims, keep each result as it comes, and return those with a worse verdict."""
    recorded = Results.read(_pages.FOLDER / "results" / f"{paper.name}.json").claims
    path = None if output is None else output / "results" / f"{paper.name}.json"
    results = Results() if path is None else Results.read(path)
    results.machine = described(quick=setting.quick)
    worse = []
    for number, claim in enumerate(claims, start=1):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubts and unfinished fits are part of the methods
            values = rounded(claim.complete(claim.measure(setting)))
        verdict = claim.verdict(values)
        taken = round(time.perf_counter() - start, 2)
        machine = results.machine
        results.claims[claim.id] = Result(
            values, verdict, taken, machine["date"], machine["commit"]
        )
        found = ", ".join(f"{key} {results.claims[claim.id].mean(key):.4g}" for key in values)
        say(f"{paper.name} {number}/{len(claims)}: {claim.id}: {verdict} ({found}), {taken:.1f} s")
        if claim.id in recorded:
            before = recorded[claim.id].verdict
            if VERDICTS.index(verdict) < VERDICTS.index(before):
                worse.append(f"{claim.id}: {verdict} ({found}), recorded: {before}")
        if path is not None:
            known = [each.id for each in paper.claims]
            kept = {name: results.claims[name] for name in known if name in results.claims}
            results.claims = kept
            results.write(path)
    return worse


def judge_again(output: Path) -> None:
    """Apply the rules of today to what was measured; nothing is measured."""
    for paper in PAPERS:
        path = output / "results" / f"{paper.name}.json"
        results = Results.read(path)
        judged = dict(results.claims)
        for claim in paper.claims:
            if claim.id in judged:
                values = rounded(claim.complete(judged[claim.id].values))
                verdict = claim.verdict(values)
                judged[claim.id] = replace(judged[claim.id], values=values, verdict=verdict)
        if judged != results.claims:
            results.claims = judged
            results.write(path)
            say(f"judged: {path}")


def write_pages(output: Path) -> int:
    for path in _pages.write_all(PAPERS, output):
        say(f"written: {path}")
    return 0


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
