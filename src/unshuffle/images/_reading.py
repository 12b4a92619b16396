"""Folders of pictures: every readable file at one size, the others listed with a reason."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unshuffle._core.parameters import check_count, check_memory, check_option, check_progress
from unshuffle._files.paths import (
    as_path,
    by_reason,
    check_folder,
    list_files,
    natural_key,
    path_key,
)
from unshuffle._pictures.decoding import decode, explain
from unshuffle._pictures.previews import Previews, TemporaryFolder
from unshuffle._pictures.reading import PictureReader, Reading, ReadingTask
from unshuffle._pictures.workers import read_pictures
from unshuffle._run.parallel import step_counter
from unshuffle._run.printing import short_repr
from unshuffle._run.types import Progress

FITS = ("stretch", "crop")
MAX_SIDE = 4096


@dataclass(frozen=True)
class ImageCollection:
    """The readable pictures of a folder, all at one size.

    Attributes
    ----------
    names : list of str
        Paths relative to the folder, with ``/``, in natural order ("2.png" before "10.png").
    arrays : ndarray of shape (n_images, height, width, 3), uint8
        The pictures in RGB, upright, transparent parts on white.
    sizes : ndarray of shape (n_images, 2)
        Height and width of each picture in its file, after it was turned upright.
    skipped : list of (str, str)
        Name of each file that was not read, and the reason.
    folder : Path or None
        Folder that they are from.
    fit : {"stretch", "crop"}
        How they were brought to one size.
    previews : sequence of bytes, or None
        A larger copy of each picture, if asked for: upright, in RGB and in its proportions,
        transparent parts on white. JPEG, or PNG, which is exact, if it has at most 64 x 64
        pixels; without metadata. ``previews[i]`` is read from disk when it is asked for. One that
        was deleted meanwhile is made again from the file of the picture; if that is gone too, a
        ValueError says so.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from unshuffle.images import read_folder
    >>> with TemporaryDirectory() as folder:
    ...     Image.new("RGB", (60, 40), "red").save(Path(folder) / "red.png")
    ...     photos = read_folder(folder, size=8)
    >>> photos.names, photos.arrays.shape
    (['red.png'], (1, 8, 8, 3))
    """

    names: list[str]
    arrays: NDArray[np.uint8]
    sizes: NDArray[np.intp]
    skipped: list[tuple[str, str]]
    folder: Path | None = None
    fit: str = "stretch"
    previews: Previews | None = None

    def __repr__(self) -> str:
        return short_repr(self)

    def __len__(self) -> int:
        return len(self.names)

    def take(self, items: Sequence[int] | NDArray[np.intp]) -> "ImageCollection":
        """Some of the pictures, in this order.

        Parameters
        ----------
        items : sequence of int
            Their numbers.

        Returns
        -------
        collection : ImageCollection
            The pictures with their names, sizes and previews, and all skipped files.
        """
        chosen = np.asarray(items, dtype=np.intp)
        return replace(
            self,
            names=[self.names[i] for i in chosen],
            arrays=self.arrays[chosen],
            sizes=self.sizes[chosen],
            previews=None if self.previews is None else self.previews.take(chosen.tolist()),
        )


def read_folder(
    folder: str | Path,
    *,
    size: int | tuple[int, int] = 40,
    fit: str = "stretch",
    recursive: bool = False,
    cache: str | Path | None = None,
    previews: int | None = None,
    n_jobs: int | None = None,
    on_progress: Progress | None = None,
) -> ImageCollection:
    """Read every picture of a folder at one common size.

    Hidden files are ignored. Damaged files, files that are not pictures, pictures of more than 80
    million pixels and links that lead out of the folder are skipped and listed with the reason.

    Parameters
    ----------
    folder : str or Path
        Folder of PNG, JPEG, GIF (first frame), BMP, TIFF or WebP files, and HEIC with
        ``unshuffle[images]``. The format is detected from the content, not the name.
    size : int or (int, int), default=40
        Height and width that each picture is scaled to; one number for both. Larger sizes keep
        more detail and take more memory.
    fit : {"stretch", "crop"}, default="stretch"
        "stretch" keeps the whole picture but not its proportions; "crop" keeps the proportions
        and the largest central part that fills the size.
    recursive : bool, default=False
        Also read sub-folders, except hidden ones and links.
    cache : str, Path or None, default=None
        Folder for scaled copies, such as `default_cache()`, which make the next reading much
        faster, also one that was interrupted. It is created if missing. The copies that were not
        used for longest are removed beyond 4 GiB, enough for 100,000 pictures with previews of
        320 pixels; what this session used stays. None keeps no copies.
    previews : int or None, default=None
        Longest side of a larger copy of each picture, in its proportions and never enlarged.
        Larger copies show more and take more disk: some 18 kB each at 320 pixels. They are kept
        in `cache`; without one in a temporary folder, which is removed with the collection. None
        makes none.
    n_jobs : int or None, default=None
        Number of threads that decode; of processes, at most 16, from 500 files on. The result
        does not depend on it.
    on_progress : callable or None, default=None
        Called with the number of files done and the total.

    Returns
    -------
    collection : ImageCollection
        Names, pixels and skipped files.

    Notes
    -----
    Time grows with the pixels in the files, memory with ``n_images * height * width * 3``
    bytes, plus one decoded picture for each thread or process, and 40 MB for each process.

    A file that crashes its decoder, or needs more memory than there is, costs only itself if
    processes decode: it is skipped with the reason. Processes are other interpreters that run
    this library alone, so scripts need no ``if __name__ == "__main__"``. Where none can be
    started, threads decode. After Ctrl-C, all pictures decoded so far are in `cache`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from unshuffle.images import read_folder
    >>> with TemporaryDirectory() as folder:
    ...     for color in ("red", "blue"):
    ...         Image.new("RGB", (60, 40), color).save(Path(folder) / f"{color}.png")
    ...     _ = (Path(folder) / "notes.txt").write_text("not a picture")
    ...     photos = read_folder(folder, size=8)
    >>> photos.arrays.shape
    (2, 8, 8, 3)
    >>> photos.names
    ['blue.png', 'red.png']
    >>> [name for name, reason in photos.skipped]
    ['notes.txt']
    """
    size = check_image_size(size)
    check_option(fit, "fit", FITS)
    if previews is not None:
        previews = check_count(previews, "previews", most=MAX_SIDE)
    folder = check_folder(folder)
    kept = None if cache is None else Path(cache)
    if kept is not None and os.path.realpath(kept) == os.path.realpath(folder):
        raise ValueError(
            f"`cache` is the folder of the pictures itself, {folder}. Pass another one, such as "
            "unshuffle.images.default_cache()."
        )
    listing = list_files(folder, recursive=recursive, leave_out=kept)
    n_files = len(listing.files)
    check_memory(
        n_files * size[0] * size[1] * 3,
        what=f"Reading {n_files:,} pictures at {size[0]} x {size[1]} pixels",
        instead="Choose a smaller `size`.",
    )
    holder = TemporaryFolder() if previews is not None and kept is None else None
    copies = kept if holder is None else holder.path
    # Absolute: the current folder may change before a preview is asked for.
    copied = None if copies is None else os.path.abspath(copies)
    task = ReadingTask(size, fit, previews, copied, holder is not None, (os.path.abspath(folder),))
    reader = PictureReader(task)
    paths = [path for _, path in listing.files]
    found = _read_all(paths, reader, n_jobs, on_progress)
    good = [i for i in range(n_files) if i not in found.reasons]
    skipped = [(listing.files[i][0], reason) for i, reason in found.reasons.items()]
    skipped = sorted(listing.skipped + skipped, key=lambda entry: path_key(entry[0]))
    if not good:
        raise ValueError(_nothing_read(folder, skipped, recursive))
    for place, i in enumerate(good):
        found.arrays[place] = found.arrays[i]  # in place: a copy would take the memory twice
    names, keys = [listing.files[i][0] for i in good], [found.keys[i] for i in good]
    root = Path(os.path.abspath(folder))
    return ImageCollection(
        names=names,
        arrays=found.arrays[: len(good)],
        sizes=found.sizes[good],
        skipped=skipped,
        folder=folder,
        fit=fit,
        previews=None if previews is None else Previews(root, names, keys, reader, holder),
    )


class _Found:
    """What was read of each file."""

    def __init__(self, n_files: int, size: tuple[int, int]) -> None:
        self.arrays = np.zeros((n_files, *size, 3), dtype=np.uint8)
        self.sizes = np.zeros((n_files, 2), dtype=np.intp)  # in the files
        self.keys = [""] * n_files  # of their copies
        self.reasons: dict[int, str] = {}  # why files were not read
        self.any_new = False
        self.problem: str | None = None  # why copies are not kept

    def take(self, i: int, reading: Reading) -> None:
        if reading.picture is None:
            self.reasons[i] = reading.reason
            return
        self.arrays[i], self.sizes[i], _ = reading.picture
        self.keys[i] = reading.key
        if not reading.from_copy:
            self.any_new = True
        if reading.problem is not None:
            self.problem = reading.problem


def _read_all(
    paths: list[Path], reader: PictureReader, n_jobs: int | None, on_progress: Progress | None
) -> _Found:
    """Read every file, and keep copies of those that are new."""
    found = _Found(len(paths), reader.task.size)
    check_progress(on_progress)
    step = step_counter(on_progress, len(paths))
    read_pictures(paths, reader, found.take, step, n_jobs=n_jobs)
    if reader.cache is not None and found.any_new:
        reader.cache.prune()
    if found.problem is not None:
        warnings.warn(
            f"Thumbnails cannot be kept in {reader.task.copies}: {found.problem}. The pictures "
            "were read anyway; choose another `cache` to read them faster next time.",
            stacklevel=3,
        )
    return found


def _nothing_read(folder: Path, skipped: list[tuple[str, str]], recursive: bool) -> str:
    """Why no picture of a folder was read."""
    advice = "Give a folder of PNG, JPEG, GIF, BMP, TIFF or WebP files."
    if not skipped:
        where = "hidden ones" if recursive else "sub-folders and hidden files"
        return f"{folder} holds no picture: it has no files ({where} are not searched). {advice}"
    listed = [f"{len(names):,} such as {names[0]}: {why}" for why, names in by_reason(skipped)]
    count = f"{len(skipped):,} file(s) were skipped"
    return f"{folder} holds no readable picture: {count}. {'; '.join(listed)}. {advice}"


def read_image(
    path: str | Path, *, size: tuple[int, int], fit: str = "stretch"
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Read one picture at the given size, upright and in RGB.

    Parameters
    ----------
    path : str or Path
        The file.
    size : (int, int)
        Height and width to scale it to, in pixels.
    fit : {"stretch", "crop"}, default="stretch"
        "stretch" scales the whole picture and changes its proportions; "crop" keeps its
        proportions and the largest central part that fills the size.

    Returns
    -------
    pixels : ndarray of shape (height, width, 3), uint8
        The picture.
    original : (int, int)
        Height and width in the file, after it was turned upright.

    Raises
    ------
    ValueError
        If the file is damaged, too large or not a picture; the message says which.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from unshuffle.images import read_image
    >>> with TemporaryDirectory() as folder:
    ...     Image.new("RGB", (60, 40), "red").save(Path(folder) / "red.png")
    ...     pixels, size = read_image(Path(folder) / "red.png", size=(8, 8))
    >>> pixels.shape, size
    ((8, 8, 3), (40, 60))
    """
    check_option(fit, "fit", FITS)
    file, size = as_path(path, "`path`"), check_image_size(size)
    try:
        pixels, original, _ = decode(file, size=size, fit=fit)
    except Exception as error:  # decoders raise nearly anything on a damaged file
        raise ValueError(f"{file} cannot be read as a picture: {explain(error)}.") from error
    return pixels, original


def check_image_size(size: Any) -> tuple[int, int]:
    """Height and width in pixels, from one number or two."""
    both = (size, size) if isinstance(size, Integral) else tuple(np.atleast_1d(size).tolist())
    if len(both) != 2:
        raise ValueError(
            f"`size` must be one number or (height, width), got {size!r}. "
            "Pass e.g. 40 or (40, 20)."
        )
    height, width = (check_count(each, "size", most=MAX_SIDE) for each in both)
    return height, width


def visible_files(folder: str | Path) -> list[Path]:
    """Files in `folder` in natural order, without subfolders and hidden files.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from unshuffle.images import visible_files
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("a.txt", ".hidden"):
    ...         (Path(folder) / name).touch()
    ...     [path.name for path in visible_files(folder)]
    ['a.txt']
    """
    entries = [
        path
        for path in check_folder(folder).iterdir()
        if not path.name.startswith(".") and not path.is_dir()
    ]
    return sorted(entries, key=lambda path: natural_key(path.name))
