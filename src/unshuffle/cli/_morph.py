"""`unshuffle morph`: turn one shape into another, point by point."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unshuffle._color import INK, PAPER
from unshuffle.cli import _tables
from unshuffle.cli._app import BadInput, progress_bar, say
from unshuffle.cli._options import MorphOptions
from unshuffle.cli._writing import (
    Written,
    check_outputs,
    deliver,
    places,
    save_somewhere,
    unbothered,
)
from unshuffle.images import (
    SUFFIXES,
    morph_frames,
    morph_strip,
    picture_points,
    save_gif,
    save_sheet,
)

MORPH_SUFFIXES = (".gif", ".png")
DEFAULT_POINTS = 200
MAX_POINTS = 3000
GIF_FRAMES = 24
STRIP_FRAMES = 7
STRIP_SIZE = 200
GIF_SIZE = 320


class Cloud(NamedTuple):
    """Points to start from or to end at, and how they look there."""

    points: NDArray[np.float64]
    colors: NDArray[np.float64]
    ground: NDArray[np.float64]


@dataclass(frozen=True)
class Morph:
    """Two clouds whose points belong together one by one."""

    start: Cloud
    end: Cloud

    def save(self, path: Path, n_frames: int | None) -> None:
        """Write one file; its suffix says what."""
        if path.suffix.lower() == ".gif":
            save_gif(self._frames(n_frames or GIF_FRAMES, GIF_SIZE), path)
        else:
            save_sheet(morph_strip(self._frames(n_frames or STRIP_FRAMES, STRIP_SIZE)), path)

    def _frames(self, n_frames: int, size: int) -> list[Any]:
        # Slow at both ends: a motion that starts and stops at full speed looks broken.
        times = (1 - np.cos(np.pi * np.linspace(0, 1, n_frames))) / 2
        points, colors, ground = (
            np.stack([(1 - t) * one + t * other for t in times])
            for one, other in zip(self.start, self.end, strict=True)
        )
        return morph_frames(points, colors=colors, ground=ground, size=size)


def morph(options: MorphOptions) -> int:
    """Do it, and return the exit code: 0, or 3 if not written as asked."""
    outputs = options.output or ([] if options.as_json else [Path("morph.gif")])
    check_outputs([(path, MORPH_SUFFIXES) for path in outputs], (options.a, options.b))
    found = _match(_read(options))
    with unbothered():
        report = _describe(found, options)
        written = []
        with progress_bar("Drawing", show=not options.quiet) as advance:
            for done, path in enumerate(outputs):
                advance(done / len(outputs), path.name)
                written.append(
                    save_somewhere(path, lambda where: found.save(where, options.frames))
                )
        report |= places(written)
        ends = {"start": found.start.points.tolist(), "end": found.end.points.tolist()}
        return deliver(options, written, report, ends, lambda: _show(report, written, options))


def _read(options: MorphOptions) -> Morph:
    """Both sides with as many points each, the second in an order of its own."""
    paths = (options.a, options.b)
    tables = {path: _read_points(path) for path in paths if not _is_picture(path)}
    n_points = options.points
    if n_points is None:
        n_points = max((len(points) for points in tables.values()), default=DEFAULT_POINTS)
    if n_points > MAX_POINTS:
        raise BadInput(
            f"{n_points:,} points are more than the {MAX_POINTS:,} that can be paired. Give "
            f"--points {MAX_POINTS} to take some of them."
        )
    both = []
    for side, path in enumerate(paths):
        # Streams of their own: A stays as it is whatever B is.
        rng = np.random.RandomState([options.seed, side])
        if path in tables:
            points = _resampled(tables[path], n_points, rng)
            both.append(_cloud(points, np.tile(INK, (n_points, 1)), PAPER))
        else:
            both.append(_cloud(*picture_points(path, n_points, random_state=rng)))
    return Morph(*both)


def _cloud(points: NDArray[np.float64], colors: Any, ground: Any) -> Cloud:
    """Points about the origin, the longer side of the box around them 1."""
    low, high = points.min(axis=0), points.max(axis=0)
    # Halves are added, since the sum may be too large for a float.
    placed = (points - (low / 2 + high / 2)) / ((high - low).max() or 1.0)
    return Cloud(placed, np.asarray(colors, dtype=float), np.asarray(ground, dtype=float))


def _is_picture(path: Path) -> bool:
    if not path.exists():
        raise BadInput(f"There is no file {path}. Check the name.")
    if path.is_dir():
        raise BadInput(f"{path} is a folder. Give one picture, or one file of points.")
    suffix = path.suffix.lower()
    if suffix not in (*SUFFIXES, *_tables.SUFFIXES):
        raise BadInput(
            f"{path} is of no kind that can be read. Give a picture, or points with x and y in "
            f"two columns ({', '.join(_tables.SUFFIXES)})."
        )
    return suffix in SUFFIXES


def _read_points(path: Path) -> NDArray[np.float64]:
    points = _tables.read_table(path, n_least=2).values
    if points.shape[1] != 2:
        raise BadInput(f"{path} has {points.shape[1]} column(s) of numbers. Give two, x and y.")
    with np.errstate(over="ignore"):
        extent = np.ptp(points, axis=0)
    if not np.isfinite(extent).all():
        raise BadInput(f"Points of {path} lie too far apart for a float. Divide them by a number.")
    if not extent.any():
        raise BadInput(
            f"All points of {path} are equal, so they have no shape. Give at least two that "
            "differ."
        )
    return points


def _resampled(
    points: NDArray[np.float64], n_points: int, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Each point as often as any other, give or take one."""
    times, left = divmod(n_points, len(points))
    chosen = np.repeat(np.arange(len(points)), times)
    return points[np.sort(np.concatenate([chosen, rng.permutation(len(points))[:left]]))]


def _match(unordered: Morph) -> Morph:
    from unshuffle.alignment import match_shapes

    end = unordered.end
    order = match_shapes(unordered.start.points, end.points)
    return Morph(unordered.start, Cloud(end.points[order], end.colors[order], end.ground))


def _describe(found: Morph, options: MorphOptions) -> dict[str, Any]:
    """All but the points, fit for JSON."""
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
        f"Moved {report['n_points']:,} points from {options.a.name} to "
        f"{options.b.name}: by {report['mean_distance']:.0%} of the size of the shape on "
        f"average, {report['longest_distance']:.0%} at most."
    )
    for each in written:
        if each.place is not None:
            kind = "Animation" if each.asked.suffix.lower() == ".gif" else "Strip"
            say(f"{kind}: {each.place}")
