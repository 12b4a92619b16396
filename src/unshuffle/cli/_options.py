"""Every option of every command, stated once: the fields of a dataclass for each command."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

MOST_CORES = 1024
Kernel = StrEnum("Kernel", "rbf linear laplacian chi2 geodesic text")
Method = StrEnum("Method", "refined classic unbiased entropy")
Quality = StrEnum("Quality", "fast balanced best classic")
Neighbors = StrEnum("Neighbors", "kernel laplacian")


def _from(low: float, high: float | None = None, what: str = "a number") -> Callable[[Any], Any]:
    """Check of a number that may be left out: at least `low`, at most `high`."""
    wanted = f"{low} or more" if high is None else f"{what} from {low} to {high}"

    def check(value: Any) -> Any:
        if value is not None and not low <= value <= (math.inf if high is None else high):
            shown = f"{value:g}" if isinstance(value, float) else value
            raise typer.BadParameter(f"give {wanted}, not {shown}.")
        return value

    return check


def _check_cores(value: int) -> int:
    if value == 0:
        raise typer.BadParameter("give a number of cores, or -1 for all; 0 would do no work.")
    if abs(value) > MOST_CORES:
        raise typer.BadParameter(
            f"give a number of cores up to {MOST_CORES}, or -1 for all, not {value}."
        )
    return value


def _check_cost(value: float | None) -> float | None:
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"give a number above 0, not {value:g}; lower leaves out more.")
    return value


Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same answer.")]
Jobs = Annotated[
    int,
    typer.Option(callback=_check_cores, help="Cores to use, -1 for all; the answer is the same."),
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
_ID_HELP = (
    "Tables: column that names the rows, by its heading or its number counted from 1. Default: a "
    "first column that holds words, counts up by one or has no heading, or a column headed id, "
    "index, key or name."
)
Tile = Annotated[
    int,
    typer.Option(
        callback=_from(1, 1024, "a number of pixels"), help="Height of a picture in pixels."
    ),
]


@dataclass(frozen=True)
class MatchOptions:
    """Find which item of A belongs to which item of B.

    A and B share no features: the pairing comes from the similarities inside each. They are
    two folders of pictures or of text files, in sub-folders too, two tables (.csv, .tsv, .npy,
    .parquet) or, with --precomputed, two Gram matrices. Ctrl-C writes the best pairs found so
    far.
    """

    a: Annotated[Path, typer.Argument(metavar="A", help="First collection.")]
    b: Annotated[Path, typer.Argument(metavar="B", help="Second collection, of the same kind.")]
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Where to write the pairs, .csv or .json; x is A there and y is B. Default: "
            "pairs.csv, or nowhere with --json.",
            show_default=False,
        ),
    ] = None
    kernel: Annotated[
        list[Kernel] | None,
        typer.Option(
            help="Similarity inside each collection. Several are summed: give the option once for "
            "each. Tables take all but text, pictures all but text and chi2, texts text alone. "
            "Default: what suits the kind.",
            show_default=False,
        ),
    ] = None
    precomputed: Annotated[
        bool, typer.Option("--precomputed", help="A and B are Gram matrices (.npy).")
    ] = False
    method: Annotated[Method, typer.Option(help="How to search.")] = Method.refined
    n_init: Annotated[
        int,
        typer.Option(callback=_from(1), help="Starting points; more take longer and miss less."),
    ] = 8
    max_iter: Annotated[
        int,
        typer.Option(
            callback=_from(1),
            help="Steps after which a search from one starting point is cut off; more take "
            "longer.",
        ),
    ] = 100
    frozen: Annotated[
        Path | None,
        typer.Option(
            help="CSV of pairs that are known: an item of A and its partner in B, by name or by "
            "position counted from 0."
        ),
    ] = None
    unmatched_cost: Annotated[
        float | None,
        typer.Option(
            callback=_check_cost,
            help="Let items go without a partner at this cost, above 0; lower leaves out more.",
        ),
    ] = None
    candidates: Annotated[
        int | None,
        typer.Option(callback=_from(1), help="Also write the K best partners.", metavar="K"),
    ] = None
    sheet: Annotated[
        Path | None, typer.Option(help="For pictures: draw the pairs into this file (.png).")
    ] = None
    id_column: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help=f"{_ID_HELP} Give it twice where A and B have other headings.",
            show_default=False,
        ),
    ] = None
    no_id: NoId = False
    header: Header = None
    spreadsheet: Spreadsheet = False
    no_recursive: NoRecursive = False
    seed: Seed = 0
    jobs: Jobs = -1
    as_json: AsJson = False
    quiet: Quiet = False

    @property
    def kernels(self) -> list[str]:
        """Names of the kernels that were asked for."""
        return [each.value for each in self.kernel or ()]


@dataclass(frozen=True)
class LayoutOptions:
    """Lay out pictures so that like stands beside like.

    FOLDER holds pictures, in sub-folders too; a table (.csv, .tsv, .npy, .parquet) is laid out
    by its rows. Without -o it writes wall.html, one page to zoom and search, which needs no
    network (wall.csv for a table); with --json it writes no file unless -o asks for one.
    Ctrl-C writes the best layout found so far.
    """

    path: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of pictures, or a table of numbers.")
    ]
    output: Outputs = None
    shape: Annotated[
        str | None,
        typer.Option(metavar="ROWSxCOLUMNS", help="Grid, as in 16x20. Default: near square."),
    ] = None
    mask: Annotated[
        Path | None,
        typer.Option(help="Picture of a shape to fill: its dark or its opaque parts."),
    ] = None
    invert: Annotated[
        bool,
        typer.Option("--invert", help="Fill the light or transparent parts of --mask instead."),
    ] = False
    text: Annotated[
        str | None,
        typer.Option(help="Letters to fill; \\n starts a new line."),
    ] = None
    wrap: Annotated[
        bool, typer.Option("--wrap", help="Opposite edges belong together, as for a wallpaper.")
    ] = False
    features: Annotated[
        str | None,
        typer.Option(
            metavar="color|texture|words|FILE.npy",
            help="What pictures are compared by: their colours, colours and edges, visual words, "
            "or an array of your own with a row for each picture. Default: color.",
        ),
    ] = None
    summary: Annotated[
        int | None,
        typer.Option(
            callback=_from(2), metavar="K", help="Lay out the K items that stand for all."
        ),
    ] = None
    quality: Annotated[
        Quality, typer.Option(help="How much time to take; classic is the paper's method.")
    ] = Quality.balanced
    tile: Tile = 64
    no_recursive: NoRecursive = False
    no_cache: NoCache = False
    frozen: Annotated[
        Path | None,
        typer.Option(
            help="CSV of items with a fixed place: name or position, row, column, counted from 0."
        ),
    ] = None
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help=_ID_HELP, show_default=False)
    ] = None
    no_id: NoId = False
    header: Header = None
    spreadsheet: Spreadsheet = False
    seed: Seed = 0
    jobs: Jobs = -1
    as_json: AsJson = False
    quiet: Quiet = False


@dataclass(frozen=True)
class CollageOptions:
    """Draw one picture with many: each is used where it suits the template.

    Without -o it writes collage.png; with --json it writes no file unless -o asks for one.
    Ctrl-C writes the best collage found so far.
    """

    template: Annotated[
        Path, typer.Argument(metavar="TEMPLATE", help="Picture that the collage is to show.")
    ]
    path: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of pictures to use.")]
    output: Outputs = None
    shape: Annotated[
        str | None,
        typer.Option(
            metavar="ROWSxCOLUMNS",
            help="Grid, as in 40x60. Default: as large as the pictures fill.",
        ),
    ] = None
    smoothness: Annotated[
        float,
        typer.Option(
            callback=_from(0, 1),
            help="From 0 to 1: how much neighbours should look alike; more follows the template "
            "less.",
        ),
    ] = 0.3
    repeat: Annotated[
        int | None,
        typer.Option(
            callback=_from(1),
            metavar="K",
            help="Use a picture up to K times: comes closer to the template with --shape, makes a "
            "larger grid without. Default: as few as the grid asks for.",
        ),
    ] = None
    detail: Annotated[
        int,
        typer.Option(
            callback=_from(1, 16),
            help="Parts along the side of a picture that are compared with the template; 1 "
            "compares mean colours.",
        ),
    ] = 3
    neighbors: Annotated[
        Neighbors,
        typer.Option(
            help="What is to look alike: the eight around each, or, with laplacian, the four that "
            "touch, but not across an edge of the template."
        ),
    ] = Neighbors.kernel
    tile: Tile = 32
    no_recursive: NoRecursive = False
    no_cache: NoCache = False
    spreadsheet: Spreadsheet = False
    seed: Seed = 0
    jobs: Jobs = -1
    as_json: AsJson = False
    quiet: Quiet = False


@dataclass(frozen=True)
class MorphOptions:
    """Turn one shape into another, so that neighbouring points move together.

    A and B are pictures of a shape on a plain ground (ink on paper, or light on dark), or point
    files: tables with x and y in two columns (.csv, .tsv, .npy, .parquet), y up. Both are drawn
    at the same size.
    """

    a: Annotated[Path, typer.Argument(metavar="A", help="Shape to start from.")]
    b: Annotated[Path, typer.Argument(metavar="B", help="Shape to end at.")]
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write: an animation (.gif) or a strip of pictures (.png). May be given "
            "several times. Default: morph.gif, or nowhere with --json.",
            show_default=False,
        ),
    ] = None
    points: Annotated[
        int | None,
        typer.Option(
            callback=_from(2, 3000),
            help="Points to draw from each; more show finer detail. Default: 200 for pictures, "
            "all for point files.",
            show_default=False,
        ),
    ] = None
    frames: Annotated[
        int | None,
        typer.Option(
            callback=_from(2, 240),
            help="Pictures on the way, both ends included. Default: 24 in .gif, 7 in .png.",
            show_default=False,
        ),
    ] = None
    seed: Seed = 0
    as_json: AsJson = False
    quiet: Quiet = False


@dataclass(frozen=True)
class DemoOptions:
    """Make pictures and a page from data that ships with scikit-learn; needs no input."""

    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write into; made if need be.")
    ] = Path("unshuffle-demo")
    jobs: Jobs = -1
