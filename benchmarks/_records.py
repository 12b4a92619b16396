"""What was measured: one record for each method on each problem, and the ratios between them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

LARGEST_FALL = 1 / 3  # of a ratio, before `--check` fails


@dataclass(frozen=True)
class Seconds:
    """Wall-clock time of one call: median, shortest and longest of the repeats."""

    median: float
    low: float
    high: float
    repeats: int


@dataclass(frozen=True)
class Record:
    """One method on one problem.

    Attributes
    ----------
    area, problem, size, method : str and int
        What was measured. Problems of one name and several sizes are drawn as one curve.
    kind : {"ours", "peer", "quoted"}
        A peer ran on the same data in the same run. A quoted figure was not measured in this run.
    source : str
        Where a quoted figure is from, and when it was measured.
    seconds : Seconds or None
        None if the method failed.
    megabytes : float or None
        Peak memory above what the process held before; None if not measured.
    quality : dict
        Other measurements by name.
    failed : str
        Why there is no result, or empty.
    """

    area: str
    problem: str
    size: int
    method: str
    kind: str
    seconds: Seconds | None = None
    megabytes: float | None = None
    quality: dict[str, float] = field(default_factory=dict)
    source: str = ""
    failed: str = ""

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Record":
        """A record as `asdict` writes it; its area may be missing."""
        seconds = values.get("seconds")
        return cls(**values | {"seconds": Seconds(**seconds) if seconds else None})


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as a peer one of our methods is, by the shortest of the repeats.

    Other work on the machine disturbs the shortest least.
    """

    problem: str
    size: int
    method: str
    peer: str
    value: float

    @property
    def key(self) -> tuple[str, int, str, str]:
        """What is compared."""
        return self.problem, self.size, self.method, self.peer

    def __str__(self) -> str:
        return f"{self.problem}, {self.size:,}: {self.method} beside {self.peer}"


@dataclass(frozen=True)
class Run:
    """All records of one area.

    Attributes
    ----------
    area, title, about : str
        Its name, and the heading and introduction of its page.
    unit : str
        What sizes count.
    machine : dict
        Machine, versions, date and commit of the run.
    records : tuple of Record
        In the order in which they were measured.
    """

    area: str
    title: str
    about: str
    unit: str
    machine: dict[str, Any]
    records: tuple[Record, ...]

    @classmethod
    def read(cls, path: Path) -> "Run":
        """A file that `write` made."""
        stored = json.loads(path.read_text(encoding="utf-8"))
        records = (Record.of({"area": stored["area"], **each}) for each in stored["records"])
        return cls(**stored | {"records": tuple(records)})

    def write(self, path: Path) -> None:
        """One line for each record, so that differences can be read."""
        lines = []
        for record in self.records:
            kept = {name: value for name, value in asdict(record).items() if value not in ("", {})}
            del kept["area"]
            lines.append("  " + json.dumps(kept))
        head = {name: value for name, value in vars(self).items() if name != "records"}
        entries = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
        entries.append('"records": [\n' + ",\n".join(lines) + "\n]")
        path.write_text("{" + ",\n".join(entries) + "}\n", encoding="utf-8")


def by_problem(records: Iterable[Record]) -> Iterator[tuple[tuple[str, int], list[Record]]]:
    """Records of one problem and size together, in the order in which they were measured."""
    for key, group in groupby(records, key=lambda each: (each.problem, each.size)):
        yield key, list(group)


def ratios(records: Iterable[Record]) -> list[Ratio]:
    """Of each of our methods to each peer that ran on the same problem in the same run."""
    found = []
    for (problem, size), group in by_problem(records):
        timed = [each for each in group if each.seconds is not None]
        for ours in (each for each in timed if each.kind == "ours"):
            for peer in (each for each in timed if each.kind == "peer"):
                value = peer.seconds.low / ours.seconds.low
                found.append(Ratio(problem, size, ours.method, peer.method, value))
    return found


def falls(recorded: Iterable[Record], measured: Iterable[Record]) -> list[tuple[Ratio, Ratio]]:
    """Ratios, before and now, that fell by more than a third."""
    before = {each.key: each for each in ratios(recorded)}
    return [
        (before[now.key], now)
        for now in ratios(measured)
        if now.key in before and now.value < (1 - LARGEST_FALL) * before[now.key].value
    ]
