"""Files of a match to download: tables of the pairs, and a sheet of pictures."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unshuffle.images import matched_sheet, read_image, save_sheet
from unshuffle.matching import Matches
from unshuffle.web._match.pairs import PairStep
from unshuffle.web._match.sides import Side
from unshuffle.web._wall.exports import Maker
from unshuffle.web._work.jobs import Job

_SHEET_HEIGHT, _SHEET_PAIRS = 96, 2000


@dataclass(frozen=True)
class PairTable:
    """What is exported."""

    matches: Matches
    answered: list[int]
    aside: list[list[str]]
    preview: Callable[[int, int], bytes]  # of a side and its item

    @classmethod
    def of(
        cls, now: PairStep, sides: tuple[Side, ...], picture: Callable[[int, int], bytes]
    ) -> "PairTable":
        """The pairs of all items that were read, numbered anew; `picture` takes slots."""
        first, second = (side.ready() for side in sides)
        names = [
            [side.names[slot] for slot in slots]
            for side, slots in zip(sides, (first, second), strict=True)
        ]
        number = np.full(len(sides[1]) + 1, -1, dtype=np.intp)  # the last is that of -1
        number[second] = np.arange(len(second))
        partner = number[now.partner[first]]
        matches = Matches(
            partner,
            np.where(partner >= 0, now.believed[first], 0.0),
            names[0],
            names[1],
            expected_accuracy=np.nan if now.expected is None else now.expected,
            interval=now.interval or (np.nan, np.nan),
            doubts=now.doubts,
        )
        return cls(
            matches,
            np.flatnonzero(np.isin(first, sorted(now.answers))).tolist(),
            [
                [side.names[slot] for slot in sorted(aside)]
                for side, aside in zip(sides, now.aside, strict=True)
            ],
            lambda side, item: picture(side, int((first, second)[side][item])),
        )


def _make_csv(job: Job, folder: Path, table: PairTable) -> tuple[Path, str]:
    """The pairs, which `unshuffle match --frozen` reads too."""
    path = folder / "pairs.csv"
    table.matches.save(path)
    return path, "text/csv; charset=utf-8"


def _make_json(job: Job, folder: Path, table: PairTable) -> tuple[Path, str]:
    """The pairs with what is known of them."""
    path, matches = folder / "pairs.json", table.matches
    estimated = bool(np.isfinite(matches.expected_accuracy))
    details = {
        "expected_accuracy": matches.expected_accuracy if estimated else None,
        "expected_accuracy_interval": list(np.asarray(matches.interval)) if estimated else None,
        "doubts": list(matches.doubts),
        "answered": table.answered,
        "set_aside": {"x": table.aside[0], "y": table.aside[1]},
    }
    matches.save(path, details=details)
    return path, "application/json"


def _make_sheet(job: Job, folder: Path, table: PairTable) -> tuple[Path, str]:
    """Each picture beside its partner."""
    matches = table.matches
    rows = np.flatnonzero(matches.permutation >= 0)
    rows = rows[np.argsort(matches.confidence[rows], kind="stable")][:_SHEET_PAIRS]
    sides = []
    for side, items in enumerate((rows, matches.permutation[rows])):
        some = []
        for done, item in enumerate(items.tolist()):
            job.count(side * len(rows) + done + 1, 2 * len(rows))
            some.append(_thumbnail(folder, table.preview(side, item)))
        sides.append(np.stack(some))
    sheet = matched_sheet(
        sides[0],
        sides[1],
        np.arange(len(rows)),
        confidence=matches.confidence[rows],
        height=_SHEET_HEIGHT,
    )
    path = folder / "pairs.png"
    save_sheet(sheet, path)
    return path, "image/png"


def _thumbnail(folder: Path, content: bytes) -> NDArray[np.uint8]:
    part = folder / "part"
    part.write_bytes(content)
    try:
        return read_image(part, size=(_SHEET_HEIGHT, _SHEET_HEIGHT))[0]
    finally:
        part.unlink()


PAIR_MAKERS: dict[str, Maker] = {"csv": _make_csv, "json": _make_json, "png": _make_sheet}
