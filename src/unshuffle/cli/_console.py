"""What the terminal shows: plain lines, and a progress bar where someone is watching."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def one_line(message: object) -> str:
    """Text on one line that is safe to print: no control characters, no broken encoding."""
    text = " ".join(str(message).split())
    # A file name may hold anything, also sequences that drive the terminal.
    text = "".join(letter if letter.isprintable() else "�" for letter in text)
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding, "replace")


def say(message: str, *, indent: int = 0) -> None:
    """Print one line of the answer."""
    typer.echo(" " * indent + one_line(message))


def note(message: str) -> None:
    """Print one line about what is being done, on standard error."""
    typer.echo(one_line(message), err=True)


def warn(message: object) -> None:
    """Print one line that asks for attention, on standard error."""
    typer.echo(typer.style("Warning: ", fg="yellow", bold=True) + one_line(message), err=True)


def complain(message: object) -> None:
    """Print one line that says why there is no answer, on standard error."""
    typer.echo(typer.style("Error: ", fg="red", bold=True) + one_line(message), err=True)


def list_skipped(skipped: list[tuple[str, str]], where: str, *, at_most: int = 3) -> None:
    """Print how many files were passed over, and why the first few were."""
    if not skipped:
        return
    typer.echo(
        one_line(f"Skipped {len(skipped)} file{'s' * (len(skipped) != 1)} in {where}:"), err=True
    )
    for name, why in skipped[:at_most]:
        typer.echo(f"  {one_line(name)}: {one_line(why)}", err=True)
    if len(skipped) > at_most:
        typer.echo(f"  and {len(skipped) - at_most} more", err=True)


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
