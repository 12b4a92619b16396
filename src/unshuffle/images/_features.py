"""What pictures are compared by: Lab pixels and Lab colour histograms."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from unshuffle._validation import check_images

# sRGB primaries to CIE XYZ (IEC 61966-2-1); the rows add up to the white point D65.
_XYZ_FROM_RGB = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_WHITE = _XYZ_FROM_RGB.sum(axis=1)
_LAB_RANGES = ((0.0, 100.0), (-60.0, 60.0), (-60.0, 60.0))
# Pictures converted at once: enough to keep NumPy busy, few enough to stay in cache.
CHUNK = 32


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
    xyz = _LINEAR[np.asarray(rgb, dtype=np.uint8)] @ (_XYZ_FROM_RGB.T / _WHITE)
    # CIE 15:2004: a cube root with a straight piece near black, where its slope is infinite.
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    x, y, z = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def lab_pixels(images: ArrayLike, *, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Each picture as one vector of its Lab pixels, to compare what is where.

    Parameters
    ----------
    images : array of shape (n_images, height, width, 3) or (n_images, height, width), uint8
        RGB or grey pictures of one size.
    dtype : numpy dtype, default=float64
        Precision of the result: float32 takes half the memory, and is finer than the 8 bits
        of the pictures all the same.

    Returns
    -------
    features : ndarray of shape (n_images, height * width * 3)
        Rows of pixels from the top, each as L, a, b.

    Notes
    -----
    Takes 8 bytes for each pixel and channel, or 4 as float32.
    """
    images = check_images(images)
    n_images, height, width, _ = images.shape
    features = np.empty((n_images, height * width * 3), dtype=dtype)
    for start in range(0, n_images, CHUNK):
        chunk = rgb_to_lab(images[start : start + CHUNK])
        features[start : start + CHUNK] = chunk.reshape(len(chunk), -1)
    return features


def color_histogram(
    images: ArrayLike, *, bins: tuple[int, int, int] = (8, 8, 8)
) -> NDArray[np.float64]:
    """Each picture as the square roots of its colour shares, to compare what colours there are.

    Parameters
    ----------
    images : array of shape (n_images, height, width, 3) or (n_images, height, width), uint8
        RGB or grey pictures of one size.
    bins : (int, int, int), default=(8, 8, 8)
        Number of bins along L (0 to 100), a and b (-60 to 60 each; stronger colours count
        in the outermost bin). More bins tell finer colours apart, and need more pixels.

    Returns
    -------
    features : ndarray of shape (n_images, bins[0] * bins[1] * bins[2])
        Square root of the share of pixels in each bin: rows have Euclidean length 1, and
        distances between them are Hellinger distances.
    """
    images = check_images(images)
    n_images, height, width, _ = images.shape
    n_bins = int(np.prod(bins))
    shares = np.empty((n_images, n_bins))
    for start in range(0, n_images, CHUNK):
        lab = rgb_to_lab(images[start : start + CHUNK])
        cell = np.zeros(lab.shape[:-1], dtype=np.intp)
        for channel, ((low, high), n) in enumerate(zip(_LAB_RANGES, bins, strict=True)):
            step = np.floor((lab[..., channel] - low) / (high - low) * n).astype(np.intp)
            cell = cell * n + np.clip(step, 0, n - 1)
        for offset, cells in enumerate(cell.reshape(len(lab), -1)):
            shares[start + offset] = np.bincount(cells, minlength=n_bins)
    return np.sqrt(shares / (height * width))
