"""One arrangement of pictures on a wall: the settings, who is where, and who stays."""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle.encoders import has_content
from unshuffle.images import read_mask, text_mask
from unshuffle.layout import rectangle_for
from unshuffle.web._http.refusal import Refused

Grid = NDArray[np.int32]
EMPTY, OUTSIDE = -1, -2
SHAPES = ("rectangle", "torus", "letters", "mask")
FEATURES = ("color", "texture", "words", "content")
QUALITIES = ("fast", "balanced", "best")
MOST_CELLS = 1_000_000
_LONGEST_TEXT = 200


@dataclass(frozen=True)
class Settings:
    """What the user chooses."""

    shape: str = "rectangle"
    rows: int | None = None
    columns: int | None = None
    letters: str = ""
    mask: str = ""  # what the mask is called
    mask_file: str = ""  # what its copy is called
    invert: bool = False
    features: tuple[str, ...] = ("color",)
    quality: str = "balanced"

    def changed(self, given: Any) -> "Settings":
        """With some settings from a request, each checked."""
        if not isinstance(given, dict):
            raise Refused("Give settings by name.")
        checks = {
            "shape": lambda value: _one_of(value, SHAPES, "shape"),
            "rows": lambda value: _count(value, "rows"),
            "columns": lambda value: _count(value, "columns"),
            "letters": _text,
            "invert": lambda value: _one_of(value, (True, False), "invert"),
            "features": check_features,
            "quality": lambda value: _one_of(value, QUALITIES, "quality"),
        }
        for name in given:
            if name not in checks:
                raise Refused(f"There is no setting {str(name)[:40]!r}.")
        found = replace(self, **{name: checks[name](value) for name, value in given.items()})
        if found.shape == "letters" and not found.letters.strip():
            raise Refused("Type the letters that the pictures are to form.", "letters")
        if found.shape == "mask" and not found.mask_file:
            raise Refused("Choose a picture of the shape first.", "mask")
        return found

    @classmethod
    def from_json(cls, data: Any) -> "Settings":
        """From the state file, each checked as if the page had sent it."""
        given = dict(data)
        mask, mask_file = (str(given.pop(name)) for name in ("mask", "mask_file"))
        if not has_content() and isinstance(given["features"], list):
            given["features"] = [each for each in given["features"] if each != "content"]
            given["features"] = given["features"] or ["color"]
        return cls(mask=mask[:_LONGEST_TEXT], mask_file=mask_file).changed(given)

    def describe(self) -> dict[str, Any]:
        """For the page, which does not know files."""
        return {name: value for name, value in asdict(self).items() if name != "mask_file"}

    def has_shape_of(self, other: "Settings") -> bool:
        """Whether both put the same number of pictures into the same cells."""
        return replace(self, features=other.features, quality=other.quality) == other

    def cells(self, n_items: int, masks: Path) -> NDArray[np.bool_]:
        """Cells for so many pictures, those of a rectangle or inside a shape."""
        try:
            if self.shape == "letters":
                return text_mask(self.letters, n_items)
            if self.shape == "mask":
                return read_mask(masks / self.mask_file, n_items, invert=self.invert)
        except ValueError as error:
            message = str(error).replace(str(masks / self.mask_file), self.mask or "The picture")
            raise Refused(message, self.shape) from error
        rows, columns = self._rectangle(n_items)
        if rows * columns < n_items:
            raise Refused(
                f"{rows:,} rows and {columns:,} columns have {rows * columns:,} cells for "
                f"{n_items:,} pictures. Enter more, or leave one of the two empty.",
                "rows" if self.rows is not None else "columns",
            )
        if rows * columns > MOST_CELLS:
            raise Refused(f"A wall has at most {MOST_CELLS:,} cells. Enter fewer.", "rows")
        return np.ones((rows, columns), dtype=bool)

    def _rectangle(self, n_items: int) -> tuple[int, int]:
        if self.rows is not None:
            return self.rows, self.columns or -(-n_items // self.rows)
        if self.columns is not None:
            return -(-n_items // self.columns), self.columns
        return rectangle_for(n_items)


def _one_of(value: Any, choices: Sequence[Any], name: str) -> Any:
    if value not in choices or isinstance(value, bool) != isinstance(choices[0], bool):
        raise Refused(f"Choose {', '.join(map(str, choices))}.", name)
    return value


def _count(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_CELLS:
        raise Refused(f"Enter a whole number of {name}, or leave it empty.", name)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Refused("Type letters.", "letters")
    if len(value) > _LONGEST_TEXT:
        raise Refused(f"Type at most {_LONGEST_TEXT} letters.", "letters")
    return value


def check_features(value: Any, known: Sequence[str] = FEATURES) -> tuple[str, ...]:
    """What pictures are compared by, each once and in the usual order."""
    if not isinstance(value, list) or not value:
        raise Refused("Choose at least one thing to compare pictures by.", "features")
    for each in value:
        _one_of(each, known, "features")
    if "content" in value and not has_content():
        raise Refused(CONTENT_MISSING, "features")
    return tuple(each for each in known if each in value)


CONTENT_MISSING = "Content needs pip install 'unshuffle[content]'."


def describe_content() -> dict[str, Any]:
    """Whether pictures can be compared by content here, and if not, why."""
    has = has_content()
    return {"available": has, "why": "" if has else CONTENT_MISSING}


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Pictures on a wall; never changed, so that an earlier one can come back."""

    settings: Settings
    grid: Grid  # slot in each cell, EMPTY or OUTSIDE
    frozen: frozenset[int] = frozenset()  # slots that stay where they are
    out: frozenset[int] = frozenset()  # slots that the user left out
    seed: int = 0
    score: float | None = None
    settled: bool = False  # whether nothing is left to do
    raw: bool = False  # whether it says nothing where the pictures are, except for frozen ones
    label: str = ""  # what the user did to get here

    @property
    def placed(self) -> NDArray[np.intp]:
        """Slots on the wall."""
        return np.sort(self.grid[self.grid >= 0]).astype(np.intp)

    def cell_of(self, slot: int) -> int:
        """Cell of a picture, counted row by row; -1 if it is not on the wall."""
        found = np.flatnonzero(self.grid.ravel() == slot)
        return int(found[0]) if found.size else -1

    def swapped(self, slot: int, cell: int) -> "Arrangement":
        """With a picture in another cell, and the one from there in its place."""
        grid = self.grid.copy()
        flat, before = grid.reshape(-1), self.cell_of(slot)
        if before >= 0:
            flat[before] = flat[cell]
        flat[cell] = slot
        return replace(self, grid=grid)

    def without(self, slots: frozenset[int]) -> "Arrangement":
        """With empty cells where these pictures were."""
        grid = self.grid.copy()
        grid[np.isin(grid, sorted(slots))] = EMPTY
        return replace(self, grid=grid, frozen=self.frozen - slots)

    def poured(self, slots: NDArray[np.intp], cells: NDArray[np.bool_]) -> "Arrangement":
        """On other cells, in the same order; frozen ones stay where there still is such a cell.

        A place is a row and a column. Those whose place is gone are released.
        """
        order = self.grid[self.grid >= 0].astype(np.intp)
        both = np.concatenate([order[np.isin(order, slots)], np.setdiff1d(slots, order)])
        places = np.argwhere(np.isin(self.grid, np.intersect1d(sorted(self.frozen), slots)))
        places = places[(places < cells.shape).all(axis=1)]
        rows, columns = places[cells[tuple(places.T)]].T
        kept = self.grid[rows, columns]
        grid = in_order(both[:0], cells)
        grid[rows, columns] = kept
        others = both[~np.isin(both, kept)]
        grid.reshape(-1)[np.flatnonzero(grid == EMPTY)[: len(others)]] = others
        return replace(self, grid=grid, frozen=frozenset(kept.tolist()), raw=True)

    def extended(self, slots: Sequence[int]) -> "Arrangement":
        """With more pictures: in empty cells, then in new rows below."""
        known = set(self.placed.tolist())
        new = [slot for slot in slots if slot not in known]
        columns = self.grid.shape[1] or max(1, round(len(new) ** 0.5))
        n_missing = len(new) - int((self.grid == EMPTY).sum())
        more = np.full((max(0, -(-n_missing // columns)), columns), EMPTY, dtype=np.int32)
        grid = np.concatenate([self.grid.reshape(-1, columns), more])
        grid.reshape(-1)[np.flatnonzero(grid.ravel() == EMPTY)[: len(new)]] = new
        return replace(self, grid=grid)

    def renumbered(self, slots: NDArray[np.intp]) -> "Arrangement":
        """With other numbers for the slots; pictures whose number is -1 are gone."""
        number = np.append(slots, [OUTSIDE, EMPTY]).astype(np.int32)  # the last is that of -1
        new = frozenset(range(len(slots)))

        def some(of: frozenset[int]) -> frozenset[int]:
            return frozenset(int(slots[s]) for s in of & new if slots[s] >= 0)

        grid = np.where(self.grid < len(slots), self.grid, EMPTY)
        return replace(self, grid=number[grid], frozen=some(self.frozen), out=some(self.out))

    def to_json(self) -> dict[str, Any]:
        """Everything, for the state file."""
        packed = zlib.compress(self.grid.astype("<i4").tobytes())
        return {
            "label": self.label,
            "settings": asdict(self.settings),
            "shape": list(self.grid.shape),
            "grid": base64.b64encode(packed).decode("ascii"),
            "frozen": sorted(self.frozen),
            "out": sorted(self.out),
            "seed": self.seed,
            "score": self.score,
            "settled": self.settled,
            "raw": self.raw,
        }

    @classmethod
    def from_json(cls, data: Any) -> "Arrangement":
        """From the state file; raises nearly anything if it is damaged."""
        rows, columns = map(int, data["shape"])
        if rows < 0 or columns < 0 or rows * columns > MOST_CELLS * 4:
            raise ValueError("the wall has no such shape")
        n_bytes = 4 * rows * columns
        packed = zlib.decompressobj().decompress(base64.b64decode(data["grid"]), n_bytes + 1)
        grid = np.frombuffer(packed, "<i4").reshape(rows, columns).astype(np.int32)
        held = grid[grid >= 0]
        if len(np.unique(held)) < len(held) or (grid < OUTSIDE).any():
            raise ValueError("a picture is in two places")
        score = None if data["score"] is None else float(data["score"])
        if score is not None and not isfinite(score):
            raise ValueError("its score is not a number")
        placed = frozenset(held.tolist())
        return cls(
            Settings.from_json(data["settings"]),
            grid,
            frozenset(map(int, data["frozen"])) & placed,
            frozenset(map(int, data["out"])) - placed,
            int(data["seed"]) % 2**31,
            score,
            bool(data["settled"]),
            bool(data["raw"]),
            str(data["label"]),
        )


def in_order(slots: NDArray[np.intp], cells: NDArray[np.bool_]) -> Grid:
    """Pictures in their order in the cells."""
    grid = np.where(cells, EMPTY, OUTSIDE).astype(np.int32)
    grid.reshape(-1)[np.flatnonzero(cells)[: len(slots)]] = slots
    return grid
