"""Templates of collages: how they are read, and how much of one a collage shows."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle._core.color import rgb_to_lab
from unshuffle._pictures.decoding import decode, explain

# Enough for the finest collage: a tile covers several pixels of the template.
TEMPLATE_SIDE = 1024
# Least share of the template's variation; on photographs 0.2 was a blur and 0.7 clear.
POOR, CLEAR = 0.5, 0.7
# Squared difference in Lab that is hardly visible, whatever the template.
FAINT = 100.0


class Likeness(NamedTuple):
    """How much of a template is visible from afar."""

    share: float  # of its variation
    poor: bool


def read_template(path: Path) -> NDArray[np.uint8]:
    """A template, upright, in its own proportions; ValueError if it cannot be read."""
    try:
        # Decoding to one pixel is a cheap way to learn the size.
        original = decode(path, size=(1, 1)).original
        scale = min(1.0, TEMPLATE_SIDE / max(original))
        height, width = (max(1, round(side * scale)) for side in original)
        return decode(path, size=(height, width)).pixels
    except Exception as error:  # decoders raise nearly anything on a damaged file
        raise ValueError(f"{path} cannot be read as a picture: {explain(error)}.") from error


def measure_likeness(
    template: NDArray[np.uint8], tiles: NDArray[np.uint8], grid: NDArray[np.intp]
) -> Likeness:
    """Share of the variation of the template that is visible from afar, and whether it is poor."""
    size = grid.shape[1], grid.shape[0]
    small = Image.fromarray(template).resize(size, Image.Resampling.BOX)
    wanted = rgb_to_lab(np.asarray(small))
    shown = rgb_to_lab(tiles.mean(axis=(1, 2)) / 255)[grid]
    variation = ((wanted - wanted.mean(axis=(0, 1))) ** 2).sum(axis=2).mean()
    missed = ((wanted - shown) ** 2).sum(axis=2).mean()
    share = 1.0 - float(missed / max(variation, FAINT))
    return Likeness(share, share < POOR and bool(missed > FAINT))
