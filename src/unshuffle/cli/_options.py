"""Options of the commands: one dataclass for each, one field for each option."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from unshuffle.cli._common_options import (
    GENERAL,
    ID_HELP,
    TABLES,
    AsJson,
    Device,
    Header,
    Jobs,
    NoCache,
    NoId,
    NoRecursive,
    Outputs,
    Quiet,
    Seed,
    Spreadsheet,
    Tile,
)
from unshuffle.cli._numbers import above_zero, between

# As the estimator has them, which is imported too late for --help; a test compares the two.
Method = StrEnum("Method", "auto refined low-rank classic unbiased entropy")
Quality = StrEnum("Quality", "fast balanced best classic")
Neighbors = StrEnum("Neighbors", "kernel laplacian")
ENCODERS = "MODEL.onnx, timm:NAME or open_clip:NAME"


def _split(features: list[str] | None) -> list[str]:
    from unshuffle._files.paths import split_kinds  # loads NumPy, which --help does without

    return [name for each in features or () for name in split_kinds(each)]


@dataclass(frozen=True)
class MatchOptions:
    """Find which item of A belongs to which item of B.

    A and B need no common features: similarities within each are compared. They are two folders
    of pictures or of text files, sub-folders included, two tables (.csv, .tsv, .npy, .parquet,
    .h5ad) or, with --precomputed, two Gram matrices. Ctrl-C writes the best pairs found so far.
    """

    a: Annotated[Path, typer.Argument(metavar="A", help="First collection.")]
    b: Annotated[Path, typer.Argument(metavar="B", help="Second collection, of the same kind.")]
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Output file for the pairs (.csv, .json, .parquet), with A as x and B as y. "
            "Default: pairs.csv, or none with --json.",
        ),
    ] = None
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KERNEL[+KERNEL...]",
            help="Similarity within each collection, or a sum of several. Tables: auto, rbf, "
            "linear, laplacian, chi2, geodesic, local; pictures: the same without auto and chi2; "
            "texts: text. auto is rbf, and tries other scalings and kernels if the answer cannot "
            "be trusted. Default: auto for tables, rbf for pictures.",
        ),
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[+KIND...]",
            help="Features to compare, or several at once. Pictures: pixels, color (histograms), "
            "texture (colors and edges), words (visual words), content (what they show), "
            f"{ENCODERS}; default: pixels+color. Texts: tfidf (rare words, the default), "
            "sentence-transformers:NAME. Tables: given (the values as they are), standardized "
            "(columns), rows (of length 1), ranks (in each column), log (counts); default: as "
            "--kernel auto chooses, or standardized with another kernel.",
        ),
    ] = None
    precomputed: Annotated[
        bool, typer.Option("--precomputed", help="A and B are Gram matrices (.npy).")
    ] = False
    method: Annotated[
        Method,
        typer.Option(
            metavar="|".join(Method),
            help="Search method: refined holds all similarities of a few thousand items, low-rank "
            "matches collections of any size, auto chooses between the two; the others are those "
            "of the paper.",
        ),
    ] = Method.auto
    n_init: Annotated[
        int,
        typer.Option(
            parser=between(1), metavar="N", help="Starting points. More are slower and safer."
        ),
    ] = 8
    max_iter: Annotated[
        int,
        typer.Option(parser=between(1), metavar="N", help="Most steps from each starting point."),
    ] = 100
    frozen: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of known pairs: an item of A and its partner in B, by name or by position "
            "from 0.",
        ),
    ] = None
    hints: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of likely pairs, which may be overruled: as for --frozen, with the "
            "probability (above 0, at most 1) in a third column.",
        ),
    ] = None
    unmatched_cost: Annotated[
        float | None,
        typer.Option(
            parser=above_zero(), metavar="X", help="Cost of an unmatched item; lower drops more."
        ),
    ] = None
    candidates: Annotated[
        int | None,
        typer.Option(parser=between(1), metavar="K", help="Also write K partners per item."),
    ] = None
    questions: Annotated[
        int | None,
        typer.Option(
            parser=between(1),
            metavar="K",
            help="Also print the K pairs to check first, whose answers help most with --frozen.",
        ),
    ] = None
    sheet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Pictures: draw the pairs into this file (.png)."),
    ] = None
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with status 3 if the answer cannot be trusted."),
    ] = False
    no_trust: Annotated[
        bool,
        typer.Option(
            "--no-trust", help="Do not estimate how many pairs are right. Halves the time."
        ),
    ] = False
    id_column: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help=f"{ID_HELP} Give it twice if A and B differ.",
            rich_help_panel=TABLES,
        ),
    ] = None
    no_id: NoId = False
    header: Header = None
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X|obsm:NAME|layer:NAME",
            help="AnnData files (.h5ad): part to compare. Default: X. Give it twice if A and B "
            "differ.",
            rich_help_panel=TABLES,
        ),
    ] = None
    spreadsheet: Spreadsheet = False
    no_recursive: NoRecursive = False
    no_cache: NoCache = False
    seed: Seed = 0
    jobs: Jobs = -1
    device: Device = None
    as_json: AsJson = False
    quiet: Quiet = False

    @property
    def kernels(self) -> list[str]:
        """Names of the chosen kernels."""
        return [name for each in self.kernel or () for name in each.split("+")]

    @property
    def compared(self) -> list[str]:
        """Names of the chosen features."""
        return _split(self.features)


@dataclass(frozen=True)
class LayoutOptions:
    """Arrange pictures or texts on a grid with similar ones side by side.

    FOLDER holds pictures or text files, sub-folders included, or is a table (.csv, .tsv, .npy,
    .parquet) with one item per row. Without -o it writes wall.html, a page to zoom, search and
    filter offline, or wall.csv for a table; with --json it writes no file unless -o asks for one.
    More than a few thousand pictures open faster from a folder, -o wall/. Ctrl-C writes the best
    layout found so far; what was read is not read again.
    """

    path: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of pictures or texts, or a table.")
    ]
    output: Outputs = None
    shape: Annotated[
        str | None,
        typer.Option(metavar="ROWSxCOLUMNS", help="Grid, like 16x20. Default: nearly square."),
    ] = None
    mask: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE", help="Picture of a shape to fill: its dark or opaque parts."
        ),
    ] = None
    invert: Annotated[
        bool,
        typer.Option("--invert", help="Fill the light or transparent parts of --mask instead."),
    ] = False
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Letters to fill; \\n starts a new line."),
    ] = None
    wrap: Annotated[
        bool, typer.Option("--wrap", help="Join opposite edges, as for wallpaper.")
    ] = False
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[+KIND...]",
            help="What to compare, or several at once. Pictures: color (the default), texture "
            f"(colors and edges), words (visual words), content (what they show), {ENCODERS}. "
            "Texts: tfidf (rare words, the default), sentence-transformers:NAME. Both: your own "
            "FILE.npy with one row for each.",
        ),
    ] = None
    summary: Annotated[
        int | None,
        typer.Option(parser=between(2), metavar="K", help="Lay out K representatives only."),
    ] = None
    quality: Annotated[
        Quality,
        typer.Option(
            metavar="|".join(Quality),
            help="Speed or quality; classic is the method of the paper.",
        ),
    ] = Quality.balanced
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="Table (.csv, .tsv, .parquet) with more about the pictures or texts, found by a "
            "column with their names: the page can search it, filter by it and show it.",
        ),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of --data, or folder, whose texts the page writes over their regions.",
        ),
    ] = None
    link: Annotated[
        bool,
        typer.Option("--link", help="Link the page to the original files, by relative paths."),
    ] = False
    tile: Annotated[
        int | None,
        typer.Option(
            parser=between(1, 1024),
            metavar="N",
            help="Picture height in pixels. Default: 64 in a sheet; as suits them in a page.",
        ),
    ] = None
    no_recursive: NoRecursive = False
    no_cache: NoCache = False
    frozen: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of fixed items: name or position, row, column, counted from 0. Add pictures "
            "to a wall by its positions, an earlier -o wall.csv, with a larger --shape.",
        ),
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help=f"{ID_HELP} With --data: its column with the names of the files.",
            rich_help_panel=TABLES,
        ),
    ] = None
    no_id: NoId = False
    header: Header = None
    spreadsheet: Spreadsheet = False
    seed: Seed = 0
    jobs: Jobs = -1
    device: Device = None
    as_json: AsJson = False
    quiet: Quiet = False

    @property
    def compared(self) -> list[str]:
        """Names of the chosen features."""
        return _split(self.features)


@dataclass(frozen=True)
class CollageOptions:
    """Draw one picture with many, each placed where it suits the template.

    Without -o it writes collage.png; with --json it writes no file unless -o asks for one.
    Ctrl-C writes the best collage found so far.
    """

    template: Annotated[Path, typer.Argument(metavar="TEMPLATE", help="Picture to show.")]
    path: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of pictures to use.")]
    output: Outputs = None
    shape: Annotated[
        str | None,
        typer.Option(metavar="ROWSxCOLUMNS", help="Grid, like 40x60. Default: largest possible."),
    ] = None
    smoothness: Annotated[
        float,
        typer.Option(
            parser=between(0, 1, of=float), metavar="X", help="From faithful (0) to smooth (1)."
        ),
    ] = 0.3
    repeat: Annotated[
        int | None,
        typer.Option(
            parser=between(1),
            metavar="K",
            help="Use a picture up to K times: closer to the template with --shape, a larger grid "
            "without. Default: as few as the grid needs.",
        ),
    ] = None
    detail: Annotated[
        int,
        typer.Option(
            parser=between(1, 16),
            metavar="N",
            help="Parts compared along each side of a picture; 1 compares mean colors.",
        ),
    ] = 3
    neighbors: Annotated[
        Neighbors,
        typer.Option(
            metavar="|".join(Neighbors),
            help="Neighbors to keep similar: kernel, all eight; laplacian, the four adjacent ones "
            "except across edges of the template.",
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
    """Turn one shape into another; neighboring points move together.

    A and B are pictures of a shape on a plain background, or tables of points with x and y in
    two columns (.csv, .tsv, .npy, .parquet), y up. Both are drawn at the same size.
    """

    a: Annotated[Path, typer.Argument(metavar="A", help="Shape to start from.")]
    b: Annotated[Path, typer.Argument(metavar="B", help="Shape to end at.")]
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Output: an animation (.gif) or a strip of pictures (.png). Can be given several "
            "times. Default: morph.gif, or none with --json.",
        ),
    ] = None
    points: Annotated[
        int | None,
        typer.Option(
            parser=between(2, 3000),
            metavar="N",
            help="Points in each shape. More show finer detail. Default: 200 for pictures, all "
            "for tables.",
        ),
    ] = None
    frames: Annotated[
        int | None,
        typer.Option(
            parser=between(2, 240),
            metavar="N",
            help="Number of frames. Default: 24 in .gif, 7 in .png.",
        ),
    ] = None
    seed: Seed = 0
    as_json: AsJson = False
    quiet: Quiet = False


@dataclass(frozen=True)
class DemoOptions:
    """Make example pictures and a page from data that ships with scikit-learn."""

    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="Output folder, created if missing."
        ),
    ] = Path("unshuffle-demo")
    jobs: Jobs = -1


@dataclass(frozen=True)
class DoctorOptions:
    """Show what is installed and check in seconds that it works.

    Versions, extras, cores and GPU come first, then small checks of matching, layouts, sets,
    orbits and pictures. The first run takes longer: it compiles the loops. To report a problem,
    include the output of unshuffle doctor --json.
    """

    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also show all libraries, the extras that only developers need, libraries of "
            "threads, and folders.",
        ),
    ] = False
    as_json: AsJson = False
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print only what fails, and what to do.",
            rich_help_panel=GENERAL,
        ),
    ] = False


@dataclass(frozen=True)
class ServeOptions:
    """Arrange pictures, match two collections or make a collage, on a page in the browser."""

    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            help="Folder of pictures, with its sub-folders; without one, drop them onto the page.",
            show_default=False,
        ),
    ] = None
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="OTHER",
            help="A second folder or table, to match with the first: pictures, text files or "
            "tables.",
            show_default=False,
        ),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(
            help="Port of the server; 0 is any free one. Default: 8765, or a free one.",
            parser=between(0, 65535),
            metavar="N",
            show_default=False,
        ),
    ] = None
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and open no browser.")
    ] = False
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File ending in .json that keeps the work. Default: one for each folder.",
            show_default=False,
        ),
    ] = None
