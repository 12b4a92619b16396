"""Recorded figures on pages: docs/benchmarks, and marked blocks of README and guides.

A block is what stands between `<!-- benchmarks: NAME -->` and `<!-- end -->`.
"""

import os
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import _render
from benchmarks._records import Record, Run

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "benchmarks"
BLOCK = re.compile(r"(<!-- benchmarks: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def write(run: Run, folder: Path) -> None:
    """Records, page and figure of one area; quoted figures that are not measured now are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    run = with_quoted(run, folder / f"{run.area}.json")
    run.write(folder / f"{run.area}.json")
    (folder / f"{run.area}.md").write_text(_render.page(run), encoding="utf-8")
    _render.draw(run, folder / f"{run.area}.svg")


def with_quoted(run: Run, path: Path) -> Run:
    """The run, with quoted figures of an earlier one for methods that it has not measured."""
    if not path.exists():
        return run
    measured = {each.method for each in run.records}
    earlier = Run.read(path).records
    kept = [each for each in earlier if each.kind == "quoted" and each.method not in measured]
    order = list(dict.fromkeys((each.problem, each.size) for each in (*run.records, *kept)))
    records = sorted(
        (*run.records, *kept), key=lambda each: order.index((each.problem, each.size))
    )
    return replace(run, records=tuple(records))


def write_all() -> Iterator[Path]:
    """All pages and blocks from the recorded figures; yields those that changed."""
    for path, text in rendered().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            yield path


def rendered() -> dict[Path, str]:
    """What every page with recorded figures should say."""
    recorded = runs()
    pages = {FOLDER / f"{run.area}.md": _render.page(run) for run in recorded}
    if recorded:
        pages[FOLDER / "index.md"] = _render.index(recorded)
    figures = Figures(recorded)
    for path in guides():
        text = path.read_text(encoding="utf-8")
        if BLOCK.search(text):
            pages[path] = BLOCK.sub(partial(filled, figures=figures, page=path), text)
    return pages


def runs(folder: Path = FOLDER) -> list[Run]:
    """All areas that are recorded."""
    return [Run.read(path) for path in sorted(folder.glob("*.json"))]


def guides() -> list[Path]:
    """Pages that may hold blocks."""
    docs = ROOT / "docs"
    folders = ("*.md", "how-to/*.md", "explanation/*.md")
    return [ROOT / "README.md", *(page for each in folders for page in sorted(docs.glob(each)))]


def filled(found: re.Match[str], figures: "Figures", page: Path) -> str:
    """A block with its figures, and links as they are written on this page."""
    begin, name, _, end = found.groups()
    folder = Path(os.path.relpath(FOLDER, page.parent)).as_posix()
    lines = [line.replace("](benchmarks/", f"]({folder}/") for line in BLOCKS[name](figures)]
    return begin + "\n".join([*lines, end])


class Figures:
    """Recorded figures by area."""

    def __init__(self, recorded: list[Run]) -> None:
        self.runs = {run.area: run for run in recorded}

    def some(
        self, area: str, problem: str, sizes: Container[int], methods: Container[str]
    ) -> list[Record]:
        """Records of a problem; those that are not there are left out."""
        run = self.runs.get(area)
        return [
            each
            for each in (run.records if run else ())
            if (each.problem, each.size in sizes, each.method in methods) == (problem, True, True)
        ]

    def table(self, area: str, *choices: tuple[str, Container[int], Container[str]]) -> list[str]:
        """The chosen rows of an area's table, and a link to all."""
        records = [each for choice in choices for each in self.some(area, *choice)]
        if not records:
            return [f"[Not recorded yet](benchmarks/{area}.md).", ""]
        run = self.runs[area]
        with_problem = len({each.problem for each in records}) > 1
        lines = _render.table(records, run.unit, with_problem=with_problem)
        link = f"([All figures](benchmarks/{area}.md). {_render.measured_briefly(run.machine)})"
        return [*lines, "", link]

    def all(self, area: str) -> list[str]:
        """The whole table of an area."""
        run = self.runs.get(area)
        problems = dict.fromkeys(each.problem for each in run.records) if run else ()
        return self.table(area, *((problem, ANY, ANY) for problem in problems))


class _Any:
    """Contains everything."""

    def __contains__(self, _: object) -> bool:
        return True


ANY = _Any()


class Line(NamedTuple):
    """A row of the table in README: one of our methods and peers on one problem."""

    task: str
    area: str
    problem: str
    size: int
    ours: str
    peers: tuple[str, ...]
    quality: str = ""


DENSE_PEERS = ("POT, distances", "ott-jax, entropic", "SciPy FAQ, kernels")
README = (
    Line("200 rotated points with noise, matched", "matching", "rotated points", 200,
         "KernelizedSorting", DENSE_PEERS, "right"),
    Line("5,000 of them", "matching", "rotated points", 5000,
         "KernelizedSorting", DENSE_PEERS, "right"),
    Line("100,000 of them", "matching", "rotated points", 100_000,
         "KernelizedSorting", ("ott-jax, rank 20",), "right"),
    Line("16,384 colors on a grid, distance preservation quality", "layout", "colors", 128**2,
         "GridLayout, fast", ("FLAS",), "DPQ"),
    Line("a million colors on a grid, distance of neighbors", "layout", "colors", 1024**2,
         "GridLayout, fast", ("FLAS",), "neighbor distance"),
    Line("a million colors on one H200, distance of neighbors (quoted)", "gpu-layouts", "colors",
         1024**2, "balanced", ("PLAS",), "neighbor distance"),
    Line("1,024 smooth costs, assigned", "assignment", "smooth", 1024,
         "unshuffle", ("SciPy", "lap", "POT emd")),
    Line("graph of 200 nodes and a noisy copy, matched", "quadratic", "noisy graphs", 200,
         "quadratic_assignment", ("SciPy, faq",), "right"),
    Line("Gram matrix of 1,000 sets by five Gaussians", "sets", "Gram matrix, d = 5", 1000,
         "ExpectedLikelihoodKernel", ("NumPy, unrolled",)),
    Line("100 bags of points, aligned; error on new ones", "alignment", "digits", 100,
         "MinimumVolumePCA, mean", ("pycpd, rigid", "pycpd, deformable"), "error"),
    Line("128 photos, encoded by a network", "encoders", "lite0", 128,
         "unshuffle", ("plain PyTorch",)),
)  # fmt: skip


def readme(figures: Figures) -> list[str]:
    """One row for each task that is recorded."""
    lines = [_render.row(["task", "unshuffle", "to compare with"]), "|---|---|---|"]
    for task, area, problem, size, ours, peers, quality in README:
        found = {each.method: each for each in figures.some(area, problem, {size}, ANY)}
        if ours in found and found[ours].seconds:
            theirs = [f"{_cell(found[peer], quality)} ({peer})" for peer in peers if peer in found]
            lines.append(_render.row([task, _cell(found[ours], quality), "; ".join(theirs)]))
    return lines


def _cell(record: Record, quality: str) -> str:
    if record.seconds is None:
        return record.failed
    value = record.quality.get(quality)
    shown = f"{value:.1%} right in " if quality == "right" else f"{_render.share(value)} in "
    text = ("" if value is None else shown) + f"{_render.figure(record.seconds.median)} s"
    if (record.megabytes or 0.0) >= 100.0:
        text += f", {_render.figure(record.megabytes / 1000)} GB"
    return text


OUR_LAYOUTS = ("GridLayout, fast", "GridLayout, balanced", "GridLayout, best", "FLAS")
OUR_MATCHINGS = ("KernelizedSorting", "KernelizedSorting, not checked")
OUR_ALIGNMENTS = ("MinimumVolumePCA, mean", "MinimumVolumePCA, covariance")
BLOCKS: dict[str, Callable[[Figures], list[str]]] = {
    "readme": readme,
    "layout-quality": lambda figures: figures.table(
        "layout", ("colors", {32**2, 64**2, 128**2}, OUR_LAYOUTS), ("digits", ANY, OUR_LAYOUTS)
    ),
    "layout-large": lambda figures: figures.table(
        "layout", ("colors", {128**2, 512**2, 1024**2}, OUR_LAYOUTS)
    ),
    "alignment": lambda figures: figures.table("alignment", ("digits", ANY, OUR_ALIGNMENTS)),
    "large-matching": lambda figures: figures.table(
        "matching", ("rotated points", {5000, 10_000, 30_000, 100_000}, OUR_MATCHINGS[:1])
    ),
    "choosing-pot": lambda figures: figures.table(
        "matching",
        ("rotated points", {100, 200, 500}, (*OUR_MATCHINGS, "POT, distances")),
        ("halves of photo crops", {240}, (*OUR_MATCHINGS, "POT, kernels")),
    ),
    "choosing-linear": lambda figures: figures.table(
        "assignment",
        ("smooth", {1024, 2025}, ("unshuffle", "SciPy")),
        ("ties", {1024, 2025}, ("unshuffle", "SciPy")),
    ),
    "choosing-quadratic": lambda figures: figures.table(
        "quadratic", ("noisy graphs", {25, 100, 200}, ("quadratic_assignment", "SciPy, faq"))
    ),
    "choosing-logarithm": lambda figures: figures.table(
        "orbits", ("72 turns", {10}, ("OrbitLearner", "SciPy, least squares and logm"))
    ),
    "choosing-flas": lambda figures: figures.table(
        "layout", ("colors", {400, 4096, 1024**2}, ("GridLayout, fast", "FLAS"))
    ),
    "choosing-umap": lambda figures: figures.table(
        "layout", ("colors", {4096}, ("GridLayout, balanced", "UMAP, assigned"))
    ),
    "choosing-pycpd": lambda figures: figures.table(
        "alignment",
        ("digits", {20, 100}, (*OUR_ALIGNMENTS[:1], "pycpd, rigid", "pycpd, deformable")),
    ),
    "gpu-matching": lambda figures: figures.all("gpu-matching"),
    "gpu-layouts": lambda figures: figures.all("gpu-layouts"),
    "gpu-sets": lambda figures: figures.all("gpu-sets"),
}
