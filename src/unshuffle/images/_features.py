"""Features of pictures: Lab pixels, color histograms, and colors with edges."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from unshuffle._core.color import rgb_to_lab
from unshuffle._core.grids import check_images
from unshuffle._core.parameters import check_count, check_memory

Maps = NDArray[np.float32]
_CELLS = 4
_DIRECTIONS = 9
_COLOR_BINS = (6, 6, 6)
# Gradients well below this many steps of lightness per pixel are noise and weigh little.
_FAINT = 4.0
# Root of the total variance of each part over many photographs; fixed for all collections.
_LAYOUT_SPREAD, _HISTOGRAM_SPREAD, _EDGE_SPREAD = 110.0, 0.8, 1.15
_COLOR_SHARE = 0.5
# Range of the shorter side for texture, so that the size of a picture hardly matters.
_LARGEST, _SMALLEST = 40, 20
_LAB_RANGES = ((0.0, 100.0), (-60.0, 60.0), (-60.0, 60.0))
# Pictures converted at once: enough for NumPy, few enough for the cache.
CHUNK = 32


def lab_pixels(images: ArrayLike, *, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Each picture as one vector of its Lab pixels: compares pictures place by place.

    Parameters
    ----------
    images : array of shape (n_images, height, width, 3) or (n_images, height, width), uint8
        RGB or gray pictures of one size.
    dtype : numpy dtype, default=float64
        Precision of the result. float32 takes half the memory and is still finer than 8 bits.

    Returns
    -------
    features : ndarray of shape (n_images, height * width * 3)
        Pixels row by row from the top, each as L, a, b.

    Notes
    -----
    Takes 8 bytes per pixel and channel, 4 as float32, checked before they are allocated.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import lab_pixels
    >>> lab_pixels(np.zeros((2, 8, 8, 3), dtype=np.uint8)).shape
    (2, 192)
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
    """Each picture as the square roots of its color shares: compares colors wherever they are.

    Parameters
    ----------
    images : array of shape (n_images, height, width, 3) or (n_images, height, width), uint8
        RGB or gray pictures of one size.
    bins : (int, int, int), default=(8, 8, 8)
        Number of bins along L (0 to 100), a and b (-60 to 60; stronger colors fall in the
        outermost bin). More bins separate finer shades and need more pixels.

    Returns
    -------
    features : ndarray of shape (n_images, bins[0] * bins[1] * bins[2])
        Square root of the share of pixels in each bin: rows have Euclidean length 1, and
        distances between them are Hellinger distances.

    Notes
    -----
    Takes 8 bytes per picture and bin, checked before they are allocated.

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import color_histogram
    >>> color_histogram(np.zeros((2, 8, 8, 3), dtype=np.uint8)).shape
    (2, 512)
    """
    images = check_images(images)
    n_images, height, width, _ = images.shape
    if np.ndim(bins) != 1 or len(bins) != 3:
        raise ValueError(f"`bins` must be three numbers, for L, a and b, got {bins!r}.")
    counts = [check_count(each, "bins") for each in bins]
    n_bins = prod(counts)
    check_memory(
        8 * n_bins * (n_images + 1),
        what=f"A histogram of {n_bins:,} bins for {n_images:,} picture(s)",
        instead="Choose fewer `bins`.",
    )
    shares = np.empty((n_images, n_bins))
    for start in range(0, n_images, CHUNK):
        lab = rgb_to_lab(images[start : start + CHUNK])
        cell = np.zeros(lab.shape[:-1], dtype=np.intp)
        for channel, ((low, high), n) in enumerate(zip(_LAB_RANGES, counts, strict=True)):
            step = np.floor((lab[..., channel] - low) / (high - low) * n).astype(np.intp)
            cell = cell * n + np.clip(step, 0, n - 1)
        for offset, cells in enumerate(cell.reshape(len(lab), -1)):
            shares[start + offset] = np.bincount(cells, minlength=n_bins)
    # In place: a copy would take the memory twice.
    shares /= height * width
    return np.sqrt(shares, out=shares)


def color_texture(images: ArrayLike) -> Maps:
    """Each picture as its colors and edge directions on a coarse grid.

    Closer to the content of a picture than `lab_pixels`: less sensitive to shifts and lighting.

    Parameters
    ----------
    images : array of shape (n_images, height, width, 3) or (n_images, height, width), uint8
        RGB or gray pictures of one size, first averaged down to 40 pixels on the shorter side.

    Returns
    -------
    features : ndarray of shape (n_images, 408), float32
        Mean Lab color of 4 x 4 overlapping cells; square roots of the shares of 216 colors;
        edge strength in 9 directions in 4 x 4 overlapping cells, relative to the surrounding
        cells. The first two together have about the variance of the third. A row depends on its
        own picture only.

    Notes
    -----
    Time and memory grow linearly with the number of pixels.

    References
    ----------
    Dalal, Triggs, "Histograms of oriented gradients for human detection", CVPR (2005).

    Examples
    --------
    >>> import numpy as np
    >>> from unshuffle.images import color_texture
    >>> len(color_texture(np.zeros((2, 16, 16, 3), dtype=np.uint8)))
    2
    """
    images = check_images(images)
    color = np.sqrt(_COLOR_SHARE / 2)
    parts = []
    for start in range(0, len(images), CHUNK):
        chunk = images[start : start + CHUNK]
        lab = working_lab(chunk)
        layout = pooled(lab, _CELLS, _CELLS, overlap=True) * (color / _LAYOUT_SPREAD)
        shares = color_histogram(chunk, bins=_COLOR_BINS) * (color / _HISTOGRAM_SPREAD)
        edges = _edge_features(lab[..., 0]) * (np.sqrt(1 - _COLOR_SHARE) / _EDGE_SPREAD)
        flat = [each.reshape(len(chunk), -1) for each in (layout, shares, edges)]
        parts.append(np.concatenate(flat, axis=1).astype(np.float32))
    return np.concatenate(parts)


def _edge_features(lightness: Maps) -> Maps:
    """Root of the edge strength by cell and direction, relative to the surrounding cells."""
    energy = orientation_energy(lightness, _DIRECTIONS, signed=False)
    cells = pooled(energy, _CELLS, _CELLS, overlap=True)
    strength = np.pad(cells.sum(axis=-1), ((0, 0), (1, 1), (1, 1)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(strength, (3, 3), axis=(1, 2))
    around = windows.mean(axis=(-2, -1))
    # Roots of shares, as for the colors, make Euclidean distances Hellinger distances.
    return np.sqrt(cells / (around[..., np.newaxis] + _FAINT))


def working_lab(images: NDArray[np.uint8]) -> Maps:
    """Pictures in Lab at the size at which texture is computed."""
    height, width = images.shape[1:3]
    shorter = min(height, width)
    scale = min(max(shorter, _SMALLEST), _LARGEST) / shorter
    # The longer side is limited: a ribbon would cost too much.
    target = [min(max(round(side * scale), _SMALLEST), 4 * _LARGEST) for side in (height, width)]
    lab = rgb_to_lab(images).astype(np.float32)
    return lab if target == [height, width] else pooled(lab, target[0], target[1])


def pooled(maps: Maps, rows: int, columns: int, *, overlap: bool = False) -> Maps:
    """Means over a grid of cells, (n, rows, columns, n_channels); pixels on edges are shared."""
    down = _cell_weights(maps.shape[1], rows, overlap)
    across = _cell_weights(maps.shape[2], columns, overlap)
    # Two matrix products are faster than einsum over four axes.
    narrow = np.matmul(across, maps)
    n, height, _, n_channels = narrow.shape
    means = np.matmul(down, narrow.reshape(n, height, columns * n_channels))
    return means.reshape(n, rows, columns, n_channels)


def _cell_weights(n_pixels: int, n_cells: int, overlap: bool) -> Maps:
    """Share of each pixel in the mean of each cell; rows sum to 1."""
    side = n_pixels / n_cells
    if overlap:
        # Fading out over twice their width makes cells robust to small shifts.
        centers = (np.arange(n_cells) + 0.5) * side
        away = np.abs(np.arange(n_pixels) + 0.5 - centers[:, np.newaxis]) / side
        weights = np.clip(1.0 - away, 0.0, None)
    else:
        edges = np.arange(n_cells + 1) * side
        pixels = np.arange(n_pixels)
        ends = np.minimum(edges[1:, np.newaxis], pixels + 1)
        weights = np.clip(ends - np.maximum(edges[:-1, np.newaxis], pixels), 0.0, None)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def orientation_energy(lightness: Maps, n_bins: int, *, signed: bool) -> Maps:
    """Gradient length at each pixel, split between the two nearest of `n_bins` directions."""
    edged = np.pad(lightness, ((0, 0), (1, 1), (1, 1)), mode="edge")
    across = (edged[:, 1:-1, 2:] - edged[:, 1:-1, :-2]) / 2
    down = (edged[:, 2:, 1:-1] - edged[:, :-2, 1:-1]) / 2
    strength = np.hypot(across, down)[..., np.newaxis]
    turn = 2 * np.pi if signed else np.pi
    angle = np.mod(np.arctan2(down, across), turn) * (n_bins / turn)
    lower = np.floor(angle)
    upper_share = (angle - lower)[..., np.newaxis]
    place = lower.astype(np.intp)[..., np.newaxis] % n_bins
    energy = np.zeros((*lightness.shape, n_bins), dtype=np.float32)
    np.put_along_axis(energy, place, strength * (1 - upper_share), axis=-1)
    np.put_along_axis(energy, (place + 1) % n_bins, strength * upper_share, axis=-1)
    return energy
