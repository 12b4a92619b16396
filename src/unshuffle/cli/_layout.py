"""`unshuffle layout`: read a collection, lay it out, write what came out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unshuffle
from unshuffle._arrays import check_n_items
from unshuffle._files import check_regular_file
from unshuffle.cli._app import BadInput, fit, note, one_line, progress_bar, say, warn
from unshuffle.cli._inputs import (
    KINDS,
    Source,
    compared,
    count_folders,
    find_kind,
    find_position,
    frozen_lines,
    is_integer,
    name_or_number,
    parse_shape,
    read_numbers,
)
from unshuffle.cli._options import LayoutOptions
from unshuffle.cli._tables import Reading, Table, readings
from unshuffle.cli._writing import (
    PAGE_SUFFIXES,
    PICTURE_SUFFIXES,
    WALL_SUFFIXES,
    Wall,
    Written,
    check_drawable,
    check_outputs,
    deliver,
    describe_all,
    save_somewhere,
    show_all,
    unbothered,
    wants,
)
from unshuffle.images import (
    FEATURES,
    ImageCollection,
    describe,
    read_features,
    read_mask,
    text_mask,
)
from unshuffle.layout import Positions, rectangle_for, summarize

FROZEN_LINES = "Give one line for each item: name, row, column."
_OWN = ("item", "name", "row", "column")


@dataclass(frozen=True)
class Items:
    """What is laid out: all that was read, or what stands for it."""

    # "" where an item has none.
    names: list[str]
    vectors: Any
    kernel: str
    # Their folder, where they are pictures, and which of its pictures they are.
    pictures: ImageCollection | None
    chosen: NDArray[np.intp]
    # How many there were before a summary was made.
    n_read: int
    captions: list[str] | None = None
    table: Table | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """Files passed over, and why."""
        return [] if self.pictures is None else self.pictures.skipped


def layout(options: LayoutOptions) -> int:
    """Do it, and return the exit code: 0, 130 after Ctrl-C, 3 if not written as asked."""
    reading = readings(options, 1)[0]
    kind = find_kind(options.path, recursive=not options.no_recursive)
    outputs = _outputs(options, kind, reading)
    _check_early(options)
    source = Source(options, outputs)
    items = _read(source, options, reading, kind)
    cells = _cells(options, len(items))
    check_drawable(outputs, cells.shape)
    frozen = None
    if options.frozen is not None:
        frozen = read_cells(options.frozen, items.names, cells)
    if items.table is not None and not options.quiet:
        note(items.table.note)
    estimator = unshuffle.GridLayout(
        # A rectangle is quicker than a mask that has all its cells.
        shape=cells.shape if cells.all() else cells,
        wrap=options.wrap,
        # None lets "classic" compare as the paper does.
        kernel=None if items.kernel == "linear" else items.kernel,
        quality=options.quality.value,
        random_state=options.seed,
        n_jobs=options.jobs,
    )
    remarks, interrupted = fit(
        estimator, items.vectors, frozen=frozen, words="Laying out", show=not options.quiet
    )
    with unbothered():
        report = _describe(items, cells, estimator, options)
        report["warnings"] = [one_line(remark.message) for remark in remarks]
        report["interrupted"] = interrupted
        positions = Positions(estimator.grid_, items.names)
        wall = _wall(items, positions, dict(report), source)
        written = [save_somewhere(path, wall.save) for path in outputs]
        report |= describe_all(written, items.skipped, spreadsheet=options.spreadsheet)
        rows = {"positions": positions.rows()} if options.as_json else {}
        return deliver(options, written, report, rows, lambda: _show(report, written))


def _outputs(options: LayoutOptions, kind: str, reading: Reading) -> list[Path]:
    """Where to write, once it is clear that all of it can be."""
    if kind == "text":
        raise BadInput(
            f"{options.path} is a folder of text files. Give a folder of pictures, or a table of "
            "numbers."
        )
    default = "wall.html" if kind == "images" else "wall.csv"
    outputs = options.output or ([] if options.as_json else [Path(default)])
    if [options.shape, options.mask, options.text].count(None) < 2:
        raise BadInput("--shape, --mask and --text exclude each other. Give one of them.")
    if options.invert and options.mask is None:
        raise BadInput("--invert takes the other parts of a --mask. Give one, or leave it out.")
    own = Path(options.features) if options.features not in (None, *FEATURES) else None
    check_outputs(
        [(path, WALL_SUFFIXES) for path in outputs],
        (options.path, options.mask, options.frozen, own),
        recursive=not options.no_recursive,
        spreadsheet=options.spreadsheet,
    )
    if kind == "images":
        reading.check_unused(options.path, KINDS[kind])
        return outputs
    if wants(outputs, PICTURE_SUFFIXES):
        raise BadInput(
            f"{options.path} holds no pictures to show. Write the positions: give names that end "
            "in .csv or .json."
        )
    if options.features is not None:
        raise BadInput(f"--features compares pictures; {options.path} is a table. Leave it out.")
    return outputs


def _check_early(options: LayoutOptions) -> None:
    """Refuse what cannot be used before the pictures are read, which may take minutes."""
    if options.shape is not None:
        parse_shape(options.shape)
    if options.text is not None:
        text_mask(_as_lines(options.text), 1)
    if options.mask is not None:
        read_mask(options.mask, 1, invert=options.invert)
    if options.frozen is not None:
        frozen_lines(options.frozen, FROZEN_LINES)
    if options.features is not None and options.features not in FEATURES:
        path = Path(options.features)
        if path.suffix.lower() != ".npy":
            raise BadInput(
                f"--features {path} is not understood. Give {', '.join(FEATURES)}, or a .npy "
                "file with one row for each picture."
            )
        check_regular_file(path, "--features")


def _as_lines(text: str) -> str:
    # A shell hands over what was typed: a backslash and an n.
    return text.replace("\\n", "\n")


def _cells(options: LayoutOptions, n_items: int) -> NDArray[np.bool_]:
    """Which cells of a rectangle there are: all of it, or those of a mask."""
    if options.text is not None:
        return text_mask(_as_lines(options.text), n_items)
    if options.mask is not None:
        return read_mask(options.mask, n_items, invert=options.invert)
    shape = rectangle_for(n_items) if options.shape is None else parse_shape(options.shape)
    n_cells = shape[0] * shape[1]
    if n_cells < n_items:
        # A summary has at least two items.
        fewer = f", or choose some of them with --summary {n_cells}" if n_cells > 1 else ""
        raise BadInput(
            f"--shape {shape[0]}x{shape[1]} has {n_cells:,} cell{'s' * (n_cells != 1)} for "
            f"{n_items:,} items. Give a larger shape{fewer}."
        )
    return np.ones(shape, dtype=bool)


def _read(source: Source, options: LayoutOptions, reading: Reading, kind: str) -> Items:
    """The collection, or what stands for it where a summary is asked for."""
    if kind == "images":
        pictures = source.read_first()
        vectors, kernel = _features(pictures, options)
        n = len(pictures)
        items = Items(pictures.names, vectors, kernel, pictures, np.arange(n), n)
    else:
        read = read_numbers(options.path, reading, ["linear"])
        n = len(read)
        items = Items(read.names, read.items, "linear", None, np.arange(n), n, table=read.table)
    if options.summary is not None:
        items = _summarized(items, options.summary, options.seed)
    check_n_items(len(items), str(options.path))
    return items


def _features(pictures: ImageCollection, options: LayoutOptions) -> tuple[Any, str]:
    if options.features in (None, *FEATURES):
        with progress_bar("Comparing", show=not options.quiet) as advance:
            return describe(
                compared(pictures.arrays),
                options.features or "color",
                random_state=options.seed,
                n_jobs=options.jobs,
                on_progress=lambda done, total: advance(done / max(total, 1), ""),
            )
    path = Path(options.features or "")
    return read_features(path, len(pictures), names=pictures.names), "linear"


def _summarized(items: Items, k: int, seed: int) -> Items:
    """The items that stand for all, with the number that each stands for."""
    if k > len(items):
        raise BadInput(
            f"--summary {k} asks for more than the {len(items):,} items there are. Give a smaller "
            "number, or leave it out."
        )
    summary = summarize(items.vectors, k, kernel=items.kernel, random_state=seed)
    # In the order of the folder, as without a summary.
    order = np.argsort(summary.indices)
    chosen, counts = summary.indices[order], summary.counts[order]
    return Items(
        names=[items.names[i] for i in chosen],
        vectors=items.vectors[chosen],
        kernel=items.kernel,
        pictures=items.pictures,
        chosen=chosen,
        n_read=items.n_read,
        captions=[f"stands for {count:,}" if count > 1 else "" for count in counts],
        table=items.table,
    )


def _describe(
    items: Items, cells: NDArray[np.bool_], estimator: Any, options: LayoutOptions
) -> dict[str, Any]:
    """All but the positions, fit for JSON."""
    pictures = items.pictures
    as_paper = options.quality.value == "classic" and items.kernel == "linear"
    return {
        "n_read": items.n_read,
        "n_folders": None if pictures is None else count_folders(pictures.names),
        "n_items": len(items),
        "shape": list(cells.shape),
        "n_cells": int(cells.sum()),
        "wrap": options.wrap,
        "features": options.features or ("color" if pictures is not None else None),
        "kernel": "rbf" if as_paper else items.kernel,
        "quality": options.quality.value,
        "score": float(estimator.score_),
        "skipped": [{"name": name, "reason": why} for name, why in items.skipped],
        "table": None if items.table is None else items.table.described(),
    }


def _wall(items: Items, positions: Positions, details: dict[str, Any], source: Source) -> Wall:
    images, larger = None, None
    if items.pictures is not None and wants(source.outputs, PICTURE_SUFFIXES):
        images = source.drawn(items.pictures)[items.chosen]
        # Someone who pressed Ctrl-C does not want to wait for another reading.
        if wants(source.outputs, PAGE_SUFFIXES) and not details["interrupted"]:
            larger = source.previews(items.pictures, items.chosen)
    return Wall(
        positions,
        details,
        title=source.options.path.resolve().name or "unshuffle",
        images=images,
        tile=source.options.tile,
        captions=items.captions,
        previews=larger,
        spreadsheet=source.options.spreadsheet,
    )


def _show(report: dict[str, Any], written: list[Written]) -> None:
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
    show_all(written, report["skipped_list"])


def read_cells(path: Path, names: list[str], cells: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Items and the flat cells they are fixed to, from a CSV file with both on each line.

    An item is named or numbered, its row and column are counted from 0, with or without a heading;
    or the file is one that `unshuffle layout` wrote, cut down to the positions to keep.
    """
    rows = frozen_lines(path, FROZEN_LINES)
    columns = _columns(rows[0][1])
    if columns is not None or _is_heading(rows[0][1], names):
        rows = rows[1:]
    frozen: list[tuple[int, int]] = []
    lines: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for line, row in rows:
        where = f"{path}, line {line}"
        found = _parts(row, columns, names)
        if found is None:
            raise BadInput(
                f"{where} has {len(row)} cell(s). Give an item, its row and its column."
            )
        if columns is not None and (not found[0] or not found[1]):
            # Our own output ends with the last cell, which may be empty.
            continue
        item = find_position(found[0], names, "the collection", where)
        cell = _cell(found[1], found[2], cells, where)
        for number, seen, what in ((item, lines[0], f"item {found[0]!r}"), (cell, lines[1], "")):
            if number in seen:
                what = what or f"the cell in row {found[1]}, column {found[2]}"
                raise BadInput(
                    f"{where}: {what} is taken already, in line {seen[number]}. Each item and "
                    "each cell may be frozen once; drop one of the two lines."
                )
            seen[number] = line
        frozen.append((item, cell))
    return np.array(frozen, dtype=np.intp).reshape(-1, 2)


def _columns(header: list[str]) -> dict[str, int] | None:
    """Where our own columns stand, if the first row is our heading."""
    found = {name.lower(): k for k, name in enumerate(header) if name.lower() in _OWN}
    named = "item" in found or "name" in found
    return found if named and {"row", "column"} <= found.keys() else None


def _is_heading(row: list[str], names: list[str]) -> bool:
    return len(row) == 3 and row[0] not in names and not any(is_integer(cell) for cell in row)


def _parts(
    row: list[str], columns: dict[str, int] | None, names: list[str]
) -> tuple[str, str, str] | None:
    if columns is None:
        return (row[0], row[1], row[2]) if len(row) == 3 else None
    if len(row) <= max(columns.values()):
        return None
    name, index = (row[columns[key]] if key in columns else "" for key in ("name", "item"))
    return name_or_number(name, index, names), row[columns["row"]], row[columns["column"]]


def _cell(row: str, column: str, cells: NDArray[np.bool_], where: str) -> int:
    n_rows, n_columns = cells.shape
    if not is_integer(row) or not is_integer(column):
        odd = column if is_integer(row) else row
        raise BadInput(f"{where}: {odd!r} is no whole number. Give row and column, from 0 on.")
    place = int(row), int(column)
    if not (0 <= place[0] < n_rows and 0 <= place[1] < n_columns):
        raise BadInput(
            f"{where}: row {row}, column {column} is outside the grid, which has {n_rows} rows "
            f"and {n_columns} columns, counted from 0."
        )
    if not cells[place]:
        raise BadInput(
            f"{where}: row {row}, column {column} is outside the mask. Choose a cell inside it."
        )
    return place[0] * n_columns + place[1]
