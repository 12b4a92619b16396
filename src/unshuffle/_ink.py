"""Pictures as clouds of points: many where there is much ink."""

import numpy as np
from numpy.typing import NDArray

Color = tuple[int, int, int]
SHEET_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
MAX_SHEET_SIDE = 16_383
PAPER: Color = (250, 249, 246)
INK: Color = (34, 51, 59)


Points = NDArray[np.float64]


def draw_pixels(
    ink: NDArray[np.float64], n_points: int, rng: np.random.RandomState
) -> NDArray[np.intp]:
    """Row and column of pixels drawn with probability proportional to their ink.

    Parameters
    ----------
    ink : ndarray of shape (height, width)
        How much ink each pixel holds, not below 0 and not 0 everywhere.
    n_points : int
        How many to draw; a pixel may be drawn several times.
    rng : RandomState
        Draws them.

    Returns
    -------
    pixels : ndarray of shape (n_points, 2)
    """
    share = ink.ravel() / ink.sum()
    chosen = rng.choice(ink.size, n_points, p=share)
    return np.stack(np.divmod(chosen, ink.shape[1]), axis=1)


def as_points(pixels: NDArray[np.intp], height: int, rng: np.random.RandomState) -> Points:
    """Points anywhere inside the pixels drawn, x to the right and y up, a pixel one unit wide.

    Half a pixel of jitter each way: without it, points drawn from one pixel could not be told
    apart, and any order of them would be as good.
    """
    x, y = pixels[:, 1], height - 1 - pixels[:, 0]
    return np.stack([x, y], axis=1) + rng.uniform(-0.5, 0.5, (len(pixels), 2))
