"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from unshuffle.cli._numbers import between, cores

# Headings of the help; options without one are listed first.
TABLES, GENERAL = "Tables", "General"
Seed = Annotated[
    int,
    typer.Option(
        parser=between(0, 2**32 - 1),
        metavar="N",
        help="Seed of random choices.",
        rich_help_panel=GENERAL,
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        parser=cores(),
        metavar="N",
        help="Cores to use, -1 for all. Does not change results.",
        rich_help_panel=GENERAL,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE",
        help="Where to work: cpu, or cuda for a GPU, which needs PyTorch.",
        rich_help_panel=GENERAL,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object only.", rich_help_panel=GENERAL),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print only errors, and warnings of a doubtful match.",
        rich_help_panel=GENERAL,
    ),
]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE|FOLDER",
        help="Output: a page (.html), a folder with a page (a name without ending, for walls of "
        "any size), a sheet (.png, .jpg, .webp) or the positions (.csv, .json). Can be given "
        "several times.",
    ),
]
NoRecursive = Annotated[
    bool,
    typer.Option("--no-recursive", help="Do not read sub-folders.", rich_help_panel=GENERAL),
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Keep no thumbnails and vectors of pictures on disk.",
        rich_help_panel=GENERAL,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="The first line is a heading or not. Default: detected.",
        rich_help_panel=TABLES,
    ),
]
NoId = Annotated[
    bool,
    typer.Option("--no-id", help="No column holds names; compare all.", rich_help_panel=TABLES),
]
Spreadsheet = Annotated[
    bool,
    typer.Option(
        "--spreadsheet",
        help="In .csv, put an apostrophe before names that a spreadsheet would run as formulas "
        "(=, +, -, @). The apostrophes stay in the names.",
        rich_help_panel=TABLES,
    ),
]
ID_HELP = (
    "Column with the names of the rows, by heading or by number from 1. Default: a first "
    "column that holds words, counts up by one or has no heading, or one headed id, index, key or "
    "name."
)
Tile = Annotated[
    int,
    typer.Option(parser=between(1, 1024), metavar="N", help="Picture height in pixels."),
]
