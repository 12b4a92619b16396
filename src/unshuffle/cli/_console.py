"""What the terminal shows: plain lines, and a progress bar where someone is watching."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    # Loads NumPy, which `unshuffle --help` can do without.
    from unshuffle._progress import State

Advance = Callable[[float, str], None]


def _stand_still(fraction: float, words: str) -> None:
    pass


class BadInput(Exception):
    """Something the user can put right; its message is one line."""


class NotDelivered(Exception):
    """A result that is not where it was asked for; its message is one line."""


def one_line(message: object) -> str:
    """Text on one line that is safe to print: no control characters, no broken encoding."""
    text = " ".join(str(message).split())
    # A file name may hold anything, also sequences that drive the terminal.
    text = "".join(letter if letter.isprintable() else "�" for letter in text)
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding, "replace")


def say(message: str, *, indent: int = 0) -> None:
    """Print one line of the answer."""
    answer(" " * indent + one_line(message))


def answer(text: str) -> None:
    """Print on standard output, or say that it cannot be done."""
    try:
        typer.echo(text)
    except OSError as error:
        # What is left in the buffer would fail again when Python exits.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise NotDelivered(
            f"Nothing can be written to standard output: {error.strerror or error}."
        ) from error


def note(message: str) -> None:
    """Print one line about what is being done, on standard error."""
    typer.echo(one_line(message), err=True)


def warn(message: object) -> None:
    """Print one line that asks for attention, on standard error."""
    typer.echo(typer.style("Warning: ", fg="yellow", bold=True) + one_line(message), err=True)


def complain(message: object) -> None:
    """Print one line that says why there is no answer, on standard error."""
    typer.echo(typer.style("Error: ", fg="red", bold=True) + one_line(message), err=True)


def count_folders(names: Sequence[str]) -> int:
    """How many folders files are in, by their names from the common folder on."""
    return len({name.rpartition("/")[0] for name in names})


def say_read(names: Sequence[str], n_skipped: int, where: str, *, side: str = "") -> None:
    """Print how many files of a folder were read, in how many folders, and how many were not."""
    n_folders = count_folders(names)
    files, folders = "s" * (len(names) != 1), "s" * (n_folders != 1)
    say(
        f"{side}{'read' if side else 'Read'} {len(names):,} file{files} in {n_folders:,} "
        f"folder{folders} ({where}); skipped {n_skipped:,}."
    )


def list_skipped(skipped: list[tuple[str, str]], where: str, *, at_most: int = 3) -> None:
    """Print every reason for which files were passed over, and the first few names for each."""
    from unshuffle._files import by_reason

    if not skipped:
        return
    typer.echo(
        one_line(f"Skipped {len(skipped):,} file{'s' * (len(skipped) != 1)} in {where}:"), err=True
    )
    for why, names in by_reason(skipped):
        more = ", ..." if len(names) > at_most else ""
        count = f"{len(names):,} file{'s' * (len(names) != 1)}"
        listed = one_line(", ".join(names[:at_most]))
        typer.echo(f"  {count} ({listed}{more}): {one_line(why)}", err=True)


@contextmanager
def progress_bar(description: str, *, show: bool) -> Iterator[Advance]:
    """Bar on standard error that `advance(fraction, words)` moves; silent unless a terminal."""
    if not show or not sys.stderr.isatty():
        yield _stand_still
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[words]}", markup=False, style="dim"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=1.0, words="")

        def advance(fraction: float, words: str = "") -> None:
            bar.update(task, completed=fraction, words=words)

        yield advance


def reporting(advance: Advance) -> "Callable[[State], None]":
    """Turn a solver's reports into moves of the bar."""

    def report(state: "State") -> None:
        advance(state.fraction, f"step {state.iteration}: {state.stage}".rstrip(": "))

    return report
