"""`unshuffle collage`: draw one picture with many."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle._decoding import decode, explain
from unshuffle.cli import _pictures
from unshuffle.cli._cells import parse_shape
from unshuffle.cli._console import (
    BadInput,
    answer,
    count_folders,
    progress_bar,
    reporting,
    say,
    warn,
)
from unshuffle.cli._walls import (
    WALL_SUFFIXES,
    Wall,
    check_drawable,
    describe_all,
    show_all,
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
from unshuffle.images import ImageCollection, rgb_to_lab
from unshuffle.layout import Positions

# Where less of the variation of the template than this is left, what it shows is hard to see; on
# photographs .2 was a blur, .7 plain.
POOR = 0.5
# Squared difference in Lab that hardly shows, whatever the template.
FAINT = 100.0
# Enough for the finest collage: a tile covers several pixels of the template.
TEMPLATE_SIDE = 1024


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    template: Path
    path: Path
    outputs: list[Path]
    shape: str | None
    smoothness: float
    repeat: int | None
    detail: int
    neighbors: str
    tile: int
    recursive: bool
    use_cache: bool
    spreadsheet: bool
    seed: int
    jobs: int
    as_json: bool
    quiet: bool

    @property
    def source(self) -> _pictures.Source:
        """The folder, and how it is read."""
        return _pictures.Source(
            self.path,
            self.recursive,
            self.use_cache,
            self.jobs,
            show=not self.quiet,
            count=not self.quiet and not self.as_json,
            outputs=self.outputs,
        )


def collage(options: Options) -> int:
    """Do it, and return the exit code: 0, 130 after Ctrl-C, 3 if not written as asked."""
    outputs = options.outputs or ([] if options.as_json else [Path("collage.png")])
    options = replace(options, outputs=outputs)
    check_outputs(
        [(path, WALL_SUFFIXES) for path in outputs],
        (options.template, options.path),
        recursive=options.recursive,
    )
    check_spreadsheet(options.spreadsheet, outputs)
    shape = None if options.shape is None else parse_shape(options.shape)
    check_drawable(outputs, shape or (1, 1))
    template = _read_template(options.template)
    pictures = options.source.read_first()
    _check_enough(len(pictures), shape, options.repeat)
    estimator, interrupted = _fit(template, pictures, shape, options)
    with unbothered():
        report = _describe(pictures, estimator, options)
        report |= _judge(template, pictures.arrays, estimator.grid_)
        report["interrupted"] = interrupted
        positions = Positions(estimator.grid_, pictures.names)
        images = None
        if wants_pictures(outputs):
            images = _pictures.drawn(options.source, pictures, options.tile)
        title = options.template.stem
        # Without gaps: the eye is to see one picture.
        wall = Wall(
            positions,
            dict(report),
            title,
            images,
            tile=options.tile,
            gap=0,
            spreadsheet=options.spreadsheet,
        )
        written = write_all(wall, outputs)
        report |= describe_all(written, pictures.skipped, spreadsheet=options.spreadsheet)
        complain_of(written)
        if options.as_json:
            # One object and nothing else.
            answer(json.dumps({**report, "positions": positions.rows()}, allow_nan=False))
        elif not options.quiet:
            _show(report, written)
    return exit_code(written, interrupted)


def _read_template(path: Path) -> NDArray[np.uint8]:
    """The template, upright, in its own proportions."""
    if not path.exists():
        raise BadInput(f"There is no file {path} to take as a template. Check the name.")
    try:
        # The size is known once it is open; a first look costs little.
        _, (height, width) = decode(path, size=(1, 1))
        scale = min(1.0, TEMPLATE_SIDE / max(height, width))
        size = max(1, round(height * scale)), max(1, round(width * scale))
        return decode(path, size=size)[0]
    except Exception as error:
        # Decoders fail in any way they like on damaged data.
        raise BadInput(
            f"{path} cannot be read as a template: {explain(error)}. Give a picture."
        ) from error


def _check_enough(n_pictures: int, shape: tuple[int, int] | None, repeat: int | None) -> None:
    if shape is None or repeat is None or n_pictures * repeat >= shape[0] * shape[1]:
        return
    n_cells = shape[0] * shape[1]
    raise BadInput(
        f"--shape {shape[0]}x{shape[1]} has {n_cells:,} cells; {n_pictures:,} pictures used up to "
        f"{repeat} time(s) each do not fill them. Give --repeat {-(-n_cells // n_pictures)}, or a "
        "smaller shape."
    )


def _fit(
    template: NDArray[np.uint8],
    pictures: ImageCollection,
    shape: tuple[int, int] | None,
    options: Options,
) -> tuple[Any, bool]:
    from unshuffle import Collage

    with progress_bar("Arranging", show=not options.quiet) as advance:
        estimator = Collage(
            template,
            shape=shape,
            smoothness=options.smoothness,
            repeat=options.repeat,
            detail=options.detail,
            neighbors=options.neighbors,
            random_state=options.seed,
            n_jobs=options.jobs,
            callback=reporting(advance),
        )
        try:
            estimator.fit(pictures.arrays)
        except KeyboardInterrupt:
            if not hasattr(estimator, "grid_"):
                raise
            return estimator, True
    return estimator, False


def _describe(pictures: ImageCollection, estimator: Any, options: Options) -> dict[str, Any]:
    """All but the positions, fit for JSON."""
    times = np.bincount(estimator.grid_.ravel())
    return {
        "n_items": len(pictures),
        "n_folders": count_folders(pictures.names),
        "shape": list(estimator.grid_.shape),
        "n_used": int((times > 0).sum()),
        "most_used": int(times.max()),
        "smoothness": options.smoothness,
        "detail": options.detail,
        "neighbors": options.neighbors,
        "cost": float(estimator.cost_),
        "roughness": float(estimator.roughness_),
        "skipped": [{"name": name, "reason": why} for name, why in pictures.skipped],
    }


def _judge(
    template: NDArray[np.uint8], tiles: NDArray[np.uint8], grid: NDArray[np.intp]
) -> dict[str, Any]:
    """Share of the variation of the template that is seen from afar, and whether it is little."""
    size = grid.shape[1], grid.shape[0]
    small = Image.fromarray(template).resize(size, Image.Resampling.BOX)
    wanted = rgb_to_lab(np.asarray(small))
    shown = rgb_to_lab(tiles.mean(axis=(1, 2)) / 255)[grid]
    variation = ((wanted - wanted.mean(axis=(0, 1))) ** 2).sum(axis=2).mean()
    missed = ((wanted - shown) ** 2).sum(axis=2).mean()
    likeness = 1.0 - float(missed / max(variation, FAINT))
    return {"likeness": likeness, "poor": likeness < POOR and bool(missed > FAINT)}


def _show(report: dict[str, Any], written: list[Written]) -> None:
    if report["interrupted"]:
        warn("Interrupted: this is the best collage found so far, not a finished one.")
    rows, columns = report["shape"]
    often = f", up to {report['most_used']} times each" if report["most_used"] > 1 else ""
    say(
        f"Arranged {report['n_used']:,} of {report['n_items']:,} pictures on {rows} x {columns} "
        f"cells{often}: mean squared difference of colour {report['cost']:.4g} from the template, "
        f"{report['roughness']:.4g} between neighbours (CIE Lab)."
    )
    if report["poor"]:
        say(_advice(report))
    show_all(written, report["skipped_list"])


def _advice(report: dict[str, Any]) -> str:
    """What brings a collage closer to its template."""
    rows, columns = report["shape"]
    # With so many to choose from, each cell gets a picture that suits it.
    repeat = min(max(5, 2 * report["most_used"]), rows * columns)
    closer = []
    if repeat > report["most_used"]:
        closer.append(f"--shape {rows}x{columns} --repeat {repeat}")
    if report["smoothness"] > 0:
        closer.append("--smoothness 0")
    options = f"try {' '.join(closer)}, or " if closer else ""
    return (
        f"The template is hard to see: {max(report['likeness'], 0):.0%} of its variation is left. "
        f"To come closer, {options}give more pictures in its colors."
    )
