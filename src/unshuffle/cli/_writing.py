"""Results that reach the disk: nothing of the user's is lost, and nothing is lost unsaid."""

import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._color import MAX_SHEET_SIDE, SHEET_SUFFIXES
from unshuffle._files import check_output_path, list_files
from unshuffle._saving import csv_text, encode_text, replace_file
from unshuffle.cli import NOT_IN_PLACE
from unshuffle.cli._app import BadInput, answer, complain, say, warn
from unshuffle.cli._inputs import TEXT_SUFFIXES, skipped_list
from unshuffle.cli._options import CollageOptions, LayoutOptions, MatchOptions, MorphOptions
from unshuffle.images import SUFFIXES, grid_sheet, read_image, save_sheet, write_page
from unshuffle.layout import Positions

SKIPPED_COLUMNS = ("collection", "name", "reason")
PAGE_SUFFIXES = (".html", ".htm")
TABLE_SUFFIXES = (".csv", ".json")
PICTURE_SUFFIXES = (*PAGE_SUFFIXES, *SHEET_SUFFIXES)
WALL_SUFFIXES = (*PICTURE_SUFFIXES, *TABLE_SUFFIXES)
LEAST_PAGE_TILE = 8


@contextmanager
def unbothered() -> Iterator[None]:
    """Let a second Ctrl-C not cut the writing short."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@dataclass(frozen=True)
class Written:
    """Where an output was asked for, where it is, if anywhere, and why it is not in place."""

    asked: Path
    place: Path | None
    reason: str = ""

    @property
    def in_place(self) -> bool:
        """Whether it is where it was asked for."""
        return self.place == self.asked


def save_somewhere(path: Path, save: Callable[[Path], object]) -> Written:
    """Save under `path`, in the temporary folder if need be: results may have taken hours."""
    try:
        save(path)
        return Written(path, path)
    except (OSError, ValueError, MemoryError) as error:
        # The disk is full, or a share went away, since it was tried before the work began.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    try:
        folder = Path(tempfile.mkdtemp(prefix="unshuffle-"))
    except OSError:
        return Written(path, None, reason)
    try:
        save(folder / path.name)
        return Written(path, folder / path.name, reason)
    except (OSError, ValueError, MemoryError):
        with suppress(OSError):
            folder.rmdir()
        return Written(path, None, reason)


def places(written: Sequence[Written]) -> dict[str, Any]:
    """Where the outputs are, fit for JSON."""
    kept = [None if each.place is None else str(each.place) for each in written]
    missing = [
        {"asked": str(each.asked), "kept": place, "reason": each.reason}
        for each, place in zip(written, kept, strict=True)
        if not each.in_place
    ]
    return {"outputs": kept, "not_in_place": missing}


def deliver(
    options: MatchOptions | LayoutOptions | CollageOptions | MorphOptions,
    written: Sequence[Written],
    report: dict[str, Any],
    rows: dict[str, Any],
    show: Callable[[], None],
    *,
    warning: str = "",
) -> int:
    """Say what came out and return the exit code: 0, 130 after Ctrl-C, 3 if not in place.

    Results that are not in place, and the warning, are said whatever is left out; `rows` ends the
    report in JSON, and `show` prints it in lines.
    """
    for each in written:
        if not each.in_place:
            old = " What is there is the old file." if each.asked.exists() else ""
            where = "could not be kept" if each.place is None else f"was kept in {each.place}"
            reason = each.reason.rstrip(".")
            complain(f"{each.asked} could not be written: {reason}.{old} The result {where}.")
    if warning:
        warn(warning)
    if options.as_json:
        # One object and nothing else.
        answer(json.dumps({**report, **rows}, allow_nan=False))
    elif not options.quiet:
        show()
    if not all(each.in_place for each in written):
        return NOT_IN_PLACE
    return 130 if report.get("interrupted") else 0


def check_outputs(
    outputs: Sequence[tuple[Path, Sequence[str]]],
    inputs: Sequence[Path | None],
    *,
    recursive: bool = True,
    spreadsheet: bool = False,
) -> None:
    """Refuse, before the work starts, what cannot be written or would destroy an input.

    Each output comes with the suffixes that it may have.
    """
    seen: set[str] = set()
    reads_folder = any(each is not None and each.is_dir() for each in inputs)
    lists = [skipped_list(output) for output, _ in outputs[:1]] if reads_folder else []
    for output, suffixes in outputs:
        check_output_path(output, suffixes)
        place = os.path.realpath(output)
        if place in seen:
            raise BadInput(f"{output} is asked for twice. Give each output a name of its own.")
        if place in {os.path.realpath(each) for each in lists}:
            raise BadInput(f"{output} is kept for the list of skipped files. Give another name.")
        seen.add(place)
    for output in (*(output for output, _ in outputs), *lists):
        for source in inputs:
            if source is None or not source.exists():
                continue
            if source.is_dir():
                _check_not_among(output, source, recursive)
            elif _is_same(output, source):
                raise BadInput(f"{output} is also an input and would be lost. Give another name.")
    if spreadsheet and not any(path.suffix.lower() == ".csv" for path, _ in outputs):
        raise BadInput(
            "--spreadsheet changes how names are written to .csv, and no output ends in .csv. "
            "Leave it out, or add -o with such a name."
        )


def _is_same(one: Path, other: Path) -> bool:
    """Tell whether two names lead to one file, by links of either kind."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    return one.exists() and other.exists() and one.samefile(other)


def _check_not_among(output: Path, folder: Path, recursive: bool) -> None:
    """Refuse an output that is read from `folder`, or would be the next time."""
    place, root = Path(os.path.realpath(output)), Path(os.path.realpath(folder))
    parts = place.relative_to(root).parts if place.is_relative_to(root) else ()
    hidden = any(part.startswith(".") for part in parts)
    if parts and not hidden and (recursive or len(parts) == 1):
        suffixes = {output.suffix.lower(), place.suffix.lower()}
        if suffixes & {*SUFFIXES, *TEXT_SUFFIXES} or _is_picture(place):
            raise BadInput(
                f"{output} is in the folder it is made from, {folder}, where it would replace an "
                "input or be read as one. Write it to another folder."
            )
    # A second name of an input, wherever it stands.
    if place.is_file() and place.stat().st_nlink > 1:
        for name, path in list_files(folder, recursive=recursive).files:
            if path.is_file() and os.path.samefile(path, place):
                raise BadInput(
                    f"{output} is the same file as {name} in {folder}, an input, and would be "
                    "lost. Give another name."
                )


def _is_picture(path: Path) -> bool:
    """Tell whether an existing file is read as a picture, whatever its name."""
    try:
        read_image(path, size=(1, 1))
    except Exception:
        # Decoders fail in any way they like.
        return False
    return True


def write_skipped(
    written: Sequence[Written], skipped: dict[str, list[tuple[str, str]]], *, spreadsheet: bool
) -> str | None:
    """List the skipped files of each collection beside the first output, if there are any."""
    place = next((each.place for each in written if each.place is not None), None)
    if place is None:
        return None
    path = skipped_list(place)
    heading = ",".join(SKIPPED_COLUMNS)
    ours = not path.exists() or (path.is_file() and _first_line(path) == heading)
    rows = [
        dict(zip(SKIPPED_COLUMNS, (side, *entry), strict=True))
        for side, entries in skipped.items()
        for entry in entries
    ]
    try:
        if not rows:
            if ours:
                # A list of an earlier run would pass for one of this run.
                path.unlink(missing_ok=True)
            return None
        if not ours:
            warn(f"{path} is a file of yours, so the list of skipped files was not saved.")
            return None
        replace_file(path, encode_text(csv_text(SKIPPED_COLUMNS, rows, spreadsheet=spreadsheet)))
    except OSError as error:
        warn(f"The skipped files could not be listed in {path}: {error.strerror or error}.")
        return None
    return str(path)


def _first_line(path: Path) -> str:
    with suppress(OSError), open(path, "rb") as file:
        return file.readline(200).decode("utf-8", "replace").rstrip()
    return ""


@dataclass(frozen=True)
class Wall:
    """A finished layout, with all that can be written of it."""

    positions: Positions
    # What a JSON file says ahead of the positions.
    details: Mapping[str, Any]
    title: str
    # Pictures of the items, where there are any.
    images: NDArray[np.uint8] | None
    tile: int
    # Pixels between pictures on a sheet.
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


def wants(outputs: Sequence[Path], suffixes: Sequence[str]) -> bool:
    """Tell whether any output is of these kinds."""
    return any(path.suffix.lower() in suffixes for path in outputs)


def check_drawable(outputs: Sequence[Path], shape: tuple[int, ...]) -> None:
    """Refuse a grid that has no room on a sheet before it is laid out, not after."""
    sheet = next((path for path in outputs if path.suffix.lower() in SHEET_SUFFIXES), None)
    if sheet is not None and max(shape) > MAX_SHEET_SIDE:
        raise BadInput(
            f"A grid of {shape[0]:,} x {shape[1]:,} cells is too large for {sheet}: a sheet has "
            f"at most {MAX_SHEET_SIDE:,} pixels along a side. Give a smaller shape, or write a "
            "page or the positions."
        )


def describe_all(
    written: Sequence[Written], skipped: list[tuple[str, str]], *, spreadsheet: bool
) -> dict[str, Any]:
    """Where the outputs are, fit for JSON, and the list of skipped files written beside them."""
    listed = write_skipped(written, {"": skipped}, spreadsheet=spreadsheet)
    return {**places(written), "skipped_list": listed}


def show_all(written: Sequence[Written], skipped_list: str | None) -> None:
    """Print where each output went; errors are said elsewhere, also if asked to be quiet."""
    for each in written:
        if each.place is not None:
            suffix = each.asked.suffix.lower()
            kind = "Page, to open in a browser" if suffix in PAGE_SUFFIXES else "Sheet"
            say(f"{'Positions' if suffix in TABLE_SUFFIXES else kind}: {each.place}")
    if skipped_list is not None:
        say(f"Skipped files, all of them: {skipped_list}")
