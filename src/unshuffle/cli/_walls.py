"""What layouts and collages write: a page, a sheet, or a table of positions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._color import MAX_SHEET_SIDE, SHEET_SUFFIXES
from unshuffle.cli._console import BadInput, say
from unshuffle.cli._writing import Written, save_somewhere, write_skipped
from unshuffle.images import grid_sheet, save_sheet, write_page
from unshuffle.layout import Positions

PAGE_SUFFIXES = (".html", ".htm")
TABLE_SUFFIXES = (".csv", ".json")
WALL_SUFFIXES = (*PAGE_SUFFIXES, *SHEET_SUFFIXES, *TABLE_SUFFIXES)
LEAST_PAGE_TILE = 8


@dataclass(frozen=True)
class Wall:
    """A finished layout, with all that can be written of it.

    Attributes
    ----------
    positions : Positions
        Where each item stands.
    details : mapping
        What a JSON file says ahead of the positions.
    title : str
        Heading of a page.
    images : ndarray of shape (n_items, height, width, 3) or None
        Pictures of the items, where there are any.
    tile : int
        Height of a picture in pixels.
    gap : int
        Pixels between pictures on a sheet.
    captions : list of str or None
        What a page says about each.
    previews : list of ndarray or None
        Larger pictures for a page.
    spreadsheet : bool
        Whether names in a CSV file are escaped for spreadsheets.
    """

    positions: Positions
    details: Mapping[str, Any]
    title: str
    images: NDArray[np.uint8] | None
    tile: int
    gap: int = 2
    captions: list[str] | None = None
    previews: list[NDArray[np.uint8]] | None = None
    spreadsheet: bool = False

    def save(self, path: Path) -> None:
        """Write one file; its suffix says what."""
        suffix = path.suffix.lower()
        if suffix in TABLE_SUFFIXES or self.images is None:
            self.positions.save(path, details=self.details, spreadsheet=self.spreadsheet)
        elif suffix in PAGE_SUFFIXES:
            write_page(
                path,
                self.images,
                self.positions.grid,
                self.positions.names,
                title=self.title,
                captions=self.captions,
                tile=max(self.tile, LEAST_PAGE_TILE),
                previews=self.previews,
            )
        else:
            sheet = grid_sheet(self.images, self.positions.grid, tile=self.tile, gap=self.gap)
            save_sheet(sheet, path)


def wants_pictures(outputs: Sequence[Path]) -> bool:
    """Tell whether any output shows pictures."""
    return any(path.suffix.lower() not in TABLE_SUFFIXES for path in outputs)


def wants_page(outputs: Sequence[Path]) -> bool:
    """Tell whether any output is a page."""
    return any(path.suffix.lower() in PAGE_SUFFIXES for path in outputs)


def check_drawable(outputs: Sequence[Path], shape: tuple[int, ...]) -> None:
    """Refuse a grid that has no room on a sheet before it is laid out, not after."""
    sheet = next((path for path in outputs if path.suffix.lower() in SHEET_SUFFIXES), None)
    if sheet is not None and max(shape) > MAX_SHEET_SIDE:
        raise BadInput(
            f"A grid of {shape[0]:,} x {shape[1]:,} cells is too large for {sheet}: a sheet has "
            f"at most {MAX_SHEET_SIDE:,} pixels along a side. Give a smaller shape, or write a "
            "page or the positions."
        )


def write_all(wall: Wall, outputs: Sequence[Path]) -> list[Written]:
    """Write every output and return where each went."""
    return [save_somewhere(path, wall.save) for path in outputs]


def describe_all(
    written: Sequence[Written], skipped: list[tuple[str, str]], *, spreadsheet: bool
) -> dict[str, Any]:
    """Where the outputs are, fit for JSON, and the list of skipped files written beside them."""
    return {
        "outputs": [None if each.place is None else str(each.place) for each in written],
        "not_in_place": [each.row() for each in written if not each.in_place],
        "skipped_list": write_skipped(written, {"": skipped}, spreadsheet=spreadsheet) or None,
    }


def show_all(written: Sequence[Written], skipped_list: str | None) -> None:
    """Print where each output went; errors are said elsewhere, also if asked to be quiet."""
    for each in written:
        if each.place is not None:
            suffix = each.asked.suffix.lower()
            kind = "Page, to open in a browser" if suffix in PAGE_SUFFIXES else "Sheet"
            say(f"{'Positions' if suffix in TABLE_SUFFIXES else kind}: {each.place}")
    if skipped_list is not None:
        say(f"Skipped files, all of them: {skipped_list}")
