"""`unshuffle collage`: draw one picture with many."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import unshuffle
from unshuffle._decoding import decode, explain
from unshuffle.cli._app import BadInput, fit, say, warn
from unshuffle.cli._inputs import Source, count_folders, parse_shape
from unshuffle.cli._options import CollageOptions
from unshuffle.cli._writing import (
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
from unshuffle.images import ImageCollection, rgb_to_lab
from unshuffle.layout import Positions

# Where less of the variation of the template than this is left, what it shows is hard to see; on
# photographs .2 was a blur, .7 plain.
POOR = 0.5
# Squared difference in Lab that hardly shows, whatever the template.
FAINT = 100.0
# Enough for the finest collage: a tile covers several pixels of the template.
TEMPLATE_SIDE = 1024


def collage(options: CollageOptions) -> int:
    """Do it, and return the exit code: 0, 130 after Ctrl-C, 3 if not written as asked."""
    outputs = options.output or ([] if options.as_json else [Path("collage.png")])
    check_outputs(
        [(path, WALL_SUFFIXES) for path in outputs],
        (options.template, options.path),
        recursive=not options.no_recursive,
        spreadsheet=options.spreadsheet,
    )
    shape = None if options.shape is None else parse_shape(options.shape)
    check_drawable(outputs, shape or (1, 1))
    template = _read_template(options.template)
    source = Source(options, outputs)
    pictures = source.read_first()
    _check_enough(len(pictures), shape, options.repeat)
    estimator = unshuffle.Collage(
        template,
        shape=shape,
        smoothness=options.smoothness,
        repeat=options.repeat,
        detail=options.detail,
        neighbors=options.neighbors.value,
        random_state=options.seed,
        n_jobs=options.jobs,
    )
    remarks, interrupted = fit(
        estimator, pictures.arrays, words="Arranging", show=not options.quiet
    )
    with unbothered():
        report = _describe(pictures, estimator, options)
        report |= _judge(template, pictures.arrays, estimator.grid_)
        report["interrupted"] = interrupted
        positions = Positions(estimator.grid_, pictures.names)
        wall = Wall(
            positions,
            dict(report),
            options.template.stem,
            source.drawn(pictures) if wants(outputs, PICTURE_SUFFIXES) else None,
            tile=options.tile,
            # The eye is to see one picture.
            gap=0,
            spreadsheet=options.spreadsheet,
        )
        written = [save_somewhere(path, wall.save) for path in outputs]
        report |= describe_all(written, pictures.skipped, spreadsheet=options.spreadsheet)
        for remark in remarks:
            warn(remark.message)
        rows = {"positions": positions.rows()} if options.as_json else {}
        return deliver(options, written, report, rows, lambda: _show(report, written))


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


def _describe(
    pictures: ImageCollection, estimator: Any, options: CollageOptions
) -> dict[str, Any]:
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
        "neighbors": options.neighbors.value,
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
