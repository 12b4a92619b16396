"""`unshuffle collage`: draw one picture with many."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import unshuffle
from unshuffle._files.paths import BadInput
from unshuffle._pictures.templates import measure_likeness, read_template
from unshuffle.cli._app import fit, say, warn
from unshuffle.cli._inputs import PictureFolder, count_folders, parse_shape, skipped_records
from unshuffle.cli._options import CollageOptions
from unshuffle.cli._writing import (
    PICTURE_SUFFIXES,
    WALL_SUFFIXES,
    WallFolder,
    any_with_suffix,
    check_drawable,
    check_outputs,
    deliver_wall,
    ignore_interrupts,
)
from unshuffle.images import ImageCollection
from unshuffle.layout import Positions

SIDE = 64  # of the pictures as they are compared with the template


def collage(options: CollageOptions) -> int:
    """Make a collage and return the exit code: 0, 130 after Ctrl-C, 3 if not written."""
    outputs = options.output or ([] if options.as_json else [Path("collage.png")])
    check_outputs(
        [(path, WALL_SUFFIXES) for path in outputs],
        (options.template, options.path),
        recursive=not options.no_recursive,
        spreadsheet=options.spreadsheet,
    )
    shape = None if options.shape is None else parse_shape(options.shape)
    check_drawable(outputs, shape or (1, 1))
    if options.template.is_dir():
        raise BadInput(
            f"{options.template} is a folder. Give the picture to show first, then the folder of "
            "pictures to use."
        )
    template = read_template(options.template)
    folder = PictureFolder(options, outputs, any_with_suffix(outputs, PICTURE_SUFFIXES))
    pictures = folder.read_and_report(SIDE)
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
    with ignore_interrupts():
        report = _describe(pictures, estimator, options)
        likeness = measure_likeness(template, pictures.arrays, estimator.grid_)
        report |= {"likeness": likeness.share, "poor": likeness.poor}
        report["interrupted"] = interrupted
        wall = WallFolder(
            Positions(estimator.grid_, pictures.names),
            report,
            options.template.stem,
            options,
            draw=partial(folder.tiles, pictures),
            page={"images": pictures, "grid": estimator.grid_, "names": pictures.names},
            # The tiles form one picture.
            gap=0,
        )
        for remark in remarks:
            warn(remark.message)
        return deliver_wall(wall, outputs, pictures.skipped, _show)


def _check_enough(n_pictures: int, shape: tuple[int, int] | None, repeat: int | None) -> None:
    rows, columns = shape or (1, 1)
    if repeat is not None and n_pictures * repeat < rows * columns:
        raise BadInput(
            f"--shape {rows}x{columns} has {rows * columns:,} cells; {n_pictures:,} pictures used "
            f"up to {repeat} time(s) each do not fill them. Give "
            f"--repeat {-(-rows * columns // n_pictures)}, or a smaller shape."
        )


def _describe(
    pictures: ImageCollection, estimator: Any, options: CollageOptions
) -> dict[str, Any]:
    """Everything but the positions, ready for JSON."""
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
        "skipped": skipped_records(pictures.skipped),
    }


def _show(report: dict[str, Any]) -> None:
    if report["interrupted"]:
        warn("Interrupted: this is the best collage found so far, not a finished one.")
    rows, columns = report["shape"]
    often = f", up to {report['most_used']} times each" if report["most_used"] > 1 else ""
    say(
        f"Arranged {report['n_used']:,} of {report['n_items']:,} pictures on {rows} x {columns} "
        f"cells{often}: mean squared color difference {report['cost']:.4g} from the template, "
        f"{report['roughness']:.4g} between neighbors (CIE Lab)."
    )
    if report["poor"]:
        say(_advise(report))


def _advise(report: dict[str, Any]) -> str:
    """How to bring a collage closer to its template."""
    rows, columns = report["shape"]
    # This much choice gives each cell a picture that suits it.
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
