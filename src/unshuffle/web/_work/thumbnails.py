"""Thumbnails by slot, many in one picture, so that a page loads thousands of them in no time."""

import io
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from PIL import Image

from unshuffle._pictures.decoding import central_part
from unshuffle._run.types import Pixels
from unshuffle.web._http.refusal import Refused

ACROSS = 8
IN_SHEET = ACROSS**2
SIDES = (16, 64)
_EMPTY = 128
_QUALITY = 84
# Pixels at which a picture is compared, its height and width, and a larger copy.
Thumbnail = Callable[[int], tuple[Pixels, Any, Callable[[], bytes]]]


class Sheet:
    """Some slots side by side; drawn as far as they are read, and kept when complete."""

    def __init__(self, side: int) -> None:
        self.side = side
        self._lock = threading.Lock()
        self._pixels: Pixels | None = None
        self._drawn: set[int] = set()
        self._encoded = b""

    def draw(self, slots: Mapping[int, int], thumbnail: Thumbnail, *, complete: bool) -> bytes:
        """The sheet as a JPEG, from slots by their places; `complete` if all others failed."""
        with self._lock:
            missing = {place: slot for place, slot in slots.items() if place not in self._drawn}
            if self._encoded and not missing:
                return self._encoded
            if self._pixels is None:
                self._pixels = self._decode()
            for place, slot in missing.items():
                row, column = divmod(place, ACROSS)
                top, left = row * self.side, column * self.side
                found = self._tile(*thumbnail(slot))
                self._pixels[top : top + self.side, left : left + self.side] = found
            self._drawn |= set(missing)
            self._encoded = self._encode(self._pixels)
            if complete:
                self._pixels = None
            return self._encoded

    def _tile(self, pixels: Pixels, size: Any, preview: Callable[[], bytes]) -> Pixels:
        """The largest central square of a picture."""
        if self.side > min(SIDES):
            with (
                suppress(Refused),  # the file is gone; what was compared is still there
                Image.open(io.BytesIO(preview()), formats=("JPEG", "PNG")) as image,
            ):
                return central_part(image, self.side, self.side)
        return central_square(pixels, size, self.side)

    def _decode(self) -> Pixels:
        if self._encoded:
            with Image.open(io.BytesIO(self._encoded), formats=("JPEG",)) as image:
                return np.array(image)
        return np.full((ACROSS * self.side, ACROSS * self.side, 3), _EMPTY, dtype=np.uint8)

    @staticmethod
    def _encode(pixels: Pixels) -> bytes:
        out = io.BytesIO()
        # Colors at full resolution, so that they do not bleed from one picture into the next.
        Image.fromarray(pixels).save(out, format="JPEG", quality=_QUALITY, subsampling=0)
        return out.getvalue()


def central_square(pixels: Pixels, size: Any, side: int) -> Pixels:
    """Central square of a picture of some height and width that was stretched to a square."""
    height, width = size
    whole = len(pixels)
    down, across = whole * min(1.0, width / height), whole * min(1.0, height / width)
    left, top = (whole - across) / 2, (whole - down) / 2
    part = (left, top, left + across, top + down)
    small = Image.fromarray(pixels).resize((side, side), Image.Resampling.BOX, box=part)
    return np.asarray(small)
