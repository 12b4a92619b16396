"""Safe decoding of one picture: known formats, a limit on pixels, no metadata."""

from functools import cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from unshuffle._files.paths import file_size
from unshuffle._run.versions import is_older

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
"""Formats that are decoded. Pillow knows many more, each a possible target of attacks."""
SUFFIXES = (
    *(".png", ".jpg", ".jpeg", ".jpe", ".gif", ".bmp", ".tif", ".tiff", ".webp"),
    *(".heic", ".heif"),
)
"""File name endings of these formats and HEIC; the content of a file decides."""
MAX_PIXELS = 80_000_000
"""Largest number of pixels that is decoded, below the size at which Pillow warns."""
_TOO_LARGE = f"more than the {MAX_PIXELS // 10**6} million pixels that are decoded"
# The decoders in older wheels can be made to run code by a picture.
_SAFE_HEIF = "1.8.1"
_INSTALL_HEIC = "a HEIC picture; to read it: pip install 'unshuffle[images]'"
_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
# The HEIC decoder loads the whole file into memory before it reads the picture size.
_MAX_HEIC_BYTES = 256 * 2**20
# Transpose that turns a picture with this Exif orientation upright.
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
# A larger copy of at most this side is kept exactly, as PNG; others as JPEG of this quality.
_EXACT_SIDE = 64
_QUALITY = 88


class Decoded(NamedTuple):
    """A picture that was read, upright in RGB."""

    pixels: NDArray[np.uint8]
    original: tuple[int, int]  # height and width in the file
    preview: bytes | None = None  # a larger copy in proportion, as JPEG or PNG without metadata


def decode(
    path: Path, *, size: tuple[int, int], fit: str = "stretch", preview: int | None = None
) -> Decoded:
    """Pixels at `size` (height, width), and a larger copy of at most `preview` pixels a side.

    Decoders raise nearly any exception on a damaged file; `explain` words it.
    """
    with Image.open(path, formats=_formats_for(path)) as image:
        if image.width * image.height > MAX_PIXELS:
            raise ValueError(f"{_TOO_LARGE} ({image.width} x {image.height})")
        orientation = _orientation(image)
        turned = orientation >= 5
        height, width = size[::-1] if turned else size
        original = (image.width, image.height) if turned else (image.height, image.width)
        shown = _shrunk(image.size, preview or 1)
        # JPEG can be decoded at a fraction of its size in a fraction of the time.
        image.draft("RGB", (max(4 * width, shown[0]), max(4 * height, shown[1])))
        whole = _to_rgb(image)
    box = _central_box(whole.size, (width, height)) if fit == "crop" else None
    small = _upright(_scaled(whole, (width, height), box), orientation)
    larger = None
    if preview is not None:
        larger = _encode(_upright(_scaled(whole, shown), orientation))
    return Decoded(np.asarray(small, dtype=np.uint8), original, larger)


def central_part(image: Image.Image, height: int, width: int) -> NDArray[np.uint8]:
    """The largest central part of an open picture that fills a size, in RGB."""
    image.draft("RGB", (2 * width, 2 * height))
    box = _central_box(image.size, (width, height))
    part = image.convert("RGB")
    if part.size != (width, height):
        part = part.resize((width, height), Image.Resampling.BICUBIC, box=box, reducing_gap=3.0)
    return np.asarray(part, dtype=np.uint8)


def explain(error: Exception) -> str:
    """Reason why a picture could not be read, for the user."""
    if isinstance(error, Image.UnidentifiedImageError):
        return "not a picture in a supported format (PNG, JPEG, GIF, BMP, TIFF, WebP)"
    if isinstance(error, Image.DecompressionBombError):
        return _TOO_LARGE
    if isinstance(error, MemoryError):
        return "it takes more memory than there is"
    if isinstance(error, ValueError):
        return str(error) or "damaged"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if "truncated" in str(error):
        return "damaged (the file ends too early)"
    return f"damaged ({' '.join(str(error).split())[:80] or type(error).__name__})"


def _formats_for(path: Path) -> tuple[str, ...]:
    """Formats to try on a file, after checking that it is safe to open."""
    n_bytes = file_size(path)
    with open(path, "rb") as file:
        head = file.read(12)
    if head[4:8] != b"ftyp" or head[8:12] not in _HEIC_BRANDS:
        if path.suffix.lower() in (".heic", ".heif") and not _has_heic():
            raise ValueError(_INSTALL_HEIC)
        return FORMATS
    if not _has_heic():
        raise ValueError(_INSTALL_HEIC)
    if n_bytes > _MAX_HEIC_BYTES:
        raise ValueError(f"a HEIC picture of more than {_MAX_HEIC_BYTES // 2**20} MB")
    return ("HEIF",)


@cache
def _has_heic() -> bool:
    try:
        import pillow_heif
    except ImportError:
        return False
    if is_older(pillow_heif, _SAFE_HEIF):
        return False
    pillow_heif.register_heif_opener()
    return True


def _central_box(
    size: tuple[int, int], target: tuple[int, int]
) -> tuple[float, float, float, float]:
    """Largest central part of a picture with the proportions of `target`; both width first."""
    scale = min(size[0] / target[0], size[1] / target[1])
    width, height = scale * target[0], scale * target[1]
    left, top = max(0.0, (size[0] - width) / 2), max(0.0, (size[1] - height) / 2)
    # Rounding must not push the far edge outside the picture.
    return left, top, min(left + width, size[0]), min(top + height, size[1])


def _shrunk(size: tuple[int, int], side: int) -> tuple[int, int]:
    """Width and height in the same proportions with the longer one at most `side`."""
    scale = min(1.0, side / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _scaled(
    image: Image.Image,
    size: tuple[int, int],
    box: tuple[float, float, float, float] | None = None,
) -> Image.Image:
    return image.resize(size, Image.Resampling.BICUBIC, box=box, reducing_gap=3.0)


def _upright(image: Image.Image, orientation: int) -> Image.Image:
    return image.transpose(_UPRIGHT[orientation]) if orientation in _UPRIGHT else image


def _encode(image: Image.Image) -> bytes:
    """A picture as PNG if it is tiny, else as JPEG, without metadata."""
    image.info = {}  # Pillow would write profiles and comments that it found in the file
    data = BytesIO()
    if max(image.size) <= _EXACT_SIDE:
        image.save(data, "PNG")
    else:
        image.save(data, "JPEG", quality=_QUALITY)
    return data.getvalue()


def _orientation(image: Image.Image) -> int:
    try:
        value = image.getexif().get(_ORIENTATION_TAG, 1)
    except Exception:
        # Broken metadata does not affect the pixels.
        return 1
    return value if isinstance(value, int) else 1


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "I" or image.mode == "F" or image.mode.startswith("I;16"):
        # Pillow clips these at 255, which turns a 16-bit picture white.
        image = Image.fromarray(_to_eight_bits(np.asarray(image, dtype=np.float64)))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        opaque = image.convert("RGBA")
        white = Image.new("RGBA", opaque.size, "white")
        return Image.alpha_composite(white, opaque).convert("RGB")
    if image.mode != "RGB":
        return image.convert("RGB")
    image.load()
    return image  # a copy would take the memory twice


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
