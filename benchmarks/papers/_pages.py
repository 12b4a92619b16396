"""Pages of docs/papers, from what was measured and the text in `prose`.

In the text, `{{claims}}` is a section for each claim, `{{unchecked}}` the list of what was not
checked, and `{{CLAIM.KEY}}` the mean of a measured quantity, `{{CLAIM.KEY:FORMAT}}` in a format of
Python, `{{CLAIM.verdict}}` its verdict.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.__main__ import LIBRARIES
from benchmarks._render import figure, row
from benchmarks.papers._claims import (
    CHANGED,
    CHOSEN_LATER,
    FAILS,
    HOLDS,
    VERDICTS,
    Claim,
    Paper,
    Result,
    Results,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "papers"
PROSE = Path(__file__).parent / "prose"
PLACE = re.compile(r"\{\{([\w-]+)(?:\.([\w-]+))?(?::([^}]*))?\}\}")


def write_all(papers: Sequence[Paper], folder: Path) -> Iterator[Path]:
    """Write what `rendered` gives, and yield the pages that changed."""
    for path, text in rendered(papers, folder).items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            yield path


def rendered(papers: Sequence[Paper], folder: Path = FOLDER) -> dict[Path, str]:
    """What the page of each measured paper should say, and the index if there are all."""
    measured = {paper.name: results_of(paper, folder) for paper in papers}
    whole = [
        paper
        for paper in papers
        if all(claim.id in measured[paper.name].claims for claim in paper.claims)
    ]
    pages = {folder / f"{each.name}.md": page(each, measured[each.name]) for each in whole}
    if len(whole) == len(papers):
        pages[folder / "index.md"] = index(papers, measured)
    return pages


def results_of(paper: Paper, folder: Path = FOLDER) -> Results:
    """What was measured of a paper."""
    return Results.read(folder / "results" / f"{paper.name}.json")


def page(paper: Paper, results: Results) -> str:
    """The page of one paper: its text with all places filled."""

    def fill(place: re.Match[str]) -> str:
        name, key, form = place.groups()
        if name == "claims":
            return "\n".join(section(claim, results.claims[claim.id]) for claim in paper.claims)
        if name == "unchecked":
            return "\n".join(unchecked(paper))
        if name == "measured":
            return measured_on(results)
        if name == "verdicts":
            return "\n".join(verdicts(paper, results))
        if key == "verdict":
            return results.claims[name].verdict
        value = results.claims[name].mean(key)
        return format(value, form) if form else shown(value)

    text = (PROSE / f"{paper.name}.md").read_text("utf-8")
    return f"# {paper.title}\n\n{paper.source}\n\n{PLACE.sub(fill, text).strip()}\n"


def section(claim: Claim, result: Result) -> str:
    """One claim: what the paper says, the table, protocols, rule and verdict."""
    lines = [
        f"### {claim.where}: {claim.id}",
        "",
        f"{claim.says} **{result.verdict[0].upper()}{result.verdict[1:]}.**",
        "",
        row([claim.unit, "printed", "ours", "repeats"]),
        "|---|---|---|---|",
    ]
    for each in claim.quantities:
        found = result.values[each.key]
        printed = "" if each.printed is None else f"{each.printed:.4g}"
        name = f"{each.label} (`{each.key}`)"
        lines.append(row([name, printed, with_spread(found), str(len(found))]))
    if claim.figure:
        lines += ["", f"![{claim.caption}](figures/{claim.figure})", "", f"*{claim.caption}.*"]
    lines += ["", f"- The paper: {claim.theirs}", f"- Here: {claim.ours}"]
    if claim.changed:
        lines.append(f"- Changed: {claim.changed}")
    taken = f", {shown(result.seconds)} s" if result.seconds else ""
    lines.append(f"- Rule: `{claim.rule}`. Measured {result.date} at {result.commit}{taken}.")
    if claim.id in CHOSEN_LATER:
        lines.append(f"- Chosen after a first measurement: {CHOSEN_LATER[claim.id]}")
    if result.verdict == FAILS:
        means = {key: shown(result.mean(key)) for key in result.values}
        lines.append(f"- Why it does not hold: {claim.because.format(**means)}")
    return "\n".join([*lines, ""])


def shown(value: float) -> str:
    """Whole numbers as such, others with three digits."""
    return f"{value:,.0f}" if value == round(value) else figure(value)


def with_spread(found: Sequence[float]) -> str:
    """Mean and, of several repeats, standard deviation."""
    mean = float(np.mean(found))
    if len(found) == 1:
        return shown(mean)
    spread = float(np.std(found, ddof=1)) if np.ptp(found) > 0 else 0.0  # equal but for rounding
    return f"{shown(mean)} ± {shown(spread)}"


def verdicts(paper: Paper, results: Results) -> list[str]:
    """One line for each claim."""
    lines = [row(["where", "the paper says", "verdict"]), "|---|---|---|"]
    for claim in paper.claims:
        verdict = results.claims[claim.id].verdict
        lines.append(row([claim.where, claim.says, f"[{verdict}](#{anchor(claim)})"]))
    return lines


def anchor(claim: Claim) -> str:
    """Where its section is on the page, as common renderers of Markdown name it."""
    heading = f"{claim.where}: {claim.id}".lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def unchecked(paper: Paper) -> list[str]:
    """What our data do not allow to check."""
    lines = [row(["where", "the paper says", "why it was not checked"]), "|---|---|---|"]
    return lines + [row([each.where, each.says, each.why]) for each in paper.unchecked]


def measured_on(results: Results) -> str:
    """One sentence on the machine of the last run."""
    machine = results.machine
    used = ("Python", *LIBRARIES)  # libraries that we only compare with play no part here
    versions = ", ".join(f"{name} {machine['versions'][name]}" for name in used)
    seconds = sum(each.seconds for each in results.claims.values())
    return (
        f"All claims of this page took {seconds / 60:.1f} minutes on {machine['processor']}, "
        f"{machine['cores']} cores, {machine['gigabytes']} GB. {versions}."
    )


def index(papers: Sequence[Paper], measured: dict[str, Results]) -> str:
    """The summary page: every claim with its verdict."""
    counts = dict.fromkeys(VERDICTS, 0)
    seconds = 0.0
    tables = []
    for paper in papers:
        tables += [f"## [{paper.title}]({paper.name}.md)", "", paper.source, ""]
        for line in verdicts(paper, measured[paper.name]):
            tables.append(line.replace("](#", f"]({paper.name}.md#"))
        tables += ["", f"Not checked: {len(paper.unchecked)}, listed on its page.", ""]
        for result in measured[paper.name].claims.values():
            counts[result.verdict] += 1
            seconds += result.seconds
    filled = {
        "n-claims": str(sum(counts.values())),
        "holding": str(counts[HOLDS]),
        "changed": str(counts[CHANGED]),
        "failing": str(counts[FAILS]),
        "minutes": f"{seconds / 60:.0f}",
        "tables": "\n".join(tables).strip(),
    }
    text = (PROSE / "index.md").read_text("utf-8")
    return PLACE.sub(lambda place: filled[place[1]], text).strip() + "\n"
