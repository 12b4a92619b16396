"""Edges of pictures: how strong they are, and in which direction, at each pixel."""

import numpy as np
from numpy.typing import NDArray

from unshuffle._color import rgb_to_lab

# Shorter side at which texture is looked at. Larger pictures are averaged down to it, so that
# what is found hardly depends on the size that they were read at.
_LARGEST, _SMALLEST = 40, 20


def working_lab(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Pictures in Lab at the size at which texture is looked at."""
    height, width = images.shape[1:3]
    shorter = min(height, width)
    scale = min(max(shorter, _SMALLEST), _LARGEST) / shorter
    # A ribbon is not drawn out in proportion: its length would cost without end.
    target = [min(max(round(side * scale), _SMALLEST), 4 * _LARGEST) for side in (height, width)]
    lab = rgb_to_lab(images).astype(np.float32)
    return lab if target == [height, width] else pooled(lab, target[0], target[1])


def pooled(
    maps: NDArray[np.float32], rows: int, columns: int, *, overlap: bool = False
) -> NDArray[np.float32]:
    """Means over a grid of cells.

    Parameters
    ----------
    maps : ndarray of shape (n, height, width, n_channels)
        What is averaged. Pixels cut by the edge of a cell count with their share in it.
    rows, columns : int
        Cells; more of them keep more of what is where.
    overlap : bool, default=False
        Cells fade out over twice their width in place of ending at their edge, so that a
        small shift of a picture changes little.

    Returns
    -------
    means : ndarray of shape (n, rows, columns, n_channels)
    """
    down = _cell_weights(maps.shape[1], rows, overlap)
    across = _cell_weights(maps.shape[2], columns, overlap)
    # Two products of matrices: einsum would walk over all four axes.
    narrow = np.matmul(across, maps)
    n, height, _, n_channels = narrow.shape
    means = np.matmul(down, narrow.reshape(n, height, columns * n_channels))
    return means.reshape(n, rows, columns, n_channels)


def orientation_energy(
    lightness: NDArray[np.float32], n_bins: int, *, signed: bool
) -> NDArray[np.float32]:
    """Strength of the gradient at each pixel, shared out to the two nearest directions.

    Parameters
    ----------
    lightness : ndarray of shape (n, height, width)
        Lightness from 0 to 100.
    n_bins : int
        Directions told apart; more tell finer ones.
    signed : bool
        Whether dark to light differs from light to dark.

    Returns
    -------
    energy : ndarray of shape (n, height, width, n_bins)
        Never negative. The sum over the bins is the length of the gradient.
    """
    edged = np.pad(lightness, ((0, 0), (1, 1), (1, 1)), mode="edge")
    across = (edged[:, 1:-1, 2:] - edged[:, 1:-1, :-2]) / 2
    down = (edged[:, 2:, 1:-1] - edged[:, :-2, 1:-1]) / 2
    strength = np.hypot(across, down)
    turn = 2 * np.pi if signed else np.pi
    angle = np.mod(np.arctan2(down, across), turn) * (n_bins / turn)
    lower = np.floor(angle)
    upper_share = angle - lower
    first = lower.astype(np.intp) % n_bins
    energy = np.zeros((*lightness.shape, n_bins), dtype=np.float32)
    place = first[..., np.newaxis]
    np.put_along_axis(energy, place, (strength * (1 - upper_share))[..., np.newaxis], axis=-1)
    place = (place + 1) % n_bins
    np.put_along_axis(energy, place, (strength * upper_share)[..., np.newaxis], axis=-1)
    return energy


def _cell_weights(n_pixels: int, n_cells: int, overlap: bool) -> NDArray[np.float32]:
    """Share of each pixel in the mean of each cell; rows sum to 1."""
    side = n_pixels / n_cells
    if overlap:
        centres = (np.arange(n_cells) + 0.5) * side
        away = np.abs(np.arange(n_pixels) + 0.5 - centres[:, np.newaxis]) / side
        weights = np.clip(1.0 - away, 0.0, None)
    else:
        edges = np.arange(n_cells + 1) * side
        pixels = np.arange(n_pixels)
        ends = np.minimum(edges[1:, np.newaxis], pixels + 1)
        weights = np.clip(ends - np.maximum(edges[:-1, np.newaxis], pixels), 0.0, None)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
