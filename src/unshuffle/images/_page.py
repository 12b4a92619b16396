"""A layout as one self-contained web page."""

import base64
import hashlib
import html
import io
import json
from collections.abc import Sequence
from importlib import resources
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from unshuffle._arrays import as_array
from unshuffle._files import check_output_path
from unshuffle._grids import check_grid, check_images, check_names
from unshuffle._parameters import check_count, check_memory
from unshuffle._saving import replace_file
from unshuffle.images._sheets import resize

_SUFFIXES = (".html", ".htm")
# Four bytes each; browsers hold this many without trouble.
MAX_PAGE_PIXELS = 64_000_000
# Side of the JPEGs that the wall is cut into: few to draw, each quick to decode.
BLOCK_PIXELS = 2048
# JPEG works on blocks of eight pixels; tiles aligned with them do not bleed into each other.
_STEP = 8
_EMPTY = 128


def write_page(
    path: str | Path,
    images: ArrayLike,
    grid: ArrayLike,
    names: Sequence[str],
    *,
    title: str = "unshuffle",
    captions: Sequence[str] | None = None,
    tile: int = 64,
    previews: Sequence[NDArray[np.uint8]] | None = None,
) -> None:
    """Write a wall of pictures to explore in a browser, as a single HTML file.

    The page zooms, pans, searches names and opens pictures, by mouse, touch or keyboard. It works
    offline: pictures, style and script are in the file, and a content security policy forbids
    everything else.

    Parameters
    ----------
    path : str or Path
        An .html file. An existing file is replaced when the new one is complete.
    images : array of shape (n, h, w, 3) or (n, h, w), uint8
        The pictures, or thumbnails of them.
    grid : array of int of shape (rows, columns)
        Index of the picture in each cell; -1 leaves it empty.
    names : sequence of str
        Name of each picture. Any text is shown literally.
    title : str, default="unshuffle"
        Heading of the page.
    captions : sequence of str or None, default=None
        Text below the name of each picture, included in the search.
    tile : int, default=64
        Height of a picture in pixels, rounded up to a multiple of 8. Larger values show more
        when zoomed in and make larger files. Reduced where the wall would exceed 64 million
        pixels.
    previews : sequence of arrays of shape (h_i, w_i, 3), uint8, or None, default=None
        Larger version of each picture, shown when it is opened. None enlarges the thumbnail.

    Notes
    -----
    The file takes about 1 to 3 kB per picture at the default size. It holds pixels and no
    metadata.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from unshuffle.images import write_page
    >>> images = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    >>> with TemporaryDirectory() as folder:
    ...     write_page(Path(folder) / "wall.html", images, [[0, 1]], ["a.png", "b.png"])
    """
    path = check_output_path(path, _SUFFIXES)
    if not isinstance(title, str):
        raise ValueError(
            f'`title` must be a string, got {type(title).__name__}. Pass "" for no title.'
        )
    images = check_images(images)
    cells = check_grid(grid, len(images))
    shown = cells.ravel().tolist()
    data = {
        **_cut_wall(images, cells, check_count(tile, "tile", least=_STEP, most=1024)),
        "cells": shown,
        "names": _check_texts(names, len(images), "names"),
        "captions": None if captions is None else _check_texts(captions, len(images), "captions"),
        "previews": None,
    }
    if previews is not None:
        pictures = _check_previews(previews, len(images))
        visible = set(shown)
        data["previews"] = [
            _encode_jpeg(picture) if item in visible else ""
            for item, picture in enumerate(pictures)
        ]
    replace_file(path, _fill_template(title, data).encode("ascii", "xmlcharrefreplace"))


def _cut_wall(images: NDArray[np.uint8], cells: NDArray[np.intp], tile: int) -> dict[str, Any]:
    """The wall, cut into blocks of one JPEG each."""
    rows, columns = cells.shape
    aspect = images.shape[2] / images.shape[1]
    most = sqrt(MAX_PAGE_PIXELS / (cells.size * aspect))
    height = max(_STEP, min(_round_up(tile), int(most) // _STEP * _STEP))
    width = _round_up(height * aspect)
    check_memory(
        3 * cells.size * height * width,
        what=f"A page of {rows:,} x {columns:,} pictures of {height} pixels",
        instead="Choose a smaller `tile`, or show a part of the items.",
    )
    step = max(1, BLOCK_PIXELS // max(height, width))
    blocks = []
    for row in range(0, rows, step):
        for column in range(0, columns, step):
            part = cells[row : row + step, column : column + step]
            if (part >= 0).any():
                size = {"rows": part.shape[0], "columns": part.shape[1]}
                drawn = _encode_jpeg(_draw_block(images, part, height, width))
                blocks.append({"row": row, "column": column, **size, "data": drawn})
    grid = {"rows": rows, "columns": columns, "tile_height": height, "tile_width": width}
    return {**grid, "blocks": blocks}


def _draw_block(
    images: NDArray[np.uint8], cells: NDArray[np.intp], height: int, width: int
) -> NDArray[np.uint8]:
    """Pictures side by side; the page adds the gaps."""
    drawn = np.full((*cells.shape, height, width, 3), _EMPTY, dtype=np.uint8)
    for place, item in np.ndenumerate(cells):
        if item >= 0:
            drawn[place] = resize(images[item], height, width)
    joined = drawn.swapaxes(1, 2)
    return joined.reshape(cells.shape[0] * height, cells.shape[1] * width, 3)


def _encode_jpeg(pixels: NDArray[np.uint8]) -> str:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="JPEG", quality=84, subsampling=0)
    return base64.b64encode(out.getvalue()).decode("ascii")


def _round_up(pixels: float) -> int:
    return max(1, ceil(pixels / _STEP)) * _STEP


def _fill_template(title: str, data: dict[str, Any]) -> str:
    """The complete page."""
    folder = resources.files("unshuffle.images") / "page"
    template, style, script = (
        (folder / f"wall.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    policy = (
        f"default-src 'none'; script-src {_csp_hash(script)}; style-src {_csp_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    values = {
        "POLICY": policy,
        # Folder names may hold any bytes; invalid ones must not break the page.
        "TITLE": html.escape(title.encode("utf-8", "replace").decode("utf-8")),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": _escape_json(data),
    }
    pieces = template.split("@")
    # Every other piece names a value. Values are not searched for names again.
    return "".join(values[each] if k % 2 else each for k, each in enumerate(pieces))


def _escape_json(data: dict[str, Any]) -> str:
    """JSON that cannot close the script element around it, whatever it holds."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _csp_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _check_texts(texts: Any, n_items: int, name: str) -> list[str]:
    """One string for each item."""
    values = check_names(texts, name)
    if len(values) != n_items:
        raise ValueError(
            f"`{name}` must be {n_items} strings, one for each picture, got {len(values)}."
        )
    return values


def _check_previews(previews: Any, n_items: int) -> list[NDArray[np.uint8]]:
    """One picture for each item, of any size."""
    pictures = [as_array(each, f"`previews[{k}]`") for k, each in enumerate(previews)]
    if len(pictures) != n_items:
        raise ValueError(
            f"`previews` must be {n_items} pictures, one for each of `images`, got "
            f"{len(pictures)}."
        )
    for k, each in enumerate(pictures):
        if each.dtype != np.uint8 or each.ndim != 3 or each.shape[2] != 3 or 0 in each.shape:
            raise ValueError(
                f"`previews[{k}]` must be uint8 of shape (height, width, 3), got {each.dtype} of "
                f"shape {each.shape}."
            )
    return pictures
