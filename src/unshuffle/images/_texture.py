"""Pictures compared by colour and by the texture of their edges."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._grids import check_images
from unshuffle.images._features import CHUNK, color_histogram
from unshuffle.images._gradients import orientation_energy, pooled, working_lab

_CELLS = 4
_DIRECTIONS = 9
_COLOR_BINS = (6, 6, 6)
# Gradients well below this many steps of lightness per pixel are noise and count for little.
_FAINT = 4.0
# Root of the total variance of each part over holiday and object photographs. Fixed, so that
# the features of a picture do not depend on what other pictures come with it.
_LAYOUT_SPREAD, _HISTOGRAM_SPREAD, _EDGE_SPREAD = 110.0, 0.8, 1.15
_COLOR_SHARE = 0.5


def color_texture(images: ArrayLike) -> NDArray[np.float32]:
    """Each picture as its colours and the directions of its edges, coarsely by place.

    Closer to what a picture shows than `lab_pixels`: a shift of the scene, or other light,
    changes these features less.

    Parameters
    ----------
    images : array of shape (n_images, height, width, 3) or (n_images, height, width), uint8
        RGB or grey pictures of one size. Larger ones are averaged down to 40 pixels on the
        shorter side first.

    Returns
    -------
    features : ndarray of shape (n_images, 408), float32
        Mean Lab colour of 4 x 4 overlapping cells; square roots of the shares of 216 colours;
        strength of the edges in 9 directions in 4 x 4 overlapping cells, relative to what is
        around. The first two have together about the variance of the third. A row depends on
        its own picture alone.

    Notes
    -----
    Time and memory grow with the number of pixels; 32 pictures are worked on at once.

    References
    ----------
    Dalal, Triggs, "Histograms of oriented gradients for human detection", CVPR (2005).
    """
    images = check_images(images)
    parts = []
    for start in range(0, len(images), CHUNK):
        chunk = images[start : start + CHUNK]
        lab = working_lab(chunk)
        layout = pooled(lab, _CELLS, _CELLS, overlap=True)
        parts.append(
            np.concatenate(
                [
                    _flat(layout) * (np.sqrt(_COLOR_SHARE / 2) / _LAYOUT_SPREAD),
                    color_histogram(chunk, bins=_COLOR_BINS)
                    * (np.sqrt(_COLOR_SHARE / 2) / _HISTOGRAM_SPREAD),
                    _flat(_edges(lab[..., 0])) * (np.sqrt(1 - _COLOR_SHARE) / _EDGE_SPREAD),
                ],
                axis=1,
            ).astype(np.float32)
        )
    return np.concatenate(parts)


def _edges(lightness: NDArray[np.float32]) -> NDArray[np.float32]:
    """Root of the edge strength by cell and direction, relative to the cells around."""
    energy = orientation_energy(lightness, _DIRECTIONS, signed=False)
    cells = pooled(energy, _CELLS, _CELLS, overlap=True)
    strength = np.pad(cells.sum(axis=-1), ((0, 0), (1, 1), (1, 1)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(strength, (3, 3), axis=(1, 2))
    around = windows.mean(axis=(-2, -1))
    # Shares and their roots, as for the colours: distances between them are Hellinger's.
    return np.sqrt(cells / (around[..., np.newaxis] + _FAINT))


def _flat(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values.reshape(len(values), -1)
