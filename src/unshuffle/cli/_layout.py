"""`unshuffle layout`: read a collection, lay it out, write what came out."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from unshuffle._validation import check_n_items
from unshuffle.cli import _pictures
from unshuffle.cli._cells import near_square, parse_shape, read_cells
from unshuffle.cli._console import (
    BadInput,
    list_skipped,
    one_line,
    progress_bar,
    reporting,
    say,
    warn,
)
from unshuffle.cli._inputs import find_kind, read_vectors
from unshuffle.cli._walls import (
    WALL_SUFFIXES,
    Wall,
    show_all,
    wants_page,
    wants_pictures,
    write_all,
)
from unshuffle.cli._writing import check_not_among, check_outputs, unbothered
from unshuffle.images import (
    FEATURES,
    SUFFIXES,
    ImageCollection,
    describe,
    read_features,
    read_mask,
    text_mask,
)
from unshuffle.layout import Positions, summarize

Grid = NDArray[np.intp]


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    path: Path
    outputs: list[Path]
    shape: str | None
    mask: Path | None
    text: str | None
    wrap: bool
    features: str | None
    summary: int | None
    quality: str
    tile: int
    recursive: bool
    use_cache: bool
    frozen: Path | None
    seed: int
    jobs: int
    as_json: bool
    quiet: bool

    @property
    def source(self) -> _pictures.Source:
        """The folder, and how it is read."""
        return _pictures.Source(
            self.path, self.recursive, self.use_cache, self.jobs, show=not self.quiet
        )


@dataclass(frozen=True)
class Items:
    """What is laid out.

    Attributes
    ----------
    names : list of str
        A name for each item, "" where it has none.
    vectors : array of shape (n_items, n_features)
        What they are compared by.
    kernel : str
        How.
    pictures : ImageCollection or None
        Their folder, where they are pictures.
    chosen : ndarray of shape (n_items,)
        Which of the folder's pictures they are.
    n_read : int
        How many there were before a summary was made.
    captions : list of str or None
        What to say about each.
    """

    names: list[str]
    vectors: Any
    kernel: str
    pictures: ImageCollection | None
    chosen: NDArray[np.intp]
    n_read: int
    captions: list[str] | None = None

    def __len__(self) -> int:
        return len(self.names)


def layout(options: Options) -> int:
    """Do it, and return the exit code: 0, or 130 after Ctrl-C."""
    kind = find_kind(options.path)
    outputs = _outputs(options, kind)
    items = _read(options, kind)
    if options.summary is not None:
        items = _summarized(items, options)
    check_n_items(len(items), str(options.path))
    cells = _cells(options, len(items))
    frozen = None
    if options.frozen is not None:
        frozen = read_cells(options.frozen, items.names, cells)
    estimator, remarks, interrupted = _fit(items, cells, frozen, options)
    with unbothered():
        report = _describe(items, cells, estimator, options)
        report["warnings"] = [one_line(remark.message) for remark in remarks]
        report["interrupted"] = interrupted
        positions = Positions(estimator.grid_, items.names)
        wall = _wall(items, positions, dict(report), outputs, options)
        report["outputs"] = write_all(wall, outputs)
        if options.as_json:
            # One object and nothing else.
            answer = {**report, "positions": positions.rows()}
            typer.echo(json.dumps(answer, allow_nan=False))
        elif not options.quiet:
            _show(report, outputs)
    return 130 if interrupted else 0


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
    own = Path(options.features) if options.features not in (None, *FEATURES) else None
    check_outputs(outputs, WALL_SUFFIXES, (options.path, options.mask, options.frozen, own))
    if kind == "images":
        check_not_among(outputs, options.path, SUFFIXES)
        return outputs
    if wants_pictures(outputs):
        raise BadInput(
            f"{options.path} holds no pictures to show. Write the positions: give names that end "
            "in .csv or .json."
        )
    if options.features is not None:
        raise BadInput(f"--features compares pictures; {options.path} is a table. Leave it out.")
    return outputs


def _read(options: Options, kind: str) -> Items:
    if kind != "images":
        names, vectors = read_vectors(options.path)
        return Items(names, vectors, "linear", None, np.arange(len(names)), len(names))
    pictures = options.source.read(side=_pictures.SIDE, fit="crop", words="Reading")
    if not options.quiet:
        list_skipped(pictures.skipped, str(options.path))
    vectors, kernel = _features(pictures, options)
    n = len(pictures)
    return Items(pictures.names, vectors, kernel, pictures, np.arange(n), n)


def _features(pictures: ImageCollection, options: Options) -> tuple[Any, str]:
    if options.features in (None, *FEATURES):
        with progress_bar("Comparing", show=not options.quiet) as advance:
            return describe(
                _pictures.compared(pictures.arrays),
                options.features or "color",
                random_state=options.seed,
                n_jobs=options.jobs,
                on_progress=lambda done, total: advance(done / max(total, 1), ""),
            )
    path = Path(options.features or "")
    if path.suffix.lower() != ".npy":
        raise BadInput(
            f"--features {path} is not understood. Give {', '.join(FEATURES)}, or a .npy file "
            "with one row for each picture."
        )
    return read_features(path, len(pictures), names=pictures.names), "linear"


def _summarized(items: Items, options: Options) -> Items:
    """The items that stand for all, with the number that each stands for."""
    k = options.summary
    assert k is not None
    if k > len(items):
        raise BadInput(
            f"--summary {k} asks for more than the {len(items):,} items there are. Give a smaller "
            "number, or leave it out."
        )
    summary = summarize(items.vectors, k, kernel=items.kernel, random_state=options.seed)
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
    )


def _cells(options: Options, n_items: int) -> NDArray[np.bool_]:
    """Which cells of a rectangle there are: all of it, or those of a mask."""
    if options.text is not None:
        return text_mask(options.text.replace("\\n", "\n"), n_items)
    if options.mask is not None:
        return read_mask(options.mask, n_items)
    shape = near_square(n_items) if options.shape is None else parse_shape(options.shape)
    if shape[0] * shape[1] < n_items:
        raise BadInput(
            f"--shape {shape[0]}x{shape[1]} has {shape[0] * shape[1]:,} cells for {n_items:,} "
            f"items. Give a larger shape, or choose some of them with --summary "
            f"{shape[0] * shape[1]}."
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
            kernel=items.kernel,
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
    return {
        "n_read": items.n_read,
        "n_items": len(items),
        "shape": list(cells.shape),
        "n_cells": int(cells.sum()),
        "wrap": options.wrap,
        "features": options.features or ("color" if items.pictures is not None else None),
        "kernel": items.kernel,
        "quality": options.quality,
        "score": float(estimator.score_),
        "skipped": [{"name": one_line(name), "reason": why} for name, why in skipped],
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
        if wants_page(outputs):
            larger = _pictures.previews(options.source, items.pictures, items.chosen)
    return Wall(
        positions,
        details,
        title=one_line(options.path.resolve().name),
        images=images,
        tile=options.tile,
        captions=items.captions,
        previews=larger,
    )


def _show(report: dict[str, Any], outputs: list[Path]) -> None:
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
    show_all(outputs, report["outputs"])
