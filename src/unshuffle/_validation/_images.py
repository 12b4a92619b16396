"""What is asked of pictures and of the sheets they are laid out on."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._validation._parameters import check_count


def check_image_size(size: Any) -> tuple[int, int]:
    """Height and width in pixels, from one number or two."""
    both = (size, size) if isinstance(size, Integral) else tuple(np.atleast_1d(size).tolist())
    if len(both) != 2:
        raise ValueError(
            f"`size` must be one number or (height, width), got {size!r}. "
            "Pass e.g. 40 or (40, 20)."
        )
    height, width = (check_count(each, "size", most=4096) for each in both)
    return height, width


def check_images(images: Any, name: str = "images") -> NDArray[np.uint8]:
    """Pictures of one size as uint8 of shape (n_images, height, width, 3)."""
    array = np.asarray(images)
    if array.dtype != np.uint8:
        raise ValueError(
            f"`{name}` must hold whole numbers from 0 to 255 (dtype uint8), got dtype "
            f"{array.dtype}. Scale the pictures to 0..255 and convert with .astype('uint8')."
        )
    if array.ndim == 3:
        array = np.repeat(array[..., np.newaxis], 3, axis=-1)
    if array.ndim != 4 or array.shape[-1] != 3:
        raise ValueError(
            f"`{name}` must have shape (n_images, height, width, 3), or (n_images, height, width) "
            f"if grey, got {array.shape}. Stack the pictures along the first axis."
        )
    if 0 in array.shape:
        raise ValueError(
            f"`{name}` is empty: it has shape {array.shape}. Pass at least one picture."
        )
    return array


def check_sheet_values(values: ArrayLike, n_items: int, name: str) -> NDArray[np.float64]:
    """One finite number for each item."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n_items,) or not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be {n_items} finite numbers, one for each item, got shape "
            f"{array.shape}."
        )
    return array
