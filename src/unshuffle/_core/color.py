"""Color conversion, colors and formats of sheets, and points drawn from pictures."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Color = tuple[int, int, int]
SHEET_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
# Longest side of a sheet in pixels that every format above supports.
MAX_SHEET_SIDE = 16_383
PAPER: Color = (250, 249, 246)
INK: Color = (34, 51, 59)

# sRGB primaries to CIE XYZ (IEC 61966-2-1); the rows add up to the white point D65.
_XYZ_FROM_RGB = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = _XYZ_FROM_RGB.sum(axis=1)


def _linear_light(level: NDArray[np.floating]) -> NDArray[np.float64]:
    """Linear intensity of sRGB levels from 0 to 1."""
    return np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)


_LINEAR = _linear_light(np.arange(256) / 255.0)


def rgb_to_lab(rgb: ArrayLike) -> NDArray[np.float64]:
    """Colors in CIE Lab, where distances approximate perceived differences.

    Parameters
    ----------
    rgb : array of shape (..., 3)
        sRGB colors: integers from 0 to 255, or floats from 0 to 1.

    Returns
    -------
    lab : ndarray of shape (..., 3)
        Lightness from 0 to 100, then green to red and blue to yellow, each about
        -100 to 100. White point D65.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import rgb_to_lab
    >>> rgb_to_lab(np.array([255, 0, 0], dtype=np.uint8)).round(1)
    array([53.2, 80.1, 67.2])
    >>> rgb_to_lab([1.0, 0.0, 0.0]).round(1)
    array([53.2, 80.1, 67.2])
    """
    colors = _check_rgb(rgb)
    if colors.dtype.kind == "f":
        return lab_of_light(_linear_light(colors.astype(np.float64)))
    return lab_of_light(_LINEAR[colors])


def _check_rgb(rgb: ArrayLike) -> NDArray[Any]:
    """Colors as integers from 0 to 255 or floats from 0 to 1."""
    if np.ma.is_masked(rgb):
        raise ValueError("`rgb` has masked entries. Fill them in or drop those colors.")
    try:
        colors = np.asarray(rgb)
    except ValueError as error:
        raise ValueError("`rgb` holds rows of different lengths. Pass one array.") from error
    if colors.ndim == 0 or colors.shape[-1] != 3:
        raise ValueError(
            f"`rgb` must have shape (..., 3): red, green, blue. Got shape {colors.shape}."
        )
    if colors.dtype.kind not in "iuf":
        raise ValueError(
            f"`rgb` must hold integers from 0 to 255 or floats from 0 to 1, got dtype "
            f"{colors.dtype}."
        )
    most = 1 if colors.dtype.kind == "f" else 255
    # uint8 is always in range. Written so that NaN is refused too.
    known = colors.dtype == np.uint8 or colors.size == 0
    if not known and not (colors.min() >= 0 and colors.max() <= most):
        raise ValueError(
            f"`rgb` holds values from {colors.min():g} to {colors.max():g} of dtype "
            f"{colors.dtype}. Integers must be from 0 to 255, floats from 0 to 1; convert with "
            ".astype('uint8'), or divide by 255."
        )
    return colors


def light_of_rgb(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Linear intensities from 0 to 1 of sRGB colors, which add when colors are mixed."""
    return _LINEAR[rgb]


def lab_of_light(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE Lab of linear intensities of red, green and blue."""
    xyz = light @ (_XYZ_FROM_RGB.T / _WHITE)
    # CIE 15:2004: a cube root, linear near black, where its slope would be infinite.
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    x, y, z = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def draw_points(
    ink: NDArray[np.float64], n_points: int, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Points drawn with density proportional to the ink of a picture; x right, y up, in pixels.

    Jitter of half a pixel each way keeps points drawn from one pixel distinct.
    """
    height, width = ink.shape
    chosen = rng.choice(ink.size, n_points, p=ink.ravel() / ink.sum())
    rows, columns = np.divmod(chosen, width)
    return np.stack([columns, height - 1 - rows], axis=1) + rng.uniform(-0.5, 0.5, (n_points, 2))
