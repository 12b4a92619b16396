"""Colours as the eye compares them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

# sRGB primaries to CIE XYZ (IEC 61966-2-1); the rows add up to the white point D65.
_XYZ_FROM_RGB = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = _XYZ_FROM_RGB.sum(axis=1)


def _linear_light() -> NDArray[np.float64]:
    """Linear intensity of each 8-bit sRGB level."""
    level = np.arange(256) / 255.0
    return np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)


_LINEAR = _linear_light()


def rgb_to_lab(rgb: ArrayLike) -> NDArray[np.float64]:
    """Colours in CIE Lab, where distances follow what the eye sees as different.

    Parameters
    ----------
    rgb : array of shape (..., 3), uint8
        sRGB colours.

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
    """
    return lab_of_light(light_of_rgb(rgb))


def light_of_rgb(rgb: ArrayLike) -> NDArray[np.float64]:
    """Linear intensities from 0 to 1 of sRGB colours: what adds up when colours are mixed."""
    return _LINEAR[np.asarray(rgb, dtype=np.uint8)]


def lab_of_light(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE Lab of linear intensities of red, green and blue."""
    xyz = light @ (_XYZ_FROM_RGB.T / _WHITE)
    # CIE 15:2004: a cube root with a straight piece near black, where its slope is infinite.
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    x, y, z = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)
