"""Results that reach the disk: nothing of the user's is lost, and nothing is lost unsaid."""

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from unshuffle._files import check_output_path, list_files
from unshuffle._saving import csv_text, encode_text, replace_file
from unshuffle.cli import NOT_IN_PLACE
from unshuffle.cli._console import BadInput, complain, warn
from unshuffle.cli._inputs import TEXT_SUFFIXES
from unshuffle.images import SUFFIXES, read_image

SKIPPED_COLUMNS = ("collection", "name", "reason")


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
    """What became of an output.

    Attributes
    ----------
    asked : Path
        Where it was asked for.
    place : Path or None
        Where it is; None if it could not be written anywhere.
    reason : str
        Why it is not where it was asked for.
    """

    asked: Path
    place: Path | None
    reason: str = ""

    @property
    def in_place(self) -> bool:
        """Whether it is where it was asked for."""
        return self.place == self.asked

    def row(self) -> dict[str, str | None]:
        """The same for JSON."""
        kept = None if self.place is None else str(self.place)
        return {"asked": str(self.asked), "kept": kept, "reason": self.reason}


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


def complain_of(written: Sequence[Written]) -> None:
    """Print, quiet or not, which results are not where they were asked for, and where they are."""
    for each in written:
        if each.in_place:
            continue
        old = " What is there is the old file." if each.asked.exists() else ""
        where = "could not be kept" if each.place is None else f"was kept in {each.place}"
        reason = each.reason.rstrip(".")
        complain(f"{each.asked} could not be written: {reason}.{old} The result {where}.")


def exit_code(written: Sequence[Written], interrupted: bool = False) -> int:
    """0, 130 after Ctrl-C, or a status of its own if a result is not where it should be."""
    if not all(each.in_place for each in written):
        return NOT_IN_PLACE
    return 130 if interrupted else 0


def check_outputs(
    outputs: Sequence[tuple[Path, Sequence[str]]],
    inputs: Sequence[Path | None],
    *,
    recursive: bool = True,
) -> None:
    """Refuse, before the work starts, what cannot be written or would destroy an input.

    Parameters
    ----------
    outputs : sequence of (Path, sequence of str)
        Each output, and the suffixes that it may have.
    inputs : sequence of Path or None
        Files and folders that are read.
    recursive : bool, default=True
        Whether sub-folders of a folder are read too.
    """
    seen: set[str] = set()
    lists = _skipped_lists(outputs, inputs)
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


def check_spreadsheet(spreadsheet: bool, outputs: Sequence[Path]) -> None:
    """Refuse to escape names for a spreadsheet where no output is one."""
    if spreadsheet and not any(path.suffix.lower() == ".csv" for path in outputs):
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


def skipped_list(output: Path) -> Path:
    """Where the files that were skipped are listed: beside the first output."""
    return output.with_name(f"{output.stem}.skipped.csv")


def not_ours(
    skipped: list[tuple[str, str]], folder: Path, outputs: Sequence[Path]
) -> list[tuple[str, str]]:
    """Files of a folder that were skipped, but for outputs of an earlier run like this one."""
    ours = {os.path.realpath(each) for each in outputs}
    ours |= {os.path.realpath(skipped_list(each)) for each in outputs[:1]}
    return [entry for entry in skipped if os.path.realpath(folder / entry[0]) not in ours]


def _skipped_lists(
    outputs: Sequence[tuple[Path, Sequence[str]]], inputs: Sequence[Path | None]
) -> list[Path]:
    reads_folder = any(each is not None and each.is_dir() for each in inputs)
    return [skipped_list(output) for output, _ in outputs[:1]] if reads_folder else []


def write_skipped(
    written: Sequence[Written],
    skipped: dict[str, list[tuple[str, str]]],
    *,
    spreadsheet: bool,
) -> str:
    """List the skipped files of each collection beside the first output; "" if there are none."""
    place = next((each.place for each in written if each.place is not None), None)
    if place is None:
        return ""
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
            return ""
        if not ours:
            warn(f"{path} is a file of yours, so the list of skipped files was not saved.")
            return ""
        replace_file(path, encode_text(csv_text(SKIPPED_COLUMNS, rows, spreadsheet=spreadsheet)))
    except OSError as error:
        warn(f"The skipped files could not be listed in {path}: {error.strerror or error}.")
        return ""
    return str(path)


def _first_line(path: Path) -> str:
    with suppress(OSError), open(path, "rb") as file:
        return file.readline(200).decode("utf-8", "replace").rstrip()
    return ""
