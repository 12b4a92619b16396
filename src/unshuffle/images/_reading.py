"""Folders of pictures, read with care: whatever is in the folder, nothing crashes."""

import re
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle._parallel import map_parallel
from unshuffle._validation import check_folder, check_image_size, check_memory

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
"""Formats that are decoded. Pillow knows many more, each a decoder that could be attacked."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".jpe", ".gif", ".bmp", ".tif", ".tiff", ".webp")
"""File name endings that promise one of these formats; the content decides."""

MAX_PIXELS = 80_000_000
"""Largest picture that is decoded, below the size at which Pillow itself warns."""

Progress = Callable[[int, int], object]

# What turns a picture stored with this Exif orientation upright.
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ORIENTATION_TAG = 0x0112


@dataclass(frozen=True)
class ImageCollection:
    """The readable pictures of a folder, all at one size.

    Attributes
    ----------
    names : list of str
        File names in natural order ("2.png" before "10.png").
    arrays : ndarray of shape (n_images, height, width, 3), uint8
        The pictures in RGB, upright, transparent parts on white.
    sizes : ndarray of shape (n_images, 2)
        Height and width of each picture in its file, after it was turned upright.
    skipped : list of (str, str)
        Name of each file that was not read, and why.
    """

    names: list[str]
    arrays: NDArray[np.uint8]
    sizes: NDArray[np.intp]
    skipped: list[tuple[str, str]]

    def __len__(self) -> int:
        return len(self.names)


def natural_key(name: str) -> tuple[list[tuple[int, int | str]], str]:
    """Sort key that counts: "2.png" comes before "10.png", and case hardly matters."""
    pieces: list[tuple[int, int | str]] = [
        (0, int(piece)) if piece.isdecimal() else (1, piece)
        for piece in re.split("([0-9]+)", name.casefold())
        if piece
    ]
    return pieces, name


def visible_files(folder: Path) -> list[Path]:
    """Everything in `folder` but sub-folders and hidden files, in natural order."""
    entries = [
        path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_dir()
    ]
    return sorted(entries, key=lambda path: natural_key(path.name))


def read_folder(
    folder: str | Path,
    *,
    size: int | tuple[int, int] = 40,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
) -> ImageCollection:
    """Read every picture of a folder at one common size.

    Sub-folders and hidden files are left out. A file that is no picture, is damaged,
    or is too large to be decoded safely is skipped and listed with the reason.

    Parameters
    ----------
    folder : str or Path
        Where the pictures are: PNG, JPEG, GIF (its first frame), BMP, TIFF or WebP. The
        content decides, so a PNG named ``a.jpg`` is read.
    size : int or (int, int), default=40
        Side of the square, or height and width, that each picture is scaled to. Larger
        keeps more detail and takes more memory.
    n_jobs : int or None, default=None
        Number of threads that decode; more use more cores. The result is the same.
    on_progress : callable or None, default=None
        Called with the number of files done and the number in all.

    Returns
    -------
    collection : ImageCollection
        Names, pixels, and what was skipped.

    Notes
    -----
    Time grows with the pixels in the files, memory with ``n_images * height * width * 3``
    bytes, plus one decoded picture for each thread.
    """
    height, width = check_image_size(size)
    folder = check_folder(folder)
    paths = visible_files(folder)
    check_memory(
        len(paths) * height * width * 3,
        what=f"Reading {len(paths):,} pictures at {height} x {width} pixels",
        instead="Choose a smaller `size`.",
    )
    lock = threading.Lock()
    done = 0

    def read_one(path: Path) -> tuple[NDArray[np.uint8], tuple[int, int]] | str:
        nonlocal done
        try:
            return read_image(path, size=(height, width))
        except Exception as error:
            # Decoders fail in any way they like on damaged data: OSError, SyntaxError,
            # struct.error, zlib.error and more. One bad file must not cost the others.
            return _reason(error)
        finally:
            with lock:
                done += 1
                if on_progress is not None:
                    on_progress(done, len(paths))

    with warnings.catch_warnings():
        # Decoders warn about what is odd in a file; what matters is listed in `skipped`.
        warnings.simplefilter("ignore")
        results = map_parallel(read_one, paths, n_jobs=n_jobs)
    read = [(path.name, each) for path, each in zip(paths, results, strict=True)]
    skipped = [(name, each) for name, each in read if isinstance(each, str)]
    good = [(name, *each) for name, each in read if not isinstance(each, str)]
    if not good:
        raise ValueError(_nothing_read(folder, skipped))
    return ImageCollection(
        names=[name for name, _, _ in good],
        arrays=np.stack([pixels for _, pixels, _ in good]),
        sizes=np.array([original for _, _, original in good], dtype=np.intp),
        skipped=skipped,
    )


def read_image(
    path: str | Path, *, size: tuple[int, int]
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Read one picture at the given size, upright and in RGB.

    Parameters
    ----------
    path : str or Path
        The file.
    size : (int, int)
        Height and width that it is scaled to.

    Returns
    -------
    pixels : ndarray of shape (height, width, 3), uint8
        The picture.
    original : (int, int)
        Height and width in the file, after it was turned upright.

    Raises
    ------
    Exception
        Whatever the decoder raises on a file that is damaged or no picture.
    """
    path = Path(path)
    if not path.is_file():
        # A pipe or a device would wait for ever; a broken link has nothing to read.
        raise ValueError("not a regular file")
    if path.stat().st_size == 0:
        raise ValueError("empty file")
    with Image.open(path, formats=FORMATS) as image:
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(
                f"{image.width} x {image.height} pixels, more than the {MAX_PIXELS // 10**6} "
                "million that are decoded"
            )
        orientation = _orientation(image)
        turned = orientation >= 5
        height, width = size[::-1] if turned else size
        original = (image.width, image.height) if turned else (image.height, image.width)
        # JPEG can be decoded at a fraction of its size, at a fraction of the time.
        image.draft("RGB", (4 * width, 4 * height))
        small = _to_rgb(image).resize((width, height), Image.Resampling.BICUBIC, reducing_gap=3.0)
    if orientation in _UPRIGHT:
        small = small.transpose(_UPRIGHT[orientation])
    return np.asarray(small, dtype=np.uint8), original


def _orientation(image: Image.Image) -> int:
    try:
        value = image.getexif().get(_ORIENTATION_TAG, 1)
    except Exception:
        # Broken metadata says nothing about the pixels.
        return 1
    return value if isinstance(value, int) else 1


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "I" or image.mode == "F" or image.mode.startswith("I;16"):
        # Pillow cuts these off at 255, which turns a 16-bit picture white.
        image = Image.fromarray(_to_eight_bits(np.asarray(image, dtype=np.float64)))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        opaque = image.convert("RGBA")
        white = Image.new("RGBA", opaque.size, "white")
        return Image.alpha_composite(white, opaque).convert("RGB")
    return image.convert("RGB")


def _to_eight_bits(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    if not np.isfinite(values).all():
        raise ValueError("pixels that are not numbers")
    top = float(values.max())
    for white in (1.0, 255.0, 65535.0):
        if top <= white:
            break
    else:
        white = top
    return np.asarray(np.clip(values / white, 0.0, 1.0) * 255.0 + 0.5, dtype=np.uint8)


def _reason(error: Exception) -> str:
    if isinstance(error, Image.UnidentifiedImageError):
        return "not a picture in a format that is read (PNG, JPEG, GIF, BMP, TIFF, WebP)"
    if isinstance(error, Image.DecompressionBombError):
        return f"more than the {MAX_PIXELS // 10**6} million pixels that are decoded"
    if isinstance(error, ValueError):
        return str(error) or "damaged"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return f"damaged ({' '.join(str(error).split())[:80] or type(error).__name__})"


def _nothing_read(folder: Path, skipped: list[tuple[str, str]]) -> str:
    if not skipped:
        return (
            f"{folder} holds no picture: it has no files (sub-folders and hidden files are not "
            "searched). Give a folder of PNG, JPEG, GIF, BMP, TIFF or WebP files."
        )
    name, why = skipped[0]
    return (
        f"{folder} holds no picture that can be read: {len(skipped)} file(s) were skipped, the "
        f"first is {name}: {why}. Give a folder of PNG, JPEG, GIF, BMP, TIFF or WebP files."
    )
