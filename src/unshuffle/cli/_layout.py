"""`unshuffle layout`: read a collection, lay it out, write the result."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unshuffle
from unshuffle._arrays import check_n_items
from unshuffle._device import find_device
from unshuffle._files import check_regular_file
from unshuffle.cli._app import BadInput, fit, note, one_line, progress_bar, say, warn
from unshuffle.cli._frozen import CELLS_EXPECTED, read_frozen_cells, read_frozen_lines
from unshuffle.cli._inputs import (
    KINDS,
    PictureFolder,
    count_folders,
    find_kind,
    parse_shape,
    read_numbers,
    shrink_to_compare,
    skipped_records,
)
from unshuffle.cli._options import FEATURES, LayoutOptions
from unshuffle.cli._tables import Table, TableOptions, counted, table_options
from unshuffle.cli._writing import (
    PAGE_SUFFIXES,
    PICTURE_SUFFIXES,
    WALL_SUFFIXES,
    Wall,
    any_with_suffix,
    check_drawable,
    check_outputs,
    deliver_wall,
    ignore_interrupts,
)
from unshuffle.images import ImageCollection, describe, read_features, read_mask, text_mask
from unshuffle.layout import Positions, rectangle_for, summarize


@dataclass(frozen=True)
class Items:
    """The items to lay out: the whole collection, or its summary."""

    names: list[str]  # "" for an item without a name
    vectors: Any
    kernel: str
    pictures: ImageCollection | None  # of the whole folder; None for a table
    chosen: NDArray[np.intp]  # indices of the items in the collection
    n_read: int  # number of items before the summary
    captions: list[str] | None = None
    table: Table | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """Files that were not read, and why."""
        return [] if self.pictures is None else self.pictures.skipped


def layout(options: LayoutOptions) -> int:
    """Lay out a collection and return the exit code: 0, 130 after Ctrl-C, 3 if not written."""
    table = table_options(options, 1)[0]
    kind = find_kind(options.path, recursive=not options.no_recursive)
    outputs = _choose_outputs(options, kind, table)
    _check_early(options)
    folder = PictureFolder(options, outputs)
    items = _read(folder, options, table, kind)
    cells = _choose_cells(options, len(items))
    check_drawable(outputs, cells.shape)
    frozen = None
    if options.frozen is not None:
        frozen = read_frozen_cells(options.frozen, items.names, cells)
    if items.table is not None and not options.quiet:
        note(items.table.note)
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
        return deliver_wall(wall, outputs, items.skipped, _show)


def _choose_outputs(options: LayoutOptions, kind: str, table: TableOptions) -> list[Path]:
    """Files to write, checked."""
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
        raise BadInput("--invert needs --mask. Give a mask, or leave --invert out.")
    own = Path(options.features) if options.features not in (None, *FEATURES) else None
    check_outputs(
        [(path, WALL_SUFFIXES) for path in outputs],
        (options.path, options.mask, options.frozen, own),
        recursive=not options.no_recursive,
        spreadsheet=options.spreadsheet,
    )
    if kind == "images":
        table.check_unused(options.path, KINDS[kind])
    elif any_with_suffix(outputs, PICTURE_SUFFIXES):
        raise BadInput(
            f"{options.path} holds no pictures to show. Write the positions to a .csv or .json "
            "file."
        )
    elif options.features is not None:
        raise BadInput(f"--features compares pictures; {options.path} is a table. Leave it out.")
    return outputs


def _check_early(options: LayoutOptions) -> None:
    """Refuse bad options before the pictures are read, which may take minutes."""
    find_device(options.device)
    if options.shape is not None:
        parse_shape(options.shape)
    else:
        _choose_cells(options, 1)
    if options.frozen is not None:
        read_frozen_lines(options.frozen, CELLS_EXPECTED)
    if options.features is not None and options.features not in FEATURES:
        path = Path(options.features)
        if path.suffix.lower() != ".npy":
            raise BadInput(
                f"--features {path} is not understood. Give {', '.join(FEATURES)}, or a .npy "
                "file with one row for each picture."
            )
        check_regular_file(path, "--features")


def _choose_cells(options: LayoutOptions, n_items: int) -> NDArray[np.bool_]:
    """The cells to use, of a rectangle or a mask."""
    if options.text is not None:
        # A shell passes a backslash and an n.
        return text_mask(options.text.replace("\\n", "\n"), n_items)
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


def _read(folder: PictureFolder, options: LayoutOptions, table: TableOptions, kind: str) -> Items:
    """The items to lay out."""
    if kind == "images":
        pictures = folder.read_and_report()
        vectors, kernel = _compute_features(pictures, options)
        n = len(pictures)
        items = Items(pictures.names, vectors, kernel, pictures, np.arange(n), n)
    else:
        read = read_numbers(options.path, table, ["linear"])
        n = len(read)
        items = Items(read.names, read.items, "linear", None, np.arange(n), n, table=read.table)
    if options.summary is not None:
        items = _summarize(items, options.summary, options.seed)
    check_n_items(len(items), str(options.path))
    return items


def _compute_features(pictures: ImageCollection, options: LayoutOptions) -> tuple[Any, str]:
    features = options.features or "color"
    if features not in FEATURES:
        return read_features(features, len(pictures), names=pictures.names), "linear"
    with progress_bar("Comparing", show=not options.quiet) as advance:
        return describe(
            shrink_to_compare(pictures.arrays),
            features,
            random_state=options.seed,
            n_jobs=options.jobs,
            on_progress=lambda done, total: advance(done / max(total, 1), ""),
        )


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
    return replace(
        items,
        names=[items.names[i] for i in chosen],
        vectors=items.vectors[chosen],
        chosen=chosen,
        captions=[f"stands for {count:,}" if count > 1 else "" for count in counts],
    )


def _describe(
    items: Items, cells: NDArray[np.bool_], estimator: Any, options: LayoutOptions
) -> dict[str, Any]:
    """Everything but the positions, ready for JSON."""
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
        "skipped": skipped_records(items.skipped),
        "table": None if items.table is None else items.table.describe(),
    }


def _make_wall(
    items: Items, positions: Positions, report: dict[str, Any], folder: PictureFolder
) -> Wall:
    images, previews = None, None
    if items.pictures is not None and any_with_suffix(folder.outputs, PICTURE_SUFFIXES):
        images = folder.read_tiles(items.pictures)[items.chosen]
        # After Ctrl-C, do not make the user wait for another reading.
        if any_with_suffix(folder.outputs, PAGE_SUFFIXES) and not report["interrupted"]:
            previews = folder.read_previews(items.pictures, items.chosen)
    return Wall(
        positions,
        report,
        title=folder.options.path.resolve().name or "unshuffle",
        images=images,
        options=folder.options,
        captions=items.captions,
        previews=previews,
    )


def _show(report: dict[str, Any]) -> None:
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
