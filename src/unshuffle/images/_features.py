"""What pictures are compared by: Lab pixels and Lab colour histograms."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from unshuffle._color import rgb_to_lab
from unshuffle._grids import check_images
from unshuffle._parameters import check_count, check_memory

_LAB_RANGES = ((0.0, 100.0), (-60.0, 60.0), (-60.0, 60.0))
# Pictures converted at once: enough to keep NumPy busy, few enough to stay in cache.
CHUNK = 32


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
    Takes 8 bytes for each pixel and channel, or 4 as float32; that is checked before it is
    taken.
    """
    images = check_images(images)
    n_images, height, width, _ = images.shape
    try:
        precision = np.dtype(dtype)
    except TypeError as error:
        raise ValueError(f"`dtype` must be a floating-point type, got {dtype!r}.") from error
    if precision.kind != "f":
        raise ValueError(f"`dtype` must be a floating-point type, got {precision}.")
    check_memory(
        precision.itemsize * images.size,
        what=f"{n_images:,} pictures of {height} x {width} pixels in Lab",
        instead="Scale the pictures down.",
    )
    features = np.empty((n_images, height * width * 3), dtype=precision)
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
        Number of bins along L (0 to 100), a and b (-60 to 60 each; stronger colors count
        in the outermost bin). More bins tell finer colors apart, and need more pixels.

    Returns
    -------
    features : ndarray of shape (n_images, bins[0] * bins[1] * bins[2])
        Square root of the share of pixels in each bin: rows have Euclidean length 1, and
        distances between them are Hellinger distances.

    Notes
    -----
    Takes 8 bytes for each picture and bin; that is checked before it is taken.
    """
    images = check_images(images)
    n_images, height, width, _ = images.shape
    bins = _check_bins(bins)
    n_bins = prod(bins)
    check_memory(
        8 * n_bins * (n_images + 1),
        what=f"A histogram of {n_bins:,} bins for {n_images:,} picture(s)",
        instead="Choose fewer `bins`.",
    )
    shares = np.empty((n_images, n_bins))
    for start in range(0, n_images, CHUNK):
        lab = rgb_to_lab(images[start : start + CHUNK])
        cell = np.zeros(lab.shape[:-1], dtype=np.intp)
        for channel, ((low, high), n) in enumerate(zip(_LAB_RANGES, bins, strict=True)):
            step = np.floor((lab[..., channel] - low) / (high - low) * n).astype(np.intp)
            cell = cell * n + np.clip(step, 0, n - 1)
        for offset, cells in enumerate(cell.reshape(len(lab), -1)):
            shares[start + offset] = np.bincount(cells, minlength=n_bins)
    # In place: a copy would take the memory twice.
    shares /= height * width
    return np.sqrt(shares, out=shares)


def _check_bins(bins: Any) -> tuple[int, int, int]:
    if np.ndim(bins) != 1 or len(bins) != 3:
        raise ValueError(f"`bins` must be three numbers, for L, a and b, got {bins!r}.")
    n_lightness, n_a, n_b = (check_count(each, "bins") for each in bins)
    return n_lightness, n_a, n_b
