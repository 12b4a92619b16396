"""Pages of recorded figures: a table and growth curves for each area, and an index."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._records import Record, Run, by_problem

# Ours first, in the strongest colors; all read on white.
OURS = ("#0b6e99", "#3fa7c9", "#0b4f6c", "#5fb49c")
PEERS = ("#c8553d", "#8a8d3f", "#7f5a83", "#d99a2b", "#777777")
MARKERS = "osD^vP"
MOST_TICKS = 4
LEAST = 1.0  # megabytes; less is not measured reliably


def page(run: Run) -> str:
    """Markdown page of one area."""
    lines = [f"# {run.title}", "", run.about, "", measured_on(run.machine), ""]
    if curves(run.records):
        lines += [f"![Time, memory and quality against the number of {run.unit}]({run.area}.svg)"]
        lines += [""]
        if powers := growth(run.records):
            lines += [*powers, ""]
    drawn = curves(run.records)
    single = [each for each in run.records if each.problem not in drawn]
    grouped = [each for each in run.records if each.problem in drawn]
    for problem, group in groupby(grouped, key=lambda each: each.problem):
        lines += [f"## {problem[:1].upper()}{problem[1:]}", "", *table(list(group), run.unit), ""]
    if single:
        lines += ["## Of one size", ""] if grouped else []
        lines += [*table(single, run.unit, with_problem=True), ""]
    lines += legend(run.records)
    return "\n".join(lines).rstrip() + "\n"


def table(records: Sequence[Record], unit: str, *, with_problem: bool = False) -> list[str]:
    """One row for each size and method."""
    names = list(dict.fromkeys(name for each in records for name in each.quality))
    compared = any(each.kind == "peer" for each in records)
    titles = [*(["problem"] if with_problem else []), unit, "method", "seconds", "MB", *names]
    titles += ["ours is ... times as fast"] if compared else []
    lines = [row(titles), "|" + "---|" * len(titles)]
    for (problem, size), group in by_problem(records):
        ours = next((each for each in group if each.kind == "ours" and each.seconds), None)
        for number, each in enumerate(group):
            shown = f"**{each.method}**" if each.kind == "ours" else each.method
            ratio = ""
            if ours and each.kind == "peer" and each.seconds:
                ratio = figure(each.seconds.median / ours.seconds.median)
            lines.append(
                row(
                    [
                        *([("" if number else problem)] if with_problem else []),
                        "" if number else f"{size:,}",
                        shown,
                        each.failed or seconds(each),
                        memory(each.megabytes),
                        *(share(each.quality.get(name)) for name in names),
                        *([ratio] if compared else []),
                    ]
                )
            )
    return lines


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def seconds(record: Record) -> str:
    """Median, and the range if there are repeats."""
    found = record.seconds
    if found is None:
        return ""
    if found.low == found.high:
        return figure(found.median)
    if record.kind == "quoted" and found.low == found.median:
        return f"{figure(found.median)} (up to {figure(found.high)})"
    return f"{figure(found.median)} ({figure(found.low)} to {figure(found.high)})"


def memory(megabytes: float | None) -> str:
    if megabytes is None:
        return ""
    return f"{megabytes:,.0f}" if megabytes >= LEAST else f"under {LEAST:.0f}"


def figure(value: float | None) -> str:
    """Three digits, or all before the point."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if value and abs(value) < 1e-4:
        return f"{value:.1e}"
    if abs(value) < 1:
        return f"{value:.3g}"
    return f"{value:,.{max(0, 2 - int(np.log10(abs(value))))}f}"


def share(value: float | None) -> str:
    """The same with four digits below 1: shares near 1 differ in their last ones."""
    if isinstance(value, float) and 0.5 < value < 1:
        return f"{value:.4f}"
    return figure(value)


def legend(records: Iterable[Record]) -> list[str]:
    """How to read the table, and where quoted figures are from."""
    lines = []
    if any(each.kind != "quoted" for each in records):
        lines += [
            "Seconds are medians of the repeats, with the shortest and longest in parentheses "
            "where there are several; the methods of one problem took turns. MB are the peak "
            "above what the process held before the call. The last column compares with the first "
            "row in bold.",
            "",
        ]
    for source in dict.fromkeys(each.source for each in records if each.kind == "quoted"):
        methods = dict.fromkeys(each.method for each in records if each.source == source)
        lines += [f"Quoted, not measured in this run: {', '.join(methods)} ({source}).", ""]
    return lines


def measured_on(machine: dict[str, Any]) -> str:
    """One sentence on the machine of a run."""
    if machine.get("quoted"):
        return f"Quoted from {machine['processor']}, {machine['date']}, at {machine['commit']}."
    names = ("processor", "cores", "gigabytes", "date", "commit")
    processor, cores, gigabytes, date, commit = (machine.get(name) for name in names)
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    kind = "quick run" if machine.get("quick") else "full run"
    return (
        f"Measured {date} at {commit} ({kind}): {processor}, {cores} cores, {gigabytes} GB, load "
        f"{machine.get('load')} before. {versions}."
    )


def measured_briefly(machine: dict[str, Any]) -> str:
    """Machine and date of a run."""
    cores = f", {machine['cores']} cores" if "cores" in machine else ""
    quoted = "Quoted" if machine.get("quoted") else "Measured"
    return f"{quoted}: {machine['processor']}{cores}, {machine['date']}."


def index(runs: Sequence[Run]) -> str:
    """Page that lists the areas."""
    lines = [
        "# Benchmarks",
        "",
        "Speed, memory and quality beside other libraries, on the same data in the same run. "
        "`make bench` measures everything again and writes these pages, `make bench ARGS=--quick` "
        "prints a selection in a few minutes, and `make bench-check` compares that selection with "
        "the figures recorded here. `python -m benchmarks --gpu` does the same on a GPU.",
        "",
        row(["area", "compared with", "measured", "commit", "machine"]),
        "|---|---|---|---|---|",
    ]
    for run in runs:
        peers = dict.fromkeys(
            each.method.split(",")[0] for each in run.records if each.kind == "peer"
        )
        machine = run.machine
        how = next((f", {each}" for each in ("quick", "quoted") if machine.get(each)), "")
        name = machine["processor"]
        if "cores" in machine:
            name += f", {machine['cores']} cores, {machine['gigabytes']} GB"
        page = f"[{run.title}]({run.area}.md)"
        cells = [page, ", ".join(peers), machine["date"] + how, machine["commit"], name]
        lines.append(row(cells))
    versions: dict[str, set[str]] = {}
    for run in runs:
        for name, version in run.machine["versions"].items():
            versions.setdefault(name, set()).add(version)
    named = (f"{name} {' and '.join(sorted(found))}" for name, found in versions.items())
    return "\n".join([*lines, "", f"Versions: {', '.join(named)}."]) + "\n"


def curves(records: Iterable[Record]) -> dict[str, dict[str, list[Record]]]:
    """Measured records by problem and method, of problems of several sizes."""
    found: dict[str, dict[str, list[Record]]] = {}
    for each in records:
        if each.seconds is not None and each.kind != "quoted":
            found.setdefault(each.problem, {}).setdefault(each.method, []).append(each)
    return {
        problem: methods
        for problem, methods in found.items()
        if len({each.size for records in methods.values() for each in records}) > 1
    }


def growth(records: Iterable[Record]) -> list[str]:
    """Exponents of time from the smallest to the largest size, by least squares."""
    lines = []
    for problem, methods in curves(records).items():
        parts = []
        for method, found in methods.items():
            sizes = [each.size for each in found]
            if len(set(sizes)) > 2:
                power = exponent(sizes, [each.seconds.median for each in found])
                parts.append(f"{power:.1f} ({method}, to {max(sizes):,})")
        if parts:
            lines.append(f"- {problem}: time grows with the power {', '.join(parts)}")
    return lines


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of the line through the points on logarithmic scales, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def draw(run: Run, path: Path) -> None:
    """Time, memory and the first quality against the size, a row for each problem."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    families = curves(run.records)
    if not families:
        return
    # The same records give the same file.
    with mpl.rc_context({"svg.hashsalt": "unshuffle", "svg.fonttype": "none", "font.size": 9}):
        fig = Figure(figsize=(10.2, 3.0 * len(families)), layout="constrained")
        fig.set_facecolor("white")
        axes = fig.subplots(len(families), 3, squeeze=False)
        for panels, (problem, methods) in zip(axes, families.items(), strict=True):
            _draw_problem(panels, methods)
            panels[0].set_title(f"{problem}: seconds")
            panels[1].set_title("memory in MB")
            sizes = sorted({each.size for found in methods.values() for each in found})
            shown = sizes[:: -(-len(sizes) // MOST_TICKS)]
            for ax in panels:
                ax.set_xticks(shown, [f"{size:,}" for size in shown])
                ax.minorticks_off()
                ax.set_xlabel(run.unit)
                ax.grid(visible=True, which="major", color="#dddddd")
                ax.spines[["top", "right"]].set_visible(False)
            # Beside the panels, where it covers no curve.
            handles, labels = panels[0].get_legend_handles_labels()
            place = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
            panels[-1].legend(handles, labels, frameon=False, fontsize=7, **place)
        fig.savefig(path, format="svg", metadata={"Date": None})


def _draw_problem(panels: Any, methods: dict[str, list[Record]]) -> None:
    numbers = {"ours": 0, "peer": 0}
    quality: str | None = None
    for number, (method, found) in enumerate(methods.items()):
        kind = found[0].kind
        colors = OURS if kind == "ours" else PEERS
        style = {
            "color": colors[numbers[kind] % len(colors)],
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 4,
            "linewidth": 2.0 if kind == "ours" else 1.2,
        }
        numbers[kind] += 1
        sizes = [each.size for each in found]
        taken = np.array(
            [[each.seconds.median, each.seconds.low, each.seconds.high] for each in found]
        )
        panels[0].loglog(sizes, taken[:, 0], label=method, **style)
        panels[0].fill_between(sizes, taken[:, 1], taken[:, 2], color=style["color"], alpha=0.2)
        held = [
            (each.size, max(each.megabytes, LEAST)) for each in found if each.megabytes is not None
        ]
        if held:
            panels[1].loglog(*zip(*held, strict=True), **style)
        quality = quality or next(iter(found[0].quality), None)
        scored = [(each.size, each.quality[quality]) for each in found if quality in each.quality]
        if scored:
            panels[2].semilogx(*zip(*scored, strict=True), **style)
    panels[2].set_title(quality or "")
    if quality is None:
        panels[2].set_visible(False)
