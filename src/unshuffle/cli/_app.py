"""The command line at its terminal: commands and exit codes, lines, and a progress bar."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unshuffle import __version__
from unshuffle.cli import NOT_IN_PLACE, NOTHING_WRITTEN, _options

if TYPE_CHECKING:
    # Loads NumPy, which `unshuffle --help` can do without.
    from unshuffle.base import SearchState

Advance = Callable[[float, str], None]


class BadInput(Exception):
    """Something the user can put right; its message is one line."""


class NotDelivered(Exception):
    """A result that is not where it was asked for; its message is one line."""


app = typer.Typer(
    name="unshuffle",
    help="Find the order your data lost.",
    epilog="Exit status: 0 done; 2 wrong use or input, nothing was written; 3 a result is not "
    "where it was asked for, the message says where it is; 130 stopped by Ctrl-C, what there was "
    "is written.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Some versions of typer bring their own copy of click: ask typer for the class it raises.
_WRONG_USE: Any = typer.BadParameter.__mro__[1]


def run() -> int:
    """Run the command line and return its exit code; never a traceback for bad input."""
    try:
        code = app(prog_name="unshuffle", standalone_mode=False)
    except _WRONG_USE as error:
        context = getattr(error, "ctx", None)
        command = "unshuffle" if context is None else context.command_path
        # Some versions of typer leave the words of another library in, and click 8.2 names an
        # environment variable where there is none.
        why = error.format_message().replace("Value error, ", "").replace(" (env var: 'None')", "")
        why = why.strip().rstrip(".")
        complain(f"{why}. Try '{command} --help'.")
        return int(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        complain(NOTHING_WRITTEN)
        return 130
    return code if isinstance(code, int) else 0


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unshuffle {__version__}")
        raise typer.Exit


@app.callback()
def _unshuffle(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and leave."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _add(name: str, options: type, *examples: str, stopped: str = NOTHING_WRITTEN) -> None:
    """Add a command: its options are the fields of a dataclass, its work is `_name.name`."""

    def command(**given: Any) -> None:
        try:
            # Loading takes long enough to be interrupted.
            work = getattr(import_module(f"unshuffle.cli._{name}"), name)
            code = work(options(**given))
        except (BadInput, ValueError, MemoryError, OSError) as error:
            complain(error)
            raise typer.Exit(2) from error
        except NotDelivered as error:
            complain(error)
            raise typer.Exit(NOT_IN_PLACE) from error
        except KeyboardInterrupt:
            complain(stopped)
            raise typer.Exit(130) from None
        raise typer.Exit(code)

    # Typer reads the options from the signature, and the help from the docstring.
    command.__signature__ = signature(options)  # type: ignore[attr-defined]
    command.__doc__ = options.__doc__
    heading = "Example:" if len(examples) == 1 else "Examples:"
    lines = [heading, *(f"unshuffle {name} {each}" for each in examples)]
    app.command(name, epilog="\n\n".join(lines))(command)


_add(
    "match",
    _options.MatchOptions,
    "left-halves/ right-halves/ -o pairs.csv --sheet pairs.png",
    "english/ deutsch/ -o pairs.csv --candidates 3",
    "rna.csv atac.csv --kernel geodesic --frozen known.csv",
    "old.csv new.csv --id customer --kernel rbf --kernel laplacian",
    "K.npy L.npy --precomputed --json",
)
_add(
    "layout",
    _options.LayoutOptions,
    "photos/ -o wall.html -o wall.png",
    'photos/ --text "PAMI 2009" -o letters.png',
    "album/ --summary 64 --shape 8x8 --features texture",
    "photos/ --shape 16x20 --frozen cells.csv --quality best",
    "songs.csv -o positions.csv",
)
_add(
    "collage",
    _options.CollageOptions,
    "portrait.jpg photos/ -o collage.png",
    "portrait.jpg photos/ --shape 60x40 --tile 48 -o collage.jpg",
    "portrait.jpg photos/ --shape 60x40 --repeat 5 --smoothness 0",
)
_add(
    "morph",
    _options.MorphOptions,
    "three.png nine.png -o morph.gif",
    "cat.png dog.png -o morph.gif -o morph.png --points 1000",
    "before.csv after.csv --json",
)
_add(
    "demo",
    _options.DemoOptions,
    "-o /tmp/pictures",
    stopped="Interrupted; the demo is not complete.",
)


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


@contextmanager
def progress_bar(description: str, *, show: bool) -> Iterator[Advance]:
    """Bar on standard error that `advance(fraction, words)` moves; silent unless a terminal."""
    if not show or not sys.stderr.isatty():
        yield lambda fraction, words: None
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


def reporting(advance: Advance) -> "Callable[[SearchState], None]":
    """Turn a solver's reports into moves of the bar."""

    def report(state: "SearchState") -> None:
        advance(state.fraction, f"step {state.iteration}: {state.stage}".rstrip(": "))

    return report


@contextmanager
def user_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Keep warnings that are meant for the user, and drop the others."""
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        yield remarks


def fit(
    estimator: Any, *data: Any, words: str, show: bool, **options: Any
) -> tuple[list[warnings.WarningMessage], bool]:
    """Fit with a progress bar; returns its warnings, and whether Ctrl-C cut it short.

    An interrupt before there is anything to keep is passed on.
    """
    interrupted = False
    with progress_bar(words, show=show) as advance, user_warnings() as remarks:
        estimator.set_params(callback=reporting(advance))
        try:
            estimator.fit(*data, **options)
        except KeyboardInterrupt:
            if not any(name.endswith("_") for name in vars(estimator)):
                raise
            interrupted = True
    return remarks, interrupted
