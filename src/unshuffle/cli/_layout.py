"""`unshuffle layout`: read a collection, lay it out, write what came out."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._files import check_regular_file
from unshuffle.cli import _pictures
from unshuffle.cli._cells import FROZEN_LINES, parse_shape, read_cells
from unshuffle.cli._console import (
    BadInput,
    answer,
    note,
    one_line,
    progress_bar,
    reporting,
    say,
    warn,
)
from unshuffle.cli._frozen import read_rows
from unshuffle.cli._inputs import KINDS, find_kind
from unshuffle.cli._layout_items import Items, Options, read_items
from unshuffle.cli._walls import (
    WALL_SUFFIXES,
    Wall,
    check_drawable,
    describe_all,
    show_all,
    wants_page,
    wants_pictures,
    write_all,
)
from unshuffle.cli._writing import (
    Written,
    check_outputs,
    check_spreadsheet,
    complain_of,
    exit_code,
    unbothered,
)
from unshuffle.images import FEATURES, read_mask, text_mask
from unshuffle.layout import Positions, rectangle_for

Grid = NDArray[np.intp]


def layout(options: Options) -> int:
    """Do it, and return the exit code: 0, 130 after Ctrl-C, 3 if not written as asked."""
    kind = find_kind(options.path, recursive=options.recursive)
    outputs = _outputs(options, kind)
    options = replace(options, outputs=outputs)
    _check_early(options)
    items = read_items(options, kind)
    cells = _cells(options, len(items))
    check_drawable(outputs, cells.shape)
    frozen = None
    if options.frozen is not None:
        frozen = read_cells(options.frozen, items.names, cells)
    if items.table is not None and not options.quiet:
        note(items.table.note)
    estimator, remarks, interrupted = _fit(items, cells, frozen, options)
    with unbothered():
        report = _describe(items, cells, estimator, options)
        report["warnings"] = [one_line(remark.message) for remark in remarks]
        report["interrupted"] = interrupted
        positions = Positions(estimator.grid_, items.names)
        wall = _wall(items, positions, dict(report), outputs, options)
        written = write_all(wall, outputs)
        skipped = items.pictures.skipped if items.pictures is not None else []
        report |= describe_all(written, skipped, spreadsheet=options.spreadsheet)
        complain_of(written)
        if options.as_json:
            # One object and nothing else.
            answer(json.dumps({**report, "positions": positions.rows()}, allow_nan=False))
        elif not options.quiet:
            _show(report, written)
    return exit_code(written, interrupted)


def _outputs(options: Options, kind: str) -> list[Path]:
    """Where to write, once it is clear that all of it can be."""
    if kind == "text":
        raise BadInput(
            f"{options.path} is a folder of text files. Give a folder of pictures, or a table of "
            "numbers."
        )
    outputs = options.outputs
    if not outputs and not options.as_json:
        outputs = [Path("wall.html" if kind == "images" else "wall.csv")]
    if [options.shape, options.mask, options.text].count(None) < 2:
        raise BadInput("--shape, --mask and --text exclude each other. Give one of them.")
    if options.invert and options.mask is None:
        raise BadInput("--invert takes the other parts of a --mask. Give one, or leave it out.")
    own = Path(options.features) if options.features not in (None, *FEATURES) else None
    check_outputs(
        [(path, WALL_SUFFIXES) for path in outputs],
        (options.path, options.mask, options.frozen, own),
        recursive=options.recursive,
    )
    check_spreadsheet(options.spreadsheet, outputs)
    if kind == "images":
        options.reading.check_unused(options.path, KINDS[kind])
        return outputs
    if wants_pictures(outputs):
        raise BadInput(
            f"{options.path} holds no pictures to show. Write the positions: give names that end "
            "in .csv or .json."
        )
    if options.features is not None:
        raise BadInput(f"--features compares pictures; {options.path} is a table. Leave it out.")
    return outputs


def _check_early(options: Options) -> None:
    """Refuse what cannot be used before the pictures are read, which may take minutes."""
    if options.shape is not None:
        parse_shape(options.shape)
    if options.text is not None:
        text_mask(_as_lines(options.text), 1)
    if options.mask is not None:
        read_mask(options.mask, 1, invert=options.invert)
    if options.frozen is not None:
        read_rows(options.frozen, FROZEN_LINES)
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


def _cells(options: Options, n_items: int) -> NDArray[np.bool_]:
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


def _fit(
    items: Items, cells: NDArray[np.bool_], frozen: Grid | None, options: Options
) -> tuple[Any, list[warnings.WarningMessage], bool]:
    from unshuffle import GridLayout

    with (
        progress_bar("Laying out", show=not options.quiet) as advance,
        warnings.catch_warnings(record=True) as remarks,
    ):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        estimator = GridLayout(
            # A rectangle is quicker than a mask that has all its cells.
            shape=cells.shape if cells.all() else cells,
            wrap=options.wrap,
            # None lets "classic" compare as the paper does.
            kernel=None if items.kernel == "linear" else items.kernel,
            quality=options.quality,
            random_state=options.seed,
            n_jobs=options.jobs,
            callback=reporting(advance),
        )
        try:
            estimator.fit(items.vectors, frozen=frozen)
        except KeyboardInterrupt:
            if not hasattr(estimator, "grid_"):
                raise
            return estimator, remarks, True
    return estimator, remarks, False


def _describe(
    items: Items, cells: NDArray[np.bool_], estimator: Any, options: Options
) -> dict[str, Any]:
    """All but the positions, fit for JSON."""
    skipped = items.pictures.skipped if items.pictures is not None else []
    as_paper = options.quality == "classic" and items.kernel == "linear"
    return {
        "n_read": items.n_read,
        "n_folders": items.n_folders,
        "n_items": len(items),
        "shape": list(cells.shape),
        "n_cells": int(cells.sum()),
        "wrap": options.wrap,
        "features": options.features or ("color" if items.pictures is not None else None),
        "kernel": "rbf" if as_paper else items.kernel,
        "quality": options.quality,
        "score": float(estimator.score_),
        "skipped": [{"name": name, "reason": why} for name, why in skipped],
        "table": None if items.table is None else items.table.described(),
    }


def _wall(
    items: Items,
    positions: Positions,
    details: dict[str, Any],
    outputs: list[Path],
    options: Options,
) -> Wall:
    images, larger = None, None
    if items.pictures is not None and wants_pictures(outputs):
        images = _pictures.drawn(options.source, items.pictures, options.tile)[items.chosen]
        # Someone who pressed Ctrl-C does not want to wait for another reading.
        if wants_page(outputs) and not details["interrupted"]:
            larger = _pictures.previews(options.source, items.pictures, items.chosen)
    return Wall(
        positions,
        details,
        title=options.path.resolve().name or "unshuffle",
        images=images,
        tile=options.tile,
        captions=items.captions,
        previews=larger,
        spreadsheet=options.spreadsheet,
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
