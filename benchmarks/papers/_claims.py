"""A claim of a paper, the result of measuring it, and the verdict that a rule gives."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HOLDS = "holds"
CHANGED = "holds with a changed protocol"
FAILS = "does not hold"
VERDICTS = (FAILS, CHANGED, HOLDS)  # from worse to better
# What was chosen after a first measurement of a claim, so that its verdict proves less.
CHOSEN_LATER = {
    "ks-layout": "the rule, halfway to a perfect layout.",
    "ks-letters": "the rule, halfway to a perfect layout.",
    "ks-documents": "the rule.",
    "ks-attributes": "the tolerance, 1.25 times the printed error and .01 in place of 1.4 times.",
    "mv-bound": "e1, .001 of the mean variance. The table has larger values too, so that one sees "
    "where the bound begins to fail.",
    "mv-morph": "the rule and the distance.",
    "mv-lock": "what is compared.",
    "pi-digits": "the tolerance, two points.",
    "pi-plane": "the level that a score must reach.",
    "pi-jugs": "the level that a score must reach.",
    "pi-dolls": "the level that a score must reach.",
    "mk-kernel": "the factor 10 of the base kernel: without it, these sets show nothing wrong.",
    "ol-spectrum": "the threshold, 90% in place of 95%.",
    "ol-positive": "the rule: at first it asked for scalings only, which cannot fail.",
    "ol-views": "that most objects must gain, not only their mean.",
}


@dataclass(frozen=True)
class Quantity:
    """One row of a claim's table: what is measured, and the value printed in the paper."""

    key: str
    label: str
    printed: float | None = None


@dataclass(frozen=True)
class Setting:
    """How a claim is measured: the data, quick or in full, and where figures go.

    Attributes
    ----------
    folder : Path
        The data sets.
    quick : bool
        Whether fewer repeats and smaller problems are enough.
    figures : Path or None
        Folder for figures; None draws none.
    """

    folder: Path
    quick: bool = False
    figures: Path | None = None

    def seeds(self, full: int, quick: int = 2, first: int = 0) -> range:
        """Seeds of the repeats."""
        return range(first, first + (quick if self.quick else full))

    def pick(self, full: Any, quick: Any) -> Any:
        """One of two values, by mode."""
        return quick if self.quick else full

    def load(self, name: str) -> Any:
        """A data set of the folder."""
        return np.load(self.folder / f"{name}.npz")

    @contextmanager
    def figure(self, name: str, size: tuple[float, float]) -> Iterator[Any]:
        """A figure to draw on, saved as NAME, an SVG or PNG; discarded if none is wanted."""
        import matplotlib as mpl
        from matplotlib.figure import Figure

        # The same numbers give the same file.
        style = {"svg.hashsalt": "unshuffle", "svg.fonttype": "none", "font.size": 9}
        with mpl.rc_context(style):
            drawn = Figure(figsize=size, layout="constrained")
            drawn.set_facecolor("white")
            yield drawn
            if self.figures is None:
                return
            self.figures.mkdir(parents=True, exist_ok=True)
            path = self.figures / name
            if path.suffix == ".svg":
                drawn.savefig(path, metadata={"Date": None})
                lines = (line.rstrip() for line in path.read_text("utf-8").splitlines())
                path.write_text("\n".join(lines) + "\n", "utf-8")
            else:
                drawn.savefig(path, dpi=110, metadata={"Software": None})


Values = dict[str, list[float]]


@dataclass(frozen=True)
class Claim:
    """What a paper says, and how it is checked.

    Attributes
    ----------
    id : str
        Short name, unique over all papers.
    where : str
        Table, figure, equation or section.
    says : str
        The claim in one sentence.
    quantities : tuple of Quantity
        Rows of its table.
    rule : str
        Condition on the means of the quantities, by their keys; the printed value of one is its
        key followed by `_printed`.
    theirs, ours : str
        Protocol of the paper, and ours.
    changed : str
        What differs so that the claim is another one; empty if nothing does.
    because : str
        Why it does not hold, with `{key}` for means.
    figure, caption : str
        Name of the figure that `measure` draws, and what it shows.
    measure : callable
        From a `Setting` to lists of repeats by key.
    derive : callable or None
        From measured values to further ones that need no measurement, such as counts.
    """

    id: str
    where: str
    says: str
    quantities: tuple[Quantity, ...]
    rule: str
    theirs: str
    ours: str
    measure: Callable[[Setting], Values]
    unit: str = ""
    changed: str = ""
    because: str = ""
    figure: str = ""
    caption: str = ""
    derive: Callable[[Values], Values] | None = None

    def complete(self, values: Values) -> Values:
        """Measured values and those that follow from them."""
        return values if self.derive is None else {**values, **self.derive(values)}

    def verdict(self, values: Values) -> str:
        """What the rule says of measured values."""
        means: dict[str, float] = {key: float(np.mean(found)) for key, found in values.items()}
        for each in self.quantities:
            if each.printed is not None:
                means[f"{each.key}_printed"] = each.printed
        allowed = {"__builtins__": {}, "min": min, "max": max, "abs": abs}
        if not eval(self.rule, allowed, means):
            return FAILS
        return CHANGED if self.changed else HOLDS


@dataclass(frozen=True)
class Unchecked:
    """A result that our data do not allow to check."""

    where: str
    says: str
    why: str


@dataclass(frozen=True)
class Paper:
    """A paper and its claims.

    Attributes
    ----------
    name : str
        Of its module, its files and its page.
    title, source : str
        Title, and authors with venue.
    """

    name: str
    title: str
    source: str
    claims: tuple[Claim, ...]
    unchecked: tuple[Unchecked, ...] = ()

    @classmethod
    def of(cls, module: ModuleType) -> "Paper":
        """The paper that a module describes by TITLE, SOURCE, CLAIMS and UNCHECKED."""
        name = module.__name__.rsplit(".", 1)[-1].strip("_").replace("_", "-")
        return cls(name, module.TITLE, module.SOURCE, tuple(module.CLAIMS), module.UNCHECKED)


@dataclass(frozen=True)
class Result:
    """One measured claim."""

    values: Values
    verdict: str
    seconds: float
    date: str
    commit: str

    def mean(self, key: str) -> float:
        return float(np.mean(self.values[key]))


@dataclass
class Results:
    """What was measured of one paper: machine and versions of the last run, and all claims."""

    machine: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, Result] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Results":
        """A file that `write` made, or nothing if there is none."""
        if not path.exists():
            return cls()
        stored = json.loads(path.read_text("utf-8"))
        return cls(
            stored["machine"], {name: Result(**each) for name, each in stored["claims"].items()}
        )

    def write(self, path: Path) -> None:
        """One line for each claim, so that differences can be read."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(vars(each))}" for name, each in self.claims.items()
        )
        head = json.dumps(self.machine)
        text = f'{{"machine": {head},\n"claims": {{\n{lines}\n}}}}\n'
        written = path.with_suffix(".part")
        written.write_text(text, "utf-8")
        os.replace(written, path)  # an interrupt leaves the file before or after, not half


def rounded(values: Values) -> Values:
    """Six digits are enough for a page, and the same on most machines."""
    return {key: [float(f"{value:.6g}") for value in found] for key, found in values.items()}
