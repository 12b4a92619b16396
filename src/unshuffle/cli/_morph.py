"""`unshuffle morph`: turn one shape into another, point by point."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.color import INK, PAPER
from unshuffle._files import tables as _tables
from unshuffle._files.paths import BadInput
from unshuffle._pictures.decoding import SUFFIXES
from unshuffle.cli._app import progress_bar, say
from unshuffle.cli._options import MorphOptions
from unshuffle.cli._writing import (
    Written,
    check_outputs,
    deliver,
    describe_outputs,
    ignore_interrupts,
    save_with_fallback,
)
from unshuffle.images import (
    Drawing,
    morph_frames,
    morph_strip,
    picture_points,
    save_gif,
    save_sheet,
)

MORPH_SUFFIXES = (".gif", ".png")
DEFAULT_POINTS, MAX_POINTS = 200, 3000
GIF_FRAMES, GIF_SIZE = 24, 320
STRIP_FRAMES, STRIP_SIZE = 7, 200


@dataclass(frozen=True)
class Morph:
    """Two drawings; point i of the start moves to point i of the end."""

    start: Drawing
    end: Drawing

    def save(self, path: Path, n_frames: int | None) -> None:
        """Write one file in the format of its suffix."""
        if path.suffix.lower() == ".gif":
            save_gif(self._frames(n_frames or GIF_FRAMES, GIF_SIZE), path)
        else:
            save_sheet(morph_strip(self._frames(n_frames or STRIP_FRAMES, STRIP_SIZE)), path)

    def _frames(self, n_frames: int, size: int) -> list[Any]:
        # Slow at both ends: a sudden start or stop looks broken.
        times = (1 - np.cos(np.pi * np.linspace(0, 1, n_frames))) / 2
        points, colors, ground = (
            np.stack([(1 - t) * one + t * other for t in times])
            for one, other in zip(self.start, self.end, strict=True)
        )
        return morph_frames(points, colors=colors, ground=ground, size=size)


def morph(options: MorphOptions) -> int:
    """Draw a morph and return the exit code: 0, or 3 if not written."""
    outputs = options.output or ([] if options.as_json else [Path("morph.gif")])
    check_outputs([(path, MORPH_SUFFIXES) for path in outputs], (options.a, options.b))
    found = _match(_read(options))
    with ignore_interrupts():
        report = _describe(found, options)
        written = []
        with progress_bar("Drawing", show=not options.quiet) as advance:
            for done, path in enumerate(outputs):
                advance(done / len(outputs), path.name)
                save = partial(found.save, n_frames=options.frames)
                written.append(save_with_fallback(path, save))
        report |= describe_outputs(written)
        ends = {"start": found.start.points.tolist(), "end": found.end.points.tolist()}
        return deliver(options, written, report, ends, lambda: _show(report, written, options))


def _read(options: MorphOptions) -> Morph:
    """Both shapes with equally many points, in no common order."""
    paths = (options.a, options.b)
    tables = {path: _read_points(path) for path in paths if not _is_picture(path)}
    n_points = options.points
    if n_points is None:
        n_points = max((len(points) for points in tables.values()), default=DEFAULT_POINTS)
    if n_points > MAX_POINTS:
        raise BadInput(
            f"{n_points:,} points are more than the {MAX_POINTS:,} that can be paired. Give "
            f"--points {MAX_POINTS} to use some of them."
        )
    both = []
    for side, path in enumerate(paths):
        # Separate streams: the points of A do not depend on B.
        rng = np.random.RandomState([options.seed, side])
        if path in tables:
            points = _resample(tables[path], n_points, rng)
            ink, paper = np.array([INK, PAPER], dtype=np.uint8)
            drawing = Drawing(points, np.tile(ink, (n_points, 1)), paper)
        else:
            drawing = picture_points(path, n_points, random_state=rng)
        both.append(drawing._replace(points=_scale_to_unit(drawing.points)))
    return Morph(*both)


def _scale_to_unit(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points around the origin, with a bounding box whose longer side is 1."""
    low, high = points.min(axis=0), points.max(axis=0)
    # Half before adding: the sum may overflow.
    return (points - (low / 2 + high / 2)) / ((high - low).max() or 1.0)


def _is_picture(path: Path) -> bool:
    if not path.exists():
        raise BadInput(f"There is no file {path}. Check the name.")
    if path.is_dir():
        raise BadInput(f"{path} is a folder. Give one picture, or one file of points.")
    suffix = path.suffix.lower()
    if suffix not in (*SUFFIXES, *_tables.SUFFIXES):
        raise BadInput(
            f"{path} cannot be read. Give a picture, or points with x and y in two columns "
            f"({', '.join(_tables.SUFFIXES)})."
        )
    return suffix in SUFFIXES


def _read_points(path: Path) -> NDArray[np.float64]:
    points = np.array(_tables.read_table(path, n_least=2).values, dtype=np.float64)
    if points.shape[1] != 2:
        raise BadInput(f"{path} has {points.shape[1]} column(s) of numbers. Give two, x and y.")
    with np.errstate(over="ignore"):
        extent = np.ptp(points, axis=0)
    if not np.isfinite(extent).all():
        raise BadInput(f"The points of {path} are too far apart for a float. Scale them down.")
    if not extent.any():
        raise BadInput(
            f"All points of {path} are equal, so they have no shape. Give at least two different "
            "points."
        )
    return points


def _resample(
    points: NDArray[np.float64], n_points: int, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Each point equally often, give or take one."""
    times, left = divmod(n_points, len(points))
    chosen = np.repeat(np.arange(len(points)), times)
    return points[np.sort(np.concatenate([chosen, rng.permutation(len(points))[:left]]))]


def _match(unordered: Morph) -> Morph:
    from unshuffle.alignment import match_shapes

    end = unordered.end
    order = match_shapes(unordered.start.points, end.points)
    return Morph(unordered.start, Drawing(end.points[order], end.colors[order], end.ground))


def _describe(found: Morph, options: MorphOptions) -> dict[str, Any]:
    """Everything but the points, ready for JSON."""
    lengths = np.linalg.norm(found.end.points - found.start.points, axis=1)
    return {
        "a": str(options.a),
        "b": str(options.b),
        "n_points": len(lengths),
        "seed": options.seed,
        "mean_distance": float(lengths.mean()),
        "longest_distance": float(lengths.max()),
    }


def _show(report: dict[str, Any], written: list[Written], options: MorphOptions) -> None:
    say(
        f"Moved {report['n_points']:,} points from {options.a.name} to {options.b.name} by "
        f"{report['mean_distance']:.0%} of the size of the shape on average, "
        f"{report['longest_distance']:.0%} at most."
    )
    for each in written:
        if each.place is not None:
            kind = "Animation" if each.asked.suffix.lower() == ".gif" else "Strip"
            say(f"{kind}: {each.place}")
