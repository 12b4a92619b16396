"""Output files: checks before the work, safe writing after it, and the final report."""

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
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.color import MAX_SHEET_SIDE, SHEET_SUFFIXES
from unshuffle._files.documents import TEXT_SUFFIXES
from unshuffle._files.folders import PAGE_MARK, check_page_folder
from unshuffle._files.paths import BadInput, check_output_path, list_files
from unshuffle._files.saving import csv_pieces, encode_text, replace_file
from unshuffle._pictures.decoding import SUFFIXES
from unshuffle.cli import NOT_IN_PLACE
from unshuffle.cli._app import print_error, print_output, progress_bar, say, warn
from unshuffle.cli._inputs import skipped_list_path, trust_path
from unshuffle.cli._options import CollageOptions, LayoutOptions, MatchOptions, MorphOptions
from unshuffle.images import grid_sheet, read_image, save_sheet, write_page
from unshuffle.layout import Positions

SKIPPED_COLUMNS = ("collection", "name", "reason")
# By this a report of trust is recognized.
TRUST_KEY = b'"expected_accuracy"'
# In the first bytes of outputs that are written where the user names none.
_MARKS = {
    "pairs.csv": b"index_x,name_x,index_y,name_y,confidence",
    "wall.csv": b"item,name,row,column,cell",
    "wall.html": PAGE_MARK,
}
# A name without a suffix is that of a folder.
PAGE_SUFFIXES = (".html", ".htm", "")
TABLE_SUFFIXES = (".csv", ".json")
PAIRS_SUFFIXES = (*TABLE_SUFFIXES, ".parquet")
# These have no place for the report of trust, which is written beside them.
WITHOUT_REPORT = (".csv", ".parquet")
PICTURE_SUFFIXES = (*PAGE_SUFFIXES, *SHEET_SUFFIXES)
WALL_SUFFIXES = (*PICTURE_SUFFIXES, *TABLE_SUFFIXES)


@contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Keep a second Ctrl-C from interrupting the writing."""
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
    """An output: the path asked for, its actual place if any, and why the two differ."""

    asked: Path
    place: Path | None
    reason: str = ""

    @property
    def in_place(self) -> bool:
        """Whether it is at the path asked for."""
        return self.place == self.asked


def save_with_fallback(path: Path, save: Callable[[Path], object]) -> Written:
    """Save to `path`, else to the temporary folder: the result may have taken hours."""
    try:
        save(path)
        return Written(path, path)
    except (OSError, ValueError, MemoryError) as error:
        # The path was checked before the work, but a disk may fill up or a share go away.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    try:
        folder = Path(tempfile.mkdtemp(prefix="unshuffle-"))
    except OSError:
        return Written(path, None, reason)
    kept = folder / Path(os.path.abspath(path)).name
    try:
        save(kept)
        return Written(path, kept, reason)
    except (OSError, ValueError, MemoryError):
        with suppress(OSError):
            folder.rmdir()
        return Written(path, None, reason)


def describe_outputs(written: Sequence[Written]) -> dict[str, Any]:
    """Places of the outputs, ready for JSON."""
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
    """Print the report as JSON with `rows`, or as text with `show`, and return the exit code."""
    # Failed outputs and, at the end, the warning are printed even with --quiet.
    for each in written:
        if not each.in_place:
            old = each.asked / "index.html" if each.asked.is_dir() else each.asked
            still = f" The old {'wall' if old != each.asked else 'file'} is still there."
            still = still if old.exists() else ""
            where = "could not be kept" if each.place is None else f"was kept in {each.place}"
            reason = each.reason.rstrip(".")
            print_error(f"{each.asked} could not be written: {reason}.{still} The result {where}.")
    try:
        if options.as_json:
            print_output(json.dumps({**report, **rows}, allow_nan=False))
        elif not options.quiet:
            show()
    finally:
        if warning:
            warn(warning)
    if not all(each.in_place for each in written):
        return NOT_IN_PLACE
    return 130 if report.get("interrupted") else 0


def default_output(name: str) -> Path:
    """The output where the user names none, which replaces only what looks like one of ours."""
    path = Path(name)
    mark = _MARKS.get(path.name)
    # Other formats hold nothing to know them by.
    if mark is not None and path.is_file() and mark not in _first_bytes(path):
        raise BadInput(
            f"{path} is there, does not look like a result of unshuffle and would be lost. Give "
            f"-o with another name, or -o {path} to replace it."
        )
    return path


def _first_bytes(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(4096)


def check_outputs(
    outputs: Sequence[tuple[Path, Sequence[str]]],
    inputs: Sequence[Path | None],
    *,
    recursive: bool = True,
    spreadsheet: bool = False,
    companions: Sequence[Path] = (),
) -> None:
    """Refuse outputs, each with its suffixes, that cannot be written or would destroy an input.

    `companions` are files that are written beside the outputs without being asked for.
    """
    seen: set[str] = set()
    reads_folder = any(each is not None and each.is_dir() for each in inputs)
    reserved = {os.path.realpath(each): "the report of trust" for each in companions}
    lists = [skipped_list_path(output) for output, _ in outputs[:1]] if reads_folder else []
    reserved |= {os.path.realpath(each): "the list of skipped files" for each in lists}
    for output, suffixes in outputs:
        if "" in suffixes and not output.suffix:
            check_page_folder(output)
        else:
            check_output_path(output, [each for each in suffixes if each])
        place = os.path.realpath(output)
        if place in seen:
            raise BadInput(f"{output} is asked for twice. Give each output its own name.")
        if place in reserved:
            raise BadInput(f"{output} is reserved for {reserved[place]}. Give another name.")
        seen.add(place)
    for output in (*(output for output, _ in outputs), *companions, *lists):
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
            "Leave it out, or add -o with a .csv file."
        )


def _is_same(one: Path, other: Path) -> bool:
    """Whether two names lead to one file, by links of either kind."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    return one.exists() and other.exists() and one.samefile(other)


def _check_not_among(output: Path, folder: Path, recursive: bool) -> None:
    """Refuse an output that is, or would be, read from `folder`."""
    place, root = Path(os.path.realpath(output)), Path(os.path.realpath(folder))
    parts = place.relative_to(root).parts if place.is_relative_to(root) else ()
    hidden = any(part.startswith(".") for part in parts)
    if not output.suffix and (root.is_relative_to(place) or (parts and not hidden and recursive)):
        raise BadInput(
            f"{output} is a folder of pages, and {folder} is an input; one is inside the other. "
            "Write it to another folder."
        )
    if parts and not hidden and (recursive or len(parts) == 1):
        suffixes = {output.suffix.lower(), place.suffix.lower()}
        if suffixes & {*SUFFIXES, *TEXT_SUFFIXES} or _is_picture(place):
            raise BadInput(
                f"{output} is in the input folder {folder}, where it would replace an input or be "
                "read as one. Write it to another folder."
            )
    # A hard link to an input, in any folder.
    if place.is_file() and place.stat().st_nlink > 1:
        for name, path in list_files(folder, recursive=recursive).files:
            if path.is_file() and os.path.samefile(path, place):
                raise BadInput(
                    f"{output} is the same file as {name} in {folder}, an input, and would be "
                    "lost. Give another name."
                )


def _is_picture(path: Path) -> bool:
    """Whether an existing file is read as a picture, whatever its name."""
    try:
        read_image(path, size=(1, 1))
    except ValueError:
        return False
    return True


def write_skipped(
    written: Sequence[Written], skipped: dict[str, list[tuple[str, str]]], *, spreadsheet: bool
) -> str | None:
    """List the skipped files of each collection beside the first output."""
    place = next((each.place for each in written if each.place is not None), None)
    if place is None:
        return None
    path = skipped_list_path(place)
    heading = ",".join(SKIPPED_COLUMNS)
    ours = not path.exists() or (path.is_file() and _first_line(path) == heading)
    rows = [(side, *entry) for side, entries in skipped.items() for entry in entries]
    try:
        if not rows:
            if ours:
                # The list of an earlier run would be mistaken for one of this run.
                path.unlink(missing_ok=True)
            return None
        if not ours:
            warn(f"{path} is not a list of skipped files, so it was not overwritten.")
            return None
        replace_file(path, csv_pieces(SKIPPED_COLUMNS, rows, spreadsheet=spreadsheet))
    except OSError as error:
        warn(f"The skipped files could not be listed in {path}: {error.strerror or error}.")
        return None
    return str(path)


def write_trust(pairs: Written, report: Mapping[str, Any]) -> str | None:
    """Write the report beside pairs in a file that has no place for it."""
    if pairs.place is None or pairs.place.suffix.lower() not in WITHOUT_REPORT:
        return None
    path = trust_path(pairs.place)
    try:
        if path.exists() and not (path.is_file() and TRUST_KEY in path.read_bytes()):
            warn(f"{path} is not a report of trust, so it was not overwritten.")
            return None
        replace_file(path, encode_text(json.dumps(report, indent=1, allow_nan=False) + "\n"))
    except OSError as error:
        warn(f"The report of trust could not be written to {path}: {error.strerror or error}.")
        return None
    return str(path)


def _first_line(path: Path) -> str:
    with suppress(OSError):
        return _first_bytes(path)[:200].decode("utf-8", "replace").partition("\n")[0].rstrip()
    return ""


@dataclass(frozen=True)
class WallFolder:
    """A finished layout, as it is written to files."""

    positions: Positions
    details: Mapping[str, Any]  # written to JSON ahead of the positions
    title: str
    options: LayoutOptions | CollageOptions
    # Pictures of the items at a height in pixels, for sheets; None for a table.
    draw: Callable[[int], NDArray[np.uint8]] | None
    page: Mapping[str, Any]  # arguments of `write_page`
    originals: Path | None = None  # folder of the files that a page links to
    tile: int = 32  # height of the pictures on a sheet, unless the user asks for another
    gap: int = 2  # pixels between them

    def save(self, path: Path) -> None:
        """Write one file or folder in the format of its suffix."""
        suffix, options = path.suffix.lower(), self.options
        if suffix in TABLE_SUFFIXES or self.draw is None:
            self.positions.save(path, details=self.details, spreadsheet=options.spreadsheet)
        elif suffix in PAGE_SUFFIXES:
            links = None
            if self.originals is not None:
                links = _relative_links(self.page["names"], self.originals, path)
            with progress_bar("Writing", show=not options.quiet) as advance:
                write_page(
                    path,
                    **self.page,
                    title=self.title,
                    links=links,
                    tile=options.tile,
                    n_jobs=options.jobs,
                    on_progress=lambda done, total: advance(done / max(total, 1), f"{done:,}"),
                )
        else:
            tile = options.tile or self.tile
            sheet = grid_sheet(self.draw(tile), self.positions.grid, tile=tile, gap=self.gap)
            save_sheet(sheet, path)


def _relative_links(names: Sequence[str], folder: Path, page: Path) -> list[str]:
    """Addresses of the files of a folder as seen from a page."""
    start, here = os.path.realpath(folder), os.path.realpath(page.parent if page.suffix else page)
    try:
        way = quote(os.fsencode(Path(os.path.relpath(start, here)).as_posix()))
    except ValueError:  # another drive, on Windows
        way = Path(start).as_uri()
    return [f"{way}/{quote(os.fsencode(name))}" for name in names]


def any_with_suffix(outputs: Sequence[Path], suffixes: Sequence[str]) -> bool:
    """Whether any output has one of these suffixes."""
    return any(path.suffix.lower() in suffixes for path in outputs)


def check_drawable(outputs: Sequence[Path], shape: tuple[int, ...]) -> None:
    """Refuse a grid that is too large for a sheet, before it is laid out."""
    sheet = next((path for path in outputs if path.suffix.lower() in SHEET_SUFFIXES), None)
    if sheet is not None and max(shape) > MAX_SHEET_SIDE:
        raise BadInput(
            f"A grid of {shape[0]:,} x {shape[1]:,} cells is too large for {sheet}: a sheet has "
            f"at most {MAX_SHEET_SIDE:,} pixels along a side. Give a smaller shape, or write a "
            "page or the positions."
        )


def deliver_wall(
    wall: WallFolder,
    outputs: Sequence[Path],
    skipped: list[tuple[str, str]],
    show: Callable[[dict[str, Any]], None],
) -> int:
    """Write a wall to every output, print the report and return the exit code."""
    options = wall.options
    written = [save_with_fallback(path, wall.save) for path in outputs]
    listed = write_skipped(written, {"": skipped}, spreadsheet=options.spreadsheet)
    report = {**wall.details, **describe_outputs(written), "skipped_list": listed}
    rows = {"positions": wall.positions.rows()} if options.as_json else {}

    def show_all() -> None:
        show(report)
        for each in written:
            if each.place is not None:
                suffix = each.asked.suffix.lower()
                kind = "Page, to open in a browser" if suffix in PAGE_SUFFIXES else "Sheet"
                place = each.place if suffix else each.place / "index.html"
                say(f"{'Positions' if suffix in TABLE_SUFFIXES else kind}: {place}")
        if listed is not None:
            say(f"Skipped files: {listed}")

    return deliver(options, written, report, rows, show_all)
