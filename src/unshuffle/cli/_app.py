"""Commands, exit codes, messages and the progress bar of the command line."""

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unshuffle import __version__
from unshuffle.cli import NOT_IN_PLACE, NOTHING_WRITTEN, _options
from unshuffle.cli._help import Command, Group, program_name, with_own_pip

if TYPE_CHECKING:
    # Loads NumPy, which `unshuffle --help` does not need.
    from unshuffle.base import SearchState

Advance = Callable[[float, str], None]


class NotWritten(Exception):
    """A result that is not at the path asked for; its message is one line."""


_EXIT_STATUS = """0 success
1 a check of doctor failed
2 invalid options or input; nothing was written
3 a result is not where it was asked for, and the message says where it is; or, with --strict, \
the answer cannot be trusted, and was written
130 interrupted by Ctrl-C; any result so far was written"""
app = typer.Typer(
    name="unshuffle",
    help="Find the order your data lost.",
    epilog=_EXIT_STATUS,
    cls=Group,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Some versions of typer bundle their own click, so take the class from typer itself.
_WRONG_USE: Any = typer.BadParameter.__mro__[1]


def run() -> int:
    """Run the command line and return its exit code, without a traceback for bad input."""
    try:
        code = app(prog_name=program_name(), standalone_mode=False)
    except _WRONG_USE as error:
        context = getattr(error, "ctx", None)
        command = _asked_command() if context is None else context.command_path
        # Some versions of typer leave in a prefix of pydantic, and click 8.2 names an environment
        # variable where there is none.
        why = error.format_message().replace("Value error, ", "").replace(" (env var: 'None')", "")
        why = _shorter(why.strip().rstrip("."))
        end = "" if why.endswith("?") else "."
        print_error(f"{why}{end} Try '{command} --help'.")
        return int(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        print_error(NOTHING_WRITTEN)
        return 130
    return code if isinstance(code, int) else 0


def _shorter(why: str) -> str:
    """What to do about pictures in place of a folder: a shell turns photos/*.jpg into many."""
    if not why.startswith("Got unexpected extra argument"):
        return why
    from unshuffle._pictures.decoding import SUFFIXES

    pictures = [each for each in sys.argv[2:] if each.lower().endswith(SUFFIXES)]
    if len(pictures) < 2:
        return why
    listed = ", ".join(pictures[:2]) + ", ..." * (len(pictures) > 2)
    return f"Got {len(pictures)} pictures ({listed}). Give the folder that holds them"


def _asked_command() -> str:
    """The command that the user typed, which some errors do not know."""
    names = {each.name for each in app.registered_commands}
    return " ".join([program_name(), *(each for each in sys.argv[1:2] if each in names)])


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
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _add(name: str, options: type, *examples: str, stopped: str = NOTHING_WRITTEN) -> None:
    """Add a command whose options are the fields of a dataclass and whose work is `_name.name`."""

    def command(**given: Any) -> None:
        try:
            # Inside `try`: loading takes long enough to be interrupted.
            work = getattr(import_module(f"unshuffle.cli._{name}"), name)
            code = work(options(**given))
        except (ValueError, MemoryError, OSError, ImportError) as error:
            print_error(error)
            raise typer.Exit(2) from error
        except NotWritten as error:
            print_error(error)
            raise typer.Exit(NOT_IN_PLACE) from error
        except KeyboardInterrupt:
            print_error(stopped)
            raise typer.Exit(130) from None
        raise typer.Exit(code)

    # Typer reads the options from the signature, and the help from the docstring.
    command.__signature__ = signature(options)  # type: ignore[attr-defined]
    command.__doc__ = options.__doc__
    lines = (f"{program_name()} {name} {each}".rstrip() for each in examples)
    app.command(name, cls=Command, epilog="\n".join(lines))(command)


_add(
    "match",
    _options.MatchOptions,
    "left-halves/ right-halves/ -o pairs.csv --sheet pairs.png",
    "english/ deutsch/ -o pairs.csv --candidates 3",
    "rna.csv atac.csv --frozen known.csv --strict",
    "old.csv new.csv --id customer --kernel rbf+laplacian",
    "scans/ prints/ --features pixels+content",
    "embeddings-a.npy embeddings-b.npy -o pairs.parquet",
    "rna.h5ad atac.h5ad --key obsm:X_pca --key obsm:X_lsi",
    "K.npy L.npy --precomputed --json",
)
_add(
    "layout",
    _options.LayoutOptions,
    "photos/ -o wall.html -o wall.png",
    'photos/ --text "PAMI 2009" -o letters.png',
    "album/ --summary 64 --shape 8x8 --features color+content",
    "photos/ --shape 16x20 --frozen cells.csv --quality best",
    "photos/ --shape 17x20 --frozen wall.csv -o wall-2.html -o wall-2.csv",
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
    "serve",
    _options.ServeOptions,
    "photos/",
    "left/ right/",
    "--port 9000 --no-browser",
    stopped="Stopped.",
)
_add("demo", _options.DemoOptions, "-o pictures", stopped="Interrupted; the demo is incomplete.")
_add("doctor", _options.DoctorOptions, "", "--json", stopped="Interrupted; not all was checked.")


def one_line(message: object) -> str:
    """Text on one line, safe to print: no control characters, no invalid encoding."""
    text = " ".join(str(message).split())
    # File names may hold escape sequences for the terminal.
    text = "".join(letter if letter.isprintable() else "�" for letter in text)
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding, "replace")


def _printed(message: object) -> str:
    """Text on one line whose commands work as they are printed."""
    return with_own_pip(one_line(message))


def say(*messages: str, indent: int = 0) -> None:
    """Print each message in one line on standard output."""
    for each in messages:
        print_output(" " * indent + _printed(each))


def print_output(text: str) -> None:
    """Print on standard output, or raise `NotWritten`."""
    try:
        typer.echo(text)
    except OSError as error:
        # The rest of the buffer would fail again when Python exits.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise NotWritten(f"Cannot write to standard output: {error.strerror or error}.") from error


def note(message: str) -> None:
    """Print one line of information on standard error, above a progress bar if there is one."""
    # Not typer.echo, which writes into the line of the bar.
    sys.stderr.write(f"{_printed(message)}\n")


def warn(message: object) -> None:
    """Print a warning in one line on standard error."""
    typer.echo(typer.style("Warning: ", fg="yellow", bold=True) + _printed(message), err=True)


def print_error(message: object) -> None:
    """Print an error in one line on standard error."""
    typer.echo(typer.style("Error: ", fg="red", bold=True) + _printed(message), err=True)


@contextmanager
def progress_bar(description: str, *, show: bool) -> Iterator[Advance]:
    """Bar that `advance(fraction, words)` moves, on standard error if it is a terminal."""
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
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[words]}", markup=False, style="dim"),
    )
    began = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=1.0, words="", left="")

        def advance(fraction: float, words: str) -> None:
            left = time_left(time.monotonic() - began, fraction)
            bar.update(task, completed=fraction, words=words, left=left)

        yield advance


def time_left(elapsed: float, fraction: float) -> str:
    """Time that the rest of the work takes at the pace so far; "" while that is unknown."""
    from unshuffle._run.printing import duration

    if elapsed < 2 or not 0.05 <= fraction < 1:
        return ""
    return f"{duration(elapsed * (1 - fraction) / fraction)} left"


def report_to(advance: Advance) -> "Callable[[SearchState], None]":
    """Callback for a solver that moves the bar."""
    return lambda state: advance(
        state.fraction, f"step {state.iteration}: {state.stage}".rstrip(": ")
    )


@contextmanager
def user_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Record warnings meant for the user and ignore the others."""
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        yield remarks


def fit(
    estimator: Any,
    *data: Any,
    words: str,
    show: bool,
    announce: Callable[[str], object] = lambda expected: None,
    **options: Any,
) -> tuple[list[warnings.WarningMessage], bool]:
    """Fit with a progress bar; return the warnings and whether Ctrl-C left a partial result.

    `announce` is called before the work starts, with what it will take.
    """
    interrupted = False
    with progress_bar(words, show=show) as advance, user_warnings() as remarks:
        report = report_to(advance)

        def follow(state: "SearchState") -> None:
            if state.iteration == 0:
                announce(state.stage)
            else:
                report(state)

        estimator.set_params(callback=follow)
        try:
            estimator.fit(*data, **options)
        except KeyboardInterrupt:
            if not any(name.endswith("_") for name in vars(estimator)):
                raise
            interrupted = True
    return remarks, interrupted
