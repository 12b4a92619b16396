"""One cloud of points turning into another: points from pictures, frames, strips and GIFs."""

import io
from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw
from scipy.spatial import cKDTree

from unshuffle._arrays import as_numbers, check_finite, check_magnitude
from unshuffle._color import INK, PAPER, Color, draw_points
from unshuffle._decoding import decode, explain
from unshuffle._files import as_path, check_output_path
from unshuffle._parameters import check_count, check_positive, check_real, check_seed
from unshuffle._printing import short_repr
from unshuffle._saving import replace_file
from unshuffle.images._sheets import check_colors

Array = NDArray[np.float64]
# Small pictures are enlarged to this too, so that there are more pixels than points.
_LONGER_SIDE = 256
# Compression noise is not part of the drawing.
_LEAST_CONTRAST = 24
_LEAST_INK = 0.1
# Dots are drawn this much larger and scaled down, so that their edges are soft.
_FINER = 3
_MARGIN = 0.06
_ROUNDS = 15
# A GIF counts hundredths of a second of a frame in 16 bits.
_LONGEST = 600


class Drawing(NamedTuple):
    """Points drawn from a picture.

    Attributes
    ----------
    points : ndarray of shape (n_points, 2)
        x to the right and y up; the longer side of the picture is 256 units long.
    colors : ndarray of shape (n_points, 3), uint8
        Mean colour of the ink around each point.
    ground : ndarray of shape (3,), uint8
        Colour of the ground they stand on.
    """

    points: Array
    colors: NDArray[np.uint8]
    ground: NDArray[np.uint8]

    def __repr__(self) -> str:
        return short_repr(self)


def picture_points(
    path: str | Path,
    n_points: int = 200,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Drawing:
    """Points of what is drawn in a picture, many where there is much ink.

    Parameters
    ----------
    path : str or Path
        A picture with a shape on a plain ground: dark on light, light on dark, or in colour.
    n_points : int, default=200
        How many points to draw. More show finer detail.
    random_state : int, RandomState or None, default=None
        Draws them.

    Returns
    -------
    drawing : Drawing
        Points, their colours, and that of the ground.

    Notes
    -----
    The ground is the median colour along the edge of the picture, and ink what differs from it.
    Points are drawn with probability proportional to that difference. Each is then moved to the
    middle of the ink that is nearest to it, a few times over (Lloyd's algorithm), so that they
    cover the shape evenly.
    """
    n_points = check_count(n_points, "n_points", most=10_000_000)
    rng = check_seed(random_state)
    pixels = _small(as_path(path, "`path`"))
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    ground = np.median(edge, axis=0)
    ink = np.linalg.norm(pixels - ground, axis=2)
    if ink.max() < _LEAST_CONTRAST:
        ink = np.zeros_like(ink)
    if not ink.any():
        raise ValueError(
            f"{path} is all of one shade, so there is nothing to draw points from. Give a picture "
            "with a shape in it, such as dark ink on white."
        )
    ink[ink < _LEAST_INK * ink.max()] = 0.0
    drawn = draw_points(ink, n_points, rng)
    points, colors = _spread_evenly(drawn, ink, pixels)
    return Drawing(points, colors, ground.astype(np.uint8))


def morph_frames(
    points: ArrayLike,
    *,
    colors: ArrayLike = INK,
    ground: ArrayLike = PAPER,
    size: int = 320,
    dot: float | None = None,
) -> list[Image.Image]:
    """Draw points on their way, a picture for each moment.

    Parameters
    ----------
    points : array of shape (n_moments, n_points, 2)
        Where each point is at each moment, x to the right and y up. All moments are drawn at one
        scale.
    colors : array of shape (3,), (n_points, 3) or (n_moments, n_points, 3)
        Red, green and blue of the points, from 0 to 255.
    ground : array of shape (3,) or (n_moments, 3)
        Colour behind them.
    size : int, default=320
        Side of each square picture in pixels. Larger shows more.
    dot : float or None, default=None
        Width of a point in pixels; None suits the number of points. Larger fills the shape.

    Returns
    -------
    frames : list of PIL.Image.Image
        One for each moment.
    """
    points = _check_moments(points)
    n_moments, n_points = points.shape[:2]
    colors = check_colors(colors, (n_moments, n_points, 3), "colors")
    ground = check_colors(ground, (n_moments, 3), "ground")
    size = check_count(size, "size", least=16, most=2000)
    dot = size * 0.42 / sqrt(n_points) if dot is None else check_positive(dot, "dot")
    places = _on_canvas(points, size)
    return [
        _frame(where, inks, back, size, max(dot, 1.0))
        for where, inks, back in zip(places, colors, ground, strict=True)
    ]


def morph_strip(frames: list[Image.Image], *, columns: int | None = None) -> Image.Image:
    """Frames side by side, the first on the left.

    Parameters
    ----------
    frames : list of PIL.Image.Image
        Of one size, as `morph_frames` draws them.
    columns : int or None, default=None
        Frames in a row; None puts up to twelve in a row.

    Returns
    -------
    strip : PIL.Image.Image
        All of them, row by row.
    """
    frames = _check_frames(frames)
    columns = min(len(frames), 12) if columns is None else columns
    columns = check_count(columns, "columns", most=len(frames))
    width, height = frames[0].size
    strip = Image.new("RGB", (columns * width, ceil(len(frames) / columns) * height), PAPER)
    for k, frame in enumerate(frames):
        strip.paste(frame, (k % columns * width, k // columns * height))
    return strip


def save_gif(
    frames: list[Image.Image], path: str | Path, *, seconds: float = 1.6, pause: float = 0.6
) -> None:
    """Write frames as an endless animation: there, a pause, back, a pause.

    Parameters
    ----------
    frames : list of PIL.Image.Image
        What to show on the way there.
    path : str or Path
        A .gif file. An existing one is replaced, once the new one is complete.
    seconds : float, default=1.6
        Time that one way takes. Longer is slower.
    pause : float, default=0.6
        Time for which the first and the last frame stand still.
    """
    path = check_output_path(path, (".gif",))
    frames = _check_frames(frames)
    step = 1000 * check_real(seconds, "seconds", above=0, most=_LONGEST) / len(frames)
    pause_ms = round(1000 * check_real(pause, "pause", above=0, most=_LONGEST))
    # Viewers slow down what is faster than a fiftieth of a second.
    durations = [max(20, round(step / 10) * 10)] * len(frames)
    durations[0] = durations[-1] = max(durations[0], pause_ms)
    inner = slice(-2, 0, -1)
    out = io.BytesIO()
    rest, durations = [*frames[1:], *frames[inner]], [*durations, *durations[inner]]
    look = {"save_all": True, "append_images": rest, "duration": durations, "loop": 0}
    frames[0].save(out, format="GIF", **look)
    replace_file(path, out.getvalue())


def _small(path: Path) -> NDArray[np.uint8]:
    """The picture in its proportions, its longer side `_LONGER_SIDE` pixels."""
    try:
        # The size is known once it is open; a first look costs little.
        _, (height, width) = decode(path, size=(1, 1))
        scale = _LONGER_SIDE / max(height, width)
        size = max(1, round(height * scale)), max(1, round(width * scale))
        return decode(path, size=size)[0]
    except Exception as error:
        # Decoders fail in any way they like on damaged data.
        raise ValueError(
            f"{path} cannot be read as a picture: {explain(error)}. Give a PNG, JPEG, GIF, BMP, "
            "TIFF or WebP file."
        ) from error


def _spread_evenly(
    points: Array, ink: Array, pixels: NDArray[np.uint8]
) -> tuple[Array, NDArray[np.uint8]]:
    """Points in the middle of the ink around each, and its mean colour."""
    rows, columns = np.nonzero(ink)
    weights = ink[rows, columns]
    places = np.stack([columns, len(ink) - 1 - rows], axis=1).astype(float)
    described = np.concatenate([places, pixels[rows, columns]], axis=1)
    inked = cKDTree(places)
    for _ in range(_ROUNDS):
        nearest = cKDTree(points).query(places)[1]
        total = np.bincount(nearest, weights, minlength=len(points))
        sums = [np.bincount(nearest, weights * each, len(points)) for each in described.T]
        means = np.stack(sums, axis=1) / np.where(total > 0, total, 1.0)[:, np.newaxis]
        # A point that no ink is nearest to stays where it is.
        alone = total == 0
        means[alone, :2] = points[alone]
        means[alone, 2:] = described[inked.query(points[alone])[1], 2:]
        points = means[:, :2]
    return points, np.rint(means[:, 2:]).astype(np.uint8)


def _on_canvas(points: Array, size: int) -> Array:
    """Pixel coordinates, y down, with one scale and one middle for all moments."""
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    extent = float((high - low).max()) or 1.0
    centred = (points - (low + high) / 2) * ((1 - 2 * _MARGIN) * size / extent)
    return size / 2 + centred * np.array([1.0, -1.0])


def _frame(places: Array, colors: Array, ground: Array, size: int, dot: float) -> Image.Image:
    fine = Image.new("RGB", (size * _FINER, size * _FINER), _rgb(ground))
    pen = ImageDraw.Draw(fine)
    radius = dot * _FINER / 2
    for (x, y), color in zip(places * _FINER, colors, strict=True):
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_rgb(color))
    return fine.reduce(_FINER)


def _rgb(color: Array) -> Color:
    red, green, blue = np.rint(color).astype(int).tolist()
    return red, green, blue


def _check_moments(points: Any) -> Array:
    """Positions of the same points at several moments, shape (n_moments, n_points, 2)."""
    array = as_numbers(points, "`points`")
    if array.ndim != 3 or array.shape[2] != 2 or 0 in array.shape:
        raise ValueError(
            "`points` must hold points in the plane at 1 or more moments, with shape "
            f"(n_moments, n_points, 2), got {array.shape}. `morph` of MinimumVolumePCA gives them."
        )
    check_finite(array.reshape(len(array), -1), "points")
    check_magnitude(array, "points")
    return array


def _check_frames(frames: Any) -> list[Any]:
    """Pictures of one size, at least one."""
    listed = list(frames) if isinstance(frames, Sequence) else []
    sizes = {getattr(each, "size", None) for each in listed if hasattr(each, "save")}
    if not listed or len(sizes) != 1 or not all(hasattr(each, "save") for each in listed):
        raise ValueError(
            f"`frames` must be a list of one or more PIL images of one size, got "
            f"{type(frames).__name__} with {len(listed)} entries. `morph_frames` draws them."
        )
    return listed
