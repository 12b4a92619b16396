"""Commands and their options; each hands over to a module of its own."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from unshuffle import __version__
from unshuffle.cli import NOTHING_WRITTEN
from unshuffle.cli._console import BadInput, complain

app = typer.Typer(
    name="unshuffle",
    help="Find the order your data lost.",
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Kernel(StrEnum):
    """Similarities that can be named on the command line."""

    rbf = "rbf"
    linear = "linear"
    laplacian = "laplacian"
    chi2 = "chi2"
    geodesic = "geodesic"
    text = "text"


class Method(StrEnum):
    """Ways to climb the objective."""

    refined = "refined"
    classic = "classic"
    unbiased = "unbiased"
    entropy = "entropy"


# Some versions of typer bring their own copy of click: ask typer for the class it raises.
_WRONG_USE: Any = typer.BadParameter.__mro__[1]


def run() -> int:
    """Run the command line and return its exit code; never a traceback for bad input."""
    try:
        code = app(prog_name="unshuffle", standalone_mode=False)
    except _WRONG_USE as error:
        context = getattr(error, "ctx", None)
        command = "unshuffle" if context is None else context.command_path
        # Some versions of typer leave the words of another library in.
        why = error.format_message().replace("Value error, ", "").strip().rstrip(".")
        complain(f"{why}. Try '{command} --help'.")
        return int(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        complain(NOTHING_WRITTEN)
        return 130
    return code if isinstance(code, int) else 0


def _one_or_more(value: int | None) -> int | None:
    if value is not None and value < 1:
        raise typer.BadParameter(f"give 1 or more, not {value}.")
    return value


def _some_cores(value: int) -> int:
    if value == 0:
        raise typer.BadParameter("give a number of cores, or -1 for all; 0 would do no work.")
    return value


def _a_cost(value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"give a number above 0, not {value:g}; lower leaves out more.")
    return value


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


@app.command(
    epilog="Examples:\n\n"
    "unshuffle match left-halves/ right-halves/ -o pairs.csv --sheet pairs.png\n\n"
    "unshuffle match english/ deutsch/ -o pairs.csv --candidates 3\n\n"
    "unshuffle match rna.csv atac.csv --kernel geodesic --frozen known.csv\n\n"
    "unshuffle match K.npy L.npy --precomputed --json"
)
def match(
    a: Annotated[Path, typer.Argument(metavar="A", help="First collection.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Second collection, of the same kind.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Where to write the pairs, .csv or .json; x is A there and y is B. Default: "
            "pairs.csv, or nowhere with --json.",
            show_default=False,
        ),
    ] = None,
    kernel: Annotated[
        Kernel | None,
        typer.Option(help="Similarity inside each collection. Default: what suits the kind."),
    ] = None,
    precomputed: Annotated[
        bool, typer.Option("--precomputed", help="A and B are Gram matrices (.npy).")
    ] = False,
    method: Annotated[Method, typer.Option(help="How to search.")] = Method.refined,
    n_init: Annotated[
        int,
        typer.Option(
            callback=_one_or_more, help="Starting points; more take longer and miss less."
        ),
    ] = 8,
    frozen: Annotated[
        Path | None,
        typer.Option(
            help="CSV of pairs that are known: an item of A and its partner in B, by name or by "
            "position counted from 0."
        ),
    ] = None,
    unmatched_cost: Annotated[
        float | None,
        typer.Option(
            callback=_a_cost,
            help="Let items go without a partner at this cost, above 0; lower leaves out more.",
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(callback=_one_or_more, help="Also write the K best partners.", metavar="K"),
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="For pictures: draw the pairs into this file (.png).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same answer.")] = 0,
    jobs: Annotated[
        int,
        typer.Option(
            callback=_some_cores, help="Cores to use, -1 for all; the answer is the same."
        ),
    ] = -1,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Find which item of A belongs to which item of B.

    A and B share no features: the pairing comes from the similarities inside each. They are
    two folders of pictures, two folders of text files, two tables (.csv, .tsv, .npy, .parquet)
    or, with --precomputed, two Gram matrices. Ctrl-C writes the best pairs found so far.
    """
    if output is None and not as_json:
        output = Path("pairs.csv")
    try:
        # Loading takes long enough to be interrupted.
        from unshuffle.cli import _match
    except KeyboardInterrupt:
        complain(NOTHING_WRITTEN)
        raise typer.Exit(130) from None
    options = _match.Options(
        path_a=a,
        path_b=b,
        output=output,
        kernel=None if kernel is None else kernel.value,
        precomputed=precomputed,
        method=method.value,
        n_init=n_init,
        frozen=frozen,
        unmatched_cost=unmatched_cost,
        candidates=candidates,
        sheet=sheet,
        seed=seed,
        jobs=jobs,
        as_json=as_json,
        quiet=quiet,
    )
    try:
        code = _match.match(options)
    except (BadInput, ValueError, MemoryError, OSError) as error:
        complain(error)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        complain(NOTHING_WRITTEN)
        raise typer.Exit(130) from None
    raise typer.Exit(code)


@app.command(epilog="Example:\n\nunshuffle demo -o /tmp/pictures")
def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write into; made if need be.")
    ] = Path("unshuffle-demo"),
    jobs: Annotated[
        int,
        typer.Option(
            callback=_some_cores, help="Cores to use, -1 for all; the answer is the same."
        ),
    ] = -1,
) -> None:
    """Make two pictures from data that ships with scikit-learn; needs no input."""
    try:
        from unshuffle.cli import _demo

        _demo.demo(output, n_jobs=jobs)
    except (BadInput, ValueError, OSError) as error:
        complain(error)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        complain("Interrupted; the demo is not complete.")
        raise typer.Exit(130) from None
