"""Options that several commands share, and what is asked of their values."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

MOST_CORES = 1024


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


class Quality(StrEnum):
    """How much time a layout may take."""

    fast = "fast"
    balanced = "balanced"
    best = "best"
    classic = "classic"


class Neighbors(StrEnum):
    """What counts as a neighbour in a collage."""

    kernel = "kernel"
    laplacian = "laplacian"


def one_or_more(value: int | None) -> int | None:
    """A count."""
    if value is not None and value < 1:
        raise typer.BadParameter(f"give 1 or more, not {value}.")
    return value


def two_or_more(value: int | None) -> int | None:
    """A count of items that can stand beside one another."""
    if value is not None and value < 2:
        raise typer.BadParameter(f"give 2 or more, not {value}.")
    return value


def some_cores(value: int) -> int:
    """A number of cores that a machine may have."""
    if value == 0:
        raise typer.BadParameter("give a number of cores, or -1 for all; 0 would do no work.")
    if abs(value) > MOST_CORES:
        raise typer.BadParameter(
            f"give a number of cores up to {MOST_CORES}, or -1 for all, not {value}."
        )
    return value


def a_cost(value: float | None) -> float | None:
    """A cost that something can be worth."""
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"give a number above 0, not {value:g}; lower leaves out more.")
    return value


def a_smoothness(value: float) -> float:
    """A share."""
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"give a number from 0 to 1, not {value:g}.")
    return value


def a_detail(value: int) -> int:
    """Parts that a tile can be compared by."""
    if not 1 <= value <= 16:
        raise typer.BadParameter(f"give a number from 1 to 16, not {value}.")
    return value


def a_tile(value: int) -> int:
    """A size that can be drawn."""
    if not 1 <= value <= 1024:
        raise typer.BadParameter(f"give a number of pixels from 1 to 1024, not {value}.")
    return value


def some_points(value: int | None) -> int | None:
    """Points that can make a shape, and can be paired in seconds."""
    if value is not None and not 2 <= value <= 3000:
        raise typer.BadParameter(f"give a number from 2 to 3000, not {value}.")
    return value


def some_frames(value: int | None) -> int | None:
    """Frames that show a motion."""
    if value is not None and not 2 <= value <= 240:
        raise typer.BadParameter(f"give a number from 2 to 240, not {value}.")
    return value


Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same answer.")]
Jobs = Annotated[
    int,
    typer.Option(callback=some_cores, help="Cores to use, -1 for all; the answer is the same."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print errors, and warnings that an answer is ambiguous, only."
    ),
]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Where to write: a page (.html), a sheet (.png, .jpg, .webp) or the positions "
        "(.csv, .json). May be given several times.",
        show_default=False,
    ),
]
NoRecursive = Annotated[
    bool, typer.Option("--no-recursive", help="Leave out sub-folders, which are read too.")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Keep no thumbnails for the next time.")]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Tables: whether the first line holds headings. Default: told by its cells.",
        show_default=False,
    ),
]
NoId = Annotated[
    bool, typer.Option("--no-id", help="Tables: no column names the rows; compare them all.")
]
Spreadsheet = Annotated[
    bool,
    typer.Option(
        "--spreadsheet",
        help="In .csv, put an apostrophe ahead of names that a spreadsheet would run as formulas "
        "(=, +, -, @). Such a file gives the names back with the apostrophes.",
    ),
]
ID_HELP = (
    "Tables: column that names the rows, by its heading or its number counted from 1. Default: a "
    "first column that holds words, counts up by one or has no heading, or a column headed id, "
    "index, key or name."
)
