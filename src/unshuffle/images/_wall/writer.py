"""A layout as a web page: one file, or a folder for walls of any size."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unshuffle._core.arrays import as_array
from unshuffle._core.grids import check_grid, check_images, check_names
from unshuffle._core.parameters import check_count, check_progress
from unshuffle._files.folders import check_page_folder, replace_folder
from unshuffle._files.paths import as_path, check_output_path
from unshuffle._files.saving import replace_file
from unshuffle._run.types import Progress
from unshuffle.images._reading import ImageCollection
from unshuffle.images._wall.pyramid import Pictures
from unshuffle.images._wall.wall import Wall

_SUFFIXES = (".html", ".htm")
_SCHEMES = ("", "http", "https", "file")


def write_page(
    path: str | Path,
    images: ArrayLike | Sequence[NDArray[np.uint8]] | ImageCollection,
    grid: ArrayLike,
    names: Sequence[str],
    *,
    title: str = "unshuffle",
    columns: Mapping[str, Sequence[str]] | None = None,
    labels: str | None = None,
    neighbors: ArrayLike | None = None,
    links: Sequence[str] | None = None,
    noun: str = "picture",
    tile: int | None = None,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
) -> None:
    """Write a wall of pictures to explore in a browser, as one HTML file or as a folder.

    The page zooms, pans, searches, filters, selects and opens pictures, by mouse, touch or
    keyboard. It works from disk and offline: everything is in the file or the folder, and a
    content security policy forbids everything else. A file suits up to a few thousand pictures;
    from a folder, the browser loads only what is in sight.

    Parameters
    ----------
    path : str or Path
        An .html file, or a name without suffix for a folder, whose ``index.html`` opens with a
        double click. An existing file or wall is replaced when the new one is complete. A folder
        is refused if it holds anything else, such as a file that was added to a wall or changed.
    images : array of shape (n, h, w, 3) or (n, h, w), uint8, list of arrays, or ImageCollection
        The pictures. Those of a list may differ in size; the largest central part fills a square
        cell, and the whole picture is shown when it is opened. A collection that was read with
        `previews` shows these. Pictures of one pixel are plain colors, shown exactly.
    grid : array of int of shape (rows, columns)
        Index of the picture in each cell; -1 leaves it empty.
    names : sequence of str
        Name of each picture. Any text is shown literally.
    title : str, default="unshuffle"
        Heading of the page.
    columns : mapping of str to sequence of str, or None, default=None
        What else is known of the pictures: one text for each, under a heading. They can be
        searched, filtered by, and are saved with a selection.
    labels : str or None, default=None
        Heading of a column whose texts are written over the regions where they prevail.
    neighbors : array of int of shape (n, k) or None, default=None
        Look-alikes of each picture, nearest first, as `unshuffle.layout.look_alikes` finds them;
        -1 for none. They are shown beside an opened picture.
    links : sequence of str or None, default=None
        Address of each original, relative to the page or absolute; "" for none.
    noun : str, default="picture"
        What the page calls an item; "s" is added for several.
    tile : int or None, default=None
        Height of a picture in pixels in the finest sheets, rounded up to a multiple of 8. Larger
        values show more when zoomed in and take more space. None suits the pictures, at most 128.
        Reduced where a single file would exceed 64 million pixels.
    n_jobs : int or None, default=None
        Number of threads that draw.
    on_progress : callable or None, default=None
        Called with the number of steps done and the total.

    Notes
    -----
    Takes about 5 kB per picture for the sheets, and as much as the larger pictures; a file holds
    these up to 48 MB. Memory does not grow with the number of pictures, apart from `images`, names
    and columns. Pixels are written without metadata, and only items on the grid are in the page.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from unshuffle.images import write_page
    >>> images = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    >>> with TemporaryDirectory() as folder:
    ...     write_page(Path(folder) / "wall.html", images, [[0, 1]], ["a.png", "b.png"])
    ...     write_page(Path(folder) / "wall", images, [[0, 1]], ["a.png", "b.png"])
    ...     sorted(each.name for each in (Path(folder) / "wall").iterdir())
    ['files-...', 'index.html']
    """
    target = as_path(path, "`path`")
    if target.suffix:
        check_output_path(target, _SUFFIXES)
    else:
        check_page_folder(target)
    check_progress(on_progress)
    for text, name in ((title, "title"), (noun, "noun")):
        if not isinstance(text, str):
            raise ValueError(f"`{name}` must be a string, got {type(text).__name__}.")
    pictures, n_items, size = _check_pictures(images)
    cells = check_grid(grid, n_items)
    texts = _check_columns(columns, n_items)
    if labels is not None and labels not in texts:
        raise ValueError(
            f"`labels` is {labels!r}, which is not in `columns`. Give the heading of one of them."
        )
    wall = Wall(
        pictures=pictures,
        size=size,
        grid=cells,
        names=_check_texts(names, n_items, "names"),
        columns=texts,
        labels=labels,
        neighbors=None if neighbors is None else _check_neighbors(neighbors, n_items),
        links=None if links is None else _check_links(links, n_items),
        title=title,
        noun=noun,
        tile=None if tile is None else check_count(tile, "tile", most=1024),
        in_file=bool(target.suffix),
    )
    if wall.in_file:
        replace_file(target, wall.write_file(n_jobs, on_progress))
    else:
        replace_folder(target, lambda part: wall.write_folder(part, n_jobs, on_progress))


def _check_pictures(images: Any) -> tuple[Pictures, int, tuple[int, int] | None]:
    """The pictures, how many there are, and their size if they have one in common."""
    if isinstance(images, ImageCollection):
        if images.previews is not None:
            return Pictures(images.previews), len(images), None
        images = images.arrays
    if isinstance(images, list | tuple) and len({np.shape(each) for each in images}) > 1:
        arrays = [as_array(each, f"`images[{k}]`") for k, each in enumerate(images)]
        for k, each in enumerate(arrays):
            if each.dtype != np.uint8 or each.ndim != 3 or each.shape[2] != 3 or 0 in each.shape:
                raise ValueError(
                    f"`images[{k}]` must be uint8 of shape (height, width, 3), got {each.dtype} "
                    f"of shape {each.shape}."
                )
        return Pictures(arrays), len(arrays), None
    array = check_images(images)
    return Pictures(array), len(array), (array.shape[1], array.shape[2])


def _check_texts(texts: Any, n_items: int, name: str) -> list[str]:
    """One string for each item."""
    values = check_names(texts, name)
    if len(values) != n_items:
        raise ValueError(
            f"`{name}` must be {n_items} strings, one for each picture, got {len(values)}."
        )
    return values


def _check_columns(columns: Any, n_items: int) -> dict[str, list[str]]:
    """Columns with headings that are strings and differ."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise ValueError(
            f"`columns` must be a dict of heading to texts, got {type(columns).__name__}."
        )
    odd = next((each for each in columns if not isinstance(each, str)), None)
    if odd is not None:
        raise ValueError(f"`columns` has the heading {odd!r}, which is not a string.")
    return {
        heading: _check_texts(texts, n_items, f"columns[{heading!r}]")
        for heading, texts in columns.items()
    }


def _check_neighbors(neighbors: Any, n_items: int) -> NDArray[np.intp]:
    array = as_array(neighbors, "`neighbors`")
    if array.ndim != 2 or len(array) != n_items or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"`neighbors` must be whole numbers of shape ({n_items}, k), got {array.dtype} of "
            f"shape {array.shape}."
        )
    if array.size and (array.max() >= n_items or array.min() < -1):
        raise ValueError(
            f"`neighbors` must hold items from 0 to {n_items - 1}, or -1, got values from "
            f"{array.min()} to {array.max()}."
        )
    return array.astype(np.intp)


def _check_links(links: Any, n_items: int) -> list[str]:
    """Addresses that lead to a file or a page and run nothing."""
    texts = _check_texts(links, n_items, "links")
    for k, text in enumerate(texts):
        try:
            scheme = urlsplit(text).scheme
        except ValueError:
            scheme = "?"
        # From a page on disk, two slashes lead to another machine.
        elsewhere = text.replace("\\", "/").startswith("//")
        if scheme not in _SCHEMES or elsewhere or text != text.strip():
            raise ValueError(
                f"`links[{k}]` is {text[:60]!r}. Give a path relative to the page, or an address "
                "that begins with http:, https: or file:."
            )
    return texts
