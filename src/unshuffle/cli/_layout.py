"""`unshuffle layout`: read a collection, lay it out, write the result."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unshuffle
from unshuffle._core.arrays import check_n_items
from unshuffle._core.parameters import did_you_mean
from unshuffle._files.documents import read_documents
from unshuffle._files.paths import BadInput
from unshuffle._files.tables import Table, TableOptions, counted
from unshuffle._run.device import find_device
from unshuffle.cli._app import (
    fit,
    note,
    one_line,
    progress_bar,
    say,
    user_warnings,
    warn,
)
from unshuffle.cli._data import check_data_file, folder_column, read_data, read_headings
from unshuffle.cli._frozen import CELLS_EXPECTED, read_frozen_cells, read_frozen_lines
from unshuffle.cli._inputs import (
    KINDS,
    PREVIEW_SIDE,
    PictureFolder,
    check_layout_features,
    count_folders,
    describe_texts,
    find_kind,
    list_skipped,
    parse_shape,
    read_numbers,
    say_read,
    skipped_records,
    table_options,
    without_outputs,
)
from unshuffle.cli._options import LayoutOptions
from unshuffle.cli._writing import (
    PAGE_SUFFIXES,
    PICTURE_SUFFIXES,
    WALL_SUFFIXES,
    WallFolder,
    any_with_suffix,
    check_drawable,
    check_outputs,
    default_output,
    deliver_wall,
    ignore_interrupts,
)
from unshuffle.encoders import has_content
from unshuffle.images import (
    ImageCollection,
    default_cache,
    describe,
    read_mask,
    text_mask,
    text_tiles,
)
from unshuffle.layout import Positions, look_alikes, rectangle_for, summarize

SHEET_SIDE = 64  # of pictures on a sheet, unless the user asks for another
COMPARED_SIDE = 40  # at which pictures are compared, as in the paper
TEXT_SIDE = 128  # of tiles with texts, which are hard to read at the side of pictures
LEAST_TEXT_SIDE = 8
MOST_LARGE_TEXTS = 600  # whose larger tiles are held in memory
MOST_IN_FILE = 4000  # items for which a page of one file is suggested
N_LOOK_ALIKES = 8


@dataclass(frozen=True)
class Items:
    """The items to lay out: the whole collection, or its summary."""

    names: list[str]  # "" for an item without a name
    vectors: Any  # or texts, or a list of both
    kernel: str | list[str]
    n_read: int  # number of items before the summary
    pictures: ImageCollection | None = None
    texts: list[str] | None = None
    columns: dict[str, list[str]] = field(default_factory=dict)  # what else is known of them
    table: Table | None = None
    skipped: list[tuple[str, str]] = field(default_factory=list)  # files, and why

    def __len__(self) -> int:
        return len(self.names)


def layout(options: LayoutOptions) -> int:
    """Lay out a collection and return the exit code: 0, 130 after Ctrl-C, 3 if not written."""
    table = table_options(options, 1)[0]
    kind = find_kind(options.path, recursive=not options.no_recursive)
    outputs = _choose_outputs(options, kind, table)
    features = _check_early(options, kind, outputs)
    folder = PictureFolder(options, outputs, any_with_suffix(outputs, PICTURE_SUFFIXES))
    items = _read(folder, options, features, table, kind)
    cells = _choose_cells(options, len(items))
    check_drawable(outputs, cells.shape)
    frozen = None
    if options.frozen is not None:
        frozen, gone = read_frozen_cells(options.frozen, items.names, cells)
        if gone and not options.quiet:
            listed = ", ".join(gone[:3]) + ", ..." * (len(gone) > 3)
            note(
                f"{options.frozen} places {counted(len(gone), 'item')} that {options.path} does "
                f"not have any more ({listed}). Their cells are free."
            )
    if items.table is not None and not options.quiet:
        note(items.table.note)
    _suggest_folder(outputs, len(items), options)
    estimator = unshuffle.GridLayout(
        # A rectangle is faster than a mask with all its cells.
        shape=cells.shape if cells.all() else cells,
        wrap=options.wrap,
        # None lets "classic" use the kernel of the paper.
        kernel=None if items.kernel == "linear" else items.kernel,
        quality=options.quality.value,
        random_state=options.seed,
        n_jobs=options.jobs,
        device=options.device,
    )
    remarks, interrupted = fit(
        estimator, items.vectors, frozen=frozen, words="Laying out", show=not options.quiet
    )
    with ignore_interrupts():
        report = _describe(items, cells, estimator, options)
        report["warnings"] = [one_line(remark.message) for remark in remarks]
        report["interrupted"] = interrupted
        wall = _make_wall(items, Positions(estimator.grid_, items.names), report, folder)
        by_default = items.pictures is not None and not options.compared
        show = partial(_show, by_color=by_default and has_content())
        return deliver_wall(wall, outputs, items.skipped, show)


def _choose_outputs(options: LayoutOptions, kind: str, table: TableOptions) -> list[Path]:
    """Files to write, checked."""
    default = "wall.csv" if kind == "table" else "wall.html"
    outputs = options.output or ([] if options.as_json else [default_output(default)])
    if [options.shape, options.mask, options.text].count(None) < 2:
        raise BadInput("--shape, --mask and --text exclude each other. Give one of them.")
    if options.invert and options.mask is None:
        raise BadInput("--invert needs --mask. Give a mask, or leave --invert out.")
    own = [Path(each) for each in options.compared if Path(each).suffix]
    check_outputs(
        [(path, WALL_SUFFIXES) for path in outputs],
        (options.path, options.mask, options.frozen, options.data, *own),
        recursive=not options.no_recursive,
        spreadsheet=options.spreadsheet,
    )
    if kind != "table":
        unnamed = replace(table, names=None) if options.data is not None else table
        unnamed.check_unused(options.path, KINDS[kind])
    elif any_with_suffix(outputs, PICTURE_SUFFIXES):
        raise BadInput(
            f"{options.path} holds no pictures to show. Write the positions to a .csv or .json "
            "file."
        )
    elif options.features is not None:
        raise BadInput(
            f"--features compares pictures or texts; {options.path} is a table. Leave it out."
        )
    return outputs


def _check_early(options: LayoutOptions, kind: str, outputs: Sequence[Path]) -> list[Any]:
    """Refuse bad options before the items are read, which may take minutes.

    Returns the kinds of features, with encoders loaded.
    """
    find_device(options.device)
    if options.shape is not None:
        parse_shape(options.shape)
    else:
        _choose_cells(options, 1)
    if options.frozen is not None:
        read_frozen_lines(options.frozen, CELLS_EXPECTED)
    asked = {"--data": options.data, "--labels": options.labels, "--link": options.link or None}
    for option, value in asked.items():
        if value is not None and (kind == "table" or not any_with_suffix(outputs, PAGE_SUFFIXES)):
            raise BadInput(
                f"{option} is for pages of pictures or texts. Leave it out, or add -o wall.html."
            )
    if options.labels is not None and options.labels != "folder":
        _check_labels(options.labels, options.data)
    elif options.data is not None:
        check_data_file(options.data)
    return [] if kind == "table" else check_layout_features(options, kind)


def _check_labels(labels: str, data: Path | None) -> None:
    """Refuse a column that no table has."""
    if not labels.strip():
        raise BadInput("--labels is empty. Give the heading of a column of --data, or folder.")
    if data is None:
        raise BadInput(
            f"--labels {labels!r} names a column, and no table is given. Add the table with "
            "--data, or give --labels folder, which needs none."
        )
    headings = read_headings(data)
    # A table without headings is known as one once its rows are put to the items.
    if labels not in headings and not labels.startswith("column "):
        raise _no_such_column(labels, [*headings, "folder"], f"Columns of {data}")


def _no_such_column(labels: str, columns: list[str], called: str) -> BadInput:
    listed = ", ".join(map(repr, columns))
    return BadInput(
        f"--labels {labels!r} is not a column.{did_you_mean(labels, columns)} {called}: {listed}."
    )


def _choose_cells(options: LayoutOptions, n_items: int) -> NDArray[np.bool_]:
    """The cells to use, of a rectangle or a mask."""
    if options.text is not None:
        # A shell passes a backslash and an n.
        text = options.text.replace("\\n", "\n")
        if not text.strip():
            raise BadInput(
                f"--text {options.text!r} has no letter to draw. Give at least one, such as A."
            )
        return text_mask(text, n_items)
    if options.mask is not None:
        return read_mask(options.mask, n_items, invert=options.invert)
    shape = rectangle_for(n_items) if options.shape is None else parse_shape(options.shape)
    n_cells = shape[0] * shape[1]
    if n_cells < n_items:
        fewer = f", or choose some of them with --summary {n_cells}" if n_cells > 1 else ""
        raise BadInput(
            f"--shape {shape[0]}x{shape[1]} has {counted(n_cells, 'cell')} for {n_items:,} items. "
            f"Give a larger shape{fewer}."
        )
    return np.ones(shape, dtype=bool)


def _read(
    folder: PictureFolder,
    options: LayoutOptions,
    features: list[Any],
    table: TableOptions,
    kind: str,
) -> Items:
    """The items to lay out."""
    every: dict[str, Any]
    kernel: str | list[str]
    if kind == "images":
        pictures = folder.read_and_report(COMPARED_SIDE)
        vectors, kernel = _compare_pictures(pictures, options, features)
        names, every = pictures.names, {"pictures": pictures, "skipped": pictures.skipped}
        every["columns"] = _read_columns(options, names)
    elif kind == "text":
        texts, names, skipped = _read_texts(options, folder.outputs)
        with progress_bar("Comparing", show=not options.quiet) as advance:
            each = repeat(lambda done, total: advance(done / max(total, 1), f"{done:,}"))
            vectors, kernel = describe_texts(texts, features, "linear", each)
        titles = [textwrap.shorten(text.strip().partition("\n")[0], 120) for text in texts]
        columns = {"title": titles, **_read_columns(options, names)}
        every = {"texts": texts, "skipped": skipped, "columns": columns}
    else:
        read = read_numbers(options.path, table, ["linear"])
        names, vectors, kernel, every = read.names, read.items, "linear", {"table": read.table}
    items = Items(names, vectors, kernel, len(names), **every)
    if options.summary is not None:
        items = _summarize(items, options.summary, options.seed)
    check_n_items(len(items), str(options.path))
    return items


def _read_columns(options: LayoutOptions, names: list[str]) -> dict[str, list[str]]:
    """What else is known of the items: their folders, and the columns of --data."""
    columns: dict[str, list[str]] = {}
    if options.data is not None:
        data = read_data(options.data, names, column=options.id_column)
        columns |= data.columns
        if not options.quiet:
            note(data.note)
    folders = folder_column(names)
    if folders is not None:
        columns.setdefault("folder", folders)
    if options.labels is not None and options.labels not in columns:
        if options.labels == "folder":
            raise BadInput(
                f"--labels folder has nothing to tell apart: all files of {options.path} are in "
                "one folder. Leave it out, or give a folder with sub-folders."
            )
        raise _no_such_column(options.labels, list(columns), "Columns")
    return columns


def _compare_pictures(
    pictures: ImageCollection, options: LayoutOptions, features: list[Any]
) -> tuple[Any, str]:
    """Vectors of the pictures, and their kernel."""
    with (
        progress_bar("Comparing", show=not options.quiet) as advance,
        user_warnings() as remarks,
    ):
        described = describe(
            pictures,
            features,
            cache=None if options.no_cache else default_cache(),
            random_state=options.seed,
            n_jobs=options.jobs,
            on_progress=lambda done, total: advance(done / max(total, 1), ""),
        )
    for remark in () if options.quiet else remarks:
        warn(remark.message)
    return described


def _read_texts(
    options: LayoutOptions, outputs: Sequence[Path]
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """Texts, their names, and files that are none, and print what was read."""
    with progress_bar("Reading", show=not options.quiet) as advance:
        texts, names, skipped = read_documents(
            options.path,
            recursive=not options.no_recursive,
            on_progress=lambda done, total: advance(done / max(total, 1), f"{done:,}"),
        )
    skipped = without_outputs(skipped, options.path, outputs)
    if not options.quiet:
        if not options.as_json:
            say_read(names, len(skipped), str(options.path))
        list_skipped(skipped, str(options.path))
    return texts, names, skipped


def _summarize(items: Items, k: int, seed: int) -> Items:
    """Representative items, with the number of items that each represents."""
    if k > len(items):
        raise BadInput(
            f"--summary {k} asks for more than the {len(items):,} items there are. Give a smaller "
            "number, or leave it out."
        )
    summary = summarize(items.vectors, k, kernel=items.kernel, random_state=seed)
    # In the order of the folder, as without a summary.
    order = np.argsort(summary.indices)
    chosen, counts = summary.indices[order], summary.counts[order]

    def some(of: list[str]) -> list[str]:
        return [of[i] for i in chosen]

    return replace(
        items,
        names=some(items.names),
        vectors=_choose(items.vectors, items.kernel, chosen),
        pictures=None if items.pictures is None else items.pictures.take(chosen),
        texts=None if items.texts is None else some(items.texts),
        columns={
            "stands for": [f"{count:,}" for count in counts],
            **{heading: some(texts) for heading, texts in items.columns.items()},
        },
    )


def _choose(vectors: Any, kernel: str | list[str], chosen: NDArray[np.intp]) -> Any:
    """Some of the items: rows of numbers, texts, or both."""
    if isinstance(kernel, list):
        return [_choose(one, of, chosen) for one, of in zip(vectors, kernel, strict=True)]
    return [vectors[i] for i in chosen] if kernel == "text" else vectors[chosen]


def _describe(
    items: Items, cells: NDArray[np.bool_], estimator: Any, options: LayoutOptions
) -> dict[str, Any]:
    """Everything but the positions, ready for JSON."""
    usual = None if items.table is not None else "color" if items.texts is None else "tfidf"
    as_paper = options.quality.value == "classic" and items.kernel == "linear"
    return {
        "n_read": items.n_read,
        "n_folders": None if items.table is not None else count_folders(items.names),
        "n_items": len(items),
        "shape": list(cells.shape),
        "n_cells": int(cells.sum()),
        "wrap": options.wrap,
        "features": "+".join(options.compared) or usual,
        "kernel": "rbf" if as_paper else items.kernel,
        "quality": options.quality.value,
        "score": float(estimator.score_),
        "skipped": skipped_records(items.skipped),
        "table": None if items.table is None else items.table.describe(),
    }


def _suggest_folder(outputs: Sequence[Path], n_items: int, options: LayoutOptions) -> None:
    """Say that a large wall opens faster from a folder."""
    page = next((path for path in outputs if path.suffix.lower() in PAGE_SUFFIXES), None)
    if page is not None and page.suffix and n_items > MOST_IN_FILE and not options.quiet:
        note(
            f"{n_items:,} items in one file open slowly and less sharp. -o {page.stem}/ writes a "
            "folder instead, which opens at once."
        )


def _make_wall(
    items: Items, positions: Positions, report: dict[str, Any], folder: PictureFolder
) -> WallFolder:
    options, draw = folder.options, None
    assert isinstance(options, LayoutOptions)
    page: dict[str, Any] = {}
    if items.pictures is not None:
        draw = partial(folder.tiles, items.pictures)
        page = {"images": items.pictures}
    elif items.texts is not None:
        draw = partial(_draw_texts, items.texts)
        if any_with_suffix(folder.outputs, PAGE_SUFFIXES):
            side = PREVIEW_SIDE if len(items) <= MOST_LARGE_TEXTS else TEXT_SIDE
            page = {"images": text_tiles(items.texts, side=side), "noun": "text"}
    if page:
        page |= {
            "grid": positions.grid,
            "names": items.names,
            "columns": items.columns,
            "labels": options.labels,
            # After Ctrl-C, do not make the user wait for more.
            "neighbors": None if report["interrupted"] else _find_look_alikes(items, folder),
        }
    return WallFolder(
        positions,
        report,
        title=options.path.resolve().name or "unshuffle",
        options=options,
        draw=draw,
        page=page,
        originals=options.path if options.link else None,
        tile=SHEET_SIDE if items.texts is None else TEXT_SIDE,
    )


def _draw_texts(texts: list[str], side: int) -> NDArray[np.uint8]:
    return text_tiles(texts, side=max(side, LEAST_TEXT_SIDE))


def _find_look_alikes(items: Items, folder: PictureFolder) -> NDArray[np.intp] | None:
    """The nearest others of each item, if a page shows them."""
    options = folder.options
    if not any_with_suffix(folder.outputs, PAGE_SUFFIXES) or len(items) < 2:
        return None
    with progress_bar("Finding look-alikes", show=not options.quiet) as advance:
        return look_alikes(
            items.vectors,
            N_LOOK_ALIKES,
            kernel=items.kernel,
            random_state=options.seed,
            n_jobs=options.jobs,
            on_progress=lambda done, total: advance(done / max(total, 1), ""),
        )


def _show(report: dict[str, Any], *, by_color: bool) -> None:
    if report["interrupted"]:
        warn("Interrupted: this is the best layout found so far, not a finished one.")
    for message in report["warnings"]:
        warn(message)
    rows, columns = report["shape"]
    empty = report["n_cells"] - report["n_items"]
    where = f"on {rows} x {columns} cells"
    if report["n_cells"] < rows * columns:
        where = f"on the {report['n_cells']:,} cells of a shape, {rows} x {columns}"
    left = f", {empty:,} left empty" if empty else ""
    of_all = f" of {report['n_read']:,}" if report["n_items"] < report["n_read"] else ""
    say(
        f"Laid out {report['n_items']:,}{of_all} items {where}{left}: distance preservation "
        f"{report['score']:.3f} (1 is perfect, random order about 0.2 to 0.45)."
    )
    if by_color:
        say("Arranged by color; --features content puts pictures of the same things together.")
