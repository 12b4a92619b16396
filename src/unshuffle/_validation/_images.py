"""What is asked of pictures and of the sheets they are laid out on."""

import os
from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._validation._collections import as_array, as_numbers, check_finite, check_plain
from unshuffle._validation._files import check_array_file
from unshuffle._validation._memory import check_memory
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
    check_plain(images, f"`{name}`")
    try:
        array = np.asarray(images)
    except ValueError as error:
        try:
            sizes = sorted({np.shape(each) for each in images})
        except ValueError:  # not even one of them is an array
            sizes = []
        if len(sizes) < 2:
            raise ValueError(
                f"`{name}` must be an array of pictures, got rows of different lengths."
            ) from error
        raise ValueError(
            f"`{name}` must be pictures of one size, got {len(sizes)} sizes such as {sizes[0]} "
            f"and {sizes[-1]}. Scale or crop them first."
        ) from error
    if array.size == 0:
        raise ValueError(
            f"`{name}` is empty: it has shape {array.shape}. Pass at least one picture."
        )
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
    if not array.flags.c_contiguous:
        n_images, height, width, _ = array.shape
        check_memory(
            array.size,
            what=f"A copy of {n_images:,} pictures of {height} x {width} pixels",
            instead="Scale the pictures down.",
        )
    return np.ascontiguousarray(array)


def check_picture(picture: Any, name: str) -> NDArray[np.uint8]:
    """One picture as uint8 of shape (height, width, 3)."""
    array = as_array(picture, f"`{name}`")
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or array.shape[2:] not in ((), (3,)):
        clear = array.dtype == np.uint8 and array.shape[2:] == (4,)
        raise ValueError(
            f"`{name}` must be one picture of dtype uint8 and shape (height, width, 3), or "
            f"(height, width) if grey, got shape {array.shape} and dtype {array.dtype}. "
            + (
                "Drop its transparency: [..., :3]."
                if clear
                else "Scale it to 0..255 and convert with .astype('uint8')."
            )
        )
    return check_images(array[np.newaxis], name)[0]


def check_sheet_values(values: ArrayLike, n_items: int, name: str) -> NDArray[np.float64]:
    """One finite number for each item."""
    array = as_numbers(values, f"`{name}`")
    if array.shape != (n_items,) or not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be {n_items} finite numbers, one for each item, got shape "
            f"{array.shape}."
        )
    return array


def check_cache_folder(cache: str | os.PathLike[str], folder: Path) -> Path:
    """Where thumbnails are kept: not among the pictures themselves."""
    path = Path(cache)
    if os.path.realpath(path) == os.path.realpath(folder):
        raise ValueError(
            f"`cache` is the folder of the pictures itself, {folder}. Give another one, such as "
            "unshuffle.images.default_cache()."
        )
    return path


def check_feature_file(path: Path, n_items: int, names: Sequence[str] | None) -> NDArray[Any]:
    """Finite numbers from a file, one row for each picture."""
    array = check_array_file(path)
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"{path} has shape {array.shape}. Give a 2-D array with one row for each picture and "
            "at least one column."
        )
    if len(array) != n_items:
        order = f", from {names[0]} to {names[-1]}" if names else ""
        raise ValueError(
            f"{path} has {len(array)} row(s), but there are {n_items} picture(s). Give one row "
            f"for each picture that was read, in natural order of the names{order}."
        )
    check_finite(array, str(path))
    return array


# Longest side that each format can record.
_LONGEST_SIDE = {"JPEG": 65_535, "WEBP": 16_383}


def check_sheet_fits(size: tuple[int, int], format_name: str, path: Path) -> None:
    """Refuse a picture that the format of its file cannot hold."""
    longest = _LONGEST_SIDE.get(format_name, 2**31 - 1)
    if max(size) > longest:
        raise ValueError(
            f"Cannot write {path}: the sheet is {size[0]:,} x {size[1]:,} pixels, and a "
            f"{format_name} file holds at most {longest:,} along a side. Write a .png file, or "
            "draw smaller pictures."
        )


def raise_sheet_too_large(rows: int, columns: int, longest: int) -> NoReturn:
    """Refuse a grid that has no room on a sheet even with a pixel for each cell."""
    raise ValueError(
        f"A grid of {rows:,} x {columns:,} cells is too large for a sheet, which has at most "
        f"{longest:,} pixels along a side. Draw a part of it."
    )


def check_representatives(k: Any, n_items: int) -> int:
    """Number of items to choose from a collection, at most all of them."""
    k = check_count(k, "k")
    if k > n_items:
        raise ValueError(
            f"`k` is {k}, but there are only {n_items} item(s) to choose from. Choose at most "
            f"{n_items}."
        )
    return k


def check_title(title: Any) -> None:
    """Refuse a heading that is no text."""
    if not isinstance(title, str):
        raise ValueError(
            f'`title` must be a string, got {type(title).__name__}. Give "" for a page without.'
        )


def check_item_texts(texts: Any, n_items: int, name: str) -> list[str]:
    """One string for each item."""
    single = isinstance(texts, str) or not isinstance(texts, Iterable)
    values = [] if single else list(texts)
    if len(values) != n_items:
        raise ValueError(
            f"`{name}` must be {n_items} strings, one for each picture, got "
            + (f"one {type(texts).__name__}." if single else f"{len(values)}.")
        )
    odd = next((k for k, each in enumerate(values) if not isinstance(each, str)), None)
    if odd is not None:
        raise ValueError(
            f"`{name}` must hold strings; number {odd} is a {type(values[odd]).__name__}. "
            "Convert it with str()."
        )
    return [str(each) for each in values]


def check_previews(previews: Any, n_items: int) -> list[NDArray[np.uint8]]:
    """One picture for each item, of any size."""
    pictures = [as_array(each, f"`previews[{k}]`") for k, each in enumerate(previews)]
    if len(pictures) != n_items:
        raise ValueError(
            f"`previews` must be {n_items} pictures, one for each of `images`, got "
            f"{len(pictures)}."
        )
    for number, each in enumerate(pictures):
        if each.dtype != np.uint8 or each.ndim != 3 or each.shape[2] != 3 or 0 in each.shape:
            raise ValueError(
                f"Picture {number} of `previews` has shape {each.shape} and dtype {each.dtype}. "
                "Give uint8 arrays of shape (height, width, 3)."
            )
    return pictures
