"""Measure speed, memory and quality beside other libraries, and write them to docs/benchmarks.

A full run writes a page, a figure and the records of each area, an index, and the figures in
README and guides. A quick run prints. Areas that are done are kept if you stop a run.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import _docs, _render
from benchmarks._measure import FULL, PACKAGES, QUICK, Bench, Problem, import_area
from benchmarks._records import Record, Run, falls, ratios

AREAS = (
    *("small", "assignment", "quadratic", "matching", "layout", "alignment", "sets", "orbits"),
    "encoders",
)
GPU_AREAS = ("gpu.matching", "gpu.layouts", "gpu.sets")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["pages"]:
        from benchmarks.pages.__main__ import main as measure_pages

        return measure_pages(arguments[1:])
    options = parsed(arguments)
    if options.docs:
        return write_docs()
    if options.gpu and not has_gpu():
        say("--gpu needs PyTorch and a CUDA device, and there is none here.")
        return 2
    areas = options.areas or (GPU_AREAS if options.gpu else AREAS)
    if options.check:
        return check(areas, options.output or _docs.FOLDER)
    output = options.output or (None if options.quick else _docs.FOLDER)
    try:
        failed = measure(areas, quick=options.quick, output=output)
    finally:
        if output == _docs.FOLDER:
            write_docs()
    return 1 if failed else 0


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog="`python -m benchmarks pages --help`: large walls, and how they open in a browser.",
    )
    parser.add_argument(
        "areas", nargs="*", metavar="AREA", help=f"{', '.join((*AREAS, *GPU_AREAS))}; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="the smaller problems, printed")
    parser.add_argument("--gpu", action="store_true", help="what runs on a GPU")
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare a quick run with the recorded figures; exit with 1 if a ratio fell by more "
        "than a third",
    )
    parser.add_argument("--docs", action="store_true", help="write pages from recorded figures")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where figures are recorded")
    options = parser.parse_args(arguments)
    unknown = [each for each in options.areas if each not in (*AREAS, *GPU_AREAS)]
    if unknown:
        parser.error(f"unknown area {unknown[0]!r}: choose from {', '.join((*AREAS, *GPU_AREAS))}")
    options.gpu = options.gpu or not set(options.areas).isdisjoint(GPU_AREAS)
    return options


def measure(areas: Sequence[str], *, quick: bool, output: Path | None) -> list[str]:
    """Measure, print or write each area, and return those that failed."""
    failed: list[str] = []
    done: list[str] = []
    try:
        for name in areas:
            run = measured_area(name, quick=quick)
            if run is None:
                failed.append(name)
                continue
            done.append(name)
            if output is None:
                print(_render.page(run), flush=True)
            else:
                _docs.write(run, output)
    except KeyboardInterrupt:
        say(f"Stopped. Done: {', '.join(done) or 'nothing'}.")
        raise SystemExit(130) from None
    if failed:
        say(f"Not measured: {', '.join(failed)}.")
    return failed


def measured_area(name: str, *, quick: bool) -> Run | None:
    """One area, or None if it cannot be measured; the reason is printed."""
    start = time.perf_counter()
    try:
        area = import_area(name)
        machine = described(quick=quick)
        records = tuple(records_of(name, area, quick=quick))
    except Exception as error:  # the others are still worth measuring
        say(f"{name} failed: {type(error).__name__}: {error}")
        return None
    if not records:
        say(f"{name}: nothing to measure.")
        return None
    say(f"{name}: {time.perf_counter() - start:.0f} s in all")
    title = name.replace("gpu.", "gpu-")
    return Run(title, area.TITLE, area.ABOUT, area.SIZE, machine, records)


def records_of(name: str, area: Any, *, quick: bool) -> Iterator[Record]:
    problems = [each for each in area.problems() if each.quick or not quick]
    with Bench(name, QUICK if quick else FULL, say) as bench:
        for number, problem in enumerate(problems, start=1):
            start = time.perf_counter()
            found = list(bench.measure(problem))
            taken = time.perf_counter() - start
            say(
                f"{name} {number}/{len(problems)}: {problem.name}, {problem.size:,} {area.SIZE}, "
                f"{taken:.1f} s{failures(found)}"
            )
            yield from found


def failures(records: Sequence[Record]) -> str:
    return "".join(f"; {each.method}: {each.failed}" for each in records if each.failed)


def check(areas: Sequence[str], folder: Path) -> int:
    """Compare the ratios of a quick run with those recorded."""
    fallen: list[str] = []
    n_compared = 0
    for name in areas:
        path = folder / f"{name.replace('gpu.', 'gpu-')}.json"
        if not path.exists():
            say(f"{name} is not recorded in {folder}.")
            continue
        recorded = Run.read(path).records
        try:
            area = import_area(name)
        except ModuleNotFoundError as error:
            say(f"{name} is left out: {error.name} is not installed.")
            continue
        with Bench(name, QUICK, say) as bench:
            for problem in (each for each in area.problems() if each.quick):
                found, n_ratios = still_fallen(bench, problem, recorded)
                n_compared += n_ratios
                fallen += [f"{name}, {each}" for each in found]
                say(f"{name}: {problem.name}, {problem.size:,}: {n_ratios} ratios")
    if not n_compared:
        say("Nothing to compare with. `make bench` records figures.")
        return 2
    for each in fallen:
        print(each)
    print(f"{len(fallen)} of {n_compared} ratios fell by more than a third.")
    return 1 if fallen else 0


def still_fallen(
    bench: Bench, problem: Problem, recorded: Sequence[Record]
) -> tuple[list[str], int]:
    """Ratios that fell in two measurements, and the number of ratios that are recorded."""
    known = [(each.problem, each.size) for each in recorded]
    if (problem.name, problem.size) not in known:
        return [], 0
    records = list(bench.measure(problem))
    found = falls(recorded, records)
    if found:
        again = {now.key for _, now in falls(recorded, list(bench.measure(problem)))}
        found = [each for each in found if each[1].key in again]
    lines = [f"{now}: {now.value:.2g} times as fast, was {was.value:.2g}" for was, now in found]
    kept = {each.key for each in ratios(recorded)}
    return lines, sum(each.key in kept for each in ratios(records))


def described(*, quick: bool) -> dict[str, Any]:
    """Machine, versions, date and commit."""
    return {
        "date": date.today().isoformat(),
        "commit": commit(),
        "quick": quick,
        "processor": processor(),
        "cores": os.cpu_count(),
        "gigabytes": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "load": round(os.getloadavg()[0], 1),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for name in (*LIBRARIES, *PACKAGES.values()):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The processor, and the GPU if there is one."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text() if path.exists() else ""
    model = re.search(r"model name\s*: (.*)", lines)
    name = model[1].strip() if model else platform.processor() or platform.machine()
    if "torch" in sys.modules and has_gpu():
        import torch

        name += f", {torch.cuda.get_device_name()}"
    return name


def has_gpu() -> bool:
    try:
        import torch
    except ModuleNotFoundError:
        return False
    return bool(torch.cuda.is_available())


def commit() -> str:
    """Short name of the commit, and whether the library differs from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(_docs.ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "src") else ""
    return (git("rev-parse", "--short", "HEAD") or "no commit") + changed


def write_docs() -> int:
    for path in _docs.write_all():
        say(f"written: {path.relative_to(_docs.ROOT)}")
    return 0


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
