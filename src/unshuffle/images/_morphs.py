"""Morphs of one shape into another: points from pictures, frames, strips and GIFs."""

import io
from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw
from scipy.spatial import cKDTree

from unshuffle._core.arrays import as_numbers, check_finite, check_magnitude
from unshuffle._core.color import INK, PAPER, Color, draw_points
from unshuffle._core.parameters import check_count, check_positive, check_real, check_seed
from unshuffle._files.paths import as_path, check_output_path
from unshuffle._files.saving import replace_file
from unshuffle._run.printing import short_repr
from unshuffle._run.types import Floats
from unshuffle.images._reading import read_image
from unshuffle.images._sheets import check_colors

# Small pictures are enlarged to it, so that there are more pixels than points.
_LONGER_SIDE = 256
# Weaker contrast is compression noise.
_LEAST_CONTRAST = 24
_LEAST_INK = 0.1
# Dots are drawn this many times larger and scaled down, for smooth edges.
_FINER = 3
_MARGIN = 0.06
_ROUNDS = 15
# Seconds. A GIF stores the duration of a frame in 16 bits, in hundredths of a second.
_LONGEST = 600


class Drawing(NamedTuple):
    """Points drawn from a picture.

    Attributes
    ----------
    points : ndarray of shape (n_points, 2)
        x to the right and y up; the longer side of the picture is 256 units long.
    colors : ndarray of shape (n_points, 3), uint8
        Mean color of the ink around each point.
    ground : ndarray of shape (3,), uint8
        Color of the background.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import Drawing
    >>> ink = np.zeros((1, 3), dtype=np.uint8)
    >>> Drawing(np.array([[0.0, 1.0]]), ink, np.array([255, 255, 255], dtype=np.uint8)).points
    array([[0., 1.]])
    """

    points: Floats
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
    """Points that cover the shape drawn in a picture, denser where there is more ink.

    Parameters
    ----------
    path : str or Path
        A picture of a shape on a plain background: dark on light, light on dark, or in color.
    n_points : int, default=200
        Number of points. More points show finer detail.
    random_state : int, RandomState or None, default=None
        Seed for the points.

    Returns
    -------
    drawing : Drawing
        Points, their colors, and the color of the background.

    Notes
    -----
    The background is the median color along the edges of the picture; ink is the difference from
    it. Points are drawn with probability proportional to the ink and then spread evenly by a few
    steps of Lloyd's algorithm.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from unshuffle.images import picture_points
    >>> with TemporaryDirectory() as folder:
    ...     picture = Image.new("L", (30, 20), 255)
    ...     picture.paste(0, (5, 5, 15, 15))
    ...     picture.save(Path(folder) / "square.png")
    ...     drawing = picture_points(Path(folder) / "square.png", 50, random_state=0)
    >>> drawing.points.shape
    (50, 2)
    """
    n_points = check_count(n_points, "n_points", most=10_000_000)
    rng = check_seed(random_state)
    pixels = _read_scaled(as_path(path, "`path`"))
    edge = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    ground = np.median(edge, axis=0)
    ink = np.linalg.norm(pixels - ground, axis=2)
    if ink.max() < _LEAST_CONTRAST:
        raise ValueError(
            f"{path} is all of one shade, so it shows no shape. Give a picture with a shape, such "
            "as dark ink on white."
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
    """Draw moving points, one picture for each time step.

    Parameters
    ----------
    points : array of shape (n_moments, n_points, 2)
        Position of each point at each moment, x to the right and y up.
    colors : array of shape (3,), (n_points, 3) or (n_moments, n_points, 3)
        Red, green and blue of the points, from 0 to 255.
    ground : array of shape (3,) or (n_moments, 3)
        Color of the background.
    size : int, default=320
        Side of each square picture in pixels. Larger pictures show more detail.
    dot : float or None, default=None
        Diameter of a point in pixels. Larger dots fill the shape. None suits the number of points.

    Returns
    -------
    frames : list of PIL.Image.Image
        One picture for each moment, all at one scale.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import morph_frames
    >>> corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> [frame.size for frame in morph_frames([corners, corners[::-1]], size=64)]
    [(64, 64), (64, 64)]
    """
    points = _check_points(points)
    n_moments, n_points = points.shape[:2]
    colors = check_colors(colors, (n_moments, n_points, 3), "colors")
    ground = check_colors(ground, (n_moments, 3), "ground")
    size = check_count(size, "size", least=16, most=2000)
    dot = size * 0.42 / sqrt(n_points) if dot is None else check_positive(dot, "dot")
    places = _to_pixels(points, size)
    return [
        _draw_frame(where, inks, back, size, max(dot, 1.0))
        for where, inks, back in zip(places, colors, ground, strict=True)
    ]


def morph_strip(frames: list[Image.Image], *, columns: int | None = None) -> Image.Image:
    """Frames side by side, the first on the left.

    Parameters
    ----------
    frames : list of PIL.Image.Image
        Pictures of one size, as `morph_frames` draws them.
    columns : int or None, default=None
        Frames in a row. None puts up to twelve in a row.

    Returns
    -------
    strip : PIL.Image.Image
        The frames, row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import morph_frames, morph_strip
    >>> corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> morph_strip(morph_frames([corners, corners[::-1]], size=64)).mode
    'RGB'
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
    """Write frames as a looping animation: forward, a pause, backward, a pause.

    Parameters
    ----------
    frames : list of PIL.Image.Image
        Pictures of one size, in the order of the forward motion.
    path : str or Path
        A .gif file. An existing file is replaced when the new one is complete.
    seconds : float, default=1.6
        Duration of the motion in one direction. Longer is slower.
    pause : float, default=0.6
        Seconds for which the first and the last frame are shown.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from unshuffle.images import morph_frames, save_gif
    >>> corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> with TemporaryDirectory() as folder:
    ...     save_gif(morph_frames([corners, corners[::-1]]), Path(folder) / "morph.gif")
    """
    path = check_output_path(path, (".gif",))
    frames = _check_frames(frames)
    step = 1000 * check_real(seconds, "seconds", above=0, most=_LONGEST) / len(frames)
    pause_ms = round(1000 * check_real(pause, "pause", above=0, most=_LONGEST))
    # Viewers slow down frames shorter than a fiftieth of a second.
    durations = [max(20, round(step / 10) * 10)] * len(frames)
    durations[0] = durations[-1] = max(durations[0], pause_ms)
    inner = slice(-2, 0, -1)
    out = io.BytesIO()
    rest, durations = [*frames[1:], *frames[inner]], [*durations, *durations[inner]]
    options = {"save_all": True, "append_images": rest, "duration": durations, "loop": 0}
    frames[0].save(out, format="GIF", **options)
    replace_file(path, out.getvalue())


def _read_scaled(path: Path) -> NDArray[np.uint8]:
    """The picture in its proportions, its longer side `_LONGER_SIDE` pixels."""
    # Decoding to one pixel is a cheap way to learn the size.
    _, original = read_image(path, size=(1, 1))
    scale = _LONGER_SIDE / max(original)
    height, width = (max(1, round(side * scale)) for side in original)
    return read_image(path, size=(height, width))[0]


def _spread_evenly(
    points: Floats, ink: Floats, pixels: NDArray[np.uint8]
) -> tuple[Floats, NDArray[np.uint8]]:
    """Points at the centers of the ink nearest to each, and its mean color."""
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
        # A point that is nearest to no ink stays where it is.
        alone = total == 0
        means[alone, :2] = points[alone]
        means[alone, 2:] = described[inked.query(points[alone])[1], 2:]
        points = means[:, :2]
    return points, np.rint(means[:, 2:]).astype(np.uint8)


def _to_pixels(points: Floats, size: int) -> Floats:
    """Pixel coordinates, y down, with one scale and one center for all moments."""
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    extent = float((high - low).max()) or 1.0
    centered = (points - (low + high) / 2) * ((1 - 2 * _MARGIN) * size / extent)
    return size / 2 + centered * np.array([1.0, -1.0])


def _draw_frame(
    places: Floats, colors: Floats, ground: Floats, size: int, dot: float
) -> Image.Image:
    fine = Image.new("RGB", (size * _FINER, size * _FINER), _rgb(ground))
    pen = ImageDraw.Draw(fine)
    radius = dot * _FINER / 2
    for (x, y), color in zip(places * _FINER, colors, strict=True):
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_rgb(color))
    return fine.reduce(_FINER)


def _rgb(color: Floats) -> Color:
    red, green, blue = np.rint(color).astype(int).tolist()
    return red, green, blue


def _check_points(points: Any) -> Floats:
    """Points in the plane at one or more moments, shape (n_moments, n_points, 2)."""
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
    """One or more pictures of one size."""
    listed = list(frames) if isinstance(frames, Sequence) else []
    sizes = {each.size if isinstance(each, Image.Image) else None for each in listed}
    if len(sizes) != 1 or None in sizes:
        raise ValueError(
            f"`frames` must be a list of one or more PIL images of one size, got "
            f"{type(frames).__name__} with {len(listed)} entries. `morph_frames` draws them."
        )
    return listed
