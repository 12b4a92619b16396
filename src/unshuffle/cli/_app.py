"""Commands and their options; each hands over to a module of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from unshuffle import __version__
from unshuffle.cli import NOT_IN_PLACE, NOTHING_WRITTEN
from unshuffle.cli._console import BadInput, NotDelivered, complain
from unshuffle.cli._options import (
    ID_HELP,
    AsJson,
    Header,
    Jobs,
    Kernel,
    Method,
    Neighbors,
    NoCache,
    NoId,
    NoRecursive,
    Outputs,
    Quality,
    Quiet,
    Seed,
    Spreadsheet,
    a_cost,
    a_detail,
    a_smoothness,
    a_tile,
    one_or_more,
    some_frames,
    some_points,
    two_or_more,
)

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


def _finish(work: Callable[[], int], *, stopped: str = NOTHING_WRITTEN) -> NoReturn:
    """Do the work of a command and exit with its code; never a traceback for bad input."""
    try:
        code = work()
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
    "unshuffle match old.csv new.csv --id customer --kernel rbf --kernel laplacian\n\n"
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
        list[Kernel] | None,
        typer.Option(
            help="Similarity inside each collection. Several are summed: give the option once for "
            "each. Tables take all but text, pictures all but text and chi2, texts text alone. "
            "Default: what suits the kind.",
            show_default=False,
        ),
    ] = None,
    precomputed: Annotated[
        bool, typer.Option("--precomputed", help="A and B are Gram matrices (.npy).")
    ] = False,
    method: Annotated[Method, typer.Option(help="How to search.")] = Method.refined,
    n_init: Annotated[
        int,
        typer.Option(
            callback=one_or_more, help="Starting points; more take longer and miss less."
        ),
    ] = 8,
    max_iter: Annotated[
        int,
        typer.Option(
            callback=one_or_more,
            help="Steps after which a search from one starting point is cut off; more take "
            "longer.",
        ),
    ] = 100,
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
            callback=a_cost,
            help="Let items go without a partner at this cost, above 0; lower leaves out more.",
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(callback=one_or_more, help="Also write the K best partners.", metavar="K"),
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="For pictures: draw the pairs into this file (.png).")
    ] = None,
    id_column: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help=f"{ID_HELP} Give it twice where A and B have other headings.",
            show_default=False,
        ),
    ] = None,
    no_id: NoId = False,
    header: Header = None,
    spreadsheet: Spreadsheet = False,
    no_recursive: NoRecursive = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find which item of A belongs to which item of B.

    A and B share no features: the pairing comes from the similarities inside each. They are
    two folders of pictures or of text files, in sub-folders too, two tables (.csv, .tsv, .npy,
    .parquet) or, with --precomputed, two Gram matrices. Ctrl-C writes the best pairs found so
    far.
    """
    if output is None and not as_json:
        output = Path("pairs.csv")

    def work() -> int:
        # Loading takes long enough to be interrupted.
        from unshuffle.cli import _match
        from unshuffle.cli._tables import readings

        return _match.match(
            _match.Options(
                path_a=a,
                path_b=b,
                output=output,
                kernels=[each.value for each in kernel or ()],
                readings=readings(header, id_column or [], no_id, 2),
                precomputed=precomputed,
                method=method.value,
                n_init=n_init,
                max_iter=max_iter,
                frozen=frozen,
                unmatched_cost=unmatched_cost,
                candidates=candidates,
                sheet=sheet,
                spreadsheet=spreadsheet,
                recursive=not no_recursive,
                seed=seed,
                jobs=jobs,
                as_json=as_json,
                quiet=quiet,
            )
        )

    _finish(work)


@app.command(
    epilog="Examples:\n\n"
    "unshuffle layout photos/ -o wall.html -o wall.png\n\n"
    'unshuffle layout photos/ --text "PAMI 2009" -o letters.png\n\n'
    "unshuffle layout album/ --summary 64 --shape 8x8 --features texture\n\n"
    "unshuffle layout photos/ --shape 16x20 --frozen cells.csv --quality best\n\n"
    "unshuffle layout songs.csv -o positions.csv"
)
def layout(
    path: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of pictures, or a table of numbers.")
    ],
    output: Outputs = None,
    shape: Annotated[
        str | None,
        typer.Option(metavar="ROWSxCOLUMNS", help="Grid, as in 16x20. Default: near square."),
    ] = None,
    mask: Annotated[
        Path | None,
        typer.Option(help="Picture of a shape to fill: its dark or its opaque parts."),
    ] = None,
    invert: Annotated[
        bool,
        typer.Option("--invert", help="Fill the light or transparent parts of --mask instead."),
    ] = False,
    text: Annotated[
        str | None, typer.Option(help="Letters to fill; \\n starts a new line.")
    ] = None,
    wrap: Annotated[
        bool, typer.Option("--wrap", help="Opposite edges belong together, as for a wallpaper.")
    ] = False,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="color|texture|words|FILE.npy",
            help="What pictures are compared by: their colours, colours and edges, visual words, "
            "or an array of your own with a row for each picture. Default: color.",
        ),
    ] = None,
    summary: Annotated[
        int | None,
        typer.Option(
            callback=two_or_more, metavar="K", help="Lay out the K items that stand for all."
        ),
    ] = None,
    quality: Annotated[
        Quality, typer.Option(help="How much time to take; classic is the paper's method.")
    ] = Quality.balanced,
    tile: Annotated[
        int, typer.Option(callback=a_tile, help="Height of a picture in pixels.")
    ] = 64,
    no_recursive: NoRecursive = False,
    no_cache: NoCache = False,
    frozen: Annotated[
        Path | None,
        typer.Option(
            help="CSV of items with a fixed place: name or position, row, column, counted from 0."
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help=ID_HELP, show_default=False)
    ] = None,
    no_id: NoId = False,
    header: Header = None,
    spreadsheet: Spreadsheet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Lay out pictures so that like stands beside like.

    FOLDER holds pictures, in sub-folders too; a table (.csv, .tsv, .npy, .parquet) is laid out
    by its rows. Without -o it writes wall.html, one page to zoom and search, which needs no
    network (wall.csv for a table); with --json it writes no file unless -o asks for one.
    Ctrl-C writes the best layout found so far.
    """

    def work() -> int:
        from unshuffle.cli import _layout
        from unshuffle.cli._layout_items import Options
        from unshuffle.cli._tables import readings

        columns = [] if id_column is None else [id_column]
        return _layout.layout(
            Options(
                path=path,
                outputs=output or [],
                shape=shape,
                mask=mask,
                invert=invert,
                text=text,
                wrap=wrap,
                features=features,
                summary=summary,
                quality=quality.value,
                tile=tile,
                recursive=not no_recursive,
                use_cache=not no_cache,
                frozen=frozen,
                reading=readings(header, columns, no_id, 1)[0],
                spreadsheet=spreadsheet,
                seed=seed,
                jobs=jobs,
                as_json=as_json,
                quiet=quiet,
            )
        )

    _finish(work)


@app.command(
    epilog="Examples:\n\n"
    "unshuffle collage portrait.jpg photos/ -o collage.png\n\n"
    "unshuffle collage portrait.jpg photos/ --shape 60x40 --tile 48 -o collage.jpg\n\n"
    "unshuffle collage portrait.jpg photos/ --shape 60x40 --repeat 5 --smoothness 0"
)
def collage(
    template: Annotated[
        Path, typer.Argument(metavar="TEMPLATE", help="Picture that the collage is to show.")
    ],
    path: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of pictures to use.")],
    output: Outputs = None,
    shape: Annotated[
        str | None,
        typer.Option(
            metavar="ROWSxCOLUMNS",
            help="Grid, as in 40x60. Default: as large as the pictures fill.",
        ),
    ] = None,
    smoothness: Annotated[
        float,
        typer.Option(
            callback=a_smoothness,
            help="From 0 to 1: how much neighbours should look alike; more follows the template "
            "less.",
        ),
    ] = 0.3,
    repeat: Annotated[
        int | None,
        typer.Option(
            callback=one_or_more,
            metavar="K",
            help="Use a picture up to K times: comes closer to the template with --shape, makes a "
            "larger grid without. Default: as few as the grid asks for.",
        ),
    ] = None,
    detail: Annotated[
        int,
        typer.Option(
            callback=a_detail,
            help="Parts along the side of a picture that are compared with the template; 1 "
            "compares mean colours.",
        ),
    ] = 3,
    neighbors: Annotated[
        Neighbors,
        typer.Option(
            help="What is to look alike: the eight around each, or, with laplacian, the four that "
            "touch, but not across an edge of the template."
        ),
    ] = Neighbors.kernel,
    tile: Annotated[
        int, typer.Option(callback=a_tile, help="Height of a picture in pixels.")
    ] = 32,
    no_recursive: NoRecursive = False,
    no_cache: NoCache = False,
    spreadsheet: Spreadsheet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draw one picture with many: each is used where it suits the template.

    Without -o it writes collage.png; with --json it writes no file unless -o asks for one.
    Ctrl-C writes the best collage found so far.
    """

    def work() -> int:
        from unshuffle.cli import _collage

        return _collage.collage(
            _collage.Options(
                template=template,
                path=path,
                outputs=output or [],
                shape=shape,
                smoothness=smoothness,
                repeat=repeat,
                detail=detail,
                neighbors=neighbors.value,
                tile=tile,
                recursive=not no_recursive,
                use_cache=not no_cache,
                spreadsheet=spreadsheet,
                seed=seed,
                jobs=jobs,
                as_json=as_json,
                quiet=quiet,
            )
        )

    _finish(work)


@app.command(
    epilog="Examples:\n\n"
    "unshuffle morph three.png nine.png -o morph.gif\n\n"
    "unshuffle morph cat.png dog.png -o morph.gif -o morph.png --points 1000\n\n"
    "unshuffle morph before.csv after.csv --json"
)
def morph(
    a: Annotated[Path, typer.Argument(metavar="A", help="Shape to start from.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Shape to end at.")],
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
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(
            callback=some_points,
            help="Points to draw from each; more show finer detail. Default: 200 for pictures, "
            "all for point files.",
            show_default=False,
        ),
    ] = None,
    frames: Annotated[
        int | None,
        typer.Option(
            callback=some_frames,
            help="Pictures on the way, both ends included. Default: 24 in .gif, 7 in .png.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Turn one shape into another, so that neighbouring points move together.

    A and B are pictures of a shape on a plain ground (ink on paper, or light on dark), or point
    files: tables with x and y in two columns (.csv, .tsv, .npy, .parquet), y up. Both are drawn
    at the same size.
    """

    def work() -> int:
        from unshuffle.cli import _morph

        return _morph.morph(
            _morph.Options(
                path_a=a,
                path_b=b,
                outputs=output or [],
                n_points=points,
                n_frames=frames,
                seed=seed,
                as_json=as_json,
                quiet=quiet,
            )
        )

    _finish(work)


@app.command(epilog="Example:\n\nunshuffle demo -o /tmp/pictures")
def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder to write into; made if need be.")
    ] = Path("unshuffle-demo"),
    jobs: Jobs = -1,
) -> None:
    """Make pictures and a page from data that ships with scikit-learn; needs no input."""

    def work() -> int:
        from unshuffle.cli import _demo

        return _demo.demo(output, n_jobs=jobs)

    _finish(work, stopped="Interrupted; the demo is not complete.")
