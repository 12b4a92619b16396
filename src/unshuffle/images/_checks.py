"""Checks of pictures and of the sheets they are laid out on."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from unshuffle._arrays import _as_numbers, as_array, as_numbers, check_finite, check_magnitude
from unshuffle._files import check_array_file

# Longest side that each format can record.
_LONGEST_SIDE = {"JPEG": 65_535, "WEBP": 16_383}


def check_path_of_points(points: Any, name: str, *, least: int = 1) -> NDArray[np.float64]:
    """Positions of the same points at several moments, shape (n_moments, n_points, 2)."""
    array = _as_numbers(points, name)
    if array.ndim != 3 or array.shape[2] != 2 or 0 in array.shape or len(array) < least:
        raise ValueError(
            f"`{name}` must hold points in the plane at {least} or more moments, with shape "
            f"(n_moments, n_points, 2), got {array.shape}. `morph` of MinimumVolumePCA gives them."
        )
    check_finite(array.reshape(len(array), -1), name)
    check_magnitude(array, name)
    return array


def check_frames(frames: Any) -> list[Any]:
    """Pictures of one size, at least one."""
    listed = list(frames) if isinstance(frames, Sequence) else []
    sizes = {getattr(each, "size", None) for each in listed if hasattr(each, "save")}
    if not listed or len(sizes) != 1 or not all(hasattr(each, "save") for each in listed):
        raise ValueError(
            f"`frames` must be a list of one or more PIL images of one size, got "
            f"{type(frames).__name__} with {len(listed)} entries. `morph_frames` draws them."
        )
    return listed


def check_colors(colors: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """Colours from 0 to 255, repeated to fill `shape`."""
    try:
        array = as_numbers(colors, f"`{name}`")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must be colours (red, green, blue) from 0 to 255, got {colors!r}."
        ) from error
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"`{name}` has shape {array.shape}, which does not fill {shape}. Give one colour "
            "(red, green, blue), or one for each."
        ) from None
    # Blending two colours may leave the range by a rounding error.
    if not (np.isfinite(array).all() and array.min() >= -1e-6 and array.max() <= 255 + 1e-6):
        raise ValueError(
            f"`{name}` must be colours (red, green, blue) from 0 to 255, got values from "
            f"{array.min():g} to {array.max():g}."
        )
    return np.clip(array, 0.0, 255.0)


def check_ink(ink: NDArray[np.float64], path: str | Path) -> None:
    """Refuse a picture with nothing drawn on it."""
    if not ink.any():
        raise ValueError(
            f"{path} is all of one shade, so there is nothing to draw points from. Give a picture "
            "with a shape in it, such as dark ink on white."
        )


def raise_no_drawing(path: str | Path, why: str, cause: Exception) -> NoReturn:
    """Refuse a file that is no picture."""
    raise ValueError(
        f"{path} cannot be read as a picture: {why}. Give a PNG, JPEG, GIF, BMP, TIFF or WebP "
        "file."
    ) from cause


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


def check_mask_text(text: Any) -> list[str]:
    """Lines of a text that can be drawn, without spaces around them."""
    if not isinstance(text, str):
        raise ValueError(f"`text` must be a string, got {type(text).__name__}.")
    # Some keyboards and file systems give a letter and its accent apart.
    lines = [" ".join(line.split()) for line in normalize("NFC", text).splitlines()]
    lines = ["".join(letter for letter in line if letter.isprintable()) for line in lines]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise ValueError(f"`text` has no letter to draw: {text!r}. Give at least one.")
    longest = max(lines, key=len)
    if len(longest) > 200 or len(lines) > 50:
        raise ValueError(
            f"`text` has {len(lines)} line(s) of up to {len(longest)} letters. Give at most 50 "
            "lines of 200 letters."
        )
    return lines


def check_letters(lacking: Sequence[str]) -> None:
    """Refuse letters that cannot be drawn."""
    if lacking:
        raise ValueError(
            f"`text` holds {lacking[0]!r}, which the built-in font cannot draw. Draw the text "
            "yourself, black on white, and use the picture as a mask."
        )


def check_tall_enough(n_found: int, n_cells: int, height: int) -> None:
    """Refuse letters that have fewer cells than asked for."""
    if n_found < n_cells:
        raise ValueError(
            f"Letters of height {height} have {n_found} cells, fewer than the {n_cells} asked "
            "for. Raise `height`, or leave it out."
        )


def check_mask_cells(n_cells: int, path: str | Path) -> None:
    """Refuse a picture in which no shape is drawn."""
    if n_cells == 0:
        raise ValueError(
            f"{path} has no cell: no pixel is dark, or opaque in a picture that is partly clear. "
            "Draw the shape in black on white, or on a transparent ground."
        )


def raise_no_mask(path: str | Path, why: str, cause: Exception) -> NoReturn:
    """Refuse a file that is no picture."""
    raise ValueError(
        f"{path} cannot be read as a mask: {why}. Give a picture with the shape in black on "
        "white, or on a transparent ground."
    ) from cause


def check_callable(value: Any, name: str) -> None:
    """Refuse a callback that cannot be called."""
    if value is not None and not callable(value):
        raise ValueError(f"`{name}` must be a function or None, got {value!r}.")
